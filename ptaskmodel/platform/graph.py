"""The platform as a networkx graph: hosts, routers, switches and the links between them.

Routes are sequences of links and do not name the switches between them. Each declared route becomes
a chain of link nodes. Then a link with two neighbours becomes an edge between them; a link with
more neighbours (a backbone, a shared cable) stays a node. So a thousand hosts behind one backbone
are a star, not half a million edges.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from ptaskmodel.platform.declared import ROUTED_KINDS, WIFI_ZONE, Facts, Zone
from ptaskmodel.platform.topologies.families import FAMILIES
from ptaskmodel.platform.topologies.topology import LIMITER, WalkTable


def build_graph(platform: Facts) -> Any:
    """A ``networkx.Graph``.

    Nodes, keyed by name ("link:" and the name for links): ``kind`` "host", "router", "switch" or
    "link", ``zone`` (name); hosts have ``speed_flops`` and ``cores``, links ``bandwidth_Bps``,
    ``latency_s`` and ``policy``; nodes of a fat tree their ``level``, hosts of a torus and routers
    of a dragonfly their ``coordinates``; nodes of a cluster with limiters ``limiter_Bps``. Edges:
    ``links`` (names, the two halves of a split link as one), ``cables`` (how many such edges,
    ``parallel`` being the names of the others), ``bandwidth_Bps`` (the narrowest link; inf without
    a link), ``latency_s`` (their sum), ``policy`` (of the narrowest), and ``path_latency_s``, which
    also counts half of each link node at the ends: a shortest path with this weight has the latency
    of a route. Bypasses, loopbacks and links without route are left out.
    """
    return _GraphBuilder(platform).build()


class _GraphBuilder:
    """Collects nodes and chains, then turns simple link nodes into edges."""

    def __init__(self, platform: Facts) -> None:
        import networkx

        self.platform = platform
        self.graph = networkx.Graph()
        self.keys: dict[int, str] = {}

    def build(self) -> Any:
        for zone in self.platform.zones:
            if not zone.is_internal:
                self._add_points(zone)
        for zone in self.platform.zones:
            self._add_zone(zone)
        self._contract()
        self._prune()
        for a, b, data in self.graph.edges(data=True):
            halves = sum(self.graph.nodes[end].get("latency_s", 0.0) for end in (a, b)) / 2
            data["path_latency_s"] = data["latency_s"] + halves
        return self.graph

    def _add_points(self, zone: Zone) -> None:
        points = self.platform.points
        for point in zone.points:
            name = points.names[point]
            index = points.host.get(point)
            if index is None:
                key = f"{name} (router)" if name in self.graph else name
                self.graph.add_node(key, kind="router", zone=zone.name)
            else:
                key = name
                host = self.platform.hosts[index]
                facts = {"speed_flops": host.speed_flops, "cores": host.cores}
                self.graph.add_node(key, kind="host", zone=zone.name, **facts)
            self.keys[point] = key

    def _add_zone(self, zone: Zone) -> None:
        if zone.kind in ROUTED_KINDS:
            for (a, b), route in zone.routes.items():
                ends = (zone.points[a], zone.points[b])
                if zone.is_internal:
                    ends = (route.gateway_from, route.gateway_to)
                if ends[0] != ends[1]:
                    self._chain(self.keys[ends[0]], route.links, self.keys[ends[1]], zone)
        elif zone.kind == WIFI_ZONE and zone.wifi_link >= 0:
            for point in zone.points:
                self._chain(self.keys[point], [zone.wifi_link], None, zone)
        elif zone.walk is not None:
            spokes = FAMILIES[zone.walk.kind].spokes(zone.walk.table)
            if spokes is None:
                self._add_topology(zone, zone.walk)
            else:
                self._add_star(zone, spokes)

    def _add_star(self, zone: Zone, paths: list[tuple[int, ...]]) -> None:
        """Every point linked with the middle: the only point without links, else a switch."""
        bare = [point for point, path in zip(zone.points, paths, strict=True) if not path]
        if len(bare) == 1 and bare[0] not in self.platform.points.host:
            middle = self.keys[bare[0]]
        else:
            middle = self._switch(zone, "switch")
        for point, path in zip(zone.points, paths, strict=True):
            if self.keys[point] != middle:
                self._chain(self.keys[point], path, middle, zone)

    def _add_topology(self, zone: Zone, walk: WalkTable) -> None:
        table = walk.table.tolist()
        nodes: dict[int, str] = {i: self.keys[point] for i, point in enumerate(zone.points)}
        for a, b, link, level in FAMILIES[walk.kind].edges(table):
            for number in (a, b):
                if number not in nodes:
                    nodes[number] = self._switch(zone, f"switch {number - len(zone.points)}")
            if level is not None:
                self.graph.nodes[nodes[a]]["level"] = level
                self.graph.nodes[nodes[b]]["level"] = level + 1
            self._cable(nodes[a], nodes[b], link)
        for number, place in FAMILIES[walk.kind].coordinates(table):
            self.graph.nodes[nodes[number]]["coordinates"] = place
        if table[LIMITER] >= 0:
            for number, key in nodes.items():
                limiter = self.platform.all_links[table[LIMITER] + number]
                self.graph.nodes[key]["limiter_Bps"] = limiter.bandwidth_Bps

    def _switch(self, zone: Zone, what: str) -> str:
        key = f"{zone.name} {what}"
        self.graph.add_node(key, kind="switch", zone=zone.name)
        return key

    def _cable(self, a: str, b: str, link: int) -> None:
        """A link between two nodes; parallel ones are counted."""
        if self.graph.has_edge(a, b):
            its = self.graph.edges[a, b]
            its["cables"] += 1
            its["parallel"] += (self._cable_name(link),)
        elif a != b:
            self._edge(a, b, (link,))

    def _edge(self, a: str, b: str, links: Sequence[int]) -> None:
        facts = [self.platform.all_links[link] for link in links]
        narrowest = min(facts, key=lambda link: link.bandwidth_Bps, default=None)
        self.graph.add_edge(
            a,
            b,
            links=tuple(self._cable_name(link) for link in links),
            indices=tuple(links),
            cables=1,
            parallel=(),
            bandwidth_Bps=narrowest.bandwidth_Bps if narrowest else math.inf,
            latency_s=sum((link.latency_s for link in facts), 0.0),
            policy=narrowest.policy if narrowest else None,
        )

    def _cable_name(self, link: int) -> str:
        name = self.platform.all_links[link].name
        return name.removesuffix("_UP") if self._first_half(link + 1) == link else name

    def _first_half(self, link: int) -> int:
        """The UP half of a split link, else the link itself."""
        name = self.platform.all_links[link].name
        before = self.platform.all_links[link - 1].name
        is_down = name.endswith("_DOWN") and before == f"{name.removesuffix('_DOWN')}_UP"
        return link - 1 if is_down else link

    def _chain(self, a: str, links: Sequence[int], b: str | None, zone: Zone) -> None:
        """a - link - link - ... - b; bare edges, links as nodes. None: ends at the last link."""
        keys = [a]
        for link in links:
            first = self._first_half(link)
            facts = self.platform.all_links[first]
            key = f"link:{self._cable_name(first)}"
            if key not in self.graph:
                self.graph.add_node(
                    key,
                    kind="link",
                    zone=zone.name,
                    index=first,
                    bandwidth_Bps=facts.bandwidth_Bps,
                    latency_s=facts.latency_s,
                    policy=facts.policy,
                )
            keys.append(key)
        if b is not None:
            keys.append(b)
        for x, y in itertools.pairwise(keys):
            if x != y and not self.graph.has_edge(x, y):
                self._edge(x, y, ())

    def _prune(self) -> None:
        """Remove the middle of a star that its backbone stands for already."""
        for key, kind in list(self.graph.nodes(data="kind")):
            if kind == "switch" and [d["links"] for _, _, d in self.graph.edges(key, True)] == [()]:
                self.graph.remove_node(key)

    def _contract(self) -> None:
        """Turn link nodes with two neighbours into edges, unless there is an edge already."""
        graph = self.graph
        for key in [key for key, kind in graph.nodes(data="kind") if kind == "link"]:
            if graph.degree(key) != 2:
                continue
            a, b = graph.neighbors(key)
            if not graph.has_edge(a, b):
                before, after = graph.edges[a, key]["indices"], graph.edges[key, b]["indices"]
                index = graph.nodes[key]["index"]
                graph.remove_node(key)
                self._edge(a, b, (*before, index, *after))
