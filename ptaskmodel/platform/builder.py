"""A platform under construction: it adds hosts, links, points and zones, and refuses duplicates.

The XML reader (`reader`) and the Python interface (`build`) both declare elements to it.

The declarations of a file or program are here too: hosts, links, and zones with their routes. A
zone has its points, declared routes and star paths while a platform is read and afterwards.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import operator
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import count, repeat
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ptaskmodel import units
from ptaskmodel.errors import PlatformError
from ptaskmodel.memory import collector_at_rest
from ptaskmodel.platform.facts import (
    FATPIPE,
    LOOPBACK_NAME,
    NO_PROPERTIES,
    SHARED,
    AvailabilityTrace,
    Host,
    Link,
    short,
)
from ptaskmodel.platform.reader.elements import Element, Source
from ptaskmodel.platform.topologies import kind_of
from ptaskmodel.platform.topologies.star import Star, star_table
from ptaskmodel.platform.topologies.topology import WalkTable
from ptaskmodel.remarks import Remark

ROOT = -1
LOOPBACK = -1

FULL, FLOYD, DIJKSTRA, CLUSTER, VIVALDI, WIFI_ZONE, NONE = (
    "Full",
    "Floyd",
    "Dijkstra",
    "Cluster",
    "Vivaldi",
    "Wifi",
    "None",
)
ZONE_KINDS = {kind.lower(): kind for kind in (FULL, FLOYD, DIJKSTRA, CLUSTER, VIVALDI, WIFI_ZONE)}
ZONE_KINDS |= {"none": NONE, "dijkstracache": DIJKSTRA}
# As written in files, which may also write them in lower case.
ROUTINGS = (FULL, FLOYD, DIJKSTRA, "DijkstraCache", CLUSTER, VIVALDI, WIFI_ZONE, NONE)
ROUTED_KINDS = frozenset({FULL, FLOYD, DIJKSTRA})
STAR_KINDS = frozenset({CLUSTER, VIVALDI})


class LocalRoute(NamedTuple):
    """A route between two points of one zone: link indices and, between zones, two gateways.

    Gateways are numbers of points of the platform; -1 in a zone of hosts. instant: no link and no
    latency mean that nothing lies between the two, not that the route was forgotten.
    """

    links: tuple[int, ...]
    gateway_from: int = -1
    gateway_to: int = -1
    extra_latency_s: float = 0.0
    instant: bool = False


@dataclass(slots=True)
class StarPaths:
    """Links of a point of a star zone; ``up`` and ``down`` None: not given."""

    up: tuple[int, ...] | None = None
    down: tuple[int, ...] | None = None
    loopback: tuple[int, ...] = ()


@dataclass(slots=True)
class Zone:
    """A zone: ``points`` are its hosts and routers, or its sub-zones, by number in the platform.

    ``routes`` is keyed by two positions in ``points``; ``bypasses`` by two points anywhere below.
    A zone made by a ``<cluster>`` has ``topology``, ``cluster`` (its attributes) and ``walk``;
    other star zones have ``star`` paths, from which ``walk`` is made in the end.
    """

    number: int
    name: str
    kind: str
    parent: int
    point: int
    depth: int
    line: int
    points: Sequence[int] = field(default_factory=list)
    children: list[int] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)
    routes: dict[tuple[int, int], LocalRoute] = field(default_factory=dict)
    bypasses: dict[tuple[int, int], LocalRoute] = field(default_factory=dict)
    star: dict[int, StarPaths] = field(default_factory=dict)
    topology: str = ""
    cluster: dict[str, str] = field(default_factory=dict)
    walk: WalkTable | None = None
    wifi_link: int = -1
    access_point: int = -1

    @property
    def is_internal(self) -> bool:
        """Whether the points are zones."""
        return bool(self.children)

    def ways(self) -> Iterator[tuple[int, int, Sequence[int]]]:
        """Yield (from, to, links) of each of `routes`; from and to: points, of zones gateways."""
        for (a, b), route in self.routes.items():
            if self.is_internal:
                yield route.gateway_from, route.gateway_to, route.links
            else:
                yield self.points[a], self.points[b], route.links


@dataclass(slots=True)
class Points:
    """Hosts, routers and zones of a platform, numbered in order of creation."""

    names: list[str] = field(default_factory=list)
    zone: list[int] = field(default_factory=list)
    position: list[int] = field(default_factory=list)
    host: dict[int, int] = field(default_factory=dict)
    child_zone: dict[int, int] = field(default_factory=dict)
    by_name: dict[str, int] = field(default_factory=dict)
    coordinates: dict[int, tuple[float, float, float]] = field(default_factory=dict)


@dataclass(slots=True)
class Facts:
    """What was declared, in order.

    hosts, all_links: in order of declaration, at their ``index``; the last link is the built-in
    ``__loopback__``. config: options, old names replaced by new ones. notes: what is odd, hints:
    what may be. zones: their tree, the root first. duplex: the first half of each split link, by
    its id. host_index, link_index: by name. host_lines, link_lines: (first index, line) of each
    declaration.
    """

    path: Path
    hosts: tuple[Host, ...]
    all_links: tuple[Link, ...]
    config: dict[str, str]
    notes: tuple[Remark, ...]
    hints: tuple[Remark, ...]
    zones: tuple[Zone, ...]
    points: Points
    duplex: dict[str, int]
    host_index: dict[str, int]
    link_index: dict[str, int]
    host_lines: list[tuple[int, int]]
    link_lines: list[tuple[int, int]]

    def host_line(self, index: int) -> int:
        """Line of the file that declares a host."""
        return _line(self.host_lines, index)

    def link_line(self, index: int) -> int:
        """Line of the file that declares a link; 1 for the built-in loopback."""
        return 1 if index == len(self.all_links) - 1 else _line(self.link_lines, index)

    def __getstate__(self) -> dict[str, Any]:
        """As attributes, the many equal hosts and links packed."""
        state = {field.name: getattr(self, field.name) for field in fields(self)}
        return state | {"hosts": _packed(self.hosts), "all_links": _packed(self.all_links)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        with collector_at_rest():
            for name, value in state.items():
                setattr(self, name, _unpacked(value) if name in ("hosts", "all_links") else value)


def _packed(items: Sequence[Host] | Sequence[Link]) -> list[tuple[type, list[str], tuple]]:
    """(class, names, other facts) of each run of hosts or links that differ in nothing else."""
    kind: Any = type(items[0])
    others = operator.attrgetter(*(field.name for field in fields(kind)[2:]))
    runs: Iterable[tuple[tuple, Iterable[Any]]] = itertools.groupby(items, others)
    return [(kind, [item.name for item in run], facts) for facts, run in runs]


def _unpacked(runs: list[tuple[type, list[str], tuple]]) -> tuple[Any, ...]:
    number = itertools.count()
    return tuple(kind(next(number), name, *facts) for kind, names, facts in runs for name in names)


def _line(lines: list[tuple[int, int]], index: int) -> int:
    """The line of the last declaration that starts at or before an index."""
    return lines[bisect.bisect_right(lines, index, key=lambda item: item[0]) - 1][1]


MAX_HOSTS = 4_000_000
MAX_LINKS = 16_000_000
MAX_ZONE_DEPTH = 50
Fact = TypeVar("Fact", Host, Link)


class Builder:
    """What has been declared so far. ``zone`` is the innermost open zone, None outside."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.hosts: list[Host] = []
        self.links: list[Link] = []
        self.host_index: dict[str, int] = {}
        self.link_index: dict[str, int] = {LOOPBACK_NAME: LOOPBACK}
        self.duplex: dict[str, int] = {}
        self.zones: list[Zone] = []
        self.has_actors = False
        self.zone_index: dict[str, int] = {}
        self.points = Points()
        self.config: dict[str, str] = {}
        self.zone: Zone | None = None
        self.host_lines: list[tuple[int, int]] = []
        self.link_lines: list[tuple[int, int]] = []
        self.traces: dict[str, AvailabilityTrace] = {}
        self.counts: dict[str, int] = {}

    def open_zone(self, element: Element, name: str, kind: str) -> Zone:
        """Add a zone, and a point for it in its parent, and make it the current one."""
        parent = self.zone
        if parent is None and self.zones:
            raise self.source.error(
                element, "a second top-level zone; put both inside one zone with zoneRoutes"
            )
        depth = parent.depth + 1 if parent is not None else 0
        if depth >= MAX_ZONE_DEPTH:
            raise self.source.error(element, f"zones are nested more than {MAX_ZONE_DEPTH} deep")
        if not name:
            raise self.source.error(element, "the id of the zone is empty")
        if name in self.points.by_name:
            raise self.source.error(element, f"the name {short(name)} is taken; choose another id")
        number = len(self.zones)
        above = parent.number if parent is not None else ROOT
        point = self.add_points([name], parent)[0]
        zone = Zone(number, name, kind, above, point, depth, element.line)
        self.points.child_zone[point] = number
        if parent is not None:
            parent.children.append(number)
        self.zones.append(zone)
        self.zone_index[name] = number
        self.zone = zone
        return zone

    def close_zone(self) -> None:
        """Go back to the parent of the current zone."""
        zone = self.current()
        self.zone = None if zone.parent == ROOT else self.zones[zone.parent]

    def current(self) -> Zone:
        """The current zone; callers are inside one."""
        assert self.zone is not None
        return self.zone

    def add_points(self, names: Sequence[str], zone: Zone | None) -> range:
        """Number new points of a zone (None: the root zone itself)."""
        points = self.points
        numbers = range(len(points.names), len(points.names) + len(names))
        points.names.extend(names)
        if zone is None:
            points.zone.extend([ROOT] * len(names))
            points.position.extend(range(len(names)))
        else:
            points.zone.extend([zone.number] * len(names))
            first = len(zone.points)
            points.position.extend(range(first, first + len(names)))
            assert isinstance(zone.points, list)
            zone.points.extend(numbers)
        points.by_name.update(zip(names, numbers, strict=True))
        return numbers

    def add_router(self, element: Element, name: str) -> int:
        """A point without computing power."""
        if name in self.points.by_name:
            raise self.source.error(element, f"the name {short(name)} is taken; choose another id")
        return self.add_points([name], self.current())[0]

    def add_hosts(
        self,
        element: Element,
        names: Sequence[str],
        speeds_flops: tuple[float, ...],
        cores: int = 1,
        **facts: Any,
    ) -> range:
        """Equal hosts of the current zone; the numbers of their points."""
        zone, first = self.current(), len(self.hosts)
        if first + len(names) > MAX_HOSTS:
            raise self.source.error(element, f"more than {MAX_HOSTS} hosts; use fewer")
        self._claim(element, "host", names, self.host_index, first)
        zone_name = zone.name
        one = Host(first, "", speeds_flops, cores, zone=zone_name, **facts)
        self.hosts.extend(_alike(one, first, names))
        self.host_lines.append((first, element.line))
        numbers = self.add_points(names, zone)
        self.points.host.update(zip(numbers, range(first, first + len(names)), strict=True))
        return numbers

    def add_links(
        self,
        element: Element,
        names: Sequence[str],
        bandwidth_Bps: float,
        latency_s: float,
        policy: str = SHARED,
        **facts: Any,
    ) -> int:
        """Equal links; the index of the first."""
        first = len(self.links)
        if first + len(names) > MAX_LINKS:
            raise self.source.error(element, f"more than {MAX_LINKS} links; use fewer")
        self._claim(element, "link", names, self.link_index, first)
        zone_name = self.zone.name if self.zone is not None else ""
        self.link_lines.append((first, element.line))
        one = Link(first, "", bandwidth_Bps, latency_s, policy, zone_name, **facts)
        self.links.extend(_alike(one, first, names))
        return first

    def add_cables(
        self, element: Element, ids: Sequence[str], duplex: bool, bandwidth_Bps: float,
        latency_s: float, **facts: Any,
    ) -> int:  # fmt: skip
        """Links named ``ids``, or two halves each if ``duplex``; the index of the first."""
        if not duplex:
            return self.add_links(element, ids, bandwidth_Bps, latency_s, **facts)
        names = [name + half for name in ids for half in ("_UP", "_DOWN")]
        first = self.add_links(element, names, bandwidth_Bps, latency_s, **facts)
        self.duplex.update(zip(ids, range(first, first + len(names), 2), strict=True))
        return first

    def _claim(
        self, element: Element, what: str, names: Sequence[str], taken: dict[str, int], first: int
    ) -> None:
        """Enter new names in an index. Raises PlatformError on an empty or repeated one."""
        fresh = dict(zip(names, range(first, first + len(names)), strict=True))
        if len(fresh) < len(names) or "" in fresh or not taken.keys().isdisjoint(fresh):
            seen: set[str] = set()
            for name in names:
                if name == "":
                    raise self.source.error(element, f"the name of the {what} is empty")
                if name in seen or name in taken:
                    reserved = " (reserved for the built-in loopback)" * (name == LOOPBACK_NAME)
                    text = f"the {what} {short(name)} exists already{reserved}; choose another name"
                    raise self.source.error(element, text)
                seen.add(name)
        taken.update(fresh)

    def link_by_name(self, element: Element, name: str) -> int:
        """Index of a link that exists; PlatformError otherwise."""
        index = self.link_index.get(name)
        if index is None:
            hint = "declare it before this line"
            if name in self.duplex:
                hint = f"it is SPLITDUPLEX; write {name}_UP, {name}_DOWN or a direction"
            raise self.source.unknown(element, f"unknown link {short(name)}; {hint}")
        return index

    def point_by_name(self, element: Element, attribute: str) -> int:
        """Number of a host, router or zone that exists; PlatformError otherwise."""
        name = element[attribute]
        point = self.points.by_name.get(name)
        if point is None:
            what = f"{attribute}: unknown host or router {short(name)}; declare it before this line"
            raise self.source.unknown(element, what)
        return point

    def star_paths(self, point: int) -> StarPaths:
        """Paths of a point of the current star zone, to be filled in."""
        return self.current().star.setdefault(self.points.position[point], StarPaths())

    def finish(self) -> Facts:
        """Add the built-in loopback as last link, and make the tables of the star zones."""
        if not self.zones:
            what = "it holds no zone; add a zone or a cluster"
            if self.has_actors:
                what = "it is a deployment, which has actors only; give the platform"
            raise self.source.error_at(1, f"platform: {what}")
        if not self.hosts:
            raise self.source.error_at(1, "platform: it holds no host; add one")
        last = len(self.links)
        bandwidth = self._config_number("network/loopback-bw", 1e10)
        latency = self._config_number("network/loopback-lat", 0.0)
        self.links.append(Link(last, LOOPBACK_NAME, bandwidth, latency, FATPIPE))
        self.link_index[LOOPBACK_NAME] = last
        for zone in self.zones:
            _set_loopback(zone, last)
            if zone.kind in STAR_KINDS and zone.walk is None:
                self._finish_star(zone)
            if zone.kind == WIFI_ZONE:
                self._finish_wifi(zone)
        return Facts(
            self.source.path,
            tuple(self.hosts),
            tuple(self.links),
            self.config,
            tuple(self.source.account.found),
            tuple(self.source.hints),
            tuple(self.zones),
            self.points,
            self.duplex,
            self.host_index,
            self.link_index,
            self.host_lines,
            self.link_lines,
        )

    def _finish_star(self, zone: Zone) -> None:
        nothing = StarPaths((), ())
        rows = [zone.star.get(position, nothing) for position in range(len(zone.points))]
        table = star_table(
            [row.up for row in rows], [row.down for row in rows], [row.loopback for row in rows]
        )
        zone.walk = WalkTable(kind_of(Star), table)

    def _finish_wifi(self, zone: Zone) -> None:
        name = zone.properties.get("access_point")
        if name is None:
            return
        point = self.points.by_name.get(name)
        if point is None or self.points.zone[point] != zone.number:
            what = f"zone {short(zone.name)}: access_point {short(name)} is not in the zone"
            raise self.source.error_at(zone.line, f"{what}; name one of its hosts or routers")
        zone.access_point = self.points.position[point]

    def _config_number(self, key: str, default: float) -> float:
        if key not in self.config:
            return default
        try:
            return units.parse_quantity(self.config[key], {"": 1.0}, "")[0]
        except units.UnitError as error:
            raise PlatformError(f"{self.source.path}: config {key}: {error}") from None

    def replace_host(self, index: int, **facts: Any) -> None:
        """Attach a fact that came later in the file."""
        self.hosts[index] = dataclasses.replace(self.hosts[index], **facts)

    def replace_link(self, index: int, **facts: Any) -> None:
        """Attach a fact that came later in the file."""
        self.links[index] = dataclasses.replace(self.links[index], **facts)


