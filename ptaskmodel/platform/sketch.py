"""Where everything of a platform is drawn: racks of hosts, switches by level, groups, grids.

A sketch has no colours and needs no library of pictures: files, reports and pages paint it.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from ptaskmodel.platform.sketch_blocks import (
    BAR_HEIGHT,
    BOX_HEIGHT,
    BOX_WIDTH,
    CELL_HEIGHT,
    CELL_WIDTH,
    STUB,
    Block,
    Part,
    Point,
    Rack,
    block_of,
    rack_of,
)
from ptaskmodel.platform.sketch_spread import spread_clear

if TYPE_CHECKING:
    from ptaskmodel.platform.platform import Platform

LINK = "link:"  # before the names of links in graphs
JUNCTION = "junction"
DOT = 0.16
MAX_JOINED = 200  # links that follow each other, of which sets are looked for
ARC_STEPS = 8
PORT = 0.1  # from a host in a rack to the line of its link


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
