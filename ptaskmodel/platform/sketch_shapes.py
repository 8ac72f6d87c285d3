"""Shapes for parts of a sketch: racks, levels, grids and circles of groups."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

Point = tuple[float, float]

CELL_WIDTH, CELL_HEIGHT = 1.0, 0.62
# Cells from middle to middle; above each there is room for its link.
STEP_X, STEP_Y = 1.25, 1.05
BOX_WIDTH, BOX_HEIGHT, BAR_HEIGHT = 0.9, 0.5, 0.22
STUB = 0.75  # of the way around a torus
ROW = 12  # hosts that stand in one row
BELOW = 1.7  # from a hub to the first row of its rack
GAP = 1.0


class Rack(NamedTuple):
    """Hosts below the node that they hang on. cells: (name, x, y) from the middle of that node."""

    hosts: frozenset[str]
    cells: tuple[tuple[str, float, float], ...]
    rows: int
    width: float
    height: float


class Part(NamedTuple):
    """A named part of a block, and the middle of its upper edge."""

    name: str
    hosts: tuple[str, ...]
    x: float
    y: float
    width: float


class Block(NamedTuple):
    """Nodes that are moved together. places: from the middle of the block.

    fixed: must not be turned upside down.
    """

    places: dict[str, Point]
    width: float
    height: float
    fixed: bool
    parts: tuple[Part, ...] = ()


def rack_of(hosts: Sequence[str], narrow: bool) -> Rack:
    """Hosts in rows: a few in one, more so that the rack is wide, or ``narrow``: high."""
    n = len(hosts)
    columns = n
    if n > (4 if narrow else ROW):
        columns = math.ceil(math.sqrt(n / 2 if narrow else 2.2 * n))
    rows = math.ceil(n / columns)
    below = BELOW if rows == 1 else 1.1
    cells = tuple(
        (host, (k % columns - (columns - 1) / 2) * STEP_X, -below - (k // columns) * STEP_Y)
        for k, host in enumerate(hosts)
    )
    height = below + (rows - 1) * STEP_Y + CELL_HEIGHT / 2
    return Rack(frozenset(hosts), cells, rows, columns * STEP_X, height)


def block_of(graph: Any, zone: str, nodes: Sequence[str], racks: Mapping[str, Rack]) -> Block:
    """The block of a cluster with its shape, or of a single node (zone "")."""
    data = graph.nodes[nodes[0]]
    parts: list[Part] = []
    over = 0.0
    if not zone:
        places: dict[str, Point] = {nodes[0]: (0.0, 0.0)}
    elif "level" in data:
        places = _levels(graph, nodes, racks)
    elif data["kind"] == "host":
        places, over = _grid(graph, nodes), STUB
    else:
        places, parts = _circle(graph, nodes, racks)
    boxes = [_footprint(node, place, racks) for node, place in places.items()]
    left, right = min(box[0] for box in boxes), max(box[2] for box in boxes)
    bottom, top = min(box[1] for box in boxes), max(box[3] for box in boxes)
    x, y = (left + right) / 2, (bottom + top) / 2
    if not parts and (zone or nodes[0] in racks):
        hosts = tuple(host for node in nodes for host in _hosts_at(graph, node, racks))
        parts = [Part(zone or nodes[0].removeprefix("link:"), hosts, x, top + over, right - left)]
    return Block(
        {node: (u - x, v - y) for node, (u, v) in places.items()},
        right - left,
        top - bottom,
        bool(zone),
        tuple(part._replace(x=part.x - x, y=part.y - y) for part in parts),
    )


def _hosts_at(graph: Any, node: str, racks: Mapping[str, Rack]) -> list[str]:
    """A node itself if it is a host, and those of its rack."""
    own = [node] if graph.nodes[node]["kind"] == "host" else []
    return own + [host for host, _, _ in racks[node].cells] if node in racks else own


def _footprint(
    node: str, place: Point, racks: Mapping[str, Rack]
) -> tuple[float, float, float, float]:
    """(left, bottom, right, top) of a node with its rack."""
    x, y = place
    rack = racks.get(node)
    half = max(rack.width if rack else 0.0, BOX_WIDTH) / 2
    below = rack.height if rack else BOX_HEIGHT / 2
    return x - half, y - below, x + half, y + BOX_HEIGHT / 2


def _levels(graph: Any, nodes: Sequence[str], racks: Mapping[str, Rack]) -> dict[str, Point]:
    """Switches of a fat tree by level, each level as wide as the lowest with its racks."""
    levels: dict[int, list[str]] = {}
    for node in nodes:
        levels.setdefault(graph.nodes[node]["level"], []).append(node)
    lowest = min(levels)
    widths = [
        max(racks[node].width + 0.4 if node in racks else 0.0, STEP_X) for node in levels[lowest]
    ]
    whole = sum(widths)
    rise = max(4.0, whole / (1 + 2 * len(levels)))
    places: dict[str, Point] = {}
    x = -whole / 2
    for node, width in zip(levels[lowest], widths, strict=True):
        places[node] = (x + width / 2, 0.0)
        x += width
    for level, row in levels.items():
        if level != lowest:
            step = whole / len(row)
            for k, node in enumerate(row):
                places[node] = ((k + 0.5) * step - whole / 2, (level - lowest) * rise)
    return places


def _grid(graph: Any, nodes: Sequence[str]) -> dict[str, Point]:
    """Hosts of a torus: two dimensions on the page, the third into it, more as copies beside it."""
    coordinates = [graph.nodes[node]["coordinates"] for node in nodes]
    sizes = [1 + max(at) for at in zip(*coordinates, strict=True)]
    sizes += [1] * (3 - len(sizes))
    deep = sizes[2]
    x_step, y_step = STEP_X * (1 + 0.55 * (deep - 1)) + 0.5, STEP_Y * (1 + 0.75 * (deep - 1)) + 0.6
    steps: list[Point] = [(x_step, 0.0), (0.0, y_step), (0.62 * STEP_X, 0.72 * STEP_Y)]
    wide = x_step * sizes[0] + STEP_X * deep + 2.0
    high = y_step * sizes[1] + STEP_Y * deep + 2.0
    for k, size in enumerate(sizes[3:]):
        steps.append((wide, 0.0) if k % 2 == 0 else (0.0, high))
        wide, high = (wide * size, high) if k % 2 == 0 else (wide, high * size)
    return {
        node: (
            sum(i * dx for i, (dx, _) in zip(at, steps, strict=False)),
            sum(i * dy for i, (_, dy) in zip(at, steps, strict=False)),
        )
        for node, at in zip(nodes, coordinates, strict=True)
    }


def _circle(
    graph: Any, nodes: Sequence[str], racks: Mapping[str, Rack]
) -> tuple[dict[str, Point], list[Part]]:
    """Groups of a dragonfly around a circle, the routers of each in rows of one chassis."""
    coordinates = {node: graph.nodes[node]["coordinates"] for node in nodes}
    groups, chassis, blades = (1 + max(at) for at in zip(*coordinates.values(), strict=True))
    wide = max((racks[node].width for node in nodes if node in racks), default=STEP_X) + 0.5
    deep = max((racks[node].height for node in nodes if node in racks), default=0.5) + 1.5
    width, height = blades * wide, chassis * deep
    side = math.hypot(width, height) + 2 * GAP
    radius = 0.0 if groups == 1 else side / 2 / math.sin(math.pi / groups)
    places = {}
    # No two groups at one height: the link between them would run along their routers.
    askew = 0.5 if groups == 2 else 0.125
    middles = [
        (radius * math.sin(turn), 0.8 * radius * math.cos(turn))
        for turn in (2 * math.pi * (k + askew) / groups for k in range(groups))
    ]
    for node, (group, row, blade) in coordinates.items():
        x, y = middles[group]
        places[node] = (
            x + (blade - (blades - 1) / 2) * wide,
            y - (row - (chassis - 1) / 2) * deep + deep / 2 - 0.5,
        )
    hosts: list[list[str]] = [[] for _ in range(groups)]
    for node, at in coordinates.items():
        hosts[at[0]] += _hosts_at(graph, node, racks)
    named = [
        Part(f"group {k}", tuple(hosts[k]), x, y + height / 2 + 0.2, width)
        for k, (x, y) in enumerate(middles)
    ]
    return places, named
