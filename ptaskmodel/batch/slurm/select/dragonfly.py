"""TopologyParam=Dragonfly: jobs that do not fit below one leaf switch are spread over all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ptaskmodel.batch.hostset import Mask, members
from ptaskmodel.batch.slurm.conf.facts import Switch
from ptaskmodel.batch.slurm.nodes import Nodes
from ptaskmodel.batch.slurm.select.tree import Tree

if TYPE_CHECKING:
    from ptaskmodel.batch.slurm.needs import Need
    from ptaskmodel.batch.slurm.select.rooms import Room, Taking


class Dragonfly(Tree):
    """A tree whose leaves are equally far from each other.

    After `_job_test_dfly` and `_eval_nodes_dfly` of Slurm 22.05. counts_nodes: whether each node
    counts as a leaf of its own where a job asks for few of them, as with select/linear.
    """

    def __init__(
        self,
        switches: Sequence[Switch],
        nodes: Nodes,
        *,
        optional: bool = False,
        counts_nodes: bool = False,
    ) -> None:
        super().__init__(switches, nodes, optional=optional)
        self._counts_nodes = counts_nodes

    def too_spread(self, need: Need, nodes: Mask) -> bool:
        """Whether a job that asks for one leaf has more; to ask for more than one is in vain."""
        if need.switches != 1:
            return False
        if self._counts_nodes:
            return (nodes & ~need.required).bit_count() > 1
        return super().too_spread(need, nodes)

    def _in_turn(self, required: Mask, among: Mask, cpus: Sequence[int]) -> Iterator[int]:
        """A node of each leaf in turn, of those with the fewest free CPUs first."""
        left = {leaf: self.below[leaf] & among & ~required for leaf in self.leaves}
        used = {leaf: (self.below[leaf] & required).bit_count() for leaf in self.leaves}
        free = {leaf: sum(cpus[node] for node in members(left[leaf])) for leaf in self.leaves}
        while any(left.values()):
            leaf = min((k for k in self.leaves if left[k]), key=lambda k: (used[k], free[k], k))
            node = next(iter(members(left[leaf])))
            left[leaf] &= ~(1 << node)
            used[leaf] += 1
            free[leaf] -= cpus[node]
            yield node

    def _top(self, taking: Taking, rooms: Sequence[Room]) -> int | None:
        """The highest switch above something that is required, or above any node."""
        wanted = taking.need.required or sum(1 << room.node for room in rooms)
        found = [k for k, below in enumerate(self.below) if below & wanted]
        return max(found, key=lambda k: self.level[k], default=None)

    def _leaf_by_leaf(self, taking: Taking, left: dict[int, Room], touched: Mask, top: int) -> bool:
        """All from one leaf, if it is the only one that is used; else a node of each in turn."""
        inside = {
            leaf: [node for node in members(self.below[leaf] & self.below[top]) if node in left]
            for leaf in self.leaves
        }
        used = [leaf for leaf in self.leaves if self.below[leaf] & self.below[top] & touched]
        if not used:
            used = [max(self.leaves, key=lambda leaf: len(inside[leaf]))]
        if len(used) == 1:
            offered = [left[n] for n in inside[used[0]] if n not in taking.chosen]
            if taking.enough(len(offered)) and sum(r.cpus for r in offered) >= taking.cpus:
                for room in offered:
                    taking.take(room)
                    if taking.done or taking.room <= 0:
                        return taking.done
        turn = True
        while turn:
            turn = False
            for leaf in self.leaves:
                node = next((n for n in inside[leaf] if n not in taking.chosen), None)
                if node is None:
                    continue
                turn = True
                taking.take(left[node])
                if taking.done or taking.room <= 0:
                    return taking.done
        return taking.least <= 0 and taking.cpus <= 0
