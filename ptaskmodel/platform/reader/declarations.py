"""Elements that declare hosts, links, routers, peers, star zones, traces, options and routes."""

from __future__ import annotations

import math
from pathlib import Path

from ptaskmodel.errors import PlatformError
from ptaskmodel.files import read_text
from ptaskmodel.platform.builder import (
    CLUSTER,
    LOOPBACK,
    ROOT,
    ROUTED_KINDS,
    VIVALDI,
    WIFI_ZONE,
    Builder,
    LocalRoute,
    Zone,
    properties_of,
)
from ptaskmodel.platform.facts import (
    LOOPBACK_NAME,
    SHARED,
    WIFI,
    AvailabilityTrace,
    Disk,
    TraceError,
    parse_trace,
    short,
)
from ptaskmodel.platform.reader.clusters import expand_radical
from ptaskmodel.platform.reader.elements import Element
from ptaskmodel.remarks import finding

MAX_TRACE_BYTES = 256 * 1024 * 1024
SPLIT = frozenset({"SPLITDUPLEX", "FULLDUPLEX"})

CONFIG_ALIASES = {
    "maxmin/precision": "precision/work-amount",
    "surf/precision": "precision/timing",
}
# What every simulation reads.
NUMBERS = frozenset({"network/TCP-gamma", "precision/work-amount", "precision/timing"})
# The keys of SimGrid that may change a time here; those of other families are kept unread.
_KEYS = {
    "bmf": "max-iterations precision",
    "cpu": "maxmin-selective-update model optim solver",
    "disk": "model solver",
    "host": "model solver",
    "maxmin": "concurrency-limit precision",
    "network": "TCP-gamma bandwidth-factor crosstraffic latency-factor loopback-bw loopback-lat "
    "maxmin-selective-update model optim solver weight-S",
    "precision": "timing work-amount",
    "surf": "precision",
}
CONFIG_KEYS = frozenset(f"{family}/{key}" for family, keys in _KEYS.items() for key in keys.split())


