"""The Gantt chart: which task is on which host when."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results.drawing import (
    colour_of,
    host_order,
    host_ticks,
    new_figure,
    ran,
    time_unit,
)
from ptaskmodel.results.loading import Results, ShownTask

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_BARS = 60_000  # bars drawn one by one
MAX_LABELS = 60


def gantt(results: Results) -> Figure:
    """Which task is on which host when; tasks that share a host share the height of its row."""
    rows = ran(results)
    hosts = host_order(results)
    if not hosts:
        raise PTaskModelError(f"{results.directory}: no task ran on a host; nothing to draw")
    unit, unit_name = time_unit(results.end_s)
    height = min(max(2.5, 1.2 + 0.5 * len(hosts)), 11.0)
    figure = new_figure(10.0, height)
    axes = figure.add_subplot()
    n_bars = sum(len(set(task.hosts)) for task, _, _ in rows)
    title = f"{len(rows):,} {results.what}s on {len(hosts):,} hosts"
    if n_bars <= MAX_BARS:
        _bars(axes, rows, hosts, unit)
        if len(rows) <= MAX_LABELS:
            title += "; a bar's height is its part of the host's row, shared by those there at once"
        else:
            title += "; neighbouring colours only tell tasks apart"
    else:
        title += f"; number of {results.what}s at a time on each host (too many for bars)"
        _crowd(figure, axes, rows, hosts, unit, results)
    host_ticks(axes, hosts)
    axes.set_xlabel(f"date ({unit_name})")
    axes.set_title(title, fontsize=10, loc="left")
    return figure


def _bars(
    axes: Any, rows: Sequence[tuple[ShownTask, float, float]], hosts: list[str], unit: float
) -> None:
    from matplotlib.collections import PolyCollection

    place = {host: k for k, host in enumerate(hosts)}
    shapes, colours, labels = [], [], []
    lanes = _lanes(rows, place)
    for k, (task, start, end) in enumerate(rows):
        widest: tuple[float, float, float] | None = None
        for host in dict.fromkeys(task.hosts):
            lane, n = lanes[host][k]
            low = place[host] - 0.45 + 0.9 * lane / n
            high = low + 0.9 / n
            a, b = start / unit, end / unit
            shapes.append([(a, low), (b, low), (b, high), (a, high)])
            colours.append(colour_of(k))
            if widest is None or high - low > widest[1]:
                widest = (low, high - low, b - a)
        if widest is not None:
            labels.append((start / unit, (start + end) / 2 / unit, widest, task.task_id))
    edge = 0.4 if len(rows) <= 200 else 0.0
    axes.add_collection(
        PolyCollection(shapes, facecolors=colours, edgecolors="white", linewidths=edge)
    )
    axes.set_ylim(len(hosts) - 0.4, -0.6)
    axes.autoscale_view(scaley=False)
    axes.set_xlim(left=0.0)
    if len(rows) <= MAX_LABELS:
        span = axes.get_xlim()[1]
        for _, middle, (low, high, wide), name in labels:
            if wide / span > 0.012 * len(name) and high > 0.12:
                axes.text(
                    middle, low + high / 2, name, ha="center", va="center",
                    fontsize=min(8.0, 22.0 * high), clip_on=True,
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
    """How many tasks are on each host over time, as colours."""
    place = {host: k for k, host in enumerate(hosts)}
    bins = 600
    span = results.end_s or 1.0
    steps = np.zeros((len(hosts), bins + 2))
    for task, start, end in rows:
        a, b = int(start / span * bins), max(math.ceil(end / span * bins), 1)
        for host in dict.fromkeys(task.hosts):
            steps[place[host], a] += 1
            steps[place[host], b] -= 1
    count = np.cumsum(steps, axis=1)[:, :bins]
    image = axes.imshow(
        count, aspect="auto", cmap="cividis", interpolation="nearest", vmin=0,
        extent=(0.0, span / unit, len(hosts) - 0.5, -0.5),
    )  # fmt: skip
    figure.colorbar(image, ax=axes, label=f"{results.what}s on the host", pad=0.01)
