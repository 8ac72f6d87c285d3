"""The pictures of the study, one a part that has one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import Row
from matplotlib.figure import Figure

from ptaskmodel.style.figures import CATEGORIES, LIGHT, picture

TITLES = {
    "waiting_s": "mean wait (s)",
    "response_s": "mean response (s)",
    "slowdown": "mean slowdown",
    "weighted_slowdown": "mean slowdown, weighted by size",
}
KINDS = {"knl": "large part", "slx": "small part"}
# Of starts, by column: how far below the line of the workload, colour, size, and whose they are.
GAPS = (
    ("real_largest_gap_s", 0.15, LIGHT.soft, 7, "real runs against each other"),
    ("largest_gap_s", -0.15, CATEGORIES[0], 5, "simulated, free-running, against each real run"),
)


@picture
def draw(part: str, rows: Sequence[Row], place: Path) -> None:
    """Draw the picture of a part, if it has one."""
    if part in DRAWN:
        figure = DRAWN[part](rows)
        figure.savefig(place / f"{part}.png", dpi=110, facecolor="white")


def accuracy(rows: Sequence[Row]) -> Figure:
    """The largest gap of a start, simulated against each recorded run, and between these."""
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    axes = figure.add_subplot()
    names = list(dict.fromkeys(row["workload"] for row in rows))
    for row in rows:
        k = names.index(row["workload"])
        for key, off, colour, size, label in GAPS:
            axes.plot(
                max(row[key], 0.5), k + off, "o", color=colour, markersize=size,
                label=None if row is not rows[0] else label,
            )  # fmt: skip
    axes.set_yticks(range(len(names)))
    axes.set_yticklabels(names)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("largest gap of a start (s; half a second stands for none)")
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.legend(loc="lower right")
    return figure


def _bars(axes: Any, groups: Sequence[str], series: dict[str, list[float]]) -> None:
    """Bars side by side, one colour a series."""
    width = 0.8 / len(series)
    for k, (name, values) in enumerate(series.items()):
        places = np.arange(len(groups)) + (k - (len(series) - 1) / 2) * width
        bars = axes.bar(places, values, width, color=CATEGORIES[k % 3], label=name)
        axes.bar_label(bars, [_short(value) for value in values])
    axes.set_xticks(range(len(groups)))
    axes.set_xticklabels(groups)
    axes.set_ylim(0.0, 1.2 * max(max(values) for values in series.values()) or 1.0)
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.legend(loc="upper center", ncols=len(series))
    axes.grid(visible=False, axis="x")


def _short(value: float) -> str:
    """Three digits at most; thousands as 1.2k."""
    return f"{value / 1000:.3g}k" if value >= 1000 else f"{value:.3g}"


def separate(rows: Sequence[Row]) -> Figure:
    """Mean waits of both kinds of nodes under one controller and two, with and without costs."""
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    keys = list(dict.fromkeys((row["test_s"], row["kind"]) for row in rows))
    groups = [f"{KINDS[kind]},\n{test:g} s a test" for test, kind in keys]
    for axes, column, title in (
        (left, "waiting_h", "mean wait (h)"),
        (right, "at_limit_%", "backfill cycles at bf_max_time (%)"),
    ):
        series = {
            f"{count} controller{'s' * (count > 1)}": [
                next(r[column] for r in rows if (r["test_s"], r["kind"]) == key
                     and r["controllers"] == count)
                for key in keys
            ]
            for count in (1, 2)
        }  # fmt: skip
        _bars(axes, groups, series)
        axes.set_title(title)
    return figure


def sharing(rows: Sequence[Row]) -> Figure:
    """Mean waits and contention slowdowns, by the way of sharing and the use of memory."""
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    memory = list(dict.fromkeys(row["memory"] for row in rows))
    ways = list(dict.fromkeys(row["sharing"] for row in rows))
    for axes, column, title in (
        (left, "waiting_h", "mean wait (h)"),
        (right, "small_contention", "mean contention slowdown of jobs below a node"),
    ):
        series = {
            way: [
                next(r[column] for r in rows if (r["sharing"], r["memory"]) == (way, use))
                for use in memory
            ]
            for way in ways
        }
        _bars(axes, memory, series)
        axes.set_title(title)
        axes.set_xlabel("memory bandwidth that a job uses")
    return figure


def suspension(rows: Sequence[Row]) -> Figure:
    """The thesis' measures by policy and log: means over orders."""
    figure = Figure(figsize=(10, 6.5), layout="constrained")
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    logs = list(dict.fromkeys(row["log"] for row in rows))
    for axes, column in zip(figure.subplots(2, 2).flat, TITLES, strict=True):
        series = {
            log: [
                float(np.mean([r[column] for r in rows if (r["log"], r["policy"]) == (log, each)]))
                for each in policies
            ]
            for log in logs
        }
        _bars(axes, policies, series)
        axes.set_title(TITLES[column])
    return figure


DRAWN = {
    "accuracy": accuracy,
    "separate": separate,
    "sharing": sharing,
    "suspension": suspension,
}
