"""Many works at once, as arrays: what each asks, and where its hosts lie."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.core.patterns.clusters import Clusters
from ptaskmodel.workload.works import Work

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


NUMBER_BYTES = 8  # of a host in `places_of`


def places_of(hosts: Sequence[int]) -> bytes:
    """The numbers of hosts, in order, as one object.

    Many works have many hosts each: a tuple of them would be hashed anew, element by element,
    at each look-up, and looked through by the garbage collector.
    """
    return struct.pack(f"{len(hosts)}q", *hosts)


def hosts_of(places: bytes) -> tuple[int, ...]:
    """The numbers of which `places_of` made this."""
    return struct.unpack(f"{len(places) // NUMBER_BYTES}q", places)


def flat_hosts(places: Sequence[bytes]) -> tuple[IntArray, IntArray]:
    """How many hosts each has, and the numbers of all, one after the other."""
    counts = np.fromiter(map(len, places), np.int64, len(places)) // NUMBER_BYTES
    return counts, np.frombuffer(bytearray().join(places), np.int64)


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
    def of(cls, places: Sequence[bytes], clusters: Clusters) -> Placement:
        """The placement of works on hosts (see `places_of`), none of them without."""
        counts, flat = flat_hosts(places)
        start = np.concatenate(([0], np.cumsum(counts)))
        zone = clusters.cluster_zone[flat]
        first, last = (f.reduceat(zone, start[:-1]) for f in (np.minimum, np.maximum))
        cluster = np.where(first == last, first, -1)
        # One sort of (work, node) pairs, each written as one integer; often they are in order.
        numbers = clusters.local_numbers
        size = int(numbers.max()) + 1
        work = np.repeat(np.arange(len(places)) * size, counts)
        pairs = work + numbers[flat]
        if not (pairs[1:] > pairs[:-1]).all():
            pairs.sort()
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
        counts = np.diff(start)
        demands = [work.demand(n) for work, n in zip(works, counts.tolist(), strict=True)]
        flops, pair_bytes, flow_from, flow_to, flow_bytes = zip(*demands, strict=True)
        flow_start = np.zeros(len(demands) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(map(len, flow_bytes), np.int64, len(demands)), out=flow_start[1:])
        if not any(isinstance(amount, np.ndarray) for amount in flops):
            every = np.repeat(np.array(flops), counts)
        else:
            every = np.concatenate(
                [
                    amount if isinstance(amount, np.ndarray) else np.full(n, amount)
                    for amount, n in zip(flops, counts.tolist(), strict=True)
                ]
            )
        return cls(
            every,
            np.array(pair_bytes),
            flow_start,
            np.concatenate(flow_from),
            np.concatenate(flow_to),
            np.concatenate(flow_bytes),
            np.array([share or 0.0 for share in competitors], dtype=np.float64),
        )
