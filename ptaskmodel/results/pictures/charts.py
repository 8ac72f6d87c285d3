"""Functions that draw the charts of pictures, one for each kind.

A panel of tracks over one time, strips of quantiles by class, dots with
intervals, cumulative curves, and a matrix; the
map is in `topology`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.results.loading import Results
from ptaskmodel.results.pictures.drawing import (
    COLUMN,
    POINTS,
    WIDE,
    colour_bar,
    heat,
    new_figure,
    row_ticks,
    time_axis,
    use_scale,
)
from ptaskmodel.style.colours import LIGHT, MARKERS, SIGNS, role_colour
from ptaskmodel.style.text import column, count, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FloatArray = NDArray[np.float64]
# Dates and lengths on logarithmic axes.
TIME_MARKS: Mapping[float, str] = {
    1.0: "1 s", 10.0: "10 s", 60.0: "1 min", 600.0: "10 min", 3600.0: "1 h", 6 * 3600.0: "6 h",
    86400.0: "1 d", 7 * 86400.0: "1 week", 70 * 86400.0: "10 weeks", 700 * 86400.0: "100 weeks",
}  # fmt: skip
FEW = 30  # values of a class that are drawn as dots


class Track(NamedTuple):
    """A row of a panel: ``draw`` fills its axes, dates in s across. height: in inches."""

    draw: Callable[[Any], None]
    height: float = 1.2


def time_panel(
    tracks: Sequence[Track],
    end_s: float,
    results: Results | None = None,
    begin_s: float = 0.0,
    width: float = WIDE,
) -> Figure:
    """Return tracks above each other on one time from ``begin_s`` to ``end_s``, of some width.

    results: as of `drawing.time_axis`.
    """
    figure = new_figure(width, 0.9 + sum(track.height for track in tracks))
    rows = figure.subplots(
        len(tracks), 1, sharex=True, squeeze=False, height_ratios=[track.height for track in tracks]
    )[:, 0]
    for axes, track in zip(rows, tracks, strict=True):
        track.draw(axes)
        time_axis(axes, end_s, begin_s, results)
        if axes is not rows[-1]:
            axes.set_xlabel("")
    return figure


def areas(axes: Any, dates: FloatArray, layers: Sequence[tuple[str, FloatArray, str]]) -> float:
    """Draw layers (name, values from each date on, colour) on each other; return the highest sum.

    axes: what is drawn on. dates: of all layers, ascending; the last is the end. Layers that are
    nothing are left out.
    """
    low = np.zeros(len(dates))
    labels = []
    for name, values, colour in layers:
        if not np.any(values):
            continue
        axes.fill_between(dates, low, low + values, step="post", color=colour, linewidth=0)
        labels.append((float(low[-1] + values[-1] / 2), name, colour))
        low = low + values
    end_labels(axes, labels)
    return float(low.max(initial=0.0))


def steps(axes: Any, dates: FloatArray, lines: Sequence[tuple[str, FloatArray, str]]) -> float:
    """Draw lines (name, values from each date on, colour); return the highest value.

    axes: what is drawn on. dates: of all lines, ascending.
    """
    for name, values, colour in lines:
        axes.step(dates, values, where="post", color=colour, linewidth=1.2, label=name)
    if len(lines) > 1:
        end_labels(axes, [(float(values[-1]), name, colour) for name, values, colour in lines])
    return max((float(values.max(initial=0.0)) for _, values, _ in lines), default=0.0)


def end_labels(axes: Any, labels: Sequence[tuple[float, str, str]]) -> None:
    """Write names at the right of ``axes``, apart from each other.

    labels: (at which height, text, colour). The letters are ink, behind a square of the colour:
    pale colours cannot be read.
    """
    ordered = sorted(labels, key=lambda label: label[0])
    for k, (_, text, colour) in enumerate(ordered):
        y = (k + 0.5) / len(ordered)
        axes.annotate("■", (1.006, y), xycoords="axes fraction", color=colour, va="center")
        axes.annotate(text, (1.006, y), xycoords="axes fraction", va="center", xytext=(POINTS, 0),
                      textcoords="offset points")  # fmt: skip


def heat_rows(
    axes: Any, names: Sequence[str], table: FloatArray, end_s: float, label: str = ""
) -> None:
    """Draw rows over time on ``axes``: ``table`` has per cent of a capacity, cells up to ``end_s``.

    names: of the rows. label: of the bar of colours; empty: no bar.
    """
    image = axes.imshow(
        table, aspect="auto", cmap=heat(), norm=use_scale(), interpolation="nearest",
        extent=(0.0, end_s, len(names) - 0.5, -0.5),
    )  # fmt: skip
    axes.grid(visible=False)
    row_ticks(axes, names, 60)
    if label:
        bar = colour_bar(axes, image)
        bar.set_ticks([0, 50, 100], labels=["0", "50", "100 %"])
        bar.set_label(label)


class Strip(NamedTuple):
    """A class of a strip chart: what jobs waited, s, and what part of them was killed."""

    name: str
    values: FloatArray
    killed: float


def strips(groups: Sequence[tuple[str, Sequence[Strip]]], what: str) -> Figure:
    """Return a strip for each class: how many wait not at all, and quantiles of the others.

    groups: (what classes are of, classes). what: of what there are so many, "job". Classes of fewer
    than 30 are dots. At the left are those that start at once, at the right the killed.
    """
    rows = [max(len(classes), 1) for _, classes in groups]
    figure = new_figure(COLUMN, 0.9 + 0.2 * sum(rows) + 0.45 * len(groups))
    panels = figure.subplots(
        len(groups), 3, squeeze=False, sharex="col", width_ratios=(1, 5, 1),
        height_ratios=[each + 1.5 for each in rows],
    )  # fmt: skip
    longest = max((float(c.values.max(initial=0.0)) for _, its in groups for c in its), default=0)
    for (kind, classes), (left, middle, right) in zip(groups, panels, strict=True):
        for row, one in enumerate(classes):
            some = one.values[one.values > 0.0]
            _share(left, row, 1.0 - len(some) / len(one.values), LIGHT.use)
            _share(right, row, one.killed, LIGHT.lost)
            _strip(middle, row, np.maximum(some, 1.0))
        row_ticks(left, [f"{one.name}  ({count(len(one.values))})" for one in classes])
        left.set_title(f"{kind} ({what}s), at once", loc="right")
        right.set_title("killed")
        for axes in (middle, right):
            axes.set_ylim(len(classes) - 0.5, -0.5)
            axes.set_yticks([])
        middle.set_xscale("log")
        marks = {at: name for at, name in TIME_MARKS.items() if at <= max(longest, 60.0) * 1.5}
        middle.set_xticks(list(marks), list(marks.values()))
        middle.set_xticks([], minor=True)
        middle.set_xlim(0.8, 1.6 * max(longest, 60.0))
        for axes in (left, right):
            axes.set_xlim(0, 1.9)
            axes.set_xticks([])
    key = "waiting of the others (log): thick 25 to 75 %, thin to 95 %, ● half, | longest"
    panels[-1][1].set_xlabel(key)
    return figure


def _share(axes: Any, row: int, part: float, colour: str) -> None:
    axes.barh(row, part, color=colour, height=0.55)
    axes.text(part + 0.06, row, number(part, "share") if part else "–", va="center")


def _strip(axes: Any, row: int, values: FloatArray) -> None:
    if not len(values):
        return
    colour = LIGHT.wait
    if len(values) < FEW:
        axes.plot(values, np.full(len(values), row), "o", color=colour, markersize=3, alpha=0.7)
    else:
        low, high, most = np.percentile(values, (25, 75, 95))
        axes.hlines(row, high, most, color=colour, linewidth=1.2)
        axes.hlines(row, low, high, color=colour, linewidth=5)
        axes.plot(values.max(), row, "|", color=LIGHT.ink, markersize=7)
    axes.plot(np.median(values), row, "o", color=LIGHT.ink, markersize=4)


class Dot(NamedTuple):
    """A value, and its interval (nan: it has none).

    role, sign: of `style.colours`. others: values of which it is the mean, drawn pale behind it.
    label: what is written beside it; text: what it says to those who do not see it.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    role: str = "ink"
    sign: str = SIGNS[0]
    others: Sequence[float] = ()
    label: str = ""
    text: str = ""


