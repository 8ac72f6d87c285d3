"""Tables of results as they are read: columns that must be there, numbers that are finite."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ptaskmodel.errors import PTaskModelError


@contextmanager
def readable(path: Path, remedy: str = "") -> Iterator[None]:
    """What is wrong with a table is said as a PTaskModelError, with what to do about it."""
    try:
        yield
    except (OSError, ValueError, csv.Error) as error:
        what = f"{path}: cannot be read ({error})"
        raise PTaskModelError(f"{what}; {remedy}" if remedy else what) from None


def rows(path: Path, *columns: str, optional: bool = False) -> Iterator[dict[str, str]]:
    """The lines of a table, which must have these columns. Raises ValueError with the line."""
    if optional and not path.exists():
        return
    with path.open(encoding="utf-8", newline="") as stream:
        reader = csv.DictReader(stream, strict=True)
        missing = sorted(set(columns) - set(reader.fieldnames or ()))
        if missing:
            raise ValueError(f"{path.name}:1: no column {missing[0]!r}")
        for row in reader:
            if None in row or None in row.values():
                raise ValueError(
                    f"{path.name}:{reader.line_num}: not {len(reader.fieldnames or ())} fields"
                )
            yield row


def finite(text: str) -> float:
    """A finite number. Raises ValueError for anything else."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is not a finite number")
    return value


def number(text: str | None) -> float | None:
    """A finite number, or None where nothing stands."""
    return finite(text) if text else None
