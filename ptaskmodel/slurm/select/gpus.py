"""Generic resources of select/cons_tres: what a node offers with them, and what a job gets of them.

`Consumable` makes a `GpuOffer` of each node; `fitting` selects cores of it whenever it looks at the
node. Source: `gres_select_filter_remove_unusable`, `_select_cores` and
`gres_select_filter_sock_core` of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ptaskmodel.batch.machine.host_sets import Mask
from ptaskmodel.slurm.conf.facts import Gres, NodeLine
from ptaskmodel.slurm.jobs.gpus import GresAsk, amount_of
from ptaskmodel.slurm.jobs.needs import PER_GPU, Need
from ptaskmodel.slurm.jobs.record import Allocation
from ptaskmodel.slurm.select import cores
from ptaskmodel.slurm.select.fitting import dealt
from ptaskmodel.slurm.select.offers import InUse, Room, Selected, cpus_of_core, free_units


class GpuOffer:
    """What a node of a `line` offers a job of a `need`, which stays while nodes are taken.

    counts: free cores of each socket. cpus: that tasks may use. free: of each kind of `Need.asks`,
    the free units. usable: of each kind, the units that count, and the most that the job may use, 0
    being no limit. gpus: in all; near: as many as the job could use. whole_cpus: those
    that it uses of all cores.
    """

    __slots__ = (
        *("_known", "_need", "_order", "counts", "cpus", "free", "gpus", "line", "most", "near"),
        *("units", "whole_cpus"),
    )

    def __init__(
        self,
        need: Need,
        line: NodeLine,
        counts: tuple[int, ...],
        cpus: int,
        free: Sequence[int],
        usable: Sequence[tuple[int, int]],
    ) -> None:
        self._need, self.line, self.counts, self.free = need, line, counts, free
        self.cpus = cpus - (cpus % need.cpus_per_task if need.whole_tasks else 0)
        self.units = tuple(units for units, _ in usable)
        self.most = [most for _, most in usable]
        self.whole_cpus = sum(counts) * cpus_of_core(need, line)
        self.gpus = self.near = 0
        for ask, (units, most) in zip(need.asks, usable, strict=True):
            if ask.is_gpu:
                self.gpus += units
                self.near += min(units, most or units)
        # Units of sockets come first.
        self._order = sorted(range(len(free)), key=lambda k: need.asks[k].per_socket == 0)
        self._known: dict[tuple[object, ...], Selected] = {}

    def select(self, room: Room, left: Sequence[int], first: bool) -> Selected:
        """What it offers as a `room` of which some may be taken already.

        left: of each kind, the units that the job still lacks in all. first: whether nodes are
        chosen for the first time.
        """
        key = room.avail, room.units, room.counts, tuple(left), first
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._select(*key)
        return found

    def _select(
        self,
        avail: int,
        units: tuple[int, ...],
        counts: tuple[int, ...],
        left: tuple[int, ...],
        first: bool,
    ) -> Selected:
        need, each = self._need, self._need.cpus_per_task
        step, tasks = tasks_on(need, self.line.cpus)
        tasks = min(tasks, avail // each) if avail // each >= step else 0
        cpus, found, least, threads = avail, list(units), step, self.line.threads
        explicit, least_cores = False, 0
        for k in self._order if tasks else ():
            ask = need.asks[k]
            limit = self.most[k]
            if limit and 0 < left[k] < limit:
                limit = left[k]
            if limit and max(ask.per_node, ask.per_socket * max(need.sockets, 1)) > limit:
                return _NOTHING
            if ask.per_node and ask.per_task:
                if not least <= ask.per_node // ask.per_task <= tasks:
                    return _NOTHING
                if tasks > ask.per_node // ask.per_task:
                    tasks = limit
            with_cpus, given = _cpus_with(need, ask)
            explicit = explicit or given
            usable = self.free[k]
            if with_cpus:
                usable = min(usable, cpus // with_cpus, limit or cpus)
            if usable == 0 or max(ask.per_node, ask.per_task) > usable:
                return _NOTHING
            if ask.per_task:
                tasks = min(tasks, usable // ask.per_task)
            least, tasks = least // step * step, tasks // step * step
            if tasks == 0:
                return _NOTHING
            there = sum(counts)
            wanted, tasks = self._cores_wanted(least, tasks, there)
            bound = first or need.enforce_binding
            used = sum(map(bool, counts)) if bound else len(counts)
            if with_cpus:
                count = ask.per_node or ask.per_socket * used or ask.per_task * tasks or usable
                wanted = max(wanted, cores.cores_for(count * with_cpus, threads))
            if need.enforce_binding:
                wanted = max(wanted, used)
                if wanted * _threads(need, self.line) > cpus:
                    return _NOTHING
                least_cores = min(least_cores or wanted, wanted)
            if wanted > there:
                return _NOTHING
            if wanted < there:
                counts = kept(counts, wanted)
                # A core that goes takes all of its CPUs along, even from a last one in part.
                spared = cores.cores_for(cpus, threads) - wanted
                cpus -= max(0, spared) * threads
            if with_cpus:
                found[k] = min(found[k], cpus // with_cpus)
                if max(ask.per_node, ask.per_task) > found[k]:
                    return _NOTHING
        if not explicit and not (need.one_task_per_core and each == 1):
            cpus = min(cpus, tasks * each)
        if not tasks:
            return _NOTHING
        least_cpus = least_cores * cpus_of_core(need, self.line)
        return Selected(cpus, tuple(found), counts, least_cpus)

    def _cores_wanted(self, least: int, tasks: int, there: int) -> tuple[int, int]:
        """The cores for as many tasks as fit on those that are `there`, and how many tasks.

        If not even as many as must fit do, there may be one task less.
        """
        each, threads = self._need.cpus_per_task, _threads(self._need, self.line)
        if self._need.one_task_per_core:
            each = cores.cores_for(each, threads) * threads
        while tasks >= least:
            wanted = cores.cores_for(tasks * each, threads)
            if wanted <= there:
                return wanted, tasks
            tasks -= 1
        return tasks * each, tasks


_NOTHING = Selected(0, (), (), 0)


def _threads(need: Need, line: NodeLine) -> int:
    """How many threads of a core a job with a `need` may use on a node of a `line`."""
    return 1 if need.one_thread and need.memory_by_core else line.threads


def kept(counts: Sequence[int], cores: int) -> tuple[int, ...]:
    """Of the `counts` of cores of sockets those that stay where only so many `cores` do.

    Each time the fullest socket, the first of equals, loses one.
    """
    left = list(counts)
    for _ in range(sum(counts) - cores):
        left[left.index(max(left))] -= 1
    return tuple(left)


def offer_of(
    need: Need, line: NodeLine, sockets: Sequence[Mask], cpus: int, free_MiB: int, used: InUse
) -> GpuOffer | None:
    """What a node offers a job of a `need` with its generic resources; None: too little.

    line: of the node. sockets: free cores. cpus: that it offers. free_MiB: memory. used: units.
    """
    counts = tuple(each.bit_count() for each in sockets)
    limit_MiB = None if need.memory is None else free_MiB
    free = [free_units(ask, line, used) for ask in need.asks]
    usable = []
    for ask, units in zip(need.asks, free, strict=True):
        found = _usable(need, ask, line, units, cpus, sum(counts), limit_MiB)
        if found is None:
            return None
        usable.append(found)
    return GpuOffer(need, line, counts, cpus, free, usable)


def _cpus_with(need: Need, ask: GresAsk) -> tuple[int, bool]:
    """The CPUs that come with each unit; whether the job or the configuration says how many."""
    if ask.cpus_each:
        return ask.cpus_each, True
    if ask.tasks_each:
        return ask.tasks_each * need.cpus_per_task, False
    return ask.cpus_default, bool(ask.cpus_default)


def _usable(
    need: Need,
    ask: GresAsk,
    line: NodeLine,
    units: int,
    cpus: int,
    free_cores: int,
    free_MiB: int | None,
) -> tuple[int, int] | None:
    """How many of some free `units` a job may count on, and use at most (0: no limit).

    None: there are too few. free_MiB: None: memory does not count.
    """
    fewest = max(1, units if need.whole else ask.per_node, ask.per_socket)
    fewest = max(fewest, ask.per_task * (need.tasks_per_node or 0))
    with_cpus, _ = _cpus_with(need, ask)
    if with_cpus and max(1, ask.per_node, ask.per_task, ask.per_socket) > cpus // with_cpus:
        return None
    most = 0
    if ask.memory_each and free_MiB is not None:
        most = free_MiB // ask.memory_each
        units = min(units, most)
        if not most:
            return None
    if not need.whole:
        for limit in (ask.per_node, ask.per_job):
            if limit and (not most or most > limit):
                most = limit
                break
    if with_cpus and not (ask.tasks_each and need.whole):
        limit = free_cores * line.threads // with_cpus
        if not limit:
            return None
        most = min(most or limit, limit)
    return None if units < fewest or 0 < most < fewest else (units, most)


def tasks_on(need: Need, unlimited: int) -> tuple[int, int]:
    """How many tasks of a job with a `need` a node must hold, and may; unlimited: any number."""
    if need.tasks_per_node:
        return need.tasks_per_node, need.tasks_per_node
    if any(ask.tasks_each for ask in need.asks):
        each = need.tasks_asked // max(need.least, 1)
        return each, each
    if need.tasks_on_one:
        return need.tasks_on_one, need.tasks_on_one
    return 1, 1 if need.tasks_asked == 1 or need.one_task_each else unlimited


def cpus_and_tasks(
    need: Need, chosen: Sequence[Room], threads: Sequence[int]
) -> tuple[list[int], list[int]]:
    """The CPUs and the tasks that a job of a `need` gets of each of the nodes `chosen`.

    threads: CPUs of a core of each.
    """
    if need.whole:
        return [room.whole_cpus for room in chosen], [0] * len(chosen)
    per_task = [(k, ask.per_task) for k, ask in enumerate(need.asks) if ask.per_task]
    limits = None
    if per_task:
        limits = [min(room.units[k] // each for k, each in per_task) for room in chosen]
    tasks: list[int] = []
    cpus = dealt(need, [room.whole_cpus for room in chosen], threads, limits, tasks)
    for k, room in enumerate(chosen):
        cpus[k] = max(cpus[k], min(room.least_cpus, room.whole_cpus))
    return cpus, tasks


def lacks_cores(need: Need, line: NodeLine, taken: Mask, cpus: int) -> bool:
    """Return whether fewer cores are `taken` for the GPUs of a `need` than so many `cpus` want.

    line: of the node. Then Slurm holds the job ("sync loop not progressing").
    """
    return not need.block and taken.bit_count() * cpus_of_core(need, line) < cpus


class _Node(NamedTuple):
    """A node that a job takes: how many units are free, its tasks and cores there."""

    line: NodeLine
    free: int
    tasks: int
    cores: Mask


def _units_of_nodes(
    need: Need,
    asks: Sequence[GresAsk],
    tasks: Sequence[int],
    cores_held: Sequence[Mask],
    lines: Sequence[NodeLine],
    used: Sequence[InUse],
) -> list[list[int]]:
    """How many units of each kind, of some `asks`, a job is given of each node that it takes.

    tasks, cores_held: its tasks and cores there. lines, used: of each node, its line and the units
    in use. Of units without types it may be given more than are free.
    Source: `gres_select_filter_select_and_set`.
    """
    columns = []
    for ask in asks:
        free = [free_units(ask, line, units) for line, units in zip(lines, used, strict=True)]
        nodes = list(map(_Node, lines, free, tasks, cores_held))
        counts = _counts(need, ask, nodes)
        for k, node in enumerate(nodes):
            if _has_types(ask, node.line):
                counts[k] = min(counts[k], node.free)
        columns.append(counts)
    return columns


def _by_type(ask: GresAsk, line: NodeLine, used: InUse, count: int) -> Iterator[Gres]:
    """So many units of a node, the first that are free if any type will do."""
    if ask.type is not None or not _has_types(ask, line):
        yield Gres(ask.name, ask.type, count)
        return
    for one in line.gres:
        if one.name == ask.name:
            more = min(count, one.count - used.get((one.name, one.type), 0))
            count -= more
            yield Gres(one.name, one.type, more)


def _has_types(ask: GresAsk, line: NodeLine) -> bool:
    """Whether the units of a node have types: then each is known, otherwise they are counted."""
    return any(one.type is not None for one in line.gres if one.name == ask.name)


def _counts(need: Need, ask: GresAsk, nodes: Sequence[_Node]) -> list[int]:
    """How many units a job is given of each node."""
    if need.whole:
        return [node.free for node in nodes]
    if ask.per_node:
        return [ask.per_node] * len(nodes)
    if ask.per_socket:
        return [ask.per_socket * _sockets_of(ask, node) for node in nodes]
    if ask.per_task:
        return [ask.per_task * node.tasks for node in nodes]
    return _of_job(need, ask, nodes)


def _sockets_of(ask: GresAsk, node: _Node) -> int:
    """How many sockets a job has on a node; units that are only counted come with cores."""
    if not _has_types(ask, node.line):
        return node.cores.bit_count()
    return sum(map(bool, cores.of_sockets(node.line, node.cores)))


def _of_job(need: Need, ask: GresAsk, nodes: Sequence[_Node]) -> list[int]:
    """How many units of those that a job asks for in all it gets of each node.

    At least one stays for each node that follows. Where fewer than that are left, units without
    types are given as many as are free. Of units with types, what the CPUs of nodes do not allow is
    dealt in the end.
    """
    each = ask.cpus_each or ask.tasks_each * need.cpus_per_task
    left, counts = ask.per_job, []
    for k, node in enumerate(nodes):
        most = left - (len(nodes) - 1 - k)
        if most < 0 < ask.per_job and not _has_types(ask, node.line):
            most = node.free
        most = min(node.free, most)
        if each and _has_types(ask, node.line):
            most = min(most, node.cores.bit_count() * node.line.threads // each)
        counts.append(max(most, 0))
        left -= counts[-1]
    for k, node in enumerate(nodes):
        if left > 0 and _has_types(ask, node.line):
            more = min(node.free - counts[k], left)
            counts[k] += more
            left -= more
    return counts


def with_units(
    need: Need,
    held: Allocation,
    tasks: Sequence[int],
    lines: Sequence[NodeLine],
    used: Sequence[InUse],
) -> Allocation:
    """What a job of a `need` gets with its generic resources, and the memory that comes with them.

    held: its nodes, cores and CPUs. tasks: of each of these. lines, used: of all nodes, as
    `_units_of_nodes` has them.
    """
    asks = need.asks or [GresAsk(one.name, one.type, 0, one.count) for one in need.gres]
    if not asks:
        return held
    nodes = cores.nodes_in(held.nodes)
    lines, used = [lines[node] for node in nodes], [used[node] for node in nodes]
    counts = _units_of_nodes(need, asks, tasks, held.cores, lines, used)
    gres = []
    for k, (line, units) in enumerate(zip(lines, used, strict=True)):
        found: list[Gres] = []
        for ask, column in zip(asks, counts, strict=True):
            # Of units that are only counted a node notes none if a job is given more than are free.
            count = column[k] if column[k] <= free_units(ask, line, units) else 0
            found.extend(_by_type(ask, line, units, count))
        gres.append(tuple(found))
    if need.memory is None or need.memory[0] != PER_GPU:
        return held._replace(gres=tuple(gres))
    memory = [_memory_with(need, line, row) for line, *row in zip(lines, *counts, strict=True)]
    return held._replace(gres=tuple(gres), memory_MiB=tuple(memory))


def _memory_with(need: Need, line: NodeLine, counts: Sequence[int]) -> int:
    """The memory that comes with so many units of each kind that a node gives, MiB."""
    if need.whole:
        counts = [amount_of(Gres(ask.name, None, 1), line.gres) for ask in need.asks]
    return sum(ask.memory_each * n for ask, n in zip(need.asks, counts, strict=True))
