"""Zones while a platform is read and once it is: their points, declared routes and star paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ptaskmodel.platform.topologies.topology import WalkTable

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
