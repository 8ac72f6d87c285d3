"""Statistics of a table of runs: means, differences, Pareto fronts, intervals, tests, variance.

Repetitions have the same seeds at every level of the factors (common random numbers). Levels are
therefore compared run by run, so that the effect of the seeds cancels (Law, Simulation Modeling and
Analysis, section 11.2). Runs that share a seed are not independent: their mean is one observation.
Sources: Student's t; the delta method for intervals within bounds; Holm 1979 for multiple tests.

In the analysis of variance (how much of the variation each factor, and each pair of them, explains)
the seed is a block. For each repetition the effect is estimated as a vector of orthonormal
contrasts, after all main effects. F compares their mean over repetitions with their variation
between repetitions (the effect times seed, as in designs with repeated measures). Degrees of
freedom are corrected for unequal variances (Huynh and Feldt 1976).
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import pandas

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
    """Return the mean, and its 95 % interval, of each combination of levels and each metric.

    frame: a row for each run, with the columns of `factors` and `metrics`, and its seed. Runs that
    share a seed are averaged first. Columns: the levels, metric, runs, seeds, mean,
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
    conditions: Sequence[str] = (),
) -> pandas.DataFrame:
    """Compare each level, of the factors that the baseline names, with the baseline's.

    frame, metrics: as of `means`. factors: all that vary. baseline: a level by factor. Runs are
    paired that are alike in all else, repetition included; pairs that share a seed are averaged
    first, so that seeds are what is counted. conditions: factors within whose levels this is done;
    Holm's p values are over all of them.

    Columns: the conditions, the levels, metric, pairs, seeds (independent repetitions; 1 if they
    change nothing), difference (mean), low and high (its 95 % interval), relative (to the
    baseline's mean), its interval, lower_in and higher_in (parts of the pairs in which it is
    lower, higher), p_value (Student's t over seeds), p_wilcoxon (signed-rank test over seeds),
    p_holm (p_value corrected for all rows, Holm 1979). Intervals and p values are nan of one seed.
    """
    import pandas

    named = [name for name in factors if name in baseline]
    rows = [
        (*where, *levels, metric, *_difference(metric, both))
        for where, part in within(conditions, frame)
        for levels, metric, both in pairs(part, factors, metrics, baseline)
    ]
    found = pandas.DataFrame(rows, columns=[*conditions, *named, "metric", *DIFFERENCES[:-1]])
    return found.assign(p_holm=holm(found["p_value"].to_numpy(float)))


def within(
    conditions: Sequence[str], frame: pandas.DataFrame
) -> list[tuple[tuple[Any, ...], pandas.DataFrame]]:
    """Return the levels of the `conditions`, and the runs of the `frame` that have them."""
    if not conditions:
        return [((), frame)]
    return [(levels, part) for levels, part in frame.groupby(list(conditions), sort=False)]


def pairs(
    frame: pandas.DataFrame,
    factors: Sequence[str],
    metrics: Sequence[str],
    baseline: Mapping[str, Any],
) -> Iterator[tuple[tuple[Any, ...], str, pandas.DataFrame]]:
    """Yield (levels, metric, values of the baseline's runs beside those of the runs of the levels).

    Runs are paired that are alike in all else, repetition included. frame, factors, metrics,
    baseline: as `paired` takes them.
    """
    import pandas

    named = [name for name in factors if name in baseline]
    keys = [*(name for name in factors if name not in baseline), SEED]
    is_base = np.logical_and.reduce([frame[name] == baseline[name] for name in named])
    base = frame[is_base].set_index(keys)
    for levels, runs in frame[~is_base].groupby(named, sort=False):
        theirs = runs.set_index(keys)
        for metric in metrics:
            both = pandas.concat([base[metric], theirs[metric]], axis=1, join="inner").dropna()
            if len(both):
                yield levels, metric, both


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


# More values than these are no levels but a scale, if they are numbers.
MANY_LEVELS = 12
# An effect of more columns than these is not looked at.
MOST_COLUMNS = 1000
# Eigenvalues up to this part of the largest are none.
RANK = 1e-9
COLUMNS = ["metric", "factor", "with_factor", "part", "seeds", "p_value"]


class _Effect(NamedTuple):
    """Part of the variation, repetitions that tell it, p value."""

    part: float
    seeds: int
    p_value: float


def effects(
    frame: pandas.DataFrame, factors: Sequence[str], metrics: Sequence[str]
) -> pandas.DataFrame:
    """Return how much of the variation of each metric goes with each factor, and with pairs.

    frame, factors, metrics: as of `means`.

    Columns: metric, factor, with_factor (empty: the factor alone), part (of the sum of squares),
    seeds (repetitions that tell it; 1 if they change nothing), p_value (F test with the seed as a
    block; nan of one seed), p_holm (corrected for all factors, or all pairs, of all metrics).
    Numbers of more than 12 levels count as a scale, by rank and its square. What is missing to 1
    goes with larger combinations and the repetitions.
    """
    import pandas

    varied = [name for name in factors if frame[name].nunique() > 1]
    rows: list[tuple[object, ...]] = []
    for metric in metrics:
        known = frame.dropna(subset=[metric])
        cells = known.groupby(varied, sort=False).ngroup() if varied else known[SEED] * 0
        values = known.assign(_cell=cells).pivot_table(metric, "_cell", SEED).to_numpy(float)
        table = known.assign(_cell=cells).drop_duplicates("_cell").sort_values("_cell")[varied]
        values = values - np.nanmean(values) if values.size else values
        if np.nansum(values**2) <= (ROUNDING * np.abs(known[metric]).max()) ** 2:
            continue
        design = _Design({name: table[name] for name in varied})
        for names in (*zip(varied), *itertools.combinations(varied, 2)):
            rows.append((metric, *names, *[""] * (2 - len(names)), *design.effect(names, values)))
    found = pandas.DataFrame(rows, columns=COLUMNS).assign(p_holm=math.nan)
    for family in (found["with_factor"] == "", found["with_factor"] != ""):
        found.loc[family, "p_holm"] = holm(found.loc[family, "p_value"].to_numpy(float))
    return found


