"""Draw a platform with matplotlib: which hosts are linked, and how fast hosts and links are.

The first part is common to all sketches: page size, boxes with names, names of groups.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptaskmodel.platform.sketch import JUNCTION, Line, Sketch, extent, sketch
from ptaskmodel.platform.sketch_shapes import CELL_WIDTH
from ptaskmodel.style.figures import (
    LIGHT,
    WIDE,
    category,
    finished,
    new_figure,
    picture,
    save,
    text_on,
)
from ptaskmodel.style.text import count, duration, number

if TYPE_CHECKING:
    from ptaskmodel.platform.platform import Platform


POINTS = 72.0
LABEL_BOX = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.75}
SMALLEST, LARGEST = 4.5, 8.5  # font sizes of names, points

MAX_HEIGHT, MAX_UNIT = 9.5, 0.85
MAX_LABELS = 40
# kind: name in the legend, colour
STYLES = {
    "host": ("host", category(1)),
    "switch": ("switch", category(3)),
    "router": ("router", category(3)),
    "link": ("shared link", LIGHT.soft),
    "junction": ("where links meet", LIGHT.soft),
}


def page(
    drawn: Sketch, max_width: float, max_height: float, max_unit: float
) -> tuple[float, float, float]:
    """Return (width, height, unit) in inches, the largest that fits.

    drawn: the sketch. max_width, max_height: of the page, inches. max_unit: largest length of a
    unit of the sketch, inches.
    """
    left, bottom, right, top = extent(drawn)
    wide, high = max(right - left, 1.0) + 1.5, max(top - bottom, 1.0) + 1.5
    unit = min(max_unit, max_width / wide, max_height / high)
    return max(wide * unit, 5.0), max(high * unit, 2.0), unit


def add_boxes(
    axes: Any,
    drawn: Sketch,
    fill: Callable[[str, str], Any],
    unit: float,
    more: Mapping[str, str] | None = None,
) -> None:
    """Draw all boxes of a sketch `drawn` into matplotlib `axes`, filled with ``fill(name, kind)``.

    Names are written where they are legible. unit: inches of a unit of the sketch. more: a second
    line below the names of hosts.
    """
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import to_hex

    corners, colours = [], []
    for box in drawn.boxes:
        a, b = box.x - box.width / 2, box.x + box.width / 2
        c, d = box.y - box.height / 2, box.y + box.height / 2
        corners.append([(a, c), (b, c), (b, d), (a, d)])
        colours.append(fill(box.name, box.kind))
    edge = min(0.8, 0.2 + 1.6 * unit)
    axes.add_collection(
        PolyCollection(
            corners, facecolors=colours, edgecolors=LIGHT.soft, linewidths=edge, zorder=3
        )
    )
    named = {group.name for group in drawn.groups}
    texts = {box.name: box.name for box in drawn.boxes if box.kind == "host"}
    for name, text in (more or {}).items():
        texts[name] += f"\n{text}"
    longest = max((len(line) for text in texts.values() for line in text.split("\n")), default=1)
    inside = _font(0.94 * CELL_WIDTH * unit, longest)
    for box, colour in zip(drawn.boxes, colours, strict=True):
        if box.kind == "host" and inside:
            axes.annotate(texts[box.name], (box.x, box.y), fontsize=inside, ha="center", zorder=5,
                          va="center", color=text_on(to_hex(colour)))  # fmt: skip
        size = _font(2.2 * box.width * unit, len(box.name))
        if box.kind not in ("host", JUNCTION) and size and box.name not in named:
            axes.annotate(box.name, (box.x, box.y + box.height / 2 + 0.07), fontsize=size,
                          ha="center", va="bottom", zorder=5, bbox=LABEL_BOX)  # fmt: skip
    left, bottom, right, top = extent(drawn)
    axes.set_xlim(left - 0.6, right + 0.6)
    axes.set_ylim(bottom - 0.5, top + 1.0)
    axes.set_aspect("equal")
    axes.set_axis_off()


def add_groups(axes: Any, drawn: Sketch, unit: float, facts: Mapping[str, str]) -> None:
    """Write the names of the groups of a sketch `drawn`, and their numbers of hosts, into `axes`.

    unit: inches of a unit of the sketch. facts: a second line for a group, by its name.
    """
    for group in drawn.groups:
        text = f"{group.name}: {count(len(group.hosts), 'host')}"
        more = facts.get(group.name, "")
        size = _font((group.width + 1.5) * unit, max(len(text), len(more)))
        if size:
            axes.annotate(f"{text}\n{more}" if more else text, (group.x, group.y),
                          xytext=(0, 2 + 0.1 * unit * POINTS), textcoords="offset points",
                          fontsize=size, ha="center", va="bottom", zorder=5,
                          style="italic", bbox=LABEL_BOX)  # fmt: skip


def _font(inches: float, letters: int) -> float:
    """The size in points in which a text fits a width; 0 where it could not be read."""
    size = min(LARGEST, inches * POINTS / (0.62 * max(letters, 1)))
    return size if size >= SMALLEST else 0.0


@picture
def draw_platform(platform: Platform, path: Path) -> None:
    """Draw a `platform` to `path` (.png, .svg or .pdf).

    Raises PTaskModelError if it cannot be written.
    """
    drawn = sketch(platform)
    facts = _Facts(platform, drawn)
    width, height, unit = page(drawn, WIDE, MAX_HEIGHT, MAX_UNIT)
    title = f"{platform.path.name}: {count(len(platform.hosts), 'host')}"
    title += f", {count(len(platform.links), 'link')}"
    figure = new_figure(width, height + 0.9 + 0.2 * len(facts.common))
    axes = figure.add_subplot()
    _draw_lines(axes, drawn, facts, unit)
    add_boxes(axes, drawn, lambda _, kind: STYLES[kind][1], unit, facts.of_hosts)
    add_groups(axes, drawn, unit, facts.of_groups)
    _draw_legend(figure, drawn)
    said = "; ".join([title, *facts.common])
    save(finished(figure, title, "\n".join(facts.common), f"{said}."), path)


class _Facts:
    """What labels say. common: what all have in common, for the title.

    of_groups: of each group what its hosts have in common, and what its shared link can do;
    of_hosts: of hosts that differ from others of their group.
    """

    def __init__(self, platform: Platform, drawn: Sketch) -> None:
        self._links = {link.name: link for link in platform.all_links}
        self.common: list[str] = []
        self.of_groups: dict[str, str] = {}
        self.of_hosts: dict[str, str] = {}
        speeds = {host.name: _speed(host.cores, host.speed_flops) for host in platform.hosts}
        if len(set(speeds.values())) == 1 and len(speeds) > 1:
            self.common.append(f"every host: {next(iter(speeds.values()))}")
        else:
            for group in drawn.groups:
                own = {speeds[host] for host in group.hosts}
                if len(own) == 1:
                    self.of_groups[group.name] = f"each {own.pop()}"
                else:
                    self.of_hosts |= {host: speeds[host] for host in group.hosts}
        for box in drawn.boxes:
            if box.kind == "link":
                speed = self.label(Line((), (box.name,))).replace("\n", ", ")
                its = self.of_groups.get(box.name)
                self.of_groups[box.name] = f"{speed}; {its}" if its else speed
        alike = [self._alike(drawn, in_rack) for in_rack in (True, False)]
        self.labels_needed = alike[1] is None
        names = ("every link of a host in a rack", "every other line" if alike[0] else "every line")
        self.common += [f"{name}: {text}" for name, text in zip(names, alike, strict=True) if text]

    def _alike(self, drawn: Sketch, in_rack: bool) -> str | None:
        """The label of all lines in racks, or of all others, if they have the same one."""
        lines = [line for line in drawn.lines if line.in_rack is in_rack and line.links]
        texts = {self.label(line).replace("\n", ", ") for line in lines}
        return texts.pop() if len(texts) == 1 and len(lines) > 1 else None

    def bandwidth_Bps(self, line: Line) -> float:
        """Of the narrowest link of a line."""
        return min((self._link(name).bandwidth_Bps for name in line.links), default=math.inf)

    def label(self, line: Line) -> str:
        """Bandwidth and latency of a line."""
        latency = math.fsum(self._link(name).latency_s for name in line.links)
        return f"{number(self.bandwidth_Bps(line), 'rate')}\n{duration(latency)}"

    def _link(self, name: str) -> Any:
        return self._links[name] if name in self._links else self._links[f"{name}_UP"]


def _speed(cores: int, speed_flops: float) -> str:
    times = f"{cores} × " if cores > 1 else ""
    return f"{times}{number(speed_flops, 'work')}"


def line_widths(platform: Platform, drawn: Sketch, unit: float) -> list[float]:
    """Widths of the lines of a sketch, points; more for more bandwidth.

    platform: what is drawn. drawn: its sketch. unit: inches of a unit of the sketch.
    """
    return _widths(drawn, _Facts(platform, drawn), unit)


def _widths(drawn: Sketch, facts: _Facts, unit: float) -> list[float]:
    rates = [facts.bandwidth_Bps(line) for line in drawn.lines]
    known = [max(rate, 1e-9) for rate in rates if math.isfinite(rate)] or [1.0]
    span = math.log(max(known) / min(known))
    thin = min(1.0, max(0.3, 2.2 * unit))
    ranks = [
        math.log(max(rate, 1e-9) / min(known)) / span if span > 0.0 and line.links else 0.3
        for line, rate in zip(drawn.lines, rates, strict=True)
    ]
    return [thin * (0.8 + 2.7 * min(rank, 1.0)) for rank in ranks]


def _draw_lines(axes: Any, drawn: Sketch, facts: _Facts, unit: float) -> None:
    """Lines, thicker with bandwidth, with labels where they are not all alike."""
    from matplotlib.collections import LineCollection

    paths, widths, colours = [], [], []
    for line, width in zip(drawn.lines, _widths(drawn, facts, unit), strict=True):
        for path in line.paths:
            paths.append(path)
            widths.append(width)
            colours.append(LIGHT.soft if line.links else LIGHT.line)
    axes.add_collection(LineCollection(paths, colors=colours, linewidths=widths, zorder=1))
    bars = {box.name for box in drawn.boxes if box.kind == "link"}  # which have labels of their own
    others = [line for line in drawn.lines if not line.in_rack and not bars.issuperset(line.links)]
    if facts.labels_needed and len(others) <= MAX_LABELS:
        for line in others:
            (xa, ya), (xb, yb) = line.paths[0][0], line.paths[0][-1]
            axes.annotate(facts.label(line), ((xa + xb) / 2, (ya + yb) / 2), fontsize=7, zorder=2,
                          ha="center", va="center", color=LIGHT.soft, bbox=LABEL_BOX)  # fmt: skip


def _draw_legend(figure: Any, drawn: Sketch) -> None:
    """Below the picture, where nothing is hidden."""
    from matplotlib.lines import Line2D

    kinds = {box.kind for box in drawn.boxes}
    handles = [
        Line2D([], [], marker="s", color="white", markerfacecolor=colour, markersize=8,
               markeredgecolor=LIGHT.soft, label=name)
        for kind, (name, colour) in STYLES.items()
        if kind in kinds
    ]  # fmt: skip
    handles.append(Line2D([], [], color=LIGHT.soft, linewidth=2, label="link (thicker: faster)"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