class DotPanel(NamedTuple):
    """Values of one quantity, of each row none, one or several.

    name: of the quantity. kind: as of `style.text.number`. rows: as many as there are names.
    change: whether they are changes: the middle is none.
    """

    name: str
    kind: str
    rows: Sequence[Sequence[Dot]]
    change: bool = False

    @property
    def reach(self) -> tuple[float, float]:
        """The least and the largest value there is, or an equal change to both sides."""
        every = [dot for row in self.rows for dot in row]
        if self.change:
            # Intervals of few seeds are cut, so that values can be told.
            values = [abs(x) for dot in every for x in (dot.value, *dot.others)]
            most = max(filter(math.isfinite, values), default=0.0)
            return -most, most
        values = [x for dot in every for x in (dot.value, dot.low, dot.high, *dot.others)]
        known = list(filter(math.isfinite, values))
        return min(known, default=0.0), max(known, default=0.0)


def dots(names: Sequence[str], panels: Sequence[DotPanel], key: str = "") -> Figure:
    """Return rows of dots with their intervals, ``panels`` of quantities beside each other.

    names: of the rows; those without a dot are heads. key: what signs and colours stand for.
    """
    figure = new_figure(COLUMN if len(panels) < 3 else WIDE, 0.8 + 0.24 * len(names))
    figure.set_layout_engine("constrained", wspace=0.06)
    figure.supxlabel(key, x=0.005, ha="left", fontsize=POINTS, color=LIGHT.soft)
    drawn = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    heads = [k for k in range(len(names)) if not any(panel.rows[k] for panel in panels)]
    for axes, panel in zip(drawn, panels, strict=True):
        low, high = panel.reach
        unit = column((low, high), panel.kind)
        pad = 0.06 * (high - low) or 0.5 * unit.scale
        for row, its in enumerate(panel.rows):
            for k, dot in enumerate(its):
                at, colour = row + 0.24 * (k - (len(its) - 1) / 2), role_colour(dot.role)
                some = np.asarray(dot.others, dtype=float) / unit.scale
                axes.plot(some, np.full(len(some), at + 0.25), ".", color=LIGHT.soft, markersize=2)
                axes.hlines(at, dot.low / unit.scale, dot.high / unit.scale, color=colour, lw=1.2)
                marker = MARKERS[SIGNS.index(dot.sign)]
                axes.plot(dot.value / unit.scale, at, marker, color=colour, markersize=5)
        if panel.change:
            axes.axvline(0.0, color=LIGHT.ink, linewidth=0.8)
        axes.set_xlim((low - pad) / unit.scale, (high + pad) / unit.scale)
        axes.set_xlabel(unit.head(panel.name))
        axes.grid(visible=False, axis="y")
    row_ticks(drawn[0], names, len(names))
    for k, label in enumerate(drawn[0].get_yticklabels()):
        if k in heads:
            label.set(fontweight="bold", color=LIGHT.ink)
    return figure