class _Design:
    """Columns of the combinations that were run, a row each, of every factor."""

    def __init__(self, levels: Mapping[str, pandas.Series]) -> None:
        self._columns = {name: _columns(one) for name, one in levels.items()}

    def effect(self, names: Sequence[str], values: np.ndarray) -> _Effect:
        """The effect of a factor, or of two beyond both; values: a column a repetition."""
        from scipy import sparse

        more = self._columns[names[0]]
        widths = [self._columns[name].shape[1] for name in self._columns]
        if max(*widths, math.prod(self._columns[name].shape[1] for name in names)) > MOST_COLUMNS:
            return _Effect(math.nan, 0, math.nan)
        if len(names) == 2:
            other = self._columns[names[1]]
            more = sparse.hstack([other.multiply(more[:, [k]]) for k in range(more.shape[1])])
        rest = [one for name, one in self._columns.items() if len(names) == 2 or name != names[0]]
        ones = sparse.csr_array(np.ones((len(values), 1)))
        return _effect(sparse.hstack([ones, *rest]).tocsr(), more.tocsr(), values)


def _columns(levels: pandas.Series) -> Any:
    """Of each level one; of a scale its rank and the square of it."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype
    from scipy import sparse

    if levels.nunique() > MANY_LEVELS and is_numeric_dtype(levels) and not is_bool_dtype(levels):
        rank = levels.rank().to_numpy(float)
        rank = (rank - rank.mean()) / rank.std()
        return sparse.csr_array(np.column_stack([rank, rank**2 - 1.0]))
    codes = levels.factorize()[0]
    return sparse.csr_array((np.ones(len(codes)), (np.arange(len(codes)), codes)))


def _effect(null: Any, more: Any, values: np.ndarray) -> _Effect:
    """What the columns of `more` add to those of `null`."""
    scales, axes = _spread(null, more)
    contrasts, used = [], []
    for rows, seeds in _patterns(values):
        y = values[np.ix_(rows, seeds)]
        inner, shared = null[rows].T @ null[rows], null[rows].T @ more[rows]
        project = shared.T @ np.linalg.pinv(inner.toarray(), RANK, hermitian=True)
        left = (more[rows].T @ more[rows]).toarray() - project @ shared
        if np.linalg.matrix_rank(left, _least(more), hermitian=True) < len(scales):
            continue
        of_seeds = np.linalg.pinv(left, RANK, hermitian=True) @ (
            more[rows].T @ y - project @ (null[rows].T @ y)
        )
        contrasts.append((np.sqrt(scales)[:, None] * (axes.T @ of_seeds)).T)
        used.append(y)
    if not len(scales) or not contrasts:
        return _Effect(0.0, 0, math.nan)
    whole = sum(float((one**2).sum()) for one in used)
    found = np.concatenate(contrasts)
    mean = found.mean(axis=0)
    explained = len(found) * float(mean @ mean)
    part = min(explained / whole, 1.0) if explained > ROUNDING * whole else 0.0
    if len(found) < 2 or not any(independent(one) for one in used):
        return _Effect(part, 1, math.nan)
    return _Effect(part, len(found), _p_value(found, ROUNDING * whole))


def _spread(null: Any, more: Any) -> tuple[np.ndarray, np.ndarray]:
    """The directions of what `more` adds to `null`, all combinations being there."""
    shared = null.T @ more
    inner = np.linalg.pinv((null.T @ null).toarray(), RANK, hermitian=True)
    left = (more.T @ more).toarray() - shared.T @ inner @ shared
    scales, axes = np.linalg.eigh(left)
    kept = scales > _least(more)
    return scales[kept], axes[:, kept]


def _least(more: Any) -> float:
    """Directions with less than this are none."""
    return RANK * float(more.multiply(more).sum())


def _patterns(values: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Combinations that are there, and in which repetitions just those are."""
    found: dict[bytes, list[int]] = {}
    there = ~np.isnan(values)
    for k in range(values.shape[1]):
        found.setdefault(there[:, k].tobytes(), []).append(k)
    return [(np.flatnonzero(there[:, one[0]]), np.array(one)) for one in found.values()]


def _p_value(contrasts: np.ndarray, rounding: float) -> float:
    """Of an F test that the mean of contrasts, a row a repetition, is zero."""
    from scipy import stats

    count, size = contrasts.shape
    mean = contrasts.mean(axis=0)
    apart = contrasts - mean
    within, between = float((apart**2).sum()), count * float(mean @ mean)
    if between <= rounding:
        return 1.0
    if within <= rounding:
        return same_each_time(count)
    ratio = between / (within / (count - 1))
    freedom = _huynh_feldt(apart) * size
    return float(stats.f.sf(ratio, freedom, freedom * (count - 1)))


def _huynh_feldt(apart: np.ndarray) -> float:
    """What degrees of freedom are multiplied with: 1 if contrasts vary alike, independently."""
    count, size = apart.shape
    square = apart @ apart.T
    box = float(np.trace(square)) ** 2 / (size * float((square**2).sum()))
    room = count - 1 - size * box
    if room <= ROUNDING * count:
        return box if count == 2 else 1.0
    return min(1.0, max(box, (count * size * box - 2.0) / (size * room)))
