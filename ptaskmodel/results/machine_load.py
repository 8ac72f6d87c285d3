"""The load of a machine: hosts in use, and the queue, over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results.drawing import BLUE, ORANGE, RED, new_figure, time_unit
from ptaskmodel.results.loading import LOAD, Results, load_over_time

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def machine_load(results: Results) -> Figure:
    """Hosts in use, and hosts that waiting jobs ask for, over time."""
    rows = load_over_time(results)
    if not rows:
        raise PTaskModelError(f"{results.directory / LOAD}: no job was there; nothing to draw")
    dates, waiting, requested, used = zip(*rows, strict=True)
    unit, unit_name = time_unit(dates[-1])
    dates = tuple(date / unit for date in dates)
    figure = new_figure(10.0, 5.0)
    above, below = figure.subplots(2, 1, sharex=True)
    above.fill_between(dates, used, step="post", color=BLUE, linewidth=0)
    total = results.summary.get("hosts")
    if isinstance(total, int | float):
        above.axhline(total, color="black", linewidth=0.8, linestyle="--")
    above.set_ylim(0, 1.05 * max(total if isinstance(total, int | float) else 1, *used))
    above.set_ylabel("hosts in use")
    title = "Use of the machine, and the queue"
    if isinstance(total, int | float):
        title += f"; dashed: all {total:,} hosts"
    above.set_title(title, fontsize=10, loc="left")
    below.fill_between(dates, requested, step="post", color=ORANGE, linewidth=0)
    below.set_ylim(0, 1.05 * max(1, *requested))
    below.set_ylabel("hosts waited for")
    jobs = below.twinx()
    jobs.step(dates, waiting, where="post", color=RED, linewidth=1)
    jobs.set_ylim(0, 1.05 * max(1, *waiting))
    jobs.set_ylabel("jobs that wait", color=RED)
    below.set_xlim(0.0, dates[-1] or 1.0)
    below.set_xlabel(f"time ({unit_name})")
    return figure
