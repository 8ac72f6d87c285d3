"""A process of this machine that makes runs one after the other, kept warm: this side of it."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import ptaskmodel
from ptaskmodel.campaign.records import FAILED
from ptaskmodel.campaign.worker import LAST_WORDS, Call, Order
from ptaskmodel.errors import PTaskModelError

ROOT = str(Path(ptaskmodel.__file__).parents[1])
# How long a process may take to end once nothing more comes, s.
GRACE_S = 5.0


class MakerDiedError(PTaskModelError):
    """The process that made a run is gone: how, and what it said last."""

    def __init__(self, how: str, log: str) -> None:
        super().__init__(how)
        self.how, self.log = how, log


class Maker:
    """Started at once; `send` it a run, `answer` waits for the record.

    log: the file that its words go to. connection: to wait for: it said something, or is dead.
    ready_at: since when it makes runs (`time.monotonic`), so that its start is no run's time.
    """

    def __init__(self, order: Order, log: Path) -> None:
        self.log = log
        self.ready_at: float | None = None
        self.connection, theirs = multiprocessing.Pipe()
        path = os.pathsep.join(filter(None, (ROOT, os.environ.get("PYTHONPATH"))))
        with log.open("wb") as words:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ptaskmodel.campaign.worker", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                env=os.environ | {"PYTHONPATH": path},
            )
        theirs.close()
        self._send(order)

    def send(self, call: Call) -> None:
        """Have a run made."""
        self._send(call)

    def _send(self, what: Order | Call) -> None:
        with contextlib.suppress(OSError):  # it is dead, which `answer` says too
            self.connection.send(what)

    def answer(self, timeout_s: float | None = None) -> dict[str, Any] | None:
        """The record of the run that was sent; None if it takes longer than it may.

        timeout_s: from when it is ready; 0: only what is there already. Raises MakerDiedError.
        """
        try:
            if self.ready_at is None and self.connection.poll(0.0 if timeout_s == 0.0 else None):
                self.connection.recv()
                self.ready_at = time.monotonic()
            if self.ready_at is None or not self.connection.poll(timeout_s):
                return None
            record: dict[str, Any] = self.connection.recv()
        except (EOFError, OSError):
            how = self.end(GRACE_S)
            raise MakerDiedError(how, self.last_words()) from None
        return record

    def last_words(self) -> str:
        """The end of what it printed."""
        if not self.log.exists():  # it said nothing, and has ended
            return ""
        return self.log.read_text(encoding="utf-8", errors="replace")[-LAST_WORDS:]

    def end(self, grace_s: float = 0.0) -> str:
        """End it, killed unless it ends by itself in time; how it ended."""
        self.connection.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_s)
        self._process.kill()
        code = self._process.wait()
        with contextlib.suppress(OSError):
            if self.log.stat().st_size == 0:
                self.log.unlink()
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def order_of(kind: str, folder: Path, directory: Path | None, memory_MB: float | None) -> Order:
    """What to tell a process that finds modules where this one does."""
    kept = None if directory is None else str(directory.absolute())
    return Order(kind, str(folder), kept, memory_MB, tuple(sys.path))


def failed(kind: str, call: Call, error: str, took_s: float, log: str) -> dict[str, Any]:
    """The record of a run whose process did not live to write one."""
    return {
        "id": call.id, "run": kind, "parameters": dict(call.parameters),
        "repetition": call.repetition, "status": FAILED, "error": error, "log": log,
        "wall_s": took_s,
    }  # fmt: skip


def too_long(limit_s: float) -> str:
    """What is said of a run that took longer than it may."""
    return f"took longer than timeout_s = {limit_s:g}"


def died(how: str) -> str:
    """What is said of a run that took two processes with it."""
    return f"its process died twice ({how})"
