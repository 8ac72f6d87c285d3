"""Write a platform as SimGrid XML, numbers to the last digit, traces inside; make its graph.

`build_graph` makes a networkx graph of hosts, routers, switches and the links between them. Routes
are sequences of links and do not name the switches between them. Each declared route becomes a
chain of link nodes. Then a link with two neighbours becomes an edge between them; a link with more
neighbours (a backbone, a shared cable) stays a node. So a thousand hosts behind one backbone are a
star, not half a million edges.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lxml import etree

from ptaskmodel.platform.builder import (
    CLUSTER,
    ROUTED_KINDS,
    VIVALDI,
    WIFI_ZONE,
    Facts,
    LocalRoute,
    StarPaths,
    Zone,
)
from ptaskmodel.platform.facts import SHARED, WIFI, AvailabilityTrace, Host, Link
from ptaskmodel.platform.topologies import FAMILIES
from ptaskmodel.platform.topologies.topology import LIMITER, WalkTable

DOCTYPE = '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'


def platform_xml(facts: Facts, comment: str = "") -> str:
    """The text of a file that reads as the same hosts, links, routes and latencies.

    What a file may say in several ways (a cabinet, a trace in a file of its own) is said in one.
    """
    root = _Writer(facts).write()
    etree.indent(root)
    text = etree.tostring(root, encoding="unicode")
    heads = ['<?xml version="1.0"?>', DOCTYPE]
    if comment:
        while "--" in comment:
            comment = comment.replace("--", "-")
        heads.append(f"<!--\n{comment.strip()}\n-->")
    return "\n".join([*heads, text, ""])


class _Writer:
    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._names = facts.points.names
        # Of each half of a split link: the name of the whole, and which half it is.
        self._halves = {
            first + k: (name, half)
            for name, first in facts.duplex.items()
            for k, half in enumerate(("UP", "DOWN"))
        }
        self._links: dict[str, list[Link]] = {}
        for link in facts.all_links[:-1]:
            self._links.setdefault(link.zone, []).append(link)

    def write(self) -> etree._Element:
        root = etree.Element("platform", version="4.1")
        if self._facts.config:
            config = dict(sorted(self._facts.config.items()))
            _add_properties(etree.SubElement(root, "config"), config)
        self._zone(root, self._facts.zones[0])
        self._traces(root)
        return root

    def _zone(self, parent: etree._Element, zone: Zone) -> None:
        if zone.cluster:
            points = zone.points
            made = etree.SubElement(parent, "cluster", zone.cluster)
            hosts = self._facts.points.host
            _add_properties(made, self._facts.hosts[hosts[points[0]]].properties)
            return
        element = etree.SubElement(parent, "zone", id=zone.name, routing=zone.kind)
        _add_properties(element, zone.properties)
        if zone.is_internal:
            self._inner_zones(element, zone)
        else:
            self._leaf(element, zone)
        if zone.kind in ROUTED_KINDS:
            self._routes(element, zone)
        for ends, route in zone.bypasses.items():
            between = route.gateway_from >= 0
            tag = "bypassZoneRoute" if between else "bypassRoute"
            attributes = self._ends(route, *ends)
            self._crossed(etree.SubElement(element, tag, attributes), route.links)

    def _inner_zones(self, element: etree._Element, zone: Zone) -> None:
        """Zones, and links between them where they were; a zone comes first, as it must."""
        links = list(self._links.get(zone.name, ()))
        for child in zone.children:
            later = itertools.chain.from_iterable(self._indices_in(self._facts.zones[child]))
            first = min(later, default=-1)
            while links and links[0].index < first and child != zone.children[0]:
                self._link(element, links.pop(0))
            self._zone(element, self._facts.zones[child])
        self._plain_links(element, links)

    def _indices_in(self, zone: Zone) -> Iterator[list[int]]:
        yield [link.index for link in self._links.get(zone.name, ())[:1]]
        for child in zone.children:
            yield from self._indices_in(self._facts.zones[child])

    def _leaf(self, element: etree._Element, zone: Zone) -> None:
        peers, taken, backbone = set(), set(), None
        for position, paths in zone.star.items():
            if paths.up is None or paths.down is None:
                continue
            if zone.kind == VIVALDI:
                peers.add(position)
                taken |= {*paths.up, *paths.down}
            elif len(paths.up) > 1:
                backbone = paths.up[1]
                taken.add(backbone)
        for position, point in enumerate(zone.points):
            if position in peers:
                self._peer(element, point, zone.star[position])
            else:
                self._point(element, point)
        self._plain_links(
            element, [k for k in self._links.get(zone.name, ()) if k.index not in taken]
        )
        if backbone is not None:
            link = self._facts.all_links[backbone]
            facts = {"id": link.name, **_rates(link)}
            etree.SubElement(element, "backbone", facts)
        if zone.kind == CLUSTER:
            self._host_links(element, zone)

    def _host_links(self, element: etree._Element, zone: Zone) -> None:
        named = [(self._names[zone.points[k]], paths) for k, paths in zone.star.items()]
        for name, paths in named:
            if paths.up is not None and paths.down is not None:
                up, down = self._facts.all_links[paths.up[0]], self._facts.all_links[paths.down[-1]]
                etree.SubElement(element, "host_link", id=name, up=up.name, down=down.name)
        for name, paths in named:
            if paths.loopback:
                route = etree.SubElement(element, "route", src=name, dst=name, symmetrical="NO")
                self._crossed(route, paths.loopback)

    def _point(self, element: etree._Element, point: int) -> None:
        """A host or a router."""
        facts = {"id": self._names[point]}
        index = self._facts.points.host.get(point)
        if index is None:
            facts |= _coordinates(self._facts.points.coordinates.get(point))
            etree.SubElement(element, "router", facts)
            return
        host = self._facts.hosts[index]
        facts |= {"speed": _speeds(host)} | _coordinates(host.coordinates)
        if host.cores != 1:
            facts["core"] = str(host.cores)
        if host.pstate:
            facts["pstate"] = str(host.pstate)
        made = etree.SubElement(element, "host", facts)
        for disk in host.disks:
            rates = {
                "read_bw": f"{disk.read_bandwidth_Bps!r}Bps",
                "write_bw": f"{disk.write_bandwidth_Bps!r}Bps",
            }
            _add_properties(etree.SubElement(made, "disk", id=disk.name, **rates), disk.properties)
        _add_properties(made, host.properties)

    def _peer(self, element: etree._Element, point: int, paths: StarPaths) -> None:
        assert paths.up is not None
        assert paths.down is not None
        host = self._facts.hosts[self._facts.points.host[point]]
        up, down = self._facts.all_links[paths.up[0]], self._facts.all_links[paths.down[0]]
        facts = {"id": host.name, "speed": _speeds(host)}
        facts |= {"bw_in": f"{down.bandwidth_Bps!r}Bps", "bw_out": f"{up.bandwidth_Bps!r}Bps"}
        etree.SubElement(element, "peer", facts | _coordinates(host.coordinates))

    def _plain_links(self, element: etree._Element, links: Sequence[Link]) -> None:
        for link in links:
            self._link(element, link)

    def _link(self, element: etree._Element, link: Link) -> None:
        name, half = self._halves.get(link.index, (link.name, ""))
        if half == "DOWN":
            return
        facts = {"id": name, **_rates(link)}
        if half or link.policy != SHARED:
            facts["sharing_policy"] = "SPLITDUPLEX" if half else link.policy
        made = etree.SubElement(element, "link", facts)
        _add_properties(made, link.properties)

    def _routes(self, element: etree._Element, zone: Zone) -> None:
        """Each with its reverse, where that follows."""
        waiting = list(zone.routes.items())[::-1]
        tag = "zoneRoute" if zone.is_internal else "route"
        while waiting:
            (a, b), route = waiting.pop()
            back = waiting[-1][1] if waiting and waiting[-1][0] == (b, a) else None
            directed = None if back is None or a == b else self._with_reverse(route, back)
            facts = self._ends(route, zone.points[a], zone.points[b])
            if directed is None:
                made = etree.SubElement(element, tag, facts | {"symmetrical": "NO"})
                self._crossed(made, route.links)
            else:
                waiting.pop()
                made = etree.SubElement(element, tag, facts)
                for name, direction in directed:
                    etree.SubElement(made, "link_ctn", {"id": name} | direction)

    def _with_reverse(
        self, route: LocalRoute, back: LocalRoute
    ) -> list[tuple[str, dict[str, str]]] | None:
        """How to write a route so that its reverse is ``back``; None if there is no way."""
        gateways = (route.gateway_from, route.gateway_to)
        if (back.gateway_to, back.gateway_from) != gateways or len(route.links) != len(back.links):
            return None
        written: list[tuple[str, dict[str, str]]] = []
        for link, twin in zip(route.links, back.links[::-1], strict=True):
            name, half = self._halves.get(link, ("", ""))
            if link == twin:
                written.append((self._facts.all_links[link].name, {}))
            elif half and self._halves.get(twin, ("", ""))[0] == name:
                written.append((name, {"direction": half}))
            else:
                return None
        return written

    def _ends(self, route: LocalRoute, source: int, destination: int) -> dict[str, str]:
        ends = {"src": self._names[source], "dst": self._names[destination]}
        if route.gateway_from >= 0:
            ends["gw_src"] = self._names[route.gateway_from]
            ends["gw_dst"] = self._names[route.gateway_to]
        return ends

    def _crossed(self, element: etree._Element, links: Sequence[int]) -> None:
        for link in links:
            etree.SubElement(element, "link_ctn", id=self._facts.all_links[link].name)

    def _traces(self, root: etree._Element) -> None:
        resources: tuple[Host | Link, ...] = (*self._facts.hosts, *self._facts.all_links)
        connected = [
            (trace, kind, fact.name)
            for fact in resources
            for trace, kind in _traces_of(fact)
            if trace is not None and trace.dates_s
        ]
        names: dict[int, str] = {}
        used: set[str] = set()
        for trace, _, _ in connected:
            if id(trace) not in names:
                name = trace.name if trace.name not in used else f"{trace.name} {len(used)}"
                names[id(trace)] = name
                used.add(name)
                period = "0" if trace.period_s is None else repr(trace.period_s)
                made = etree.SubElement(root, "trace", id=name, periodicity=period)
                events = zip(trace.dates_s, trace.values, strict=True)
                made.text = "".join(f"\n{date!r} {value!r}" for date, value in events) + "\n"
        for trace, kind, name in connected:
            facts = {"kind": kind, "trace": names[id(trace)], "element": name}
            etree.SubElement(root, "trace_connect", facts)


def _traces_of(fact: Host | Link) -> tuple[tuple[AvailabilityTrace | None, str], ...]:
    if isinstance(fact, Host):
        return ((fact.speed_trace, "SPEED"), (fact.state_trace, "HOST_AVAIL"))
    return (
        (fact.bandwidth_trace, "BANDWIDTH"),
        (fact.latency_trace, "LATENCY"),
        (fact.state_trace, "LINK_AVAIL"),
    )


def _add_properties(element: etree._Element, properties: Mapping[str, str]) -> None:
    for key, value in properties.items():
        etree.SubElement(element, "prop", id=key, value=value)


def _coordinates(coordinates: tuple[float, float, float] | None) -> dict[str, str]:
    return {} if coordinates is None else {"coordinates": " ".join(map(repr, coordinates))}


def _speeds(host: Host) -> str:
    return ",".join(f"{speed!r}f" for speed in host.speeds_flops)


def _rates(link: Link) -> dict[str, str]:
    rates = link.wifi_bandwidths_Bps if link.policy == WIFI else (link.bandwidth_Bps,)
    text = ",".join(f"{rate!r}Bps" for rate in rates)
    return {"bandwidth": text, "latency": f"{link.latency_s!r}s"}


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
            for source, target, links in zone.ways():
                if source != target:
                    self._chain(self.keys[source], links, self.keys[target], zone)
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
