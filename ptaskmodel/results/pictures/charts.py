"""Functions that draw the charts of pictures, one for each kind.

A panel of tracks over one time, strips of quantiles by class, dots with
intervals, cumulative curves, and a matrix; the
map is in `topology`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.results.loading import Results
from ptaskmodel.results.pictures.drawing import USE, colour_bar, heat, row_ticks, scale, time_axis
from ptaskmodel.style.figures import (
    COLUMN,
    LIGHT,
    MARKERS,
    POINTS,
    SIGNS,
    WIDE,
    finished,
    new_figure,
    role_colour,
    run_role,
    run_sign,
)
from ptaskmodel.style.text import column, count, number, unit_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FloatArray = NDArray[np.float64]
# Dates and lengths on logarithmic axes.
TIME_MARKS: Mapping[float, str] = {
    1.0: "1 s", 10.0: "10 s", 60.0: "1 min", 600.0: "10 min", 3600.0: "1 h", 6 * 3600.0: "6 h",
    86400.0: "1 d", 7 * 86400.0: "1 week", 70 * 86400.0: "10 weeks", 700 * 86400.0: "100 weeks",
}  # fmt: skip
FEW = 30  # values of a class that are drawn as dots
AT_ONCE_S = 1.0  # waits up to this are called none
SHORT_S = 1.0  # times that are all below this have an axis of their own
QUANTILES = (0.25, 0.5, 0.75, 0.95, 1.0)
MOST_POINTS = 200  # of a curve


class Pane(NamedTuple):
    """A row of a panel: ``draw`` fills its axes, dates in s across. height: in inches."""

    draw: Callable[[Any], None]
    height: float = 1.2


def time_panel(panes: Sequence[Pane], end_s: float, results: Results | None = None) -> Figure:
    """Return ``panes`` above each other on one time up to ``end_s``.

    results: as of `drawing.time_axis`.
    """
    heights = [pane.height for pane in panes]
    figure = new_figure(WIDE, 0.9 + sum(heights))
    rows = figure.subplots(len(panes), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for axes, pane in zip(rows, panes, strict=True):
        pane.draw(axes)
        time_axis(axes, end_s, 0.0, results)
        if axes is not rows[-1]:
            axes.set_xlabel("")
    return figure


def areas(axes: Any, dates: FloatArray, layers: Sequence[tuple[str, FloatArray, str]]) -> float:
    """Draw layers (name, values from each date on, colour) on each other; return the highest sum.

    axes: what is drawn on. dates: of all layers, ascending; the last is the end. Layers that are
    nothing are left out; those of no name have no label.
    """
    low = np.zeros(len(dates))
    labels = []
    for name, values, colour in layers:
        if not np.any(values):
            continue
        axes.fill_between(dates, low, low + values, step="post", color=colour, linewidth=0)
        if name:
            labels.append((float(low[-1] + values[-1] / 2), name, colour))
        low = low + values
    end_labels(axes, labels)
    return float(low.max(initial=0.0))


def end_labels(axes: Any, labels: Sequence[tuple[float, str, str]]) -> None:
    """Write names at the right of ``axes``, apart from each other.

    labels: (at which height, text, colour).
    """
    from matplotlib.patches import Patch

    ordered = sorted(labels, key=lambda label: label[0])
    handles = [Patch(color=colour, label=text) for _, text, colour in reversed(ordered)]
    if handles:
        axes.legend(handles=handles, loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=0.8)


def heat_rows(
    axes: Any, names: Sequence[str], table: FloatArray, end_s: float, label: str = "",
    ends: tuple[float, float] = USE, most: int = 60,
) -> None:  # fmt: skip
    """Draw rows over time on ``axes``: ``table`` has per cent of a capacity, cells up to ``end_s``.

    names: of the rows, at most so many are written. label: of the bar of colours; empty: no bar.
    ends: of the scale.
    """
    image = axes.imshow(
        table, aspect="auto", cmap=heat(), norm=scale(*ends), interpolation="nearest",
        extent=(0.0, end_s, len(names) - 0.5, -0.5),
    )  # fmt: skip
    axes.grid(visible=False)
    row_ticks(axes, names, most)
    if label:
        bar = colour_bar(axes, image, label)
        bar.set_ticks([0, 50, 100], labels=["0", "50", "100 %"])


class Strip(NamedTuple):
    """A class of a strip chart: how long its jobs waited.

    jobs: how many there are. zero: the part that waited up to a second; the quantiles (25, 50, 75,
    95, 100 %) are of the others, s, none if there are none; dots: each of them where they are few.
    killed: the part of all that was killed.
    """

    name: str
    jobs: int
    zero: float
    killed: float
    quantiles: Sequence[float]
    dots: Sequence[float] | None
    half: float

    @classmethod
    def of(cls, name: str, values: FloatArray, killed: float) -> Strip:
        """Return the strip of waits, s; ``killed``: which part of the jobs was killed."""
        some = np.sort(values[values > AT_ONCE_S])
        found = np.quantile(some, QUANTILES, method="inverted_cdf").tolist() if len(some) else []
        dots = some.tolist() if 0 < len(some) < FEW else None
        half = float(np.quantile(values, 0.5, method="inverted_cdf"))
        return cls(name, len(values), 1.0 - len(some) / len(values), killed, found, dots, half)


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
    longest = max((max(one.quantiles, default=0.0) for _, its in groups for one in its), default=0)
    for (kind, classes), (left, middle, right) in zip(groups, panels, strict=True):
        for row, one in enumerate(classes):
            _share(left, row, one.zero, LIGHT.use)
            _share(right, row, one.killed, LIGHT.lost)
            _strip(middle, row, one)
        row_ticks(left, [f"{one.name}  ({count(one.jobs)})" for one in classes])
        left.set_title(f"{kind} ({what}s), at once", loc="right")
        right.set_title("killed")
        right.set_visible(any(one.killed for _, its in groups for one in its))
        for axes in (middle, right):
            axes.set_ylim(len(classes) - 0.5, -0.5)
            axes.set_yticks([])
        log_axis(middle, "time", 1.0, 1.4 * max(longest, 60.0))
        for axes in (left, right):
            axes.set_xlim(0, 1.9)
            axes.set_xticks([])
    key = "waiting of the others (log): thick 25 to 75 %, thin to 95 %, ● half, | longest"
    panels[-1][1].set_xlabel(key)
    return figure


def _share(axes: Any, row: int, part: float, colour: str) -> None:
    axes.barh(row, part, color=colour, height=0.55)
    axes.text(part + 0.06, row, number(part, "share") if part else "–", va="center")


def _strip(axes: Any, row: int, one: Strip) -> None:
    if not one.quantiles:
        return
    colour, (low, half, high, most, longest) = LIGHT.wait, one.quantiles
    if one.dots:
        axes.plot(one.dots, [row] * len(one.dots), "o", color=colour, markersize=3, alpha=0.7)
    else:
        axes.hlines(row, high, most, color=colour, linewidth=1.2)
        axes.hlines(row, low, high, color=colour, linewidth=5)
        axes.plot(longest, row, "|", color=LIGHT.ink, markersize=7)
    axes.plot(half, row, "o", color=LIGHT.ink, markersize=4)


class Dot(NamedTuple):
    """A value, and its interval (nan: it has none).

    role, sign: of `style.figures`. others: values of which it is the mean, drawn pale behind it.
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
    change: whether they are changes: the middle is none. ends: of the axis; None: of the values.
    bare: on pages no numbers stand above dots, and those of a row, if `apart`, below each other.
    """

    name: str
    kind: str
    rows: Sequence[Sequence[Dot]]
    change: bool = False
    ends: tuple[float, float] | None = None
    bare: bool = False
    apart: bool = False

    @property
    def reach(self) -> tuple[float, float]:
        """The least and the largest value there is, or an equal change to both sides."""
        if self.ends:
            return self.ends
        every = [dot for row in self.rows for dot in row]
        if self.change:
            # Intervals of few seeds are cut, so that values can be told.
            values = [abs(x) for dot in every for x in (dot.value, *dot.others)]
            most = max(filter(math.isfinite, values), default=0.0)
            return -most, most
        values = [x for dot in every for x in (dot.value, dot.low, dot.high, *dot.others)]
        known = list(filter(math.isfinite, values))
        return min(known, default=0.0), max(known, default=0.0)


def dots(
    names: Sequence[str], panels: Sequence[DotPanel], key: str = "", letters: int | None = None
) -> Figure:
    """Return rows of dots with their intervals, ``panels`` of quantities beside each other.

    names: of the rows; those without a dot are heads. key: what signs and colours stand for.
    letters: of a name that are shown at most; None: as `row_ticks` does.
    """
    figure = new_figure(COLUMN if len(panels) < 3 else WIDE, 0.8 + 0.24 * max(len(names), 3))
    figure.set_layout_engine("constrained", wspace=0.06)
    figure.supxlabel(key, x=0.005, ha="left", fontsize=POINTS, color=LIGHT.soft)
    drawn = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    heads = [k for k in range(len(names)) if not any(panel.rows[k] for panel in panels)]
    for axes, panel in zip(drawn, panels, strict=True):
        draw_dots(axes, panel)
    row_ticks(drawn[0], names, len(names) or 1, letters)
    for k, label in enumerate(drawn[0].get_yticklabels()):
        if k in heads:
            label.set(fontweight="bold", color=LIGHT.ink)
    return figure


def draw_dots(axes: Any, panel: DotPanel, spread: float = 0.24) -> None:
    """Draw the rows of a ``panel`` on ``axes``, those of a row ``spread`` rows apart."""
    low, high = panel.reach
    unit = column((low, high), panel.kind)
    pad = 0.06 * (high - low) or 0.5 * unit.scale
    for row, its in enumerate(panel.rows):
        for k, dot in enumerate(its):
            at, colour = row + spread * (k - (len(its) - 1) / 2), role_colour(dot.role)
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


class Curve(NamedTuple):
    """What part of values is at most so large: of a run, or of several that differ by their seed.

    parts: of the values, 0 to 1, ascending, shape (n,). middle: what that part is at most, the
    median over runs; low, high: the least and the most of a run. half, most: the median and the
    95th percentile as metrics have them, the median over runs. runs: how many there are. role:
    "" for that of a run by its number.
    """

    name: str
    runs: int
    parts: FloatArray
    middle: FloatArray
    low: FloatArray
    high: FloatArray
    half: float
    most: float
    role: str = ""


def curves(groups: Mapping[str, Iterable[Iterable[float]]]) -> list[Curve]:
    """Return the cumulative curve of each group; one without values is left out.

    groups: by name, the values of each of its runs.
    """
    found = []
    for name, of_runs in groups.items():
        columns = [np.sort(np.fromiter(values, dtype=np.float64)) for values in of_runs]
        columns = [column for column in columns if len(column)]
        if not columns:
            continue
        points = min(max(map(len, columns)), MOST_POINTS)
        parts = np.arange(1, points + 1) / points
        levels = np.array(
            [one[np.ceil(parts * len(one) - 1e-9).astype(int) - 1] for one in columns]
        )
        low, high = levels.min(axis=0), levels.max(axis=0)
        half, most = np.median([np.percentile(one, (50, 95)) for one in columns], axis=0).tolist()
        middle = np.median(levels, axis=0)
        found.append(Curve(name, len(columns), parts, middle, low, high, half, most))
    return found


class Cumulative(NamedTuple):
    """Curves on a logarithmic axis; the others are compared with the first, which is dashed.

    label: what of. kind: of the values, "time" or "number". joined: by straight lines, as there are
    few points; else by steps. said: the sentence; "" for that of medians and 95 %.
    """

    label: str
    kind: str
    curves: Sequence[Curve]
    joined: bool = False
    said: str = ""

    @property
    def sentence(self) -> str:
        """What it shows, with numbers."""
        half, high = (
            ", ".join(f"{curve.name} {number(level, self.kind)}" for curve, level in levels)
            for levels in ([(c, c.half) for c in self.curves], [(c, c.most) for c in self.curves])
        )
        label = f"{self.label[0].upper()}{self.label[1:]}"
        return self.said or f"{label}. Half at most: {half}; 95 %: {high}."

    @property
    def reach(self) -> tuple[float, float]:
        """The ends of the axis: pages can be held side by side."""
        least, most = {"time": (1.0, 86400.0), "number": (1.0, 10.0)}[self.kind]
        low = min((float(c.low[c.low > 0.0].min(initial=least)) for c in self.curves), default=1.0)
        high = max((float(curve.high.max()) for curve in self.curves), default=most)
        if self.kind == "time" and 0.0 < high < SHORT_S:
            return min(low, high / 10.0), high
        return (min(least, low) if self.kind == "number" else least), max(most, high)

    def _looks(self) -> Iterator[tuple[Curve, str, bool, str]]:
        """Of each curve its role, whether it is dashed, and its sign."""
        for k, curve in enumerate(self.curves):
            if curve.role:
                yield curve, curve.role, curve.role == "lost", ""
            else:
                yield curve, run_role(k), not k, run_sign(k)

    def data(self) -> dict[str, Any]:
        """The chart as JSON; see charts.js."""
        series: list[dict[str, Any]] = []
        for curve, role, dashed, sign in self._looks():
            points = np.column_stack([curve.middle, curve.parts])
            one = {"name": curve.name, "role": role, "dashed": dashed, "sign": sign,
                   "at": _short(points)}  # fmt: skip
            if curve.runs > 1:
                one["reach"] = _short(np.column_stack([curve.low, curve.high, curve.parts]))
            series.append(one)
        note = "Areas: the range over seeds." if any(c.runs > 1 for c in self.curves) else ""
        low, high = self.reach
        return {"chart": "cumulative", "axis": self.kind, "label": self.label, "note": note,
                "sentence": self.sentence, "from": low, "to": high, "joined": self.joined,
                "marks": log_marks(self.kind, low, high),
                "series": series}  # fmt: skip

    def draw(self, axes: Any) -> None:
        """Draw the chart on ``axes`` of matplotlib."""
        low, high = self.reach
        for curve, role, dashed, _ in self._looks():
            colour, parts = role_colour(role), 100.0 * curve.parts
            style = {"color": colour, "linestyle": "--" if dashed else "-", "label": curve.name}
            at, up = np.maximum(curve.middle, low), parts
            if not self.joined:
                at, up = np.append(at[0], at), np.append(0.0, up)
            axes.plot(at, up, drawstyle="default" if self.joined else "steps-post", **style)
            if curve.runs > 1:
                reach = np.maximum(curve.low, low), np.maximum(curve.high, low)
                axes.fill_betweenx(parts, *reach, color=colour, alpha=0.2, linewidth=0)
        log_axis(axes, self.kind, low, high)
        axes.set_ylim(0.0, 101.0)
        axes.set_ylabel("at most that (%)")
        axes.set_xlabel(f"{self.label}, at most (log)")
        if len(self.curves) > 1:
            axes.legend()


def cumulative_figure(charts: Sequence[Cumulative], title: str, note: str = "") -> Figure:
    """Return ``charts`` below each other, and a ``note`` above the first."""
    figure = new_figure(COLUMN, 3.4 * len(charts))
    for axes, chart in zip(figure.subplots(len(charts), squeeze=False).flat, charts, strict=True):
        chart.draw(axes)
    return finished(figure, title, note, " ".join(chart.sentence for chart in charts))


def _short(table: FloatArray) -> list[list[float]]:
    return [[float(f"{value:.6g}") for value in row] for row in table.tolist()]


def log_marks(kind: str, low: float, high: float) -> list[tuple[float, str]]:
    """Return the marks of a logarithmic axis from ``low`` to ``high``, and their texts.

    kind: "time" or other.
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    if kind == "time" and high >= SHORT_S:
        marks = dict(TIME_MARKS)
    else:
        few = (1, 2, 5) if kind != "time" and high <= 1000 * low else (1,)
        marks = {k * 10.0**e: number(k * 10.0**e, kind) for e in powers for k in few}
    return [(at, text) for at, text in marks.items() if low * (1 - 1e-9) <= at <= high * 1.1]


