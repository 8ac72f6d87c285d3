"""Pictures of a Slurm run: CPUs and queue over time, reasons to wait, backfill cycles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results.loading import Results
from ptaskmodel.results.pictures.charts import Track, areas, steps, time_panel
from ptaskmodel.results.pictures.drawing import finished, picture, unit_axis
from ptaskmodel.results.tables.slurm_reading import (
    Curve,
    is_slurm,
    last_date_s,
    read_cycles,
    read_jobs,
    reason_curves,
    thinned,
    used,
    waiting,
)
from ptaskmodel.style.colours import LIGHT, REASONS
from ptaskmodel.style.text import count, date, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def check_slurm(results: Results) -> None:
    """Raises PTaskModelError for results of anything else."""
    if not is_slurm(results.summary):
        raise PTaskModelError(f"{results.directory}: this picture needs a run of ptaskmodel slurm")


@picture
def load(results: Results) -> Figure:
    """CPUs in use, the CPUs that jobs wait for, and how many jobs wait, over time."""
    jobs = read_jobs(results.directory)
    end_s = last_date_s(jobs)
    inside, asked, queue = used(jobs, end_s), waiting(jobs, end_s, cpus=True), waiting(jobs, end_s)
    total = results.summary.get("cpus")
    whole = float(total) if isinstance(total, int | float) else float(inside.values.max())

    def machine(axes: Any) -> None:
        idle = np.maximum(whole - inside.values, 0.0)
        layers = [("in use", inside.values, LIGHT.use), ("idle", idle, LIGHT.nothing)]
        areas(axes, inside.dates_s, layers)
        unit_axis(axes, "CPUs", "number", whole)

    def wanted(axes: Any) -> None:
        high = areas(axes, asked.dates_s, [("waited for", asked.values, LIGHT.wait)])
        unit_axis(axes, "CPUs", "number", high)

    def length(axes: Any) -> None:
        high = steps(axes, queue.dates_s, [("jobs", queue.values, LIGHT.wait_text)])
        unit_axis(axes, "jobs that wait", "number", high)

    most = int(queue.values.max(initial=0.0))
    figure = time_panel(
        [Track(machine, 1.8), *[Track(wanted), Track(length)] * bool(most)], end_s, results
    )
    mean = float((inside.values[:-1] * np.diff(inside.dates_s)).sum()) / (end_s * whole or 1.0)
    title = f"{number(mean, 'share')} of {count(int(whole), 'CPU')} in use on average"
    if most:
        at = float(queue.dates_s[int(queue.values.argmax())])
        title += f"; at most {count(most, 'job')} wait ({date(at, end_s)})"
    return finished(figure, title, "CPUs in use", f"{title}.")


@picture
def reasons(results: Results) -> Figure:
    """How many jobs wait for which reason, over time."""
    check_slurm(results)
    end_s = last_date_s(read_jobs(results.directory))
    curves = reason_curves(results.directory, end_s)
    if not curves:
        raise PTaskModelError(f"{results.directory}: no job waited; nothing to draw")
    seconds = {reason: curve.integral for reason, curve in curves.items()}
    most = next(iter(curves))
    layers = [
        (reason, curve.values, REASONS[min(k, len(REASONS) - 1)])
        for k, (reason, curve) in enumerate(curves.items())
    ]
    at_s = curves[most].dates_s
    track = Track(
        lambda axes: unit_axis(axes, "jobs that wait", "number", areas(axes, at_s, layers)), 2.6
    )
    figure = time_panel([track], end_s, results)
    share = number(seconds[most] / (sum(seconds.values()) or 1.0), "share")
    title = f"{most} is the reason for {share} of all waiting"
    listed = ", ".join(f"{name} {number(its / 3600)} job h" for name, its in seconds.items())
    note = "Why jobs wait, at the full passes of the main scheduler"
    return finished(figure, title, note, f"{title}: {listed}.")


@picture
def backfill(results: Results) -> Figure:
    """Jobs in the queue and jobs tested in each backfill cycle; how long cycles took, or starts."""
    check_slurm(results)
    cycles = read_cycles(results.directory)
    if not cycles:
        raise PTaskModelError(f"{results.directory}: backfill made no cycle; nothing to draw")
    jobs = read_jobs(results.directory)
    dates = np.array([cycle[0] for cycle in cycles])
    end_s = max(last_date_s(jobs), float(dates[-1]))
    queue, tested = (
        thinned(_to_the_end(dates, [float(cycle[k]) for cycle in cycles], end_s)) for k in (1, 2)
    )
    title = f"Backfill tests {number(float(np.mean([c[2] for c in cycles])))} jobs a cycle, of "
    title += f"{number(float(np.mean([c[1] for c in cycles])))} in the queue"

    def depth(axes: Any) -> None:
        lines = [("in the queue", queue.values, LIGHT.wait), ("tested", tested.values, LIGHT.use)]
        unit_axis(axes, "jobs", "number", steps(axes, queue.dates_s, lines))

    def length(axes: Any) -> None:
        colours = [LIGHT.lost if cycle[4] == "time" else LIGHT.use for cycle in cycles]
        lasted = [cycle[3] for cycle in cycles]
        axes.scatter(dates, lasted, c=colours, s=6, linewidths=0, rasterized=len(cycles) > 5000)
        unit_axis(axes, "length", "time", max(lasted))
        part = sum(cycle[4] == "time" for cycle in cycles) / len(cycles)
        axes.set_title(
            f"how long a cycle took; dark red: over at bf_max_time ({number(part, 'share')})"
        )

    def starts(axes: Any) -> None:
        edges = np.linspace(0.0, end_s, 61)
        layers = []
        for name, colour in (("main", LIGHT.use), ("backfill", LIGHT.transfer)):
            own = [job.start_s for job in jobs if job.scheduler == name]
            counts = np.histogram([s for s in own if s is not None], edges)[0]
            layers.append((f"by {name}", np.append(counts, counts[-1:]).astype(float), colour))
        unit_axis(axes, "jobs started", "number", areas(axes, edges, layers))

    timed = any(cycle[3] for cycle in cycles)
    figure = time_panel([Track(depth, 1.8), Track(length if timed else starts)], end_s, results)
    return finished(figure, title, count(len(cycles), "backfill cycle"), f"{title}.")


def _to_the_end(dates: Any, values: Sequence[float], end_s: float) -> Curve:
    return Curve(np.append(dates, max(end_s, dates[-1])), np.append(values, values[-1]))
