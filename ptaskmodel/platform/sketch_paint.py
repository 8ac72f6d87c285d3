"""What all pictures of sketches share: the size of the page, boxes with names, names of groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ptaskmodel.platform.sketch import JUNCTION, Sketch, extent
from ptaskmodel.platform.sketch_blocks import CELL_WIDTH

POINTS = 72.0
LABEL_BOX = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.75}
SMALLEST, LARGEST = 4.5, 8.5  # font sizes of names, points


def page(
    drawn: Sketch, max_width: float, max_height: float, max_unit: float
) -> tuple[float, float, float]:
    """(width, height, unit) in inches: the largest that fits, a unit being at most ``max_unit``."""
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
    """Draw all boxes, filled with ``fill(name, kind)``; names where they can be read.

    unit: inches of a unit of the sketch. more: a second line below the names of hosts.
    """
    from matplotlib.collections import PolyCollection

    corners, colours = [], []
    for box in drawn.boxes:
        a, b = box.x - box.width / 2, box.x + box.width / 2
        c, d = box.y - box.height / 2, box.y + box.height / 2
        corners.append([(a, c), (b, c), (b, d), (a, d)])
        colours.append(fill(box.name, box.kind))
    edge = min(0.8, 0.2 + 1.6 * unit)
    axes.add_collection(
        PolyCollection(corners, facecolors=colours, edgecolors="#444444", linewidths=edge, zorder=3)
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
                          va="center", color=text_colour(colour))  # fmt: skip
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
    """Write the names of groups, and how many hosts they have, above them.

    facts: more about a group, by its name.
    """
    for group in drawn.groups:
        text = f"{group.name}: {len(group.hosts):,} hosts"
        more = facts.get(group.name, "")
        size = _font((group.width + 1.5) * unit, max(len(text), len(more)))
        if size:
            axes.annotate(f"{text}\n{more}" if more else text, (group.x, group.y),
                          xytext=(0, 2 + 0.1 * unit * POINTS), textcoords="offset points",
                          fontsize=size, ha="center", va="bottom", color="#333333", zorder=5,
                          style="italic", bbox=LABEL_BOX)  # fmt: skip


def _font(inches: float, letters: int) -> float:
    """The size in points in which a text fits a width; 0 where it could not be read."""
    size = min(LARGEST, inches * POINTS / (0.62 * max(letters, 1)))
    return size if size >= SMALLEST else 0.0


def text_colour(colour: Any) -> str:
    """Black or white, whichever can be read on a colour."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    return "black" if 0.3 * red + 0.6 * green + 0.1 * blue > 0.5 else "white"
