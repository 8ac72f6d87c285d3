# mypy: allow-untyped-defs, allow-incomplete-defs
"""Linked lists of records, first in, first out, in the arrays that kernels work on.

A list has a `LIST`, which holds the numbers of its first and last record, and a field of each
record for the number of the record after it.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.kernels.records import INT

# The numbers of the first and the last record.
LIST = np.dtype([("first", INT), ("last", INT)], align=True)
EMPTY = (-1, -1)


@jit
def append(ends, after, number):
    """Put a record at the end of a list.

    ends: the list's `LIST`. after: int array, the number of the next record of each (the field of
    all records). number: of the record.
    """
    after[number] = -1
    if ends.last >= 0:
        after[ends.last] = number
    else:
        ends.first = number
    ends.last = number


@jit
def take_first(ends, after):
    """Take the first record out of a list that is not empty; returns its number.

    ends, after: as for `append`.
    """
    number = np.int64(ends.first)
    ends.first = after[number]
    if ends.first < 0:
        ends.last = -1
    return number
