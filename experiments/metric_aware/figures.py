"""The published figures, from these runs: grids, queue depth, utilisation, radar charts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from relations import COLUMNS, picked

from ptaskmodel.style.figures import CATEGORIES, LIGHT, picture

Row = Mapping[str, Any]
COLOURS = (*CATEGORIES, LIGHT.ink)
PLACES = {"buddy": "partitions", "first-fit": "first fit"}


@picture
def draw(
    output: Path, rows: Sequence[Row], series: Mapping[str, Mapping[str, list[float]]]
) -> list[Path]:
    """One page of pictures for each log."""
    made = []
    for log in dict.fromkeys(row["log"] for row in rows):
        own = [row for row in rows if row["log"] == log and not row["allocation"]]
        made.append(_grid(output / f"grid_{log}.png", log, own))
        told = {name: s for name, s in series.items() if name.startswith(f"{log}_bf")}
        made.append(_over_time(output / f"over_time_{log}.png", log, told))
        made.append(_radar(output / f"radar_{log}.png", log, own))
        contending = [row for row in rows if row["log"] == log and row["allocation"]]
        if contending:
            made.append(_contention(output / f"contention_{log}.png", log, contending))
    return made


def _grid(path: Path, log: str, rows: Sequence[Row]) -> Path:
    """Against the balance, a line for each window; the loss of capacity against the window."""
    static = [row for row in rows if row["adaptive"] == "none"]
    figure, axes = plt.subplots(2, 2, figsize=(11, 8), layout="constrained")
    panels = (
        ("waiting_min", "mean wait (min)"),
        ("bounded_slowdown", "mean bounded slowdown"),
        ("unfair_by_runtimes", "unfair jobs (by run times)"),
    )
    for axis, (column, label) in zip(axes.flat, panels, strict=False):
        for k, window in enumerate(sorted({row["window"] for row in static})):
            line = sorted(
                ((row["balance"], row[column]) for row in static if row["window"] == window),
                reverse=True,
            )
            xs, ys = zip(*line, strict=True)
            axis.plot(xs, ys, "o-", color=COLOURS[k], label=f"W {window}")
        axis.set_xlim(1.05, -0.05)
        axis.set_xlabel("balance BF (1: first come first served, 0: shortest first)")
        axis.set_ylabel(label)
        axis.set_ylim(bottom=0)
        axis.legend()
    last = axes.flat[3]
    for k, balance in enumerate(sorted({row["balance"] for row in static}, reverse=True)):
        line = sorted(
            (row["window"], row["loss_of_capacity"]) for row in static if row["balance"] == balance
        )
        xs, ys = zip(*line, strict=True)
        last.plot(xs, ys, "o-", color=COLOURS[k], label=f"BF {balance:g}")
    last.set_xticks(sorted({row["window"] for row in static}))
    last.set_xlabel("window W")
    last.set_ylabel("loss of capacity (%)")
    last.set_ylim(bottom=0)
    last.legend()
    figure.suptitle(f"{log}: balance and window")
    return _saved(figure, path)


def _over_time(path: Path, log: str, series: Mapping[str, Mapping[str, list[float]]]) -> Path:
    """Queue depth of balances and of adaptive ones; utilisation without and with tuned windows."""
    figure, axes = plt.subplots(2, 2, figsize=(12, 8), layout="constrained")
    shown = {
        "bf1_w1_none": "BF 1",
        "bf0.75_w1_none": "BF 0.75",
        "bf0.5_w1_none": "BF 0.5",
        "bf1_w1_balance": "BF adaptive",
        "bf1_w1_both": "2D adaptive",
    }
    for axis, scale in zip(axes[0], ("linear", "log"), strict=True):
        for k, (name, label) in enumerate(shown.items()):
            one = series.get(f"{log}_{name}")
            if one:
                axis.plot(
                    one["hours"],
                    one["queue_depth_min"],
                    color=COLOURS[k],
                    label=label,
                    lw=3 - 0.5 * k,
                )
        axis.set_yscale(
            "symlog" if scale == "log" else "linear", **({"linthresh": 1} if scale == "log" else {})
        )
        axis.yaxis.set_major_formatter("{x:,g}")
        axis.set_xlabel("time (h)")
        axis.set_ylabel("queue depth (min)")
        axis.set_title(f"{scale} axis")
        axis.legend()
    for axis, name, title in zip(
        axes[1], ("bf1_w1_none", "bf1_w1_window"), ("BF 1, W 1", "W adaptive"), strict=True
    ):
        one = series.get(f"{log}_{name}", {})
        for k, key in enumerate(key for key in one if key.startswith("utilisation")):
            axis.plot(one["hours"], one[key], color=COLOURS[k], label=f"mean of {key[12:-1]} h")
        axis.set_ylim(0, 1.02)
        axis.set_xlabel("time (h)")
        axis.set_ylabel("utilisation")
        axis.set_title(title)
        axis.legend()
    figure.suptitle(f"{log}: the first 200 hours")
    return _saved(figure, path)


def _radar(path: Path, log: str, rows: Sequence[Row]) -> Path:
    """Each measure as a part of the largest: the smaller the triangle, the better."""
    chosen = picked(rows)
    most = {c: max(float(row[c]) for row in chosen.values()) or 1.0 for c in COLUMNS}
    figure = plt.figure(figsize=(8, 6), layout="constrained")
    axis = figure.add_subplot(projection="polar")
    angles = [math.pi / 2 + 2 * math.pi * k / 3 for k in range(3)]
    for k, (name, row) in enumerate(chosen.items()):
        values = [100 * float(row[c]) / most[c] for c in COLUMNS]
        width = 4 - 0.4 * k  # of lines that coincide each is seen
        axis.plot(
            [*angles, angles[0]], [*values, values[0]], color=COLOURS[k], label=name, lw=width
        )
    axis.set_xticks(angles, ["wait", "unfair jobs", "loss of capacity"])
    axis.tick_params(axis="x", pad=14)
    axis.set_rlabel_position(90)
    axis.set_ylim(0, 105)
    axis.legend(loc="upper left", bbox_to_anchor=(1.1, 1.0))
    axis.set_title(f"{log}: % of the largest, smaller is better")
    return _saved(figure, path)


def _contention(path: Path, log: str, rows: Sequence[Row]) -> Path:
    """The seven configurations with jobs that feel contention, by allocation."""
    figure, axes = plt.subplots(1, 3, figsize=(13, 4.5), layout="constrained")
    where = sorted({row["allocation"] for row in rows})
    panels = (
        ("waiting_min", "mean wait (min)"),
        ("loss_of_capacity", "loss of capacity (%)"),
        ("contention_slowdown", "mean contention slowdown"),
    )
    for axis, (column, label) in zip(axes, panels, strict=True):
        for k, allocation in enumerate(where):
            chosen = picked(rows, allocation)
            places = [place + (k - 1) * 0.27 for place in range(len(chosen))]
            axis.bar(
                places, [row[column] for row in chosen.values()], 0.25, color=COLOURS[k],
                label=PLACES.get(allocation, allocation),
            )  # fmt: skip
        axis.set_xticks(range(len(chosen)), chosen, rotation=35, ha="right")
        axis.grid(visible=False, axis="x")
        axis.set_ylabel(label)
    axes[2].set_ylim(bottom=1.0)
    axes[0].legend()
    figure.suptitle(f"{log}: parallel tasks on a torus of {8 * 4 * 4} hosts")
    return _saved(figure, path)


def _saved(figure: Any, path: Path) -> Path:
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path
