"""The catalogue of pictures: each function takes `Results` and returns a matplotlib figure.

If there is too much to draw one by one, values are aggregated or sampled, and the title says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results import PICTURES
from ptaskmodel.results.loading import Results, results_of
from ptaskmodel.results.pictures import mpi as mpi_pictures
from ptaskmodel.results.pictures import slurm as slurm_pictures
from ptaskmodel.results.pictures.drawing import (
    BLUE,
    GREEN,
    NEEDS_ATTRIBUTION,
    RED,
    check_picture,
    clock_text,
    colour_of,
    heat,
    host_ticks,
    natural,
    new_figure,
    save,
    short_name,
    stopped_strip,
    time_unit,
    use_bar,
    use_scale,
)
from ptaskmodel.results.pictures.gantt import gantt
from ptaskmodel.results.pictures.load import machine_load, power_over_time, queue_over_time
from ptaskmodel.results.pictures.topology import topology
from ptaskmodel.results.pictures.waiting import waiting_figure
from ptaskmodel.results.states import is_cut_off
from ptaskmodel.results.tables import slurm_reading

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_LABELS = 60
MAX_LINES = 300
MAX_ROWS = 60
NAMED_LINES = 10
REPLAY_FUNCTIONS: Mapping[str, Callable[[Path], Figure]] = {
    "times": mpi_pictures.times,
    "matrix": mpi_pictures.matrix,
}


def progress(results: Results) -> Figure:
    """How much of each task is done: straight between the dates at which its limit changes."""
    if not results.limits:
        raise PTaskModelError(f"{results.directory}: {NEEDS_ATTRIBUTION}")
    lines: dict[str, list[tuple[float, float]]] = {}
    for interval in results.limits:
        if interval.limited_by == "waiting":
            continue
        points = lines.setdefault(interval.task_id, [(interval.start_s, 0.0)])
        points.append((interval.end_s, interval.progress))
    lasted = sorted(points[-1][0] - points[0][0] for points in lines.values())
    span_s = results.end_s
    from_start = lasted[len(lasted) // 2] < results.end_s / 50 and len(lines) > NAMED_LINES
    if from_start:
        span_s = lasted[-1]
    unit, unit_name = time_unit(span_s)
    figure = new_figure(10.0, 5.0)
    axes = figure.add_subplot()
    names = list(lines)
    step = math.ceil(len(names) / MAX_LINES)
    shown = names[:: max(step, 1)]
    title = f"Progress of {len(names):,} {results.what}s"
    if step > 1:
        title = f"Progress of {len(shown):,} of {len(names):,} {results.what}s (one in {step})"
    from matplotlib.collections import LineCollection

    segments = []
    for name in shown:
        since = lines[name][0][0] if from_start else 0.0
        segments.append([((date - since) / unit, 100 * part) for date, part in lines[name]])
    few = len(shown) <= NAMED_LINES
    colours = [colour_of(k) for k in range(len(shown))]
    wide, alpha = (2.0, 1.0) if few else (1.0, 0.6)
    axes.add_collection(LineCollection(segments, colors=colours, linewidths=wide, alpha=alpha))
    if few:
        styles = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
        for k, points in enumerate(segments):
            xs, ys = zip(*points, strict=True)
            axes.plot(
                xs, ys, styles[k], color=colours[k], label=short_name(shown[k]), markersize=5,
                markeredgecolor="white",
            )  # fmt: skip
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    axes.set_ylim(0.0, 103.0)
    axes.autoscale_view(scaley=False)
    axes.set_xlim(left=0.0)
    if not from_start:
        stopped_strip(axes, results, unit)
    axes.set_xlabel(
        f"time since the start of each {results.what} ({unit_name})"
        if from_start
        else f"time ({unit_name})"
    )
    axes.set_ylabel("progress (% of the stages)")
    axes.grid(alpha=0.3)
    axes.set_title(title, fontsize=10, loc="left")
    return figure


def utilisation(results: Results, kind: str = "link") -> Figure:
    """What part of each link (or host) is used over time; of many, the most used."""
    table = {name: spans for (name, its), spans in results.utilisation.items() if its == kind}
    if not results.utilisation:
        raise PTaskModelError(f"{results.directory}: {NEEDS_ATTRIBUTION}")
    if not table:
        raise PTaskModelError(f"{results.directory}: no {kind} was used; nothing to draw")
    used = {name: sum((b - a) * share for a, b, share in spans) for name, spans in table.items()}
    names = sorted(sorted(used, key=natural), key=lambda name: -used[name])[:MAX_ROWS]
    names.sort(key=natural)
    width = min(b - a for spans in table.values() for a, b, _ in spans)
    end = max(spans[-1][1] for spans in table.values())
    bins = max(round(end / width), 1)
    grid = np.zeros((len(names), bins))
    for row, name in enumerate(names):
        for a, _, share in table[name]:
            grid[row, min(round(a / width), bins - 1)] = 100 * share
    unit, unit_name = time_unit(end)
    figure = new_figure(10.0, min(max(2.5, 1.2 + 0.25 * len(names)), 11.0))
    axes = figure.add_subplot()
    image = axes.imshow(
        grid, aspect="auto", cmap=heat(), interpolation="nearest", norm=use_scale(),
        extent=(0.0, end / unit, len(names) - 0.5, -0.5),
    )  # fmt: skip
    use_bar(figure, image, axes, f"mean use of the {kind} (% of its capacity); grey: none", 0.15)
    axes.set_xlim(0.0, max(results.end_s, width) / unit)
    stopped_strip(axes, results, unit)
    host_ticks(axes, names, 60)
    axes.set_xlabel(f"time ({unit_name})")
    title = f"Use of {len(names):,} {kind}s, one cell is {clock_text(width)}"
    if len(names) < len(table):
        title = f"Use of the {len(names)} most used of {len(table):,} {kind}s, one cell is "
        title += clock_text(width)
    axes.set_title(title, fontsize=10, loc="left")
    return figure


def slowdowns(results: Results) -> Figure:
    """How many tasks were slowed down how much: the whole distribution, and its quantiles.

    Of those that were cut off, by what they had done, a dashed curve besides.
    """
    known = [task for task in results.tasks if task.slowdown is not None]
    if not known:
        raise PTaskModelError(f"{results.directory}: no slowdowns there; {NEEDS_ATTRIBUTION}")
    slowed = np.array([task.slowdown for task in known], dtype=np.float64)
    cut = np.sort(slowed[[is_cut_off(task.state) for task in known]])
    values = np.maximum(np.sort(slowed), 1e-9)
    figure = new_figure(7.5, 4.5)
    axes = figure.add_subplot()
    part = 100.0 * np.arange(1, len(values) + 1) / len(values)
    axes.step(
        np.concatenate([[min(values[0], 1.0)], values]), np.concatenate([[0.0], part]),
        where="post", color=BLUE, linewidth=2,
    )  # fmt: skip
    if len(cut):
        below = np.concatenate([[0.0], 100.0 * np.arange(1, len(cut) + 1) / len(cut)])
        axes.step(
            np.concatenate([[min(cut[0], 1.0)], cut]), below, where="post", color=RED,
            linewidth=1.5, linestyle="--", label=f"the {len(cut):,} that were cut off",
        )  # fmt: skip
    if len(values) <= MAX_LABELS:
        axes.plot(values, part, "o", color=BLUE, markersize=4)
    for quantile, colour in ((50, GREEN), (95, RED)):
        x = float(values[math.ceil(quantile / 100 * len(values)) - 1])
        axes.axvline(x, color=colour, linestyle="--", linewidth=1.2, label=f"{quantile} %: {x:.3g}")
    if values[-1] > 20 * values[0]:
        axes.set_xscale("log")
    axes.set_ylim(0.0, 102.0)
    axes.set_xlabel("contention slowdown (time taken / time alone of what was done)")
    axes.set_ylabel(f"{results.what}s slowed down at most that much (%)")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right", frameon=True)
    missing = len(results.tasks) - len(values)
    title = f"Contention slowdown of {len(values):,} {results.what}s; mean {values.mean():.3g}"
    if missing:
        title = title.replace(f" {results.what}s", f" of {len(results.tasks):,} {results.what}s")
    axes.set_title(title, fontsize=10, loc="left")
    return figure


# The functions of `results.PICTURES`.
FUNCTIONS: Mapping[str, Callable[[Results], Figure]] = {
    "gantt": gantt,
    "progress": progress,
    "links": utilisation,
    "hosts": lambda results: utilisation(results, "host"),
    "topology": topology,
    "slowdowns": slowdowns,
    "load": lambda results: (
        slurm_pictures.load if slurm_reading.is_slurm(results.summary) else machine_load
    )(results),
    "queue": queue_over_time,
    "waits": lambda results: (
        slurm_pictures.waits if slurm_reading.is_slurm(results.summary) else waiting_figure
    )(results),
    "reasons": slurm_pictures.reasons,
    "backfill": slurm_pictures.backfill,
    "power": power_over_time,
}


def draw_results(
    results: Results | str | Path,
    kind: str,
    output: str | Path,
    colour: str = "mean",
    *,
    since_s: float | None = None,
    until_s: float | None = None,
    messages: bool = True,
) -> None:
    """Write a picture of results, or of those in a directory.

    kind: one of `results.PICTURES`. output: a .png, .svg or .pdf file. colour: one of
    `results.COLOURS`, the meaning of colours of a topology. since_s, until_s, messages: for
    ``ranks``, which part of the run to draw, and whether to draw messages. Raises PTaskModelError
    if the results cannot be read, have nothing to draw, or the file cannot be written.
    """
    check_picture(output)
    if kind not in PICTURES:
        raise PTaskModelError(f"picture {kind!r} is not known; choose one of {', '.join(PICTURES)}")
    if kind == "ranks" or kind in REPLAY_FUNCTIONS:
        directory = results.directory if isinstance(results, Results) else Path(results)
        if kind == "ranks":
            save(mpi_pictures.ranks(directory, since_s, until_s, messages), output)
        else:
            save(REPLAY_FUNCTIONS[kind](directory), output)
        return
    results = results_of(results)
    save(
        topology(results, colour=colour) if kind == "topology" else FUNCTIONS[kind](results), output
    )