class Declarations:
    """One method per tag; the builder holds the result."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.source = builder.source
        self.trace_files: dict[Path, AvailabilityTrace] = {}
        self.connections: list[Element] = []
        self.trace_elements: dict[str, Element] = {}
        self.host_links: list[Element] = []
        self.cabinets: list[Element] = []
        self.backbones: list[int] = []

    def config(self, element: Element) -> None:
        """Properties sorted by key; what an earlier config set holds."""
        chosen = properties_of(element)
        for key in sorted(chosen):
            family = key.partition("/")[0]
            name = key
            if family in _KEYS and key not in CONFIG_KEYS:
                name = self._old_key(element, key)
            if name:
                name = CONFIG_ALIASES.get(name, name)
                self._check_number(element, name, chosen[key])
                self.builder.config.setdefault(name, chosen[key])

    def _check_number(self, element: Element, key: str, text: str) -> None:
        """Raises PlatformError for what no simulation would take."""
        if key not in NUMBERS:
            return
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0.0 <= value < math.inf:
            raise self.source.error(
                element, f"{key}: {short(text)} is not a number >= 0; correct it"
            )

    def _old_key(self, element: Element, key: str) -> str:
        """The present name of a key; empty if it has no meaning any more."""
        name = key.replace("_", "-")
        if name in CONFIG_KEYS:
            self.source.note(element, "old", f"{key} is an old name of {name}")
            return name
        if "_" in key:
            self.source.note(element, "ignored", f"{key} has no effect in this version; remove it")
            return ""
        import difflib

        close = difflib.get_close_matches(key, CONFIG_KEYS, 1)
        hint = f"do you mean {close[0]}?" if close else "remove it"
        raise self.source.error(element, f"unknown key {short(key)}; {hint}")

    def random(self, element: Element) -> None:
        self.source.note(element, "old", "SimGrid ignores this element; remove it")

    def actor(self, element: Element) -> None:
        """Deployments belong to SimGrid programs."""
        self.builder.has_actors = True
        self.source.note(element, "ignored", "actors are ignored; tasks come from their own file")

    def host(self, element: Element) -> None:
        speeds = self.source.speeds_flops(element, "speed")
        self.builder.add_hosts(
            element,
            [element["id"]],
            speeds,
            self.source.integer(element, "core", 1),
            pstate=self._pstate(element, len(speeds)),
            coordinates=self.source.coordinates(element),
            properties=properties_of(element),
            disks=self._disks(element),
            speed_trace=self._speed_trace(element),
            state_trace=self.trace_file(element, "state_file"),
        )
        self._set_coordinates(element)

    def _pstate(self, element: Element, count: int) -> int:
        pstate = self.source.integer(element, "pstate", 0)
        if pstate >= count:
            what = f"pstate {pstate}, but speed lists {count}; give more speeds or a smaller pstate"
            raise self.source.error(element, what)
        return pstate

    def _speed_trace(self, element: Element) -> AvailabilityTrace | None:
        if element["availability_file"]:
            self.source.note(element, "old", "availability_file is an old name of speed_file")
        by_old_name = self.trace_file(element, "availability_file")
        return self.trace_file(element, "speed_file") or by_old_name

    def _disks(self, element: Element) -> tuple[Disk, ...]:
        disks: dict[str, Disk] = {}
        for child in element.of("disk"):
            if child["id"] in disks:
                raise self.source.error(
                    child, "the host already has a disk of this name; choose another"
                )
            disks[child["id"]] = Disk(
                child["id"],
                self.source.bandwidth_Bps(child, "read_bw"),
                self.source.bandwidth_Bps(child, "write_bw"),
                properties_of(child),
            )
        return tuple(disks.values())

    def _set_coordinates(self, element: Element) -> None:
        coordinates = self.source.coordinates(element)
        if coordinates is not None:
            self.builder.points.coordinates[len(self.builder.points.names) - 1] = coordinates

    def router(self, element: Element) -> None:
        self.builder.add_router(element, element["id"])
        self._set_coordinates(element)

    def link(self, element: Element) -> None:
        zone = self.builder.current()
        wifi = zone.kind == WIFI_ZONE
        bandwidths = self.source.bandwidths_Bps(element, "bandwidth")
        if len(bandwidths) > 1 and not wifi:
            raise self.source.error(
                element, "several bandwidths, which only Wifi zones take; give one"
            )
        latency = self.source.time_s(element, "latency") if element["latency"] else 0.0
        policy = element["sharing_policy"]
        if policy == "FULLDUPLEX":
            self.source.note(element, "old", "FULLDUPLEX is an old name of SPLITDUPLEX")
        if wifi and latency > 0:
            raise self.source.error(
                element, "a Wifi link cannot have a latency; write latency='0s'"
            )
        if wifi and zone.wifi_link >= 0:
            raise self.source.error(
                element, "a Wifi zone can have only one link; remove the others"
            )
        split = policy in SPLIT and not wifi
        first = self.builder.add_cables(
            element,
            [element["id"]],
            split,
            bandwidths[0],
            latency,
            policy=WIFI if wifi else SHARED if split else policy,
            properties=properties_of(element),
            bandwidth_trace=self.trace_file(element, "bandwidth_file"),
            latency_trace=self.trace_file(element, "latency_file"),
            state_trace=self.trace_file(element, "state_file"),
            wifi_bandwidths_Bps=bandwidths if wifi else (),
        )
        if wifi:
            zone.wifi_link = first

    def peer(self, element: Element) -> None:
        if self.builder.zone is None or self.builder.zone.kind != VIVALDI:
            raise self.source.error(element, "a peer needs a Vivaldi zone; set routing='Vivaldi'")
        if element["lat"]:
            self.source.note(element, "ignored", "lat has no effect; put it in coordinates")
        name = element["id"]
        point = self.builder.add_hosts(
            element,
            [name],
            self.source.speeds_flops(element, "speed"),
            coordinates=self.source.coordinates(element),
            speed_trace=self._speed_trace(element),
            state_trace=self.trace_file(element, "state_file"),
        )[0]
        self._set_coordinates(element)
        up = self.source.bandwidth_Bps(element, "bw_out")
        down = self.source.bandwidth_Bps(element, "bw_in")
        paths = self.builder.star_paths(point)
        paths.up = (self.builder.add_links(element, [f"link_{name}_UP"], up, 0.0),)
        paths.down = (self.builder.add_links(element, [f"link_{name}_DOWN"], down, 0.0),)

    def backbone(self, element: Element) -> None:
        self._expect_star(element)
        bandwidth = self.source.bandwidth_Bps(element, "bandwidth")
        latency = self.source.time_s(element, "latency")
        self.backbones.append(self.builder.add_links(element, [element["id"]], bandwidth, latency))

    def host_link(self, element: Element) -> None:
        self._expect_star(element)
        self.host_links.append(element)

    def cabinet(self, element: Element) -> None:
        self._expect_star(element)
        self.cabinets.append(element)

    def _expect_star(self, element: Element) -> None:
        if self.builder.zone is None or self.builder.zone.kind != CLUSTER:
            self.source.note(
                element,
                "misplaced",
                "outside a zone of routing Cluster, it applies to the next such zone that ends",
            )

    def close_star(self) -> None:
        """At the end of a Cluster zone: its backbone, host_links in order, then cabinets."""
        backbone = tuple(self.backbones[-1:])
        for element in self.host_links:
            point = self.builder.point_by_name(element, "id")
            if self.builder.points.zone[point] != self.builder.current().number:
                raise self.source.error(element, "the host is not in this zone; move it here")
            up = self.builder.link_by_name(element, element["up"])
            down = self.builder.link_by_name(element, element["down"])
            paths = self.builder.star_paths(point)
            paths.up, paths.down = (up, *backbone), (*backbone, down)
        for element in self.cabinets:
            self._make_cabinet(element, backbone)
        self.backbones, self.host_links, self.cabinets = [], [], []

    def _make_cabinet(self, element: Element, backbone: tuple[int, ...]) -> None:
        radicals = expand_radical(self.source, element)
        names = [f"{element['prefix']}{radical}{element['suffix']}" for radical in radicals]
        points = self.builder.add_hosts(element, names, self.source.speeds_flops(element, "speed"))
        bandwidth = self.source.bandwidth_Bps(element, "bw")
        latency = self.source.time_s(element, "lat")
        halves = [f"link_{name}_{half}" for name in names for half in ("UP", "DOWN")]
        first = self.builder.add_links(element, halves, bandwidth, latency)
        for rank, point in enumerate(points):
            paths = self.builder.star_paths(point)
            paths.up = (first + 2 * rank, *backbone)
            paths.down = (*backbone, first + 2 * rank + 1)

    def prop(self, element: Element) -> None:
        """A property of the current zone."""
        self.builder.current().properties.setdefault(element["id"], element["value"])

    def trace(self, element: Element) -> None:
        if element["id"] in self.builder.traces:
            raise self.source.error(element, "a trace of this name exists; choose another id")
        if element["file"]:
            trace = self._read_trace(element, element["file"])
        else:
            period = self.source.number(element, "periodicity")
            trace = self._parse_trace(
                element, element["id"], element.text, period if period > 0 else None
            )
        self.builder.traces[element["id"]] = trace
        self.trace_elements[element["id"]] = element

    def trace_file(self, element: Element, attribute: str) -> AvailabilityTrace | None:
        """The trace in the file that an attribute names, or None if it names none."""
        name = element[attribute]
        return self._read_trace(element, name) if name else None

    def _read_trace(self, element: Element, name: str) -> AvailabilityTrace:
        path = self.source.path.parent / name
        if path in self.trace_files:
            return self.trace_files[path]
        try:
            text = read_text(path, most=MAX_TRACE_BYTES, error=PlatformError)
        except PlatformError as error:
            raise self.source.error(element, f"the trace file {error}") from None
        self.trace_files[path] = self._parse_trace(element, name, text, None)
        return self.trace_files[path]

    def _parse_trace(
        self, element: Element, name: str, text: str, period_s: float | None
    ) -> AvailabilityTrace:
        def tell(what: str) -> None:
            self.source.hint(element, "trace", f"trace {short(name)}: {what}")

        try:
            return parse_trace(name, text, period_s, tell)
        except TraceError as error:
            what = f"trace {short(name)}, line {error.line} of it: {error}"
            raise self.source.error(element, what) from None

    def trace_connect(self, element: Element) -> None:
        self.connections.append(element)

    def connect_traces(self) -> None:
        """At the end of the file: attach each trace to its host or link."""
        connected = {element["trace"] for element in self.connections}
        for name, element in self.trace_elements.items():
            if name not in connected:
                what = (
                    f"trace {short(name)}: no trace_connect uses it, so it has no effect; "
                    "connect or remove it"
                )
                self.source.hints.append(finding(element.line, "unused", what))
        for element in self.connections:
            trace = self.builder.traces.get(element["trace"])
            if trace is None:
                what = f"unknown trace {short(element['trace'])}; declare it in this file"
                self.source.refuse(element, what, None)
                continue
            kind, name = element["kind"], element["element"]
            if kind in ("HOST_AVAIL", "SPEED"):
                index = self.builder.host_index.get(name)
                if index is None:
                    self.source.refuse(element, f"unknown host {short(name)}", None)
                    continue
                field = "state_trace" if kind == "HOST_AVAIL" else "speed_trace"
                self.builder.replace_host(index, **{field: trace})
                continue
            for index in self._connected_links(element, name):
                field = {"LINK_AVAIL": "state_trace", "BANDWIDTH": "bandwidth_trace"}.get(
                    kind, "latency_trace"
                )
                self.builder.replace_link(index, **{field: trace})

    def _connected_links(self, element: Element, name: str) -> tuple[int, ...]:
        if name in self.builder.duplex:
            first = self.builder.duplex[name]
            return (first, first + 1)
        if name not in self.builder.link_index or self.builder.link_index[name] < 0:
            self.source.refuse(element, f"unknown link {short(name)}", None)
            return ()
        return (self.builder.link_index[name],)


def declare_route(builder: Builder, element: Element) -> None:
    """``route`` and ``zoneRoute``: one route, and its reverse unless symmetrical="NO"."""
    zone = builder.current()
    between_zones = element.tag == "zoneRoute"
    ends = [_end(builder, element, attribute, between_zones) for attribute in ("src", "dst")]
    for attribute, point in zip(("src", "dst"), ends, strict=True):
        if builder.points.zone[point] != zone.number:
            what = f"{attribute} {short(element[attribute])} is not directly in the zone"
            raise builder.source.error(element, f"{what} {short(zone.name)}; move the route")
    gateways = (-1, -1)
    if between_zones:
        gateways = _gateways(builder, element, ends)
        if gateways[0] == gateways[1]:
            raise builder.source.error(element, "gw_src and gw_dst are the same; name one per zone")
        if ends[0] == ends[1]:
            raise builder.source.error(element, "src and dst are the same zone; remove the route")
    links, back = _links(builder, element)
    symmetrical = element["symmetrical"].upper() == "YES"
    source, destination = (builder.points.position[point] for point in ends)
    if zone.kind in ROUTED_KINDS:
        _add(builder, element, zone, (source, destination), LocalRoute(links, *gateways))
        if symmetrical and source != destination:
            reverse = LocalRoute(back, *gateways[::-1])
            _add(builder, element, zone, (destination, source), reverse)
    elif zone.kind == CLUSTER and not between_zones and source == destination:
        builder.star_paths(ends[0]).loopback = links
    else:
        what = f"a zone of routing {zone.kind} takes no route between two points"
        raise builder.source.error(element, f"{what}; use routing='Full', Floyd or Dijkstra")


def declare_bypass(builder: Builder, element: Element) -> None:
    """``bypassRoute`` and ``bypassZoneRoute``: one way, consulted before the zone's routes."""
    between_zones = element.tag == "bypassZoneRoute"
    ends = [_end(builder, element, attribute, between_zones) for attribute in ("src", "dst")]
    zone = builder.current()
    gateways = _gateways(builder, element, ends) if between_zones else (-1, -1)
    links, _ = _links(builder, element)
    for attribute, point in zip(("src", "dst"), ends, strict=True):
        if not _is_within(builder, point, zone.number):
            what = f"{attribute} {short(element[attribute])} is not in the zone {short(zone.name)}"
            builder.source.note(element, "unused", f"{what}: the bypass is never used; move it")
    key = (ends[0], ends[1])
    if key in zone.bypasses:
        raise builder.source.error(element, "a second bypass between these two points; remove one")
    zone.bypasses[key] = LocalRoute(links, *gateways)


