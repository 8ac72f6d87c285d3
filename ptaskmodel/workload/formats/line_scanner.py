# mypy: allow-untyped-defs, allow-incomplete-defs
"""A kernel that reads lines of numbers exactly as Python does, or refuses the lines."""

from __future__ import annotations

from ptaskmodel.kernels.decorators import entry
from ptaskmodel.workload.formats.number_scanner import number


@entry
def read_rows(text, rows, powers, largest):
    """Read lines of as many numbers as rows are wide; returns how many rows these are.

    -1: something is unusual, such as a number beyond ``largest``. Blank lines count not.
    """
    count = 0
    column = 0
    i = 0
    while i < text.size:
        byte = int(text[i])
        if byte == 10 or byte == 13:
            if column > 0:
                if column < rows.shape[1]:
                    return -1
                count += 1
                column = 0
            i += 1
        elif byte == 32 or byte == 9:
            i += 1
        else:
            if column == rows.shape[1] or count == rows.shape[0]:
                return -1
            i, value = number(text, i, powers)
            if i < 0 or not abs(value) <= largest or (i < text.size and text[i] > 32):
                return -1
            # A whole number may be a zero with a sign here.
            if value == 0.0 and byte == 45:
                return -1
            rows[count, column] = value
            column += 1
    if column > 0:
        if column < rows.shape[1]:
            return -1
        count += 1
    return count
