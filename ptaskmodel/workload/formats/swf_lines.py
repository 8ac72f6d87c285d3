"""The lines of a large log that are as they should be, parsed by a compiled scanner."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Bytes; below, the scanner would take longer to load than it saves.
LARGE = 200_000


def parsed(
    body: bytes, fields: int, largest: float, large: int = LARGE
) -> NDArray[np.float64] | None:
    """The values of lines of ``fields`` numbers each, shape (lines, fields); blank lines count not.

    None if there are less than ``large`` bytes, or if anything about them is unusual: another
    number of fields, anything but plain finite numbers up to ``largest``.
    """
    if len(body) < large:
        return None
    from ptaskmodel.workload.formats.json_numbers import POWERS
    from ptaskmodel.workload.formats.scanning.lines import read_rows

    rows = np.empty((body.count(b"\n") + 1, fields))
    count = int(read_rows(np.frombuffer(body, np.uint8), rows, POWERS, largest))
    return None if count < 0 else rows[:count]
