"""Lay out a sketch of a platform: racks of hosts, switches by level, groups and grids.

A sketch has no colours and needs no graphics library; pictures, reports and pages draw it. Blocks
are spread over the page so that linked ones are near each other and none overlap.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ptaskmodel.platform.sketch_shapes import (
    BAR_HEIGHT,
    BOX_HEIGHT,
    BOX_WIDTH,
    CELL_HEIGHT,
    CELL_WIDTH,
    GAP,
    STUB,
    Block,
    Part,
    Point,
    Rack,
    block_of,
    rack_of,
)

if TYPE_CHECKING:
    from ptaskmodel.platform.platform import Platform


MAX_BY_DISTANCES = 400
MAX_BY_FORCES = 1500
PUSHES = 300
MAX_CLEARED = 40  # blocks of which lines are kept off racks

LINK = "link:"  # before the names of links in graphs
JUNCTION = "junction"
DOT = 0.16
MAX_JOINED = 200  # links that follow each other, of which sets are looked for
ARC_STEPS = 8
PORT = 0.1  # from a host in a rack to the line of its link


def spread(sizes: Sequence[tuple[float, float]], pairs: Sequence[tuple[int, int]]) -> list[Point]:
    """The middles of blocks of (width, height), of which ``pairs`` are linked.

    Up to 400 blocks lie at distances like those in the graph (Kamada and Kawai 1989), up to 1,500
    where springs push them (Fruchterman and Reingold 1991), more in rows. Parts that are not linked
    with each other stand side by side.
    """
    import networkx

    graph = networkx.Graph()
    graph.add_nodes_from(range(len(sizes)))
    radius = [math.hypot(*size) / 2 for size in sizes]
    for a, b in pairs:
        graph.add_edge(a, b, length=radius[a] + radius[b] + 2 * GAP)
    places: dict[int, Point] = {}
    right = 0.0
    parts = sorted((sorted(part) for part in networkx.connected_components(graph)), key=len)
    for part in reversed(parts):
        found = _spread_part(graph.subgraph(part), part, sizes)
        left = min(found[k][0] - sizes[k][0] / 2 for k in part)
        middle = _middle([found[k][1] for k in part])
        places |= {k: (x - left + right, y - middle) for k, (x, y) in found.items()}
        right = max(places[k][0] + sizes[k][0] / 2 for k in part) + 2 * GAP
    return [places[k] for k in range(len(sizes))]


def spread_clear(
    blocks: Sequence[Block], pairs: Sequence[tuple[int, int]]
) -> tuple[list[Point], list[float]]:
    """The middles of linked blocks, and which are turned upside down (-1.0; 1.0 for others).

    Hubs turn to what they are linked with, their racks away from it. Where lines would still pass
    behind racks, the picture stands up instead of lying down if fewer do then.
    """
    sizes = [(block.width, block.height) for block in blocks]
    found = spread(sizes, pairs)
    turned = _turns(blocks, pairs, found)
    if len(blocks) > MAX_CLEARED or not (behind := _behind(blocks, pairs, found, turned)):
        return found, turned
    upright = [(x, y) for y, x in spread([(high, wide) for wide, high in sizes], pairs)]
    turned_upright = _turns(blocks, pairs, upright)
    if _behind(blocks, pairs, upright, turned_upright) < behind:
        return upright, turned_upright
    return found, turned


def _turns(
    blocks: Sequence[Block], pairs: Sequence[tuple[int, int]], middles: Sequence[Point]
) -> list[float]:
    linked: list[list[float]] = [[] for _ in blocks]
    for a, b in pairs:
        linked[a].append(middles[b][1])
        linked[b].append(middles[a][1])
    return [
        -1.0 if not block.fixed and ys and math.fsum(ys) / len(ys) < y - GAP else 1.0
        for block, ys, (_, y) in zip(blocks, linked, middles, strict=True)
    ]


def _behind(
    blocks: Sequence[Block],
    pairs: Sequence[tuple[int, int]],
    middles: Sequence[Point],
    turned: Sequence[float],
) -> int:
    """How often a line between two blocks passes behind hosts, its own or others."""
    ends, racks = [], []
    for block, (x, y), up in zip(blocks, middles, turned, strict=True):
        hub = 0.0 if block.fixed else next(iter(block.places.values()))[1]
        ends.append((x, y + up * hub))
        low, high = -block.height / 2, (block.height / 2 if block.fixed else hub - BOX_HEIGHT)
        low, high = sorted((y + up * low, y + up * high))
        racks.append((x - block.width / 2, low, x + block.width / 2, high))
    return sum(
        _crosses(ends[a], ends[b], racks[k])
        for a, b in pairs
        for k, block in enumerate(blocks)
        if not (block.fixed and k in (a, b))
    )


def _crosses(start: Point, end: Point, box: tuple[float, float, float, float]) -> bool:
    """Whether a line passes through a box of (left, bottom, right, top) (Liang and Barsky 1984)."""
    first, last = 0.0, 1.0
    for k in (0, 1):
        way = end[k] - start[k]
        bounds = (box[k] - start[k], box[k + 2] - start[k])
        if way == 0.0:
            if bounds[0] >= 0.0 or bounds[1] <= 0.0:
                return False
            continue
        enters, leaves = sorted(bound / way for bound in bounds)
        first, last = max(first, enters), min(last, leaves)
    return first < last


def _spread_part(
    graph: object, part: Sequence[int], sizes: Sequence[tuple[float, float]]
) -> dict[int, Point]:
    import networkx

    if len(part) == 1:
        return {part[0]: (0.0, 0.0)}
    if len(part) > MAX_BY_FORCES:
        return _rows(part, sizes)
    if len(part) > MAX_BY_DISTANCES:
        side = math.sqrt(math.fsum((sizes[k][0] + GAP) * (sizes[k][1] + GAP) for k in part))
        found = networkx.spring_layout(graph, seed=1, scale=2.0 * side)
    else:
        lengths = dict(networkx.all_pairs_dijkstra_path_length(graph, weight="length"))
        found = networkx.kamada_kawai_layout(graph, dist=lengths, weight=None, scale=1.0)
        far = max(max(row.values()) for row in lengths.values())
        wide = max(math.dist(found[a], found[b]) for a in part for b in part)
        found = {k: place * (far / max(wide, 1e-9)) for k, place in found.items()}
    points = _lie_down(np.array([found[k] for k in part], dtype=np.float64))
    points = _part(points, np.array([sizes[k] for k in part]))
    return {k: (float(x), float(y)) for k, (x, y) in zip(part, points, strict=True)}


def _rows(part: Sequence[int], sizes: Sequence[tuple[float, float]]) -> dict[int, Point]:
    """In rows: nothing can be seen of the links of so many."""
    columns = math.ceil(math.sqrt(2 * len(part)))
    wide = max(sizes[k][0] for k in part) + GAP
    high = max(sizes[k][1] for k in part) + GAP
    return {k: (i % columns * wide, -(i // columns) * high) for i, k in enumerate(part)}


def _lie_down(points: np.ndarray) -> np.ndarray:
    """Turn the picture so that its longest direction is horizontal; centre it."""
    points = points - points.mean(axis=0)
    spans, axes = np.linalg.eigh(points.T @ points)
    if spans[1] > 1.2 * spans[0]:
        points = points @ axes[:, ::-1]
        # The sign of an eigenvector is not given: let the first block be at the left and above.
        for k, sign in ((0, -1.0), (1, 1.0)):
            clear = points[np.abs(points[:, k]) > 1e-6, k]
            if len(clear) and clear[0] * sign < 0.0:
                points[:, k] *= -1.0
    return points


def _part(points: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Places at which no two blocks overlap: pushed apart, and if that does not end, scaled."""
    needed = (sizes[:, None] + sizes[None]) / 2 + GAP
    for _ in range(PUSHES):
        apart = points[:, None] - points[None]
        inside = needed - np.abs(apart)
        hidden = (inside > 1e-9).all(axis=2)
        np.fill_diagonal(hidden, False)
        if not hidden.any():
            return points
        # Each of two goes half the way, in the direction that is shorter.
        sideways = hidden & (inside[..., 0] <= inside[..., 1])
        ways = np.where(np.stack([sideways, hidden & ~sideways], axis=2), 0.55 * inside, 0.0)
        places = np.arange(len(points))
        signs = np.where(apart == 0.0, np.sign(places[:, None] - places)[..., None], np.sign(apart))
        points = points + (ways * signs).sum(axis=1) / np.maximum(hidden.sum(axis=1), 1)[:, None]
    apart = np.maximum(np.abs(points[:, None] - points[None]), 1e-9)
    grown = (needed / apart).min(axis=2)
    np.fill_diagonal(grown, 1.0)
    return points * max(1.0, float(grown.max()))


