"""What the engine needs to know of cluster zones: whose links are whose, which shortcuts apply."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.platform import Platform
from ptaskmodel.platform.routing.cluster_tables import FAT_TREE, STAR, TORUS, WalkTable
from ptaskmodel.platform.routing.walks import DUPLEX, FIRST, LIMITER, LOOPBACK, NODES, PARAMS

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """A cluster zone. plain: all-to-all tasks need no walk of every route (see `laying`).

    ways: in a fat tree, the largest number of ways up from a subtree.
    """

    kind: int
    table: IntArray
    plain: bool
    ways: int = 0


class Clusters:
    """The cluster zones of a platform, by number, looked at when first asked for.

    owner: shape (links,), the host that alone uses a link, -1 if it is not known to be alone.
    common: shape (hosts + links,), links that every node of its star crosses both ways.
    zone: the leaf zone of each host; cluster_zone: shape (hosts,), the same where that is a
    cluster zone, else -1.
    """

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.zone = [platform.leaf_zone(host.index) for host in platform.hosts]
        self.owner = np.full(len(platform.links), -1, dtype=np.int64)
        self.common = np.zeros(len(platform.hosts) + len(platform.links), dtype=np.bool_)
        self._hosts: dict[int, list[int]] = {}
        for host, zone in enumerate(self.zone):
            self._hosts.setdefault(zone, []).append(host)
        self._found = {zone: self._look(zone) for zone in self._hosts}
        self.cluster_zone = np.array(
            [-1 if self._found[zone] is None else zone for zone in self.zone], dtype=np.int64
        )

    def __getitem__(self, zone: int) -> Cluster | None:
        """The cluster of that number, None if the zone is of another kind."""
        return self._found[zone]

    def _look(self, zone: int) -> Cluster | None:
        walk = self.platform.walk_table(zone)
        if walk is None:
            return None
        hosts = np.array(self._hosts[zone], dtype=np.int64)
        nodes = self.platform.local_numbers[hosts]
        host_of = np.full(int(walk.table[NODES]), -1, dtype=np.int64)
        host_of[nodes] = hosts
        if walk.kind == STAR:
            return Cluster(walk.kind, walk.table, self._look_at_star(walk.table, nodes, host_of))
        self._own_topology(walk, nodes, host_of)
        if walk.kind != FAT_TREE:
            return Cluster(walk.kind, walk.table, False)
        levels = walk.table[PARAMS + 2 : PARAMS + 2 + 6 * int(walk.table[PARAMS])].reshape(-1, 6)
        parents, cables, below = levels[:, 1], levels[:, 2], levels[:, 3]
        plain = int(walk.table[LIMITER]) < 0 and bool((cables == 1).all())
        return Cluster(walk.kind, walk.table, plain, int((parents * below).max()))

    def _look_at_star(self, table: IntArray, nodes: IntArray, host_of: IntArray) -> bool:
        """Owners and common links of a star; whether it has no other links."""
        n = int(table[NODES])
        rows = 2 + n
        starts = table[rows : rows + 3 * n + 1]
        links = table[rows + 3 * n + 1 :]
        row = np.repeat(np.arange(3 * n), np.diff(starts))
        node, way = row // 3, row % 3
        held = (way < 2) & (host_of[node] >= 0)
        node, way, links = node[held], way[held], links[held]
        used, inverse = np.unique(links, return_inverse=True)
        lowest = np.full(len(used), n)
        highest = np.full(len(used), -1)
        np.minimum.at(lowest, inverse, node)
        np.maximum.at(highest, inverse, node)
        alone = lowest == highest
        self.owner[used[alone]] = host_of[lowest[alone]]
        times = np.bincount(inverse, minlength=len(used))
        everywhere = times == 2 * len(nodes)
        self.common[len(self.platform.hosts) + used[everywhere]] = ~alone[everywhere]
        undefined = table[2 + nodes].any()
        once = len(np.unique(inverse * (2 * n) + node * 2 + way)) == len(links)
        return bool((alone | everywhere).all() and once and not undefined)

    def _own_topology(self, walk: WalkTable, nodes: IntArray, host_of: IntArray) -> None:
        """Links of single nodes in the other topologies: those to the first switch, limiters."""
        table = walk.table
        hosts = host_of[nodes]
        for first in (int(table[LIMITER]), int(table[LOOPBACK])):
            if first >= 0:
                self.owner[first + nodes] = hosts
        if walk.kind == TORUS:
            return
        ports = 1
        if walk.kind == FAT_TREE:
            ports = int(table[PARAMS + 3] * table[PARAMS + 4])
        width = ports * (1 + int(table[DUPLEX]))
        for k in range(width):
            self.owner[int(table[FIRST]) + nodes * width + k] = hosts
