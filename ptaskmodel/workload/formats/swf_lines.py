"""The lines of a log that are as they should be, parsed all at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Whatever else there is, a number may still be one to Python: the strict reader sees to it.
PLAIN = b"0123456789+-.eE \t\r\n"


def parsed(body: bytes, fields: int, largest: float) -> NDArray[np.float64] | None:
    """The values of lines of ``fields`` numbers each, shape (lines, fields); blank lines count not.

    None if anything about them is unusual: another number of fields, anything but plain finite
    numbers up to ``largest``.
    """
    if body.translate(None, PLAIN):
        return None
    octets = np.frombuffer(b"\n" + body + b"\n", dtype=np.uint8)
    inside = octets > ord(" ")  # of all that is plain, only blanks are not above
    begins = (inside[1:] > inside[:-1]).view(np.uint8)
    ends = np.flatnonzero((octets == ord("\n")) | (octets == ord("\r")))
    counts = np.add.reduceat(begins, ends[:-1], dtype=np.int64)
    if not ((counts == fields) | (counts == 0)).all():
        return None
    signs = (octets == ord("-")) | (octets == ord("+"))
    # A sign alone would be read as the whole number 0.
    if (signs[:-1] & (octets[1:] <= ord(" "))).any():
        return None
    whole = not any(sign in body for sign in (b".", b"e", b"E", b"-0"))
    try:
        # Whole numbers are read four times faster as such, and those beyond 64 bits as the largest.
        values = np.fromstring(body, dtype=np.int64 if whole else np.float64, sep=" ")
    except (ValueError, DeprecationWarning):
        return None
    rows: NDArray[np.float64] = values.astype(np.float64, copy=False)
    # A word that is two numbers, such as 1-2, makes the number of values another.
    if len(rows) != int(counts.sum()) or not (np.abs(rows) <= largest).all():
        return None
    return rows.reshape(-1, fields)
