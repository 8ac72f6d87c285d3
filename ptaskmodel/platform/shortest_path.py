"""Floyd and Dijkstra zones: shortest paths over the declared routes; the cost is in links."""

from __future__ import annotations

import functools
import heapq
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.platform.builder import LocalRoute
from ptaskmodel.platform.zone_routes import MAX_ROUTE_LINKS, NoLocalRoute

MAX_FLOYD_POINTS = 4000
CACHED_TREES = 128

Routes = Mapping[tuple[int, int], LocalRoute]
Between = Callable[[int, int], tuple[tuple[int, ...], float]]


def compose(hops: list[LocalRoute], between: Between) -> LocalRoute:
    """One route from the hops of a path.

    Where a hop arrives at another gateway than the next one leaves, the route ``between`` these
    two points of the platform is inserted.
    """
    links: list[int] = []
    extra = 0.0
    for before, hop in zip([None, *hops[:-1]], hops, strict=True):
        if before is not None and before.gateway_to != hop.gateway_from:
            inner, inner_extra = between(before.gateway_to, hop.gateway_from)
            links.extend(inner)
            extra += inner_extra
        links.extend(hop.links)
        if len(links) > MAX_ROUTE_LINKS:
            raise NoLocalRoute(f"it crosses more than {MAX_ROUTE_LINKS} links; simplify the zones")
        extra += hop.extra_latency_s
    return LocalRoute(tuple(links), hops[0].gateway_from, hops[-1].gateway_to, extra)


class FloydRouting:
    """All-pairs shortest paths of a small zone, computed at the first query.

    Among paths of equal cost the one that the triple loop (intermediate point outermost, strictly
    better only) meets first holds: for a given intermediate point the updates do not depend on
    each other, so that they are done at once.
    """

    def __init__(self, routes: Routes, size: int, loopback: int, between: Between) -> None:
        if size > MAX_FLOYD_POINTS:
            raise NoLocalRoute(
                f"a Floyd zone of {size} points is too large; use routing='Dijkstra' or a cluster"
            )
        self._routes = routes
        self._loopback = loopback
        self._between = between
        previous = self._solve(size)
        self._row = functools.lru_cache(CACHED_TREES)(lambda a: previous[a].tolist())

    def _solve(self, size: int) -> NDArray[np.int32]:
        far = np.int64(2**60)
        cost = np.full((size, size), far, np.int64)
        previous = np.full((size, size), -1, np.int32)
        for (a, b), route in self._routes.items():
            cost[a, b], previous[a, b] = len(route.links), a
        if self._loopback >= 0:
            for a in range(size):
                if previous[a, a] < 0:
                    cost[a, a], previous[a, a] = 1, a
        for middle in range(size):
            through = cost[:, middle, None] + cost[None, middle, :]
            better = through < np.minimum(cost, far)
            cost[better] = through[better]
            previous[better] = np.broadcast_to(previous[middle], (size, size))[better]
        return previous

    def route(self, a: int, b: int) -> LocalRoute:
        hops: list[LocalRoute] = []
        node, previous = b, self._row(a)
        while True:
            before = previous[node]
            if before < 0:
                raise NoLocalRoute("no path of declared routes; add routes")
            hop = self._routes.get((before, node))
            hops.append(hop if hop is not None else LocalRoute((self._loopback,)))
            node = before
            if node == a:
                return compose(hops[::-1], self._between)


class DijkstraRouting:
    """Shortest paths from one source at a time; the trees of the last sources are kept.

    Points are ranked by first appearance in the declared routes; among paths of equal cost the
    one found first in order of (cost, rank) holds.
    """

    def __init__(self, routes: Routes, loopback: int, between: Between) -> None:
        self._routes = routes
        self._loopback = loopback
        self._between = between
        self._rank: dict[int, int] = {}
        self._neighbours: dict[int, list[int]] = {}
        for a, b in routes:
            self._rank.setdefault(a, len(self._rank))
            self._rank.setdefault(b, len(self._rank))
            self._neighbours.setdefault(a, []).append(b)
        self._tree = functools.lru_cache(CACHED_TREES)(self._solve)

    def _solve(self, source: int) -> dict[int, int]:
        """Predecessor of each point that can be reached."""
        cost, previous = {source: 0}, {source: source}
        queue = [(0, self._rank[source], source)]
        while queue:
            here, _, node = heapq.heappop(queue)
            if here > cost[node]:
                continue
            for other in self._neighbours.get(node, ()):
                through = here + len(self._routes[node, other].links)
                if other not in cost or through < cost[other]:
                    cost[other], previous[other] = through, node
                    heapq.heappush(queue, (through, self._rank[other], other))
        return previous

    def route(self, a: int, b: int) -> LocalRoute:
        if a == b:
            if (a, a) not in self._routes and self._loopback < 0:
                raise NoLocalRoute("a zone has no route to itself")
            return self._routes.get((a, a), LocalRoute((self._loopback,)))
        previous = self._tree(a) if a in self._rank else {}
        if b not in previous:
            raise NoLocalRoute("no path of declared routes; add routes")
        hops: list[LocalRoute] = []
        node = b
        while node != a:
            hops.append(self._routes[previous[node], node])
            node = previous[node]
        return compose(hops[::-1], self._between)
