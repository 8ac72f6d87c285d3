"""Analysis of variance: how much of the variation each factor, and each pair of them, explains.

The seed is a block. For each repetition the effect is estimated as a vector of orthonormal
contrasts, after all main effects. F compares their mean over repetitions with their variation
between repetitions (the effect times seed, as in designs with repeated measures). Degrees of
freedom are corrected for unequal variances (Huynh and Feldt 1976).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ptaskmodel.campaign.statistics import ROUNDING, SEED, holm, independent, same_each_time

if TYPE_CHECKING:
    import pandas

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
    """How much of the variation of each metric goes with each factor, and with pairs of them.

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
