"""What a campaign found, in sentences: against the baseline, and what depends on what."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ptaskmodel.campaign.statistics import effects, paired

if TYPE_CHECKING:
    import pandas

# Part of the variation below which two factors are said not to depend on each other.
LITTLE = 0.05
MOST_LEVELS = 12


def in_short(
    frame: pandas.DataFrame,
    factors: Sequence[str],
    metrics: Sequence[str],
    baseline: Mapping[str, Any],
    better: Mapping[str, int],
) -> list[str]:
    """Sentences on each metric.

    frame: a row a run that was made. baseline: levels that others are compared with. better: +1 for
    metrics of which more is better, -1 for those of which less is.
    """
    found = []
    for metric in metrics:
        told = _against(frame, factors, metric, baseline, better.get(metric, 0))
        told += _apart(frame, factors, metric, baseline)
        if told:
            found.append(f"{metric}: {'; '.join(told)}.")
    return found


def _against(
    frame: pandas.DataFrame,
    factors: Sequence[str],
    metric: str,
    baseline: Mapping[str, Any],
    sign: int,
) -> list[str]:
    """Each level against the baseline's, those told apart from it first."""
    if not baseline:
        return []
    table = paired(frame, factors, [metric], baseline)
    if not 0 < len(table) <= MOST_LEVELS:
        return []
    named = [name for name in factors if name in baseline]
    base = ", ".join(str(baseline[name]) for name in named)
    told, same = [], []
    for row in table.to_dict("records"):
        level = ", ".join(str(row[name]) for name in named)
        if math.isnan(row["half_interval"]) or abs(row["difference"]) <= row["half_interval"]:
            same.append(level)
            continue
        less = row["difference"] < 0
        verdict = "" if not sign else " (better)" if less == (sign < 0) else " (worse)"
        percent = 100 * abs(row["relative"])
        amount = f"{percent:,.0f} %" if percent >= 100 else f"{percent:.2g} %"
        amount += " less" if less else " more"
        share = row["lower_in" if less else "higher_in"]
        often = f"in {share:.0%} of {row['pairs']} pairs"
        told.append(f"{level} has {amount} than {base}{verdict}, {often}")
    if same:
        told.append(f"{', '.join(same)} not told apart from {base}")
    return told


def _apart(
    frame: pandas.DataFrame, factors: Sequence[str], metric: str, baseline: Mapping[str, Any]
) -> list[str]:
    """With which other factor the effect of the baseline's changes most."""
    varied = [name for name in factors if frame[name].nunique() > 1]
    table = effects(frame, varied, [metric])
    pairs = table[table["with_factor"] != ""]
    if baseline:
        named = list(baseline)
        pairs = pairs[pairs["factor"].isin(named) | pairs["with_factor"].isin(named)]
    if not len(pairs):
        return []
    most = pairs.loc[pairs["part"].idxmax()]
    one, other = most["factor"], most["with_factor"]
    if other in baseline and one not in baseline:
        one, other = other, one
    if most["part"] < LITTLE:
        return [f"what {one} does depends little on {other} ({most['part']:.1%} of the variation)"]
    return [f"what {one} does depends on {other} ({most['part']:.1%} of the variation)"]
