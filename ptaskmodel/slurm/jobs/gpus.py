"""GPUs as jobs ask for them: in all, of each node, socket or task, with CPUs, memory and tasks.

`Rules` completes a request at its submission (`completed`), as sbatch and slurmctld do; `needs`
asks for each kind of resource what a node must have (`asks`).
Source: `gres_job_state_validate` and `gres_select_util` of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from ptaskmodel.slurm.conf.facts import CONS_TRES, Conf, Gres, Partition
from ptaskmodel.slurm.jobs.request import UNBOUNDED, JobRequest

GPU = "gpu"
_Kind = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class GresAsk:
    """What a job asks of one kind of generic resource; 0: not asked.

    per_job: in all. cpus_each: for each unit, as the job asks; cpus_default: as the configuration
    does. memory_each: MiB for each. tasks_each: for each.
    """

    name: str
    type: str | None
    per_job: int = 0
    per_node: int = 0
    per_socket: int = 0
    per_task: int = 0
    cpus_each: int = 0
    cpus_default: int = 0
    memory_each: int = 0
    tasks_each: int = 0

    @property
    def least(self) -> int:
        """How many any of its nodes must have."""
        return max(bool(self.per_job), self.per_node, self.per_socket, self.per_task)

    @property
    def is_gpu(self) -> bool:
        """Whether it is a GPU."""
        return self.name == GPU

    @property
    def cpus_with(self) -> int:
        """The CPUs that it wants for each unit."""
        return self.cpus_each or self.cpus_default

    def in_all(self, nodes: int, tasks: int, sockets: int) -> int:
        """How many it asks for on so many `nodes` of so many `sockets` for so many `tasks`."""
        return (
            self.per_job
            or self.per_node * nodes
            or self.per_socket * nodes * sockets
            or self.per_task * tasks
        )

    def on_node(self, tasks: int, sockets: int) -> int:
        """How many it asks of a node of so many `sockets`, with so many `tasks`; 1 if of none."""
        if self.per_node or self.per_socket or self.per_task:
            return self.per_node or self.per_socket * sockets or self.per_task * tasks
        return 1


class _Counts(NamedTuple):
    """What a job asks for of tasks and nodes, as sbatch counts it; None: not given.

    fewest: nodes that its partitions ask for at least.
    """

    tasks: int | None
    min_nodes: int | None
    max_nodes: int | None
    tasks_per_node: int | None
    cpus_per_task: int | None
    fewest: int

    @property
    def least(self) -> int:
        """The least number of nodes."""
        return max(self.min_nodes or 1, self.fewest)


def is_plain(request: JobRequest) -> bool:
    """Whether a request asks for GPUs of each node, if at all, and nothing with them."""
    return not (
        request.gpus
        or request.gpus_per_socket
        or request.gpus_per_task
        or request.cpus_per_gpu
        or request.memory_per_gpu_MiB
        or request.tasks_per_gpu
    )


def asks_of(request: JobRequest) -> tuple[GresAsk, ...]:
    """What a `request` asks for of each kind of resource, in order.

    Raises ValueError if it asks for units with and without a type.
    """
    given = (request.gpus, request.gres, request.gpus_per_socket, request.gpus_per_task)
    counts: dict[_Kind, list[int]] = {}
    for k, some in enumerate(given):
        for one in some:
            if one.count:
                counts.setdefault((one.name, one.type), [0] * len(given))[k] = one.count
    found = {key: GresAsk(*key, *every) for key, every in counts.items()}
    if not found and request.tasks_per_gpu and request.tasks:
        count = request.tasks // request.tasks_per_gpu
        found[GPU, None] = GresAsk(GPU, None, per_job=count)
    if request.cpus_per_gpu and all(name != GPU for name, _ in found):
        found[GPU, None] = GresAsk(GPU, None)  # of which a node must have one
    for name in {name for name, _ in found}:
        if len({kind is None for other, kind in found if other == name}) > 1:
            raise ValueError(f"{name} is asked for with and without a type")
    return tuple(
        replace(
            ask,
            cpus_each=request.cpus_per_gpu or 0,
            memory_each=request.memory_per_gpu_MiB or 0,
            tasks_each=request.tasks_per_gpu or 0,
        )
        if ask.is_gpu
        else replace(ask, tasks_each=request.tasks_per_gpu or 0)
        for ask in found.values()
    )


def with_defaults(
    asks: tuple[GresAsk, ...], request: JobRequest, partition: Partition, conf: Conf
) -> tuple[GresAsk, ...]:
    """What a `request` asks for, `asks`, with DefCpuPerGPU and DefMemPerGPU.

    They are those of the `partition`, or of the cluster, `conf`.
    """
    cpus, memory = (
        of_all if own is None else own
        for own, of_all in (
            (partition.def_cpus_per_gpu, conf.def_cpus_per_gpu),
            (partition.def_mem_per_gpu_MiB, conf.def_mem_per_gpu_MiB),
        )
    )
    if request.cpus_are_given:
        cpus = 0
    return tuple(
        replace(ask, cpus_default=cpus or 0, memory_each=ask.memory_each or memory or 0)
        if ask.is_gpu
        else ask
        for ask in asks
    )


def asked(request: JobRequest, partition: Partition, conf: Conf) -> tuple[GresAsk, ...]:
    """What a `request` asks for in a `partition`.

    conf: of the cluster. Unless it is of select/cons_tres, nothing if that is a number of each node
    alone.
    """
    plain = is_plain(request)
    if plain and not request.gres:
        return ()
    try:
        asks = with_defaults(asks_of(request), request, partition, conf)
    except ValueError:
        return ()  # it is refused
    with_more = any(ask.cpus_default or ask.memory_each for ask in asks)
    return asks if with_more or not plain or conf.select_type == CONS_TRES else ()


def completed(request: JobRequest, conf: Conf, fewest: int = 1) -> JobRequest:
    """The `request` with the tasks, nodes and CPUs that follow from its GPUs.

    conf: of the cluster. fewest: the least MinNodes of its partitions. Raises ValueError if sbatch
    or slurmctld refuses it.
    """
    request = _with_tasks_of_sockets(request)
    names_more = (request.min_nodes or 0) > (request.max_nodes or UNBOUNDED)
    if is_plain(request) or names_more:
        return request
    if conf.select_type != CONS_TRES:
        raise ValueError("select/cons_tres alone counts GPUs of a job, a task or a socket")
    given = request.memory_per_node_MiB is not None or request.memory_per_cpu_MiB is not None
    if request.memory_per_gpu_MiB and given:
        raise ValueError("memory is asked for in two ways")
    if request.tasks_per_gpu and (
        request.gpus_per_task or request.gpus_per_socket or request.tasks_per_node
    ):
        raise ValueError("tasks are asked for in two ways")
    if request.cpus_per_gpu and request.cpus_are_given and request.least_cpus is None:
        raise ValueError("CPUs are asked for in two ways")
    most = request.tasks  # nodes: sbatch asks for no more
    counts = _Counts(
        _client_tasks(request),
        request.min_nodes and min(request.min_nodes, most or request.min_nodes),
        request.max_nodes and min(request.max_nodes, most or request.max_nodes),
        request.tasks_per_node,
        request.cpus_per_task if request.cpus_are_given else None,
        fewest,
    )
    # What sbatch takes for the least number of CPUs, before it looks at GPUs.
    cpus = counts.tasks or (counts.min_nodes or 1 if counts.min_nodes == counts.max_nodes else 1)
    cpus *= counts.cpus_per_task or 1
    if counts.tasks is None and (request.gpus_per_task or request.tasks_per_gpu):
        counts = _with_implied_tasks(counts, request.tasks_per_gpu)
    asks = asks_of(replace(request, tasks=counts.tasks))
    if request.tasks_per_gpu:
        if not asks:
            raise ValueError("tasks of each GPU are asked for, but neither GPUs nor tasks")
        if any(map(_is_of_gpus, (*request.gpus, *request.gres))):
            total = sum(
                ask.in_all(counts.min_nodes or 1, counts.tasks or 0, 1)
                for ask in asks
                if ask.is_gpu
            )
            counts = counts._replace(tasks=total * request.tasks_per_gpu)
    if request.memory_per_gpu_MiB and not any(ask.is_gpu for ask in asks):
        raise ValueError("memory of each GPU is asked for, but no GPU")
    done = []
    for ask in asks:
        ask, counts = _consistent(ask, counts, request)
        done.append(ask)
    tasks = counts.tasks  # as slurmctld counts them
    if tasks is None and counts.tasks_per_node:
        tasks = counts.tasks_per_node * counts.least
    if tasks is not None and tasks > cpus:
        cpus = tasks * (counts.cpus_per_task or 1)
    return replace(
        request,
        tasks=counts.tasks and max(counts.tasks, counts.min_nodes or 0),
        fewer_tasks=counts.tasks,
        min_nodes=counts.min_nodes,
        max_nodes=counts.max_nodes,
        tasks_per_node=counts.tasks_per_node,
        cpus_per_task=counts.cpus_per_task or 1,
        cpus_are_given=counts.cpus_per_task is not None,
        least_cpus=cpus,
        gpus=tuple(Gres(ask.name, ask.type, ask.per_job) for ask in done if ask.per_job),
    )


def _is_of_gpus(one: Gres) -> bool:
    return one.name == GPU


def _with_tasks_of_sockets(request: JobRequest) -> JobRequest:
    """A request with a task for each core or socket that it asks of a fixed number of nodes."""
    nodes, each = request.min_nodes, (request.sockets_per_node, request.cores_per_socket)
    if not any(each) or nodes is None or nodes != request.max_nodes:
        return request
    if request.tasks is not None or request.tasks_per_node is not None:
        return request
    return replace(request, tasks=nodes * (each[0] or 1) * (each[1] or 1))


def _client_tasks(request: JobRequest) -> int | None:
    """The tasks that a request asks for, as sbatch counts them; None: it asks for none."""
    if request.tasks is not None:
        return request.tasks
    if request.tasks_per_node and request.min_nodes == request.max_nodes:
        return (request.min_nodes or 1) * request.tasks_per_node
    return None


def _with_implied_tasks(counts: _Counts, tasks_per_gpu: int | None) -> _Counts:
    """The tasks that a fixed number of nodes stands for."""
    nodes = counts.min_nodes
    if nodes is None or nodes != counts.max_nodes:
        return counts
    if tasks_per_gpu:
        return counts._replace(tasks=nodes * tasks_per_gpu)
    if counts.tasks_per_node:
        return counts._replace(tasks=nodes * counts.tasks_per_node)
    return counts if counts.cpus_per_task is not None else counts._replace(tasks=nodes)


def _consistent(ask: GresAsk, counts: _Counts, request: JobRequest) -> tuple[GresAsk, _Counts]:
    """An `ask` and the counts that agree with it. Raises ValueError if none do."""
    job, node, socket, task = ask.per_job, ask.per_node, ask.per_socket, ask.per_task
    for more, less in ((job, node), (job, task), (node, task), (node, socket)):
        if more and less and more % less:
            raise ValueError(f"{ask.name}: {more} is no multiple of {less}")
    if job and socket > job:
        raise ValueError(f"{ask.name}: there are more for a socket than in all")
    if socket and request.sockets_per_node is None:
        raise ValueError("give --sockets-per-node with --gpus-per-socket")
    if job and node:
        nodes = job // node
        if (counts.min_nodes or 0) > nodes or nodes > (counts.max_nodes or nodes):
            raise ValueError(f"{ask.name}: {nodes} nodes are not as many as asked for")
        counts = counts._replace(min_nodes=nodes, max_nodes=nodes, fewest=nodes)
    if node and socket and request.sockets_per_node != node // socket:
        raise ValueError(f"{ask.name}: the sockets of a node differ from --sockets-per-node")
    if ask.tasks_each and counts.tasks is not None and counts.tasks % ask.tasks_each:
        raise ValueError("the tasks are no multiple of --ntasks-per-gpu")
    if task and job:
        counts = counts._replace(tasks=_same(counts.tasks, job // task, "tasks"))
    elif task:
        if counts.tasks is None:
            raise ValueError("give --gpus or --ntasks with --gpus-per-task")
        ask = replace(ask, per_job=counts.tasks * task)
    if node and task:
        each = _same(counts.tasks_per_node, node // task, "tasks of a node")
        counts = counts._replace(tasks_per_node=each)
    if task and ask.cpus_each:
        each = _same(counts.cpus_per_task, ask.cpus_each * task, "CPUs of a task")
        counts = counts._replace(cpus_per_task=each)
    if ask.per_job:
        if counts.least > ask.per_job:
            raise ValueError(f"{ask.name}: there are fewer than nodes")
        if counts.max_nodes is not None:
            counts = counts._replace(max_nodes=min(counts.max_nodes, ask.per_job))
    return ask, counts


def _same(given: int | None, found: int, what: str) -> int:
    if given not in (None, found):
        raise ValueError(f"{given} {what} are asked for, and {found} follow from GPUs")
    return found


def amount_of(asked: Gres, there: tuple[Gres, ...]) -> int:
    """How many units of a kind there are; of any type if none is asked for."""
    return sum(
        one.count for one in there if one.name == asked.name and asked.type in (None, one.type)
    )


def least_cpus_of_node(asks: tuple[GresAsk, ...], tasks_per_node: int, sockets: int) -> int:
    """The CPUs that GPUs, `asks`, want of a node of so many `sockets` with `tasks_per_node`."""
    found = (ask.cpus_with * ask.on_node(tasks_per_node, sockets) for ask in asks)
    return max(found, default=0)


def least_cpus(asks: tuple[GresAsk, ...], nodes: int, tasks: int, sockets: int) -> int:
    """The CPUs that GPUs, `asks`, want on `nodes` of so many `sockets` for so many `tasks`."""
    found = (ask.cpus_with * ask.in_all(nodes, tasks, sockets) for ask in asks)
    return max(found, default=0)


def amounts(request: JobRequest, nodes: int) -> Iterator[Gres]:
    """The generic resources that a `request` asks for in all, on so many `nodes`."""
    if is_plain(request):
        yield from (Gres(one.name, one.type, one.count * nodes) for one in request.gres)
        return
    for ask in asks_of(request):
        count = ask.in_all(nodes, request.tasks or nodes, request.sockets_per_node or 1)
        yield Gres(ask.name, ask.type, count)
