"""Common parts of all pictures of results: sizes, type, axes of time, names, saving.

Dates and times in pictures are in s; their axes are labelled in a unit that reads well.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ptaskmodel.results.loading import Results, ShownTask
from ptaskmodel.style.figures import HEAT, LIGHT
from ptaskmodel.style.text import elided, ticks, unit_of

if TYPE_CHECKING:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Colormap, Normalize

NAME: Final = 40  # characters of a name beside a picture
# Ends of scales: per cent of a capacity, of which none is below it; slowdowns.
USE: Final[tuple[float, float]] = (1e-9, 100.0)
SLOWDOWN: Final[tuple[float, float]] = (1.0, 4.0)
# Lines of what is not used at all: a line is thinner than an area, so it is darker.
UNUSED_LINE: Final = "#B7BFC8"
NEEDS_ATTRIBUTION = "this picture needs a run with --attribution"


def time_axis(
    axes: Any,
    end_s: float,
    begin_s: float = 0.0,
    results: Results | None = None,
    name: str = "time",
) -> None:
    """Give ``axes`` a time from ``begin_s`` to ``end_s`` with round dates in one unit.

    results: where they were stopped, what lies behind is hatched. name: what the axis is.
    """
    last_s = end_s
    if results is not None and results.stopped is not None and end_s >= results.stopped.at_s:
        last_s = end_s + 0.03 * (end_s - begin_s)
        axes.axvspan(end_s, last_s, facecolor=LIGHT.panel, edgecolor=LIGHT.soft, hatch="////",
                     linewidth=0, zorder=0.5)  # fmt: skip
    inches = axes.get_position().width * axes.figure.get_figwidth()
    unit, dates, scale = ticks(begin_s, end_s, max(1.4 * inches, 2))
    axes.set_xticks([date * scale for date in dates], [f"{date:g}" for date in dates])
    axes.set_xlim(begin_s, last_s)
    axes.set_xlabel(f"{name} ({unit})")


def unit_axis(axes: Any, name: str, kind: str, largest: float) -> None:
    """Label the upright axis of ``axes``, from 0 on, in one unit.

    name: what it is. kind: as of `style.text.number`. largest: the largest value there.
    """
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    scale, unit = unit_of(largest, kind)
    if kind == "time":
        unit, marks, scale = ticks(0.0, largest or 1.0, 5)
        axes.set_yticks([mark * scale for mark in marks], [f"{mark:g}" for mark in marks])
    else:
        axes.yaxis.set_major_locator(
            MaxNLocator(5, steps=[1, 2, 5, 10], integer=kind == "number" and largest >= 5)
        )
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / scale:g}"))
    axes.set_ylim(0.0, 1.05 * (largest or 1.0))
    axes.set_ylabel(f"{name} ({unit})".strip() if unit else name)


def heat() -> Colormap:
    """Colours of parts of a capacity, from 0 (pale) to 100 % (dark) in every picture.

    What is not used is below its scale, and grey.
    """
    from matplotlib.colors import LinearSegmentedColormap

    made = LinearSegmentedColormap.from_list("heat", list(HEAT))
    return made.with_extremes(under=LIGHT.nothing, bad=LIGHT.nothing)


def scale(low: float, high: float, is_log: bool = False) -> Normalize:
    """Return amounts from ``low`` to ``high`` for `heat`.

    is_log: logarithmic, those beyond are in its end colours.
    """
    from matplotlib.colors import LogNorm, Normalize

    return LogNorm(low, high, clip=True) if is_log else Normalize(low, high)


def colour_bar(axes: Any, shown: ScalarMappable, label: str, extend: str = "neither") -> Any:
    """Add a narrow bar of colours beside ``axes``, and return it.

    shown: what has them. label: of the bar. extend: which end has more: "min", "max" or "neither".
    """
    bar = axes.figure.colorbar(
        shown, ax=axes, pad=0.01, fraction=0.03, aspect=30, extend=extend, extendfrac=0.03
    )
    bar.outline.set_visible(False)
    bar.set_label(label)
    return bar


def heat_bar(axes: Any, ends: tuple[float, float], label: str) -> None:
    """Add the bar of `heat` beside ``axes``: of USE, where grey stands for nothing, or of SLOWDOWN.

    ends: one of them. label: of the bar.
    """
    from matplotlib.cm import ScalarMappable

    bar = colour_bar(axes, ScalarMappable(scale(*ends), heat()), label,
                     "min" if ends == USE else "max")  # fmt: skip
    marks = [0, 20, 40, 60, 80, 100] if ends == USE else [1, 2, 3, 4]
    bar.set_ticks(marks, labels=[*map(str, marks[:-1]), "100" if ends == USE else "4+"])


def ran(results: Results) -> list[tuple[ShownTask, float, float]]:
    """(task, start, end) of those that began; the end of those still running is the run's."""
    end_s = results.end_s
    return [
        (task, task.start_s, end_s if task.end_s is None else task.end_s)
        for task in results.tasks
        if task.start_s is not None
    ]


def host_order(results: Results) -> list[str]:
    """Names of the hosts that are used, numbers in them in their natural order."""
    names = {host for task in results.tasks for host in task.hosts}
    return sorted(names, key=natural)


def natural(name: str) -> list[tuple[int, int | str]]:
    """Sort key that puts n2 before n10."""
    parts = filter(None, re.split("([0-9]+)", name))
    return [(0, int(part)) if part[0] in "0123456789" else (1, part) for part in parts]


def row_ticks(axes: Any, names: Sequence[str], most: int = 40, letters: int | None = None) -> None:
    """Name the rows of ``axes``, the first above: each, or ``most`` of them.

    letters: of a name that are shown at most; None: NAME.
    """
    step = max(1, math.ceil(len(names) / most))
    axes.set_yticks(
        range(0, len(names), step), [elided(name, letters or NAME) for name in names[::step]]
    )
    axes.set_ylim(max(len(names), 1) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
