"""The nodes that a job needs in one partition, with all defaults and limits applied.

MaxMemPerCPU and MaxMemPerNode apply at submission, as in Slurm 22.05: a job may get more CPUs with
its memory, or wait for ever. A partition's limit replaces the cluster's; of the two limits, the one
per CPU is used first. Where CPUs and memory of nodes count, those of the partition's first node are
used.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from math import ceil, inf
from typing import NamedTuple

from ptaskmodel.batch.machine.host_sets import Mask, members, of_hosts
from ptaskmodel.slurm.conf.facts import EXCLUSIVE, FORCE, LINEAR, YES, Conf, Gres, Nodes, Partition
from ptaskmodel.slurm.jobs import gpus
from ptaskmodel.slurm.jobs.gpus import GresAsk, amount_of
from ptaskmodel.slurm.jobs.request import (
    OF_USER,
    UNBOUNDED,
    WHOLE_NODES,
    Feature,
    JobRequest,
    constraint_of,
    has_all,
)

# Memory that is asked for: of each node, for each CPU or GPU, or all that a node has.
PER_NODE, PER_CPU, PER_GPU, ALL = "node", "cpu", "gpu", "all"
# How a job goes with others on its nodes, under cons_tres: nobody else; jobs on other cores; jobs
# on the same cores.
EXCLUSIVELY, BESIDE_OTHERS, OVER_OTHERS = "exclusively", "beside others", "over others"
ONE_TASK_PER_CORE = "CR_ONE_TASK_PER_CORE"
YEAR_S = 365 * 86_400
_UNITS = frozenset(
    f"CR_{unit}{memory}" for unit in ("CPU", "CORE", "SOCKET") for memory in ("", "_MEMORY")
) | {"CR_MEMORY"}


class Wanted(NamedTuple):
    """How many: at least ``least`` nodes and ``cpus`` CPUs, ``nodes`` if they are there, not more
    than ``most``.
    """

    cpus: int
    least: int
    nodes: int
    most: int
    contiguous: bool = False


@dataclass(slots=True, eq=False)  # not frozen: that would take six times as long to make
class Need:
    """What a job needs in a partition; no field changes.

    nodes: those of the partition with the shape, features and memory that it needs, up.
    cpus: the least in all. whole: whether it takes all CPUs of its nodes. of_user: whether it
    shares them with jobs of its user alone, as it asks. share: how many jobs may
    run where it does (1: none beside it). hoped: how many where backfill of select/linear plans it,
    whatever it asks for. force: whether they share whatever they asked for.
    sharing: the same as cons_tres sees it. tasks_asked: 0 if it did not say; tasks_on_one: those of
    a job that asked for one node; one_task_each: whether it asked for as many nodes as tasks.
    cpus_per_node: the least on each, without those of MaxMemPerCPU.
    memory: (kind, MiB), None where it is not counted; memory_by_core: of one CPU of each core.
    gres: the least on each node. asks: what it asks for of GPUs, if that is not a number of each
    node alone. cpus_for_gpus, cpus_for_gpus_of_node: the CPUs that its GPUs want in all, and of
    each node. whole_tasks: whether nodes with GPUs offer CPUs for whole tasks, as they do where
    CPUs have memory by default. one_task_per_core: with GPUs, whether tasks share no core.
    limit_s: None: unlimited.
    ways: the same with nodes of one kind each, of which the first will do that can be had. joined:
    whether a start may look at all nodes of one weight together, whatever lines they are of.
    portions: how many nodes it asks for of some: which, how many, whether others than before.
    kind: shared by those that differ in their limits alone: they are placed alike.
    """

    partition: Partition
    nodes: Mask
    required: Mask
    least: int
    wanted: int
    most: int
    cpus: int
    cpus_per_task: int
    tasks: int
    tasks_asked: int
    tasks_on_one: int
    tasks_per_node: int | None
    cpus_per_node: int
    whole: bool
    of_user: bool
    share: int
    hoped: int
    force: bool
    sharing: str
    memory: tuple[str, int] | None
    gres: tuple[Gres, ...]
    one_thread: bool
    block: bool
    contiguous: bool
    spread: bool
    switches: int | None
    switch_wait_s: int
    limit_s: int | None
    least_limit_s: int | None
    kind: Hashable = field(default_factory=object)
    ways: tuple[Need, ...] = ()
    joined: bool = True
    portions: tuple[tuple[Mask, int, bool], ...] = ()
    asks: tuple[GresAsk, ...] = ()
    cpus_for_gpus: int = 0
    cpus_for_gpus_of_node: int = 0
    enforce_binding: bool = False
    one_task_per_core: bool = False
    whole_tasks: bool = False
    sockets: int = 0
    cores_per_socket: int = 1
    tasks_per_socket: int | None = None
    tasks_per_core: int | None = None
    memory_by_core: bool = False
    one_task_each: bool = False

    @property
    def shaped(self) -> bool:
        """Whether it asks for sockets, for cores of each, or for tasks of each socket or core."""
        asked = self.sockets or self.tasks_per_socket or self.tasks_per_core
        return bool(asked) or self.cores_per_socket > 1

    @property
    def owns(self) -> bool:
        """Whether no other user's job may run on its nodes, as it or its partition says."""
        return self.of_user or self.partition.exclusive_user

    def count(self) -> Wanted:
        """How many nodes and CPUs, for the choice."""
        return Wanted(self.cpus, self.least, self.wanted, self.most, self.contiguous)

    @property
    def planned_limit_s(self) -> int | None:
        """The limit with which backfill plans and starts it; None: none."""
        return self.limit_s if self.least_limit_s is None else self.least_limit_s

    def before(self, deadline_s: int) -> int | None:
        """Its limit, s, where a deadline is `deadline_s` away: whole minutes until then."""
        until_s = deadline_s // 60 * 60 or None
        given = [each for each in (self.limit_s, until_s) if each is not None]
        return min(given, default=None)

    @property
    def planned_s(self) -> int:
        """For how long backfill plans it, s."""
        if self.least_limit_s is not None:
            return self.least_limit_s
        return YEAR_S if self.limit_s is None else self.limit_s


