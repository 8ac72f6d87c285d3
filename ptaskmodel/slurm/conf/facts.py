"""A slurm.conf as plain records: nodes, partitions, switches, and scheduling keys.

Defaults are those of Slurm 22.05. Names are Slurm's own, in lower case, with units. None means
"unlimited" for limits, and "not given" otherwise. `Nodes` has the nodes of a configuration in
Slurm's order: an index for each, their shapes, and sets of nodes as masks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from ptaskmodel.batch.machine.host_sets import Mask, members, of_hosts
from ptaskmodel.errors import SlurmError
from ptaskmodel.remarks import Remark
from ptaskmodel.slurm.conf.versions import REFERENCE

# What PartitionName's OverSubscribe may be.
NO, YES, FORCE, EXCLUSIVE = "NO", "YES", "FORCE", "EXCLUSIVE"
# What PreemptMode may be; GANG may come with SUSPEND, WITHIN with any.
OFF, CANCEL, REQUEUE, SUSPEND, GANG, WITHIN = (
    "OFF",
    "CANCEL",
    "REQUEUE",
    "SUSPEND",
    "GANG",
    "WITHIN",
)
NEVER, BY_TIER, BY_QOS = "preempt/none", "preempt/partition_prio", "preempt/qos"
LINEAR, CONS_RES, CONS_TRES = "select/linear", "select/cons_res", "select/cons_tres"
BACKFILL, BUILTIN = "sched/backfill", "sched/builtin"
BASIC, MULTIFACTOR = "priority/basic", "priority/multifactor"
FLAT, TREE = "topology/none", "topology/tree"
DAY_S = 86_400

Weights = Mapping[str, float]
# Units of which a partition may have its own, and all there are.
PARTITION_UNITS = ("CR_CORE", "CR_CORE_MEMORY", "CR_SOCKET", "CR_SOCKET_MEMORY")
_ALL_UNITS = frozenset((*PARTITION_UNITS, "CR_CPU", "CR_CPU_MEMORY", "CR_MEMORY"))
_DIGITS = re.compile(r"(\d+)")


def _none() -> Mapping[str, float]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Gres:
    """Generic resources of a node, or asked of each node: ``gpu:tesla:4``. type: any if None."""

    name: str
    type: str | None
    count: int


class Unread(NamedTuple):
    """A key that was kept but not used. key: as written. where: file and line.

    meant: the key that it looks like a misspelling of, if any.
    """

    key: str
    value: str
    where: str
    meant: str = ""


@dataclass(frozen=True, slots=True)
class NodeLine:
    """A NodeName line: equal nodes. ``sockets`` counts those of all boards.

    cpus: what a job may count on each node: one for each thread, or for each core; ``threads``:
    CPUs of a core, as jobs count them. state: as in the file, in upper case (UNKNOWN, DOWN, DRAIN,
    FUTURE, ...).
    """

    names: tuple[str, ...]
    cpus: int = 1
    boards: int = 1
    sockets: int = 1
    cores_per_socket: int = 1
    threads_per_core: int = 1
    memory_MiB: int = 1
    mem_spec_limit_MiB: int = 0
    core_spec_count: int = 0
    gres: tuple[Gres, ...] = ()
    weight: int = 1
    features: tuple[str, ...] = ()
    state: str = "UNKNOWN"
    where: str = ""
    cores: int = field(init=False, repr=False, compare=False)
    threads: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cores", self.sockets * self.cores_per_socket)
        object.__setattr__(self, "threads", max(1, self.cpus // self.cores))

    @property
    def usable(self) -> bool:
        """Whether the state lets jobs in."""
        return not {"DOWN", "DRAIN", "FAIL", "FUTURE"} & set(self.state.split("+"))


@dataclass(frozen=True, slots=True)
class Switch:
    """A line of topology.conf: a switch over nodes (a leaf) or over other switches."""

    name: str
    nodes: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()
    where: str = ""


@dataclass(frozen=True, slots=True)
class Partition:
    """A PartitionName line.

    nodes: its nodes' names, in the order of the file. over_subscribe: NO, YES, FORCE or EXCLUSIVE;
    max_share: jobs on one CPU under YES and FORCE. preempt_mode: None: the cluster's.
    over_time_limit_min: the cluster's if not given (`Conf.over_time_limit_min`); inf: no kill.
    allow_*: None: everybody. select_unit: what its jobs are given instead of the cluster's unit, a
    word of SelectTypeParameters.
    """

    name: str
    nodes: tuple[str, ...] = ()
    default: bool = False
    max_time_min: int | None = None
    default_time_min: int | None = None
    min_nodes: int = 1
    max_nodes: int | None = None
    max_cpus_per_node: int | None = None
    max_mem_per_cpu_MiB: int | None = None
    max_mem_per_node_MiB: int | None = None
    def_mem_per_cpu_MiB: int | None = None
    def_mem_per_node_MiB: int | None = None
    def_cpus_per_gpu: int | None = None
    def_mem_per_gpu_MiB: int | None = None
    tier: int = 1
    job_factor: int = 1
    over_subscribe: str = NO
    max_share: int = 1
    preempt_mode: frozenset[str] | None = None
    grace_time_s: int = 0
    over_time_limit_min: float | None = None
    qos: str | None = None
    lln: bool = False
    select_unit: str | None = None
    state: str = "UP"
    exclusive_user: bool = False
    allow_accounts: frozenset[str] | None = None
    allow_groups: frozenset[str] | None = None
    allow_qos: frozenset[str] | None = None
    deny_accounts: frozenset[str] = frozenset()
    deny_qos: frozenset[str] = frozenset()
    billing_weights: Weights = field(default_factory=_none)
    where: str = ""

    @property
    def accepts(self) -> bool:
        """Whether jobs may be submitted to it."""
        return self.state in ("UP", "DOWN")

    @property
    def selective(self) -> bool:
        """Whether it does not take all accounts and QOSs."""
        lists = self.allow_accounts, self.allow_qos
        return bool(self.deny_accounts or self.deny_qos) or lists != (None, None)

    @property
    def starts(self) -> bool:
        """Whether its jobs may start."""
        return self.state in ("UP", "DRAIN")


@dataclass(frozen=True, slots=True)
class SchedulerParameters:
    """SchedulerParameters: when and how deep; see Slurm's manual for each. 0 of a count: no limit.

    Intervals of -1 s switch the main or the backfill scheduler off. Those None by default are
    other keys' values: see the properties of `Conf`.
    """

    default_queue_depth: int = 100
    partition_job_depth: int = 0
    sched_interval_s: int = 60
    sched_min_interval_us: int = 2
    batch_sched_delay_s: int = 3
    defer: bool = False
    max_sched_time_s: int | None = None
    sched_max_job_start: int = 0
    build_queue_timeout_us: int = 2_000_000
    assoc_limit_stop: bool = False
    reduce_completing_frag: bool = False
    max_rpc_cnt: int = 0
    preempt_youngest_first: bool = False
    preempt_strict_order: bool = False
    preempt_reorder_count: int = 1
    bf_interval_s: int = 30
    bf_max_time_s: int | None = None
    bf_window_min: int = 1440
    bf_resolution_s: int = 60
    bf_max_job_test: int = 500
    bf_max_job_user: int = 0
    bf_max_job_part: int = 0
    bf_max_job_user_part: int = 0
    bf_max_job_assoc: int = 0
    bf_max_job_start: int = 0
    bf_max_job_array_resv: int = 20
    bf_node_space_size: int | None = None
    bf_min_age_reserve_s: int = 0
    bf_min_prio_reserve: int = 0
    bf_job_part_count_reserve: int = 0
    bf_one_resv_per_job: bool = False
    bf_continue: bool = False
    bf_yield_interval_us: int = 2_000_000
    bf_yield_sleep_us: int = 500_000
    bf_busy_nodes: bool = False
    bf_window_linear_s: int = 0
    bf_running_job_reserve: bool = False
    bf_licenses: bool = False
    pack_serial_at_end: bool = False
    kill_invalid_depend: bool = False
    max_switch_wait_s: int = 300
    max_array_tasks: int | None = None


@dataclass(frozen=True, slots=True)
class PriorityParameters:
    """The Priority* keys of priority/multifactor. flags: in upper case, as PriorityFlags has them.

    decay_half_life_s: 0: usage never decays. weight_tres: by TRES, such as {"cpu": 1000}.
    """

    weight_age: int = 0
    weight_assoc: int = 0
    weight_fairshare: int = 0
    weight_job_size: int = 0
    weight_partition: int = 0
    weight_qos: int = 0
    weight_tres: Weights = field(default_factory=_none)
    max_age_s: int = 7 * DAY_S
    calc_period_s: int = 300
    decay_half_life_s: int = 7 * DAY_S
    usage_reset_period: str = "NONE"
    favor_small: bool = False
    flags: frozenset[str] = frozenset()
    fair_share_dampening_factor: int = 1
    site_parameters: str | None = None


@dataclass(frozen=True, slots=True)
class Conf:
    """A slurm.conf. select_parameters, preempt_mode, enforce: sets of words in upper case.

    version: of the Slurm that it is for (`versions.VERSIONS`). nodes, partitions: in the order of
    the file. down_nodes: states of nodes that DownNodes lines give. epilog: whether there is one.
    database: whether accounting goes to slurmdbd. others: keys that were read past, in order.
    remarks: what Slurm changes of what was given.
    """

    nodes: tuple[NodeLine, ...]
    partitions: tuple[Partition, ...]
    switches: tuple[Switch, ...] = ()
    version: str = REFERENCE
    cluster_name: str = "cluster"
    scheduler_type: str = BACKFILL
    scheduler: SchedulerParameters = SchedulerParameters()
    select_type: str = LINEAR
    select_parameters: frozenset[str] = frozenset()
    topology_plugin: str = FLAT
    topology_parameters: frozenset[str] = frozenset()
    priority_type: str = BASIC
    priority: PriorityParameters = PriorityParameters()
    preempt_type: str = "preempt/none"
    preempt_mode: frozenset[str] = frozenset({OFF})
    preempt_exempt_time_min: int = 0
    scheduler_time_slice_s: int = 30
    over_time_limit_min: float = 0
    kill_wait_s: int = 30
    kill_on_bad_exit: bool = False
    inactive_limit_s: int = 0
    complete_wait_s: int = 0
    min_job_age_s: int = 300
    max_job_count: int = 10_000
    max_array_size: int = 1001
    first_job_id: int = 1
    enforce_part_limits: str = "NO"
    job_requeue: bool = True
    epilog: bool = False
    epilog_msg_time_us: int = 2000
    message_timeout_s: int = 10
    slurmd_timeout_s: int = 300
    return_to_service: int = 0
    licenses: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    resv_over_run_min: float = 0
    def_mem_per_cpu_MiB: int | None = None
    def_mem_per_node_MiB: int | None = None
    def_cpus_per_gpu: int | None = None
    def_mem_per_gpu_MiB: int | None = None
    max_mem_per_cpu_MiB: int | None = None
    max_mem_per_node_MiB: int | None = None
    task_plugin: str = "task/none"
    database: bool = False
    enforce: frozenset[str] = frozenset()
    down_nodes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    others: tuple[Unread, ...] = ()
    remarks: tuple[Remark, ...] = ()
    origin: str = ""

    @property
    def notes(self) -> tuple[str, ...]:
        """The texts of the remarks."""
        return tuple(remark.text for remark in self.remarks)

    @property
    def default_partition(self) -> Partition | None:
        """Where jobs go that name no partition: the last one with Default=YES."""
        return next((p for p in reversed(self.partitions) if p.default), None)

    @property
    def home_partition(self) -> Partition:
        """Where jobs go that name no partition: the default one, or without one the first."""
        return self.default_partition or self.partitions[0]

    @property
    def gang(self) -> bool:
        """Whether jobs are suspended by the gang scheduler."""
        return GANG in self.preempt_mode

    def unit_words(self, partition: Partition) -> frozenset[str]:
        """The words of SelectTypeParameters for the jobs of a partition.

        Its own unit stands for the cluster's if that is cores or sockets, with memory or without.
        """
        own, of_all = partition.select_unit, self.select_parameters
        units = frozenset(PARTITION_UNITS)
        if own is None or (of_all & _ALL_UNITS and not of_all & units):
            return of_all
        return of_all - units | {own}

    @property
    def gang_counts_cpus(self) -> bool:
        """Whether suspended jobs stand in the way of others by how many CPUs they have alone."""
        by_cpus = bool(self.select_parameters & {"CR_CPU", "CR_CPU_MEMORY"})
        return by_cpus and self.select_type != LINEAR and self.task_plugin == "task/none"

    @property
    def max_sched_time_s(self) -> int:
        """Longest main pass, s."""
        most = self.message_timeout_s // 2
        given = self.scheduler.max_sched_time_s
        return min(2, most) if given is None else min(given, most)

    @property
    def bf_max_time_s(self) -> int:
        """Longest backfill cycle, s."""
        given = self.scheduler.bf_max_time_s
        return self.scheduler.bf_interval_s if given is None else given

    @property
    def bf_node_space_size(self) -> int:
        """Most slots of backfill's map."""
        given = self.scheduler.bf_node_space_size
        return self.scheduler.bf_max_job_test if given is None else given


