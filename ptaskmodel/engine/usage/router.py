"""Route works on hosts: how much they use of each resource, and their latency.

No other module of the engine knows both works and platforms. Resources are numbered: hosts, then
links.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.engine.state import PATTERN, State
from ptaskmodel.engine.usage.assembly import (
    add_all_to_all,
    add_crossings,
    add_flows,
    add_routes,
    assemble_parallel_flows,
    assemble_stages,
    assembler_of,
    clear,
)
from ptaskmodel.engine.usage.network_models import COUNTS, NetworkModel
from ptaskmodel.engine.usage.paths import WIFI_LINK, FlowRoutes, Paths, each_pair
from ptaskmodel.engine.usage.placement import (
    NUMBER_BYTES,
    Clusters,
    Demands,
    FlowName,
    Placement,
    Row,
    Shape,
    hosts_of,
    new_tally,
    places_of,
)
from ptaskmodel.errors import PlatformError, PTaskModelError, RouteError, SimulationError
from ptaskmodel.kernels.records import records
from ptaskmodel.platform import Platform
from ptaskmodel.platform.routing import Routing
from ptaskmodel.platform.topologies.link_loads import Tally, Ways
from ptaskmodel.platform.topologies.topology import LONGEST
from ptaskmodel.sharing.state import ELEMENT
from ptaskmodel.workload.amounts import Demand
from ptaskmodel.workload.works import TraceWork, Work, may_last

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# resource, usage, share, largest: see `Row`
Columns = tuple[IntArray, FloatArray, FloatArray, FloatArray]


class Router:
    """Lays works on a platform's routes.

    state: that of an engine; the current latencies and bandwidths of its links are read.
    count: what counts as one competitor on a link: the task, each flow, or each pair of hosts.
    repeats: keep one element for each entry of a repeated host (fairbottleneck), or merge them.
    routing: how flows choose their routes; None: they take those of the platform.
    """

    def __init__(
        self,
        platform: Platform,
        model: NetworkModel,
        count: str,
        repeats: bool,
        state: State,
        routing: Routing | None = None,
    ) -> None:
        if count not in COUNTS:
            known = ", ".join(COUNTS)
            raise SimulationError(f"count {count!r} is unknown; choose one of {known}")
        self.platform = platform
        self.model = model
        self.count = count
        self.repeats = repeats
        self.latency_s: FloatArray = state.resources["latency"]
        self.bandwidth_Bps: FloatArray = state.graph.constraints["capacity"]
        self.n_hosts = len(platform.hosts)
        self.fatpipe = np.array(state.graph.constraints["fatpipe"])
        self.clusters = Clusters.of(platform)
        self._tally = new_tally(len(state.resources), 64)
        self.paths = Paths(platform, self.clusters)
        self.flow_routes = FlowRoutes(self.paths, routing)

    def on(self, state: State) -> Router:
        """The same router reading other records."""
        twin = copy.copy(self)
        shared = state.graph.constraints
        twin.latency_s, twin.bandwidth_Bps = state.resources["latency"], shared["capacity"]
        twin._tally = new_tally(len(self._tally.place), len(self._tally.resource))
        return twin

    @property
    def _over(self) -> Ways:
        """What kernels read of the links."""
        return Ways(self.fatpipe, self.latency_s, self.clusters.common, self.n_hosts)

    def shape(
        self, work: Work, hosts: tuple[int, ...], competitors: float | None
    ) -> tuple[Shape, float]:
        """The shape of a work on hosts (indices), and its amount: nan if the pattern will say it.

        Raises SimulationError where the network model cannot express the work.
        """
        return self._shape(work, places_of(hosts), competitors, None)

    def _shape(
        self, work: Work, places: bytes, competitors: float | None, name: FlowName | None
    ) -> tuple[Shape, float]:
        if work.duration_s is not None or isinstance(work, TraceWork):
            own = places
            if len(places) > NUMBER_BYTES:
                own = places_of(sorted(set(hosts_of(places))))
            return Shape((None, own), work, places, None), 0.0
        own_name = () if name is None else (name,)
        if self.model.parallel:
            key = id(work), places, competitors, *own_name
            return Shape(key, work, places, competitors, name), np.nan
        hosts = hosts_of(places)
        asked = work.demand(len(hosts))
        flops = float(np.broadcast_to(asked.flops, len(hosts)).sum())
        everybody_sends = asked.pair_bytes > 0.0 and len(hosts) > 1
        if not len(asked.flow_bytes) and len(hosts) == 1:
            return Shape(hosts, work, places, None), flops
        if len(asked.flow_bytes) != 1 or flops > 0.0 or everybody_sends:
            raise SimulationError(
                f"network model {self.model.name} accepts only tasks of one execution or one flow; "
                "use L07 for parallel tasks"
            )
        ends = hosts[int(asked.flow_from[0])], hosts[int(asked.flow_to[0])]
        amount = self.model.amount(float(asked.flow_bytes[0]))
        return Shape((*ends, *own_name), work, places_of(ends), None, name), amount

    def shapes(
        self,
        works: Sequence[Work],
        places: Sequence[bytes],
        competitors: Sequence[float | None],
        names: Sequence[FlowName | None],
    ) -> tuple[list[Shape], list[float]]:
        """The shapes of works on hosts (see `places_of`), and their amounts, as `shape` does.

        names: of the first flow of each work; None: its flows take the platform's routes.
        """
        kinds: set[type[Work]] = set(map(type, works))
        plain = self.flow_routes.routing is None and not may_last(kinds) and TraceWork not in kinds
        if self.model.parallel and plain:
            keys = zip(map(id, works), places, competitors, strict=True)
            shapes = list(
                itertools.starmap(Shape, zip(keys, works, places, competitors, strict=True))
            )
            return shapes, [np.nan] * len(shapes)
        each = zip(works, places, competitors, names, strict=True)
        pairs = [self._shape(*one) for one in each]
        return [shape for shape, _ in pairs], [amount for _, amount in pairs]

    def route(self, shape: Shape) -> Row:
        """What a shape that is no delay asks, per unit of its amount.

        Raises RouteError where bytes have no way to go, SimulationError where a link on the way
        cannot be simulated.
        """
        hosts, competitors = shape.hosts, shape.competitors
        if not self.model.parallel:
            if len(hosts) == 1:
                one = np.ones(1)
                return Row(np.array(hosts, dtype=np.int64), one, one, one, 1.0, 0.0, 0.0)
            return self._flow(hosts[0], hosts[1], shape.first_flow)
        clear(self._tally)
        where = np.array(hosts, dtype=np.int64)
        asked = shape.work.demand(len(hosts))
        cpu = self._cpu(np.array(np.broadcast_to(asked.flops, len(hosts))), where)
        if shape.first_flow is not None:
            self._named_flows(asked, where, shape.first_flow)
        elif asked.pair_bytes > 0.0 and len(hosts) > 1:
            self._all_to_all(where, asked.pair_bytes)
        elif len(asked.flow_bytes):
            self._flows(asked, where)
        parts = zip(cpu, self._tallied(), strict=True)
        resource, usage, share, largest = (np.concatenate(both) for both in parts)
        if competitors is not None:
            share = usage / competitors
        amount = 1.0 if usage.any() else 0.0
        latency, latency_bytes = self._tally.worst.tolist()
        return Row(resource, usage, share, largest, amount, latency, latency_bytes)

    def _cpu(self, flops: FloatArray, where: IntArray) -> Columns:
        """The elements on hosts: one for each entry, or one for each host."""
        if self.repeats or len(set(where.tolist())) == len(where):
            return where, flops, flops, flops
        hosts, inverse = np.unique(where, return_inverse=True)
        total = np.bincount(inverse, weights=flops).astype(np.float64)
        largest = np.zeros(len(hosts))
        np.maximum.at(largest, inverse, flops)
        return hosts, total, largest if self.count == "flow" else total, largest

    def _flows(self, asked: Demand, where: IntArray) -> None:
        """Add flows between ranks to the tally."""
        sources, targets = where[asked.flow_from], where[asked.flow_to]
        amount = largest = asked.flow_bytes
        if len(set(where.tolist())) < len(where):
            key = sources * self.n_hosts + targets
            pairs, inverse = np.unique(key, return_inverse=True)
            sources, targets = np.divmod(pairs, self.n_hosts)
            amount = np.bincount(inverse, weights=asked.flow_bytes).astype(np.float64)
            largest = np.zeros(len(pairs))
            np.maximum.at(largest, inverse, asked.flow_bytes)
        self._pairs(sources, targets, amount, largest)

    def _named_flows(self, asked: Demand, where: IntArray, first: FlowName) -> None:
        """Add flows between ranks, each on the route that it chooses."""
        if asked.pair_bytes > 0.0 and len(where) > 1:
            asked = each_pair(asked.pair_bytes, len(where))
        n = len(asked.flow_bytes)
        if n == 0:
            return
        names = [FlowName(first.task, first.number + k) for k in range(n)]
        sources, targets = where[asked.flow_from], where[asked.flow_to]
        there, _ = self.flow_routes.named(names, sources, targets)
        self._make_room(len(there.links))
        add_routes(
            self._tally, self._over, there.start, there.links, there.extra_s, asked.flow_bytes,
            asked.flow_bytes,
        )  # fmt: skip

    def _pairs(
        self, sources: IntArray, targets: IntArray, amount: FloatArray, largest: FloatArray
    ) -> None:
        """Add what goes between distinct pairs of hosts to the tally."""
        zones = {self.clusters.zone[host] for host in {*sources.tolist(), *targets.tolist()}}
        if len(zones) == 1 and (cluster := self.clusters[zones.pop()]) is not None:
            route = np.empty(int(cluster.table[LONGEST]), dtype=np.int64)
            self._make_room(len(sources) * len(route))
            nodes = self.platform.local_numbers
            if add_flows(
                self._tally, self._over, cluster, route, nodes, sources, targets, amount, largest
            ):
                return
            clear(self._tally)
        known, n = self.paths.routes.get, self.n_hosts
        routes = [
            known(source * n + target) or self.paths.one(source, target)
            for source, target in zip(sources.tolist(), targets.tolist(), strict=True)
        ]
        paths, extra_s = zip(*routes, strict=True)
        start, links = self.paths.flat(paths)
        self._make_room(len(links))
        add_routes(
            self._tally, self._over, start, links, np.array(extra_s, np.float64), amount, largest
        )

    def _all_to_all(self, where: IntArray, size: float) -> None:
        """Add ``size`` bytes between each two ranks to the tally."""
        by_zone: dict[int, list[int]] = {}
        for host in where.tolist():
            by_zone.setdefault(self.clusters.zone[host], []).append(host)
        apart = all(len(set(hosts)) == len(hosts) for hosts in by_zone.values())
        if apart and self._by_zone(by_zone, size, True):
            return
        clear(self._tally)
        if apart and self._by_zone(by_zone, size, False):
            return
        clear(self._tally)
        self._flows(each_pair(size, len(where)), where)

    def _by_zone(self, by_zone: dict[int, list[int]], size: float, shortcut: bool) -> bool:
        """Add an all-to-all zone by zone; False (with the tally spoilt) where that cannot be."""
        for zone, hosts in by_zone.items():
            cluster = self.clusters[zone]
            if len(hosts) == 1:
                continue
            if cluster is None:
                return False
            nodes = np.sort(self.platform.local_numbers[hosts])
            longest = int(cluster.table[LONGEST])
            self._make_room(len(hosts) ** 2 * longest)
            route = np.empty(longest, dtype=np.int64)
            scratch = np.empty((4, len(hosts)), dtype=np.int64)
            counts = np.zeros((2, cluster.ways), dtype=np.int64)
            if not add_all_to_all(
                self._tally, self._over, cluster, shortcut, nodes, size, route, scratch, counts
            ):
                return False
        return len(by_zone) == 1 or self._across_zones(by_zone, size)

    def _across_zones(self, by_zone: dict[int, list[int]], size: float) -> bool:
        """Add what hosts of different zones exchange; False where routes do not separate."""
        paths: list[tuple[int, ...]] = []
        crossings: list[tuple[int, int]] = []
        for zone, hosts in by_zone.items():
            for other, others in by_zone.items():
                if zone == other:
                    continue
                middle = self.paths.crossing(hosts[0], others[0])
                if middle is None:
                    return False
                known, out, into = self.paths.ways.get, 2 * other, 2 * zone + 1
                paths += [
                    known((host, out)) or self.paths.way_out(host, other, others[0])
                    for host in hosts
                ]
                paths.append(middle)
                paths += [
                    known((host, into)) or self.paths.way_in(host, zone, hosts[0])
                    for host in others
                ]
                crossings.append((len(hosts), len(others)))
        start, links = self.paths.flat(paths)
        self._make_room(len(links))
        counts = np.array(crossings, dtype=np.int64)
        add_crossings(self._tally, self._over, start, links, counts, size)
        return True

    def route_together(
        self,
        placement: Placement,
        shapes: list[Shape],
        stages: NDArray,
        stage_numbers: IntArray,
        elements: NDArray,
        first: int,
    ) -> int:
        """Lay out shapes placed in one cluster, writing elements from ``first`` on.

        Returns the place after the last element. Stages for which there was no room keep
        ``first`` < 0.
        """
        cluster = self.clusters[int(placement.cluster[0])]
        assert cluster is not None
        _, works, _, competitors, _ = zip(*shapes, strict=True)
        demands = Demands.of(works, competitors, placement.start)
        most_ranks = int(np.diff(placement.start).max())
        longest = int(cluster.table[LONGEST])
        most_flows = int(np.diff(demands.flow_start).max())
        self._make_room(max(most_ranks**2, most_flows) * longest)
        last = int(
            assemble_stages(
                stages,
                stage_numbers,
                elements,
                first,
                self._tally,
                self._over,
                cluster,
                self.platform.local_numbers,
                placement,
                demands,
                self.count == "flow",
                self.count == "pair",
                np.empty(longest, dtype=np.int64),
                np.empty((4, most_ranks), dtype=np.int64),
                np.zeros((2, cluster.ways), dtype=np.int64),
            )
        )
        clear(self._tally)
        if last >= 0:
            return last
        if last == -1:
            return first
        pattern = stages[stage_numbers[-last - 2]]
        return int(pattern["first"] + pattern["count"])

    def whole_tally(self) -> tuple[Tally, Ways]:
        """A tally with room for every link, and what kernels read of the links."""
        return new_tally(len(self._tally.place), len(self.platform.all_links)), self._over

    def _make_room(self, links: int) -> None:
        """Let the tally hold so many links more, or all that there are."""
        used = int(self._tally.size[0])
        links = min(used + links, len(self.platform.all_links))
        if len(self._tally.resource) < links:
            larger = new_tally(len(self._tally.place), 2 * links)
            for old, new in zip(self._tally, larger, strict=True):
                new[: len(old)] = old
            self._tally = larger

    def _tallied(self) -> Columns:
        """(resource, usage, share, largest) of the links in the tally."""
        tally = self._tally
        m = int(tally.size[0])
        usage, largest = tally.usage[:m], tally.largest[:m]
        if self.count == "task":
            share = usage
        elif self.count == "flow":
            share = largest
        else:
            share = usage / tally.pairs[:m]
        resource = tally.resource[:m]
        if self.paths.wifi and not self.paths.wifi.isdisjoint(resource.tolist()):
            raise SimulationError(WIFI_LINK)
        return resource, usage, share, largest

    def assemble_flows(
        self,
        sources: IntArray,
        targets: IntArray,
        may_fail: BoolArray,
        numbers: IntArray,
        patterns: np.ndarray,
        room: Callable[[int], np.ndarray],
        first: int,
        names: Sequence[FlowName] | None = None,
    ) -> int:
        """Lay out flows between pairs of hosts, writing elements from ``first`` on.

        names: of flows that choose their routes, which must all have one.
        may_fail: of each host, whether flows are to be its users (in a parallel model they are).
        room: gives the elements, with room for so many. Returns the place after the last element.
        Patterns without a way to go keep ``first`` < 0, and in a parallel model those that take no
        link.
        """
        model = self.model
        if model.parallel:
            return self._assemble_parallel_flows(sources, targets, numbers, patterns, room, first)
        assemble, facts = assembler_of(model)
        both = model.crosstraffic or model.wire is not None
        for group, there, back in self.flow_routes.groups(sources, targets, names, both):
            elements = room(first + len(there.links) + len(back.links) + 2 * len(group))
            first = int(
                assemble(
                    numbers[group], sources[group], targets[group], there, back, self.fatpipe,
                    may_fail, self.latency_s, self.bandwidth_Bps, facts, patterns, elements, first,
                )
            )  # fmt: skip
        return first

    def _assemble_parallel_flows(
        self,
        sources: IntArray,
        targets: IntArray,
        numbers: IntArray,
        patterns: np.ndarray,
        room: Callable[[int], np.ndarray],
        first: int,
    ) -> int:
        by_flow, by_pair = self.count == "flow", self.count == "pair"
        for group in self.paths.groups(sources, targets):
            there = self.paths.many(sources[group], targets[group])
            elements = room(first + len(there.links) + 2 * len(group))
            first = int(
                assemble_parallel_flows(
                    numbers[group], sources[group], targets[group], there, self.fatpipe,
                    self.latency_s, by_flow, by_pair, patterns, elements, first,
                )
            )  # fmt: skip
        return first

    def _flow(self, src: int, dst: int, name: FlowName | None) -> Row:
        patterns, elements = records(1, PATTERN), records(0, ELEMENT)
        patterns["first"] = -1

        def room(count: int) -> np.ndarray:
            nonlocal elements
            elements = records(count, ELEMENT)
            return elements

        ends = np.array([src], dtype=np.int64), np.array([dst], dtype=np.int64)
        may_fail = np.zeros(self.n_hosts, dtype=np.bool_)
        name = name or self.flow_routes.connection(src, dst)
        names = None if name is None else [name]
        self.assemble_flows(*ends, may_fail, np.zeros(1, dtype=np.int64), patterns, room, 0, names)
        pattern = patterns[0]
        if pattern["first"] < 0:
            raise self.no_way(src, dst)
        used = elements[: int(pattern["count"])]
        return Row(
            used["resource"].copy(),
            used["usage"].copy(),
            used["share"].copy(),
            used["largest"].copy(),
            1.0,
            float(pattern["latency"]),
            float(pattern["latency_bytes"]),
            float(pattern["penalty"]),
            float(pattern["bound"]),
        )

    def no_way(self, src: int, dst: int) -> PTaskModelError:
        """What is wrong with the route of a flow that has no route."""
        try:
            self.paths.one(src, dst)
            if self.model.crosstraffic:
                self.paths.one(dst, src)
        except (PlatformError, SimulationError) as error:
            return error
        names = self.platform.hosts[src].name, self.platform.hosts[dst].name
        remedy = "declare a route"
        if src == dst and self.clusters[self.clusters.zone[src]] is not None:
            remedy = "give its cluster a loopback_bw and a loopback_lat"
        return RouteError(f"no link from {names[0]!r} to {names[1]!r} for a flow; {remedy}")
