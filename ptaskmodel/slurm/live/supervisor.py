"""The supervisor: the parent of all processes of a live run; it starts, reports and ends them.

It is a program of its own that uses only the standard library. It takes commands from a socket, one
JSON object per packet. When the socket closes, for whatever reason, it kills all remaining
processes, removes the directory of the run, and exits. Processes that Slurm detaches become its
children too.

    python supervisor.py DIRECTORY SOCKET [TEXT]

It writes TEXT to stderr if it ends without a command to end.

The command {"start": [words], "env": {}, "output": file} gets the reply {"pid": n} or {"fault":
text}. {"kill": text} kills all processes whose environment contains the text, and their
descendants. {"end": true} ends the supervisor. It sends {"ended": pid, "status": n}, with the
status as in subprocess, for each process that it started, and for a step of a job that another
process kills.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
MOST = 1 << 18
STEP = b"slurmstepd"
# How long processes in the kernel's hands are waited for, s.
PATIENCE_S = 60.0


class Supervisor:
    """Its processes, by pid."""

    def __init__(self, directory: str, line: socket.socket) -> None:
        self.directory = directory
        self.line = line
        self.started: dict[int, subprocess.Popen] = {}
        self.doomed: set[int] = set()  # killed on purpose, and not yet gone
        self.told_to_end = False

    def run(self, woken: int) -> None:
        """Serve until a command ends it, or no client remains."""
        poll = select.poll()
        poll.register(self.line, select.POLLIN)
        poll.register(woken, select.POLLIN)
        while not self.told_to_end:
            ready = {descriptor for descriptor, _ in poll.poll()}
            if woken in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(woken, 4096)
                self.bury()
            if self.line.fileno() in ready:
                packet = b""
                with contextlib.suppress(ConnectionError):  # gone, with words of ours unread
                    packet = self.line.recv(MOST)
                if not packet:
                    return
                self.hear(json.loads(packet))

    def hear(self, said: dict) -> None:
        if "start" in said:
            self.start(said)
        elif "kill" in said:
            self.kill(said["kill"].encode())
        else:
            self.told_to_end = True

    def start(self, said: dict) -> None:
        try:
            with open(said["output"], "ab") as output:
                process = subprocess.Popen(
                    said["start"],
                    env=said["env"] | {"PTASKMODEL_SUPERVISOR": str(os.getpid())},
                    cwd=self.directory,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
        except OSError as fault:
            self.say({"fault": f"{fault.filename}: {fault.strerror}"})
            return
        self.started[process.pid] = process
        self.say({"pid": process.pid})

    def kill(self, mark: bytes) -> None:
        """Kill all whose environment has a text, with what is below them."""
        found: list[int] = []
        for pid in descendants(os.getpid()):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
                if mark in file.read().split(b"\0"):
                    found += [pid, *descendants(pid)]
        self.doomed.update(found)
        # Nobody is to see the others die, and tell.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in found:
                with contextlib.suppress(OSError):
                    os.kill(pid, number)

    def say(self, what: dict) -> None:
        with contextlib.suppress(OSError):
            self.line.send(json.dumps(what).encode())

    def bury(self) -> None:
        """Take note of what has ended."""
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None:
                return
            process = self.started.pop(found.si_pid, None)
            if process is None:
                name = name_of(found.si_pid)
                os.waitpid(found.si_pid, 0)
                lost = found.si_code != os.CLD_EXITED and found.si_pid not in self.doomed
                if lost and name == STEP:
                    self.say({"ended": found.si_pid, "status": -found.si_status})
            else:
                self.say({"ended": found.si_pid, "status": process.wait()})
            self.doomed.discard(found.si_pid)

    def end(self) -> None:
        """Kill all that is below, until there is nothing, and remove the directory."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            below = descendants(os.getpid())
            for pid in below:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            self.bury()
            if not below:
                break
            time.sleep(0.002)
        shutil.rmtree(self.directory, ignore_errors=True)


def name_of(pid: int) -> bytes:
    """What a process is called, of its first 15 bytes; empty if it is gone."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", "rb") as file:
        return file.read().strip()
    return b""


def descendants(pid: int) -> list[int]:
    """All processes below one, those that are only waited for left out."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with (
                contextlib.suppress(OSError),
                open(f"/proc/{name}/stat", encoding="latin-1") as file,
            ):
                state, parent = file.read().rpartition(")")[2].split()[:2]
                if state != "Z":
                    parents.setdefault(int(parent), []).append(int(name))
    found, front = [], [pid]
    while front:
        below = parents.get(front.pop(), [])
        found += below
        front += below
    return found


def main(directory: str, descriptor: str, farewell: str = "") -> None:
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    woken, waking = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(waking, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waking)
    supervisor = Supervisor(directory, socket.socket(fileno=int(descriptor)))
    try:
        supervisor.run(woken)
    finally:
        supervisor.end()
        if not supervisor.told_to_end and farewell:
            print(farewell, file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
