"""A schedule in arrays, for whoever measures it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.batch.attempt import WAITING, Attempt

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Figures:
    """The numbers of a schedule; dates in s, nan: not yet or never.

    One entry for each submitted job, in order of submission: what it asked for (``walltime_s`` nan:
    none), when it started
    first, and of its last attempt its dates, of how many whole hosts its placement is worth
    (``held_hosts``), for how long it was suspended and read or wrote checkpoints, its state (see
    `attempt`), whether it was cut off, and which part of its work it did (``done``; nan: unknown).

    One entry for each stretch during which some attempt ran, up to now, in order of the starts:
    ``stretch_from_s``, ``stretch_to_s``, ``stretch_hosts`` (whole numbers unless jobs share hosts).

    attempts: how many there were.
    """

    submit_s: FloatArray
    num_hosts: NDArray[np.int64]
    walltime_s: FloatArray
    first_start_s: FloatArray
    start_s: FloatArray
    end_s: FloatArray
    held_hosts: FloatArray
    suspended_s: FloatArray
    overhead_s: FloatArray
    states: list[str]
    cut: NDArray[np.bool_]
    done: FloatArray
    stretch_from_s: FloatArray
    stretch_to_s: FloatArray
    stretch_hosts: NDArray[np.int64] | FloatArray
    attempts: int

    @property
    def ended(self) -> NDArray[np.bool_]:
        """Which jobs ran and ended."""
        return ~np.isnan(self.start_s) & ~np.isnan(self.end_s)

    @property
    def waiting(self) -> NDArray[np.bool_]:
        """Which jobs never started and wait still."""
        never = np.isnan(self.first_start_s)
        return never & np.array([state == WAITING for state in self.states], dtype=bool)


def running_intervals(attempt: Attempt, now: float) -> Iterator[tuple[float, float]]:
    """(from, to) of the stretches during which an attempt ran, up to now."""
    begin = attempt.start_s or 0.0
    for since, to in attempt.suspensions:
        yield begin, since or 0.0
        begin = now if to is None else to
    yield begin, now if attempt.end_s is None else attempt.end_s
