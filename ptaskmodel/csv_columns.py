"""Format columns of numbers as CSV lines, all at once, with the bytes of Python's csv.writer."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.line_writer import CELLS, FLOATS, NONE, NUMBERS, write_lines

# Short texts, a row each, with zeros where there is no character.
Cells = NDArray[np.uint8]
# Whole floats below this are written as such, not with an exponent.
WHOLE = 2.0**53
# From here on floats are written without an exponent by msgspec, too; loading it pays for so many.
LEAST = 1e-4
MANY = 2**13
# Lines made at once: what fits a cache.
PIECE = 2**14
# Bytes of the longest number, and of the longest float that is whole.
LONGEST = 22
NOTHING: Cells = np.zeros(0, dtype=np.uint8)


class Floats(NamedTuple):
    """Floats as Python writes them.

    whole: those that are whole; NONE: the next of the ``others``, each of which ends with a comma.
    """

    whole: NDArray[np.int64]
    others: bytes


# A column: integers, floats (nan: nothing), or texts; or what stands on each line.
Column = NDArray[Any] | Floats | bytes


def write_columns(path: Path, names: Sequence[str], columns: Sequence[NDArray[Any]]) -> None:
    """Write a CSV file of columns of equal length: integers, floats (none: nan), or cells."""
    with path.open("wb") as file:
        file.write((",".join(names) + "\n").encode())
        for begin in range(0, len(columns[0]), PIECE):
            file.write(lines(*(column[begin : begin + PIECE] for column in columns)))


def lines(*columns: Column, mark: bytes = b",") -> bytes:
    """Columns of equal length, as `write_columns` takes them, side by side; a line for each row."""
    parts: list[Column] = []
    for column in columns:
        parts += [column, mark]
    return text(*parts[:-1], b"\n")


def text(*columns: Column) -> bytes:
    """The same without anything between the columns; the first is no text of each line."""
    kept = [
        floats(each) if not isinstance(each, Floats | bytes) and each.dtype.kind == "f" else each
        for each in columns
    ]
    count = len(kept[0].whole if isinstance(kept[0], Floats) else kept[0])
    parts = np.zeros((len(kept), 5), dtype=np.int64)
    numbers: list[NDArray[Any]] = []
    characters: list[Cells] = []
    begin = longest = 0
    for k, each in enumerate(kept):
        if isinstance(each, Floats):
            found, values = np.frombuffer(each.others, np.uint8), each.whole
            parts[k] = FLOATS, len(numbers), begin, 0, 0
        elif isinstance(each, bytes):
            found, values = np.frombuffer(each, np.uint8), None
            parts[k] = CELLS, 0, begin, len(each), 0
        elif each.ndim == 2:
            found, values = each.ravel(), None
            parts[k] = CELLS, 0, begin, each.shape[1], each.shape[1]
        else:
            found, values = NOTHING, each
            parts[k] = NUMBERS, len(numbers), begin, 0, 0
        if values is not None:
            numbers.append(values)
            longest += LONGEST
        characters.append(found)
        begin += len(found)
        longest += int(parts[k, 3])
    table = np.empty((len(numbers), count), dtype=np.int64)
    for row, values in zip(table, numbers, strict=True):
        row[:] = values
    made = np.empty(count * longest + begin, dtype=np.uint8)
    size = write_lines(parts, table, np.concatenate(characters), count, made)
    return made[:size].tobytes()


def joined(parts: Sequence[Sequence[str] | str], count: int) -> str:
    """So many lines: a text of each part after the other, the same of a part that is a text."""
    # All at once takes half as long as each line by itself.
    texts = [""] * (len(parts) * count)
    for k, part in enumerate(parts):
        texts[k :: len(parts)] = [part] * count if isinstance(part, str) else part
    return "".join(texts)


def floats(values: NDArray[np.float64], missing: str = "") -> Floats:
    """Floats as Python writes them; something else instead of nan."""
    with np.errstate(invalid="ignore"):
        whole = (np.abs(values) < WHOLE) & (np.trunc(values) == values)
    whole &= ~(np.signbit(values) & (values == 0))
    numbers = np.where(whole, values, 0.0).astype(np.int64)
    if whole.all():
        return Floats(numbers, b"")
    numbers[~whole] = NONE
    return Floats(numbers, _written(values[~whole], missing) + b",")


def _written(values: NDArray[np.float64], missing: str) -> bytes:
    """Floats as Python writes them, with commas between; something else instead of nan."""
    size = np.abs(values)
    plain = (size >= LEAST) & (size < WHOLE)
    count = np.count_nonzero(plain)
    if count < MANY and "msgspec" not in sys.modules:
        texts = [missing if value != value else repr(value) for value in values.tolist()]
        return ",".join(texts).encode()
    import msgspec

    found: bytes = msgspec.json.encode(values[plain].tolist())[1:-1]
    if count == len(values):
        return found
    mixed = np.empty(len(values), dtype=object)
    mixed[plain] = found.decode().split(",") if count else []
    others = values[~plain].tolist()
    mixed[~plain] = [missing if value != value else repr(value) for value in others]
    return ",".join(mixed.tolist()).encode()


def words(names: Sequence[str]) -> Cells:
    """Cells of short texts of ASCII, which stand in the file as they are."""
    width = max(1, *map(len, names), 1)
    return np.array(names, dtype=f"S{width}").view(np.uint8).reshape(len(names), width)


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
