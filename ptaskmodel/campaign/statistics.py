"""What a table of runs says: means with confidence, paired differences, effects, Pareto fronts.

Repetitions have the same seeds at every level of the factors (common random numbers), so that
levels are compared run by run: what the seeds have in common cancels (Law, Simulation Modeling and
Analysis, section 11.2).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas

CONFIDENCE = 0.95
# Fewer pairs than these cannot be told apart at the 5 % level by ranks.
FEWEST_RANKED = 6
# Parts of the variation up to this are none.
ROUNDING = 1e-12


def means(
    frame: pandas.DataFrame, factors: Sequence[str], metrics: Sequence[str]
) -> pandas.DataFrame:
    """Of each combination of levels and each metric: runs, mean, deviation, half an interval.

    The interval holds the mean with a confidence of 95 % if runs are normally distributed
    (Student's t); it is nan of a single run.
    """
    import pandas

    rows = []
    groups = frame.groupby(list(factors), sort=False) if factors else [((), frame)]
    for levels, runs in groups:
        for metric in metrics:
            values = runs[metric].dropna().to_numpy(float)
            if len(values):
                rows.append((*levels, metric, len(values), *_mean(values)))
    head = [*factors, "metric", "runs", "mean", "standard_deviation", "half_interval"]
    return pandas.DataFrame(rows, columns=head)


def _mean(values: np.ndarray) -> tuple[float, float, float]:
    """Mean, standard deviation, half of its interval of confidence."""
    if len(values) < 2:
        return float(values.mean()), math.nan, math.nan
    from scipy import stats

    apart = values - values[0]  # so that equal ones deviate by nothing at all
    mean, deviation = float(values[0] + apart.mean()), float(apart.std(ddof=1))
    reach = stats.t.ppf(0.5 + CONFIDENCE / 2, len(values) - 1)
    return mean, deviation, float(reach * deviation / math.sqrt(len(values)))


def paired(
    frame: pandas.DataFrame,
    factors: Sequence[str],
    metrics: Sequence[str],
    baseline: Mapping[str, Any],
) -> pandas.DataFrame:
    """Each level (of the factors that the baseline names) against the baseline's.

    Runs are paired that are alike in all else, repetition included. Columns: the levels, metric,
    pairs, difference (mean), relative (to the baseline's mean), half_interval of the difference,
    lower_in and higher_in (parts of the pairs in which it is lower, higher), p_value (Wilcoxon's
    signed-rank test; nan of fewer than 6 pairs that differ).
    """
    import pandas

    named = [name for name in factors if name in baseline]
    others = [name for name in factors if name not in baseline]
    keys = [*others, "repetition"]
    is_base = np.logical_and.reduce([frame[name] == baseline[name] for name in named])
    base = frame[is_base].set_index(keys)
    rows = []
    for levels, runs in frame[~is_base].groupby(named, sort=False):
        theirs = runs.set_index(keys)
        for metric in metrics:
            both = pandas.concat([base[metric], theirs[metric]], axis=1, join="inner").dropna()
            if len(both):
                rows.append((*levels, metric, *_difference(*both.to_numpy(float).T)))
    head = ["pairs", "difference", "relative", "half_interval", "lower_in", "higher_in", "p_value"]
    return pandas.DataFrame(rows, columns=[*named, "metric", *head])


def _difference(
    base: np.ndarray, other: np.ndarray
) -> tuple[int, float, float, float, float, float, float]:
    """Pairs, mean difference, relative, half of its interval, how often lower, higher, p value."""
    apart = other - base
    mean, _, half = _mean(apart)
    scale = float(np.abs(base).mean())
    p_value = math.nan
    if np.count_nonzero(apart) >= FEWEST_RANKED:
        from scipy import stats

        p_value = float(stats.wilcoxon(apart).pvalue)
    relative = mean / scale if scale > 0 else math.nan
    lower, higher = float((apart < 0).mean()), float((apart > 0).mean())
    return len(apart), mean, relative, half, lower, higher, p_value


def effects(
    frame: pandas.DataFrame, factors: Sequence[str], metrics: Sequence[str]
) -> pandas.DataFrame:
    """How much of the variation of each metric goes with each factor, and with pairs of them.

    The part of a factor is the sum of squares between the means of its levels over the whole one;
    that of a pair, what the means of their combinations have beyond both (analysis of variance;
    exact if all combinations were run equally often, else parts overlap). What is missing to 1
    goes with larger combinations and the repetitions.
    """
    import pandas

    rows = []
    for metric in metrics:
        known = frame.dropna(subset=[metric])
        values = known[metric].astype(float)
        values -= values.iloc[0] if len(values) else 0.0
        whole = float(((values - values.mean()) ** 2).sum())
        if whole <= 0:
            continue

        def between(
            names: Sequence[str],
            known: pandas.DataFrame = known,
            values: pandas.Series = values,
            whole: float = whole,
        ) -> float:
            fitted = values.groupby([known[name] for name in names]).transform("mean")
            return float(((fitted - values.mean()) ** 2).sum()) / whole

        alone = {name: between([name]) for name in factors}
        rows += [(metric, name, "", _part(part)) for name, part in alone.items()]
        for one, other in itertools.combinations(factors, 2):
            more = between([one, other]) - alone[one] - alone[other]
            rows.append((metric, one, other, _part(more)))
    return pandas.DataFrame(rows, columns=["metric", "factor", "with_factor", "part"])


def _part(part: float) -> float:
    """A part of the variation, without what it has of rounding alone."""
    return min(part, 1.0) if part > ROUNDING else 0.0


def pareto(found: pandas.DataFrame, better: Mapping[str, int]) -> pandas.DataFrame:
    """The rows that no other beats in all metrics.

    found: a column for each metric. better: +1 if more of a metric is better, -1 if less.
    """
    values = np.column_stack([found[name].to_numpy(float) * -sign for name, sign in better.items()])
    kept = [
        not (np.all(values <= row, axis=1) & np.any(values < row, axis=1)).any() for row in values
    ]
    return found[kept]
