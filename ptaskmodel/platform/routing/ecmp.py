"""Equal-cost multi-path routing: each flow takes one of the shortest paths, chosen by a hash.

At each node, the next hop is one of those to neighbours that are nearer to the receiver, by hops.
splitmix64 chooses it, seeded with a hash of a seed, the task, the flow and, if there is one, the
queue pair; it gives the same result on every machine. Real switches hash addresses and ports, by
functions that vendors do not publish. So which flows collide is random here, but the number of
collisions is realistic.

Source of the generator: G. Steele, D. Lea and C. Flood, "Fast splittable pseudorandom number
generators", OOPSLA 2014.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptaskmodel.platform.routing.fabric import Fabric, Hop, Way

MASK = 2**64 - 1
GAMMA = 0x9E3779B97F4A7C15


def mixed(state: int) -> int:
    """The output of splitmix64 for a state."""
    z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def flow_hash(seed: int, task: str, flow: int, queue_pair: str | None = None) -> int:
    """A hash of 64 bits of a flow: of its seed and of its names in UTF-8, eight bytes at a time.

    task: its id. queue_pair: the name of its connection; None: it needs none.
    """
    state = mixed((seed + GAMMA) & MASK)
    for name in (task, str(flow), *(() if queue_pair is None else (queue_pair,))):
        text = name.encode()
        for k in range(0, len(text), 8):
            word = int.from_bytes(text[k : k + 8], "little")
            state = mixed((state ^ word) + GAMMA & MASK)
        state = mixed((state ^ len(text)) + GAMMA & MASK)
    return state


@dataclass(frozen=True, slots=True)
class Ecmp:
    """Each flow takes one of its shortest paths, chosen by a hash.

    seed: of the hash, a whole number from 0.
    """

    seed: int = 0

    def __str__(self) -> str:
        return f"ecmp:{self.seed}"

    def hops(
        self,
        fabric: Fabric,
        task: str,
        flow: int,
        source: int,
        target: int,
        queue_pair: str | None = None,
    ) -> list[Hop]:
        """The hops that a flow takes from node source to node target of a graph.

        fabric: the graph. task: its id. flow: the number of the flow in it. queue_pair: the name of
        the connection, where a flow has several. Raises RouteError if there is no way.
        """
        state = flow_hash(self.seed, task, flow, queue_pair)
        hops: list[Hop] = []
        node = source
        while node != target:
            choices = fabric.nearer(node, target)
            state = (state + GAMMA) & MASK
            hops.append(choices[mixed(state) % len(choices)])
            node = hops[-1].target
        return hops

    def way(self, fabric: Fabric, task: str, flow: int, source: int, target: int) -> Way:
        """The links that a flow takes from node source to node target, and of its acknowledgements.

        fabric, task: as `hops` takes them. Raises RouteError as `hops`.
        """
        return fabric.way(self.hops(fabric, task, flow, source, target))
