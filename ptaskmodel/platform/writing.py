"""Write a platform as SimGrid XML: numbers to the last digit, traces inside the file."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from lxml import etree

from ptaskmodel.platform.declared import (
    CLUSTER,
    ROUTED_KINDS,
    VIVALDI,
    Facts,
    LocalRoute,
    StarPaths,
    Zone,
)
from ptaskmodel.platform.facts import SHARED, WIFI, AvailabilityTrace, Host, Link

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
