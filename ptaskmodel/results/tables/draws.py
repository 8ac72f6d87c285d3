"""Write the draws of `runs.draws`: draws.csv, and columns of tasks.csv."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DRAWS = "draws.csv"
COLUMNS = ("task_id", "draw", "execution_time")
RANGE_COLUMNS = ("execution_low", "execution_high")


def write_draws(place: Path, ids: Sequence[str], durations: NDArray[np.float64]) -> str:
    """Write draws.csv in a directory; returns its name.

    place: the directory. ids: of tasks. durations: shape (draws, tasks), s; nan: it did not end.
    """
    with (place / DRAWS).open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        for draw, row in enumerate(durations.tolist()):
            lines = zip(ids, row, strict=True)
            writer.writerows((name, draw, "" if one != one else one) for name, one in lines)
    return DRAWS


def range_columns(ranges: Iterable[tuple[float, float]]) -> dict[str, list[float | None]]:
    """The columns of tasks.csv that ``ranges``, (low, high) of each task, make; nan: none."""
    pairs = [[None if one != one else one for one in pair] for pair in ranges]
    return {name: [pair[k] for pair in pairs] for k, name in enumerate(RANGE_COLUMNS)}