def need_of(
    request: JobRequest,
    partition: Partition,
    conf: Conf,
    nodes: Nodes,
    min_nodes: int = 1,
    exclusive: bool = False,
    kind: Hashable = None,
) -> Need:
    """What a job needs in a partition. Raises SlurmError for a node that is unknown.

    min_nodes: the least MinNodes of its partitions, which it asks for at least. exclusive: whether
    the first of them has made it take whole nodes. kind: see `Need`; None: one of its own.
    """
    linear = conf.select_type == LINEAR
    tasks = request.tasks
    least, most = request.nodes_asked(min_nodes)
    ranged = request.min_nodes is not None and most > least
    if request.spread and request.max_nodes is None and tasks:
        most, ranged = min(len(nodes), tasks), True
    if request.tasks_per_node and tasks is not None:
        least = max(least, ceil(tasks / request.tasks_per_node))
    possible = least <= most
    required = nodes.mask(request.nodelist)
    usable = nodes.usable & nodes.partitions[partition.name]
    limit = limit_min(request, partition)
    one_task = ONE_TASK_PER_CORE in conf.select_parameters
    of_parts = request.tasks_per_socket or request.one_thread
    of_core = request.tasks_per_core or (one_task and of_parts and 1) or None
    if required:
        least, most = (max(each, required.bit_count()) for each in (least, most))
    asked = request.fewer_tasks or tasks or 0
    if tasks is None:
        asked = request.least_nodes * (request.tasks_per_node or 0)
        tasks = max(request.least_nodes, least) * (request.tasks_per_node or 1)
    one_each = asked == least == most and bool(request.min_nodes or request.max_nodes)
    if partition.max_nodes is not None:
        most = min(most, partition.max_nodes)
    exclusive = exclusive or partition.over_subscribe == EXCLUSIVE
    whole = linear or exclusive or request.exclusive == WHOLE_NODES
    fitting = nodes_fitting(request, partition, nodes, conf)
    each = (request.tasks_per_node or 1) if asked > 1 else 1
    need = Need(
        partition,
        fitting if possible and not required & usable & ~fitting else 0,
        required,
        least,
        min(most, UNBOUNDED) if ranged else least,
        most,
        tasks * request.cpus_per_task if request.least_cpus is None else request.least_cpus,
        request.cpus_per_task,
        tasks,
        asked,
        asked if request.max_nodes == 1 else 0,
        request.tasks_per_node,
        max(request.cpus_per_task // request.cpus_raised * each, request.least_cpus_per_node),
        whole,
        request.exclusive == OF_USER,
        _share(request, partition),
        max(_share(request, partition), 2),
        partition.over_subscribe == FORCE,
        _sharing(request, partition),
        _memory(request, partition, conf),
        request.gres,
        request.one_thread or ((of_core or one_task) == 1 and request.cpus_per_task == 1),
        _block(request, conf, partition),
        request.contiguous,
        request.spread,
        request.switches,
        min(conf.scheduler.max_switch_wait_s, request.switch_wait_s or UNBOUNDED),
        None if limit == inf else int(limit) * 60,
        None if request.time_min_min is None else request.time_min_min * 60,
        object() if kind is None else kind,
        sockets=request.sockets_per_node or 0,
        cores_per_socket=request.cores_per_socket or 1,
        tasks_per_socket=request.tasks_per_socket,
        tasks_per_core=of_core,
        memory_by_core=request.one_thread,
        one_task_each=one_each,
    )
    need = _with_gpus(
        need, request, conf, max(request.nodes_asked(min_nodes)[0], required.bit_count())
    )
    asked_of = constraint_of(request)
    if not asked_of.ways and not asked_of.portions:
        return need
    kinds = [need.nodes & _with_feature(way, nodes) for way in asked_of.ways]
    joined = len(kinds) - kinds.count(0) <= 1
    ways = tuple(
        replace(need, nodes=kind, kind=(need.kind, k), joined=joined)
        for k, kind in enumerate(kinds)
    )
    portions = tuple(
        (_with_feature(portion.feature, nodes), portion.nodes, portion.apart)
        for portion in asked_of.portions
    )
    if portions:
        joined = sum(bool(need.nodes & kind) for kind, _, apart in portions if apart) <= 1
    if portions and request.min_nodes is None and request.max_nodes is None:
        # That it has no more nodes than tasks is seen to by the choice, which may have to do more.
        need = replace(need, most=partition.max_nodes or UNBOUNDED)
    return replace(need, ways=ways, portions=portions, joined=joined)


def _with_gpus(need: Need, request: JobRequest, conf: Conf, least: int) -> Need:
    """The need of a job with what it asks for of GPUs, if that is more than some of each node.

    least: how many nodes it asks for, or names.
    """
    asks = gpus.asked(request, need.partition, conf)
    if not asks:
        return need
    tasks, sockets = need.tasks_per_node or 0, max(need.sockets, 1)
    of_cpu = need.partition.def_mem_per_cpu_MiB or conf.def_mem_per_cpu_MiB
    per_task = max((ask.per_task * ask.cpus_default for ask in asks), default=0)
    of_node = gpus.least_cpus_of_node(asks, tasks, sockets)
    shared = of_node > 0 and ONE_TASK_PER_CORE in conf.select_parameters
    return replace(
        need,
        # Each node has one at least.
        nodes=0 if any(0 < ask.per_job < least for ask in asks) else need.nodes,
        one_thread=need.one_thread and not shared,
        tasks_per_core=None if shared else need.tasks_per_core,
        gres=tuple(Gres(ask.name, ask.type, ask.least) for ask in asks),
        asks=asks,
        cpus_per_task=max(need.cpus_per_task, per_task),
        enforce_binding=request.enforce_binding,
        one_task_per_core=ONE_TASK_PER_CORE in conf.select_parameters,
        whole_tasks=bool(of_cpu and need.memory and need.memory[0] == PER_GPU),
        cpus_for_gpus=gpus.least_cpus(asks, need.least, max(tasks, 1) * need.least, sockets),
        cpus_for_gpus_of_node=of_node,
    )


def _share(request: JobRequest, partition: Partition) -> int:
    """How many jobs may stand on a CPU, this one among them."""
    if partition.over_subscribe == FORCE:
        return partition.max_share
    if partition.over_subscribe == YES and request.oversubscribe:
        return partition.max_share
    return 1


def _sharing(request: JobRequest, partition: Partition) -> str:
    """How a job goes with others on its nodes."""
    if partition.over_subscribe == EXCLUSIVE:
        return EXCLUSIVELY
    over = partition.over_subscribe == FORCE or _share(request, partition) > 1
    return OVER_OTHERS if over else BESIDE_OTHERS


def beside_others(need: Need) -> list[Need]:
    """Return the `need` of a job that asks to share cores as if it did not; else nothing.

    So backfill tries it first.
    """
    if need.sharing != OVER_OTHERS or need.force:
        return []
    return [replace(need, share=1, sharing=BESIDE_OTHERS, kind=(need.kind, BESIDE_OTHERS))]


def _block(request: JobRequest, conf: Conf, partition: Partition) -> bool:
    """Whether cores are taken socket after socket, as they are wherever CPUs are the unit."""
    if conf.unit_words(partition) & {"CR_CPU", "CR_CPU_MEMORY"}:
        return True
    if request.distribution is not None:
        return request.distribution == "block"
    return "CR_CORE_DEFAULT_DIST_BLOCK" in conf.select_parameters


def counts_memory(conf: Conf, partition: Partition) -> bool:
    """Whether memory is consumed by the jobs of a partition."""
    words = conf.select_parameters if conf.select_type == LINEAR else conf.unit_words(partition)
    if conf.select_type != LINEAR and not words & _UNITS:
        return True  # CR_Core_Memory is the default
    return any(word.endswith("MEMORY") for word in words)


def _memory(request: JobRequest, partition: Partition, conf: Conf) -> tuple[str, int] | None:
    return memory_asked(request, partition, conf) if counts_memory(conf, partition) else None


def memory_asked(
    request: JobRequest, partition: Partition, conf: Conf, by_gpu: bool = True
) -> tuple[str, int]:
    """The memory that a job asks for, or gets by default, whether it is counted or not.

    by_gpu: whether that of GPUs counts, of which limits know nothing.
    """
    asks = gpus.asked(request, partition, conf) if by_gpu else ()
    given = (
        (PER_CPU, request.memory_per_cpu_MiB),
        (PER_NODE, request.memory_per_node_MiB),
        (PER_GPU, max((ask.memory_each for ask in asks), default=0) or None),
        (PER_CPU, partition.def_mem_per_cpu_MiB),
        (PER_NODE, partition.def_mem_per_node_MiB),
        (PER_CPU, conf.def_mem_per_cpu_MiB),
        (PER_NODE, conf.def_mem_per_node_MiB),
    )
    for kind, amount in given:
        if amount is not None:
            return (kind, amount) if amount > 0 else (ALL, 0)
    return ALL, 0


def nodes_fitting(request: JobRequest, partition: Partition, nodes: Nodes, conf: Conf) -> Mask:
    """Return the `nodes` of a `partition` that could run some of a `request`, if they were free.

    conf: of the cluster.
    """
    found = nodes.partitions[partition.name] & nodes.usable & ~nodes.mask(request.exclude)
    asked = _memory(request, partition, conf)
    shape = request.sockets_per_node or request.cores_per_socket
    if not (shape or request.constraint or request.gres or asked) and nodes.alike:
        return found if _cpus_for(request, nodes, 0) >= _least_cpus(request) else 0
    least_cpus, known, features = _least_cpus(request), {}, constraint_of(request).of_all
    least_MiB = 0 if asked is None else _least_memory(asked, request)
    fitting = []
    for k in members(found):
        line = nodes.lines[k]
        key = id(line), nodes.cpus[k], nodes.memory_MiB[k]
        if key not in known:  # nodes of a line mostly have the same
            known[key] = (
                _cpus_for(request, nodes, k) >= least_cpus
                and (request.sockets_per_node or 0) <= line.sockets
                and (request.cores_per_socket or 0) <= line.cores_per_socket
                and least_MiB <= nodes.memory_MiB[k]
                and has_all(features, line.features)
                and all(amount_of(one, line.gres) >= one.count for one in request.gres)
            )
        if known[key]:
            fitting.append(k)
    return of_hosts(fitting)


def _cpus_for(request: JobRequest, nodes: Nodes, node: int) -> int:
    """The CPUs that tasks may use of a node, with so many on a core as it says."""
    of_core = (request.tasks_per_core or UNBOUNDED) * request.cpus_per_task
    return min(nodes.cpus[node], nodes.cores[node] * of_core)


def _least_cpus(request: JobRequest) -> int:
    """The CPUs that any of its nodes must have."""
    return max(request.cpus_per_task * (request.tasks_per_node or 1), request.least_cpus_per_node)


def _least_memory(asked: tuple[str, int], request: JobRequest) -> float:
    kind, amount = asked
    if kind == PER_CPU:
        return amount * _least_cpus(request)
    return 0 if kind == ALL else amount


def _with_feature(feature: Feature, nodes: Nodes) -> Mask:
    """The nodes that have a feature."""
    asked = [feature._replace(operator="&")]
    having = {id(line) for line in nodes.lines if has_all(asked, line.features)}
    return of_hosts(k for k, line in enumerate(nodes.lines) if id(line) in having)


def limit_min(request: JobRequest, partition: Partition) -> float:
    """The time limit of a job at its start, minutes; inf: none."""
    for given in (request.limit_min, partition.default_time_min, partition.max_time_min):
        if given is not None:
            return given
    return inf


def with_named_nodes(request: JobRequest, nodes: Nodes) -> JobRequest:
    """The `request` as sbatch sends it: its ``--nodelist`` says how many nodes it asks for, too.

    Of more nodes than it has tasks only the first are named; ``--contiguous`` names those between,
    too. One that asks for fewer nodes than it names has a ``min_nodes`` above its ``max_nodes``: it
    is refused. nodes: of the cluster.
    """
    named = members(nodes.mask(request.nodelist))
    most = request.min_nodes if request.max_nodes is None else request.max_nodes
    least = max(len(named), request.min_nodes or 0)
    if most is not None and most < least:
        return replace(request, min_nodes=least, max_nodes=most)
    if request.tasks is not None and request.tasks < least:
        named, least = named[: request.tasks], request.tasks
        request, most = replace(request, min_nodes=least, max_nodes=least), least
    if request.contiguous:
        named = list(range(named[0], named[-1] + 1))
        least = max(least, len(named))
    request = replace(request, nodelist=tuple(nodes.names[k] for k in named))
    return request if most is None else replace(request, min_nodes=least, max_nodes=most)
