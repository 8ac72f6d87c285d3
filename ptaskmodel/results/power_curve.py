"""What hosts and links draw over time, and the energy of that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results.drawing import (
    BLUE,
    ORANGE,
    clock_text,
    new_figure,
    prefix_of,
    stopped_strip,
    time_unit,
)
from ptaskmodel.results.loading import Results, power_curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Of more changes than that, means over as many parts of the time are drawn.
MOST_STEPS = 2000


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
