"""How figures look: colours by what they stand for; sizes, type, titles and saving of pictures.

A role has one colour everywhere, a colour has one role. Pictures take colours from `LIGHT`; pages
take both tables, as the variables of `css`. Pictures of platforms, results, campaigns, calibrations
and experiments are made with matplotlib in this style.
"""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, ParamSpec, TypeVar, cast

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.files import whole_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Colours(NamedTuple):
    """The colours of roles on a light or on a dark ground.

    ink, soft: text. line: grid and edges. panel, paper: ground. use: computing, hosts in use.
    wait: queue, waiting jobs and ranks. transfer: messages, links in use. lost: killed, failed,
    thrown away, warnings; always with hatching or a sign. nothing: idle, not used, not told apart.
    gain, lose: differences only, with their sign. wait_text, transfer_text, lost_text: of letters.
    """

    ink: str
    soft: str
    line: str
    panel: str
    paper: str
    use: str
    wait: str
    wait_text: str
    transfer: str
    transfer_text: str
    lost: str
    lost_text: str
    nothing: str
    gain: str
    lose: str
    link: str


LIGHT: Final = Colours(
    ink="#1B1F24", soft="#57606A", line="#D0D7DE", panel="#F6F8FA", paper="#FFFFFF",
    use="#0072B2", wait="#E69F00", wait_text="#8A5A00", transfer="#CC79A7", transfer_text="#8F3D6B",
    lost="#A3002B", lost_text="#A3002B", nothing="#D0D7DE",
    gain="#1B7837", lose="#762A83", link="#0B5FA5",
)  # fmt: skip
DARK: Final = Colours(
    ink="#E6EDF3", soft="#9AA7B4", line="#30363D", panel="#1C2128", paper="#14181D",
    use="#3D8FD1", wait="#F2C14E", wait_text="#F2C14E", transfer="#D783B0", transfer_text="#D783B0",
    lost="#E5484D", lost_text="#F2777B", nothing="#3A424B",
    gain="#5FBF86", lose="#C9A0DC", link="#6CB6F5",
)  # fmt: skip
# Roles of areas and lines that lie side by side.
SIDE_BY_SIDE: Final = ("use", "wait", "transfer", "lost", "nothing")

# Users, tasks, runs, policies, in order of size; `OTHERS` from the seventh on.
CATEGORIES: Final = ("#332288", "#88CCEE", "#44AA99", "#DDCC77", "#CC6677", "#882255")
OTHERS: Final = LIGHT.nothing
# The same on a dark ground, where the first and the last of those cannot be seen.
DARK_CATEGORIES: Final = ("#9080F0", "#A8E0F7", "#3DAF8A", "#F0E08A", "#E0705F", "#B0437E")
# Why jobs wait, the commonest reason first; the last is of all others.
REASONS: Final = ("#E69F00", "#8A5A00", "#F7D488", "#B87B00", "#5E3D00", "#FBEBC8")
# Markers of runs beside each other, for print in grey: of matplotlib, and as a letter.
MARKERS: Final = ("o", "s", "^", "D", "v", "P")
SIGNS: Final = ("●", "■", "▲", "◆", "▼", "✚")
# Amounts (use, slowdown), pale to dark: ColorBrewer's YlGnBu without what is too pale on white.
# On a dark ground from the last to the first.
HEAT: Final = (
    *("#BCE3B0", "#97D6B9", "#6AC4BE", "#3FB1C3", "#2495C0"),
    *("#2070B0", "#234BA0", "#1F2E86", "#081D58"),
)


def category(k: int) -> str:
    """Return the colour of the ``k``-th largest user, task, run or policy, from 0 on."""
    return CATEGORIES[k] if k < len(CATEGORIES) else OTHERS


def run_role(k: int) -> str:
    """Return the role of the run of number ``k``: the others are compared with that of 0."""
    return f"category-{k - 1}" if 0 < k <= len(SIGNS) else "soft"


def run_sign(k: int) -> str:
    """Return the sign of the run of number ``k``; of many runs they repeat."""
    return SIGNS[k % len(SIGNS)]


def role_colour(role: str) -> str:
    """Return the colour of a ``role`` on a light ground: of `LIGHT`, category-0 or reason-0."""
    name, _, k = role.partition("-")
    if name in ("category", "reason"):
        return category(int(k)) if name == "category" else REASONS[int(k)]
    return str(getattr(LIGHT, role.replace("-", "_")))


def text_on(colour: str) -> str:
    """Return ink or paper, whichever is read better on ``colour``, "#RRGGBB"."""
    return max((LIGHT.ink, LIGHT.paper), key=lambda text: contrast(text, colour))


def contrast(one: str, other: str) -> float:
    """Return the ratio of luminances of ``one`` and an ``other`` colour, 1 to 21 (WCAG 2)."""
    low, high = sorted(0.05 + _luminance(colour) for colour in (one, other))
    return high / low


def _luminance(colour: str) -> float:
    parts = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def css() -> str:
    """Return the variables of a page's style sheet: --ink, --wait-text, --heat-0, --category-0.

    Those of `DARK` hold where the reader's system is dark, but never in print, nor where the
    document has the attribute data-paper.
    """
    there = _variables(DARK, HEAT[::-1], DARK_CATEGORIES)
    dark = f"@media screen and (prefers-color-scheme: dark) {{ {there} }}"
    light = _variables(LIGHT, HEAT, CATEGORIES, ":root, :root[data-paper]")
    return f"{light}\n{dark}\n"


def _variables(
    roles: Colours, heat: tuple[str, ...], categories: tuple[str, ...], which: str = ":root"
) -> str:
    named = {name.replace("_", "-"): colour for name, colour in roles._asdict().items()}
    scales = (("heat", heat), ("category", categories), ("reason", REASONS))
    named |= {f"{name}-{k}": colour for name, scale in scales for k, colour in enumerate(scale)}
    return f"{which} {{ {' '.join(f'--{name}: {colour};' for name, colour in named.items())} }}"


# Inches: of a picture in a column of text, and of one over the whole page. Text has 8 points there.
COLUMN, WIDE = 6.5, 13.0
POINTS: Final = 8.0
FEW_POWERS: Final = 15.0  # largest over smallest number of a logarithmic axis
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


def plain_log(axis: Any) -> None:
    """Write numbers at an `axis` with a logarithmic scale as 0.01, not as powers.

    Call it after drawing: ticks between powers of ten have numbers if few powers are seen.
    """
    low, high = axis.get_view_interval()
    axis.set_major_formatter("{x:,g}")
    axis.set_minor_formatter("{x:,g}" if high < FEW_POWERS * low else "")


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
