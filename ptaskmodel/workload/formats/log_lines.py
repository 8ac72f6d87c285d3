"""Read the lines of a log: the same number of fields per job, with blanks, commas or the like.

`swf` and `gwf` call it. A compiled scanner parses the lines of a large log that are well formed;
`parsed` calls it. In other logs, each line is examined; a line that cannot be read is left out and
reported.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.errors import WorkloadError, shown
from ptaskmodel.files import text_of
from ptaskmodel.memory import collector_at_rest
from ptaskmodel.remarks import Account
from ptaskmodel.style.text import several as several_of

# Bytes; below, the scanner would take longer to load than it saves.
LARGE = 200_000
# Lines of which the scanner takes all or none.
BLOCK = 500
LARGEST = 2.0**53
UNKNOWN = -1.0
# What logs write where a number is unknown.
UNKNOWN_WORDS = frozenset(
    (*("", "?", "-", "NA", "na", "N/A", "n/a", "NULL", "null"), *("None", "none", "Unknown"))
)
# Numbers of names while a log is read: beyond those that it has itself.
OF_NAMES = 2.0**52
# Between the numbers of several preceding jobs.
AND = "&"
_SEPARATED = {
    ",": "commas separate the fields of the log",
    ";": "semicolons separate the fields of the log",
    "|": "bars separate the fields of the log",
}


class Layout(NamedTuple):
    """How a format of logs writes a job.

    name: of the format. fields: names of its columns. comment: how lines begin that hold no job, as
    those that begin with #. named: columns that may hold names, which become numbers. listed: the
    column that may have several numbers. least: fields that a job has at least; None: all.
    """

    name: str
    fields: tuple[str, ...]
    comment: str
    named: frozenset[str] = frozenset()
    listed: str | None = None
    least: int | None = None


class LogLines(NamedTuple):
    """What a log holds.

    comments: without their mark. rows: float64, shape (jobs, fields). names: of columns that hold
    names, what those numbers stand for that do. several: where the listed column has more than one
    number, these, by row.
    """

    comments: tuple[str, ...]
    rows: NDArray[np.float64]
    names: Mapping[str, Mapping[float, str]]
    several: Mapping[int, tuple[float, ...]]


def parsed(
    body: bytes, fields: int, largest: float, large: int = LARGE
) -> NDArray[np.float64] | None:
    """The values of lines of ``fields`` numbers each, shape (lines, fields); blank lines count not.

    None if ``body`` has less than ``large`` bytes, or if anything about them is unusual: another
    number of fields, anything but plain finite numbers up to ``largest``.
    """
    if len(body) < large:
        return None
    from ptaskmodel.workload.formats.json import POWERS
    from ptaskmodel.workload.formats.number_scanner import read_rows

    rows = np.empty((body.count(b"\n") + 1, fields))
    count = int(read_rows(np.frombuffer(body, np.uint8), rows, POWERS, largest))
    return None if count < 0 else rows[:count]


def read_lines(content: bytes, layout: Layout, account: Account) -> LogLines:
    """The jobs of a log in a ``layout``.

    A line of names before the first job is passed over; an empty field, or NA, is unknown (-1). The
    ``account`` is told so, and which lines were left out. Raises WorkloadError if ``content`` is
    empty, or if most of its lines cannot be read.
    """
    head, body = _split(content, layout.comment.encode())
    rows = parsed(body, len(layout.fields), LARGEST) if body else None
    if rows is not None:
        if b"," in content[len(head) :]:
            account.taken(_SEPARATED[","])
        text = text_of(head, account.file, error=WorkloadError, told=account.taken)
        reading = _Reading(layout, account)
        for number, line in enumerate(text.splitlines(), start=1):
            reading.line(number, line)
        return LogLines(tuple(reading.comments), rows, {}, {})
    text = text_of(content, account.file, error=WorkloadError, told=account.taken)
    if not text.strip():
        raise WorkloadError(f"{account.file}: is empty; give a log")
    reading = _Reading(layout, account)
    lines = text.splitlines()
    at_once = BLOCK if len(content) >= LARGE else len(lines)
    with collector_at_rest():
        for first in range(0, len(lines), at_once):
            reading.block(first + 1, lines[first : first + at_once], len(content) >= LARGE)
    return reading.whole()


def _split(content: bytes, comment: bytes) -> tuple[bytes, bytes]:
    """The lines before the first job, and the rest if it may be plain: blanks between its fields.

    The rest is empty where lines of comments are among it.
    """
    place, names = 0, False
    while place < len(content):
        first = content[place : place + 1]
        if first.isalpha() and not names:
            names = True
        elif first not in (comment, b"\n", b"\r"):
            break
        place = content.find(b"\n", place) + 1 or len(content)
    body = content[place:]
    if b"," in body:
        body = body.replace(b",", b" ")
    return content[:place], b"" if comment in body else body


class _Reading:
    """The jobs that were read, line by line."""

    def __init__(self, layout: Layout, account: Account) -> None:
        self.comments: list[str] = []
        self._layout, self._num_fields = layout, len(layout.fields)
        self._account = account
        self._rows: list[list[float]] = []  # since the last of the blocks
        self._blocks: list[NDArray[np.float64]] = []
        self._count = 0  # of the jobs of these blocks
        self._several: dict[int, tuple[float, ...]] = {}
        self._named: list[tuple[int, dict[str, float]]] = [
            (column, {}) for column, name in enumerate(layout.fields) if name in layout.named
        ]
        self._least = layout.least or self._num_fields
        self._holding: dict[int, dict[str, float]] = {}  # those of columns that have names
        self._listed = -1 if layout.listed is None else layout.fields.index(layout.listed)
        self._separator: str | None = None
        self._begun = False
        self._seen = self._longer = self._shorter = self._empty = 0

    def block(self, number: int, lines: Sequence[str], scan: bool) -> None:
        """Read lines, the first of a `number`; scan: by the scanner, if they are all plain."""
        scanned = scan and self._begun and self._separator is None
        if scanned and (self._scan(lines, {}) or self._scan_cut(lines)):
            return
        for k, line in enumerate(lines, start=number):
            self.line(k, line)

    def _scan(self, lines: Sequence[str], several: Mapping[int, tuple[float, ...]]) -> bool:
        """Read plain lines by the scanner; whether they are. several: numbers, by line."""
        body = "\n".join(lines).encode()
        rows = parsed(body, self._num_fields, LARGEST, 0)
        if rows is None:
            return False
        self._close_block()
        self._several |= {self._count + k: numbers for k, numbers in several.items()}
        self._add(rows)
        self._seen += len(rows)
        return True

    def _scan_cut(self, lines: Sequence[str]) -> bool:
        """Read lines that are plain but for more fields, or several preceding jobs."""
        kept: list[str] = []
        several: dict[int, tuple[float, ...]] = {}
        longer, count, listed = 0, self._num_fields, self._listed
        for line in lines:
            cells = line.split()
            if len(cells) > count:
                longer += 1
                del cells[count:]
            if AND in line and 0 <= listed < len(cells):
                ids = cells[listed].split(AND)
                if not all(map(str.isdigit, ids)):
                    return False
                cells[listed] = ids[0]
                if len(numbers := tuple(dict.fromkeys(map(float, ids)))) > 1:
                    several[len(kept)] = numbers
            if cells:
                kept.append(" ".join(cells))
        if max((max(ids) for ids in several.values()), default=0.0) > LARGEST:
            return False
        is_read = self._scan(kept, several)
        self._longer += longer * is_read
        return is_read

    def _close_block(self) -> None:
        rows = np.array(self._rows, dtype=np.float64).reshape(-1, len(self._layout.fields))
        self._rows = []
        self._add(rows)

    def _add(self, rows: NDArray[np.float64]) -> None:
        self._blocks.append(rows)
        self._count += len(rows)

    def line(self, number: int, line: str) -> None:
        """Read a line: a comment, a job, or names of columns before the first job."""
        line = line.strip()
        if line[:1] in (self._layout.comment, "#"):
            self.comments.append(line.lstrip(f"{self._layout.comment}# \t"))
        elif line:
            if not self._begun:
                self._begun = True
                self._separator = _separator(line)
                if _is_names(self._cells(line)):
                    what = "column names are ignored: columns are read in the order of "
                    self._account.taken(f"{what}{self._layout.name}", number)
                    return
            self._seen += 1
            problem = self._job(line)
            if problem is not None:
                self._account.bad_row(problem, number)

    def _cells(self, line: str) -> list[str]:
        if self._separator is None:
            return line.split()
        if '"' in line:
            import csv

            cells = next(csv.reader([line], delimiter=self._separator, skipinitialspace=True))
        else:
            cells = line.split(self._separator)
        cells = [cell.strip() for cell in cells]
        if not cells[-1] and len(cells) == len(self._layout.fields) + 1:
            cells.pop()
        return cells

    def _job(self, line: str) -> str | None:
        """Read a job; what is wrong with it, or None."""
        fields, count = self._layout.fields, self._num_fields
        cells: list[Any] = line.split() if self._separator is None else self._cells(line)
        if len(cells) < self._least:
            return (
                f"{several_of(len(cells), 'field')} instead of {self._least}, so this is no "
                f"{self._layout.name} job; write -1 for unknown values"
            )
        several: tuple[float, ...] = ()
        is_longer, is_shorter = len(cells) > count, len(cells) < count
        if is_longer:
            del cells[count:]
        elif is_shorter:
            cells += ["-1"] * (count - len(cells))
        for column, known in self._holding.items():
            cells[column] = known.get(cells[column], cells[column])
        try:
            if self._listed >= 0 and AND in cells[self._listed]:
                several = tuple(dict.fromkeys(map(float, cells[self._listed].split(AND))))
                cells[self._listed] = several[0]
            row = list(map(float, cells))
        except ValueError:
            self._empty += self._name(cells)
            try:
                row = list(map(float, cells))
            except ValueError:
                return _no_number(cells, fields)
        # The sum of numbers in these bounds is one, and not that of those beside nan.
        numbers = [*row, *several] if several else row
        if not (sum(numbers) < math.inf and min(numbers) >= -LARGEST and max(numbers) <= LARGEST):
            return f"a value is not finite or beyond {LARGEST:g}; correct it"
        self._longer += is_longer
        self._shorter += is_shorter
        if len(several) > 1:
            self._several[self._count + len(self._rows)] = several
        self._rows.append(row)
        return None

    def _name(self, cells: list[Any]) -> bool:
        """Replace what is unknown, and names where they may be; whether anything is unknown."""
        is_unknown = False
        for column, cell in enumerate(cells):
            if cell in UNKNOWN_WORDS:
                cells[column] = UNKNOWN
                is_unknown = True
        for column, known in self._named:
            cell = cells[column]
            if isinstance(cell, str) and not (cell.isdecimal() or _is_number(cell)):
                cells[column] = known.setdefault(cell, OF_NAMES + len(known))
                self._holding[column] = known
        return is_unknown

    def whole(self) -> LogLines:
        """All that was read. Raises WorkloadError if most of it could not be."""
        account, fields = self._account, self._layout.fields
        count = len(fields)
        account.check_rows(self._seen)
        if self._longer:
            account.unused(f"ignored what follows the {count}th field on {self._longer} lines")
        if self._shorter:
            what = f"{several_of(self._shorter, 'line')} with fewer than {count} fields"
            account.assumed(f"{what}: the others are unknown (-1)")
        if self._empty:
            what = f"empty fields, or such as NA, on {several_of(self._empty, 'line')}"
            account.assumed(f"{what} are unknown (-1)")
        if self._separator is not None:
            account.taken(_SEPARATED[self._separator])
        self._close_block()
        rows = np.concatenate(self._blocks)
        names = {
            fields[column]: _of_names(rows[:, column], known)
            for column, known in self._holding.items()
        }
        return LogLines(tuple(self.comments), rows, names, self._several)


def _of_names(column: NDArray[np.float64], known: Mapping[str, float]) -> dict[float, str]:
    """What numbers of a column stand for names: those after its own, which it gets here."""
    is_name = column >= OF_NAMES
    first = column[~is_name].max(initial=-1.0) + 1.0
    column[is_name] += first - OF_NAMES
    return {number - OF_NAMES + first: name for name, number in known.items()}


def _separator(line: str) -> str | None:
    """What separates the fields of a line: a comma, a semicolon, or blanks (None)."""
    return next((mark for mark in _SEPARATED if line.count(mark) > 1), None)


def _is_names(cells: Sequence[str]) -> bool:
    """Whether the fields of the first line are names: none is a number."""
    return len(cells) > 1 and not any(map(_is_number, cells))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _no_number(cells: Sequence[str], fields: Sequence[str]) -> str:
    """What to say of the first field that is no number."""
    for k, (cell, name) in enumerate(zip(cells, fields, strict=False), start=1):
        if not _is_number(cell):
            return f"field {k} ({name}) is {shown(cell)}; give a number"
    raise AssertionError("every field is a number")
