"""The Gantt chart: which task is on which host when, coloured by what happened to it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results.loading import Results, ShownTask, running_stretches
from ptaskmodel.results.pictures.charts import Pane, end_labels, heat_rows, time_panel
from ptaskmodel.results.pictures.drawing import (
    SLOWDOWN,
    USE,
    heat,
    heat_bar,
    natural,
    ran,
    row_ticks,
    scale,
)
from ptaskmodel.results.pictures.tracks import in_cells
from ptaskmodel.results.states import ENDED, KILLED, outcome_of
from ptaskmodel.results.tables import slurm_reading
from ptaskmodel.results.tables.costs import summed
from ptaskmodel.style.figures import CATEGORIES, LIGHT, OTHERS, category, finished, picture, text_on
from ptaskmodel.style.text import count, elided, number, round_time

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Of attempts that were stopped.
STOPPED = ("COMPLETED_KILLED", "COMPLETED_FAILED")
LEAST_WIDTH = 1 / 800  # of the time: where half of the bars are shorter, cells are drawn
MAX_BARS = 60_000
MANY_BARS = 5_000  # too many where half of them are that short
MAX_NAMES = 60
MAX_ROWS = 150  # more hosts share rows
CELLS = 600
SLOWED = "contention slowdown"

FloatArray = NDArray[np.float64]
Spells = Sequence[tuple[ShownTask, float, float]]


@picture
def gantt(results: Results, colour: str | None = None) -> Figure:
    """Which task is on which host when; tasks that share a host share the height of its row.

    Attempts that were stopped and ran again, or no more, are pale; killed ones end in the colour of
    what is lost, hatched; while a job was suspended nothing is drawn. Too many bars become cells of
    host and time with the mean slowdown, or without slowdowns the busy share.

    colour: a key of `results.GANTT_COLOURS`; None: slowdown if it is known, else waiting of jobs,
    else the tasks.
    """
    rows = running_stretches(results) or ran(results)
    hosts = sorted({host for task, _, _ in rows for host in task.hosts}, key=natural)
    if not hosts:
        raise PTaskModelError(f"{results.directory}: no task ran on a host; nothing to draw")
    n_bars = sum(len(set(task.hosts)) for task, _, _ in rows)
    lasted = sorted(end - start for _, start, end in rows)
    tiny = lasted[len(lasted) // 2] < LEAST_WIDTH * results.end_s
    if n_bars > MAX_BARS or (tiny and n_bars > MANY_BARS):
        return _cells(results, rows, hosts)
    colour = colour or _usual_colour(results)
    coloured = GROUPS[colour](results, rows) if colour in GROUPS else _by_amount(colour, rows)
    height = min(max(1.2, 0.3 * len(hosts)), 8.0)
    track = Pane(lambda axes: _bars(axes, rows, hosts, coloured.paint, results.end_s), height)
    figure = time_panel([track], results.end_s, results)
    if colour == "slowdown":
        heat_bar(figure.axes[0], SLOWDOWN, SLOWED)
    end_labels(figure.axes[0], [(-k, *one) for k, one in enumerate(coloured.key)])
    return finished(figure, *_said(results, rows, hosts, coloured.says))


def _said(results: Results, rows: Spells, hosts: Sequence[str], says: str) -> tuple[str, str, str]:
    """The title, the note below it and the sentence."""
    tasks = {task.task_id: task for task, _, _ in rows}
    killed = sum(outcome_of(task.state) == KILLED for task in results.tasks)
    title = f"{count(len(tasks), results.what)} on {count(len(hosts), 'host')}"
    slowed = [task.slowdown for task in tasks.values() if task.slowdown is not None]
    if slowed:
        title += f"; mean contention slowdown {number(float(np.mean(slowed)))}"
    if killed:
        title += f"; {count(killed)} killed"
        says += "; dark red end: killed"
    return title, says, f"{title}."


def _usual_colour(results: Results) -> str:
    if any(task.slowdown is not None for task in results.tasks):
        return "slowdown"
    return "waiting" if any(task.waiting_s is not None for task in results.tasks) else "task"


class Coloured(NamedTuple):
    """The colour of each task, what is said of it, and the key."""

    paint: Callable[[ShownTask], Any]
    says: str
    key: Sequence[tuple[str, str]] = ()


# Of a task an amount, the colours up to the largest one, and what is said of them.
AMOUNTS: Mapping[str, tuple[Callable[[ShownTask], float | None], Any, str]] = {
    "slowdown": (attrgetter("slowdown"), lambda _: scale(*SLOWDOWN),
                 "contention slowdown; grey: not known"),
    "size": (lambda task: len(task.hosts), lambda most: scale(1.0, max(most, 2.0), is_log=True),
             "hosts, 1 (pale) to {} (dark)"),
    "waiting": (attrgetter("waiting_s"), lambda _: scale(60.0, 86400.0, is_log=True),
                "waited 1 min or less (pale) to 1 d or more (dark)"),
}  # fmt: skip


def _by_amount(colour: str, rows: Spells) -> Coloured:
    """Of amounts by task: what is not known is grey."""
    amount, scale_to, says = AMOUNTS[colour]
    most = max((amount(task) or 0.0 for task, _, _ in rows), default=0.0)
    among, colours = scale_to(most), heat()

    def paint(task: ShownTask) -> Any:
        value = amount(task)
        return LIGHT.nothing if value is None else colours(among(max(value, among.vmin)))

    return Coloured(paint, f"colour: {says.format(number(most))}")


def _by_state(results: Results, rows: Spells) -> Coloured:
    colours = {ENDED: LIGHT.use, KILLED: LIGHT.lost}
    key = [("ended", LIGHT.use), ("killed", LIGHT.lost), ("neither", LIGHT.wait)]
    return Coloured(lambda task: colours.get(outcome_of(task.state), LIGHT.wait),
                    "colour: what became of it", key)  # fmt: skip


def _by_user(results: Results, rows: Spells) -> Coloured:
    if not slurm_reading.is_slurm(results.summary):
        raise PTaskModelError(f"{results.directory}: its jobs name no users; choose another colour")
    users = {job.job_id: job.user for job in results.jobs}
    used = list(summed((users[task.task_id], (end - start) * len(task.hosts))
                       for task, start, end in rows))  # fmt: skip
    key = [(user, category(k)) for k, user in enumerate(used[: len(CATEGORIES)])]
    if len(used) > len(key):
        key.append((f"{count(len(used) - len(key))} others", OTHERS))
    colours = dict(key)
    return Coloured(lambda task: colours.get(users[task.task_id], OTHERS),
                    "colour: user, the largest first", key)  # fmt: skip


def _by_task(results: Results, rows: Spells) -> Coloured:
    names = list(dict.fromkeys(task.task_id for task, _, _ in rows))
    if len(names) > len(CATEGORIES):
        return Coloured(lambda task: OTHERS, "more tasks than colours; choose with --colour")
    return Coloured(lambda task: category(names.index(task.task_id)), "a colour a task")


GROUPS: Mapping[str, Callable[[Results, Spells], Coloured]] = {
    "state": _by_state,
    "user": _by_user,
    "task": _by_task,
}


def _bars(
    axes: Any, rows: Spells, hosts: list[str], paint: Callable[[ShownTask], Any], end_s: float
) -> None:
    from matplotlib.collections import LineCollection, PolyCollection
    from matplotlib.colors import to_hex

    place = {host: k for k, host in enumerate(hosts)}
    shapes, colours, killed, ends = [], [], [], []
    lanes = _lanes(rows, place)
    labels: dict[str, tuple[float, float, float, float, Any]] = {}
    for k, (task, start, end) in enumerate(rows):
        is_killed = outcome_of(task.state) == KILLED
        colour = to_hex(paint(task))
        for host in dict.fromkeys(task.hosts):
            lane, n = lanes[host][k]
            low = place[host] - 0.45 + 0.9 * lane / n
            high = low + 0.9 / n
            shapes.append([(start, low), (end, low), (end, high), (start, high)])
            colours.append((colour, 0.35 if task.state in STOPPED else 1.0))
            if is_killed:
                killed.append(shapes[-1])
                ends.append([(end, low), (end, high)])
            area = (high - low) * (end - start)
            if task.task_id not in labels or area > labels[task.task_id][0]:
                middle = (start + end) / 2, (low + high) / 2
                labels[task.task_id] = (area, *middle, end - start, colour)
    edge = 0.4 if len(rows) <= 200 else 0.0
    axes.add_collection(PolyCollection(shapes, facecolors=colours, edgecolors="white", lw=edge))
    hatch = "////" if len(hosts) <= 60 else None
    axes.add_collection(
        PolyCollection(killed, facecolors="none", edgecolors=LIGHT.lost, hatch=hatch, lw=0)
    )
    axes.add_collection(LineCollection(ends, colors=LIGHT.lost, linewidths=1.6))
    row_ticks(axes, hosts)
    inches = axes.figure.get_figwidth() * 0.85
    least = 0.11 * len(hosts) / axes.figure.get_figheight()
    for name, (area, x, y, wide, colour) in labels.items() if len(rows) <= MAX_NAMES else ():
        letters = math.floor(wide / end_s * inches / 0.065)
        if letters >= min(len(name), 8) and area / wide >= least:
            axes.text(x, y, elided(name, letters), ha="center", va="center", clip_on=True,
                      color=text_on(colour))  # fmt: skip


def _lanes(rows: Spells, place: dict[str, int]) -> dict[str, dict[int, tuple[int, int]]]:
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


def _cells(results: Results, rows: Spells, hosts: list[str]) -> Figure:
    """Cells of hosts and time: the mean slowdown of tasks there, or the busy share."""
    end_s = results.end_s or 1.0
    cell_s = round_time(end_s / CELLS)
    cells = math.ceil(end_s / cell_s)
    together = math.ceil(len(hosts) / MAX_ROWS)
    groups = [hosts[k : k + together] for k in range(0, len(hosts), together)]
    row_of = {host: k for k, group in enumerate(groups) for host in group}
    names = [group[0] if len(group) == 1 else f"{group[0]} ... {group[-1]}" for group in groups]
    known = [spell for spell in rows if spell[0].slowdown is not None]
    by_slowdown = bool(known)
    table = occupancy(known or rows, row_of, cells * cell_s, cells)
    if by_slowdown:
        slowed = [task.slowdown or 1.0 for task, _, _ in known]
        weighted = occupancy(known, row_of, cells * cell_s, cells, slowed)
        with np.errstate(invalid="ignore", divide="ignore"):
            table = np.where(table > 1e-12, weighted / table, np.nan)
    else:
        size = np.array([len(group) for group in groups])[:, None]
        table = 100.0 * np.minimum(table / size, 1.0)

    ends = SLOWDOWN if by_slowdown else USE
    draw = partial(heat_rows, names=names, table=table, end_s=cells * cell_s, ends=ends, most=40)
    height = min(max(1.2, 0.06 * len(groups)), 8.0)
    figure = time_panel([Pane(draw, height)], end_s, results)
    what = f"mean {SLOWED} of {results.what}s" if by_slowdown else "busy share"
    heat_bar(figure.axes[0], ends, SLOWED if by_slowdown else "busy (%)")
    row = "a host" if together == 1 else f"{together} hosts"
    says = f"colour: {what}, a cell is {row} for {number(cell_s, 'time')}; too many for bars"
    title, _, sentence = _said(results, rows, hosts, says)
    return finished(figure, title, says, sentence)


def occupancy(
    rows: Spells,
    row_of: Mapping[str, int],
    span_s: float,
    cells: int,
    weights: Sequence[float] | None = None,
) -> FloatArray:
    """The mean number of tasks on the hosts of each row in ``cells`` intervals of equal length.

    rows: (task, start, end) with dates in s from 0 to span_s. row_of: the row of each host.
    weights: what each counts, in order of ``rows``; None: 1.
    """
    spans = [
        (on, start, end, weight * hosts)
        for (task, start, end), weight in zip(rows, weights or [1.0] * len(rows), strict=True)
        for on, hosts in Counter(row_of[host] for host in dict.fromkeys(task.hosts)).items()
    ]
    on, start, end, weight = np.array(spans, dtype=float).reshape(-1, 4).T
    shape = max(row_of.values()) + 1, cells
    return in_cells(on.astype(int), start / span_s * cells, end / span_s * cells, weight, shape)
