"""topology/tree: nodes close to each other, leaf switch by leaf switch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ptaskmodel.batch.hostset import Mask, members
from ptaskmodel.batch.slurm.choice import Chosen, Offer, Picking
from ptaskmodel.batch.slurm.facts import Switch
from ptaskmodel.batch.slurm.nodes import Nodes

if TYPE_CHECKING:
    from ptaskmodel.batch.slurm.needs import Need


class Tree:
    """Switches in the order of topology.conf, the nodes below each, and who is above whom."""

    def __init__(self, switches: Sequence[Switch], nodes: Nodes) -> None:
        place = {switch.name: k for k, switch in enumerate(switches)}
        self.parent = [-1] * len(switches)
        for k, switch in enumerate(switches):
            for name in switch.switches:
                self.parent[place[name]] = k
        self.leaves = [k for k, switch in enumerate(switches) if not switch.switches]
        self.below: list[Mask] = [nodes.mask(switch.nodes) for switch in switches]
        self.level = [0] * len(switches)
        for leaf in self.leaves:
            at, mask, level = self.parent[leaf], self.below[leaf], 1
            while at >= 0:
                self.below[at] |= mask
                self.level[at] = max(self.level[at], level)
                at, level = self.parent[at], level + 1
        self._distances: dict[tuple[int, int], int] = {}

    def leaves_of(self, nodes: Mask) -> int:
        """How many leaves a set of nodes touches."""
        return sum(1 for leaf in self.leaves if self.below[leaf] & nodes)

    def distance(self, one: int, other: int) -> int:
        """Steps between two switches."""
        key = (one, other)
        if key not in self._distances:
            above = self._path(one)
            steps = 0
            while other not in above:
                other, steps = self.parent[other], steps + 1
                if other < 0:
                    return len(self.parent)
            self._distances[key] = steps + above.index(other)
        return self._distances[key]

    def _path(self, switch: int) -> list[int]:
        path = [switch]
        while self.parent[path[-1]] >= 0:
            path.append(self.parent[path[-1]])
        return path

    # --- select/linear ----------------------------------------------------------------------

    def choose_linear(self, need: Need, usable: Mask, cpus: Sequence[int]) -> Mask | None:
        """Below the lowest, tightest switch that suffices: leaves with the fewest CPUs first."""
        best: tuple[tuple[int, int, int], Mask] | None = None
        for k, below in enumerate(self.below):
            found = usable & below
            if need.required & ~found or found.bit_count() < need.least:
                continue
            if sum(cpus[node] for node in members(found)) < need.cpus:
                continue
            key = (self.level[k], found.bit_count(), k)
            if best is None or key < best[0]:
                best = key, found
        if best is None:
            return None
        among = best[1]
        picking = Picking(need.count())
        for node in members(need.required):
            picking.take(Offer(node, cpus[node]))
        leaves = [leaf for leaf in self.leaves if self.below[leaf] & among]
        leaves.sort(key=lambda leaf: sum(cpus[n] for n in members(self.below[leaf] & among)))
        for leaf in leaves:
            for node in members(self.below[leaf] & among & ~need.required):
                if picking.done or picking.full:
                    break
                picking.take(Offer(node, cpus[node]))
        if not (picking.done or picking.enough):
            return None
        return sum(1 << node for node, _ in picking.chosen)

    # --- select/cons_tres -------------------------------------------------------------------

    def choose_consumable(
        self,
        need: Need,
        offers: Sequence[Offer],
        picking: Picking,
        take: Callable[[Picking, Offer], None],
    ) -> Chosen | None:
        """Light nodes first; among equal weights leaf after leaf, the nearest to those chosen."""
        top = self._top(need, offers)
        if top is None:
            return None
        reach = self.below[top]
        left = {offer.node: offer for offer in offers if reach >> offer.node & 1}
        for node in [node for node, offer in left.items() if offer.required]:
            take(picking, left.pop(node))
        used = self._leaves_with([node for node, _ in picking.chosen])
        groups = sorted({offer.weight for offer in left.values()})
        for k, weight in enumerate(groups):
            group = {node: offer for node, offer in left.items() if offer.weight == weight}
            if k + 1 < len(groups) and not _would_do(picking, group):
                for offer in group.values():
                    if not (picking.done or picking.full):
                        take(picking, offer)
                used = self._leaves_with([node for node, _ in picking.chosen])
                continue
            self._fill(picking, group, used, take)
            if picking.done or picking.full:
                break
        return picking.chosen if picking.done or picking.enough else None

    def _top(self, need: Need, offers: Sequence[Offer]) -> int | None:
        """The highest switch that reaches what is required, or enough nodes, the lightest."""
        best, lightest = None, 0
        for k, below in enumerate(self.below):
            inside = [offer.weight for offer in offers if below >> offer.node & 1]
            if need.required:
                reaches = not need.required & ~below
                if reaches and (best is None or self.level[k] > self.level[best]):
                    best = k
            elif inside and len(inside) >= need.least:
                weight = min(inside)
                if best is None or (self.level[k] >= self.level[best] and weight <= lightest):
                    best, lightest = k, weight
        return best

    def _fill(
        self,
        picking: Picking,
        group: dict[int, Offer],
        used: list[int],
        take: Callable[[Picking, Offer], None],
    ) -> None:
        """Take nodes of a group: those of leaves already used, then leaf after leaf."""
        for leaf in used:
            self._take_leaf(picking, group, leaf, take)
        whole = sum(1 << node for node in group)
        counts = [(below & whole).bit_count() for below in self.below]
        while group and not (picking.done or picking.full):
            free = sum(1 << node for node in group)
            leaves = [leaf for leaf in self.leaves if self.below[leaf] & free]
            if not leaves:
                return
            leaf = self._nearest(leaves, used, counts, picking.nodes)
            self._take_leaf(picking, group, leaf, take)
            counts[leaf] = 0
            used.append(leaf)

    def _take_leaf(
        self,
        picking: Picking,
        group: dict[int, Offer],
        leaf: int,
        take: Callable[[Picking, Offer], None],
    ) -> None:
        for node in members(self.below[leaf] & sum(1 << node for node in group)):
            if picking.done or picking.full:
                return
            take(picking, group.pop(node))

    def _nearest(self, leaves: list[int], used: list[int], counts: list[int], nodes: int) -> int:
        """The leaf to take next: the one that fits best; a nearer one if it fits as well.

        counts: nodes below each switch. nodes: how many are still wanted.
        """
        best = leaves[0]
        far = {leaf: sum(self.distance(leaf, other) for other in used) for leaf in leaves}
        for leaf in leaves[1:]:
            better = self._compare(leaf, best, nodes, counts)
            if (far[leaf] < far[best] and better >= 0) or (far[leaf] == far[best] and better > 0):
                best = leaf
        return best

    def _compare(self, one: int, other: int, nodes: int, counts: list[int]) -> int:
        """Whether one leaf is better than another: positive; as good: 0.

        The tightest that holds all is; if none does, the one below a switch that does, or, below
        the same switch, the larger one.
        """
        while True:
            fits, other_fits = counts[one] >= nodes, counts[other] >= nodes
            if fits and other_fits:
                return counts[other] - counts[one]
            if fits or other_fits:
                return 1 if fits else -1
            above, other_above = self._above(one), self._above(other)
            if above == other_above or (above == one and other_above == other):
                return counts[one] - counts[other]
            one, other = above, other_above

    def _above(self, switch: int) -> int:
        return switch if self.parent[switch] < 0 else self.parent[switch]

    def _leaves_with(self, nodes: list[int]) -> list[int]:
        return [leaf for leaf in self.leaves if any(self.below[leaf] >> node & 1 for node in nodes)]


def _would_do(picking: Picking, group: dict[int, Offer]) -> bool:
    """Whether a group of nodes has all that is still missing."""
    cpus = sum(offer.cpus for offer in group.values())
    return len(group) >= picking.nodes and cpus >= picking.cpus
