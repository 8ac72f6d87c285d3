"""Long arrays of numbers cut out of a JSON text by a compiled scanner; other code reads the rest.

What the scanner does not understand (20 digits, rows of different lengths, what is not JSON) stays
in the text. A number is taken only if its double is certain to be the nearest one, as Python's is.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ptaskmodel.workload.amounts import FloatArray
from ptaskmodel.workload.formats.scanning.numbers import cut

PLACEHOLDER = "NaN"
# Shorter arrays are read as fast without.
SMALLEST = 8

POWERS = np.array([float(10**k) for k in range(23)])  # all exact


def cut_numbers(content: bytes, names: Collection[str]) -> tuple[str, list[FloatArray]]:
    """A UTF-8 text with NaN in place of long arrays of numbers, and these arrays in their order.

    names: of the fields whose arrays are looked at: of numbers, shape (n,), or of rows of as many
    numbers each, shape (rows, n). Raises UnicodeDecodeError if the rest is not UTF-8.
    """
    # More than there can be; what is not used takes no memory.
    numbers = np.empty(len(content) // 2 + 1)
    cuts = np.empty((len(content) // (2 * SMALLEST) + 1, 4), dtype=np.int64)
    quoted = [f'"{name}"'.encode() for name in names]
    ends = np.cumsum([len(name) for name in quoted], dtype=np.int64)
    fields = np.frombuffer(b"".join(quoted), np.uint8)
    count = int(
        cut(np.frombuffer(content, np.uint8), fields, ends, numbers, cuts, POWERS, SMALLEST)
    )
    pieces: list[bytes] = []
    arrays: list[FloatArray] = []
    last = first = 0
    for begin, end, until, row in cuts[:count].tolist():
        pieces += (content[last:begin], PLACEHOLDER.encode())
        array = numbers[first:until]
        arrays.append(array.reshape(-1, row) if row else array)
        last, first = end, until
    pieces.append(content[last:])
    return b"".join(pieces).decode(), arrays
