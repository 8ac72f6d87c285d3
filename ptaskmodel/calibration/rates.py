"""The slow/fast model: progress alternates between a disturbed rate and an undisturbed one.

An application makes c1 of its whole work a second while the interference is on, c2 while it is
off. The pattern starts on, with the application. The runtime is exact: no averaging over periods.
"""

from __future__ import annotations

import math

import numpy as np

from ptaskmodel.apps.interference import OnOff
from ptaskmodel.errors import PTaskModelError
from ptaskmodel.workload.amounts import FloatArray


def predicted_runtime(c1: float, c2: float, pattern: OnOff) -> float:
    """The date at which progress reaches 1, in s.

    c1, c2: disturbed and undisturbed progress rates, 1/s; > 0 wherever the pattern needs them.
    """
    _check(c1, c2)
    return float(predicted_runtimes(np.float64(c1), np.float64(c2), pattern))


def predicted_runtimes(
    c1: FloatArray | np.float64, c2: FloatArray | np.float64, pattern: OnOff
) -> FloatArray | np.float64:
    """The same for arrays of rates > 0 of one shape, the shape of what is returned."""
    if pattern.none or pattern.constant:
        return 1.0 / (c2 if pattern.none else c1)
    in_period = c1 * pattern.on_s + c2 * pattern.off_s
    whole = np.floor(1.0 / in_period)
    rest = 1.0 - whole * in_period
    whole, rest = np.where(rest <= 0.0, (whole - 1.0, rest + in_period), (whole, rest))
    slow = c1 * pattern.on_s
    tail_s = np.where(rest <= slow, rest / c1, pattern.on_s + (rest - slow) / c2)
    found: FloatArray = whole * pattern.period_s + tail_s
    return found


def progress(c1: float, c2: float, pattern: OnOff, dates_s: FloatArray) -> FloatArray:
    """The part of the work done at each date, at most 1; same shape as ``dates_s`` (s)."""
    _check(c1, c2)
    dates = np.asarray(dates_s, np.float64)
    if pattern.none or pattern.constant:
        return np.minimum(1.0, dates * (c2 if pattern.none else c1))
    whole = np.floor(dates / pattern.period_s)
    in_period = dates - whole * pattern.period_s
    on_s = whole * pattern.on_s + np.minimum(in_period, pattern.on_s)
    return np.minimum(1.0, c1 * on_s + c2 * (dates - on_s))


def _check(c1: float, c2: float) -> None:
    if not (0.0 < c1 < math.inf and 0.0 < c2 < math.inf):
        raise PTaskModelError(f"progress rates c1 = {c1}, c2 = {c2}: give finite numbers > 0 (1/s)")