def natural(name: str) -> list[Any]:
    """The key of a name in Slurm's order: digits compare as numbers."""
    return [int(part) if part.isdigit() else part for part in _DIGITS.split(name)]


@dataclass(slots=True, eq=False)
class Nodes:
    """Node k is ``names[k]`` and has the shape of ``lines[k]``.

    cores: how many jobs may use (those of CoreSpecCount, the last ones, are withheld). cpus: of
    these cores, as jobs count them. memory_MiB: without MemSpecLimit. sets: of equal NodeName lines
    in order of weight, then of the file. usable: those whose state lets jobs in. alike: whether
    all have the same number of CPUs. up: the usable ones that have not failed; all else stays as it
    is.
    """

    names: tuple[str, ...]
    index: dict[str, int]
    lines: tuple[NodeLine, ...]
    cores: tuple[int, ...]
    cpus: tuple[int, ...]
    memory_MiB: tuple[int, ...]
    weights: tuple[int, ...]
    sets: tuple[tuple[int, Mask], ...]
    partitions: dict[str, Mask]
    usable: Mask
    alike: bool
    up: Mask = field(init=False)

    def __post_init__(self) -> None:
        self.up = self.usable

    def fail(self, node: int) -> None:
        """Take a `node`, by its index, out of those that are up."""
        self.up &= ~(1 << node)

    def return_to_service(self, node: int) -> None:
        """Put a `node`, by its index, back in those that are up, if it is usable at all."""
        self.up |= 1 << node & self.usable

    def __len__(self) -> int:
        return len(self.names)

    def mask(self, names: Iterable[str]) -> Mask:
        """The set of nodes with these names; SlurmError for one that is unknown."""
        try:
            return of_hosts(self.index[name] for name in names)
        except KeyError as missing:
            raise SlurmError(f"slurm.conf has no node {missing}; correct the name") from None

    def names_of(self, nodes: Mask) -> list[str]:
        """The names of a set, in Slurm's order."""
        return [self.names[k] for k in members(nodes)]


