"""The process above all of a run: what it says of ends, and of its own. It needs no Slurm."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from ptaskmodel.slurm.live.processes import SUPERVISOR

MOST = 1 << 18
FAREWELL = "ptaskmodel: killed"
# Only bounds a hang.
LONG_S = 120


def begun(place: Path) -> tuple[socket.socket, subprocess.Popen]:
    """A supervisor, and the line to it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(LONG_S)
    directory = place / "run"
    directory.mkdir()
    words = [
        sys.executable,
        "-I",
        "-S",
        str(SUPERVISOR),
        str(directory),
        str(theirs.fileno()),
        FAREWELL,
    ]
    supervisor = subprocess.Popen(
        words, pass_fds=[theirs.fileno()], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    theirs.close()
    return ours, supervisor


def start(line: socket.socket, place: Path, *words: str, **environment: str) -> None:
    """Let it start a program."""
    said = {"start": words, "env": environment, "output": str(place / "output")}
    line.send(json.dumps(said).encode())


def heard(line: socket.socket) -> dict:
    return json.loads(line.recv(MOST))


def test_a_front_end_that_goes_with_words_unread_is_told_of_in_one_line(tmp_path):
    line, supervisor = begun(tmp_path)
    with supervisor:
        start(line, tmp_path, "/bin/true")
        assert "pid" in heard(line)
        assert b"ended" in line.recv(MOST, socket.MSG_PEEK)
        line.close()
        _, text = supervisor.communicate(timeout=LONG_S)
    assert text == f"{FAREWELL}\n"
    assert not (tmp_path / "run").exists()


def test_steps_that_others_kill_are_told_of_and_those_killed_on_purpose_are_not(tmp_path):
    step = tmp_path / "slurmstepd"
    step.symlink_to("/bin/sleep")
    detached = (
        f"{step} 1000 & echo $! > {tmp_path}/$NAME.new; mv {tmp_path}/$NAME.new {tmp_path}/$NAME"
    )
    line, supervisor = begun(tmp_path)
    with supervisor:
        for name in ("first", "second"):
            start(line, tmp_path, "/bin/sh", "-c", f"{detached}; exit 0", NAME=name, MARK=name)
            assert "pid" in heard(line)
            assert heard(line)["status"] == 0
        first, second = (int((tmp_path / name).read_text()) for name in ("first", "second"))
        line.send(json.dumps({"kill": "MARK=first"}).encode())
        until = time.monotonic() + LONG_S
        while Path(f"/proc/{first}").exists() and time.monotonic() < until:
            time.sleep(0.001)
        os.kill(second, signal.SIGKILL)
        assert heard(line) == {"ended": second, "status": -signal.SIGKILL}
        line.send(json.dumps({"end": True}).encode())
        _, text = supervisor.communicate(timeout=LONG_S)
    line.close()
    assert text == ""