def log_axis(axes: Any, kind: str, low: float, high: float) -> None:
    """Give ``axes`` a logarithmic axis from ``low`` to ``high`` of a ``kind``, "time" or other."""
    axes.set_xscale("log")
    axes.set_xticks(*zip(*log_marks(kind, low, high), strict=True))
    axes.set_xticks([], minor=True)
    axes.set_xlim(low * 0.97, high * 1.1)


class Matrix(NamedTuple):
    """Amounts between names: rows give, or lose; columns take, or cause it.

    kind, unit: of the amounts, as of `style.text.number`. caption: what a cell holds. corner: what
    rows and columns are. sums: how many columns at the right are sums. members: of each cell, which
    tasks a click shows. plain: cells have a colour and no number.
    """

    kind: str
    caption: str
    corner: str
    sentence: str
    rows: Sequence[str]
    columns: Sequence[str]
    cells: Sequence[Sequence[float]]
    sums: int = 1
    members: Sequence[Sequence[Sequence[int]]] = ()
    unit: str = ""
    note: str = ""
    plain: bool = False

    def data(self) -> dict[str, Any]:
        """The chart as JSON; see charts.js."""
        return {"chart": "matrix", **self._asdict()}

    def figure(self, title: str) -> Figure:
        """Return a picture of the cells that are no sums; nothing is grey."""
        cells = np.array(self.cells, dtype=float)
        cells = cells[:, : cells.shape[1] - self.sums]
        most = float(cells.max())
        one, unit = unit_of(most, self.kind)
        cells = np.where(cells > 0.0, cells / one, np.nan)
        low, high = float(np.nanmin(cells)), most / one
        is_log = high > 10 * low
        figure = new_figure(COLUMN, 5.6)
        axes = figure.add_subplot()
        norm = scale(low if is_log else 0.0, high, is_log)
        image = axes.imshow(cells, cmap=heat(), norm=norm, interpolation="nearest")
        row_ticks(axes, self.rows, 16)
        step = max(1, math.ceil(len(self.rows) / 16))
        axes.set_xticks(range(0, cells.shape[1], step), self.columns[: cells.shape[1] : step])
        axes.grid(visible=False)
        unit = ", ".join(filter(None, (unit, "log" * is_log)))
        colour_bar(axes, image, f"{self.caption} ({unit})")
        note = "; ".join(filter(None, (self.corner, self.note, "grey: nothing")))
        return finished(figure, title, note, self.sentence)
