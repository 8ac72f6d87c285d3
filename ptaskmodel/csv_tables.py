"""Split the text of a CSV table, as people keep them, into rows; `Account.table` reads them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator


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
