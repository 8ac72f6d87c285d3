"""Box plots of redirection over EASY, week by week."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from ptaskmodel.style.figures import CATEGORIES, LIGHT, picture, text_on

PANELS = (
    ("mean_bounded_slowdown", "mean bounded slowdown"),
    ("max_bounded_slowdown", "largest bounded slowdown"),
    ("mean_waiting_s", "mean waiting time"),
    ("max_waiting_s", "longest waiting time"),
)
COLOURS = CATEGORIES[:4]


@picture
def draw(output: Path, rows: list[dict[str, Any]]) -> list[Path]:
    """One figure a log, and one of all weeks together if there are several logs."""
    logs = sorted({row["log"] for row in rows})
    made = [_figure(output / f"redirection_{log}.png", log, _of(rows, log)) for log in logs]
    if len(logs) > 1:
        made.append(_figure(output / "redirection_all.png", "all logs", rows))
    return made


def _of(rows: list[dict[str, Any]], log: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["log"] == log]


def _figure(path: Path, title: str, rows: list[dict[str, Any]]) -> Path:
    """Four panels: by theta and alpha, the distribution over the weeks of the ratio to EASY."""
    alphas = sorted({row["alpha"] for row in rows})
    thetas = sorted({row["theta"] for row in rows})
    weeks = len({(row["log"], row["day"]) for row in rows})
    figure, axes = plt.subplots(2, 2, figsize=(13, 8), sharex=True)
    for axis, (name, label) in zip(axes.flat, PANELS, strict=True):
        for k, alpha in enumerate(alphas):
            values = [
                [
                    row[name] / row[f"{name}_easy"]
                    for row in rows
                    if row["alpha"] == alpha and row["theta"] == theta and row[f"{name}_easy"] > 0
                ]
                for theta in thetas
            ]
            places = [t + (k - (len(alphas) - 1) / 2) * 0.2 for t in range(len(thetas))]
            boxes = axis.boxplot(
                values, positions=places, widths=0.17, whis=(0, 100), patch_artist=True,
                manage_ticks=False,
            )  # fmt: skip
            for box, median in zip(boxes["boxes"], boxes["medians"], strict=True):
                box.set_facecolor(COLOURS[k % len(COLOURS)])
                median.set_color(text_on(COLOURS[k % len(COLOURS)]))
        axis.axhline(1.0, color=LIGHT.ink, linewidth=0.8, linestyle="--")
        axis.set_yscale("log")
        axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.set_xticks(range(len(thetas)), [str(theta) for theta in thetas])
        axis.set_title(label)
        axis.grid(visible=False, axis="x")
    for axis in axes[-1]:
        axis.set_xlabel("threshold theta")
    for axis in axes[:, 0]:
        axis.set_ylabel("redirection / EASY")
    handles = [
        Patch(color=COLOURS[k % len(COLOURS)], label=f"alpha {alpha:g}")
        for k, alpha in enumerate(alphas)
    ]
    figure.legend(handles=handles, loc="lower center", ncols=len(alphas))
    figure.suptitle(
        f"Redirection over EASY, {title}: {weeks} weeks, boxes quartiles, whiskers extremes"
    )
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path
