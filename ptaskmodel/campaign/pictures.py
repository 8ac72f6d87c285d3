"""Pictures of a campaign: effects, interactions, differences to a baseline, and Pareto fronts."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ptaskmodel.campaign.campaign import Campaign
from ptaskmodel.campaign.levels import (
    conditions_of,
    within,
    words_of,
)
from ptaskmodel.campaign.statistics import (
    MANY_LEVELS,
    SIGNIFICANT,
    effects,
    means,
    p_text,
    paired,
    pareto,
)
from ptaskmodel.results.pictures.drawing import (
    new_figure,
    short_name,
)
from ptaskmodel.style.colours import LIGHT, category

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure


MOST_METRICS = 4
MOST_FACTORS = 6
# Fronts that are drawn, one for each condition.
MOST_FRONTS = 6
# Of more runs than these, so many are drawn where each is a point.
MOST_POINTS = 5000


def metrics_of(campaign: Campaign, frame: pandas.DataFrame) -> Sequence[str]:
    """Return the metrics of a `campaign` to show, columns of `frame`.

    These are those of the plan or of the kind of run, else all numeric columns.
    """
    if campaign.metrics():
        return campaign.metrics()
    known = {*campaign.plan.factors, "repetition", "status", "wall_s", "run"}
    return [name for name in frame.columns if name not in known]


def effects_figure(
    frame: pandas.DataFrame, factors: Sequence[str], metrics: Sequence[str]
) -> Figure:
    """A row for each metric, a column for each factor: means of its levels, with 95 % intervals."""
    shown_factors, shown_metrics = list(factors)[:MOST_FACTORS], list(metrics)[:MOST_METRICS]
    width = 1.2 + 2.5 * len(shown_factors)
    figure = new_figure(max(width, 4.0), 0.4 + 2.1 * len(shown_metrics))
    panels = figure.subplots(
        len(shown_metrics), len(shown_factors), sharey="row", sharex="col", squeeze=False
    )
    for row, metric in zip(panels, shown_metrics, strict=True):
        for panel, factor in zip(row, shown_factors, strict=True):
            _effect(panel, frame, factor, metric)
        row[0].set_ylabel(short_name(metric, 26), fontsize=8)
    for panel, factor in zip(panels[-1], shown_factors, strict=True):
        panel.set_xlabel(short_name(factor, 30))
    return figure


def _effect(panel: Any, frame: pandas.DataFrame, factor: str, metric: str) -> None:
    levels = list(dict.fromkeys(frame[factor]))
    if len(levels) > MANY_LEVELS and _are_numbers(levels):
        some = frame.iloc[:: -(-len(frame) // MOST_POINTS)]
        panel.plot(some[factor], some[metric], ".", color=LIGHT.soft, markersize=3, alpha=0.6)
    else:
        middle, reach = _means(frame, factor, metric, levels)
        places = _places(panel, levels)
        style = "o-" if _are_numbers(levels) else "o"
        panel.errorbar(places, middle, reach, fmt=style, color=LIGHT.ink, capsize=3, linewidth=1)
    _tidy(panel)


def _means(
    frame: pandas.DataFrame, factor: str, metric: str, levels: Sequence[Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Means of levels, and how far their intervals reach below and above."""
    found = means(frame, [factor], [metric]).set_index(factor).reindex(levels)
    ends = found[["low", "high"]].to_numpy(float).T
    middle = found["mean"].to_numpy(float)
    return middle, np.abs(np.nan_to_num(ends - middle))


