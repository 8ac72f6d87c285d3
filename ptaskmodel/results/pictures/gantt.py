"""The Gantt chart: which task is on which host when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.platform.pictures.drawing import text_colour
from ptaskmodel.results.loading import Results, ShownTask, running_stretches
from ptaskmodel.results.pictures.drawing import (
    colour_of,
    heat,
    host_ticks,
    natural,
    new_figure,
    ran,
    stopped_strip,
    time_unit,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Of attempts that were stopped.
STOPPED = ("COMPLETED_KILLED", "COMPLETED_FAILED")
MAX_BARS = 60_000  # bars drawn one by one
MAX_LABELS = 60
CELLS = 600  # intervals of time where there are too many bars

FloatArray = NDArray[np.float64]


def gantt(results: Results) -> Figure:
    """Which task is on which host when; tasks that share a host share the height of its row.

    Attempts of a job have its colour, pale where it was stopped and ran again or no more; while it
    was suspended nothing is drawn.
    """
    again = running_stretches(results)
    rows = again or ran(results)
    hosts = sorted({host for task, _, _ in rows for host in task.hosts}, key=natural)
    if not hosts:
        raise PTaskModelError(f"{results.directory}: no task ran on a host; nothing to draw")
    unit, unit_name = time_unit(results.end_s)
    height = min(max(2.5, 1.2 + 0.5 * len(hosts)), 11.0)
    figure = new_figure(10.0, height)
    axes = figure.add_subplot()
    n_bars = sum(len(set(task.hosts)) for task, _, _ in rows)
    count = len({task.task_id for task, _, _ in rows})
    title = f"{count:,} {results.what}s on {len(hosts):,} hosts"
    if n_bars <= MAX_BARS:
        _bars(axes, rows, hosts, unit)
        if again:
            title += "; pale: stopped before its end"
        elif len(rows) <= MAX_LABELS:
            title += "; a bar's height is its part of the host's row, shared by those there at once"
        else:
            title += f"; neighbouring colours only tell {results.what}s apart"
    else:
        title += f"; mean number of {results.what}s on each host (too many for bars)"
        _crowd(figure, axes, rows, hosts, unit, results)
    stopped_strip(axes, results, unit)
    host_ticks(axes, hosts)
    axes.set_xlabel(f"time ({unit_name})")
    axes.set_title(title, fontsize=10, loc="left")
    return figure


def _bars(
    axes: Any, rows: Sequence[tuple[ShownTask, float, float]], hosts: list[str], unit: float
) -> None:
    from matplotlib.collections import PolyCollection

    place = {host: k for k, host in enumerate(hosts)}
    shapes, colours, labels = [], [], []
    lanes = _lanes(rows, place)
    number = {name: k for k, name in enumerate(dict.fromkeys(task.task_id for task, _, _ in rows))}
    for k, (task, start, end) in enumerate(rows):
        widest: tuple[float, float, float] | None = None
        for host in dict.fromkeys(task.hosts):
            lane, n = lanes[host][k]
            low = place[host] - 0.45 + 0.9 * lane / n
            high = low + 0.9 / n
            a, b = start / unit, end / unit
            shapes.append([(a, low), (b, low), (b, high), (a, high)])
            pale = task.state in STOPPED
            colours.append((colour_of(number[task.task_id]), 0.35 if pale else 1.0))
            if widest is None or high - low > widest[1]:
                widest = (low, high - low, b - a)
        if widest is not None:
            labels.append(((start + end) / 2 / unit, widest, task.task_id, colours[-1]))
    edge = 0.4 if len(rows) <= 200 else 0.0
    axes.add_collection(
        PolyCollection(shapes, facecolors=colours, edgecolors="white", linewidths=edge)
    )
    axes.set_ylim(len(hosts) - 0.4, -0.6)
    axes.autoscale_view(scaley=False)
    axes.set_xlim(left=0.0)
    if len(rows) <= MAX_LABELS:
        span = axes.get_xlim()[1]
        for middle, (low, high, wide), name, (colour, opaque) in labels:
            if wide / span > 0.012 * len(name) and high > 0.12:
                axes.text(
                    middle, low + high / 2, name, ha="center", va="center",
                    fontsize=min(8.0, 22.0 * high), clip_on=True,
                    color=text_colour(colour) if opaque == 1.0 else "black",
                )  # fmt: skip


def _lanes(
    rows: Sequence[tuple[ShownTask, float, float]], place: dict[str, int]
) -> dict[str, dict[int, tuple[int, int]]]:
    """(lane, lanes of its group) of each task on each host: those that overlap lie side by side."""
    on: dict[str, list[int]] = {host: [] for host in place}
    for k, (task, _, _) in enumerate(rows):
        for host in dict.fromkeys(task.hosts):
            on[host].append(k)
    found: dict[str, dict[int, tuple[int, int]]] = {}
    for host, members in on.items():
        members.sort(key=lambda k: (rows[k][1], rows[k][2], k))
        lanes: dict[int, tuple[int, int]] = {}
        group: list[tuple[int, int]] = []
        ends: list[float] = []
        for k in members:
            _, start, end = rows[k]
            if group and start >= max(ends):
                lanes.update({m: (lane, len(ends)) for m, lane in group})
                group, ends = [], []
            free = next((i for i, until in enumerate(ends) if until <= start), len(ends))
            ends[free : free + 1] = [end]
            group.append((k, free))
        lanes.update({m: (lane, len(ends)) for m, lane in group})
        found[host] = lanes
    return found


def _crowd(
    figure: Any,
    axes: Any,
    rows: Sequence[tuple[ShownTask, float, float]],
    hosts: list[str],
    unit: float,
    results: Results,
) -> None:
    """The mean number of tasks on each host in intervals of time, as colours."""
    span = results.end_s or 1.0
    mean = occupancy(rows, hosts, span, CELLS)
    image = axes.imshow(
        mean, aspect="auto", cmap=heat(), interpolation="nearest",
        vmin=1e-9, vmax=max(mean.max(), 1.0),
        extent=(0.0, span / unit, len(hosts) - 0.5, -0.5),
    )  # fmt: skip
    label = f"mean number of {results.what}s on the host"
    figure.colorbar(image, ax=axes, label=label, pad=0.01)


def occupancy(
    rows: Sequence[tuple[ShownTask, float, float]], hosts: Sequence[str], span_s: float, cells: int
) -> FloatArray:
    """The mean number of tasks on each host (rows) in ``cells`` intervals of equal length.

    rows: (task, start, end) with dates in s from 0 to span_s.
    """
    place = {host: k for k, host in enumerate(hosts)}
    # Task seconds in a cell, in cells: at the ends of a task directly, between them as steps.
    parts = np.zeros((len(hosts), cells))
    steps = np.zeros((len(hosts), cells + 1))
    for task, start, end in rows:
        a, b = (min(max(date / span_s * cells, 0.0), float(cells)) for date in (start, end))
        first, last = min(int(a), cells - 1), min(int(b), cells - 1)
        on = [place[host] for host in dict.fromkeys(task.hosts)]
        if first == last:
            parts[on, first] += b - a
        else:
            parts[on, first] += first + 1 - a
            parts[on, last] += b - last
            steps[on, first + 1] += 1.0
            steps[on, last] -= 1.0
    found: FloatArray = parts + np.cumsum(steps, axis=1)[:, :cells]
    return found
