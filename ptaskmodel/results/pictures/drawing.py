"""Common parts of all pictures of results: figures, colours, units of time, order of names."""

from __future__ import annotations

import math
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.files import whole_path
from ptaskmodel.results.loading import Results, ShownTask

if TYPE_CHECKING:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Colormap, Normalize
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind people tell apart.
BLUE: Final = "#0072B2"
ORANGE: Final = "#E69F00"
GREEN: Final = "#009E73"
RED: Final = "#D55E00"
SKY: Final = "#56B4E9"
PINK: Final = "#CC79A7"
YELLOW: Final = "#F0E442"
GREY: Final = "#999999"
TASK_COLOURS = (BLUE, ORANGE, GREEN, RED, SKY, PINK, YELLOW)
# Of parts of a capacity, above 0 to 100 %: ColorBrewer's YlGnBu without what is too pale on white.
HEAT = (
    *("#BCE3B0", "#97D6B9", "#6AC4BE", "#3FB1C3", "#2495C0"),
    *("#2070B0", "#234BA0", "#1F2E86", "#081D58"),
)
# Of what is not used at all: grey, which none of those above is; a line is thinner than an area.
UNUSED, UNUSED_LINE = "#E9E9E9", "#D4D4D4"
NEEDS_ATTRIBUTION = "this picture needs a run with --attribution"


class NoMatplotlib(PTaskModelError):
    """A picture was asked for where matplotlib is not installed."""


def check_matplotlib() -> None:
    """Raises NoMatplotlib where there is none."""
    if find_spec("matplotlib") is None:
        raise NoMatplotlib("pictures need matplotlib; run: pip install matplotlib")


def new_figure(width: float, height: float) -> Figure:
    """An empty figure. Raises NoMatplotlib."""
    check_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def heat() -> Colormap:
    """Colours of parts of a capacity, from 0 (pale) to 100 % (dark) in every picture.

    What is not used is below its scale, and grey.
    """
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("heat", list(HEAT)).with_extremes(under=UNUSED)


def use_scale() -> Normalize:
    """Per cent of a capacity, for `heat`: what is not used is below it."""
    from matplotlib.colors import Normalize

    return Normalize(1e-9, 100.0)


def use_bar(figure: Figure, shown: ScalarMappable, axes: Any, label: str, room: float) -> None:
    """The bar of `heat` and `use_scale` beside a picture, with grey, for nothing, below 0 %."""
    bar = figure.colorbar(shown, ax=axes, pad=0.01, fraction=room, extend="min", extendfrac=0.03)
    bar.set_ticks([0, 20, 40, 60, 80, 100])
    bar.set_label(label)


def check_picture(path: str | Path) -> None:
    """A picture can be made, of this name. Raises PTaskModelError for another suffix."""
    if Path(path).suffix.lower() not in (".png", ".svg", ".pdf"):
        raise PTaskModelError(f"{path}: pictures are .png, .svg or .pdf; choose one of them")
    check_matplotlib()


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure (.png, .svg or .pdf), whole and without a date inside.

    Raises PTaskModelError for another suffix or if the file cannot be written.
    """
    check_picture(path)
    path = Path(path)
    suffix = path.suffix.lower()
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(suffix)
    import matplotlib as mpl

    with whole_path(path) as partial, mpl.rc_context({"svg.hashsalt": "ptaskmodel"}):
        figure.savefig(partial, format=suffix[1:], dpi=150, metadata=metadata, facecolor="white")


def time_unit(span_s: float) -> tuple[float, str]:
    """(seconds, name) of the unit in which a span of time reads well."""
    for seconds, name in ((86400.0, "d"), (3600.0, "h")):
        if span_s > 4 * seconds:
            return seconds, name
    for seconds, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if span_s >= seconds:
            return seconds, name
    return 1.0, "s"


def lasting(seconds: float) -> str:
    """A length of time in the unit in which it reads well, to four digits."""
    unit, name = time_unit(abs(seconds))
    value = seconds / unit
    return f"{value:,.0f} {name}" if abs(value) >= 1e4 else f"{value:.4g} {name}"


def clock_text(seconds: float) -> str:
    """A length of time as one says it: 131 ms, 33.5 s, 43 min, 15 h 54 min, 7 d 20 h."""
    if seconds < 120:
        shown = float(f"{seconds:.3g}")
        unit, name = time_unit(shown)
        return f"{shown / unit:.3g} {name}"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    large, small, name, part = (minutes, 60, "h", "min")
    if minutes >= 48 * 60:
        large, small, name, part = (round(minutes / 60), 24, "d", "h")
    whole, rest = divmod(large, small)
    return f"{whole:,} {name}" + (f" {rest} {part}" if rest else "")


def prefix_of(value: float) -> tuple[float, str]:
    """The prefix of a unit in which a value reads well: its scale, and its letter."""
    for scale, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= scale:
            return scale, prefix
    return 1.0, ""


def stopped_strip(axes: Any, results: Results, unit: float) -> None:
    """Hatch what lies behind the date at which a run was stopped, at the right end of the time."""
    if results.stopped is None:
        return
    begin = results.stopped.at_s / unit
    axes.axvspan(begin, 1.03 * begin, facecolor=UNUSED, edgecolor=GREY, hatch="////", linewidth=0)
    axes.set_xlim(right=1.03 * begin)


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
    parts: list[tuple[int, int | str]] = []
    text, digits = "", ""
    for c in name + "\0":
        if c.isascii() and c.isdigit():
            if text:
                parts.append((1, text))
                text = ""
            digits += c
        else:
            if digits:
                parts.append((0, int(digits)))
                digits = ""
            text += c
    return parts


def colour_of(k: int) -> str:
    return TASK_COLOURS[k % len(TASK_COLOURS)]


def host_ticks(axes: Any, names: list[str], most: int = 40) -> None:
    step = max(1, math.ceil(len(names) / most))
    axes.set_yticks(range(0, len(names), step))
    axes.set_yticklabels([short_name(name, 64) for name in names[::step]], fontsize=8)


def short_name(name: str, most: int = 24) -> str:
    """A name, elided in the middle if it is longer than ``most`` characters."""
    end = (most - 3) // 2
    return name if len(name) <= most else f"{name[: most - 3 - end]}...{name[-end:]}"
