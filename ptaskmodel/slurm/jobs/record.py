"""The life of a job in the controller: what Slurm's job record keeps, as it changes.

Who has run for longer than its limit, or than its reservation, allows.

Why a job waits or is refused, in Slurm's words.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, NamedTuple

from ptaskmodel.batch.jobs.attempt import Attempt
from ptaskmodel.batch.machine.host_sets import Mask
from ptaskmodel.slurm.conf.facts import Conf, Partition
from ptaskmodel.slurm.conf.reservations import Reservation
from ptaskmodel.slurm.jobs.request import JobRequest

PENDING, RUNNING, SUSPENDED, COMPLETING = "PENDING", "RUNNING", "SUSPENDED", "COMPLETING"
COMPLETED, FAILED, TIMEOUT, CANCELLED = "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED"
PREEMPTED, NODE_FAIL, DEADLINE, REFUSED = "PREEMPTED", "NODE_FAIL", "DEADLINE", "REFUSED"
LIVE = frozenset({RUNNING, SUSPENDED, COMPLETING})
OPEN = LIVE | {PENDING}


class Allocation(NamedTuple):
    """What a job holds.

    nodes: a mask; size: how many. cores: of each node, ascending, its cores as a mask, counted from
    0 within the node; none under select/linear. cpus, memory_MiB: of each node likewise; no memory
    where it is not counted.
    """

    nodes: Mask
    size: int
    cores: tuple[int, ...] = ()
    cpus: tuple[int, ...] = ()
    memory_MiB: tuple[int, ...] = ()


class JobRecord:
    """A job from its submission to its end; only the controller changes it.

    Dates are whole Unix seconds, as Slurm keeps them, but for ``began``, the true date at which its
    script began. number: Slurm's id. partitions: those it may run in, first choice first, and a
    priority and a need for each. eligible_s: None until it is. limit_s: of this run, seconds; inf:
    none. end_s: while it runs, when its limit ends. ran_s: how long it has run before ``since_s``
    without what it was suspended. victim: whether it was listed as such by a preemptor. lost:
    whether it does no more work, as one of its nodes has failed. completing: whether it is over,
    but its nodes are not clean yet. reservation: the one it asked for. listed: its
    place in the list of all jobs. tested_cpus: what it was last found to take, 0 before. by:
    which scheduler started it. planned_s, planned: what backfill last found for it.
    """

    __slots__ = (
        "account",
        "allocation",
        "array_left",
        "attempt",
        "begin_s",
        "by",
        "completing",
        "eligible_s",
        "end_s",
        "gang_order",
        "held",
        "limit_s",
        "listed",
        "lost",
        "needs",
        "number",
        "partition",
        "partitions",
        "place",
        "planned",
        "planned_s",
        "priorities",
        "ran_s",
        "reason",
        "request",
        "reservation",
        "restarts",
        "since_s",
        "start_s",
        "state",
        "submit_s",
        "suspensions",
        "tested_cpus",
        "victim",
        "when",
    )

    def __init__(
        self, request: JobRequest, number: int, submit_s: int, partitions: Sequence[Partition]
    ) -> None:
        self.request = request
        self.number = number
        self.place = number
        self.submit_s = submit_s
        self.begin_s = submit_s
        self.eligible_s: int | None = None
        self.partitions = tuple(partitions)
        self.priorities = [0] * len(self.partitions)
        self.needs: list[Any] = []
        self.reservation: Reservation | None = None
        self.held = request.hold
        self.state = PENDING
        self.reason = "None"
        self.account: Any = None
        self.partition: Partition = self.partitions[0]
        self.allocation: Allocation | None = None
        self.attempt: Attempt | None = None
        self.start_s = 0
        self.end_s: float = 0.0
        self.limit_s: float = 0.0
        self.since_s = 0
        self.ran_s = 0.0
        self.victim = False
        self.lost = False
        self.completing = False
        self.restarts = 0
        self.by = ""
        self.planned_s: float | None = None
        self.planned: Mask = 0
        self.listed = number
        self.tested_cpus = 0
        self.suspensions: list[list[float]] = []

    @property
    def min_nodes(self) -> int:
        """The least MinNodes of its partitions, which it asks for at least."""
        return min(partition.min_nodes for partition in self.partitions)

    @property
    def id(self) -> str:
        return self.request.id

    def __repr__(self) -> str:
        return f"<Slurm job '{self.id}': {self.state}>"


# Who runs or is suspended, by the end of its limit: (date, place in the list of all, job).
Ends = Sequence[tuple[float, int, JobRecord]]


# Jobs and their numbers, by the ends of their limits (Unix s).
ByEnd = Sequence[tuple[float, int, JobRecord]]


def over_time_s(conf: Conf, partition: Partition) -> float:
    """How long after its limit a job is killed at the next check, s; inf: never."""
    own = partition.over_time_limit_min
    return 60 * (conf.over_time_limit_min if own is None else own)


def over_limit(conf: Conf, by_end: ByEnd, now: int) -> list[JobRecord]:
    """Those who run and whose time limit is over."""
    over = []
    for end, _, job in by_end:
        if end > now:
            break
        if job.state != RUNNING or job.limit_s == inf:
            continue
        if job.victim or now >= end + over_time_s(conf, job.partition):
            over.append(job)
    return over


def outstaying(
    conf: Conf, by_end: ByEnd, now: int, known: Sequence[JobRecord] = ()
) -> list[JobRecord]:
    """Who runs in a reservation that is over, apart from some who are known."""
    before = now - conf.resv_over_run_min * 60
    return [
        job
        for _, _, job in by_end
        if job.reservation is not None
        and job.reservation.end_s < before
        and job.state == RUNNING
        and job not in known
    ]


ACCOUNT_LIMITS = ("QOS", "Assoc")

GROUP, GROUP_MINUTES = "Grp{}", "Grp{}Minutes"
GROUP_RUN_MINUTES = "Grp{}RunMinutes"
PER_JOB, MINUTES_PER_JOB = "Max{}PerJob", "Max{}MinutesPerJob"
PER_NODE, PER_USER, PER_ACCOUNT = "Max{}PerNode", "Max{}PerUser", "Max{}PerAccount"
LEAST = "Min{}"

_LABELS = {"cpu": "Cpu", "node": "Node", "billing": "Billing", "energy": "Energy"}
_KINDS = {"gres": "GRES", "license": "License", "bb": "BB"}
# The oldest reasons, by (kind, resource), have names of their own.
_OLD = {
    (GROUP, "cpu"): "GrpCpuLimit",
    (GROUP_MINUTES, "cpu"): "GrpCPUMinutesLimit",
    (GROUP_RUN_MINUTES, "cpu"): "GrpCPURunMinutesLimit",
    (GROUP, "mem"): "GrpMemLimit",
    (GROUP, "node"): "GrpNodeLimit",
    (PER_JOB, "cpu"): "MaxCpuPerJobLimit",
    (MINUTES_PER_JOB, "cpu"): "MaxCpuMinutesPerJobLimit",
    (PER_JOB, "node"): "MaxNodePerJobLimit",
    (PER_USER, "cpu"): "MaxCpuPerUserLimit",
    (PER_USER, "node"): "MaxNodePerUserLimit",
    (LEAST, "cpu"): "MinCpuNotSatisfied",
}


def of_resource(whose: str, kind: str, resource: str) -> str:
    """The reason of a limit to a TRES. whose: QOS or Assoc. kind: GROUP, PER_JOB, ..."""
    old = _OLD.get((kind, resource))
    if old is not None:
        return whose + old
    if resource == "mem":
        label = "Memory" if whose == "QOS" else "Mem"
    else:
        label = _LABELS.get(resource) or _KINDS.get(resource.partition("/")[0], "Unknown")
    return whose + kind.format(label)


def is_account_limit(reason: str) -> bool:
    """Whether a reason names a limit of a QOS or an association."""
    return reason.startswith(ACCOUNT_LIMITS)