def _end(builder: Builder, element: Element, attribute: str, is_zone: bool) -> int:
    """The point that an attribute names."""
    if not is_zone:
        point = builder.point_by_name(element, attribute)
        if point in builder.points.child_zone:
            what = f"{attribute} {short(element[attribute])} is a zone; write a zoneRoute"
            raise builder.source.error(element, what)
        return point
    number = builder.zone_index.get(element[attribute])
    if number is None:
        what = f"{attribute}: unknown zone {short(element[attribute])}; declare it before this line"
        raise builder.source.unknown(element, what)
    return builder.zones[number].point


def _gateways(builder: Builder, element: Element, ends: list[int]) -> tuple[int, int]:
    """The two gateways, each a host or router inside its zone."""
    gateways = []
    for attribute, end, name in zip(("gw_src", "gw_dst"), ends, ("src", "dst"), strict=True):
        gateway = builder.point_by_name(element, attribute)
        if gateway in builder.points.child_zone:
            what = f"{attribute} {short(element[attribute])} is a zone; name a host or router of it"
            raise builder.source.error(element, what)
        if not _is_within(builder, gateway, builder.points.child_zone[end]):
            what = f"{attribute} {short(element[attribute])} is not in {short(element[name])}"
            raise builder.source.error(element, f"{what}; name one of its hosts or routers")
        gateways.append(gateway)
    return (gateways[0], gateways[1])


