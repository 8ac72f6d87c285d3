"""Sentences that summarise a campaign: differences from the baseline, effects and interactions.

The report shows them. A sentence claims a difference only if Holm's p value is below 0.05.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ptaskmodel.campaign.levels import kind_of, level_text, where_text, words_of
from ptaskmodel.campaign.statistics import MANY_LEVELS, SIGNIFICANT, effects, means, paired
from ptaskmodel.style.quantities import count, number, p_value

if TYPE_CHECKING:
    import pandas

MOST_EFFECTS = 3
# Part of the variation below which a factor beside others is not worth a sentence.
LITTLE = 0.01
MOST_LEVELS = 12


def in_short(
    frame: pandas.DataFrame,
    factors: Sequence[str],
    metrics: Sequence[str],
    baseline: Mapping[str, Any],
    better: Mapping[str, int],
    conditions: Sequence[str] = (),
) -> list[str]:
    """A sentence on each metric, and one on the tests behind them.

    frame: a row a run that was made. baseline: levels that others are compared with. better: +1 for
    metrics of which more is better, -1 for those of which less is. conditions: factors within whose
    levels runs are compared.
    """
    parts = effects(frame, factors, metrics)
    against = paired(frame, factors, metrics, baseline, conditions) if baseline else None
    found = []
    for metric in metrics:
        table = parts[parts["metric"] == metric]
        if against is None:
            told = _strongest(frame, metric, table)
        else:
            mine = against[against["metric"] == metric]
            told = _against(mine, baseline, better.get(metric, 0), conditions)
        told += _depends(table, baseline)
        if told:
            found.append(f"{words_of(metric)}: {'; '.join(told)}.")
    return [*found, _tests(parts if against is None else against)] if found else []


def _tests(tested: pandas.DataFrame) -> str:
    """How many seeds there are, and what tells apart."""
    seeds = int(tested["seeds"].max())
    if seeds < 2:
        return "One seed, or seeds without effect: no test and no interval; set repetitions."
    return (
        f"{seeds} independent seeds; runs with the same seed are averaged first. Significant: "
        f"Holm's p below {SIGNIFICANT:g}, over all levels and metrics."
    )


def _against(
    table: pandas.DataFrame, baseline: Mapping[str, Any], sign: int, conditions: Sequence[str]
) -> list[str]:
    """Each level against the baseline's, those told apart from it first."""
    named = [name for name in table.columns if name in baseline]
    base = level_text(tuple(baseline[name] for name in named))
    untested = table[table["p_holm"].isna()]
    sure = table[table["p_holm"] < SIGNIFICANT]
    order = sure["relative"].abs().sort_values(ascending=False, kind="stable").index
    told = [
        _difference(row, named, base, side, conditions)
        for rows, side in ((sure.loc[order], sign), (untested, 0))
        for row in rows.to_dict("records")
    ]
    told = _shortened(told)
    same = table[table["p_holm"] >= SIGNIFICANT]
    known = {*sure[named].itertuples(index=False, name=None)}
    alike = dict.fromkeys(same[named].itertuples(index=False, name=None))
    levels = [level_text(one) for one in alike if one not in known]
    if len(levels) > MOST_LEVELS:
        levels = [f"{len(levels)} of {len(table[named].drop_duplicates())} levels"]
    if levels:
        told.append(f"{', '.join(levels)} not significantly different from {base}")
    return told


def _shortened(told: list[str]) -> list[str]:
    """The first of them, and how many more there are."""
    if len(told) <= MOST_LEVELS:
        return told
    return [*told[:MOST_LEVELS], f"{len(told) - MOST_LEVELS} more levels differ less"]


def _difference(
    row: Mapping[Any, Any], named: Iterable[str], base: str, sign: int, conditions: Sequence[str]
) -> str:
    """How a level differs from the baseline's, in which condition."""
    less = row["difference"] < 0
    amount = number(abs(row["relative"]), "share") + (" less" if less else " more")
    verdict = "" if not sign else "better, " if less == (sign < 0) else "worse, "
    tested = row["p_holm"] < SIGNIFICANT
    why = f" ({verdict}{p_value(row['p_holm'])})" if tested else " (no test)"
    share = number(row["lower_in" if less else "higher_in"], "share")
    level = level_text(tuple(row[name] for name in named))
    where = where_text(conditions, [row[name] for name in conditions])
    text = f"{level} has {amount} than {base}{' at ' * bool(where)}{where}{why}"
    return f"{text}, in {share} of {count(row['pairs'], 'pair')}"


def _strongest(frame: pandas.DataFrame, metric: str, table: pandas.DataFrame) -> list[str]:
    """The factors that the variation goes with, and between which means."""
    alone = table[(table["with_factor"] == "") & table["p_holm"].notna()]
    sure = alone[alone["p_holm"] < SIGNIFICANT].sort_values("part", ascending=False, kind="stable")
    if not len(sure):
        return ["no factor has a significant effect"] if len(alone) else []
    told = []
    shown = sure[(sure["part"] >= LITTLE) | (sure["part"] == sure["part"].max())]
    for row in shown.head(MOST_EFFECTS).to_dict("records"):
        why = p_value(row["p_holm"])
        found = means(frame, [row["factor"]], [metric]).sort_values("mean", kind="stable")
        if len(found) <= MANY_LEVELS:
            ends = [
                f"{number(found['mean'].iloc[k], kind_of(metric))} with "
                f"{found[row['factor']].iloc[k]}"
                for k in (0, -1)
            ]
            why += f", means from {' to '.join(ends)}"
        part = number(row["part"], "share")
        told.append(f"{part} of the variation is explained by {row['factor']} ({why})")
    return told


def _depends(table: pandas.DataFrame, baseline: Mapping[str, Any]) -> list[str]:
    """On which other factors the effect of the baseline's depends."""
    pairs = table[(table["with_factor"] != "") & table["p_holm"].notna()]
    if baseline:
        named = list(baseline)
        pairs = pairs[pairs["factor"].isin(named) | pairs["with_factor"].isin(named)]
    sure = pairs[pairs["p_holm"] < SIGNIFICANT].sort_values("part", ascending=False, kind="stable")
    if len(pairs) and not len(sure):
        return ["no interaction of factors is significant"]
    told = []
    for row in sure.head(MOST_EFFECTS).to_dict("records"):
        one, other = row["factor"], row["with_factor"]
        if other in baseline and one not in baseline:
            one, other = other, one
        share = f"{number(row['part'], 'share')} of the variation, {p_value(row['p_holm'])}"
        told.append(f"the effect of {one} depends on {other} ({share})")
    return told
