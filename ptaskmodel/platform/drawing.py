"""A picture of a platform: who is linked with whom, how fast hosts and links are."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptaskmodel import units
from ptaskmodel.errors import PlatformError
from ptaskmodel.files import whole_path
from ptaskmodel.platform.sketch import Line, Sketch, sketch
from ptaskmodel.platform.sketch_paint import LABEL_BOX, add_boxes, add_groups, page

if TYPE_CHECKING:
    from ptaskmodel.platform.platform import Platform

MAX_WIDTH, MAX_HEIGHT, MAX_UNIT = 14.0, 9.5, 0.85
MAX_LABELS = 40
# kind: name in the legend, colour
STYLES = {
    "host": ("host", "#A9C5E4"),
    "switch": ("switch", "#F1C66A"),
    "router": ("router", "#F1C66A"),
    "link": ("shared link", "#8E8E8E"),
    "junction": ("where links meet", "#8E8E8E"),
}


def draw_platform(platform: Platform, path: Path) -> None:
    """Write a picture (.png, .svg or .pdf). Raises PlatformError if it cannot be written."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise PlatformError("drawing needs matplotlib; run: pip install matplotlib") from None

    drawn = sketch(platform)
    facts = _Facts(platform, drawn)
    width, height, unit = page(drawn, MAX_WIDTH, MAX_HEIGHT, MAX_UNIT)
    title = [f"{platform.path.name}: {len(platform.hosts):,} hosts"]
    title[0] += f", {len(platform.links):,} links"
    title += facts.common
    figure = Figure(figsize=(width, height + 0.7 + 0.2 * len(title)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    _draw_lines(axes, drawn, facts, unit)
    add_boxes(axes, drawn, lambda _, kind: STYLES[kind][1], unit, facts.of_hosts)
    add_groups(axes, drawn, unit, facts.of_groups)
    axes.set_title("\n".join(title), fontsize=10, loc="left")
    _draw_legend(figure, drawn)
    _save(figure, path)


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
        rate = units.format_bandwidth(self.bandwidth_Bps(line), 4)
        return f"{rate}\n{units.format_time(latency, 4)}"

    def _link(self, name: str) -> Any:
        return self._links[name] if name in self._links else self._links[f"{name}_UP"]


def _speed(cores: int, speed_flops: float) -> str:
    times = f"{cores} x " if cores > 1 else ""
    return f"{times}{units.format_speed(speed_flops, 4)}"


def _draw_lines(axes: Any, drawn: Sketch, facts: _Facts, unit: float) -> None:
    """Lines, thicker with bandwidth, with labels where they are not all alike."""
    from matplotlib.collections import LineCollection

    rates = [facts.bandwidth_Bps(line) for line in drawn.lines]
    known = [max(rate, 1e-9) for rate in rates if math.isfinite(rate)] or [1.0]
    span = math.log(max(known) / min(known))
    thin = min(1.0, max(0.3, 2.2 * unit))
    paths, widths, colours = [], [], []
    for line, rate in zip(drawn.lines, rates, strict=True):
        rank = math.log(max(rate, 1e-9) / min(known)) / span if span > 0.0 and line.links else 0.3
        for path in line.paths:
            paths.append(path)
            widths.append(thin * (0.8 + 2.7 * min(rank, 1.0)))
            colours.append("#777777" if line.links else "#BBBBBB")
    axes.add_collection(LineCollection(paths, colors=colours, linewidths=widths, zorder=1))
    bars = {box.name for box in drawn.boxes if box.kind == "link"}  # which have labels of their own
    others = [line for line in drawn.lines if not line.in_rack and not bars.issuperset(line.links)]
    if facts.labels_needed and len(others) <= MAX_LABELS:
        for line in others:
            (xa, ya), (xb, yb) = line.paths[0][0], line.paths[0][-1]
            axes.annotate(facts.label(line), ((xa + xb) / 2, (ya + yb) / 2), fontsize=7, zorder=2,
                          ha="center", va="center", color="#444444", bbox=LABEL_BOX)  # fmt: skip


def _draw_legend(figure: Any, drawn: Sketch) -> None:
    """Below the picture, where nothing is hidden."""
    from matplotlib.lines import Line2D

    kinds = {box.kind for box in drawn.boxes}
    handles = [
        Line2D([], [], marker="s", color="white", markerfacecolor=colour, markersize=8,
               markeredgecolor="#444444", label=name)
        for kind, (name, colour) in STYLES.items()
        if kind in kinds
    ]  # fmt: skip
    handles.append(Line2D([], [], color="#777777", linewidth=2, label="link (thicker: faster)"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False,
                  fontsize=8)  # fmt: skip


def _save(figure: Any, path: Path) -> None:
    """Whole or not at all; without a date inside, so that equal inputs give equal files."""
    suffix = path.suffix.lower()
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(suffix)
    with whole_path(path, error=PlatformError) as partial:
        figure.savefig(partial, format=suffix[1:], dpi=150, metadata=metadata, facecolor="white")
