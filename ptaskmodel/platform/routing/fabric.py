"""The graph in which a flow may choose its path: hosts, routers, switches and hops between them.

`ecmp` and `given` find their routes here. A hop leads from a node to a neighbour, over one or
several links, in one direction: the two halves of a split link are two hops. The hops of a zone
depend on its kind. Full, Floyd and Dijkstra zones have their declared routes (between zones: from
gateway to gateway), families of clusters their edges, and stars their spokes. Vivaldi and Wifi
zones, and zones without routing, have no graph.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.errors import RouteError
from ptaskmodel.platform.builder import ROUTED_KINDS, VIVALDI, Facts, Zone
from ptaskmodel.platform.facts import short
from ptaskmodel.platform.topologies import FAMILIES
from ptaskmodel.platform.topologies.topology import DUPLEX, LIMITER, WalkTable

IntArray = NDArray[np.int64]

# Distances to so many nodes are kept, as entries of all.
KEPT_DISTANCES = 2**24
FAR = 2**30


class Hop(NamedTuple):
    """A step from a node to a neighbour: the links crossed, by index, in this order."""

    source: int
    target: int
    links: tuple[int, ...]


class Way(NamedTuple):
    """The route of a flow and that of its acknowledgements, as link indices."""

    there: tuple[int, ...]
    back: tuple[int, ...]


class Fabric:
    """Nodes and hops of a platform, made from its facts.

    Points keep their numbers; switches of clusters come after.

    names: of the nodes. node: of each host, by its index. out: of each node, its hops. limiter:
    of a node that has one, that link, which a flow crosses as it passes the node.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.names: list[str] = list(facts.points.names)
        self.out: list[list[Hop]] = [[] for _ in self.names]
        self.limiter: dict[int, int] = {}
        self.node = list(facts.points.host)
        for zone in facts.zones:
            self._add_zone(zone)
        self._distances = functools.lru_cache(max(16, KEPT_DISTANCES // len(self.names)))(
            self._search
        )

    # --- building ---------------------------------------------------------------------------

    def _add_zone(self, zone: Zone) -> None:
        if zone.kind in ROUTED_KINDS:
            for (a, b), route in zone.routes.items():
                ends = (zone.points[a], zone.points[b])
                if zone.is_internal:
                    ends = (route.gateway_from, route.gateway_to)
                self._add(*ends, route.links)
        elif zone.walk is not None and zone.kind != VIVALDI and not zone.is_internal:
            spokes = FAMILIES[zone.walk.kind].spokes(zone.walk.table)
            if spokes is None:
                self._add_cluster(zone, zone.walk)
            else:
                self._add_star(zone)

    def _add(self, a: int, b: int, links: Sequence[int]) -> None:
        if a != b:
            self.out[a].append(Hop(a, b, tuple(links)))

    def _new_node(self, name: str) -> int:
        self.names.append(name)
        self.out.append([])
        return len(self.names) - 1

    def _add_star(self, zone: Zone) -> None:
        """Every point linked with the middle: its only point without links, else a switch."""
        from ptaskmodel.platform.topologies.star import star_rows

        assert zone.walk is not None
        rows = dict(zip(zone.points, star_rows(zone.walk.table), strict=False))
        bare = [point for point, paths in rows.items() if not any(paths)]
        alone = len(bare) == 1 and bare[0] not in self.facts.points.host
        middle = bare[0] if alone else self._new_node(f"{zone.name} switch")
        for point, (up, down) in rows.items():
            if point != middle:
                self._add(point, middle, up)
                self._add(middle, point, down)

    def _add_cluster(self, zone: Zone, walk: WalkTable) -> None:
        table = walk.table.tolist()
        nodes = dict(enumerate(zone.points))

        def node(number: int) -> int:
            if number not in nodes:
                nodes[number] = self._new_node(f"{zone.name} switch {number - len(zone.points)}")
            return nodes[number]

        for edge in FAMILIES[walk.kind].edges(table):
            a, b = node(edge.node), node(edge.other)
            self._add(a, b, (edge.link,))
            self._add(b, a, (edge.link + table[DUPLEX],))
        if table[LIMITER] >= 0:
            self.limiter |= {each: table[LIMITER] + number for number, each in nodes.items()}

    # --- searching --------------------------------------------------------------------------

    @functools.cached_property
    def _into(self) -> tuple[IntArray, IntArray]:
        """Where the hops into each node begin, and the nodes that these come from."""
        ends = [(hop.target, hop.source) for hops in self.out for hop in hops]
        pairs = np.array(sorted(ends), dtype=np.int64).reshape(-1, 2)
        start = np.searchsorted(pairs[:, 0], np.arange(len(self.names) + 1))
        return start, np.ascontiguousarray(pairs[:, 1])

    def _search(self, target: int) -> list[int]:
        """Hops from each node to one, FAR where there is no way: breadth first, backwards."""
        start, sources = self._into
        distance = np.full(len(self.names), FAR, dtype=np.int64)
        distance[target] = 0
        front = np.array([target])
        hops = 0
        while len(front):
            hops += 1
            counts = start[front + 1] - start[front]
            before = np.cumsum(counts) - counts
            places = np.arange(int(counts.sum())) + np.repeat(start[front] - before, counts)
            found = np.unique(sources[places])
            front = found[distance[found] == FAR]
            distance[front] = hops
        return distance.tolist()

    def nearer(self, node: int, target: int) -> list[Hop]:
        """The hops from a node to neighbours nearer to the target, in order of declaration.

        Raises RouteError if there is none.
        """
        distance = self._distances(target)
        wanted = distance[node] - 1
        found = [hop for hop in self.out[node] if distance[hop.target] == wanted]
        if not found:
            raise self.no_way(node, target)
        return found

    def equal_paths(self, source: int, target: int) -> tuple[int, int]:
        """How many shortest paths lead from source to target, and of how many hops they are.

        Raises RouteError if there is none.
        """
        distance = self._distances(target)
        if source == target or distance[source] >= FAR:
            raise self.no_way(source, target)
        ways = {source: 1}
        for _ in range(distance[source]):
            after: dict[int, int] = {}
            for node, count in ways.items():
                for hop in self.nearer(node, target):
                    after[hop.target] = after.get(hop.target, 0) + count
            ways = after
        return ways[target], distance[source]

    def no_way(self, source: int, target: int) -> RouteError:
        """There is no way through the graph from source to target."""
        names = short(self.names[source]), short(self.names[target])
        return RouteError(
            f"{self.facts.path}: the zones give no graph with a path from {names[0]} to "
            f"{names[1]}; "
            "use --routing platform"
        )

    # --- routes -----------------------------------------------------------------------------

    def way(self, hops: Sequence[Hop]) -> Way:
        """The links of hops that follow each other, and of the same cables taken backwards.

        Raises RouteError where a hop cannot be taken backwards.
        """
        there = self._links(hops)
        return Way(there, self._links([self._backwards(hop) for hop in reversed(hops)]))

    def _links(self, hops: Sequence[Hop]) -> tuple[int, ...]:
        links: list[int] = []
        nodes = [hops[0].source, *(hop.target for hop in hops)]
        for node, hop in zip(nodes, (*hops, None), strict=True):
            if node in self.limiter:
                links.append(self.limiter[node])
            if hop is not None:
                links += self.new_links(tuple(links[-1:]), hop)
        return tuple(links)

    @staticmethod
    def new_links(before: tuple[int, ...], hop: Hop) -> tuple[int, ...]:
        """The links of a hop without the one just crossed: the backbone of a star ends the way in
        and begins the way out.

        before: that link, or nothing.
        """
        return hop.links[1:] if before and before == hop.links[:1] else hop.links

    def _backwards(self, hop: Hop) -> Hop:
        """The hop back over the same cables, or the first one if none is of the same."""
        back = [other for other in self.out[hop.target] if other.target == hop.source]
        if not back:
            names = short(self.names[hop.target]), short(self.names[hop.source])
            raise RouteError(
                f"{self.facts.path}: no link from {names[0]} back to {names[1]}, which "
                "acknowledgements need; declare a route there"
            )
        cables = [self.cable(link) for link in reversed(hop.links)]
        same = (other for other in back if [self.cable(link) for link in other.links] == cables)
        return next(same, back[0])

    def cable(self, link: int) -> str:
        """The name of a link; of the halves of a split link that of the whole."""
        name = self.facts.all_links[link].name
        for half, other, step in (("_UP", "_DOWN", 1), ("_DOWN", "_UP", -1)):
            whole = name.removesuffix(half)
            if whole != name and self.facts.all_links[link + step].name == whole + other:
                return whole
        return name
