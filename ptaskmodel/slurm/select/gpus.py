"""What an available node offers a job that asks for GPUs in all, for each task or socket, with CPUs
or with memory, and how many it gets of each.

`Consumable` asks for jobs that have `Need.asks`; others ask for a number of each node alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from ptaskmodel.batch.machine.host_sets import Mask
from ptaskmodel.slurm.conf.facts import Gres, NodeLine
from ptaskmodel.slurm.jobs.gpus import GresAsk, amount_of
from ptaskmodel.slurm.jobs.needs import PER_GPU, Need
from ptaskmodel.slurm.jobs.record import Allocation
from ptaskmodel.slurm.select import cores
from ptaskmodel.slurm.select.fitting import dealt
from ptaskmodel.slurm.select.offers import InUse, Offered, Room, cpus_of_core


def with_gpus(
    need: Need, line: NodeLine, sockets: Sequence[Mask], cpus: int, free_MiB: int, used: InUse
) -> Offered | None:
    """What a node with so many `cpus` offers a job of a `need` with its GPUs; None: too little.

    line: of the node. sockets: free cores. free_MiB: memory. used: GPUs.
    Source: `gres_select_filter_remove_unusable`, `gres_select_filter_sock_core`.
    """
    free_cores = sum(each.bit_count() for each in sockets)
    limit_MiB = None if need.memory is None else free_MiB
    filtered = [
        _usable(need, ask, line, _free_units(ask, line, used), cpus, free_cores, limit_MiB)
        for ask in need.asks
    ]
    units, most = [0] * len(filtered), [0] * len(filtered)
    for k, one in enumerate(filtered):
        if one is None:
            return None
        units[k], most[k] = one
    gpus = sum(count for ask, count in zip(need.asks, units, strict=True) if ask.is_gpu)
    near = sum(
        min(count, limit or count)
        for ask, count, limit in zip(need.asks, units, most, strict=True)
        if ask.is_gpu
    )
    of_whole = free_cores * cpus_of_core(need, line)
    least, tasks = _tasks_on(need, line)
    each = need.cpus_per_task
    cpus -= cpus % each if need.whole_tasks else 0
    tasks = min(tasks, cpus // each) if cpus // each >= least else 0
    step, explicit, wanted = least, False, 0
    active = sum(map(bool, sockets))
    for k, ask in enumerate(need.asks):
        limit = min(most[k], ask.per_job or most[k])
        if limit and max(ask.per_node, ask.per_socket * max(need.sockets, 1)) > limit:
            return None
        if ask.per_node and ask.per_task:
            if not least <= ask.per_node // ask.per_task <= tasks:
                return None
            tasks = limit
        with_cpus, given = _cpus_with(need, ask)
        explicit = explicit or given
        usable = _free_units(ask, line, used)
        if with_cpus:
            usable = min(usable, cpus // with_cpus, limit or cpus)
        if usable == 0 or max(ask.per_node, ask.per_task) > usable:
            return None
        if ask.per_task:
            tasks = min(tasks, usable // ask.per_task)
        least, tasks = least // step * step, tasks // step * step
        if tasks == 0:
            return None
        wanted, tasks = _cores_wanted(need, line, least, tasks, free_cores)
        if with_cpus:
            count = ask.per_node or ask.per_socket * active or ask.per_task * tasks or usable or 1
            wanted = max(wanted, cores.cores_for(count * with_cpus, line.threads))
        if need.enforce_binding:
            wanted = max(wanted, active)
        if wanted > free_cores or (
            need.enforce_binding and wanted * cpus_of_core(need, line) > cpus
        ):
            return None
        # A core that is not wanted takes all of its CPUs along, even from a last one in part.
        spared = cores.cores_for(cpus, line.threads) - wanted
        cpus -= max(0, spared) * line.threads
        free_cores = wanted
        if with_cpus:
            units[k] = min(units[k], cpus // with_cpus)
            if max(ask.per_node, ask.per_task) > units[k]:
                return None
    if not explicit:
        cpus = min(cpus, tasks * each)
    if need.whole:
        return Offered(cpus, of_whole, 0, tuple(units), gpus, near)
    least_cpus = wanted * cpus_of_core(need, line) if need.enforce_binding else 0
    return Offered(cpus, free_cores * line.threads, least_cpus, tuple(units), gpus, near)


def _free_units(ask: GresAsk, line: NodeLine, used: InUse) -> int:
    """How many units of a kind are free on a node."""
    taken = sum(
        count
        for (name, kind), count in used.items()
        if name == ask.name and (ask.type is None or kind in (None, ask.type))
    )
    return amount_of(Gres(ask.name, ask.type, 1), line.gres) - taken


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


def _tasks_on(need: Need, line: NodeLine) -> tuple[int, int]:
    """How many tasks of a job a node must hold, and may."""
    unlimited = line.cpus
    if need.tasks_per_node:
        return need.tasks_per_node, need.tasks_per_node
    if any(ask.tasks_each for ask in need.asks):
        each = need.tasks_asked // max(need.least, 1)
        return each, each
    if need.most == 1:
        return (need.tasks_asked, need.tasks_asked) if need.tasks_asked else (1, unlimited)
    if need.tasks_asked == 1 or need.tasks_asked == need.least == need.most:
        return 1, 1
    return 1, unlimited


def _cores_wanted(
    need: Need, line: NodeLine, least: int, tasks: int, free_cores: int
) -> tuple[int, int]:
    """The cores for as many tasks as fit on some free ones, and how many tasks."""
    threads = cpus_of_core(need, line)
    each = need.cpus_per_task
    if need.one_thread and each % threads:
        each += threads - each % threads
    while True:
        wanted = cores.cores_for(tasks * each, threads)
        if wanted <= free_cores or tasks <= least:
            return wanted, tasks
        tasks -= 1


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


class _Node(NamedTuple):
    """A node that a job takes: how many units are free, its tasks and cores there."""

    line: NodeLine
    free: int
    tasks: int
    cores: Mask


def units_of_nodes(
    need: Need,
    tasks: Sequence[int],
    cores_held: Sequence[Mask],
    lines: Sequence[NodeLine],
    used: Sequence[InUse],
) -> tuple[tuple[Gres, ...], ...]:
    """The GPUs that a job of a `need` gets of each node that it takes.

    tasks, cores_held: its tasks and cores there. lines, used: of each node, its line and the units
    in use. A node whose GPUs have no types notes none if a job is given more than are free.
    Source: `gres_select_filter_select_and_set` and `_job_alloc`.
    """
    columns = []
    for ask in need.asks or [GresAsk(one.name, one.type, 0, one.count) for one in need.gres]:
        free = [_free_units(ask, line, units) for line, units in zip(lines, used, strict=True)]
        nodes = list(map(_Node, lines, free, tasks, cores_held))
        counts = _counts(need, ask, nodes)
        for k, node in enumerate(nodes):
            if counts[k] > node.free:
                counts[k] = node.free if _has_types(ask, node.line) else 0
        found = zip(lines, used, counts, strict=True)
        columns.append([_by_type(ask, line, units, count) for line, units, count in found])
    return tuple(tuple(chain.from_iterable(row)) for row in zip(*columns, strict=True))


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

    At least one stays for each node that follows. Of units with types, what the CPUs of nodes do
    not allow is dealt in the end.
    """
    each = ask.cpus_each or ask.tasks_each * need.cpus_per_task
    left, counts = ask.per_job, []
    for k, node in enumerate(nodes):
        most = min(node.free, left - (len(nodes) - 1 - k))
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
    `units_of_nodes` has them.
    """
    if not need.gres:
        return held
    nodes = cores.nodes_in(held.nodes)
    lines, used = [lines[node] for node in nodes], [used[node] for node in nodes]
    gres = units_of_nodes(need, tasks, held.cores, lines, used)
    if need.memory is None or need.memory[0] != PER_GPU:
        return held._replace(gres=gres)
    memory = [_memory_with(need, line, units) for line, units in zip(lines, gres, strict=True)]
    return held._replace(gres=gres, memory_MiB=tuple(memory))


def _memory_with(need: Need, line: NodeLine, gres: Sequence[Gres]) -> int:
    """The memory that comes with the GPUs of a node, MiB."""
    assert need.memory is not None
    assert need.memory[0] == PER_GPU
    if need.whole:
        return sum(
            ask.memory_each * amount_of(Gres(ask.name, None, 1), line.gres) for ask in need.asks
        )
    each = {ask.name: ask.memory_each for ask in need.asks}
    return sum(each[one.name] * one.count for one in gres)
