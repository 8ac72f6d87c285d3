"""How figures of calibrations look, and how a notebook shows them.

Colours are those of Okabe and Ito (2008), told apart by colour-blind readers.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, RED, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#8A8A8A"
STYLE: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E5E5E5",
    "axes.axisbelow": True,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "font.size": 9,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "figure.dpi": 100,
    "savefig.dpi": 150,
}


class Picture:
    """A figure as a notebook shows it: a PNG of moderate size."""

    def __init__(self, figure: Figure, dpi: int = 80) -> None:
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
        self._png = buffer.getvalue()

    def _repr_png_(self) -> bytes:
        return self._png


def styled(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """A drawing function that runs in the style of calibrations."""

    @functools.wraps(draw)
    def in_style(*arguments: Any, **options: Any) -> Figure:
        import matplotlib as mpl

        with mpl.rc_context(STYLE):
            return draw(*arguments, **options)

    return in_style


def subplots(*shape: int, size: tuple[float, float], **options: Any) -> tuple[Figure, Any]:
    """A figure and its axes (always a two-dimensional array) in the style of calibrations."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        return figure, figure.subplots(*shape, squeeze=False, **options)
