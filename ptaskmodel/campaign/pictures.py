"""Pictures of a campaign: effects, interactions, changes against a baseline, and Pareto fronts.

Each is rows of dots with intervals, of which `report` makes tables and `figures` pictures.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ptaskmodel.campaign.campaign import Campaign
from ptaskmodel.campaign.differences import (
    changes_of,
    compared,
    conditions_of,
    kind_of,
    level_text,
    where_text,
    words_of,
)
from ptaskmodel.campaign.statistics import (
    MANY_LEVELS,
    SIGNIFICANT,
    effects,
    means,
    pareto,
    within,
)
from ptaskmodel.results.pictures.charts import Dot, DotPanel, dots
from ptaskmodel.style.figures import SIGNS, finished, picture
from ptaskmodel.style.text import count, number, p_value

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

MOST_METRICS = 4
# Levels of a scale, such as a number that is drawn at random: parts of equal numbers of runs.
PARTS = 8
# Combinations that a picture shows, at most; a page has a table that is searched.
MOST_ROWS = 60
CHANGES = "small dots: each pair of runs; lines: 95 % intervals over seeds; colour: told apart"


class Rows(NamedTuple):
    """Names of rows, and what each has of some quantities.

    head: of the names. where: of which runs. key: what signs stand for.
    """

    head: str
    where: str
    key: str
    names: list[str]
    panels: list[DotPanel]


def metrics_of(campaign: Campaign, frame: pandas.DataFrame) -> Sequence[str]:
    """Return the metrics of a `campaign` to show, columns of `frame`.

    These are those of the plan or of the kind of run, else all numeric columns.
    """
    if campaign.metrics():
        return campaign.metrics()
    known = {*campaign.plan.factors, "repetition", "status", "wall_s", "run"}
    return [name for name in frame.columns if name not in known]


def mean_rows(frame: pandas.DataFrame, factors: Sequence[str], metrics: Sequence[str]) -> Rows:
    """Return the means of each combination of levels of the `factors`, with their intervals.

    frame: a row a run. metrics: its columns.
    """
    table = means(frame, factors, metrics)
    every = list(dict.fromkeys(table[list(factors)].itertuples(index=False, name=None)))
    place = {levels: k for k, levels in enumerate(every)}
    rows: dict[str, list[list[Dot]]] = {metric: [[] for _ in every] for metric in metrics}
    for row in table.to_dict("records"):
        k = place[tuple(row[name] for name in factors)]
        rows[row["metric"]][k].append(_mean(row))
    panels = [DotPanel(words_of(metric), kind_of(metric), rows[metric]) for metric in metrics]
    return Rows(" + ".join(factors), "", "", [level_text(levels) for levels in every], panels)


def _mean(row: Mapping[Any, Any], role: str = "ink", sign: str = SIGNS[0], name: str = "") -> Dot:
    kind = kind_of(row["metric"])
    mean, low, high = (number(row[one], kind) for one in ("mean", "low", "high"))
    text = f"{name}{': ' * bool(name)}{mean}, 95 % interval {low} to {high}, "
    text += f"{count(row['runs'], 'run')}, {count(row['seeds'], 'seed')}"
    return Dot(row["mean"], row["low"], row["high"], role, sign, text=text)


def factor_rows(
    frame: pandas.DataFrame, factors: Sequence[str], metrics: Sequence[str]
) -> list[Rows]:
    """Return, for each of the `factors`, means of its levels over all else.

    Of a scale, means of its parts. frame: a row a run. metrics: its columns.
    """
    import pandas

    found = []
    for name in factors:
        levels = frame[name]
        if levels.nunique() > MANY_LEVELS and pandas.api.types.is_numeric_dtype(levels):
            parts = pandas.qcut(levels, PARTS, duplicates="drop")
            texts = [f"{number(one.left)} to {number(one.right)}" for one in parts.cat.categories]
            order = levels.sort_values(kind="stable").index
            frame = frame.loc[order]
            levels = parts.loc[order].cat.rename_categories(texts).astype(str)
        rows = mean_rows(frame.assign(**{name: levels}), [name], metrics)
        found.append(rows._replace(key="means over all other factors"))
    return found


def interactions(
    frame: pandas.DataFrame, factors: Sequence[str], metrics: Sequence[str]
) -> Iterator[Rows]:
    """Yield, for each of the `metrics`, its two `factors` that depend on each other significantly.

    Of more pairs the one that explains most. Levels of one are rows, of the other signs.
    frame: a row a run.
    """
    names = [name for name in factors if frame[name].nunique() <= MANY_LEVELS]
    found = effects(frame, names, metrics)
    sure = found[(found["with_factor"] != "") & (found["p_holm"] < SIGNIFICANT)]
    best = sure.loc[sure.groupby("metric", sort=False)["part"].idxmax()]
    for pair in best.to_dict("records"):
        along, by = sorted((pair["factor"], pair["with_factor"]), key=lambda n: -frame[n].nunique())
        levels = list(dict.fromkeys(frame[along]))
        signs = {level: k for k, level in enumerate(dict.fromkeys(frame[by]))}
        table = means(frame, [along, by], [pair["metric"]]).to_dict("records")
        rows = [[_mean(row, *_looks(signs[row[by]]), f"{by} = {row[by]}")
                 for row in table if row[along] == level] for level in levels]  # fmt: skip
        key = ", ".join(f"{SIGNS[k % len(SIGNS)]} {by} = {level}" for level, k in signs.items())
        part, p = number(pair["part"], "share"), p_value(pair["p_holm"])
        where = f"{words_of(pair['metric'])}: {part} of the variation, {p}"
        panel = DotPanel(words_of(pair["metric"]), kind_of(pair["metric"]), rows)
        yield Rows(along, where, key, [str(level) for level in levels], [panel])


def _looks(k: int) -> tuple[str, str]:
    """The role and the sign of the level of number `k`."""
    return (f"category-{k}" if k < len(SIGNS) else "soft"), SIGNS[k % len(SIGNS)]


def fronts(
    frame: pandas.DataFrame,
    factors: Sequence[str],
    better: Mapping[str, int],
    conditions: Sequence[str] = (),
) -> list[Rows]:
    """Return means of each combination in two metrics, those first that no other beats in both.

    Empty without two metrics of which it is known whether more or less is better. frame: a row a
    run. better: +1 for metrics of which more is better, -1 for those of which less is. conditions:
    those of the `factors` within whose levels this is done.
    """
    if len(better) < 2:
        return []
    across, up = list(better)[:2]
    choices = [name for name in factors if name not in conditions]
    words = {1: "more", -1: "less"}
    better_in = ", ".join(f"{words[better[name]]} {words_of(name)}" for name in (across, up))
    key = f"{SIGNS[0]} no other beats it in both, {SIGNS[3]} another does; better: {better_in}"
    found = []
    for levels, runs in within(conditions, frame):
        table = means(runs, choices, [across, up])
        wide = table.pivot_table(index=choices, columns="metric", values="mean", sort=False)
        wide = wide.reset_index().sort_values(across, ascending=better[across] < 0)
        front = set(pareto(wide, {across: better[across], up: better[up]}).index)
        order = sorted(wide.index, key=lambda k: k not in front)
        place = {tuple(row): k for k, row in wide[choices].iterrows()}
        mine = {(place[tuple(row[n] for n in choices)], row["metric"]): row
                for row in table.to_dict("records")}  # fmt: skip
        panels = [
            DotPanel(words_of(metric), kind_of(metric),
                     [[_mean(mine[k, metric], "ink" if k in front else "soft",
                             SIGNS[0] if k in front else SIGNS[3])] for k in order])
            for metric in (across, up)
        ]  # fmt: skip
        names = [level_text(tuple(wide.loc[k, choices])) for k in order]
        where = where_text(conditions, levels)
        found.append(Rows(" + ".join(choices), where, key, names, panels))
    return found


def figures(campaign: Campaign, frame: pandas.DataFrame) -> dict[str, Figure]:
    """Return the figures, by name, that a `campaign` allows; `frame`: its finished runs."""
    plan = campaign.plan
    factors = [name for name in plan.factors if frame[name].nunique() > 1]
    metrics = list(metrics_of(campaign, frame))
    if not factors or not metrics:
        return {}
    shown, conditions = metrics[:MOST_METRICS], conditions_of(plan, frame)
    better = {name: sign for name, sign in plan.better.items() if name in frame}
    changes = [
        Rows("", found.where, CHANGES, found.names, found.panels)
        for one in compared(plan, frame, shown)[:1]
        for found in changes_of(plan, one, shown, None)
    ]
    base = level_text(tuple(plan.baseline.values())) or "the first level"
    drawn = {
        "effects": (factor_rows(frame, factors, shown), "What goes with each factor"),
        "interactions": (
            list(interactions(frame, factors, shown)),
            "Which factors depend on each other",
        ),
        "differences": (changes, f"What each level changes against {base}"),
        "pareto": (fronts(frame, factors, better, conditions), "Trade-offs"),
    }
    return {name: _figure(rows, title) for name, (rows, title) in drawn.items() if rows}


@picture
def _figure(groups: Sequence[Rows], title: str) -> Figure:
    """Rows below each other, each group below a line that says what it is."""
    order = list(dict.fromkeys(panel.name for group in groups for panel in group.panels))
    names: list[str] = []
    rows: dict[str, list[Sequence[Dot]]] = {name: [] for name in order}
    panels = {panel.name: panel for group in groups for panel in group.panels}
    said = []
    for group in groups:
        names += [group.where or group.head, *group.names[:MOST_ROWS]]
        mine = {panel.name: panel.rows for panel in group.panels}
        for name in order:
            empty: list[Sequence[Dot]] = [[]] * len(group.names)
            rows[name] += [[], *list(mine.get(name, empty))[:MOST_ROWS]]
        said += [
            f"{name}: {dot.text}"
            for panel in group.panels
            for name, its in zip(group.names, panel.rows, strict=True)
            for dot in its
        ]
    shown = [panels[name]._replace(rows=rows[name]) for name in order]
    figure = dots(names, shown, textwrap.fill(groups[0].key, 110))
    return finished(figure, title, "", f"{title}. {'; '.join(said[:3])}.")
