"""topology/tree: choose nodes that are close to each other, leaf switch by leaf switch.

With TopologyParam=Dragonfly, jobs that do not fit below one leaf switch are spread over all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ptaskmodel.batch.machine.host_sets import Mask, members
from ptaskmodel.slurm.conf.facts import Nodes, Switch
from ptaskmodel.slurm.select.choice import Offer, Picking

if TYPE_CHECKING:
    from ptaskmodel.slurm.jobs.needs import Need
    from ptaskmodel.slurm.select.offers import Room, Taking


class Leaves:
    """Whether a job that asks for few leaf switches takes the nodes that were last found for it.

    Slurm keeps this from test to test: a test that does not look at switches leaves it as it is.
    most: leaves that it asks for. wait_s: how long it waits for so few, s.
    """

    __slots__ = ("_now", "_since", "accepts", "most", "wait_s")

    def __init__(self, most: int, wait_s: int) -> None:
        self.most, self.wait_s = most, wait_s
        self.accepts = True
        # The date of the next test, and of the first that looked at switches, Unix s.
        self._now = 0
        self._since: int | None = None

    def at(self, now: int) -> Leaves:
        """The same, for a test at a date, `now`, Unix s."""
        self._now = now
        return self

    def see(self, used: int) -> None:
        """Note below how many leaves, `used`, nodes were found; 0: they were looked at in vain."""
        self._since = self._now if self._since is None else self._since
        if used:
            self.accepts = used <= self.most or self._now - self._since >= self.wait_s


class Tree:
    """Switches in the order of topology.conf, the nodes below each, and who is above whom.

    optional: whether only jobs that ask for few leaves heed them (TopologyParam=TopoOptional).
    """

    def __init__(self, switches: Sequence[Switch], nodes: Nodes, *, optional: bool = False) -> None:
        self._optional = optional
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
        self._seen_by: Leaves | None = None

    def serves(self, need: Need) -> bool:
        """Whether a job's nodes are chosen by their switches."""
        return need.switches is not None or not self._optional

    def leaves_of(self, need: Need) -> Leaves | None:
        """Whether a job with a `need` takes what is found, from its submission on."""
        if need.switches is None:
            return None
        return Leaves(need.switches, need.switch_wait_s)

    def be_seen(self, leaves: Leaves | None) -> None:
        """Let `leaves` see the choices that are made by switches from now on."""
        self._seen_by = leaves

    def _tell(self, used: int) -> None:
        if self._seen_by is not None:
            self._seen_by.see(used)

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
        self._tell(0)
        if best is None:
            return None
        among = best[1]
        picking = Picking(need.count())
        for node in members(need.required):
            picking.take(Offer(node, cpus[node]))
        for node in self._in_turn(need.required, among, cpus):
            if picking.done or picking.full:
                break
            picking.take(Offer(node, cpus[node]))
        chosen = sum(1 << node for node in picking.chosen)
        self._tell(self._further(chosen, need.required))
        return chosen if picking.done or picking.enough else None

    def _further(self, chosen: Mask, required: Mask) -> int:
        """Leaves below which nodes are chosen, and none is required."""
        below = [self.below[leaf] for leaf in self.leaves]
        return sum(bool(each & chosen) and not each & required for each in below)

    def _in_turn(self, required: Mask, among: Mask, cpus: Sequence[int]) -> Iterator[int]:
        """Leaf after leaf: those of required nodes, then those with the fewest CPUs."""

        def key(leaf: int) -> tuple[bool, int]:
            inside = self.below[leaf] & among
            if inside & required:
                return False, 0
            return True, sum(cpus[node] for node in members(inside))

        for leaf in sorted((leaf for leaf in self.leaves if self.below[leaf] & among), key=key):
            yield from members(self.below[leaf] & among & ~required)

    # --- select/cons_res --------------------------------------------------------------------

    def choose_by_cpus(self, taking: Taking, rooms: Sequence[Room]) -> bool:
        """Take `rooms` below the lowest, tightest switch that suffices: the best leaf, the next ...

        taking: what is wanted. Returns whether the nodes taken suffice. After `_eval_nodes_topo`
        of select/cons_res.
        """
        self._tell(0)
        mask, required = sum(1 << room.node for room in rooms), taking.need.required
        inside = [below & mask for below in self.below]
        if required.bit_count() > taking.room or not any(not required & ~each for each in inside):
            return False
        # How much is taken below each switch: 1 more where something is required.
        taken = [int(bool(required & each)) for each in inside]
        for room in rooms:
            if room.required:
                taking.take(room)
                taken = [
                    had + room.cpus if each >> room.node & 1 else had
                    for had, each in zip(taken, inside, strict=True)
                ]
        if required and taking.done:
            return True
        left = {room.node: room for room in rooms if not room.required}
        inside = [each & ~required for each in inside]
        top = self._tightest(taking, inside, taken, left)
        if top is None or (required and not taken[top]):
            return False
        leaves = [k for k in self.leaves if inside[k] and not inside[k] & ~inside[top]]
        used = 0
        while leaves and taking.room > 0 and not taking.done:
            best = self._best_leaf(taking, leaves, inside, taken, left)
            leaves.remove(best)
            used += 1
            self._tell(used)
            offered = [left[node] for node in members(inside[best]) if node not in taking.chosen]
            while offered and taking.room > 0 and not taking.done:
                room = _best_node(taking, offered)
                offered.remove(room)
                taking.take(room)
        return taking.fed and taking.enough(0)

    def _tightest(
        self, taking: Taking, inside: Sequence[Mask], taken: Sequence[int], left: dict[int, Room]
    ) -> int | None:
        """The lowest switch that has enough, of equals the one with the fewest nodes."""
        best: int | None = None
        wanted = taking.need.wanted if taking.need.wanted > taking.need.least else 0
        for k, nodes in enumerate(inside):
            count = nodes.bit_count()
            if _cpus_in(nodes, left) < taking.cpus or not taking.enough(count):
                continue
            if best is not None and inside[best].bit_count() < min(wanted, count):
                best = None
            if best is None:
                best = k
                continue
            before = self.level[best], inside[best].bit_count()
            is_better = (self.level[k], count) < before or (not taken[best] and taken[k])
            is_fuller = (self.level[k], count) == before and 0 < taken[best] < taken[k]
            if (is_better or is_fuller) and (not taken[best] or taken[k]):
                best = k
        return best

    def _best_leaf(
        self,
        taking: Taking,
        leaves: Sequence[int],
        inside: Sequence[Mask],
        taken: Sequence[int],
        left: dict[int, Room],
    ) -> int:
        """A leaf below which something is required, then the tightest, or the largest."""
        best, best_cpus, fits = leaves[0], 0, False
        for k in leaves:
            nodes = sum(1 << node for node in members(inside[k]) if node not in taking.chosen)
            cpus = _cpus_in(nodes, left)
            suffices = cpus >= taking.cpus and taking.enough(nodes.bit_count())
            is_better = (suffices and (not fits or cpus < best_cpus)) or (
                not suffices and cpus > best_cpus
            )
            is_fuller = cpus == best_cpus and 0 < taken[best] < taken[k]
            if k == leaves[0] or (
                (is_better or is_fuller or (not taken[best] and taken[k]))
                and (not taken[best] or taken[k])
            ):
                best, best_cpus, fits = k, cpus, suffices
        return best

    # --- select/cons_tres -------------------------------------------------------------------

    def choose_consumable(self, taking: Taking, rooms: Sequence[Room]) -> bool:
        """Light nodes first; among equal weights leaf after leaf, the nearest to those chosen.

        After `_eval_nodes_topo` of Slurm 22.05. Returns whether the nodes taken suffice.
        """
        self._tell(0)
        suffices = self._by_weight(taking, rooms)
        if suffices:
            chosen = sum(1 << node for node in taking.chosen)
            self._tell(sum(bool(self.below[leaf] & chosen) for leaf in self.leaves))
        return suffices

    def _by_weight(self, taking: Taking, rooms: Sequence[Room]) -> bool:
        required = [room for room in rooms if room.required]
        if len(required) > taking.room:
            return False
        for room in required:
            if not taking.offers(room):
                return False
            taking.take(room)
        top = self._top(taking, rooms)
        if top is None or any(not self.below[top] >> node & 1 for node in taking.chosen):
            return False
        if required and taking.done:
            return True
        if taking.room <= 0:
            return False
        reached = {
            room.node: room
            for room in rooms
            if self.below[top] >> room.node & 1 and not room.required and taking.offers(room)
        }
        light, left = _light_enough(taking, reached)
        if left is None:
            return False
        touched = taking.need.required
        for node in light:
            if taking.room > 0:
                taking.take(left[node])
            touched |= 1 << node
        if light and (taking.done or taking.room <= 0):
            return taking.done
        return self._leaf_by_leaf(taking, left, touched, top)

    def _top(self, taking: Taking, rooms: Sequence[Room]) -> int | None:
        """The highest switch that reaches what is required, or enough nodes, the lightest."""
        best, lightest = None, 0
        required = taking.need.required
        for k, below in enumerate(self.below):
            if required:
                if required & below and (best is None or self.level[k] > self.level[best]):
                    best = k
                continue
            inside = [room.weight for room in rooms if below >> room.node & 1]
            if inside and taking.enough(len(inside)):
                weight = min(inside)
                if best is None or (self.level[k] >= self.level[best] and weight <= lightest):
                    best, lightest = k, weight
        return best

    def _leaf_by_leaf(self, taking: Taking, left: dict[int, Room], touched: Mask, top: int) -> bool:
        """The rest of the leaves already used, then leaf after leaf."""
        among = sum(1 << node for node in left) | touched
        inside = [below & among & self.below[top] for below in self.below]
        inside[top] = self.below[top] & among
        counts = [nodes.bit_count() for nodes in inside]
        used = [k for k, below in enumerate(self.below) if below & self.below[top] & touched]
        for leaf in used:
            if leaf in self.leaves:
                for node in members(inside[leaf]):
                    if node in left and node not in taking.chosen:
                        taking.take(left[node])
                        if taking.done:
                            return True
        distances = [sum(self.distance(k, other) for other in used) for k in range(len(counts))]
        free = [leaf for leaf in self.leaves if leaf not in used]
        before = taking.nodes + 1
        while before != taking.nodes:
            before = taking.nodes
            nearest = self._nearest(free, distances, counts, taking.nodes)
            if nearest is None:
                break
            for k in range(len(distances)):
                distances[k] += self.distance(k, nearest)
            for node in members(inside[nearest]):
                if taking.room <= 0:
                    break
                if node in left and node not in taking.chosen:
                    taking.take(left[node])
                    if taking.done:
                        return True
            counts[nearest] = 0
        return taking.least <= 0 and taking.fed

    def _nearest(
        self, leaves: list[int], distances: list[int], counts: list[int], nodes: int
    ) -> int | None:
        """The leaf to take next: the one that fits best; a nearer one if it fits as well.

        counts: nodes below each switch. nodes: how many are still wanted.
        """
        best: int | None = None
        far = len(self.parent) ** 2
        for leaf in leaves:
            if not counts[leaf] or distances[leaf] >= far:
                continue
            if best is None:
                best = leaf
                continue
            better = self._compare(leaf, best, nodes, counts)
            nearer = distances[best] - distances[leaf]
            if (nearer > 0 and better >= 0) or (nearer == 0 and better > 0):
                best = leaf
        return best

    def _compare(self, one: int, other: int, nodes: int, counts: list[int]) -> int:
        """Whether one leaf is better than another: positive; as good: 0.

        The tightest that holds all is; if none does, the one below a switch that does, or, below
        the same switch, the larger one.
        """
        while True:
            fits, other_fits = counts[one] >= nodes, counts[other] >= nodes
            if fits and other_fits and counts[one] != counts[other]:
                return counts[other] - counts[one]
            if fits != other_fits:
                return 1 if fits else -1
            above, other_above = self._above(one), self._above(other)
            same = above == other_above or (above == one and other_above == other)
            if fits or same:
                return counts[one] - counts[other] or self.level[other] - self.level[one]
            one, other = above, other_above

    def _above(self, switch: int) -> int:
        return switch if self.parent[switch] < 0 else self.parent[switch]