def _middle(values: Sequence[float]) -> float:
    return (min(values) + max(values)) / 2


class Box(NamedTuple):
    """A node. kind: host, router, switch, link (a bar: more than two nodes share it), or junction
    (a point where links meet that the platform file does not name).
    """

    name: str
    kind: str
    x: float
    y: float
    width: float
    height: float


class Line(NamedTuple):
    """Links between two nodes: one polyline, or two that leave the picture and come back.

    links: their names, without the suffix of the two halves of a split link; empty where a node
    stands at another without a link between them. in_rack: joins a host with the node that its
    rack hangs on.
    """

    paths: tuple[tuple[Point, ...], ...]
    links: tuple[str, ...]
    in_rack: bool = False


class Sketch(NamedTuple):
    """All that is drawn; y points up. A host in a rack of several rows has its link above it.

    groups: racks by what they hang on, groups of a dragonfly, clusters.
    """

    boxes: list[Box]
    lines: list[Line]
    groups: list[Part]


def sketch(platform: Platform) -> Sketch:
    """The places of the hosts, switches, routers and links of a platform, the same at each call.

    A host that hangs on one node alone stands in the rack of that node. Clusters are drawn by their
    topology: fat trees in levels, a torus as a grid whose borders are open where it closes, the
    groups of a dragonfly around a circle. What is left, and the clusters among each other, is
    spread so that distances resemble those in the graph (Kamada and Kawai 1989).
    """
    return _Sketcher(platform).sketch()


