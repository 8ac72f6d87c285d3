"""What patterns need to know of cluster zones: whose links are whose, which shortcuts apply."""

from __future__ import annotations

import weakref
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.platform import Platform
from ptaskmodel.platform.topologies.families import FAMILIES
from ptaskmodel.platform.topologies.star import star_links
from ptaskmodel.platform.topologies.topology import NO_ENDS

IntArray = NDArray[np.int64]


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


# They must not keep their platform, or it would stay for ever.
_KNOWN: weakref.WeakKeyDictionary[Platform, Clusters] = weakref.WeakKeyDictionary()
