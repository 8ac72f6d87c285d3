"""Lays many works of one cluster from arrays that a compiled front end fills: nothing is looked up.

What it lays are the patterns 0, 1, ... of a core of its own, from element 0 on, each time anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.core.driver import Core
from ptaskmodel.core.patterns.laying import lay_stages
from ptaskmodel.core.patterns.placement import Demands, Placement
from ptaskmodel.core.patterns.table import NEW
from ptaskmodel.core.store import enlarged, room_for_elements
from ptaskmodel.platform.topologies.topology import LONGEST

IntArray = NDArray[np.int64]


class Room(NamedTuple):
    """How much may have to be laid together: works, hosts and flows of all, hosts of one."""

    works: int
    hosts: int
    flows: int
    ranks: int


class StraightLaying:
    """Lays what its ``placement`` and ``demands`` say, on hosts of a cluster zone.

    The works are on hosts of their own, whose ``Placement.nodes`` are in increasing order.
    """

    def __init__(self, core: Core, zone: int, room: Room) -> None:
        self.core = core
        router = core.router
        cluster = router.clusters[zone]
        assert cluster is not None
        works, hosts, flows, ranks = room
        self.placement = Placement(
            np.zeros(works + 1, dtype=np.int64),
            np.empty(hosts, dtype=np.int64),
            np.empty(hosts, dtype=np.int64),
            np.full(works, zone, dtype=np.int64),
        )
        self.demands = Demands(
            np.empty(hosts),
            np.zeros(works),
            np.zeros(works + 1, dtype=np.int64),
            np.empty(flows, dtype=np.int64),
            np.empty(flows, dtype=np.int64),
            np.empty(flows),
            np.zeros(works),
        )
        core.state = core.state._replace(patterns=enlarged(core.state.patterns, works))
        core.state.patterns[:] = NEW
        self._numbers = np.arange(works)
        self._cluster = cluster
        self._tally, self._ways = router.whole_tally()
        self._by_flow, self._by_pair = router.count == "flow", router.count == "pair"
        longest = int(cluster.table[LONGEST])
        self._scratch = (
            np.empty(longest, dtype=np.int64),
            np.empty((4, ranks), dtype=np.int64),
            np.zeros((2, cluster.ways), dtype=np.int64),
        )

    def lay(self, count: int) -> bool:
        """Lay the first ``count`` works; False if one has no way to go."""
        core, first = self.core, 0
        most = int(self.placement.start[count]) + count * len(core.platform.all_links)
        while True:
            state = core.state
            last = lay_stages(
                state.patterns, self._numbers[:count], state.elements, first, self._tally,
                self._ways, self._cluster, core.platform.local_numbers, self.placement,
                self.demands, self._by_flow, self._by_pair, *self._scratch,
            )  # fmt: skip
            if last >= 0:
                return True
            if len(state.elements) >= most:
                return False
            core.state = room_for_elements(state, len(state.elements) + 1024)
