"""The load of a machine: hosts in use, and the queue, over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results.drawing import (
    BLUE,
    ORANGE,
    RED,
    SKY,
    clock_text,
    new_figure,
    stopped_strip,
    time_unit,
)
from ptaskmodel.results.loading import LOAD, Results, load_over_time

if TYPE_CHECKING:
    from matplotlib.figure import Figure


FloatArray = NDArray[np.float64]
CELLS, PAGE_CELLS = 600, 400
# Heights of the axes over what is drawn: legends stand above it.
HEADROOM = 1.2


class Load(NamedTuple):
    """The load in cells of time of equal length, arrays (cells, 3): of the jobs that wait, the
    hosts that they ask for and the hosts in use, the mean and the most."""

    mean: FloatArray
    most: FloatArray


def load_in_cells(
    rows: Sequence[tuple[float, float, float, float]], end_s: float, cells: int
) -> Load:
    """Gather what `loading.load_over_time` gives, values that hold from a date on, up to end_s."""
    table = np.array(rows, dtype=np.float64).reshape(-1, 4)
    edges = np.linspace(0.0, end_s, cells + 1)
    dates, values = table[:, 0], table[:, 1:]
    # The values at all dates at which anything changes or a cell begins.
    every = np.unique(np.concatenate([dates[(dates > 0.0) & (dates < end_s)], edges]))
    at = np.searchsorted(dates, every, side="right") - 1
    held = np.where((at >= 0)[:, None], values[np.maximum(at, 0)], 0.0)[:-1]
    first = np.searchsorted(every, edges[:-1])
    lasted = np.diff(every)
    mean = np.add.reduceat(held * lasted[:, None], first) / (end_s / cells)
    return Load(mean, np.maximum.reduceat(held, first))


def load_data(results: Results) -> dict[str, Any] | None:
    """Of a batch, for its page: the load in cells of time, as JSON (see report.js)."""
    if results.what != "job" or not (results.directory / LOAD).exists():
        return None
    rows = load_over_time(results)
    if not rows or rows[-1][0] <= 0.0:
        return None
    end_s = _end_s(results, rows)
    load = load_in_cells(rows, end_s, PAGE_CELLS)
    columns = (load.mean[:, 2], load.most[:, 2], load.mean[:, 1], load.most[:, 0])
    return {
        "end": end_s,
        "cell": clock_text(end_s / PAGE_CELLS),
        "hosts": results.summary.get("hosts"),
        "columns": [[round(value, 2) for value in column.tolist()] for column in columns],
    }


def _end_s(results: Results, rows: Sequence[tuple[float, float, float, float]]) -> float:
    """Up to where the load is known, s: the last change, or the date at which it was stopped."""
    return rows[-1][0] if results.stopped is None else results.stopped.at_s


def machine_load(results: Results) -> Figure:
    """Hosts in use, and hosts that waiting jobs ask for, over time."""
    rows = load_over_time(results)
    if not rows:
        raise PTaskModelError(f"{results.directory / LOAD}: no job was there; nothing to draw")
    end_s = _end_s(results, rows) or 1.0
    unit, unit_name = time_unit(end_s)
    load = load_in_cells(rows, end_s, CELLS)
    dates = np.linspace(0.0, end_s / unit, CELLS + 1)
    # Waiting jobs, hosts that they ask for, hosts in use; of each the last value once more.
    mean, most = (np.concatenate([each, each[-1:]]).T for each in load)
    figure = new_figure(10.0, 5.0)
    above, below = figure.subplots(2, 1, sharex=True)
    above.fill_between(dates, most[2], step="post", color=SKY, linewidth=0, label="most")
    above.fill_between(dates, mean[2], step="post", color=BLUE, linewidth=0, label="mean")
    total = results.summary.get("hosts")
    if isinstance(total, int | float):
        above.axhline(total, color="black", linewidth=0.8, linestyle="--", label=f"all {total:,}")
    above.set_ylim(0, HEADROOM * max(total if isinstance(total, int | float) else 1, *most[2]))
    above.set_ylabel("hosts in use")
    title = f"Use of the machine, and the queue; mean and most in each {clock_text(end_s / CELLS)}"
    above.set_title(title, fontsize=10, loc="left")
    below.fill_between(dates, mean[1], step="post", color=ORANGE, linewidth=0,
                       label="hosts waited for, mean")  # fmt: skip
    below.set_ylim(0, HEADROOM * max(1, *mean[1]))
    below.set_ylabel("hosts waited for")
    jobs = below.twinx()
    jobs.step(dates, most[0], where="post", color=RED, linewidth=1, label="jobs that wait, most")
    jobs.set_ylim(0, HEADROOM * max(1, *most[0]))
    jobs.set_ylabel("jobs that wait", color=RED)
    if not most[0].any():
        below.text(0.5, 0.5, "nobody waits", transform=below.transAxes, ha="center", va="center")
    for axes in (above, below, jobs):
        axes.legend(loc="upper right" if axes is jobs else "upper left", frameon=False, fontsize=8,
                    ncols=3)  # fmt: skip
    below.set_xlim(0.0, dates[-1])
    for axes in (above, below):
        stopped_strip(axes, results, unit)
    below.set_xlabel(f"time ({unit_name})")
    return figure