def nodes_of(conf: Conf) -> Nodes:
    """The nodes of a configuration. Raises SlurmError if a node is there twice."""
    line_of: dict[str, NodeLine] = {}
    for line in conf.nodes:
        for name in line.names:
            if name in line_of:
                raise SlurmError(f"{line.where}: node {name} occurs twice; name it once")
            line_of[name] = line
    names = tuple(sorted(line_of, key=natural))
    index = {name: k for k, name in enumerate(names)}
    lines = tuple(line_of[name] for name in names)
    cores = tuple(line.cores - line.core_spec_count for line in lines)
    down = {name for name, state in conf.down_nodes.items() if "DOWN" in state or "DRAIN" in state}
    sets = [
        (line.weight, of_hosts(index[name] for name in line.names))
        for line in sorted(conf.nodes, key=lambda line: line.weight)
    ]
    return Nodes(
        names,
        index,
        lines,
        cores,
        tuple(count * line.threads for count, line in zip(cores, lines, strict=True)),
        tuple(max(1, line.memory_MiB - line.mem_spec_limit_MiB) for line in lines),
        tuple(line.weight for line in lines),
        tuple(sets),
        {p.name: of_hosts(index[name] for name in p.nodes) for p in conf.partitions},
        of_hosts(
            k
            for k, (name, line) in enumerate(zip(names, lines, strict=True))
            if line.usable and name not in down
        ),
        len({count * line.threads for count, line in zip(cores, lines, strict=True)}) <= 1,
    )
