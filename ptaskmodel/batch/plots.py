"""Pictures of a schedule: who ran where and when, and the load of the machine over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ptaskmodel.batch.attempt import KILLED, SUCCESS
from ptaskmodel.batch.hostset import runs
from ptaskmodel.batch.measures import load
from ptaskmodel.batch.schedule import Schedule
from ptaskmodel.errors import SimulationError

INCHES = (12.0, 6.0)
LABELLED_JOBS = 60


def draw_schedule(schedule: Schedule, directory: Path) -> list[str]:
    """Write gantt.png and load.png in an existing directory; returns their names.

    Raises SimulationError if matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise SimulationError("pictures need matplotlib: pip install 'ptaskmodel[plot]'") from None
    for name, draw in (("gantt.png", draw_gantt), ("load.png", draw_load)):
        figure = Figure(figsize=INCHES, layout="constrained")
        draw(schedule, figure)
        figure.savefig(directory / name, dpi=110)
    return ["gantt.png", "load.png"]


def draw_gantt(schedule: Schedule, figure: Any) -> None:
    """One box for each run of a job on consecutive hosts; runs that were lost are hatched."""
    from matplotlib import colormaps
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    axis = figure.add_subplot()
    colours = colormaps["tab20"]
    few = len(schedule.attempts) <= LABELLED_JOBS
    end = 0.0
    groups: dict[tuple[tuple[float, ...], str | None], list[Any]] = {}
    for attempt in schedule.attempts:
        start = attempt.start_s or 0.0
        finish = schedule.now_s if attempt.end_s is None else attempt.end_s
        end = max(end, finish)
        key = (colours(attempt.number % 20), _hatch(attempt.state))
        for first, length in runs(attempt.mask):
            groups.setdefault(key, []).append(Rectangle((start, first), finish - start, length))
            if few:
                middle = ((start + finish) / 2, first + length / 2)
                axis.annotate(attempt.job.id, middle, ha="center", va="center", fontsize=8)
    for (colour, hatch), boxes in groups.items():
        axis.add_collection(
            PatchCollection(boxes, facecolor=colour, edgecolor="white", linewidth=0.3, hatch=hatch)
        )
    axis.set_xlim(0, end * 1.01 or 1)
    axis.set_ylim(0, schedule.num_hosts)
    axis.set_xlabel("time (s)")
    axis.set_ylabel("host")
    axis.set_title(f"{len(schedule.final)} jobs on {schedule.num_hosts} hosts")


def _hatch(state: str) -> str | None:
    """Lost runs are crossed, those killed at their walltime or failed striped."""
    if state == SUCCESS:
        return None
    return "xxx" if state == KILLED else "///"


def draw_load(schedule: Schedule, figure: Any) -> None:
    """Hosts in use, and hosts that waiting jobs ask for, over time."""
    over_time = load(schedule)
    used, asked = figure.subplots(2, 1, sharex=True)
    used.fill_between(over_time.date_s, over_time.used_hosts, step="post", color="#4c78a8")
    used.axhline(schedule.num_hosts, color="black", linewidth=0.8, linestyle="--")
    used.set_ylabel("hosts in use")
    used.set_ylim(0, schedule.num_hosts * 1.05)
    asked.fill_between(over_time.date_s, over_time.requested_hosts, step="post", color="#f2a541")
    asked.set_ylabel("hosts waited for")
    asked.set_ylim(bottom=0)
    jobs = asked.twinx()
    jobs.step(over_time.date_s, over_time.waiting_jobs, where="post", color="#b5496b", linewidth=1)
    jobs.set_ylabel("jobs that wait", color="#b5496b")
    jobs.set_ylim(bottom=0)
    asked.set_xlabel("time (s)")
    used.set_title("Use of the machine and the queue")
