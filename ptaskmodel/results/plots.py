"""Pictures of results, as matplotlib figures: each function takes `Results` and returns one.

Colours are Okabe and Ito's, which colour-blind people tell apart, or matplotlib's cividis. Where
there is too much to draw one by one, things are gathered or sampled, and the title says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.files import whole_path
from ptaskmodel.results.loading import Results, ShownTask
from ptaskmodel.units import format_time

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, RED, SKY, PINK, YELLOW, GREY = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#F0E442", "#999999"
)  # fmt: skip
TASK_COLOURS = (BLUE, ORANGE, GREEN, RED, SKY, PINK, YELLOW)

MAX_BARS = 60_000  # bars of the Gantt chart drawn one by one
MAX_LABELS = 60
MAX_LINES = 300
MAX_ROWS = 60
NAMED_LINES = 10
NEEDS_ATTRIBUTION = "this picture needs a run with --attribution"


def new_figure(width: float, height: float) -> Figure:
    """An empty figure. Raises PTaskModelError if matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise PTaskModelError(
            "pictures need matplotlib; run: pip install 'ptaskmodel[plot]'"
        ) from None
    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure (.png, .svg or .pdf), whole and without a date inside.

    Raises PTaskModelError for another suffix or if the file cannot be written.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in (".png", ".svg", ".pdf"):
        raise PTaskModelError(f"{path}: pictures are .png, .svg or .pdf; choose one of them")
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(suffix)
    import matplotlib as mpl

    with whole_path(path) as partial, mpl.rc_context({"svg.hashsalt": "ptaskmodel"}):
        figure.savefig(partial, format=suffix[1:], dpi=150, metadata=metadata, facecolor="white")


def time_unit(span_s: float) -> tuple[float, str]:
    """(seconds, name) of the unit in which a span of time reads well."""
    for seconds, name in ((86400.0, "d"), (3600.0, "h")):
        if span_s > 4 * seconds:
            return seconds, name
    for seconds, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if span_s >= seconds:
            return seconds, name
    return 1.0, "s"


def ran(results: Results) -> list[tuple[ShownTask, float, float]]:
    """(task, start, end) of those that began; the end of those still running is the run's."""
    end_s = results.end_s
    return [
        (task, task.start_s, end_s if task.finish_s is None else task.finish_s)
        for task in results.tasks
        if task.start_s is not None
    ]


def host_order(results: Results) -> list[str]:
    """Names of the hosts that are used, numbers in them in their natural order."""
    names = {host for task in results.tasks for host in task.hosts}
    return sorted(names, key=natural)


def natural(name: str) -> list[tuple[int, int | str]]:
    """Sort key that puts n2 before n10."""
    parts: list[tuple[int, int | str]] = []
    text, digits = "", ""
    for c in name + "\0":
        if c.isascii() and c.isdigit():
            if text:
                parts.append((1, text))
                text = ""
            digits += c
        else:
            if digits:
                parts.append((0, int(digits)))
                digits = ""
            text += c
    return parts


def colour_of(k: int) -> str:
    return TASK_COLOURS[k % len(TASK_COLOURS)]


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
    _host_ticks(axes, hosts)
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


def _host_ticks(axes: Any, names: list[str], most: int = 40) -> None:
    step = max(1, math.ceil(len(names) / most))
    axes.set_yticks(range(0, len(names), step))
    axes.set_yticklabels([_short(name) for name in names[::step]], fontsize=8)


def _short(name: str, most: int = 24) -> str:
    return name if len(name) <= most else f"{name[: most - 11]}...{name[-8:]}"


def top_of_scale(percent: float) -> float:
    """The end of a scale of percents: 100, or the round number that little used things need."""
    return next(top for top in (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0) if top >= min(percent, 100))


def progress(results: Results) -> Figure:
    """Part done of each task over time: straight between the dates at which its limit changes."""
    if not results.spells:
        raise PTaskModelError(f"{results.directory}: {NEEDS_ATTRIBUTION}")
    lines: dict[str, list[tuple[float, float]]] = {}
    for spell in results.spells:
        if spell.limited_by == "waiting":
            continue
        points = lines.setdefault(spell.task_id, [(spell.start_s, 0.0)])
        points.append((spell.end_s, spell.progress))
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
                xs, ys, styles[k], color=colours[k], label=_short(shown[k]), markersize=5,
                markeredgecolor="white",
            )  # fmt: skip
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    axes.set_ylim(0.0, 103.0)
    axes.autoscale_view(scaley=False)
    axes.set_xlim(left=0.0)
    axes.set_xlabel(
        f"time since the start of each {results.what} ({unit_name})"
        if from_start
        else f"date ({unit_name})"
    )
    axes.set_ylabel("part done (% of the stages)")
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
        grid, aspect="auto", cmap="cividis", interpolation="nearest", vmin=0,
        vmax=top_of_scale(grid.max()),
        extent=(0.0, end / unit, len(names) - 0.5, -0.5),
    )  # fmt: skip
    figure.colorbar(image, ax=axes, label=f"mean use of the {kind} (% of its capacity)", pad=0.01)
    axes.set_xlim(0.0, max(results.end_s, width) / unit)
    _host_ticks(axes, names, 60)
    axes.set_xlabel(f"date ({unit_name})")
    title = f"Use of {len(names):,} {kind}s, means over {format_time(width, 3)}"
    if len(names) < len(table):
        title = f"Use of the {len(names)} most used of {len(table):,} {kind}s, means over "
        title += format_time(width, 3)
    axes.set_title(title, fontsize=10, loc="left")
    return figure


def slowdowns(results: Results) -> Figure:
    """How many tasks were slowed down how much: the whole distribution, and its quantiles."""
    values = np.sort([task.slowdown for task in results.tasks if task.slowdown is not None])
    if not len(values):
        raise PTaskModelError(f"{results.directory}: no slowdowns there; {NEEDS_ATTRIBUTION}")
    values = np.maximum(values, 1e-9)
    figure = new_figure(7.5, 4.5)
    axes = figure.add_subplot()
    part = 100.0 * np.arange(1, len(values) + 1) / len(values)
    axes.step(
        np.concatenate([[min(values[0], 1.0)], values]), np.concatenate([[0.0], part]),
        where="post", color=BLUE, linewidth=2,
    )  # fmt: skip
    if len(values) <= MAX_LABELS:
        axes.plot(values, part, "o", color=BLUE, markersize=4)
    for quantile, colour in ((50, GREEN), (95, RED)):
        x = float(values[math.ceil(quantile / 100 * len(values)) - 1])
        axes.axvline(x, color=colour, linestyle="--", linewidth=1.2, label=f"{quantile} %: {x:.3g}")
    if values[-1] > 20 * values[0]:
        axes.set_xscale("log")
    axes.set_ylim(0.0, 102.0)
    axes.set_xlabel("slowdown (time taken / time alone on the same hosts)")
    axes.set_ylabel(f"{results.what}s slowed down at most that much (%)")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right", frameon=True)
    missing = len(results.tasks) - len(values)
    title = f"Slowdown of {len(values):,} {results.what}s; mean {values.mean():.3g}"
    axes.set_title(title + (f"; {missing:,} have none" if missing else ""), fontsize=10, loc="left")
    return figure


def _topology(results: Results) -> Figure:
    from ptaskmodel.results.topology import topology

    return topology(results)


KINDS: dict[str, Callable[[Results], Figure]] = {
    "gantt": gantt,
    "progress": progress,
    "links": utilisation,
    "hosts": lambda results: utilisation(results, "host"),
    "topology": _topology,
    "slowdowns": slowdowns,
}