def _alike(one: Fact, first: int, names: Sequence[str]) -> list[Fact]:
    """Hosts, or links, that differ in nothing but index and name.

    Large clusters have 10^5 of them: each field is written in all of them at once, which takes a
    fraction of the time of as many calls of ``__init__``.
    """
    kind = type(one)
    if len(names) == 1:
        object.__setattr__(one, "name", names[0])
        return [one]
    made = list(map(object.__new__, repeat(kind, len(names))))
    for each in dataclasses.fields(kind):
        values: Iterable[Any] = repeat(getattr(one, each.name))
        if each.name in ("index", "name"):
            values = count(first) if each.name == "index" else names
        deque(map(getattr(kind, each.name).__set__, made, values), maxlen=0)
    return made


def _set_loopback(zone: Zone, index: int) -> None:
    """Put the index of the built-in loopback where routes name it (known only at the end)."""

    def real(links: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(index if link == LOOPBACK else link for link in links)

    for routes in (zone.routes, zone.bypasses):
        for key, route in routes.items():
            if LOOPBACK in route.links:
                routes[key] = LocalRoute(real(route.links), route.gateway_from, route.gateway_to)
    for paths in zone.star.values():
        paths.loopback = real(paths.loopback)


def properties_of(element: Element) -> Mapping[str, str]:
    """Its ``prop`` children; of an id given twice the first value holds."""
    properties: dict[str, str] = {}
    for prop in element.of("prop"):
        properties.setdefault(prop["id"], prop["value"])
    return properties or NO_PROPERTIES