class CumulativeCurve(NamedTuple):
    """A curve of what part of values is at most so large. dashed: of a part of the others."""

    name: str
    values: FloatArray
    colour: str
    dashed: bool = False


def cumulative(curves: Sequence[CumulativeCurve], name: str, what: str) -> Figure:
    """Return curves on a logarithmic axis from 1 to 10 at least, with their quantiles.

    name: of the axis. what: of what there are so many, "job".
    """
    from matplotlib.ticker import FuncFormatter, NullLocator

    figure = new_figure(COLUMN, 3.6)
    axes = figure.add_subplot()
    for curve in curves:
        ordered = np.sort(curve.values)
        part = 100.0 * np.arange(1, len(ordered) + 1) / len(ordered)
        axes.step(
            np.concatenate([[min(1.0, ordered[0])], ordered]), np.concatenate([[0.0], part]),
            where="post", color=curve.colour, linewidth=1.5, label=curve.name,
            linestyle="--" if curve.dashed else "-",
        )  # fmt: skip
        for share in () if curve.dashed else (50, 95):
            x = float(np.percentile(ordered, share))
            axes.plot(x, share, "o", color=curve.colour, markersize=4)
            axes.annotate(f"{share} %: {number(x)}", (x, share), xytext=(5, -10),
                          textcoords="offset points")  # fmt: skip
    if len(curves) > 1:
        axes.legend(loc="lower right")
    values = np.concatenate([curve.values for curve in curves])
    low, high = min(1.0, float(values.min())), max(10.0, float(values.max()))
    axes.set_xscale("log")
    axes.set_xlim(low * 0.97, high * 1.1)
    marks = [k * 10.0**e for e in range(math.floor(math.log10(low)), 9) for k in (1, 2, 5)]
    axes.set_xticks([mark for mark in marks if low <= mark <= high * 1.1])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_ylim(0.0, 101.0)
    axes.set_xlabel(f"{name} (log), at most")
    axes.set_ylabel(f"{what}s (%)")
    return figure


def matrix(table: FloatArray, norm: Any, side: int, bar: str, axis: tuple[str, str]) -> Figure:
    """Return a matrix of the cells of ``table``; nan is nothing, and grey.

    norm: of matplotlib, for the colours. side: rows and columns in a cell. bar: what a cell holds,
    and its unit. axis: what columns are, and rows.
    """
    figure = new_figure(COLUMN, 5.6)
    axes = figure.add_subplot()
    edges = (-0.5, side * table.shape[1] - 0.5, side * table.shape[0] - 0.5, -0.5)
    image = axes.imshow(table, cmap=heat(), norm=norm, interpolation="nearest", extent=edges)
    axes.grid(visible=False)
    colour_bar(axes, image).set_label(bar)
    axes.set_xlabel(axis[0])
    axes.set_ylabel(axis[1])
    return figure