def _cpus_in(nodes: Mask, rooms: dict[int, Room]) -> int:
    """What some nodes offer, in CPUs."""
    return sum(rooms[node].cpus for node in members(nodes))


def _best_node(taking: Taking, rooms: Sequence[Room]) -> Room:
    """The tightest node that holds all that is missing, or else the largest."""
    best, fits = rooms[0], rooms[0].cpus >= taking.cpus
    for room in rooms[1:]:
        suffices = room.cpus >= taking.cpus
        if suffices and (not fits or room.cpus < best.cpus):
            best, fits = room, True
        elif not suffices and room.cpus > best.cpus:
            best, fits = room, False
    return best


def _light_enough(
    taking: Taking, rooms: dict[int, Room]
) -> tuple[list[int], dict[int, Room] | None]:
    """Of the nodes in groups of growing weight: those of all groups but the last that is needed,
    and all of them; None: they do not suffice."""
    among: dict[int, Room] = {}
    light: list[int] = []
    for weight in sorted({room.weight for room in rooms.values()}):
        light = sorted(among)
        among |= {node: room for node, room in rooms.items() if room.weight == weight}
        if taking.fed_by(among.values()) and taking.enough(len(among)):
            return light, among
    return light, None


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

    def leaves_of(self, need: Need) -> Leaves | None:
        """The same as of a tree; but to ask for more than one leaf is in vain."""
        return super().leaves_of(need) if need.switches == 1 else None

    def _further(self, chosen: Mask, required: Mask) -> int:
        if self._counts_nodes:
            return (chosen & ~required).bit_count()
        return super()._further(chosen, required)

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
        return taking.least <= 0 and taking.fed
