"""What a table of runs says: means with confidence, paired differences, Pareto fronts.

Repetitions have the same seeds at every level of the factors (common random numbers), so that
levels are compared run by run: what the seeds have in common cancels (Law, Simulation Modeling and
Analysis, section 11.2). Runs that share a seed are not independent: their mean is one observation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ptaskmodel.campaign.intervals import (
    SEED,
    bounds_of,
    difference_test,
    holm,
    independent,
    mean_interval,
    ratio_interval,
)

if TYPE_CHECKING:
    import pandas

MEANS = ["runs", "seeds", "mean", "standard_deviation", "low", "high"]
DIFFERENCES = [
    *("pairs", "seeds", "difference", "low", "high", "relative", "relative_low", "relative_high"),
    *("lower_in", "higher_in", "p_value", "p_wilcoxon", "p_holm"),
]


def means(
    frame: pandas.DataFrame, factors: Sequence[str], metrics: Sequence[str]
) -> pandas.DataFrame:
    """Of each combination of levels and each metric: mean, and its 95 % interval.

    Runs that share a seed are averaged first. Columns: the levels, metric, runs, seeds, mean,
    standard_deviation (of a seed's mean), low and high (the interval, within what the metric can
    be; nan of one seed).
    """
    import pandas

    rows = []
    names = list(factors)
    for metric in metrics:
        known = frame[[*names, SEED, metric]].dropna(subset=[metric])
        bounds = bounds_of(metric, known[metric].to_numpy(float))
        seeds = known.groupby([*names, SEED], sort=False)[metric].agg(["mean", "size"])
        groups = seeds.groupby(level=names, sort=False) if names else [((), seeds)]
        for levels, one in groups:
            found = mean_interval(one["mean"].to_numpy(float), bounds)
            rows.append((*levels, metric, int(one["size"].sum()), len(one), *found))
    return pandas.DataFrame(rows, columns=[*factors, "metric", *MEANS])


def paired(
    frame: pandas.DataFrame,
    factors: Sequence[str],
    metrics: Sequence[str],
    baseline: Mapping[str, Any],
) -> pandas.DataFrame:
    """Each level (of the factors that the baseline names) against the baseline's.

    Runs are paired that are alike in all else, repetition included; pairs that share a seed are
    averaged first, so that seeds are what is counted.

    Columns: the levels, metric, pairs, seeds (independent repetitions; 1 if they change nothing),
    difference (mean), low and high (its 95 % interval), relative (to the baseline's mean), its
    interval, lower_in and higher_in (parts of the pairs in which it is lower, higher), p_value
    (Student's t over seeds), p_wilcoxon (signed-rank test over seeds), p_holm (p_value corrected
    for all rows, Holm 1979). Intervals and p values are nan of one seed.
    """
    import pandas

    named = [name for name in factors if name in baseline]
    others = [name for name in factors if name not in baseline]
    keys = [*others, SEED]
    is_base = np.logical_and.reduce([frame[name] == baseline[name] for name in named])
    base = frame[is_base].set_index(keys)
    rows = []
    for levels, runs in frame[~is_base].groupby(named, sort=False):
        theirs = runs.set_index(keys)
        for metric in metrics:
            both = pandas.concat([base[metric], theirs[metric]], axis=1, join="inner").dropna()
            if len(both):
                rows.append((*levels, metric, *_difference(metric, both)))
    found = pandas.DataFrame(rows, columns=[*named, "metric", *DIFFERENCES[:-1]])
    return found.assign(p_holm=holm(found["p_value"].to_numpy(float)))


def _difference(metric: str, both: pandas.DataFrame) -> tuple[float, ...]:
    """The columns of `DIFFERENCES` but the last, of pairs of runs."""
    pairs = both.to_numpy(float)
    apart = pairs[:, 1] - pairs[:, 0]
    how_often = float((apart < 0).mean()), float((apart > 0).mean())
    base, other = both.groupby(level=SEED).mean().to_numpy(float).T
    if not independent(base, other):
        base, other = base[:1], other[:1]
    mean, low, high, *p_values = difference_test(base, other)
    scale = float(np.abs(pairs[:, 0]).mean()) or math.nan
    relative = low / scale, high / scale
    if bounds_of(metric, pairs).least >= 0.0 and base.mean() > 0.0 < other.mean():
        relative = ratio_interval(base, other)
    return (len(pairs), len(base), mean, low, high, mean / scale, *relative, *how_often, *p_values)


def pareto(found: pandas.DataFrame, better: Mapping[str, int]) -> pandas.DataFrame:
    """The rows that no other beats in all metrics.

    found: a column for each metric. better: +1 if more of a metric is better, -1 if less.
    """
    values = np.column_stack([found[name].to_numpy(float) * -sign for name, sign in better.items()])
    kept = [
        not (np.all(values <= row, axis=1) & np.any(values < row, axis=1)).any() for row in values
    ]
    return found[kept]
