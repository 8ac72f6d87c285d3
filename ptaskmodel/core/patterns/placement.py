"""Many works at once, as arrays: what each asks, and where its hosts lie."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.core.patterns.clusters import Clusters
from ptaskmodel.workload.amounts import NO_FLOATS, NO_INTS
from ptaskmodel.workload.works import Work

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Placement(NamedTuple):
    """Hosts of works, one after the other: those of work k in ``hosts[start[k]:start[k + 1]]``.

    nodes: in the same places, their numbers inside their zone, in increasing order.
    cluster: the cluster zone that has all hosts of a work, each once; -1 if there is none.
    """

    start: IntArray
    hosts: IntArray
    nodes: IntArray
    cluster: IntArray

    @classmethod
    def of(cls, hosts: list[tuple[int, ...]], clusters: Clusters) -> Placement:
        """The placement of works, none of them without hosts."""
        counts = np.fromiter(map(len, hosts), np.int64, len(hosts))
        start = np.concatenate(([0], np.cumsum(counts)))
        flat = np.fromiter(itertools.chain.from_iterable(hosts), np.int64, int(start[-1]))
        zone = clusters.cluster_zone[flat]
        first, last = (f.reduceat(zone, start[:-1]) for f in (np.minimum, np.maximum))
        cluster = np.where(first == last, first, -1)
        # One sort of (work, node) pairs, each written as one integer.
        numbers = clusters.platform.local_numbers
        size = int(numbers.max()) + 1
        work = np.repeat(np.arange(len(hosts)) * size, counts)
        pairs = np.sort(work + numbers[flat])
        twice = pairs[1:][pairs[1:] == pairs[:-1]] // size
        cluster[twice] = -1
        return cls(start, flat, pairs - work, cluster)

    def part(self, works: IntArray) -> Placement:
        """The placement of some of the works (their numbers, in increasing order)."""
        counts = np.diff(self.start)
        if len(works) == len(counts):
            return self
        chosen = np.zeros(len(counts), dtype=np.bool_)
        chosen[works] = True
        each = np.repeat(chosen, counts)
        start = np.concatenate(([0], np.cumsum(counts[works])))
        return Placement(start, self.hosts[each], self.nodes[each], self.cluster[works])


class Demands(NamedTuple):
    """What works ask, one after the other (see `Demand`), for kernels.

    Entry i of work k has ``flops[i]``, with i as in the `Placement`; its flows are
    ``flow_start[k]:flow_start[k + 1]``. competitors: of each work, 0 where they are counted.
    """

    flops: FloatArray
    pair_bytes: FloatArray
    flow_start: IntArray
    flow_from: IntArray
    flow_to: IntArray
    flow_bytes: FloatArray
    competitors: FloatArray

    @classmethod
    def of(
        cls, works: Sequence[Work], competitors: Sequence[float | None], start: IntArray
    ) -> Demands:
        """Those of works of which work k is on entries ``start[k]:start[k + 1]``."""
        counts = np.diff(start).tolist()
        demands = [work.demand(n) for work, n in zip(works, counts, strict=True)]
        flops = [
            demand.flops if isinstance(demand.flops, np.ndarray) else np.full(n, demand.flops)
            for demand, n in zip(demands, counts, strict=True)
        ]
        flowing = [demand for demand in demands if len(demand.flow_bytes)]
        flow_start = np.zeros(len(demands) + 1, dtype=np.int64)
        np.cumsum([len(demand.flow_bytes) for demand in demands], out=flow_start[1:])
        return cls(
            np.concatenate(flops),
            np.array([demand.pair_bytes for demand in demands]),
            flow_start,
            np.concatenate([NO_INTS, *(demand.flow_from for demand in flowing)]),
            np.concatenate([NO_INTS, *(demand.flow_to for demand in flowing)]),
            np.concatenate([NO_FLOATS, *(demand.flow_bytes for demand in flowing)]),
            np.array([share or 0.0 for share in competitors], dtype=np.float64),
        )