def interaction_figure(
    frame: pandas.DataFrame, factors: Sequence[str], metrics: Sequence[str]
) -> Figure | None:
    """For each metric its two factors that depend on each other most: a line for each level.

    None with fewer than two factors that have levels.
    """
    names = [name for name in factors if frame[name].nunique() <= MANY_LEVELS]
    found = effects(frame, names, list(metrics)[:MOST_METRICS])
    pairs = found[(found["with_factor"] != "") & found["part"].notna()]
    if not len(pairs):
        return None
    best = pairs.loc[pairs.groupby("metric", sort=False)["part"].idxmax()]
    columns = min(len(best), 2)
    rows = -(-len(best) // columns)
    figure = new_figure(1.0 + 4.6 * columns, 3.4 * rows)
    panels = figure.subplots(rows, columns, squeeze=False).flat
    for panel, row in itertools.zip_longest(panels, best.itertuples()):
        if row is None:
            panel.set_axis_off()
            continue
        along, lines = sorted((row.factor, row.with_factor), key=lambda one: -frame[one].nunique())
        levels = list(dict.fromkeys(frame[along]))
        places = _places(panel, levels)
        for k, level in enumerate(dict.fromkeys(frame[lines])):
            middle, reach = _means(frame[frame[lines] == level], along, row.metric, levels)
            panel.errorbar(
                places, middle, reach, fmt="o-", color=category(k), capsize=3, linewidth=1,
                label=short_name(str(level)),
            )  # fmt: skip
        panel.set(xlabel=short_name(along, 30), ylabel=short_name(row.metric, 30))
        tested = "no test" if np.isnan(row.p_holm) else f"Holm's {p_text(row.p_holm)}"
        panel.set_title(f"interaction: {row.part:.0%} of the variation, {tested}", fontsize=9)
        panel.legend(title=short_name(lines), frameon=False, fontsize=8, title_fontsize=8)
        _tidy(panel)
    return figure


def differences_figure(
    frame: pandas.DataFrame,
    factors: Sequence[str],
    metrics: Sequence[str],
    baseline: Mapping[str, Any],
    better: Mapping[str, int],
) -> Figure | None:
    """Each level against the baseline's, run by run, with 95 % intervals; None without one.

    better: +1 for metrics of which more is better, -1 for those of which less is: of these what is
    told apart is a gain or a loss.
    """
    if not baseline:
        return None
    shown = list(metrics)[:MOST_METRICS]
    named = [name for name in factors if name in baseline]
    found = paired(frame, factors, shown, baseline)
    if not len(found):
        return None
    labels = [
        ", ".join(str(level) for level in levels) for levels in found[named].itertuples(index=False)
    ]
    rows = list(dict.fromkeys(labels))
    figure = new_figure(1.8 + 2.6 * len(shown), 1.4 + 0.34 * len(rows))
    panels = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    for panel, metric in zip(panels, shown, strict=True):
        part = found[found["metric"] == metric]
        places = [rows.index(labels[k]) for k in np.flatnonzero(found["metric"] == metric)]
        centre = part["relative"].to_numpy(float) * 100
        ends = part[["relative_low", "relative_high"]].to_numpy(float).T * 100
        reach = np.abs(np.nan_to_num(ends - centre))
        sure = part["p_holm"].to_numpy(float) < SIGNIFICANT
        for k, place in enumerate(places):
            sign = better.get(metric, 0) if sure[k] else 0
            colour = LIGHT.nothing if not sure[k] else LIGHT.ink
            if sign:
                colour = LIGHT.gain if centre[k] * sign > 0 else LIGHT.lose
            panel.errorbar(centre[k], place, xerr=reach[:, [k]], fmt="o", color=colour, capsize=3)
        panel.axvline(0.0, color="black", linewidth=0.8)
        panel.set_xlabel("% of the baseline")
        panel.set_title(short_name(metric, 30), fontsize=9)
        panel.set_yticks(range(len(rows)), [short_name(row, 32) for row in rows])
        panel.set_ylim(len(rows) - 0.5, -0.5)
        low, high = panel.get_xlim()
        panel.set_xlim(min(low, -0.1), max(high, 0.1))
        _tidy(panel)
    said = ", ".join(f"{name} = {value}" for name, value in baseline.items())
    figure.suptitle(f"against {said}", fontsize=10)
    return figure


def pareto_figure(
    frame: pandas.DataFrame,
    factors: Sequence[str],
    better: Mapping[str, int],
    conditions: Sequence[str] = (),
) -> Figure | None:
    """Means of two metrics of which more or less is better, the front joined; None without two.

    conditions: factors; each combination of their levels has a panel with a front of its own.
    """
    if len(better) < 2:
        return None
    across, up = list(better)[:2]
    parts = within(conditions, frame)[:MOST_FRONTS]
    columns = min(len(parts), 2)
    rows = -(-len(parts) // columns)
    figure = new_figure(6.0 * columns, 4.0 * rows)
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).flat
    choices = [name for name in factors if name not in conditions]
    words = {1: "more is better", -1: "less is better"}
    for panel, part in itertools.zip_longest(panels, parts):
        if part is None:
            panel.set_axis_off()
            continue
        levels, runs = part
        table = means(runs, choices, [across, up])
        wide = table.pivot_table(index=choices, columns="metric", values="mean", sort=False)
        signs = {across: better[across], up: better[up]}
        front = pareto(wide.reset_index(), signs).sort_values(across)
        panel.plot(wide[across], wide[up], "o", color=LIGHT.nothing, markersize=4)
        panel.plot(front[across], front[up], "o-", color=LIGHT.ink, linewidth=1)
        for row in front.to_dict("records"):
            label = ", ".join(str(row[name]) for name in choices)
            panel.annotate(
                short_name(label, 40), (row[across], row[up]), fontsize=8, xytext=(4, 4),
                textcoords="offset points",
            )  # fmt: skip
        where = ", ".join(f"{n} = {v}" for n, v in zip(conditions, levels, strict=True))
        panel.set_title(where, fontsize=9)
        panel.set(
            xlabel=f"{words_of(across)} ({words[better[across]]})",
            ylabel=f"{words_of(up)} ({words[better[up]]})",
        )
        _tidy(panel)
    return figure


def _are_numbers(levels: Sequence[object]) -> bool:
    return all(isinstance(level, int | float) and not isinstance(level, bool) for level in levels)


def _places(panel: Any, levels: Sequence[Any]) -> list[float]:
    """Where levels stand: numbers where they are, others in their order, named."""
    if _are_numbers(levels):
        if len(levels) <= MANY_LEVELS:
            panel.set_xticks(levels, [f"{level:g}" for level in levels])
        return [float(level) for level in levels]
    names = [short_name(str(level), 18) for level in levels]
    if sum(map(len, names)) > 24:
        panel.set_xticks(range(len(levels)), names, rotation=30, ha="right")
    else:
        panel.set_xticks(range(len(levels)), names)
    panel.set_xlim(-0.5, len(levels) - 0.5)
    return list(map(float, range(len(levels))))


def _tidy(panel: Any) -> None:
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(axis="y", color="#e5e5e5", linewidth=0.6)
    panel.set_axisbelow(True)


def figures(campaign: Campaign, frame: pandas.DataFrame) -> dict[str, Figure]:
    """Return the figures, by name, that a `campaign` allows; `frame`: its finished runs."""
    plan = campaign.plan
    factors = [name for name in plan.factors if frame[name].nunique() > 1]
    metrics = list(metrics_of(campaign, frame))
    if not factors or not metrics:
        return {}
    made = {
        "effects": effects_figure(frame, factors, metrics),
        "interactions": interaction_figure(frame, factors, metrics),
        "differences": differences_figure(
            frame, list(plan.factors), metrics, plan.baseline, plan.better
        ),
        "pareto": pareto_figure(
            frame,
            factors,
            {name: sign for name, sign in plan.better.items() if name in frame},
            conditions_of(plan, frame),
        ),
    }
    return {name: figure for name, figure in made.items() if figure is not None}
