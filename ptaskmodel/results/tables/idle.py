"""How much of a machine stood idle while jobs waited, and when most of it did."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
# A spell in which less than this part of the machine works while jobs wait is worth pointing at.
HALF = 0.5


class Spell(NamedTuple):
    """Dates in s, and the least and the most that was in use between them while jobs waited."""

    begin_s: float
    end_s: float
    least: float
    most: float


class Idle(NamedTuple):
    """Capacity times s that stood idle while jobs waited, and the spell with most of it, if any."""

    idle: float
    worst: Spell | None


def idle_while_waiting(
    submits_s: Array, starts_s: Array, ends_s: Array, sizes: Array, capacity: float
) -> Idle:
    """Return what stood idle at all dates at which some job waited.

    submits_s, starts_s, ends_s: of each job, s, shape (n,); a job that never starts waits until its
    `starts_s` and ends then. sizes: what each uses of the `capacity`, hosts or CPUs.
    """
    dates = np.unique(np.concatenate([submits_s, starts_s, ends_s]))
    if len(dates) < 2:
        return Idle(0.0, None)

    def level(begins: Array, ends: Array, weights: Array) -> Array:
        changes = np.zeros(len(dates))
        np.add.at(changes, np.searchsorted(dates, begins), weights)
        np.add.at(changes, np.searchsorted(dates, ends), -weights)
        return np.cumsum(changes)[:-1]

    ones = np.ones(len(sizes))
    waiting = level(submits_s, np.maximum(starts_s, submits_s), ones) > 0.5
    used = level(starts_s, np.maximum(ends_s, starts_s), sizes)
    idle = np.where(waiting, np.maximum(capacity - used, 0.0), 0.0) * np.diff(dates)
    low = np.concatenate([[False], waiting & (used < HALF * capacity), [False]])
    begins, ends = (np.flatnonzero(low[1:] & ~low[:-1]), np.flatnonzero(~low[1:] & low[:-1]))
    if not len(begins):
        return Idle(float(idle.sum()), None)
    sums = np.concatenate([[0.0], np.cumsum(idle)])
    k = int(np.argmax(sums[ends] - sums[begins]))
    inside = used[begins[k] : ends[k]]
    spell = Spell(float(dates[begins[k]]), float(dates[ends[k]]), inside.min(), inside.max())
    return Idle(float(idle.sum()), spell)
