# mypy: allow-untyped-defs, allow-incomplete-defs
"""Routes inside one zone: declared tables, compiled walks, Wifi, Vivaldi, none.

The table of families (`topologies.FAMILIES`) generates the compiled walks, and each family's
shortcuts for many routes at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

import numpy as np

from ptaskmodel.kernels.decorators import dispatch, entry, jit
from ptaskmodel.platform.builder import LocalRoute
from ptaskmodel.platform.topologies import FAMILIES
from ptaskmodel.platform.topologies.topology import LONGEST, WalkTable

MAX_ROUTE_LINKS = 1_000_000


class NoLocalRoute(Exception):
    """Two points of a zone have no route; the text says why and what to do."""


class ZoneRouting(Protocol):
    """What each kind of zone offers: the route between two of its points, by position."""

    def route(self, a: int, b: int) -> LocalRoute:
        """Raises NoLocalRoute."""
        ...


class FullRouting:
    """The declared routes. ``loopback``: the built-in link, in a zone of hosts; else -1.

    Two points of a zone of hosts without a declared route have an empty one, as in SimGrid.
    """

    def __init__(self, routes: Mapping[tuple[int, int], LocalRoute], loopback: int) -> None:
        self._routes = routes
        self._loopback = loopback

    def route(self, a: int, b: int) -> LocalRoute:
        route = self._routes.get((a, b))
        if route is not None:
            return route
        if self._loopback < 0:
            raise NoLocalRoute("no zoneRoute is declared; add one")
        return LocalRoute((self._loopback,) if a == b else ())


class NoRouting:
    """A zone that has no route at all."""

    def route(self, a: int, b: int) -> LocalRoute:
        raise NoLocalRoute("its routing is 'None'; use another routing")


class WifiRouting:
    """One medium, crossed once by each end that is not the access point (-1: there is none)."""

    def __init__(self, link: int, access_point: int) -> None:
        self._link = link
        self._access_point = access_point

    def route(self, a: int, b: int) -> LocalRoute:
        times = (a != self._access_point) + (b != self._access_point)
        return LocalRoute((self._link,) * times if self._link >= 0 else ())


class WalkRouting:
    """Star, torus, fat tree and dragonfly: one compiled walk on the table of the zone."""

    def __init__(self, table: WalkTable) -> None:

        self._walk = walk
        self._table = table
        self._out = np.empty(int(table.table[LONGEST]), np.int64)

    def route(self, a: int, b: int) -> LocalRoute:
        count = self._walk(self._table.kind, self._table.table, a, b, self._out)
        if count < 0:
            raise NoLocalRoute("a host has a route to itself but no host_link; add its host_link")
        return LocalRoute(tuple(self._out[:count].tolist()))


class VivaldiRouting:
    """A star zone where the distance of coordinates (in ms) is added to the latency."""

    def __init__(
        self, table: WalkTable, coordinates: Mapping[int, tuple[float, float, float]]
    ) -> None:
        self._star = WalkRouting(table)
        self._coordinates = coordinates

    def route(self, a: int, b: int) -> LocalRoute:
        if a not in self._coordinates or b not in self._coordinates:
            raise NoLocalRoute("a point of this Vivaldi zone has no coordinates; give them")
        (xa, ya, za), (xb, yb, zb) = self._coordinates[a], self._coordinates[b]
        distance_ms = math.sqrt((xa - xb) ** 2 + (ya - yb) ** 2) + abs(za) + abs(zb)
        return self._star.route(a, b)._replace(extra_latency_s=distance_ms / 1000.0, instant=True)


@jit
def _no_shortcut(tally, ways, table, nodes, amount, scratch, counts):
    return False


@jit
def _no_tables(tally, ways, table, ends, nodes, sources, targets, amount, largest):
    return False


_walk = dispatch([family.walk for family in FAMILIES])
all_to_all_shortcut = dispatch([family.all_to_all or _no_shortcut for family in FAMILIES])
flows_by_tables = dispatch([family.flows or _no_tables for family in FAMILIES])


@entry
def walk(kind, table, a, b, out):
    """Write the links of the route from node a to node b of a zone in ``out``; their number.

    kind, table: of the zone's `WalkTable`; nodes are local numbers. -1: the route is undefined.
    ``out`` must hold ``table[LONGEST]`` values.
    """
    return _walk(kind, table, a, b, out)


@entry
def walk_pairs(kind, table, sources, targets, start, links, known):
    """Write the routes between pairs of nodes of a zone, one after the other.

    Kind, table: of the zone's route table. sources, targets: nodes, shape (pairs,). start, links:
    output; pair k has ``links[start[k]:start[k + 1]]``, and there must be room for
    ``table[LONGEST]`` links a pair. known: output, whether a route exists, shape (pairs,).
    """
    place = 0
    for k in range(sources.size):
        start[k] = place
        count = _walk(kind, table, sources[k], targets[k], links[place:])
        known[k] = count >= 0
        place += max(count, 0)
    start[sources.size] = place
