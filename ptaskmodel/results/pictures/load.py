"""Pictures of load over time: hosts in use, the queue and its waiting times, power and energy."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results.loading import LOAD, Results, load_over_time, power_curve
from ptaskmodel.results.pictures.drawing import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    SKY,
    clock_text,
    new_figure,
    prefix_of,
    stopped_strip,
    time_unit,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


FloatArray = NDArray[np.float64]
CELLS, PAGE_CELLS = 600, 400
# Heights of the axes over what is drawn: legends stand above it.
HEADROOM = 1.2
# Of more changes than that, means over as many parts of the time are drawn.
MOST_STEPS = 2000
OVER_TIME, TUNING = "over_time.csv", "tuning.csv"
USES = (
    ("utilisation_1h", "1 h", GREY),
    ("utilisation_10h", "10 h", ORANGE),
    ("utilisation_24h", "24 h", BLUE),
)


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


def power_over_time(results: Results) -> Figure:
    """Power of hosts and links over time, and the energy up to then."""
    rows = power_curve(results)
    if len(rows) < 2:
        raise PTaskModelError(f"{results.directory}: no time passed; nothing to draw")
    table = np.array(rows)
    dates = table[:, 0]
    lasted = np.diff(dates)
    joules = np.concatenate([np.zeros((1, 2)), np.cumsum(table[:-1, 1:] * lasted[:, None], axis=0)])
    title = "Power"
    watts = table[:, 1:]
    if len(rows) > MOST_STEPS:
        whole = np.linspace(dates[0], dates[-1], MOST_STEPS + 1)
        joules = np.column_stack([np.interp(whole, dates, joules[:, k]) for k in range(2)])
        width = whole[1] - whole[0]
        watts = np.diff(joules, axis=0) / width
        watts = np.concatenate([watts, watts[-1:]])
        dates = whole
        title = f"Mean power over {clock_text(width)}"
    unit, unit_name = time_unit(float(dates[-1]))
    scale, prefix = prefix_of(float(watts.sum(axis=1).max()))
    figure = new_figure(10.0, 4.5)
    axes = figure.add_subplot()
    hosts, both = watts[:, 0] / scale, watts.sum(axis=1) / scale
    x = dates / unit
    axes.fill_between(x, hosts, step="post", color=BLUE, linewidth=0, label="hosts")
    if watts[:, 1].any():
        axes.fill_between(x, hosts, both, step="post", color=ORANGE, linewidth=0, label="links")
    axes.set_ylim(min(0.0, float(both.min())), 1.25 * max(float(both.max()), 1e-9))
    axes.set_xlim(float(x[0]), float(x[-1]))
    stopped_strip(axes, results, unit)
    axes.set_ylabel(f"power ({prefix}W)")
    axes.set_xlabel(f"time ({unit_name})")
    total = joules.sum(axis=1)
    energy_scale, energy_prefix = prefix_of(float(total[-1]))
    energy = axes.twinx()
    energy.plot(x, total / energy_scale, color="black", linewidth=1.5, label="energy")
    energy.set_ylim(0.0, 1.05 * max(float(total.max()) / energy_scale, 1e-9))
    energy.set_ylabel(f"energy up to then ({energy_prefix}J)")
    shown = [*axes.get_legend_handles_labels()[0], *energy.get_lines()]
    energy.legend(handles=shown, loc="upper left")
    what = f"{total[-1] / energy_scale:.4g} {energy_prefix}J in all"
    axes.set_title(f"{title} of {results.directory.name}: {what}", fontsize=10, loc="left")
    return figure


def columns_of(path: Path, *needed: str) -> dict[str, list[float]]:
    """The columns of a table of numbers. Raises PTaskModelError if it is none or one lacks."""
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream, strict=True)
            names = reader.fieldnames or []
            missing = sorted(set(needed) - set(names))
            if missing:
                raise ValueError(f"no column {missing[0]!r}")
            found: dict[str, list[float]] = {name: [] for name in names}
            for row in reader:
                for name in names:
                    value = float(row[name])
                    if not math.isfinite(value):
                        raise ValueError(f"line {reader.line_num}: {row[name]!r} is not finite")
                    found[name].append(value)
    except FileNotFoundError:
        raise PTaskModelError(f"{path}: is missing; make the batch anew") from None
    except (OSError, ValueError, TypeError, csv.Error) as error:
        raise PTaskModelError(f"{path}: cannot be read ({error})") from None
    return found


def queue_over_time(results: Results) -> Figure:
    """Queue depth, utilisation over 1, 10 and 24 h, and what an adaptive policy made of them."""
    if results.what != "job":
        raise PTaskModelError(f"{results.directory}: not the results of a batch; it has no queue")
    names = [name for name, _, _ in USES]
    samples = columns_of(results.directory / OVER_TIME, "time", "queue_depth", *names)
    if not samples["time"]:
        raise PTaskModelError(
            f"{results.directory / OVER_TIME}: the run is too short for samples; nothing to draw"
        )
    tuning: dict[str, list[float]] = {}
    if (results.directory / TUNING).exists():
        tuning = columns_of(results.directory / TUNING, "time", "queue_depth", "utilisation")
    values = [name for name in tuning if name not in samples and name != "utilisation"]
    unit, unit_name = time_unit(samples["time"][-1])
    dates = [date / unit for date in samples["time"]]
    figure = new_figure(10.0, 5.0 + (2.0 if values else 0.0))
    panels: Any = figure.subplots(2 + bool(values), 1, sharex=True)
    panels[0].fill_between(dates, [depth / 3600 for depth in samples["queue_depth"]], color=RED,
                           linewidth=0)  # fmt: skip
    panels[0].set_ylim(bottom=0)
    panels[0].set_ylabel("queue depth (h)")
    panels[0].set_title("Time that the jobs in the queue have waited so far, summed", fontsize=10,
                        loc="left")  # fmt: skip
    for name, label, colour in USES:
        panels[1].plot(dates, [100 * used for used in samples[name]], color=colour, label=label,
                       linewidth=0.7 if name == "utilisation_1h" else 1.5)  # fmt: skip
    panels[1].set_ylim(0, 103)
    panels[1].set_ylabel("utilisation (%)")
    panels[1].legend(title="of the last", loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    for name, colour in zip(values, (BLUE, GREEN, ORANGE), strict=False):
        checks = [date / unit for date in tuning["time"]]
        panels[2].step(checks, tuning[name], where="post", color=colour, label=name)
    if values:
        panels[2].set_ylim(bottom=0)
        panels[2].set_ylabel("values")
        panels[2].legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    for axes in panels:
        axes.grid(alpha=0.3)
    panels[-1].set_xlim(0.0, dates[-1])
    for axes in panels:
        stopped_strip(axes, results, unit)
    panels[-1].set_xlabel(f"time ({unit_name})")
    return figure
