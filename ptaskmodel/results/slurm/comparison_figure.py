"""The picture of two configurations of Slurm: queues over time, who gains and who loses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ptaskmodel.results.drawing import BLUE, GREY, ORANGE, RED, new_figure, time_unit
from ptaskmodel.results.slurm.curves import last_date_s, waiting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ptaskmodel.results.slurm.comparison import GroupChange, SlurmComparison

# Changes whose largest is so many times the median need a bent axis.
BENT = 50.0


def slurm_comparison_figure(found: SlurmComparison) -> Figure:
    """Queues of both over time; the change of the mean wait by size, length and user; of all."""
    figure = new_figure(11.0, 9.5)
    grid = figure.add_gridspec(3, 2, height_ratios=(0.8, 1.0, 1.0))
    _queues(figure.add_subplot(grid[0, :]), found)
    places = ((1, 0, "size"), (1, 1, "length"), (2, 0, "user"))
    groups = {by: found.groups(by) for _, _, by in places}
    largest = max((abs(each.change_s) for of in groups.values() for each in of), default=1.0)
    unit, unit_name = time_unit(largest)
    for row, column, by in places:
        _changes(figure.add_subplot(grid[row, column]), groups[by], by, unit, unit_name)
    _every_job(figure.add_subplot(grid[2, 1]), found)
    names = f"a: {found.a.directory}\nb: {found.b.directory}"
    figure.suptitle(names, fontsize=10, ha="left", x=0.01)
    return figure


def _queues(axes: Any, found: SlurmComparison) -> None:
    sides = ((found.jobs_a, ORANGE, "a"), (found.jobs_b, BLUE, "b"))
    end_s = max(last_date_s(jobs) for jobs, _, _ in sides)
    unit, unit_name = time_unit(end_s)
    for jobs, colour, name in sides:
        curve = waiting(jobs, end_s)
        axes.step(curve.dates_s / unit, curve.values, where="post", color=colour, label=name)
    axes.set_xlim(0.0, end_s / unit)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(f"time ({unit_name})")
    axes.set_ylabel("jobs that wait")
    axes.grid(alpha=0.3)
    axes.legend(loc="upper right", frameon=False, ncols=2)


def _changes(axes: Any, groups: list[GroupChange], by: str, unit: float, unit_name: str) -> None:
    for row, group in enumerate(groups):
        colour = BLUE if group.change_s < 0 else RED
        axes.barh(row, group.change_s / unit, color=colour, height=0.7)
    axes.set_yticks(range(len(groups)))
    axes.set_yticklabels([f"{each.name} ({each.jobs:,})" for each in groups], fontsize=8)
    axes.invert_yaxis()
    axes.axvline(0.0, color="black", linewidth=0.8)
    axes.grid(alpha=0.3, axis="x")
    axes.set_xlabel(f"mean wait in b minus that in a ({unit_name})")
    most = " (those it changes most for)" if by == "user" else ""
    axes.set_title(f"by {by}{most}: blue gains, orange loses", fontsize=9, loc="left")


def _every_job(axes: Any, found: SlurmComparison) -> None:
    changes = np.sort(found.changes_s[~np.isnan(found.changes_s)])
    axes.set_title("every job", fontsize=9, loc="left")
    axes.set_ylabel("jobs with at most that change (%)")
    axes.set_ylim(0.0, 102.0)
    if not len(changes):
        return
    unit, unit_name = time_unit(max(float(np.abs(changes).max()), 1.0))
    part = 100.0 * np.arange(1, len(changes) + 1) / len(changes)
    axes.step(changes / unit, part, where="post", color=BLUE, linewidth=1.5)
    low, high = np.percentile(np.abs(changes), (50, 100)) / unit
    if high > BENT * max(low, 1e-9) and high > 0:
        bend = max(low, high / 1000.0)
        axes.set_xscale("symlog", linthresh=bend)
        # Both signs of the least power of ten would stand on the 0 between them.
        ticks = 10.0 ** np.arange(np.floor(np.log10(bend)) + 1, np.ceil(np.log10(high)) + 1)
        axes.set_xticks([*-ticks[::-1], 0.0, *ticks])
        axes.set_xlim(*(1.1 * np.array([min(changes[0], 0.0), max(changes[-1], 0.0)]) / unit))
    axes.axvline(0.0, color=GREY, linewidth=1.0)
    axes.grid(alpha=0.3)
    axes.set_xlabel(f"wait in b less wait in a ({unit_name})")
