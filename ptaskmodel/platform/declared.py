"""The declarations of a file or program: hosts, links, and zones with their routes.

A zone has its points, declared routes and star paths while a platform is read and afterwards.
"""

from __future__ import annotations

import bisect
import itertools
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

from ptaskmodel.memory import collector_at_rest
from ptaskmodel.platform.facts import Host, Link
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
