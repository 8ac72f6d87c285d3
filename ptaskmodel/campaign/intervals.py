"""Intervals and tests over independent repetitions.

Means of runs that share a seed come in, one for each repetition; `statistics` and `effects` make
them. Sources: Student's t; the delta method for intervals that respect a bound; Holm 1979 for many
tests at once.
"""

from __future__ import annotations

import functools
import math
import re
from typing import NamedTuple

import numpy as np

# The column of repetitions: runs of one number there share a seed.
SEED = "repetition"
CONFIDENCE = 0.95
# A p value below this tells something apart from chance.
SIGNIFICANT = 0.05
# Deviations up to this part of the values are rounding.
ROUNDING = 1e-12
# What metrics can be, by their names; the first that fits name and values holds.
_BOUNDS = (
    (re.compile("slowdown"), 1.0, math.inf),
    (re.compile("utili[sz]ation|loss_of_capacity"), 0.0, 1.0),
    (
        re.compile(r"slowdown|makespan|_(s|h|J|W|bytes)(\.|$)|(^|\.)(jobs|messages)\."),
        0.0,
        math.inf,
    ),
)


class Bounds(NamedTuple):
    """The least and the largest value that a metric can have; infinite: none is known."""

    least: float = -math.inf
    most: float = math.inf


def bounds_of(metric: str, values: np.ndarray) -> Bounds:
    """The bounds of a metric by its name, unless the values say otherwise."""
    for name, least, most in _BOUNDS:
        if name.search(metric) and len(values) and least <= values.min() <= values.max() <= most:
            return Bounds(least, most)
    return Bounds()


def mean_interval(values: np.ndarray, bounds: Bounds) -> tuple[float, float, float, float]:
    """Mean, standard deviation, and the ends of the 95 % interval of the mean.

    The interval is Student's, on a logarithmic scale from a bound (a logit scale between two), so
    that it stays within them. Deviation and interval are nan of a single value.
    """
    mean, deviation, half = _student(values)
    room, left = mean - bounds.least, bounds.most - mean
    if not half or math.isnan(half) or math.isinf(room):
        return mean, deviation, mean - half, mean + half
    if math.isinf(left):
        stretch = math.exp(half / room)
        return mean, deviation, bounds.least + room / stretch, bounds.least + room * stretch
    width = bounds.most - bounds.least
    stretch = math.exp(half * width / (room * left))
    low = bounds.least + width * room / (room + left * stretch)
    high = bounds.most - width * left / (room * stretch + left)
    return mean, deviation, low, high


def ratio_interval(base: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """The ends of the 95 % interval of the ratio of two positive means, less 1.

    base, other: values of the same repetitions. On a logarithmic scale, so that no end is below -1.
    """
    ratio = float(other.mean() / base.mean())
    _, _, half = _student(other / other.mean() - base / base.mean())
    return ratio * math.exp(-half) - 1.0, ratio * math.exp(half) - 1.0


def difference_test(
    base: np.ndarray, other: np.ndarray
) -> tuple[float, float, float, float, float]:
    """Mean difference, ends of its 95 % interval (Student's), p of t and of Wilcoxon's test.

    base, other: values of the same repetitions, that are independent of each other. All but the
    difference is nan of a single one.
    """
    from scipy import stats

    apart = other - base
    apart[np.abs(apart) <= ROUNDING * (np.abs(base) + np.abs(other))] = 0.0
    mean, deviation, half = _student(apart)
    count = len(apart)
    if count < 2:
        return mean, math.nan, math.nan, math.nan, math.nan
    if not apart.any():
        return mean, mean, mean, 1.0, 1.0
    if deviation > 0.0:
        p_value = float(2.0 * stats.t.sf(abs(mean) / deviation * math.sqrt(count), count - 1))
    else:
        p_value = same_each_time(count)
    return mean, mean - half, mean + half, p_value, float(stats.wilcoxon(apart).pvalue)


def same_each_time(count: int) -> float:
    """The p value of an effect that is the same in so many repetitions: of its sign."""
    return 2.0 ** (1 - count)


def independent(*values: np.ndarray) -> bool:
    """Whether the last axis, of repetitions, changes anything: otherwise they are one run."""
    return any(
        bool((np.ptp(one, axis=-1) > ROUNDING * np.abs(one).max(axis=-1)).any()) for one in values
    )


def holm(p_values: np.ndarray) -> np.ndarray:
    """Holm's p values: what is below 0.05 is wrong anywhere in at most 5 % of all families.

    nan stays, and does not count.
    """
    adjusted = np.full(len(p_values), np.nan)
    order = np.argsort(p_values, kind="stable")[: np.count_nonzero(~np.isnan(p_values))]
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(p_values[order] * factors), 1.0)
    return adjusted


def p_text(p_value: float) -> str:
    """Two digits of a p value, such as ``p = 0.031``; those of no use are left out."""
    return f"p {'< ' if p_value < LEAST_SHOWN else '= '}{p_digits(p_value).removeprefix('<')}"


LEAST_SHOWN = 1e-4


def p_digits(p_value: float) -> str:
    """Two digits of a p value for a table; empty if there is none."""
    if math.isnan(p_value):
        return ""
    return f"<{LEAST_SHOWN:.4f}" if p_value < LEAST_SHOWN else f"{p_value:.2g}"


def _student(values: np.ndarray) -> tuple[float, float, float]:
    """Mean, standard deviation, half of the 95 % interval of the mean."""
    if len(values) < 2:
        return float(values.mean()), math.nan, math.nan
    apart = values - values[0]  # so that equal ones deviate by nothing at all
    deviation = float(apart.std(ddof=1))
    if deviation <= ROUNDING * float(np.abs(values).max()):
        deviation = 0.0
    mean = float(values[0] + apart.mean())
    return mean, deviation, _reach(len(values)) * deviation


@functools.lru_cache(maxsize=64)
def _reach(count: int) -> float:
    """Half of the interval of a mean of so many values, in their standard deviations."""
    from scipy import stats

    return float(stats.t.ppf(0.5 + CONFIDENCE / 2, count - 1)) / math.sqrt(count)
