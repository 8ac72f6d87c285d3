"""Format columns of numbers as CSV lines, all at once, with the bytes of Python's csv.writer.

Each column becomes a matrix of characters with one row a line and zeros where there is no
character. Side by side, with commas between them, the characters that are not zero are the text.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Cells = NDArray[np.uint8]
# Whole floats below this are written as such, not with an exponent.
WHOLE = 2.0**53
# From here on floats are written without an exponent by msgspec, too; loading it pays for so many.
LEAST = 1e-4
MANY = 2**13
# Lines made at once: what fits a cache.
PIECE = 2**14
# Four digits at once: those of k without zeros in front at k, with them at 10,000 + k.
_GROUP = 10_000
_DIGITS = np.array([b"%d" % k for k in range(_GROUP)] + [b"%04d" % k for k in range(_GROUP)], "S4")
_LAST_FOUR = _DIGITS.view(np.uint32)
_FOUR = _LAST_FOUR.copy()
_FOUR[0] = 0


def write_columns(path: Path, names: Sequence[str], columns: Sequence[NDArray[Any]]) -> None:
    """Write a CSV file of columns of equal length: integers, floats (none: nan), or cells."""
    with path.open("wb") as file:
        file.write((",".join(names) + "\n").encode())
        for begin in range(0, len(columns[0]), PIECE):
            file.write(lines(*(column[begin : begin + PIECE] for column in columns)))


def lines(*columns: NDArray[Any]) -> bytes:
    """Columns of equal length, as `write_columns` takes them, side by side; a line for each row."""
    parts: list[Cells] = []
    for column in columns:
        parts += [_cells(column), marks(b",", len(column))]
    parts[-1] = marks(b"\n", len(columns[0]))
    return text(np.hstack(parts))


def joined(parts: Sequence[Sequence[str] | str], count: int) -> str:
    """So many lines: a text of each part after the other, the same of a part that is a text."""
    # All at once takes half as long as each line by itself.
    texts = [""] * (len(parts) * count)
    for k, part in enumerate(parts):
        texts[k :: len(parts)] = [part] * count if isinstance(part, str) else part
    return "".join(texts)


def text(cells: Cells) -> bytes:
    """The characters of cells, row by row."""
    flat = cells.ravel()
    return flat[flat != 0].tobytes()


def floats(values: NDArray[np.float64], missing: str = "") -> Cells:
    """Cells of floats as Python writes them; something else instead of nan."""
    with np.errstate(invalid="ignore"):
        whole = (np.abs(values) < WHOLE) & (np.trunc(values) == values)
    whole &= ~(np.signbit(values) & (values == 0))
    numbers = np.where(whole, values, 0.0).astype(np.int64)
    written = np.hstack((whole_numbers(numbers), marks(b".0", len(values))))
    others = np.flatnonzero(~whole)
    if not len(others):
        return written
    named = words(_written(values[others], missing))
    cells = np.zeros((len(values), max(written.shape[1], named.shape[1])), dtype=np.uint8)
    cells[:, : written.shape[1]] = written
    cells[others] = 0
    cells[others, : named.shape[1]] = named
    return cells


def _written(values: NDArray[np.float64], missing: str) -> list[str]:
    """Floats as Python writes them; something else instead of nan."""
    size = np.abs(values)
    plain = (size >= LEAST) & (size < WHOLE)
    if np.count_nonzero(plain) < MANY:
        return [missing if value != value else repr(value) for value in values.tolist()]
    import msgspec

    found = np.empty(len(values), dtype=object)
    found[plain] = msgspec.json.encode(values[plain].tolist())[1:-1].decode().split(",")
    found[~plain] = _written(values[~plain], missing)
    return found.tolist()


def whole_numbers(values: NDArray[np.integer[Any]]) -> Cells:
    """Cells of integers."""
    values = values.astype(np.int64)
    left = np.abs(values)
    largest = int(left.max(initial=0))
    groups = max(1, -(-len(str(largest)) // 4))
    if largest < 2**32:
        left = left.astype(np.uint32)
    cells = np.empty((len(values), groups), dtype=np.uint32)
    for group in range(groups - 1, -1, -1):
        more = left // _GROUP
        which = (left - more * _GROUP).astype(np.intp)
        which += _GROUP * (more > 0)
        cells[:, group] = (_LAST_FOUR if group == groups - 1 else _FOUR)[which]
        left = more
    found = cells.view(np.uint8).reshape(len(values), 4 * groups)
    negative = values < 0
    if not negative.any():
        return found
    return np.hstack((np.where(negative, ord("-"), 0).astype(np.uint8)[:, None], found))


def words(names: Sequence[str]) -> Cells:
    """Cells of short texts of ASCII, which stand in the file as they are."""
    width = max(1, *map(len, names), 1)
    return np.array(names, dtype=f"S{width}").view(np.uint8).reshape(len(names), width)


def marks(mark: bytes, count: int) -> Cells:
    """The same characters on each of so many lines."""
    return np.broadcast_to(np.frombuffer(mark, dtype=np.uint8), (count, len(mark)))


def quoted(texts: Iterable[str]) -> list[str]:
    """Texts as fields of a line of several fields."""
    found = list(texts)
    if not any(mark in "\0".join(found) for mark in ',"\r\n'):
        return found
    return [_quoted(each) for each in found]


def _quoted(field: str) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow((field, ""))
    return line.getvalue()[: -len(",\n")]


def _cells(column: NDArray[Any]) -> Cells:
    if column.ndim == 2:
        return column
    return floats(column) if column.dtype.kind == "f" else whole_numbers(column)