def _is_within(builder: Builder, point: int, zone: int) -> bool:
    """Whether a zone holds a point, at any depth."""
    number = builder.points.zone[point]
    while number not in (ROOT, zone):
        number = builder.zones[number].parent
    return number == zone


def _links(builder: Builder, element: Element) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Links of the route, and of its reverse (halves of split links swapped)."""
    links, back = [], []
    for child in element.children:
        name, direction = child["id"], child["direction"]
        if name == LOOPBACK_NAME:
            link = twin = LOOPBACK
        elif direction == "NONE":
            link = twin = builder.link_by_name(child, name)
        elif name in builder.duplex:
            link = builder.duplex[name] + (direction == "DOWN")
            twin = builder.duplex[name] + (direction == "UP")
        else:
            builder.link_by_name(child, name)
            raise builder.source.error(
                child, f"direction {direction} on a link that is not SPLITDUPLEX; remove it"
            )
        links.append(link)
        back.append(twin)
    if not links:
        raise builder.source.error(element, "the route has no link; add a link_ctn")
    return tuple(links), tuple(back[::-1])


def _add(
    builder: Builder, element: Element, zone: Zone, key: tuple[int, int], route: LocalRoute
) -> None:
    if key in zone.routes:
        names = " -> ".join(short(builder.points.names[zone.points[end]]) for end in key)
        hint = "remove one, or write symmetrical='NO' on both"
        raise builder.source.error(element, f"a route {names} exists already; {hint}")
    zone.routes[key] = route
