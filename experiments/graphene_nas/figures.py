"""Measured times by company, beside what models predict of all of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ptaskmodel.style.figures import CATEGORIES, LIGHT, new_figure, picture

BINS = np.array([0.0, 0.1, 0.25, 0.4, 0.55, 0.7, 1.0])


@picture
def company_figure(runs: Any, effects: Any, groups: Any) -> Figure:
    """Left: relative times by company, means and their intervals; right: effects and intervals."""
    figure = new_figure(11.0, 4.2)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.15))
    colours = dict(zip(groups, (LIGHT.soft, *CATEGORIES[:2]), strict=True))
    relative = runs["time_s"] / runs.groupby(["benchmark", "class", "processes", "machine"])[
        "time_s"
    ].transform("mean")
    for shift, (group, chosen) in enumerate(groups.items()):
        own = chosen(runs)
        part = np.digitize(runs["company"][own], BINS[1:-1])
        values = 100 * (relative[own].to_numpy() - 1)
        places, means, reach = [], [], []
        for k in range(len(BINS) - 1):
            inside = values[part == k]
            if len(inside) > 20:
                places.append(100 * runs["company"][own].to_numpy()[part == k].mean() + shift)
                means.append(inside.mean())
                reach.append(1.96 * inside.std() / np.sqrt(len(inside)))
        left.errorbar(places, means, reach, fmt="o-", color=colours[group], capsize=3, label=group,
                      linewidth=1)  # fmt: skip
    left.axhline(0.0, color=LIGHT.ink, linewidth=0.8)
    left.set(xlabel="other nodes in parallel jobs meanwhile (%)", ylabel="time over its mean (%)")
    left.set_ylim(-2, 2)
    left.legend()
    sources = list(dict.fromkeys(effects["source"]))
    for k, (group, colour) in enumerate(colours.items()):
        own = effects[effects["jobs"] == group].set_index("source").loc[sources]
        places = np.arange(len(sources)) + (k - 1) * 0.2
        right.errorbar(
            own["effect"], places,
            xerr=np.abs(np.array([own["effect"] - own["low"], own["high"] - own["effect"]])),
            fmt="o", color=colour, capsize=3, label=group,
        )  # fmt: skip
    labels = [name if name == "measured" else f"predicted: {name}" for name in sources]
    right.set_yticks(range(len(sources)), labels)
    right.invert_yaxis()
    right.axvline(0.0, color=LIGHT.ink, linewidth=0.8)
    right.set_xscale("symlog", linthresh=1.0)
    right.set_xticks([-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 10.0, 30.0, 100.0])
    right.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    right.set_xlim(min(-1.0, 1.2 * effects["low"].min()), max(60.0, 1.2 * effects["high"].max()))
    right.set_xlabel("longer with all other nodes in parallel jobs (%)")
    return figure
