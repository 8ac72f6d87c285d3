"""Small CSV files that say what happens to a machine: read line by line, with care."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from ptaskmodel.errors import SimulationError, shown
from ptaskmodel.files import read_text, shown_path
from ptaskmodel.units import UnitError, split_float

MAX_LINES = 5_000_000


def read_table(path: str | Path, columns: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """("FILE:LINE", the values of these columns) of each line of a CSV file with a header.

    Other columns are left alone. Raises SimulationError with file and line.
    """
    where = shown_path(path)
    text = io.StringIO(read_text(path, error=SimulationError), newline="")
    reader = csv.reader(text, strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        for name in columns:
            if header.count(name) != 1:
                raise SimulationError(
                    f"{where}:1: the header names column '{name}' {header.count(name)} times: it "
                    f"needs {','.join(columns)}, each once"
                )
        places = [header.index(name) for name in columns]
        for count, row in enumerate(reader):
            if not row:
                continue
            if len(row) != len(header):
                raise SimulationError(
                    f"{where}:{reader.line_num}: {len(row)} fields and the header has "
                    f"{len(header)}: give as many"
                )
            if count >= MAX_LINES:
                raise SimulationError(f"{where}: more than {MAX_LINES:,} lines: give fewer")
            yield f"{where}:{reader.line_num}", tuple(row[k].strip() for k in places)
    except csv.Error as error:
        raise SimulationError(
            f"{where}:{reader.line_num}: cannot be read as a CSV file: {error}"
        ) from None


def table_date(text: str, where: str, column: str) -> float:
    """A date in s; SimulationError if it is none."""
    try:
        value, rest = split_float(text)
    except UnitError:
        value, rest = math.nan, ""
    if rest or not 0 <= value < math.inf:
        raise SimulationError(f"{where}: {column} {shown(text)}: give a finite date in s, >= 0")
    return value
