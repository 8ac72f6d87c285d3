"""Common parts of all pictures of results: sizes, type, axes of time, names, saving.

Dates and times in pictures are in s; their axes are labelled in a unit that reads well.
"""

from __future__ import annotations

import functools
import math
import textwrap
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec, cast

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.files import whole_path
from ptaskmodel.results.loading import Results, ShownTask
from ptaskmodel.style.colours import CATEGORIES, HEAT, LIGHT
from ptaskmodel.style.text import elided, ticks, unit_of

if TYPE_CHECKING:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Colormap, Normalize
    from matplotlib.figure import Figure

# Inches: of a picture in a column of text, and of one over the whole page. Text has 8 points there.
COLUMN, WIDE = 6.5, 13.0
POINTS: Final = 8.0
NAME: Final = 40  # characters of a name beside a picture
LETTERS: Final = 12.5  # of a title, on an inch
# The first has all but Chinese, Japanese and Korean; of the others those that are there are asked.
FONTS: Final = (
    *("DejaVu Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans CJK KR", "Noto Sans SC"),
    *("Source Han Sans", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Droid Sans Fallback"),
    *("PingFang SC", "Hiragino Sans", "Microsoft YaHei", "Yu Gothic", "Malgun Gothic"),
    "Arial Unicode MS",
)
# Lines of what is not used at all: a line is thinner than an area, so it is darker.
UNUSED_LINE: Final = "#B7BFC8"
NEEDS_ATTRIBUTION = "this picture needs a run with --attribution"
P = ParamSpec("P")


class NoMatplotlib(PTaskModelError):
    """A picture was asked for where matplotlib is not installed."""


def check_matplotlib() -> None:
    """Raises NoMatplotlib where there is none."""
    if find_spec("matplotlib") is None:
        raise NoMatplotlib("pictures need matplotlib; run: pip install matplotlib")


@functools.cache
def style() -> dict[str, Any]:
    """Return the settings of matplotlib for all pictures: small type, no frames, pale grids."""
    from cycler import cycler
    from matplotlib.font_manager import get_font_names

    there = set(get_font_names())
    return {
        "font.family": [name for name in FONTS if name in there] or ["sans-serif"],
        "font.size": POINTS,
        "axes.titlesize": POINTS,
        "axes.titlelocation": "left",
        "axes.titlecolor": LIGHT.soft,
        "axes.labelsize": POINTS,
        "axes.labelcolor": LIGHT.soft,
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.prop_cycle": cycler(color=CATEGORIES),
        **{f"axes.spines.{side}": False for side in ("top", "right", "left", "bottom")},
        "grid.color": LIGHT.line,
        "grid.linewidth": 0.6,
        "xtick.labelsize": POINTS,
        "ytick.labelsize": POINTS,
        "xtick.color": LIGHT.soft,
        "ytick.color": LIGHT.soft,
        "xtick.major.size": 0,
        "ytick.major.size": 0,
        "text.color": LIGHT.ink,
        "legend.fontsize": POINTS,
        "legend.frameon": False,
        "hatch.linewidth": 0.7,
        "figure.titlesize": POINTS + 2,
        "figure.titleweight": "bold",
    }


def picture(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Decorate a function that draws: it has the `style`, or raises NoMatplotlib."""

    @functools.wraps(draw)
    def styled(*args: P.args, **kwargs: P.kwargs) -> Figure:
        check_matplotlib()
        import matplotlib as mpl

        with mpl.rc_context(cast(Any, style())):
            return draw(*args, **kwargs)

    return styled


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, of ``width`` and ``height`` in inches. Raises NoMatplotlib."""
    check_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def finished(figure: Figure, title: str, note: str, sentence: str) -> Figure:
    """Return ``figure`` with its head.

    title: what it says. note: what is drawn, of how many, in which unit. sentence: what it shows,
    with numbers, for those who do not see it (`sentence_of`).
    """
    letters = round(LETTERS * figure.get_figwidth())
    figure.suptitle(textwrap.fill(title, letters), x=0.005, ha="left")
    figure.axes[0].set_title(note)
    figure.set_label(sentence)
    return figure


def sentence_of(figure: Figure) -> str:
    """Return what ``figure`` shows in a sentence; empty if it does not say."""
    return str(figure.get_label())


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


def use_scale() -> Normalize:
    """Per cent of a capacity, for `heat`: what is not used is below it."""
    from matplotlib.colors import Normalize

    return Normalize(1e-9, 100.0)


def slowdown_scale() -> Normalize:
    """Slowdowns for `heat`, from 1 to 4 and more in every picture."""
    from matplotlib.colors import Normalize

    return Normalize(1.0, 4.0)


def colour_bar(axes: Any, shown: ScalarMappable, extend: str = "neither") -> Any:
    """Add a narrow bar of colours beside ``axes``, and return it.

    shown: what has them. extend: which end has more: "min", "max" or "neither".
    """
    bar = axes.figure.colorbar(
        shown, ax=axes, pad=0.01, fraction=0.03, aspect=30, extend=extend, extendfrac=0.03
    )
    bar.outline.set_visible(False)
    return bar


def use_bar(axes: Any, shown: ScalarMappable, label: str) -> None:
    """The bar of `heat` and `use_scale` beside ``axes``, with grey, for nothing, below 0 %."""
    bar = colour_bar(axes, shown, "min")
    bar.set_ticks([0, 20, 40, 60, 80, 100])
    bar.set_label(label)


def slowdown_bar(axes: Any) -> None:
    """The bar of `slowdown_scale` beside ``axes``."""
    from matplotlib.cm import ScalarMappable

    bar = colour_bar(axes, ScalarMappable(slowdown_scale(), heat()), "max")
    bar.set_ticks([1, 2, 3, 4], labels=["1", "2", "3", "4+"])
    bar.set_label("contention slowdown")


def check_picture(path: str | Path) -> None:
    """A picture can be made, of this name. Raises PTaskModelError for another suffix."""
    if Path(path).suffix.lower() not in (".png", ".svg", ".pdf"):
        raise PTaskModelError(f"{path}: pictures are .png, .svg or .pdf; choose one of them")
    check_matplotlib()


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure (.png, .svg or .pdf), whole, with its sentence and without a date inside.

    Raises PTaskModelError for another suffix or if the file cannot be written.
    """
    check_picture(path)
    path = Path(path)
    suffix = path.suffix.lower()
    said = sentence_of(figure)
    metadata = {
        ".png": {"Description": said},
        ".svg": {"Date": None, "Description": said},
        ".pdf": {"CreationDate": None, "Subject": said},
    }[suffix]
    import matplotlib as mpl

    with whole_path(path) as partial, mpl.rc_context({"svg.hashsalt": "ptaskmodel"}):
        figure.savefig(partial, format=suffix[1:], dpi=150, metadata=metadata, facecolor="white")


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


def row_ticks(axes: Any, names: Sequence[str], most: int = 40) -> None:
    """Name the rows of ``axes``, the first above: each, or ``most`` of them."""
    step = max(1, math.ceil(len(names) / most))
    axes.set_yticks(range(0, len(names), step), [elided(name, NAME) for name in names[::step]])
    axes.set_ylim(max(len(names), 1) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
