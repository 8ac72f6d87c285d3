"""The flows of works, and the links that flows and messages cross: routes, one or many at once.

`FlowRoutes` numbers the flows of a work; routing knows them by these numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.engine.usage.assembly import join_segments
from ptaskmodel.engine.usage.placement import Cluster, Clusters, FlowName
from ptaskmodel.errors import PTaskModelError, RouteError, SimulationError
from ptaskmodel.platform import Platform
from ptaskmodel.platform.facts import WIFI
from ptaskmodel.platform.routing import Routing, Way
from ptaskmodel.platform.topologies.topology import LONGEST
from ptaskmodel.platform.zone_routes import walk_pairs
from ptaskmodel.workload.amounts import Demand
from ptaskmodel.workload.tasks import Task
from ptaskmodel.workload.works import TraceWork, Work

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

ROUTES_REMEMBERED = 200_000
WIFI_LINK = "its route crosses a WIFI link, which cannot be simulated; use a SHARED link"


class Legs(NamedTuple):
    """Routes of pairs of hosts: that of pair k is ``links[start[k]:start[k + 1]]``.

    links: resource numbers. extra_s: latency that they do not account for. known: whether there is
    a route.
    """

    start: IntArray
    links: IntArray
    extra_s: FloatArray
    known: BoolArray


class Paths:
    """Routes between the hosts of a platform (indices), kept for the next time."""

    def __init__(self, platform: Platform, clusters: Clusters) -> None:
        self.platform = platform
        self.clusters = clusters
        self.zone = np.array(clusters.zone, dtype=np.int64)
        self.n_hosts = len(platform.hosts)
        self.wifi = {self.n_hosts + link.index for link in platform.links if link.policy == WIFI}
        self.routes: dict[int, tuple[tuple[int, ...], float]] = {}
        self.ways: dict[tuple[int, int], tuple[int, ...] | None] = {}

    def one(self, src: int, dst: int) -> tuple[tuple[int, ...], float]:
        """Return the links from host `src` to `dst`, and the latency that is not theirs, s.

        Raises RouteError if there is no route, SimulationError if it cannot be simulated.
        """
        key = src * self.n_hosts + dst
        found = self.routes.get(key)
        if found is None:
            parts = self.platform.route_parts(src, dst)
            links, extra_s = parts.links, parts.extra_latency_s
            if not (links or parts.instant or extra_s or src == dst):
                names = self.platform.hosts[src].name, self.platform.hosts[dst].name
                raise RouteError(
                    f"no route from {names[0]!r} to {names[1]!r}, but a task sends bytes there; "
                    "declare one in the platform"
                )
            if self.wifi and not self.wifi.isdisjoint(link + self.n_hosts for link in links):
                raise SimulationError(WIFI_LINK)
            if len(self.routes) >= ROUTES_REMEMBERED:
                self.routes.clear()
            found = self.routes[key] = links, extra_s
        return found

    def flat(self, routes: Sequence[tuple[int, ...]]) -> tuple[IntArray, IntArray]:
        """Return where each of the `routes` begins (and the last ends), and all their links."""
        start = np.zeros(len(routes) + 1, dtype=np.int64)
        np.cumsum(list(map(len, routes)), out=start[1:])
        flat = itertools.chain.from_iterable(routes)
        return start, np.fromiter(flat, np.int64, int(start[-1])) + self.n_hosts

    def crossing(self, host: int, other: int) -> tuple[int, ...] | None:
        """Return the links between the zones of `host` and `other`.

        None if routes there do not split.
        """
        key = (-1 - self.clusters.zone[host], self.clusters.zone[other])
        if key not in self.ways:
            parts = self.platform.route_parts(host, other)
            whole = parts.separable and parts.extra_latency_s == 0.0 and len(parts.links) > 0
            self.ways[key] = parts.across if whole else None
        return self.ways[key]

    def way_out(self, host: int, zone: int, there: int) -> tuple[int, ...]:
        """Links from a host to where its zone is left for ``zone``, which holds host ``there``."""
        found = self.ways.get((host, 2 * zone))
        if found is None:
            found = self.ways[host, 2 * zone] = self.platform.route_parts(host, there).up
        return found

    def way_in(self, host: int, zone: int, there: int) -> tuple[int, ...]:
        """Links from where the zone of a host is entered from ``zone``, which holds ``there``."""
        found = self.ways.get((host, 2 * zone + 1))
        if found is None:
            found = self.ways[host, 2 * zone + 1] = self.platform.route_parts(there, host).down
        return found

    # --- many at once -----------------------------------------------------------------------

    def groups(self, sources: IntArray, targets: IntArray) -> list[IntArray]:
        """Return the indices of the pairs of `sources` and `targets` between any same two zones."""
        key = self.zone[sources] * (int(self.zone.max()) + 1) + self.zone[targets]
        order = np.argsort(key, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(key[order])) + 1)

    def many(self, sources: IntArray, targets: IntArray) -> Legs:
        """Return the routes from `sources` to `targets` (hosts), all between the same two zones."""
        zone, other = int(self.zone[sources[0]]), int(self.zone[targets[0]])
        if zone == other and (cluster := self.clusters[zone]) is not None:
            return self._inside(cluster, sources, targets)
        if zone != other and not self.wifi:
            try:
                return self._across(sources, targets)
            except RouteError:
                pass
        return self._one_by_one(sources, targets)

    def legs(self, routes: Sequence[tuple[int, ...]]) -> Legs:
        """The ``routes`` given, as links of the platform."""
        n = len(routes)
        return Legs(*self.flat(routes), np.zeros(n), np.ones(n, dtype=np.bool_))

    def _inside(self, cluster: Cluster, sources: IntArray, targets: IntArray) -> Legs:
        numbers, n = self.platform.local_numbers, len(sources)
        start = np.empty(n + 1, dtype=np.int64)
        links = np.empty(n * int(cluster.table[LONGEST]), dtype=np.int64)
        known = np.empty(n, dtype=np.bool_)
        walk_pairs(
            cluster.kind, cluster.table, numbers[sources], numbers[targets], start, links, known
        )
        return Legs(start, links[: start[-1]] + self.n_hosts, np.zeros(n), known)

    def _across(self, sources: IntArray, targets: IntArray) -> Legs:
        """Each route as the way out of a zone, what lies between, and the way into the other."""
        host, other = int(sources[0]), int(targets[0])
        middle = self.crossing(host, other)
        if middle is None:
            return self._one_by_one(sources, targets)
        zone, its = int(self.zone[host]), int(self.zone[other])
        senders, out = np.unique(sources, return_inverse=True)
        receivers, into = np.unique(targets, return_inverse=True)
        ways = [self.way_out(a, its, other) for a in senders.tolist()]
        ways += [self.way_in(b, zone, host) for b in receivers.tolist()]
        first, flat = self.flat([*ways, middle])
        n = len(sources)
        segments = np.empty((n, 3), dtype=np.int64)
        segments[:, 0] = out
        segments[:, 1] = len(ways)
        segments[:, 2] = len(senders) + into
        start = np.zeros(n + 1, dtype=np.int64)
        np.cumsum(np.diff(first)[segments].sum(axis=1), out=start[1:])
        links = np.empty(int(start[-1]), dtype=np.int64)
        join_segments(first, flat, segments, links)
        return Legs(start, links, np.zeros(n), np.ones(n, dtype=np.bool_))

    def _one_by_one(self, sources: IntArray, targets: IntArray) -> Legs:
        paths: list[tuple[int, ...]] = []
        extra_s = np.zeros(len(sources))
        known = np.zeros(len(sources), dtype=np.bool_)
        for k, (src, dst) in enumerate(zip(sources.tolist(), targets.tolist(), strict=True)):
            try:
                path, extra_s[k] = self.one(src, dst)
                known[k] = True
            except PTaskModelError:
                path = ()
            paths.append(path)
        start, links = self.flat(paths)
        return Legs(start, links, extra_s, known)


class FlowRoutes:
    """The routes of flows between hosts (indices).

    paths: the routes of the platform. routing: how flows choose others; None: they do not.
    """

    def __init__(self, paths: Paths, routing: Routing | None) -> None:
        self.paths = paths
        self.routing = routing

    def name(self, task: str, connection: str | None) -> str:
        """The name by which the flows of a task are routed.

        task: its id. connection: what it has; None: none.
        """
        if connection is None or self.routing is None:
            return task
        return self.routing.name(task, connection)

    def way(self, task: str, flow: int, source: int, target: int) -> Way:
        """The links (of the platform) that a flow takes, and those of its acknowledgements.

        task, flow: as in `FlowName`. source, target: hosts. Raises RouteError if there is none.
        """
        if self.routing is None or source == target:
            return Way(self.paths.one(source, target)[0], self.paths.one(target, source)[0])
        fabric = self.paths.platform.fabric
        return self.routing.way(fabric, task, flow, fabric.node[source], fabric.node[target])

    def connection(self, source: int, target: int) -> FlowName | None:
        """The name of what a host sends another without a task; None: by the platform's routes.

        source, target: hosts.
        """
        if self.routing is None:
            return None
        hosts = self.paths.platform.hosts
        return FlowName(f"{hosts[source].name}>{hosts[target].name}", 0)

    def named(
        self, names: Sequence[FlowName], sources: IntArray, targets: IntArray
    ) -> tuple[Legs, Legs]:
        """The routes of flows there and back, as `way` finds them.

        names: of each flow. sources, targets: its hosts. Raises RouteError for the first flow that
        has none.
        """
        ends = zip(names, sources.tolist(), targets.tolist(), strict=True)
        ways = [self.way(*name, source, target) for name, source, target in ends]
        there, back = [way.there for way in ways], [way.back for way in ways]
        return self.paths.legs(there), self.paths.legs(back)

    def groups(
        self,
        sources: IntArray,
        targets: IntArray,
        names: Sequence[FlowName] | None,
        both: bool,
    ) -> Iterator[tuple[IntArray, Legs, Legs]]:
        """The numbers of flows, some at a time, with their routes there and back.

        sources, targets: their hosts. names: of each flow; None: they take the platform's routes.
        both: the ways back are wanted; else they are those there. Raises as `named`.
        """
        if names is not None:
            yield np.arange(len(names)), *self.named(names, sources, targets)
            return
        for group in self.paths.groups(sources, targets):
            there = self.paths.many(sources[group], targets[group])
            back = self.paths.many(targets[group], sources[group]) if both else there
            yield group, there, back


def each_pair(size: float, ranks: int) -> Demand:
    """What an all-to-all asks, as flows: ``size`` bytes from each of ``ranks`` to each other."""
    sources, targets = np.divmod(np.arange(ranks**2), ranks)
    others = sources != targets
    amount = np.full(ranks * (ranks - 1), size)
    return Demand(0.0, 0.0, sources[others], targets[others], amount)


def has_flows(work: Work) -> bool:
    """Whether the ``work`` of a stage may have flows: it is no delay, and no trace."""
    return work.duration_s is None and not isinstance(work, TraceWork)


def number_of_flows(work: Work, ranks: int) -> int:
    """How many flows the ``work`` of so many ranks has; an all-to-all: one for each two of them."""
    if not has_flows(work):
        return 0
    asked = work.demand(ranks)
    return ranks * (ranks - 1) if asked.pair_bytes > 0.0 else len(asked.flow_bytes)


def flows_of(task: Task, hosts: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """(number, sender, receiver) of the flows of a task on hosts (indices), of one round."""
    number = 0
    for work in filter(has_flows, task.work.one_round()):
        asked = work.demand(len(hosts))
        if asked.pair_bytes > 0.0:
            asked = each_pair(asked.pair_bytes, len(hosts))
        for source, target in zip(asked.flow_from.tolist(), asked.flow_to.tolist(), strict=True):
            yield number, hosts[source], hosts[target]
            number += 1
