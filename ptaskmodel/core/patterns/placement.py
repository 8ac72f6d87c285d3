"""Many works at once, as arrays: what each asks, and where its hosts lie."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.core.patterns.clusters import Clusters
from ptaskmodel.workload.amounts import NO_FLOATS, NO_INTS
from ptaskmodel.workload.works import Work

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
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


@dataclass(frozen=True, slots=True, eq=False)
class Demands:
    """What works ask, one after the other: the arguments of ``laying.lay_stages``."""

    flops: FloatArray
    all_to_all: FloatArray
    flow_start: IntArray
    flow_from: IntArray
    flow_to: IntArray
    flow_bytes: FloatArray
    most_flows: int

    @classmethod
    def of(cls, works: Sequence[Work], start: IntArray) -> Demands:
        """Those of works of which work k is on entries ``start[k]:start[k + 1]``."""
        counts = np.diff(start).tolist()
        demands = [work.demand(n) for work, n in zip(works, counts, strict=True)]
        flow_counts = np.array([len(demand.flow_bytes) for demand in demands])
        flops = np.empty(start[-1])
        for k, demand in enumerate(demands):
            flops[start[k] : start[k + 1]] = demand.flops
        flowing = [demand for demand in demands if len(demand.flow_bytes)]
        return cls(
            flops,
            np.array([demand.pair_bytes for demand in demands]),
            np.concatenate(([0], np.cumsum(flow_counts))),
            np.concatenate([NO_INTS, *(demand.flow_from for demand in flowing)]),
            np.concatenate([NO_INTS, *(demand.flow_to for demand in flowing)]),
            np.concatenate([NO_FLOATS, *(demand.flow_bytes for demand in flowing)]),
            int(flow_counts.max()),
        )
