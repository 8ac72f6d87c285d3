"""What the writers of traces have in common: they listen to uses, and write text."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from ptaskmodel.files import whole_file

if TYPE_CHECKING:
    from ptaskmodel.recording.intervals import Phases, Recorder, Uses


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
