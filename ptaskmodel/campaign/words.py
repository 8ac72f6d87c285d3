"""What a campaign found, in sentences: against the baseline, and what depends on what."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ptaskmodel.campaign.statistics import effects, means, paired

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
    varied = [name for name in factors if frame[name].nunique() > 1]
    for metric in metrics:
        table = effects(frame, varied, [metric])
        told = _against(frame, factors, metric, baseline, better.get(metric, 0))
        told += [] if baseline else _strongest(frame, metric, table)
        told += _apart(table, baseline)
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


def _strongest(frame: pandas.DataFrame, metric: str, table: pandas.DataFrame) -> list[str]:
    """The factor that most of the variation goes with, and its levels at both ends."""
    alone = table[table["with_factor"] == ""]
    if len(alone) < 2:
        return []
    most = alone.loc[alone["part"].idxmax()]
    found = means(frame, [most["factor"]], [metric]).sort_values("mean", kind="stable")
    if most["part"] < LITTLE or len(found) > MOST_LEVELS:
        return []
    levels = found[most["factor"]].tolist()
    ends = [
        f"{word} with {levels[k]} ({_amount(found['mean'].iloc[k])})"
        for word, k in (("least", 0), ("most", -1))
    ]
    return [f"{most['part']:.0%} of the variation goes with {most['factor']}, {' and '.join(ends)}"]


def _amount(value: float) -> str:
    """Four digits, and all of those before the point."""
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"


def _apart(table: pandas.DataFrame, baseline: Mapping[str, Any]) -> list[str]:
    """With which other factor the effect of the baseline's changes most."""
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