class _Sketcher:
    """Gathers racks, blocks of clusters and the rest, spreads them, draws lines."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.graph = _plain(platform.graph)
        self.racks: dict[str, Rack] = {}
        self.places: dict[str, Point] = {}
        self.boxes: dict[str, Box] = {}

    def sketch(self) -> Sketch:
        leaves = self._hang_leaves()
        blocks = self._blocks(leaves)
        owner = {node: k for k, block in enumerate(blocks) for node in block.places}
        pairs = {
            (min(ends), max(ends))
            for a, b in self.graph.edges
            if a in owner and b in owner and len(ends := {owner[a], owner[b]}) == 2
        }
        middles, turned = spread_clear(blocks, sorted(pairs))
        groups: list[Part] = []
        for block, (x, y), up in zip(blocks, middles, turned, strict=True):
            for node, (dx, dy) in block.places.items():
                self._put(node, x + dx, y + up * dy, up)
            groups += [part._replace(x=x + part.x, y=y + part.y) for part in block.parts]
        edges = self.graph.edges(data=True)
        lines = [self._line(a, b, data) for a, b, data in edges]
        return Sketch(list(self.boxes.values()), lines, groups)

    def _hang_leaves(self) -> set[str]:
        """Make a rack of the hosts that hang on one node; returns all of them."""
        kinds = dict(self.graph.nodes(data="kind"))
        hanging: dict[str, list[str]] = {}
        for node, kind in kinds.items():
            if kind == "host" and self.graph.degree(node) == 1:
                hub = next(iter(self.graph.neighbors(node)))
                if kinds[hub] != "host":
                    hanging.setdefault(hub, []).append(node)
        for hub, hosts in hanging.items():
            narrow = "level" in self.graph.nodes[hub] or "coordinates" in self.graph.nodes[hub]
            self.racks[hub] = rack_of(hosts, narrow)
        return {host for hosts in hanging.values() for host in hosts}

    def _blocks(self, leaves: set[str]) -> list[Block]:
        """A block for each cluster with a shape of its own, and one for each other node."""
        shaped: dict[str, list[str]] = {}
        blocks = []
        for node, data in self.graph.nodes(data=True):
            if node in leaves:
                continue
            if "level" in data or "coordinates" in data:
                shaped.setdefault(data["zone"], []).append(node)
            else:
                blocks.append(block_of(self.graph, "", [node], self.racks))
        return blocks + [
            block_of(self.graph, zone, nodes, self.racks) for zone, nodes in shaped.items()
        ]

    def _put(self, node: str, x: float, y: float, up: float) -> None:
        """Draw a node at a place, and its rack below it (above it, where ``up`` is -1)."""
        kind = self.graph.nodes[node]["kind"]
        rack = self.racks.get(node)
        width, height = BOX_WIDTH, BOX_HEIGHT
        if kind == "link":
            width, height = max(rack.width if rack else 0.0, 2 * BOX_WIDTH), BAR_HEIGHT
        elif kind == JUNCTION:
            width, height = DOT, DOT
        elif kind == "host":
            width, height = CELL_WIDTH, CELL_HEIGHT
        self.boxes[node] = Box(node.removeprefix(LINK), kind, x, y, width, height)
        for host, dx, dy in rack.cells if rack else ():
            self.boxes[host] = Box(host, "host", x + dx, y + up * dy, CELL_WIDTH, CELL_HEIGHT)

    def _line(self, a: str, b: str, data: dict[str, Any]) -> Line:
        links = (*data["links"], *data["parallel"])
        for host, hub in ((a, b), (b, a)):
            rack = self.racks.get(hub)
            if rack is not None and host in rack.hosts:
                return Line((self._port(host, hub, rack),), links, in_rack=True)
        kinds = self.graph.nodes[a]["kind"], self.graph.nodes[b]["kind"]
        shared = [
            node.removeprefix(LINK)
            for node, kind in zip((a, b), kinds, strict=True)
            if kind == "link"
        ]
        return Line(self._paths(a, b), (*links, *shared))

    def _port(self, host: str, hub: str, rack: Rack) -> tuple[Point, ...]:
        """From a host up to its hub; where others stand between them, only the first bit."""
        cell, top = self.boxes[host], self.boxes[hub]
        y = cell.y + math.copysign(cell.height / 2, top.y - cell.y)
        if rack.rows > 1:
            y += math.copysign(PORT, top.y - cell.y)
            return ((cell.x - cell.width / 2, y), (cell.x + cell.width / 2, y))
        return ((cell.x, y), self._end(top, cell.x))

    def _end(self, box: Box, x: float) -> Point:
        """Where a line that comes from x ends at a box: bars take it where it is nearest."""
        if box.kind != "link":
            return (box.x, box.y)
        half = box.width / 2
        return (min(max(x, box.x - half), box.x + half), box.y)

    def _paths(self, a: str, b: str) -> tuple[tuple[Point, ...], ...]:
        first, second = self.boxes[a], self.boxes[b]
        start = self._end(first, second.x)
        end = self._end(second, start[0])
        here, there = (self.graph.nodes[node].get("coordinates") for node in (a, b))
        if (
            here is None
            or there is None
            or self.graph.nodes[a]["zone"] != self.graph.nodes[b]["zone"]
        ):
            return ((start, end),)
        (axis,) = [k for k, (i, j) in enumerate(zip(here, there, strict=True)) if i != j][:1]
        apart = abs(here[axis] - there[axis])
        if first.kind == "switch":
            # All routers of a chassis, and all chassis, are linked: in arcs, for they are in line.
            return (_arc(start, end, apart),) if axis > 0 and apart > 1 else ((start, end),)
        if apart == 1:
            return ((start, end),)
        # The way around a torus.
        dx, dy = ((v - u) / apart * STUB for u, v in zip(start, end, strict=True))
        return (
            (start, (start[0] - dx, start[1] - dy)),
            (end, (end[0] + dx, end[1] + dy)),
        )


def _plain(graph: Any) -> Any:
    """The graph with links between two nodes as edges, without routers behind which is nothing.

    Links that follow each other on routes meet in junctions.
    """
    plain = graph.copy()
    kinds = dict(graph.nodes(data="kind"))
    for node, kind in kinds.items():
        if kind == "router" and plain.degree(node) <= 1 and len(plain) > 2:
            plain.remove_node(node)
    _contract(plain)
    _join(plain)
    _contract(plain)
    return plain


def _contract(graph: Any) -> None:
    """Make an edge of each link node between two nodes that are not links."""
    kinds = dict(graph.nodes(data="kind"))
    for node in [node for node, kind in kinds.items() if kind == "link"]:
        ends = [other for other in graph.neighbors(node) if kinds[other] != "link"]
        if len(ends) != 2 or graph.has_edge(*ends):
            continue
        its = graph.nodes[node]
        sides = [graph.edges[end, node] for end in ends]
        data = dict(sides[0], links=(*sides[0]["links"], node[len(LINK) :], *sides[1]["links"]))
        data["bandwidth_Bps"] = min(each["bandwidth_Bps"] for each in (its, *sides))
        data["latency_s"] = math.fsum(each["latency_s"] for each in (its, *sides))
        graph.remove_node(node)
        graph.add_edge(*ends, **data)


def _join(graph: Any) -> None:
    """Let links of which each follows each other on routes meet in one point."""
    import networkx

    links = graph.subgraph([node for node, kind in graph.nodes(data="kind") if kind == "link"])
    edges = list(links.edges(data=True))
    cliques: list[list[str]] = []
    for part in networkx.connected_components(links):
        if 2 <= len(part) <= MAX_JOINED:
            cliques += map(sorted, networkx.find_cliques(links.subgraph(sorted(part))))
    graph.remove_edges_from([(a, b) for a, b, _ in edges])
    for number, clique in enumerate(sorted(cliques)):
        name = f"junction {number}"
        graph.add_node(name, kind=JUNCTION, zone=graph.nodes[clique[0]]["zone"])
        graph.add_edges_from((node, name, dict(edges[0][2])) for node in clique)


def _arc(start: Point, end: Point, apart: int) -> tuple[Point, ...]:
    """A parabola from one point to another that rises by a part of their distance."""
    (x, y), (u, v) = start, end
    length = math.hypot(u - x, v - y)
    rise = 0.14 * length / math.sqrt(apart)
    nx, ny = -(v - y) / length * rise, (u - x) / length * rise
    points = []
    for step in range(ARC_STEPS + 1):
        t = step / ARC_STEPS
        bulge = 4 * t * (1 - t)
        points.append((x + t * (u - x) + bulge * nx, y + t * (v - y) + bulge * ny))
    return tuple(points)


def extent(drawn: Sketch) -> tuple[float, float, float, float]:
    """(left, bottom, right, top) of all boxes and lines."""
    xs = [x for box in drawn.boxes for x in (box.x - box.width / 2, box.x + box.width / 2)]
    ys = [y for box in drawn.boxes for y in (box.y - box.height / 2, box.y + box.height / 2)]
    for line in drawn.lines:
        for x, y in itertools.chain(*line.paths):
            xs.append(x)
            ys.append(y)
    return min(xs), min(ys), max(xs), max(ys)
