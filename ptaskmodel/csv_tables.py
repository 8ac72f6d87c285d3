"""CSV tables: split their text, as people keep it, into rows; format columns of numbers as lines.

`Account.table` reads rows. Lines are made all at once, with the bytes of Python's csv.writer.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.line_writer import CELLS, FLOATS, NONE, NUMBERS, TEXTS, write_lines


def separator(text: str) -> str:
    """Return the comma, semicolon or tab that separates the columns of a CSV table, its `text`."""
    first = next((line for line in io.StringIO(text) if is_header(line)), "")
    return next((mark for mark in ",;\t" if mark in first), ",")


def is_header(line: str) -> bool:
    """Whether a `line` of a CSV table is neither blank nor a comment."""
    return bool(line.strip()) and not line.startswith("#")


def csv_rows(text: str) -> Iterator[tuple[int, list[str] | str]]:
    """The rows of a CSV table, its `text`, from the header on, with their lines, or what is wrong.

    After a quote that is wrong, or that nothing closes, the next line is a row again.
    """
    lines = list(io.StringIO(text, newline=""))
    mark = separator(text)
    first = next((k for k, line in enumerate(lines) if is_header(line)), len(lines))
    while first < len(lines):
        following = map(lines.__getitem__, range(first, len(lines)))
        rows = csv.reader(following, strict=True, delimiter=mark)
        read = 0
        try:
            for row in rows:
                read = rows.line_num
                yield first + read, row
            return
        except csv.Error as fault:
            first += read + 1
            yield first, str(fault)


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


class Texts(NamedTuple):
    """Texts of any length, as they stand in a file: where each begins, and its length."""

    begins: NDArray[np.int64]
    lengths: NDArray[np.int64]
    characters: Cells

    @classmethod
    def of(cls, texts: Sequence[str]) -> Texts:
        """These texts."""
        content = "\0".join((*texts, "")).encode()
        characters = np.frombuffer(content, np.uint8)
        ends = np.flatnonzero(characters == 0)
        if len(ends) != len(texts):  # some have such characters themselves
            lengths = np.array([len(each.encode()) for each in texts])
            ends = np.cumsum(lengths + 1) - 1
        return cls.ended(ends, characters)

    @classmethod
    def ended(cls, ends: NDArray[np.int64], characters: Cells) -> Texts:
        """The texts one after the other, by where the character behind each is."""
        begins = np.zeros_like(ends)
        begins[1:] = ends[:-1] + 1
        return cls(begins, ends - begins, characters)

    def at(self, rows: slice | NDArray[np.int64]) -> Texts:
        """Some of them; -1: nothing."""
        if isinstance(rows, slice):
            return Texts(self.begins[rows], self.lengths[rows], self.characters)
        none = rows < 0
        if not len(self.begins) or none.all():
            nothing = np.zeros(len(rows), dtype=np.int64)
            return Texts(nothing, nothing, NOTHING)
        return Texts(self.begins[rows], np.where(none, 0, self.lengths[rows]), self.characters)

    def alone(self) -> Texts:
        """The same without the characters before and behind them."""
        if not len(self.begins):
            return self
        first, end = int(self.begins.min()), int((self.begins + self.lengths).max())
        return Texts(self.begins - first, self.lengths, self.characters[first:end])


# A column: integers, floats (nan: nothing), or texts; or what stands on each line.
Column = NDArray[Any] | Floats | Texts | bytes


def write_columns(
    path: Path, names: Sequence[str], columns: Sequence[NDArray[Any] | Texts]
) -> None:
    """Write a CSV file at `path`: a header of `names`, and `columns`, each of shape (rows,).

    A column holds integers, floats (nan: an empty field), cells, or texts.
    """
    with path.open("wb") as file:
        file.write((",".join(names) + "\n").encode())
        for begin in range(0, len(columns[0]), PIECE):
            part = slice(begin, begin + PIECE)
            pieces = (each.at(part) if isinstance(each, Texts) else each[part] for each in columns)
            file.write(lines(*pieces))


def lines(*columns: Column, mark: bytes = b",") -> bytes:
    """Return the rows of `columns` of equal length (as `write_columns` takes them), one a line.

    mark: the separator. The first column must not be a single text.
    """
    return text(*columns, marks=mark * (len(columns) - 1) + b"\n")


def text(*columns: Column, marks: bytes = b"") -> bytes:
    """The same with the characters ``marks`` behind the columns, none by default."""
    kept = [
        floats(each) if isinstance(each, np.ndarray) and each.dtype.kind == "f" else each
        for each in columns
    ]
    count = len(kept[0][0] if isinstance(kept[0], Floats | Texts) else kept[0])
    parts = np.zeros((len(kept), 6), dtype=np.int64)
    numbers: list[NDArray[Any]] = []
    characters: list[Cells] = []
    if marks:
        parts[:, 5] = np.frombuffer(marks, np.uint8)
    begin, size = 0, count * len(marks)
    for k, each in enumerate(kept):
        row = len(numbers)
        values: tuple[NDArray[Any], ...] = ()
        if isinstance(each, Floats):
            found, values = np.frombuffer(each.others, np.uint8), (each.whole,)
            parts[k, :5] = FLOATS, row, begin, 0, 0
            size += len(found)
        elif isinstance(each, Texts):
            begins, lengths, found = each.alone()
            values = begins, lengths
            parts[k, :5] = TEXTS, row, begin, 0, 0
            size += int(lengths.sum())
        elif isinstance(each, bytes):
            found = np.frombuffer(each, np.uint8)
            parts[k, :5] = CELLS, 0, begin, len(each), 0
        elif each.ndim == 2:
            found = each.ravel()
            parts[k, :5] = CELLS, 0, begin, each.shape[1], each.shape[1]
        else:
            found, values = NOTHING, (each,)
            parts[k, :5] = NUMBERS, row, begin, 0, 0
        numbers += values
        characters.append(found)
        begin += len(found)
        size += count * (int(parts[k, 3]) if parts[k, 0] == CELLS else LONGEST)
    table = np.empty((len(numbers), count), dtype=np.int64)
    for k, each_number in enumerate(numbers):
        table[k] = each_number
    made = np.empty(size, dtype=np.uint8)
    size = write_lines(parts, table, np.concatenate(characters), count, made)
    return made[:size].tobytes()


def floats(values: NDArray[np.float64], missing: str = "") -> Floats:
    """Return cells of `values` written as Python writes floats; `missing` stands for nan."""
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
    """Return cells of short ASCII `names`, which are written without quoting."""
    width = max(1, *map(len, names), 1)
    return np.array(names, dtype=f"S{width}").view(np.uint8).reshape(len(names), width)


def quoted(texts: Iterable[str]) -> list[str]:
    """Return `texts` as fields of a CSV line, quoted where needed."""
    found = list(texts)
    if not any(mark in "\0".join(found) for mark in ',"\r\n'):
        return found
    return [_quoted(each) for each in found]


def _quoted(field: str) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow((field, ""))
    return line.getvalue()[: -len(",\n")]
