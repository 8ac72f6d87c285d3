"""Pictures of a Slurm run: utilisation, queue, waiting times, reasons to wait, backfill cycles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results.loading import Results
from ptaskmodel.results.pictures.drawing import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    colour_of,
    new_figure,
    time_unit,
)
from ptaskmodel.results.tables.slurm_reading import (
    Curve,
    SlurmJob,
    grouped,
    is_slurm,
    last_date_s,
    read_cycles,
    read_jobs,
    read_reasons,
    thinned,
    used,
    waiting,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Groups that are shown: those with the most jobs.
MOST_GROUPS = 12
# Full passes are a minute or two apart; where there is no sample for three, nobody waited.
GAP_s = 180.0


def check_slurm(results: Results) -> None:
    """Raises PTaskModelError for results of anything else."""
    if not is_slurm(results.summary):
        raise PTaskModelError(f"{results.directory}: this picture needs a run of ptaskmodel slurm")


def load(results: Results) -> Figure:
    """CPUs in use, jobs that wait and the CPUs that they will get, over time."""
    jobs = read_jobs(results.directory)
    end_s = last_date_s(jobs)
    unit, unit_name = time_unit(end_s)
    figure = new_figure(10.0, 5.0)
    above, below = figure.subplots(2, 1, sharex=True)
    _fill(above, used(jobs, end_s), unit, BLUE)
    total = results.summary.get("cpus")
    title = "CPUs in use, and the queue"
    if isinstance(total, int | float):
        above.axhline(total, color="black", linewidth=0.8, linestyle="--")
        title += f"; dashed: all {total:,} CPUs"
    above.set_ylim(bottom=0)
    above.set_ylabel("CPUs in use")
    above.set_title(title, fontsize=10, loc="left")
    _fill(below, waiting(jobs, end_s, cpus=True), unit, ORANGE)
    below.set_ylim(bottom=0)
    below.set_ylabel("CPUs waited for")
    count = below.twinx()
    queue = waiting(jobs, end_s)
    count.step(queue.dates_s / unit, queue.values, where="post", color=RED, linewidth=1)
    count.set_ylim(bottom=0)
    count.set_ylabel("jobs that wait", color=RED)
    below.set_xlim(0.0, end_s / unit)
    below.set_xlabel(f"time ({unit_name})")
    return figure


def _fill(axes: Any, curve: Curve, unit: float, colour: str) -> None:
    axes.fill_between(curve.dates_s / unit, curve.values, step="post", color=colour, linewidth=0)


def waits(results: Results) -> Figure:
    """How long jobs waited, by size, length, user and partition."""
    check_slurm(results)
    jobs = [job for job in read_jobs(results.directory) if job.wait_s is not None]
    if not jobs:
        raise PTaskModelError(f"{results.directory}: no job started; nothing to draw")
    unit, unit_name = time_unit(max(job.wait_s or 0.0 for job in jobs))
    figure = new_figure(11.0, 7.5)
    panels = figure.subplots(2, 2, sharex=True)
    for axes, by in zip(panels.flat, ("size", "length", "user", "partition"), strict=True):
        _waits_by(axes, jobs, by, unit)
    for axes in panels[1]:
        axes.set_xlabel(f"waiting time ({unit_name})")
    figure.suptitle(
        f"Waiting of {len(jobs):,} jobs: bars are means, dots medians, ticks 95 %",
        fontsize=10, ha="left", x=0.01,
    )  # fmt: skip
    return figure


def _waits_by(axes: Any, jobs: Sequence[SlurmJob], by: str, unit: float) -> None:
    groups = grouped(jobs, by)
    shown = sorted(groups, key=lambda name: -len(groups[name]))[:MOST_GROUPS]
    names = [name for name in groups if name in shown]
    for row, name in enumerate(names):
        values = np.array([jobs[k].wait_s for k in groups[name]]) / unit
        axes.barh(row, values.mean(), color=BLUE, height=0.7)
        axes.plot(np.median(values), row, "o", color=ORANGE, markersize=5)
        axes.plot(np.percentile(values, 95), row, "|", color="black", markersize=12)
    axes.set_yticks(range(len(names)))
    axes.set_yticklabels([f"{name} ({len(groups[name]):,})" for name in names], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.grid(alpha=0.3, axis="x")
    rest = len(groups) - len(names)
    title = f"by {by}" + (f"; {rest} more with fewer jobs" if rest else "")
    axes.set_title(title, fontsize=9, loc="left")


def reasons(results: Results) -> Figure:
    """How many jobs wait for which reason, over time."""
    check_slurm(results)
    found = read_reasons(results.directory)
    if not found:
        raise PTaskModelError(f"{results.directory}: no job waited; nothing to draw")
    end_s = last_date_s(read_jobs(results.directory))
    dates = np.array(sorted({date for points in found.values() for date, _ in points}))
    unit, unit_name = time_unit(end_s)
    after = np.append(dates[1:], max(end_s, dates[-1] + GAP_s))
    emptied = dates[after - dates > GAP_s] + GAP_s / 2
    every = np.unique(np.concatenate([[min(0.0, dates[0])], dates, emptied, after[-1:]]))
    order = sorted(found, key=lambda reason: -sum(count for _, count in found[reason]))
    curves = []
    for reason in order:
        values = np.zeros(len(every))
        for date, count in found[reason]:
            values[np.searchsorted(every, date)] = count
        curves.append(thinned(Curve(every, values)))
    figure = new_figure(10.0, 4.5)
    axes = figure.add_subplot()
    low = np.zeros(len(curves[0].dates_s))
    for k, (reason, curve) in enumerate(zip(order, curves, strict=True)):
        high = low + curve.values
        axes.fill_between(curve.dates_s / unit, low, high, step="post", linewidth=0, label=reason,
                          color=colour_of(k) if k < len(order) - 1 or k < 6 else GREY)  # fmt: skip
        low = high
    axes.set_xlim(0.0, end_s / unit)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(f"time ({unit_name})")
    axes.set_ylabel("jobs that wait")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    axes.set_title("Why jobs wait, at the full passes of the main scheduler", fontsize=10,
                   loc="left")  # fmt: skip
    return figure


def backfill(results: Results) -> Figure:
    """Jobs in the queue and jobs tested in each backfill cycle; how long cycles took, or starts."""
    check_slurm(results)
    cycles = read_cycles(results.directory)
    if not cycles:
        raise PTaskModelError(f"{results.directory}: backfill made no cycle; nothing to draw")
    jobs = read_jobs(results.directory)
    dates = np.array([cycle[0] for cycle in cycles])
    end_s = max(last_date_s(jobs), float(dates[-1]))
    unit, unit_name = time_unit(end_s)
    figure = new_figure(10.0, 5.5)
    above, below = figure.subplots(2, 1, sharex=True)
    for place, colour, label in ((1, ORANGE, "in the queue"), (2, BLUE, "tested")):
        curve = thinned(_to_the_end(dates, [float(cycle[place]) for cycle in cycles], end_s))
        above.step(curve.dates_s / unit, curve.values, where="post", color=colour, label=label)
    above.set_ylim(bottom=0)
    above.set_ylabel("jobs")
    above.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    above.set_title(f"{len(cycles):,} backfill cycles", fontsize=10, loc="left")
    if any(cycle[3] for cycle in cycles):
        colours = [RED if cycle[4] == "time" else BLUE for cycle in cycles]
        lasted = [cycle[3] for cycle in cycles]
        below.scatter(dates / unit, lasted, c=colours, s=6, linewidths=0,
                      rasterized=len(cycles) > 5000)  # fmt: skip
        limited = sum(cycle[4] == "time" for cycle in cycles)
        below.set_ylabel("length of the cycle (s)")
        part = 100 * limited / len(cycles)
        below.set_title(f"red: over at bf_max_time ({part:.0f} %)", fontsize=9, loc="left")
    else:
        edges = np.linspace(0.0, end_s, 61)
        low = np.zeros(60)
        for name, colour in (("main", GREEN), ("backfill", BLUE)):
            starts = [job.start_s for job in jobs if job.scheduler == name]
            counts = np.histogram([s for s in starts if s is not None], edges)[0]
            below.bar(edges[:-1] / unit, counts, np.diff(edges) / unit, low, align="edge",
                      color=colour, label=f"by {name}")  # fmt: skip
            low += counts
        below.set_ylabel("jobs started")
        below.yaxis.get_major_locator().set_params(integer=True)
        below.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    below.set_ylim(bottom=0)
    below.set_xlim(0.0, end_s / unit)
    below.set_xlabel(f"time ({unit_name})")
    return figure


def _to_the_end(dates: Any, values: Sequence[float], end_s: float) -> Curve:
    return Curve(np.append(dates, max(end_s, dates[-1])), np.append(values, values[-1]))
