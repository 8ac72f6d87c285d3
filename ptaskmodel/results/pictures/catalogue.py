"""The catalogue of pictures: each function takes `Results` and returns a matplotlib figure.

If there is too much to draw one by one, values are aggregated or chosen, and the title says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results import COLOURS, GANTT_COLOURS, PICTURES
from ptaskmodel.results.directory import number as csv_number
from ptaskmodel.results.directory import read_table
from ptaskmodel.results.loading import Results, ShownLimit, ShownTask, results_of
from ptaskmodel.results.pictures import load, mpi, topology, waiting
from ptaskmodel.results.pictures.charts import Dot, DotPanel, dots
from ptaskmodel.results.pictures.drawing import NEEDS_ATTRIBUTION, time_axis
from ptaskmodel.results.pictures.gantt import gantt
from ptaskmodel.results.states import NOT_SLOWED, is_cut_off
from ptaskmodel.results.tables.tasks import DRAWS
from ptaskmodel.style.figures import (
    LIGHT,
    WIDE,
    check_picture,
    finished,
    new_figure,
    picture,
    save,
    sentence_of,
)
from ptaskmodel.style.text import count, duration, elided, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_SLOWEST = 12
MOST_RANGES = 40


@picture
def progress(results: Results) -> Figure:
    """How much of the slowest tasks is done over time, beside what it would be alone (dashed)."""
    spells: dict[str, list[ShownLimit]] = {}
    for limit in results.limits:
        if limit.limited_by != "waiting":
            spells.setdefault(limit.task_id, []).append(limit)
    known = [task for task in results.tasks if task.task_id in spells]
    if not known:
        raise PTaskModelError(f"{results.directory}: no task's progress; {NEEDS_ATTRIBUTION}")
    slowest = sorted(known, key=lambda task: -(task.slowdown or 0.0))[:MOST_SLOWEST]
    columns = min(4, len(slowest))
    rows = -(-len(slowest) // columns)
    figure = new_figure(WIDE, 0.6 + 1.7 * rows)
    panels = figure.subplots(rows, columns, squeeze=False, sharey=True).flat
    for axes, task in zip(panels, slowest, strict=False):
        _progress_of(axes, task, spells[task.task_id])
    for axes in list(panels)[len(slowest) :]:
        axes.set_visible(False)
    slowed = np.array([task.slowdown for task in known if task.slowdown is not None])
    title = f"Progress of the {len(slowest)} slowest of {count(len(known), results.what)}"
    if len(slowest) == len(known):
        title = f"Progress of {count(len(known), results.what)}"
    if len(slowed) and slowed.max() <= NOT_SLOWED:
        title += "; 0 of them are slowed down"
    elif len(slowed):
        half, most = np.percentile(slowed, (50, 95))
        title += f"; half of all are slowed down {number(float(half))} times or less, 5 % "
        title += f"{number(float(most))} or more"
    figure = finished(figure, title, "", f"{title}.")
    _name(figure.axes[0], slowest[0])
    figure.supylabel("done (%); dashed: alone", fontsize="medium", color=LIGHT.soft)
    return figure


def _progress_of(axes: Any, task: ShownTask, spells: list[ShownLimit]) -> None:
    begin = spells[0].start_s
    dates = [0.0, *(spell.end_s - begin for spell in spells)]
    done = [0.0, *(100 * spell.progress for spell in spells)]
    axes.plot(dates, done, color=LIGHT.use)
    end_s = dates[-1]
    if task.slowdown:
        axes.plot([0.0, end_s / task.slowdown], [0.0, done[-1]], "--", color=LIGHT.soft, lw=1)
    if is_cut_off(task.state):
        axes.plot(end_s, done[-1], "x", color=LIGHT.lost)
    time_axis(axes, end_s or 1.0)
    axes.set_ylim(0, 104)
    axes.set_yticks([0, 50, 100])
    _name(axes, task)


def _name(axes: Any, task: ShownTask) -> None:
    slowed = "" if task.slowdown is None else f": {number(task.slowdown)} times"
    axes.set_title(elided(task.task_id, 28) + slowed, color=LIGHT.ink)


@picture
def ranges(results: Results) -> Figure:
    """How long tasks of `results` take in several draws, those with the widest range first."""
    place = results.directory / DRAWS
    if not place.exists():
        raise PTaskModelError(f"{place}: is missing; simulate with --draws")
    durations: dict[str, list[float]] = {}
    for name, seconds in read_table(
        place, "simulate again", task_id=str, execution_time=csv_number
    ):
        if seconds is not None:
            durations.setdefault(name, []).append(seconds)
    found = [one for one in load.ranges_of(results) if one.task_id in durations]
    order = sorted(found, key=lambda one: one.low_s - one.high_s)[:MOST_RANGES]
    if not order:
        raise PTaskModelError(f"{place}: no task ended in a draw; nothing to draw")
    halves = [float(np.median(durations[one.task_id])) for one in order]
    dot_rows = [[Dot(half, one.low_s, one.high_s, "use", others=durations[one.task_id])]
                for one, half in zip(order, halves, strict=True)]  # fmt: skip
    of = f"the {len(order)} widest ranges of {count(len(found), 'task')}"
    if len(order) == len(found):
        of = f"{count(len(found), 'range')}, the widest first"
    key = f"line: 80 % of durations; dot: half of the draws take at most that; small: each; {of}"
    figure = dots([one.task_id for one in order], [DotPanel("execution", "time", dot_rows)], key)
    low, high, half = map(duration, (order[0].low_s, order[0].high_s, halves[0]))
    title = f"{elided(order[0].task_id, 24)} takes {low} to {high} in 80 % of cases, "
    title += f"half of the draws at most {half}"
    return finished(figure, title, "", f"{title}. Drawn: {of}.")


# The functions of `results.PICTURES`.
FUNCTIONS: Mapping[str, Callable[..., Figure]] = {
    "gantt": gantt,
    "topology": topology.topology,
    "times": mpi.times,
    "ranks": mpi.ranks,
    "matrix": mpi.matrix,
    "progress": progress,
    "links": load.links_figure,
    "hosts": load.hosts_figure,
    "slowdowns": waiting.slowdown_figure,
    "load": load.load_figure,
    "queue": load.queue_figure,
    "waits": waiting.waiting_figure,
    "reasons": load.reasons_figure,
    "backfill": load.backfill_figure,
    "power": load.power_figure,
    "ranges": ranges,
    "routes": topology.routes,
    "queues": load.queues_figure,
}
# Those with a choice of colours.
COLOURED: Mapping[str, Mapping[str, str]] = {"gantt": GANTT_COLOURS, "topology": COLOURS}


def draw_results(
    results: Results | str | Path,
    kind: str,
    output: str | Path,
    colour: str | None = None,
    *,
    since_s: float | None = None,
    until_s: float | None = None,
    messages: bool = True,
) -> str:
    """Draw a picture of results, or of those in a directory; return what it shows in a sentence.

    kind: one of `results.PICTURES`. output: a .png, .svg or .pdf file. colour: the meaning of
    colours of a topology (`results.COLOURS`) or a Gantt chart (`results.GANTT_COLOURS`); None: the
    first, of a Gantt chart what is known. since_s, until_s, messages: for ``ranks``, which part of
    the run to draw, and whether to draw messages. Raises PTaskModelError if the results cannot be
    read, have nothing to draw, or the file cannot be written.
    """
    check_picture(output)
    if kind not in PICTURES:
        raise PTaskModelError(f"picture {kind!r} is not known; choose one of {', '.join(PICTURES)}")
    colours = COLOURED.get(kind, {})
    if colour is not None and colour not in colours:
        known = f"choose one of {', '.join(colours)}" if colours else "it has no choice of them"
        raise PTaskModelError(f"colours of {kind} cannot be {colour!r}; {known}")
    given: dict[str, Any] = {"colour": colour} if colours else {}
    if kind == "ranks":
        given = {"since_s": since_s, "until_s": until_s, "messages": messages}
    figure = FUNCTIONS[kind](results_of(results), **given)
    save(figure, output)
    return sentence_of(figure)
