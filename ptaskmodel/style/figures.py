"""Figures of matplotlib in one style: sizes, type, colours, titles, saving.

Pictures of platforms, results, campaigns, calibrations and experiments are made with it.
"""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, cast

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.files import whole_path
from ptaskmodel.style.colours import CATEGORIES, LIGHT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Inches: of a picture in a column of text, and of one over the whole page. Text has 8 points there.
COLUMN, WIDE = 6.5, 13.0
POINTS: Final = 8.0
LETTERS: Final = 12.5  # of a title, on an inch
# The first has all but Chinese, Japanese and Korean; of the others those that are there are asked.
FONTS: Final = (
    *("DejaVu Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans CJK KR", "Noto Sans SC"),
    *("Source Han Sans", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Droid Sans Fallback"),
    *("PingFang SC", "Hiragino Sans", "Microsoft YaHei", "Yu Gothic", "Malgun Gothic"),
    "Arial Unicode MS",
)
P = ParamSpec("P")
T = TypeVar("T")


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
        "xtick.minor.size": 0,
        "ytick.minor.size": 0,
        "text.color": LIGHT.ink,
        "legend.fontsize": POINTS,
        "legend.frameon": False,
        "hatch.linewidth": 0.7,
        "figure.titlesize": POINTS + 2,
        "figure.titleweight": "bold",
    }


def picture(draw: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function that draws: it has the `style`, or raises NoMatplotlib."""

    @functools.wraps(draw)
    def styled(*args: P.args, **kwargs: P.kwargs) -> T:
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


def subplots(*shape: int, size: tuple[float, float], **options: Any) -> tuple[Figure, Any]:
    """A figure of a ``size`` (width, height) in inches, and its axes, an array of this ``shape``.

    options: as of matplotlib's `Figure.subplots`. Raises NoMatplotlib.
    """
    figure = new_figure(*size)
    import matplotlib as mpl

    with mpl.rc_context(cast(Any, style())):
        return figure, figure.subplots(*shape, squeeze=False, **options)


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
