"""select/cons_res: as cons_tres, but for the choice of nodes, which weighs them in another way.

A start looks at the lightest nodes first, then at the next ones too, as select/linear does; among
those that it looks at, and in backfill's plans, weights do not count. `fitting` is the same choice
for cons_tres. Source: `_eval_nodes` and its variants, `choose_nodes` and `dist_tasks_compute_c_b`
of select/cons_res in Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ptaskmodel.batch.machine.host_sets import Mask
from ptaskmodel.slurm.conf.facts import NEVER, Conf, NodeLine, Nodes
from ptaskmodel.slurm.jobs.needs import Need
from ptaskmodel.slurm.jobs.record import Allocation
from ptaskmodel.slurm.select.consumable import Consumable
from ptaskmodel.slurm.select.cores import Used
from ptaskmodel.slurm.select.fitting import Style, by_runs, tasks_to_deal
from ptaskmodel.slurm.select.linear import by_weight, split
from ptaskmodel.slurm.select.occupancy import keeps_nodes
from ptaskmodel.slurm.select.offers import Room, Taking
from ptaskmodel.slurm.select.switches import Leaves, Tree


class ConsRes(Consumable):
    """What runs where, and where a job could: on `nodes` of `conf`, below a `tree` of switches."""

    def __init__(self, conf: Conf, nodes: Nodes, tree: Tree | None = None) -> None:
        super().__init__(conf, nodes, tree)
        # Whether nodes of one weight are looked at together, whatever a job asks for.
        self._preempts = conf.preempt_type != NEVER
        self._joins = self._preempts or tree is not None

    def _start(
        self, need: Need, within: Mask, leaves: Leaves | None, counted: Mask
    ) -> Allocation | None:
        """Where a job can start, on nodes of as little weight as may be."""
        sets = self.nodes.sets
        if counted:
            sets = split(sets, need.nodes, counted)
        unshared = keeps_nodes(need)
        idle_only = unshared and not self._preempts
        closed = self._taken.nodes if idle_only else self._taken.whole
        if self._gang and not self._preempts:
            closed = 0  # nodes whose jobs are all suspended are idle, and others are left out
        joined = need.joined and (self._joins or not unshared)
        for nodes, last in by_weight(sets, joined=joined):
            among = within & (need.required | nodes)
            least = need.least if last else max(need.least, need.wanted)
            if (last and self._preempts) or (among & need.nodes & ~closed).bit_count() >= least:
                # Those that are not idle do not count when it is asked what fits if all were free.
                kept = among & (need.required | ~self._taken.nodes) if idle_only else among
                found = self.place(need, kept, leaves=leaves)
                if found is not None:
                    return found
        return None

    def _least_cpus(self, need: Need) -> int:
        """One that is spread counts those of named nodes twice."""
        return need.cpus // 2 if need.spread and need.required else need.cpus

    def _least_tasks(self, need: Need) -> int:
        return need.tasks_per_node or 1

    def _weight(self, node: int) -> int:
        return 0

    def _fit(self, need: Need, rooms: Sequence[Room], busy: Used | None) -> list[Room] | None:
        if sum(room.cpus for room in rooms) < self._least_cpus(need):
            return None
        return fit(need, rooms, self._style, busy)

    def _deal(self, need: Need, offered: Sequence[int], threads: Sequence[int]) -> list[int]:
        return in_rounds(need, offered)

    def _sockets(self, need: Need, line: NodeLine, free: Mask, own: Mask | None) -> list[Mask]:
        """The free cores of each socket; MaxCPUsPerNode takes cores of those with the fewest."""
        sockets = super()._sockets(need, line, free, own)
        most = need.partition.max_cpus_per_node
        if most is None or need.whole or need.of_user:
            return sockets
        held = 0 if own is None else own & ~free
        counts = [each.bit_count() for each in sockets]
        over = sum(counts) + held.bit_count() - most // line.threads
        while over > 0 and any(counts):
            fewest = min((k for k, count in enumerate(counts) if count), key=counts.__getitem__)
            gone = min(over, counts[fewest])
            counts[fewest] -= gone
            over -= gone
        return [_lowest(each, count) for each, count in zip(sockets, counts, strict=True)]


def in_rounds(need: Need, offered: Sequence[int]) -> list[int]:
    """CPUs on each node, in order of index: a task on each that has room, round after round.

    offered: the CPUs that a job with a `need` may use of each node. Tasks without room anywhere
    take what is left, so a node that has room for no task may get nothing.
    """
    step, given = need.cpus_per_task, [0] * len(offered)
    left = tasks_to_deal(need, len(offered))
    while left > 0 and sum(given) < sum(offered):
        rooms = [(total - taken) // step for total, taken in zip(offered, given, strict=True)]
        turn = ([k for k, room in enumerate(rooms) if room] or [*range(len(rooms))])[:left]
        times = max(min(left // len(turn), *(rooms[k] for k in turn)), 1)
        for k in turn:
            given[k] = min(given[k] + times * step, offered[k])
        left -= times * len(turn)
    return given


def _lowest(cores: Mask, count: int) -> Mask:
    """The lowest so many cores of some."""
    while cores.bit_count() > count:
        cores ^= 1 << cores.bit_length() - 1
    return cores


def fit(
    need: Need, rooms: Sequence[Room], style: Style, busy: Sequence[int] | None
) -> list[Room] | None:
    """The nodes of a job with a `need` among `rooms`, in order of index; see `fitting.fit`.

    The rooms have as many CPUs as it asks for at least.
    style: how nodes are chosen. busy: of each node, how many jobs it has today, where those come
    first. If they do not suffice as they are chosen, it is tried again without those that offer
    least, as long as the others offer enough. Where busy nodes come first, or a job is spread, that
    leaves out only nodes before the first and after the last of the others.
    """
    most = need.most
    if need.tasks_asked and most > need.tasks_asked:
        most = max(need.tasks_asked, need.least)
    if len(rooms) < need.least:
        return None

    def attempt(among: Sequence[Room]) -> list[Room] | None:
        if len(among) < need.least:
            return None
        if need.spread or (busy is not None and not need.contiguous):
            among = [room for room in rooms if among[0].node <= room.node <= among[-1].node]
        taking = Taking(need, need.least, most, fewest=1)
        if not _taken(taking, among, style, busy):
            return None
        return sorted(taking.chosen.values(), key=lambda room: room.node)

    found = attempt(rooms)
    if found is not None:
        return found
    left, cpus = list(rooms), sum(room.cpus for room in rooms)
    for fewest in range(1, max(room.cpus for room in rooms)):
        poor = [room for room in left if 0 < room.cpus <= fewest and not room.required]
        dropped, over = 0, False
        for room in poor:
            cpus -= room.cpus
            over = cpus < need.cpus
            if over:
                break
            left.remove(room)
            dropped += 1
            over = len(left) <= need.least or cpus == need.cpus
            if over:
                break
        if dropped:
            found = attempt(left)
            if found is not None or over:
                return found
    return None


def _taken(taking: Taking, rooms: Sequence[Room], style: Style, busy: Sequence[int] | None) -> bool:
    """Take nodes by the rule that applies; whether they suffice."""
    need = taking.need
    if need.spread:
        return _spread(taking, rooms)
    if busy is not None and not need.contiguous:
        return _busy_first(taking, rooms, busy)
    if style.least_loaded or need.partition.lln:
        return _whole(taking, rooms, sorted(rooms, key=lambda room: -room.free))
    if style.serial_at_end and need.cpus == 1 and need.wanted == 1:
        return _whole(taking, rooms, rooms[::-1])
    if style.tree is not None and style.tree.serves(need):
        return style.tree.choose_by_cpus(taking, rooms)
    return by_runs(taking, rooms) or (taking.fed and taking.enough(0))


def _busy_first(taking: Taking, rooms: Sequence[Room], busy: Sequence[int]) -> bool:
    """Take nodes that jobs have, then idle ones: of both kinds the first even if it is too many."""
    _whole(taking, [room for room in rooms if room.required], ())
    for idle in (False, True):
        for room in rooms:
            if taking.room > 0 and not room.required and (busy[room.node] == 0) == idle:
                taking.take_whole(room)
                if taking.done:
                    break
    return taking.fed and taking.least <= 0


def _spread(taking: Taking, rooms: Sequence[Room]) -> bool:
    """Take as many nodes as may be; those that must be are counted twice, as by slurmctld."""
    for room in [*(room for room in rooms if room.required), *rooms]:
        if taking.room <= 0:
            break
        taking.take_whole(room)
    return taking.fed and taking.least <= 0


def _whole(taking: Taking, rooms: Sequence[Room], order: Iterable[Room]) -> bool:
    """Take nodes in an order, those that must be first, with all that each offers."""
    required = [room for room in rooms if room.required]
    for room in [*required, *(room for room in order if not room.required)]:
        if taking.room <= 0 or (taking.done and not room.required):
            break
        taking.take_whole(room)
    return taking.fed and taking.least <= 0
