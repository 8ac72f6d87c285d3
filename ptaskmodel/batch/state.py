"""What a policy sees (a read-only view) and what it answers (decisions)."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Protocol

from ptaskmodel.batch.allocation import Allocation
from ptaskmodel.batch.hostset import HostSet
from ptaskmodel.workload.jobs import Job

SUCCESS = "COMPLETED_SUCCESSFULLY"
FAILED = "COMPLETED_FAILED"
WALLTIME = "COMPLETED_WALLTIME_REACHED"
KILLED = "COMPLETED_KILLED"
REJECTED = "REJECTED"
RUNNING = "RUNNING"


class Run:
    """One execution of a job on its hosts; a job that is killed and restarted has several.

    ``expected_end_s`` is what the scheduler believes; ``state`` one of the names above.
    """

    __slots__ = (
        "attempt",
        "expected_end_s",
        "finish_time_s",
        "handle",
        "hosts",
        "job",
        "number",
        "reason",
        "start_time_s",
        "state",
    )

    def __init__(
        self, job: Job, hosts: HostSet, start_time_s: float, expected_end_s: float, number: int
    ) -> None:
        self.job = job
        self.hosts = hosts
        self.start_time_s: float | None = start_time_s
        self.finish_time_s: float | None = None
        self.expected_end_s = expected_end_s
        self.number = number
        self.attempt = 0
        self.state = RUNNING
        self.reason = ""
        self.handle: object = None


@dataclass(frozen=True, slots=True)
class Start:
    """Start a waiting job: on ``hosts`` if given, else where the allocation says in ``within``."""

    job: Job
    hosts: HostSet | None = None
    within: HostSet | None = None


@dataclass(frozen=True, slots=True)
class Restart:
    """Kill a running job and start it again from the beginning, as `Start` does."""

    job: Job
    hosts: HostSet | None = None
    within: HostSet | None = None


@dataclass(frozen=True, slots=True)
class Reject:
    """Never run a waiting job."""

    job: Job
    reason: str = ""


Decision = Job | Start | Restart | Reject


class Policy(Protocol):
    """Decides what starts. A plain job in the answer stands for ``Start(job)``.

    ``order``: the key by which the queue is sorted (jobs of one key by submission); None: by
    submission. `decide` is called once for each date at which jobs end or are submitted, after all
    of them. It yields decisions; each is carried out at once, so that what the view says after a
    yield already takes it into account.
    """

    order: Callable[[Job], object] | None

    def decide(self, view: View) -> Iterable[Decision]: ...


class State:
    """The state of the machine and of the queue; only the simulation changes it."""

    def __init__(
        self,
        num_hosts: int,
        allocation: Allocation,
        estimate: Callable[[Job], float],
        order: Callable[[Job], object] | None,
    ) -> None:
        self.now = 0.0
        self.num_hosts = num_hosts
        self.free_hosts: HostSet = (1 << num_hosts) - 1
        self.allocation = allocation
        self.estimate = estimate
        self.queue: list[Job] = []
        self.waiting: set[Job] = set()
        self.running: dict[Job, Run] = {}
        self.by_end: list[tuple[float, int, Run]] = []
        self.submitted: list[Job] = []
        self.ended: list[Run] = []
        self.changed_estimates = False
        self._order = order
        self._rank: dict[Job, tuple] = {}
        self._arrivals = 0

    def submit(self, job: Job) -> None:
        """Put a job in the queue, in the order of the policy."""
        self.waiting.add(job)
        self.submitted.append(job)
        if self._order is None:
            self.queue.append(job)
            return
        self._arrivals += 1
        self._rank[job] = (self._order(job), self._arrivals)
        insort(self.queue, job, key=self._rank.__getitem__)

    def leave_queue(self, gone: Sequence[Job]) -> None:
        """Take these jobs out of the queue."""
        if len(gone) > 8:
            self.queue = [job for job in self.queue if job in self.waiting]
        else:
            for job in gone:
                self.queue.remove(job)
        for job in gone:
            self._rank.pop(job, None)

    def started(self, run: Run) -> None:
        self.running[run.job] = run
        self.free_hosts &= ~run.hosts
        insort(self.by_end, (run.expected_end_s, run.number, run))

    def stopped(self, run: Run) -> None:
        del self.running[run.job]
        self.free_hosts |= run.hosts
        del self.by_end[bisect_left(self.by_end, (run.expected_end_s, run.number))]

    def extend_outlived(self) -> None:
        """Double the estimates of the jobs that outlived them, never beyond their walltime."""
        late = []
        for entry in self.by_end:
            if entry[0] > self.now:
                break
            if (entry[2].start_time_s or 0.0) < self.now:
                late.append(entry)
        ended_late = any(run.expected_end_s < self.now for run in self.ended)
        self.changed_estimates = bool(late) or ended_late
        for entry in late:
            _, number, run = entry
            start = run.start_time_s or 0.0
            expected = run.expected_end_s - start or self.now - start
            while start + expected <= self.now:
                expected *= 2
            limit = inf if run.job.walltime_s is None else run.job.walltime_s
            self.by_end.remove(entry)
            run.expected_end_s = start + min(expected, limit)
            insort(self.by_end, (run.expected_end_s, number, run))


class View:
    """What a policy may look at. A view of part of the machine shows only the hosts ``within``."""

    __slots__ = ("_state", "within")

    def __init__(self, state: State, within: HostSet | None = None) -> None:
        self._state = state
        self.within = (1 << state.num_hosts) - 1 if within is None else within

    @property
    def now(self) -> float:
        """The date, s."""
        return self._state.now

    @property
    def num_hosts(self) -> int:
        """How many hosts there are, busy ones included."""
        return self.within.bit_count()

    @property
    def free_hosts(self) -> HostSet:
        """The free hosts, as a set (see `hostset`)."""
        return self._state.free_hosts & self.within

    @property
    def free(self) -> int:
        """How many hosts are free."""
        return (self._state.free_hosts & self.within).bit_count()

    @property
    def queue(self) -> Sequence[Job]:
        """The jobs that waited when the decision began, in the order of the policy."""
        return self._state.queue

    @property
    def submitted(self) -> Sequence[Job]:
        """The jobs submitted at this date, in order of submission."""
        return self._state.submitted

    @property
    def ended(self) -> Sequence[Run]:
        """The runs that ended at this date or were killed in this decision."""
        ended = self._state.ended
        return ended if self._whole else [run for run in ended if run.hosts & self.within]

    @property
    def running(self) -> Sequence[Run]:
        """The running jobs, in order of their starts."""
        return [run for run in self._state.running.values() if run.hosts & self.within]

    @property
    def by_expected_end(self) -> Iterable[Run]:
        """The running jobs by expected end, then by start."""
        if self._whole:
            return [entry[2] for entry in self._state.by_end]
        return [entry[2] for entry in self._state.by_end if entry[2].hosts & self.within]

    @property
    def estimates_changed(self) -> bool:
        """Whether, at this date, a job was seen to have outlived its estimate."""
        return self._state.changed_estimates

    @property
    def allocation(self) -> Allocation:
        return self._state.allocation

    @property
    def _whole(self) -> bool:
        return self.within == (1 << self._state.num_hosts) - 1

    def is_waiting(self, job: Job) -> bool:
        """Whether the job is (still) in the queue."""
        return job in self._state.waiting

    def estimate_s(self, job: Job) -> float:
        """How long the job is believed to run, s; inf if there is no belief."""
        return self._state.estimate(job)

    def fits(self, job: Job) -> bool:
        """Whether the job could start now."""
        free = self.free_hosts
        if free.bit_count() < job.num_hosts:
            return False
        allocation = self._state.allocation
        return not allocation.constrained or allocation.choose(job.num_hosts, free) is not None

    def part(self, within: HostSet) -> View:
        """The view of the hosts ``within`` alone; the queue is the same."""
        return View(self._state, within)
