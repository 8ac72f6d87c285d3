"""Job records: the data that Slurm has about a job, and the methods that change it.

The controller and the schedulers call these methods; no other module assigns a field of a record.
The module also finds jobs that exceed their time limits or outlast their reservations, and lists
the reasons, in Slurm's words, for which a job waits or is refused.
Source: slurm/slurm.h of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, NamedTuple

from ptaskmodel.batch.jobs.execution import Attempt
from ptaskmodel.batch.machine.host_sets import Mask
from ptaskmodel.slurm.conf.facts import Conf, Gres, Partition
from ptaskmodel.slurm.conf.reservations import Reservation
from ptaskmodel.slurm.jobs.request import JobRequest

PENDING, RUNNING, SUSPENDED, COMPLETING = "PENDING", "RUNNING", "SUSPENDED", "COMPLETING"
COMPLETED, FAILED, TIMEOUT, CANCELLED = "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED"
PREEMPTED, NODE_FAIL, DEADLINE, REFUSED = "PREEMPTED", "NODE_FAIL", "DEADLINE", "REFUSED"
LIVE = frozenset({RUNNING, SUSPENDED, COMPLETING})
OPEN = LIVE | {PENDING}
# QOSNotAllowed is none: the partition does not take such a job.
ACCOUNT_LIMITS = ("QOSGrp", "QOSMax", "QOSMin", "Assoc")
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


class Allocation(NamedTuple):
    """What a job holds.

    nodes: a mask; size: how many. cores: of each node, ascending, its cores as a mask, counted from
    0 within the node; none under select/linear. cpus, memory_MiB: of each node likewise; no memory
    where it is not counted. gres: of each node, its generic resources, where these are not what the
    job asks of each.
    """

    nodes: Mask
    size: int
    cores: tuple[int, ...] = ()
    cpus: tuple[int, ...] = ()
    memory_MiB: tuple[int, ...] = ()
    gres: tuple[tuple[Gres, ...], ...] = ()


class JobRecord:
    """A job from its submission to its end; its fields change through its methods alone.

    Dates are whole Unix seconds, as Slurm keeps them, but for ``began``, the true date at which its
    script began. number: Slurm's id. partitions: those it may run in, first choice first, and a
    priority and a need for each. eligible_s: None until it is. limit_s: of this run, seconds; inf:
    none. end_s: while it runs, when its limit ends. ran_s: how long it has run before ``since_s``
    without what it was suspended. victim: whether it was listed as such by a preemptor. lost:
    whether it does no more work, as one of its nodes has failed. completing: whether it is over,
    but its nodes are not clean yet. reservation: the one it asked for. listed: its
    place in the list of all jobs. serial: its place among the numbers that Slurm gives to jobs and
    to tasks that start. tested_cpus: what it was last found to take, 0 before. by:
    which scheduler started it. prefers: whether ``needs`` are those with the features that it
    prefers. least_nodes: the least that it asks for, raised to `min_nodes` if that is allowed.
    planned_s, planned: what backfill last found for it.
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
        "least_nodes",
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
        "prefers",
        "priorities",
        "ran_s",
        "reason",
        "request",
        "reservation",
        "restarts",
        "serial",
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
        self,
        request: JobRequest,
        number: int,
        submit_s: int,
        partitions: Sequence[Partition],
        listed: int | None = None,
    ) -> None:
        self.request = request
        self.number = number
        self.place = number
        self.submit_s = submit_s
        self.begin_s = submit_s
        self.eligible_s: int | None = None
        self.partitions = tuple(partitions)
        least, most = request.nodes_asked(self.min_nodes)
        self.least_nodes = least if least <= most else request.least_nodes
        self.priorities = [0] * len(self.partitions)
        self.needs: Sequence[Any] = ()
        self.prefers = request.prefer is not None
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
        self.listed = self.serial = number if listed is None else listed
        self.tested_cpus = 0
        self.suspensions: Sequence[list[float]] = ()

    # --- submission -------------------------------------------------------------------------

    def stand_with(self, number: int) -> None:
        """Stand among equals in the queue where the job of a `number` does: the first of its array.

        In the list of all jobs it gets another place when it starts (`start`).
        """
        self.place = number

    def set_needs(self, needs: Sequence[Any]) -> None:
        """Set `needs`, one for each partition."""
        self.needs = needs

    def prefer(self, prefers: bool) -> None:
        """Set whether the job is tried with the features that it `prefers`."""
        self.prefers = prefers

    @property
    def need(self) -> Any:
        """What it needs in the partition that it runs in."""
        if len(self.needs) == 1:
            return self.needs[0]
        return self.needs[self.partitions.index(self.partition)]

    def set_account(self, account: Any) -> None:
        """Set the member whose limits and shares count: `account`."""
        self.account = account

    def set_reservation(self, reservation: Reservation | None) -> None:
        """Set the `reservation` in which the job runs."""
        self.reservation = reservation

    def begin_after(self, begin_s: int) -> None:
        """Set `begin_s`, before which the job is not eligible."""
        self.begin_s = begin_s

    def leave(self, state: str, now: int, reason: str | None = None) -> None:
        """End a job that does not run, in a `state` at `now`; None: it keeps its `reason`."""
        self.state, self.end_s = state, now
        if reason is not None:
            self.reason = reason

    # --- waiting ----------------------------------------------------------------------------

    def set_priorities(self, priorities: Any) -> None:
        """Set `priorities`, one for each partition; a view of an array may follow refreshes."""
        self.priorities = priorities

    def wait_for(self, reason: str) -> None:
        """Set the `reason` for which the job waits."""
        self.reason = reason

    def set_eligible(self, since_s: int | None) -> None:
        """Set since when the job is eligible, `since_s`; None: it is not."""
        self.eligible_s = since_s

    def hold(self, held: bool) -> None:
        """Hold the job, or release it if it is not `held`."""
        self.held = held

    @property
    def is_task(self) -> bool:
        """Whether it is a task of an array that has never started."""
        return self.request.array is not None and not self.restarts

    def change_request(self, request: JobRequest) -> None:
        """Set what the job asks for from now on, a `request`."""
        self.request = request

    def set_tested_cpus(self, cpus: int) -> None:
        """Set how many `cpus` the job takes."""
        self.tested_cpus = cpus

    def plan(self, date_s: float, nodes: Mask) -> None:
        """Set the start that backfill plans, `date_s`, and the `nodes`."""
        self.planned_s, self.planned = date_s, nodes

    def forget_plan(self) -> None:
        """Nothing is planned."""
        self.planned_s, self.planned = None, 0

    # --- from start to end ------------------------------------------------------------------

    def renumber(self, serial: int) -> None:
        """Set the place among Slurm's numbers, `serial`: a task that starts gets one of its own."""
        self.serial = serial

    def start(
        self,
        partition: Partition,
        allocation: Allocation,
        now: int,
        by: str,
        *,
        limit_s: float,
        longest_s: float,
        listed: int,
    ) -> None:
        """Start the job at `now` with an `allocation` in a `partition`.

        by: the scheduler. limit_s: its time limit, s; inf: none. longest_s: how long an unlimited
        job is expected to run, s. listed: its place in the list of all jobs.
        """
        self.partition, self.allocation, self.by = partition, allocation, by
        self.state, self.reason = RUNNING, "None"
        self.start_s = self.since_s = now
        self.limit_s = limit_s
        self.end_s = now + (longest_s if limit_s == inf else limit_s)
        self.listed = listed
        self.ran_s, self.victim, self.lost, self.suspensions = 0.0, False, False, ()

    def run_as(self, attempt: Attempt) -> None:
        """Set the `attempt` that the execution runs."""
        self.attempt = attempt

    def be_victim(self, until_s: float = inf) -> None:
        """A preempted job goes on, suspended or until `until_s`: its limit ends then at least."""
        self.victim = True
        self.end_s = min(self.end_s, until_s)

    def stop_working(self) -> None:
        """The job does no more work, as one of its nodes has failed."""
        self.lost = True

    def end(self, state: str, now: int, date: float) -> None:
        """End, in a `state`, at `now` (Unix s) and `date` (s of the simulation), but keep nodes."""
        if self.suspensions and self.suspensions[-1][1] == inf:
            self.suspensions[-1][1] = date
        self.state, self.end_s, self.completing = state, now, True

    def give_nodes_back(self) -> None:
        """The nodes are clean: the job is not completing any more."""
        self.completing = False

    def requeue(self, now: int, begin_s: int) -> None:
        """Wait again from `now` on, not eligible before `begin_s`."""
        self.restarts += 1
        self.state = PENDING
        self.tested_cpus = 0
        self.submit_s, self.begin_s, self.eligible_s = now, begin_s, None

    # --- suspension -------------------------------------------------------------------------

    def suspend(self, now: int, date: float) -> None:
        """Suspend the job at `now` (Unix s) and `date` (s of the simulation)."""
        self.state = SUSPENDED
        self.ran_s += now - self.since_s
        self.since_s = now
        self.suspensions = [*self.suspensions, [date, inf]]

    def resume(self, now: int, date: float) -> None:
        """Let a suspended job go on at `now` (Unix s) and `date` (s of the simulation)."""
        self.state, self.since_s = RUNNING, now
        self.suspensions[-1][1] = date

    def extend(self, now: int, longest_s: float) -> None:
        """The limit goes on from `now`, without the time of suspension; longest_s as in `start`."""
        limit_s = longest_s if self.limit_s == inf else self.limit_s
        self.end_s = now + limit_s - self.ran_s

    @property
    def min_nodes(self) -> int:
        """The least MinNodes of its partitions, which it asks for at least."""
        if len(self.partitions) == 1:
            return self.partitions[0].min_nodes
        return min(partition.min_nodes for partition in self.partitions)

    @property
    def id(self) -> str:
        return self.request.id

    def __repr__(self) -> str:
        return f"<Slurm job '{self.id}': {self.state}>"


