"""Many works at once, as arrays: what each asks, and where its hosts lie."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.core.patterns.clusters import Clusters
from ptaskmodel.workload.works import NO_FLOATS, NO_INTS, HomogeneousWork, ParallelWork

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
    def of(cls, works: list[HomogeneousWork | ParallelWork], start: IntArray) -> Demands:
        """Those of works of which work k is on entries ``start[k]:start[k + 1]``."""
        same = np.zeros(len(works))  # flops of the ranks of a homogeneous work
        all_to_all = np.zeros(len(works))
        flow_counts = np.zeros(len(works), dtype=np.int64)
        parallel: list[tuple[int, ParallelWork]] = []
        counts = np.diff(start)
        for k, (work, n) in enumerate(zip(works, counts.tolist(), strict=True)):
            if isinstance(work, HomogeneousWork):
                same[k], all_to_all[k] = work.per_rank(n)
            else:
                parallel.append((k, work))
                flow_counts[k] = len(work.flow_bytes)
        flops = np.repeat(same, counts)
        for k, work in parallel:
            flops[start[k] : start[k + 1]] = work.flops
        return cls(
            flops,
            all_to_all,
            np.concatenate(([0], np.cumsum(flow_counts))),
            np.concatenate([NO_INTS, *(work.flow_from for _, work in parallel)]),
            np.concatenate([NO_INTS, *(work.flow_to for _, work in parallel)]),
            np.concatenate([NO_FLOATS, *(work.flow_bytes for _, work in parallel)]),
            int(flow_counts.max()),
        )
