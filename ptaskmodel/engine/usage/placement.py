"""The input and output of a router: works on hosts as arrays, and the resulting usage vectors.

`Placement` and `Demands` hold many works at once. `Clusters` holds which links belong to which
cluster zone, and which shortcuts apply. `Row` and `Shape` are a router's results.
"""

from __future__ import annotations

import struct
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.platform import Platform
from ptaskmodel.platform.topologies import FAMILIES
from ptaskmodel.platform.topologies.link_loads import Tally
from ptaskmodel.platform.topologies.star import star_links
from ptaskmodel.platform.topologies.topology import NO_ENDS
from ptaskmodel.workload.works import Work

IntArray = NDArray[np.int64]

# They must not keep their platform, or it would stay for ever.
_KNOWN: weakref.WeakKeyDictionary[Platform, Clusters] = weakref.WeakKeyDictionary()

FloatArray = NDArray[np.float64]

NUMBER_BYTES = 8  # of a host in `places_of`


class Cluster(NamedTuple):
    """A cluster zone, as kernels see it: its `WalkTable` and its `Survey`."""

    kind: int
    table: IntArray
    plain: bool
    ways: int
    ends: IntArray


class Clusters:
    """The cluster zones of a platform, by number; `of` looks at each platform once.

    owner: shape (links,), the host that alone uses a link, -1 if it is not known to be alone.
    common: shape (hosts + links,), links that every node of its star crosses both ways.
    zone: the leaf zone of each host; cluster_zone: shape (hosts,), the same where that is a
    cluster zone, else -1. local_numbers: of each host, inside its leaf zone.
    """

    def __init__(self, platform: Platform) -> None:
        self.local_numbers = platform.local_numbers
        self.zone = [platform.leaf_zone(host.index) for host in platform.hosts]
        self.owner = np.full(len(platform.all_links), -1, dtype=np.int64)
        self.common = np.zeros(len(platform.hosts) + len(platform.all_links), dtype=np.bool_)
        self._hosts: dict[int, list[int]] = {}
        for host, zone in enumerate(self.zone):
            self._hosts.setdefault(zone, []).append(host)
        mixed = self._mixed(platform)
        self._found = {zone: self._look(platform, zone, zone not in mixed) for zone in self._hosts}
        self.cluster_zone = np.array(
            [-1 if self._found[zone] is None else zone for zone in self.zone], dtype=np.int64
        )

    @classmethod
    def of(cls, platform: Platform) -> Clusters:
        """Those of a platform, which all its simulations share: nothing of them changes."""
        if platform not in _KNOWN:
            _KNOWN[platform] = cls(platform)
        return _KNOWN[platform]

    def __getitem__(self, zone: int) -> Cluster | None:
        """The cluster of that number, None if the zone is of another kind."""
        return self._found[zone]

    def _mixed(self, platform: Platform) -> set[int]:
        """Zones of which nothing can be said alone: those that name a link of another, and that."""
        numbers = {zone.name: zone.number for zone in platform.zones}
        mixed: set[int] = set()
        for number in self._hosts:
            walk = platform.walk_table(number)
            if walk is not None and not platform.zones[number].topology:
                links = star_links(walk.table).tolist()
                owners = {numbers.get(platform.all_links[link].zone, number) for link in links}
                if owners - {number}:
                    mixed |= owners | {number}
        return mixed

    def _look(self, platform: Platform, zone: int, alone: bool) -> Cluster | None:
        walk = platform.walk_table(zone)
        if walk is None:
            return None
        if not alone:
            return Cluster(walk.kind, walk.table, False, 0, NO_ENDS)
        hosts = np.array(self._hosts[zone], dtype=np.int64)
        nodes = self.local_numbers[hosts]
        common = self.common[len(platform.hosts) :]
        survey = FAMILIES[walk.kind].survey(walk.table, nodes, hosts, self.owner, common)
        return Cluster(walk.kind, walk.table, survey.plain, survey.ways, survey.ends)


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


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """What a work asks: resource[k] serves usage[k] per unit of progress, share[k] is compared.

    largest[k]: the largest of the parts of usage[k], which on a host is what one core has to do.
    amount: units of progress to make (of a flow model: 1); latency_s is waited first;
    latency_bytes: the largest latency * bytes of its flows (for the TCP window); penalty: 1 / its
    weight in the sharing; bound: its largest rate.
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


class FlowName(NamedTuple):
    """What routing knows a flow by: its task (by `FlowRoutes.name`), and its number in that."""

    task: str
    number: int


class Shape(NamedTuple):
    """What a pattern is of: a work on hosts (indices). Equal keys ask the same.

    The key of what only holds its hosts (a delay, or ranks besides) is None, as it has no work, and
    these hosts, each once. In a flow model that of others is their host, or where they go from
    and to. Where flows choose their routes, a key also has the name of the first one.
    """

    key: tuple
    work: Work  # keeps the id in the key its own
    places: bytes  # its hosts, by `places_of`
    competitors: float | None
    first_flow: FlowName | None = None

    @property
    def hosts(self) -> tuple[int, ...]:
        return hosts_of(self.places)


def new_tally(resources: int, links: int) -> Tally:
    """An empty tally of so many ``resources``, with room for so many ``links``."""
    return Tally(
        np.zeros(1, dtype=np.int64),
        np.empty(links, dtype=np.int64),
        np.empty(links),
        np.empty(links),
        np.empty(links),
        np.full(resources, -1, dtype=np.int64),
        np.zeros(2),
    )
