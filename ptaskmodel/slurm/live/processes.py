"""Start, watch and end the processes of a run, through the supervisor."""

from __future__ import annotations

import contextlib
import json
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ptaskmodel.slurm.live.programs import LiveFault

SUPERVISOR = Path(__file__).resolve().parent / "supervisor.py"
MOST = 1 << 18
# What Slurm has started itself, for a job, and has left to the supervisor.
STEP = "a job's slurmstepd"
ANSWER_S = 120.0
END_S = 120.0


class Ended(NamedTuple):
    """A process that has ended. status: its exit code, or minus the signal."""

    name: str
    pid: int
    status: int


class Processes:
    """Starts processes in a directory that is removed with them, whatever happens.

    farewell: what is said on stderr if this process is killed.
    """

    def __init__(self, directory: Path, farewell: str) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line = ours
        self._names: dict[int, str] = {}
        self._ended: list[Ended] = []
        with theirs:
            self._supervisor = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", str(SUPERVISOR)),
                    *(str(directory), str(theirs.fileno()), farewell),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    @property
    def supervisor(self) -> int:
        """The pid of the process above all."""
        return self._supervisor.pid

    def fileno(self) -> int:
        """Can be read when a process has ended."""
        return self._line.fileno()

    def start(
        self, name: str, words: Sequence[str], environment: Mapping[str, str], output: Path
    ) -> int:
        """Start a process; its pid. Raises LiveFault if it cannot be."""
        said = {"start": list(words), "env": dict(environment), "output": str(output)}
        self._say(said)
        while True:
            heard = self._hear()
            if "ended" in heard:
                self._note(heard)
            elif "fault" in heard:
                raise LiveFault(f"{name} cannot be started: {heard['fault']}")
            else:
                self._names[heard["pid"]] = name
                return int(heard["pid"])

    def kill(self, mark: str) -> None:
        """Kill all whose environment has this ``NAME=value``, with what is below them."""
        self._say({"kill": mark})

    def ended(self) -> list[Ended]:
        """Those that have ended since this was last asked."""
        while select.select([self._line], [], [], 0)[0]:
            self._note(self._hear())
        found, self._ended = self._ended, []
        return found

    def end(self) -> None:
        """End all, and the supervisor."""
        with contextlib.suppress(OSError):
            self._line.send(json.dumps({"end": True}).encode())
        self._line.close()
        try:
            self._supervisor.wait(END_S)
        except subprocess.TimeoutExpired:
            self._supervisor.kill()
            self._supervisor.wait()

    def _note(self, heard: Mapping[str, Any]) -> None:
        pid = heard["ended"]
        self._ended.append(Ended(self._names.pop(pid, STEP), pid, heard["status"]))

    def _say(self, what: Mapping[str, Any]) -> None:
        try:
            self._line.send(json.dumps(what).encode())
        except OSError:
            raise self._gone() from None

    def _hear(self) -> dict[str, Any]:
        packet = b""
        with contextlib.suppress(OSError):
            if select.select([self._line], [], [], ANSWER_S)[0]:
                packet = self._line.recv(MOST)
        if not packet:
            raise self._gone()
        return json.loads(packet)

    def _gone(self) -> LiveFault:
        status = self._supervisor.poll()
        return LiveFault(f"the supervisor of Slurm's processes {how(status)}")


def how(status: int | None) -> str:
    """How a process ended, as words."""
    if status is None:
        return "does not answer"
    if status < 0:
        return f"was killed ({signal.Signals(-status).name})"
    return f"ended with {status}"