# Who runs or is suspended, by the end of its limit: (date, place in the list of all, job).
End = tuple[float, int, JobRecord]
Ends = Sequence[End]


# Jobs and their numbers, by the ends of their limits (Unix s).
ByEnd = Sequence[tuple[float, int, JobRecord]]


def over_time_s(conf: Conf, partition: Partition) -> float:
    """How long after its limit a job is killed at the next check, s; inf: never."""
    own = partition.over_time_limit_min
    return 60 * (conf.over_time_limit_min if own is None else own)


def over_limit(conf: Conf, by_end: ByEnd, now: int) -> list[JobRecord]:
    """Return the running jobs whose time limit is over."""
    over = []
    for end, _, job in by_end:
        if end > now:
            break
        if job.state != RUNNING or (job.limit_s == inf and not job.victim):
            continue
        if job.victim or now >= end + over_time_s(conf, job.partition):
            over.append(job)
    return over


def outstaying(
    conf: Conf, by_end: ByEnd, now: int, known: Sequence[JobRecord] = ()
) -> list[JobRecord]:
    """Return the jobs that run in a reservation that is over, except some known ones."""
    before = now - conf.resv_over_run_min * 60
    return [
        job
        for _, _, job in by_end
        if job.reservation is not None
        and job.reservation.end_s < before
        and job.state == RUNNING
        and job not in known
    ]


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


def nodes_of(job: JobRecord) -> Mask:
    """The nodes that a job has, or had."""
    return 0 if job.allocation is None else job.allocation.nodes


def is_account_limit(reason: str) -> bool:
    """Whether a reason names a limit of a QOS or an association."""
    return reason.startswith(ACCOUNT_LIMITS)
