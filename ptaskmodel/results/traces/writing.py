"""Common parts of trace writers: they receive intervals of use, and write text.

A warning says when a trace becomes large: under contention, traces grow with the square of the
number of tasks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.files import whole_file
from ptaskmodel.remarks import warn

if TYPE_CHECKING:
    from ptaskmodel.recording.intervals import Phases, Recorder, Uses

# About what an interval of use takes in each format, bytes.
BYTES_PER_USE: Mapping[str, float] = {"csv": 75.0, "parquet": 10.0, "paje": 85.0, "perfetto": 470.0}
WARNED_GB = 1.0


class Trace:
    """What the writers of traces have in common: they listen to uses and ignore the rest."""

    recorder: Recorder

    def begin(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def changes(self, events: np.ndarray) -> None:
        pass

    def phases(self, phases: Phases) -> None:
        pass

    def uses(self, uses: Uses) -> None:
        pass

    def end(self) -> None:
        pass

    def abandon(self, error: BaseException) -> None:
        """Called instead of `end` where the run failed."""


class TextTrace(Trace):
    """A trace in a text file, which appears once it is whole."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._file: AbstractContextManager[IO[str]] = whole_file(self.path)
        self.stream: IO[str]

    def begin(self, recorder: Recorder) -> None:
        super().begin(recorder)
        self.stream = self._file.__enter__()

    def end(self) -> None:
        self._file.__exit__(None, None, None)

    def abandon(self, error: BaseException) -> None:
        with contextlib.suppress(BaseException):  # it comes back
            self._file.__exit__(type(error), error, error.__traceback__)


def numbers(column: np.ndarray) -> list[str]:
    """Finite floats as text, shortest that reads back equal; runs of equal ones are made once."""
    import msgspec

    if not len(column):
        return []
    new = np.append(True, column[1:] != column[:-1])
    text = msgspec.json.encode(column[new].tolist()).decode()[1:-1].split(",")
    return [text[k] for k in (np.cumsum(new) - 1).tolist()] if not new.all() else text


def quoted(name: str) -> str:
    """A name as a field of a CSV file."""
    if any(c in name for c in ',"\n\r'):
        return '"' + name.replace('"', '""') + '"'
    return name


class TraceGrowth(Trace):
    """Warns once when the traces of these formats reach a gigabyte, and stops them at a limit.

    limit_GB: their largest size together (about); None: none.
    """

    def __init__(self, formats: Sequence[str], limit_GB: float | None = None) -> None:
        self._bytes_per_use = sum(BYTES_PER_USE[name] for name in formats)
        self._limit_GB = limit_GB
        self._uses = 0
        self._told = False

    def uses(self, uses: Uses) -> None:
        self._uses += len(uses.task)
        size_GB = 1e-9 * self._bytes_per_use * self._uses
        now_s = float(uses.end.max())
        if self._limit_GB is not None and size_GB > self._limit_GB:
            raise PTaskModelError(
                f"--trace-limit: the traces reach {self._limit_GB:g} GB at {now_s:g} s; raise it, "
                "or leave --trace out: --attribution sums up"
            )
        if size_GB > WARNED_GB and not self._told:
            self._told = True
            warn(self._warning(size_GB, now_s))

    def _warning(self, size_GB: float, now_s: float) -> str:
        ended = [ref.end_s is not None for ref in self.recorder.simulation.tasks()]
        text = f"the traces have {size_GB:.2g} GB at {now_s:g} s"
        if any(ended):
            text += f", with {sum(ended):,} of {len(ended):,} tasks over: expect about "
            text += f"{size_GB * len(ended) / sum(ended):.2g} GB"
        return (
            f"{text}; parquet is the smallest format, --attribution sums up without a trace, "
            "--trace-limit GB stops them"
        )
