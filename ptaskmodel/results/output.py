"""Files and directories of results that are either whole or not there."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from ptaskmodel.errors import PTaskModelError

FORMAT = "ptaskmodel results 1"
SUMMARY = "summary.json"


@contextlib.contextmanager
def whole_file(path: str | Path) -> Iterator[IO[str]]:
    """A text file that appears under its name, replacing another, once all is written.

    Raises PTaskModelError if it cannot be written.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with temporary.open("w", encoding="utf-8", newline="\n") as stream:
            yield stream
        temporary.replace(path)
    except OSError as error:
        raise PTaskModelError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: str | Path, value: Any) -> None:
    """Write a value as JSON, whole; floats to the last digit. Raises PTaskModelError."""
    with whole_file(path) as stream:
        json.dump(value, stream, indent=2, allow_nan=False)
        stream.write("\n")


def check_output_directory(path: str | Path) -> None:
    """Results may be written in this directory: it is absent, empty, or holds only earlier ones.

    Raises PTaskModelError with the reason.
    """
    path = Path(path)
    if not path.exists():
        parent = next((p for p in path.absolute().parents if p.exists()), Path("/"))
        if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
            raise PTaskModelError(f"{path}: {parent} is not a directory that can be written in")
        return
    if not path.is_dir():
        raise PTaskModelError(f"{path}: is a file; give a directory")
    if path.resolve() == Path.cwd():
        raise PTaskModelError(f"{path}: is the current directory; give another, it is replaced")
    if not os.access(path.resolve().parent, os.W_OK | os.X_OK):
        raise PTaskModelError(f"{path}: {path.resolve().parent} cannot be written in")
    present = {entry.name for entry in path.iterdir()}
    foreign = sorted(present - _earlier_files(path))
    if foreign:
        raise PTaskModelError(
            f"{path}: holds {foreign[0]!a}, which is not of ptaskmodel's results; "
            "give a new or empty directory"
        )


def _earlier_files(path: Path) -> set[str]:
    """The files that the summary in a directory says to be results; none if there is no summary."""
    try:
        summary = json.loads((path / SUMMARY).read_text(encoding="utf-8"))
        if summary["format"] == FORMAT:
            return {str(name) for name in summary["files"]}
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        pass
    return set()


@contextlib.contextmanager
def whole_directory(path: str | Path) -> Iterator[Path]:
    """A directory to write results in, that appears as ``path`` once all is written.

    An earlier directory of results is replaced: moved aside, then deleted. On an error nothing
    appears and the earlier one stays.

    Raises PTaskModelError if ``path`` holds anything else or cannot be written.
    """
    path = Path(path)
    check_output_directory(path)
    target = path.resolve()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise PTaskModelError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        new = temporary / "new"
        new.mkdir()
        yield new
        _put_in_place(new, target, temporary / "old")
    except OSError as error:
        raise PTaskModelError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _put_in_place(new: Path, target: Path, old: Path) -> None:
    """Rename ``new`` to ``target``; what was there becomes ``old``, or stays if that fails."""
    if target.exists():
        target.rename(old)
    try:
        new.rename(target)
    except BaseException:
        if old.exists():
            old.rename(target)
        raise
