"""Start programs that end, with all their descendants, whenever and however this process ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

GUARD = Path(__file__).resolve().parent / "guard.py"
# How long a program has to end by itself, and once more after it is told to, s.
GRACE_S = 5.0


def start_guarded(
    words: Sequence[str],
    *,
    stdout: int | IO[bytes] | None = None,
    stderr: int | IO[bytes] | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a program in a process group of its own, without standard input.

    What is returned ends when the program does, with its exit code; its pid is the group's. If
    this process is gone, or lets go of it, the group is killed. Raises OSError if it cannot start.
    """
    told, telling = os.pipe()
    with open(told, "rb") as answer:
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(GUARD), str(telling), *words],
                stdin=subprocess.PIPE,
                stdout=stdout,
                stderr=stderr,
                env=env,
                pass_fds=[telling],
                start_new_session=True,
            )
        finally:
            os.close(telling)
        why = answer.read().decode()
    if why:
        process.communicate()
        raise OSError(0, why)
    return process


def end_guarded(
    process: subprocess.Popen[bytes], grace_s: float = GRACE_S, *, patient: bool = True
) -> None:
    """End a program with all of its group. patient: it has the time to end by itself first."""
    for how in (None, signal.SIGTERM, signal.SIGKILL)[not patient :]:
        if how is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace_s)
            break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.stdin is not None:
        process.stdin.close()
