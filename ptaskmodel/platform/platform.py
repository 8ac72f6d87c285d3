"""The platform: hosts and links as data, routes on demand."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.errors import PlatformError, RouteError
from ptaskmodel.platform.builder import (
    DIJKSTRA,
    FLOYD,
    FULL,
    NONE,
    ROOT,
    VIVALDI,
    WIFI_ZONE,
    Facts,
    LocalRoute,
    Zone,
)
from ptaskmodel.platform.facts import LOOPBACK_NAME, Host, Link, Route, RouteParts, short
from ptaskmodel.platform.shortest_path import DijkstraRouting, FloydRouting
from ptaskmodel.platform.topologies.topology import WalkTable
from ptaskmodel.platform.zone_routes import (
    MAX_ROUTE_LINKS,
    FullRouting,
    NoLocalRoute,
    NoRouting,
    VivaldiRouting,
    WalkRouting,
    WifiRouting,
    ZoneRouting,
)
from ptaskmodel.remarks import placed

if TYPE_CHECKING:
    from ptaskmodel.platform.build import PlatformBuild
    from ptaskmodel.platform.routing import Fabric

CACHED_ROUTES = 2**16

Path_ = tuple[tuple[int, ...], float, bool]


class Platform:
    """A platform: hosts, links, zones and routes, read from a file or built; immutable.

    facts: what a reader or builder declared. ``hosts`` and ``links`` are in order of declaration
    (``hosts[i].index == i``). ``all_links`` also has the built-in ``__loopback__`` at its end, by
    which hosts without a route to themselves send to themselves. ``config`` holds the options of
    the file, with old names replaced by new ones. ``notes`` lists what is odd in the file,
    ``remarks`` the same with its places, ``hints`` what may be wrong. ``zones`` is its tree of
    zones, the root first.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.path = facts.path
        self.hosts: Sequence[Host] = facts.hosts
        self.all_links: Sequence[Link] = facts.all_links
        self.config = facts.config
        self.notes = facts.notes
        self.remarks = tuple(map(placed, facts.notes))
        self.hints = facts.hints
        self.zones: Sequence[Zone] = facts.zones
        self.points = facts.points
        self._host_points = list(facts.points.host)
        self._routings: dict[int, ZoneRouting] = {}
        self._cached_path = functools.lru_cache(CACHED_ROUTES)(self._path)
        self._cached_local = functools.lru_cache(CACHED_ROUTES)(self._between_zones)

    def __reduce__(self) -> tuple[type[Platform], tuple[Facts]]:
        """Pickled as its facts: what routing remembers is found again."""
        return type(self), (self.facts,)

    @functools.cached_property
    def links(self) -> Sequence[Link]:
        """What was declared, by index."""
        return self.all_links[:-1]

    @classmethod
    def build(
        cls,
        name: str,
        routing: str = "Full",
        config: Mapping[str, str | float] | None = None,
    ) -> PlatformBuild[Self]:
        """A platform to be built in Python, as one zone of that name; ``finish`` gives it.

        routing: Full, Floyd, Dijkstra, Cluster, Vivaldi, Wifi or None. config: options of the
        file's ``<config>``. ::

            build = Platform.build("lab")
            build.cluster("c", 8, speed="10Gf", bandwidth="1Gbps", latency="10us")
            platform = build.finish()
        """
        from ptaskmodel.platform.build import PlatformBuild

        return PlatformBuild(cls, name, routing, config)

    def to_xml(self, comment: str = "") -> str:
        """Return a SimGrid file (DTD 4.1), as text, that reads as the same platform.

        comment: text for a comment at its beginning. Numbers have all digits; traces are inside the
        file.
        """
        from ptaskmodel.platform.writing import platform_xml

        return platform_xml(self.facts, comment)

    def __repr__(self) -> str:
        return f"<Platform {self.path}: {len(self.hosts)} hosts, {len(self.links)} links>"

    def host(self, name: str) -> Host:
        """The host of a name. Raises PlatformError, with names that come close."""
        index = self.facts.host_index.get(name)
        if index is None:
            raise PlatformError(self._unknown("host", name, self.facts.host_index))
        return self.hosts[index]

    def link(self, name: str) -> Link:
        """The link of a name. Raises PlatformError, with names that come close."""
        index = self.facts.link_index.get(name)
        if index is None:
            raise PlatformError(self._unknown("link", name, self.facts.link_index))
        return self.all_links[index]

    def _unknown(self, what: str, name: str, known: dict[str, int]) -> str:
        # Comparing with very many names would take longer than people wait for an error.
        some = list(known)[:20_000]
        example = next((one for one in some if one != LOOPBACK_NAME), LOOPBACK_NAME)
        import difflib

        close = difflib.get_close_matches(str(name), some, 3)
        hint = f"do you mean {' or '.join(map(repr, close))}?" if close else f"e.g. {example!r}"
        return f"{self.path}: unknown {what} {short(str(name))}; {hint}"

    def route(self, source: str, destination: str) -> Route:
        """Return the route from host `source` to host `destination`, both by name.

        Raises PlatformError if a host does not exist, RouteError if there is no route.
        """
        parts = self.route_parts(self.host(source).index, self.host(destination).index)
        latency = parts.extra_latency_s
        for link in (*parts.across, *parts.up, *parts.down):
            latency += self.all_links[link].latency_s
        return Route(tuple(self.all_links[link].name for link in parts.links), latency)

    def route_parts(self, source: int, destination: int) -> RouteParts:
        """Return the route from host `source` to host `destination`, both by index.

        Raises RouteError if there is none.
        """
        return self._parts(self._host_points[source], self._host_points[destination])

    def leaf_zone(self, host: int) -> int:
        """Number (position in ``zones``) of the zone that directly holds a host."""
        return self.points.zone[self._host_points[host]]

    def host_line(self, index: int) -> int:
        """Return the line of the file that declares the host of this index."""
        return self.facts.host_line(index)

    def link_line(self, index: int) -> int:
        """Return the line of the file that declares the link of this index; 1 for the built-in
        loopback.
        """
        return self.facts.link_line(index)

    @functools.cached_property
    def local_numbers(self) -> NDArray[np.int64]:
        """Per host index, its number inside its leaf zone (what walks count in)."""
        numbers = (self.points.position[point] for point in self._host_points)
        return np.fromiter(numbers, np.int64, len(self.hosts))

    @functools.cached_property
    def hosts_with_traces(self) -> tuple[Host, ...]:
        """Hosts whose speed or state changes by itself."""
        return tuple(host for host in self.hosts if host.speed_trace or host.state_trace)

    @functools.cached_property
    def links_with_traces(self) -> tuple[Link, ...]:
        """Links of which something changes by itself."""
        return tuple(
            link
            for link in self.all_links
            if link.bandwidth_trace or link.latency_trace or link.state_trace
        )

    def walk_table(self, zone: int) -> WalkTable | None:
        """Kind and table of a zone for ``routing.walks.walk``.

        None if its routes are not walks: another kind of zone, a bypass, coordinates.
        """
        facts = self.zones[zone]
        return None if facts.bypasses or facts.kind == VIVALDI else facts.walk

    @functools.cached_property
    def graph(self) -> Any:
        """A ``networkx.Graph`` of hosts, routers, switches and links; see `writing`."""
        from ptaskmodel.platform.writing import build_graph

        return build_graph(self.facts)

    @functools.cached_property
    def fabric(self) -> Fabric:
        """The graph in which flows may choose their ways; see `platform.routing`."""
        from ptaskmodel.platform.routing import Fabric

        return Fabric(self.facts)

    def _parts(self, source: int, destination: int) -> RouteParts:
        """The route between two points."""
        zones = self.points.zone
        if zones[source] == zones[destination]:
            local = self._inside(zones[source], source, destination)
            return RouteParts((), local.links, (), local.extra_latency_s, False, local.instant)
        middle, plain, bypass = self._cached_local(zones[source], zones[destination])
        up: tuple[int, ...] = ()
        down: tuple[int, ...] = ()
        extra = middle.extra_latency_s
        # Beside a bypass, the route of a gateway to itself is crossed too, as in SimGrid.
        if middle.gateway_from != source or bypass:
            up, more, plain_up = self._cached_path(source, middle.gateway_from)
            extra, plain = extra + more, plain and plain_up
        if middle.gateway_to != destination or bypass:
            down, more, plain_down = self._cached_path(middle.gateway_to, destination)
            extra, plain = extra + more, plain and plain_down
        if len(up) + len(middle.links) + len(down) > MAX_ROUTE_LINKS:
            raise RouteError(
                f"{self.path}: the route from {self._name(source)} to {self._name(destination)} "
                f"crosses more than {MAX_ROUTE_LINKS} links; simplify the zones"
            )
        return RouteParts(up, middle.links, down, extra, plain)

    def _path(self, source: int, destination: int) -> Path_:
        """Links, extra latency, and whether no Vivaldi zone was met."""
        parts = self._parts(source, destination)
        zone = self.zones[self.points.zone[source]]
        plain = parts.separable or (
            self.points.zone[destination] == zone.number and zone.kind != VIVALDI
        )
        return parts.links, parts.extra_latency_s, plain

    def _links_between(self, source: int, destination: int) -> tuple[tuple[int, ...], float]:
        links, extra, _ = self._cached_path(source, destination)
        return links, extra

    def _inside(self, number: int, source: int, destination: int) -> LocalRoute:
        """The route between two points of one zone."""
        zone = self.zones[number]
        bypass = zone.bypasses.get((source, destination))
        return bypass or self._local(zone, source, destination)

    def _between_zones(self, source: int, destination: int) -> tuple[LocalRoute, bool, bool]:
        """From a leaf zone to another: the middle part of the route, in their common ancestor.

        Then, whether no Vivaldi zone takes part, and whether it is a bypass.
        """
        above_source, above_destination = self._above(source), self._above(destination)
        while len(above_source) > 1 and len(above_destination) > 1:
            if above_source[-2] != above_destination[-2]:
                break
            above_source.pop()
            above_destination.pop()
        ancestor = self.zones[above_source[-1]]
        # Lists of points: the zones below the ancestor, innermost first.
        from_points = [self.zones[number].point for number in above_source[:-1]]
        to_points = [self.zones[number].point for number in above_destination[:-1]]
        bypass = _find_bypass(ancestor, from_points, to_points) if ancestor.bypasses else None
        if bypass is not None:
            return bypass, True, True
        if not from_points or not to_points:
            raise RouteError(
                f"{self.path}: no route between zone {short(self.zones[source].name)} and a zone "
                f"inside it; put its hosts in a zone of their own"
            )
        route = self._local(ancestor, from_points[-1], to_points[-1])
        if route.gateway_from < 0 or route.gateway_to < 0:
            raise self._no_route(ancestor, from_points[-1], to_points[-1], "there is no zoneRoute")
        return route, route.extra_latency_s == 0 and ancestor.kind != VIVALDI, False

    def _above(self, zone: int) -> list[int]:
        """A zone and those around it, the root last."""
        chain = []
        while zone != ROOT:
            chain.append(zone)
            zone = self.zones[zone].parent
        return chain

    def _local(self, zone: Zone, source: int, destination: int) -> LocalRoute:
        """The local route of a zone between two of its points."""
        position = self.points.position
        try:
            routing = self._routings.get(zone.number)
            if routing is None:
                routing = self._routings[zone.number] = self._make_routing(zone)
            return routing.route(position[source], position[destination])
        except NoLocalRoute as error:
            raise self._no_route(zone, source, destination, str(error)) from None

    def _no_route(self, zone: Zone, source: int, destination: int, why: str) -> RouteError:
        ends = f"{self._name(source)} to {self._name(destination)}"
        where = f"zone {short(zone.name)} of routing {zone.kind}"
        return RouteError(f"{self.path}:{zone.line}: no route from {ends} in {where}: {why}")

    def _name(self, point: int) -> str:
        return short(self.points.names[point])

    def _make_routing(self, zone: Zone) -> ZoneRouting:
        loopback = -1 if zone.is_internal else len(self.all_links) - 1
        if zone.walk is not None and not zone.is_internal:
            if zone.kind != VIVALDI:
                return WalkRouting(zone.walk)
            known = self.points.coordinates
            local = {i: known[point] for i, point in enumerate(zone.points) if point in known}
            return VivaldiRouting(zone.walk, local)
        if zone.kind == FULL:
            return FullRouting(zone.routes, loopback)
        if zone.kind == FLOYD:
            return FloydRouting(zone.routes, len(zone.points), loopback, self._links_between)
        if zone.kind == DIJKSTRA:
            return DijkstraRouting(zone.routes, loopback, self._links_between)
        if zone.kind == WIFI_ZONE:
            return WifiRouting(zone.wifi_link, zone.access_point)
        if zone.kind == NONE:
            return NoRouting()
        raise NoLocalRoute("zones of this kind cannot hold zones; use routing='Full'")


def _find_bypass(
    ancestor: Zone, sources: Sequence[int], destinations: Sequence[int]
) -> LocalRoute | None:
    """The first bypass in order of growing distance above the two points.

    Order of SimGrid: for m = 0, 1, ...: (i, m) then (m, i) for i < m, then (m, m).
    """
    for m in range(max(len(sources), len(destinations))):
        for i in (*range(m), m):
            for a, b in ((i, m), (m, i)):
                if a < len(sources) and b < len(destinations):
                    found = ancestor.bypasses.get((sources[a], destinations[b]))
                    if found is not None:
                        return found
    return None
