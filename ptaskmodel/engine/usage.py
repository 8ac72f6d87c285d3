"""A work on hosts, laid on its routes: what it asks of each resource, and its latency.

The only place that knows both tasks and platforms. Resources are numbered: hosts first, then links.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.engine.laying import accumulate, route_latencies
from ptaskmodel.engine.network_models import CROSS_TRAFFIC, NetworkModel
from ptaskmodel.errors import RouteError, SimulationError
from ptaskmodel.platform import Platform
from ptaskmodel.platform.model import FATPIPE, WIFI
from ptaskmodel.workload.tasks import HomogeneousWork, ParallelWork

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# resource, usage, share, largest: see `Row`
Columns = tuple[IntArray, FloatArray, FloatArray, FloatArray]

COUNTS = ("task", "flow", "pair")
ROUTES_REMEMBERED = 200_000


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """What a stage asks: resource[k] serves usage[k] per unit of progress, share[k] is compared.

    largest[k]: the largest of the parts of usage[k], which on a host is what one core has to do.
    amount: units of progress to make; latency_s is waited first; latency_bytes: the largest
    latency * bytes of its flows (for the TCP window); penalty: 1 / its weight in the sharing; bound: its largest rate.
    """

    resource: IntArray
    usage: FloatArray
    share: FloatArray
    largest: FloatArray
    amount: float
    latency_s: float
    latency_bytes: float
    penalty: float = 1.0
    bound: float = np.inf


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """Pieces of routes with what they carry (see `accumulate`)."""

    start: IntArray
    links: IntArray
    amount: FloatArray
    largest: FloatArray
    flows: FloatArray
    pairs: FloatArray


class Layout:
    """Lays works on a platform's routes.

    latency_s: shape (hosts + links,), the current latency of each link, read at each call.
    count: who counts as one competitor on a link: the task, each flow, or each pair of hosts.
    repeats: keep one element for each entry of a repeated host (fairbottleneck), or merge them.
    """

    def __init__(
        self,
        platform: Platform,
        model: NetworkModel,
        count: str,
        repeats: bool,
        latency_s: FloatArray,
        bandwidth_Bps: FloatArray,
    ) -> None:
        if count not in COUNTS:
            raise SimulationError(
                f"count {count!r} is not known; choose one of {', '.join(COUNTS)}"
            )
        self.platform = platform
        self.model = model
        self.count = count
        self.repeats = repeats
        self.latency_s = latency_s
        self.bandwidth_Bps = bandwidth_Bps
        self.n_hosts = len(platform.hosts)
        size = self.n_hosts + len(platform.links)
        self.fatpipe = np.zeros(size, dtype=np.bool_)
        self.wifi = {self.n_hosts + link.index for link in platform.links if link.policy == WIFI}
        for link in platform.links:
            self.fatpipe[self.n_hosts + link.index] = link.policy == FATPIPE
        self._place = np.full(size, -1, dtype=np.int64)
        self._routes: dict[int, tuple[IntArray, float]] = {}

    def lay(
        self, work: ParallelWork | HomogeneousWork, hosts: Sequence[int], competitors: float | None
    ) -> Row:
        """The row of a work on hosts (indices).

        Raises RouteError where bytes have no way to go, SimulationError where the network model
        cannot express the work.
        """
        if isinstance(work, HomogeneousWork):
            work = expand(work, len(hosts))
        if self.model.parallel:
            return self._parallel(work, hosts, competitors)
        return self._single(work, hosts)

    def _route(self, src: int, dst: int) -> tuple[IntArray, float]:
        """Links (resource numbers) of a route and the latency that they do not account for."""
        key = src * self.n_hosts + dst
        found = self._routes.get(key)
        if found is None:
            found = self._find_route(src, dst)
            if len(self._routes) >= ROUTES_REMEMBERED:
                self._routes.clear()
            self._routes[key] = found
        return found

    def _find_route(self, src: int, dst: int) -> tuple[IntArray, float]:
        parts = self.platform.route_parts(src, dst)
        links = np.array(parts.links, dtype=np.int64) + self.n_hosts
        names = self.platform.hosts[src].name, self.platform.hosts[dst].name
        if not len(links) and src != dst and parts.extra_latency_s == 0.0:
            raise RouteError(
                f"no route from {names[0]!r} to {names[1]!r}, yet a task sends bytes there; "
                "declare one in the platform"
            )
        if self.wifi and not self.wifi.isdisjoint(links.tolist()):
            raise SimulationError(
                f"the route from {names[0]!r} to {names[1]!r} crosses a WIFI link, "
                "which cannot be simulated; use a SHARED link"
            )
        return links, parts.extra_latency_s

    def _parallel(self, work: ParallelWork, hosts: Sequence[int], competitors: float | None) -> Row:
        where = np.array(hosts, dtype=np.int64)
        cpu = self._cpu(work.flops, where)
        segments, extra = self._pairs(work, where)
        latency, latency_bytes = route_latencies(
            segments.start, segments.links, self.latency_s, extra, segments.largest
        )
        parts = zip(cpu, self._add_up(segments), strict=True)
        resource, usage, share, largest = (np.concatenate(both) for both in parts)
        if competitors is not None:
            share = usage / competitors
        amount = 1.0 if usage.any() else 0.0
        return Row(resource, usage, share, largest, amount, latency, latency_bytes)

    def _cpu(self, flops: FloatArray, where: IntArray) -> Columns:
        """The elements on hosts: one for each entry, or one for each host."""
        if self.repeats or len(where) == 1:
            return where, flops, flops, flops
        hosts, inverse = np.unique(where, return_inverse=True)
        if len(hosts) == len(where):
            return where, flops, flops, flops
        total = np.bincount(inverse, weights=flops)
        largest = np.zeros(len(hosts))
        np.maximum.at(largest, inverse, flops)
        return hosts, total, largest if self.count == "flow" else total, largest

    def _pairs(self, work: ParallelWork, where: IntArray) -> tuple[Segments, FloatArray]:
        """The routes of the flows, one segment for each pair of hosts, and their extra latency."""
        key = where[work.flow_from] * self.n_hosts + where[work.flow_to]
        pairs, inverse = np.unique(key, return_inverse=True)
        amount = np.bincount(inverse, weights=work.flow_bytes, minlength=len(pairs))
        largest = np.zeros(len(pairs))
        np.maximum.at(largest, inverse, work.flow_bytes)
        flows = np.bincount(inverse, minlength=len(pairs)).astype(np.float64)
        routes = [self._route(*divmod(pair, self.n_hosts)) for pair in pairs.tolist()]
        start = np.zeros(len(pairs) + 1, dtype=np.int64)
        np.cumsum([len(links) for links, _ in routes], out=start[1:])
        links = np.concatenate([links for links, _ in routes]) if routes else start[:0]
        extra = np.array([extra for _, extra in routes], dtype=np.float64)
        return Segments(start, links, amount, largest, flows, np.ones(len(pairs))), extra

    def _add_up(self, segments: Segments) -> Columns:
        """(resource, usage, share, largest) of the links under the segments."""
        size = len(segments.links)
        resource = np.empty(size, dtype=np.int64)
        usage, largest, flows, pairs = (np.empty(size) for _ in range(4))
        m = accumulate(
            segments.start, segments.links, segments.amount, segments.largest, segments.flows,
            segments.pairs, self.fatpipe, self._place, resource, usage, largest, flows, pairs,
        )  # fmt: skip
        if self.count == "task":
            share = usage
        elif self.count == "flow":
            share = largest
        else:
            share = usage / pairs
        return resource[:m], usage[:m], share[:m], largest[:m]

    def _single(self, work: ParallelWork, hosts: Sequence[int]) -> Row:
        """One execution or one flow under a flow-level network model."""
        n_flows = len(work.flow_bytes)
        flops = float(work.flops.sum())
        if n_flows == 0 and len(hosts) == 1:
            host = np.array(hosts, dtype=np.int64)
            one = np.ones(1)
            return Row(host, one, one, one, flops, 0.0, 0.0)
        if n_flows != 1 or flops > 0.0:
            raise SimulationError(
                f"network model {self.model.name} takes tasks of one execution or one flow; "
                "use L07 for parallel tasks"
            )
        src, dst = hosts[int(work.flow_from[0])], hosts[int(work.flow_to[0])]
        return self._flow(src, dst, float(work.flow_bytes[0]))

    def _flow(self, src: int, dst: int, size: float) -> Row:
        model = self.model
        links, extra = self._route(src, dst)
        latency = extra + float(self.latency_s[links].sum())
        if not len(links) and latency == 0.0:
            names = self.platform.hosts[src].name, self.platform.hosts[dst].name
            raise RouteError(
                f"no link from {names[0]!r} to {names[1]!r} for a flow; declare a route"
            )
        use: dict[int, float] = {}
        for link in links.tolist():
            use[link] = (
                max(use.get(link, 0.0), 1.0) if self.fatpipe[link] else use.get(link, 0.0) + 1.0
            )
        if model.crosstraffic:
            for link in self._route(dst, src)[0].tolist():
                if self.fatpipe[link]:
                    use[link] = max(use.get(link, 0.0), CROSS_TRAFFIC)
                else:
                    use[link] = use.get(link, 0.0) + CROSS_TRAFFIC
        penalty = 1.0
        if latency * model.latency_factor > 0.0:
            penalty = latency
            if model.weight_s > 0.0:
                penalty += float((model.weight_s / self.bandwidth_Bps[links]).sum())
        usage = np.array(list(use.values()))
        return Row(
            np.array(list(use), dtype=np.int64),
            usage,
            usage,
            usage,
            size / model.bandwidth_factor,
            latency * model.latency_factor,
            latency,
            penalty,
            float(self.bandwidth_Bps[links].min()) if len(links) else np.inf,
        )


def expand(work: HomogeneousWork, ranks: int) -> ParallelWork:
    """A homogeneous work as a parallel one on ``ranks`` ranks."""
    flops, size = work.per_rank(ranks)
    matrix = None
    if size > 0.0 and ranks > 1:
        matrix = np.full((ranks, ranks), size)
        np.fill_diagonal(matrix, 0.0)
    return ParallelWork.of(ranks, flops, matrix)
