"""Verify policies: check every decision, on a given workload or on random ones.

Authors of policies use it. It implements the definitions and shares no code with the policies.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from math import inf

from ptaskmodel.batch.allocations import Allocation
from ptaskmodel.batch.jobs.execution import (
    KILLED,
    REJECTED,
    Attempt,
    actual_duration_s,
    walltime_or_inf,
)
from ptaskmodel.batch.loop.decisions import PolicyFault
from ptaskmodel.batch.loop.loop import BatchSimulation
from ptaskmodel.batch.loop.schedule import Schedule
from ptaskmodel.batch.loop.view import Policy, View
from ptaskmodel.batch.machine.capacity import HostCapacity
from ptaskmodel.errors import SimulationError
from ptaskmodel.workload.jobs import Job
from ptaskmodel.workload.works import DelayWork

PROMISES = ("none", "head", "all")


class Verifier:
    """To be given as ``observe``: looks at the state after every decision.

    promise "none": no host has two jobs and no job waits that is also running. "head": moreover,
    the date at which the first of the queue can start, by the estimates, is never put off
    (EASY). "all": the dates in the policy's ``reserved_s`` never are, and can be kept together
    (conservative); each job has one, or as many as its ``depth`` says. Dates may be put off when
    a job outlives its estimate or hosts come or go.
    Jobs of 0 s run one after the other at their date, before those that begin then. Raises
    PolicyFault.
    """

    def __init__(self, promise: str = "none") -> None:
        if promise not in PROMISES:
            raise SimulationError(f"promise '{promise}' is unknown; use one of {PROMISES}")
        self._promise = promise
        self._head: Job | None = None
        self._date = inf
        self._dates: dict[Job, float] = {}

    def __call__(self, view: View, policy: Policy) -> None:
        used = 0
        for attempt in view.running:
            if attempt.cores is None:
                if used & attempt.mask:
                    raise PolicyFault(f"at {view.now:g} s job '{attempt.job.id}' shares a host")
                used |= attempt.mask
            if view.is_waiting(attempt.job):
                raise PolicyFault(f"at {view.now:g} s job '{attempt.job.id}' waits and runs")
            if attempt.mask & ~view.available_mask:
                raise PolicyFault(
                    f"at {view.now:g} s job '{attempt.job.id}' runs on a host that is down or off"
                )
        if self._promise == "head":
            self._check_head(view, policy)
        elif self._promise == "all":
            dates = dict(getattr(policy, "reserved_s", {}))
            self._check_all(view, dates, getattr(policy, "depth", None) or inf)

    def _check_head(self, view: View, policy: Policy) -> None:
        waiting = [job for job in view.queue if view.is_waiting(job)]
        head = waiting[0] if waiting else None
        gone = self._head is not None and not view.is_waiting(self._head)
        kept = not (view.estimates_changed or view.machine_changed)
        if gone and view.now > self._date and kept:
            assert self._head is not None
            raise PolicyFault(
                f"job '{self._head.id}', first of the queue, was to start by {self._date:g} s and "
                f"started at {view.now:g} s"
            )
        date = inf if head is None else earliest_start(head, view)
        if head is self._head and date > self._date and kept and not _overtaken(head, view, policy):
            assert head is not None
            raise PolicyFault(
                f"at {view.now:g} s the start of job '{head.id}', first of the queue, was put off "
                f"from {self._date:g} s to {date:g} s"
            )
        self._head, self._date = head, date

    def _check_all(self, view: View, dates: dict[Job, float], depth: float) -> None:
        waiting = [job for job in view.queue if view.is_waiting(job)]
        # While a job of 0 s is still there, a policy with a depth may have stopped half way.
        brief = depth < inf and any(run.expected_end_s <= view.now for run in view.running)
        for job in waiting:
            if job not in dates and len(dates) < depth and not brief:
                raise PolicyFault(f"at {view.now:g} s job '{job.id}' waits without a reservation")
        if not (view.estimates_changed or view.machine_changed):
            for job, date in self._dates.items():
                now = dates.get(job, view.now)
                if now > date:
                    raise PolicyFault(
                        f"at {view.now:g} s the reservation of job '{job.id}' was put off from "
                        f"{date:g} s to {now:g} s"
                    )
        if all(job.cores is None for job in (*dates, *(r.job for r in view.running))):
            self._check_together(view, dates)
        self._dates = dates

    def _check_together(self, view: View, dates: dict[Job, float]) -> None:
        """Running jobs and reservations, of whole hosts, never need more than there are."""
        spans = [(r.start_s or 0.0, r.expected_end_s, r.job.num_hosts) for r in view.running]
        spans += [(d, d + view.estimate_s(j), j.num_hosts) for j, d in dates.items() if d < inf]
        alone: dict[float, int] = {}
        for begin, end, count in spans:
            if begin == end:
                alone[begin] = max(count, alone.get(begin, 0))
        for moment in {view.now, *(begin for begin, _, _ in spans)}:
            if moment < view.now:
                continue
            used = sum(count for begin, end, count in spans if begin <= moment < end)
            across = sum(count for begin, end, count in spans if begin < moment < end)
            used = max(used, across + alone.get(moment, 0))
            if used > view.num_hosts:
                raise PolicyFault(
                    f"at {view.now:g} s the reservations use {used} of {view.num_hosts} hosts at "
                    f"{moment:g} s"
                )


def _overtaken(head: Job | None, view: View, policy: Policy) -> bool:
    """Whether a job that the order puts before the first of the queue came and started just now."""
    order = getattr(policy, "order", None)
    if head is None or order is None:
        return False
    key = order(head)
    started = (attempt.job for attempt in view.running if attempt.start_s == view.now)
    return any(order(job) < key for job in started)


def earliest_start(job: Job, view: View) -> float:
    """The first date at which the job can start beside what runs, and maintenance."""
    ends = {attempt.expected_end_s for attempt in view.running}
    ends.update(window.end_s for window in view.maintenance)
    for date in sorted({view.now, *ends}):
        free, due = view.working_mask, date + view.estimate_s(job)
        for attempt in view.running:
            if attempt.expected_end_s > date:
                free &= ~attempt.mask
        for window in view.maintenance:
            if window.start_s <= date < window.end_s or date < window.start_s < due:
                free &= ~window.hosts
        if free.bit_count() < job.num_hosts:
            continue
        if not view.allocation.constrained or view.allocation.choose(job.num_hosts, free):
            return date
    return inf


def check_schedule(
    schedule: Schedule, jobs: Sequence[Job], hosts: Sequence[HostCapacity] | None = None
) -> None:
    """Check that no job is lost or early, and no core or memory used twice; raises PolicyFault.

    schedule: what became of the jobs. jobs: all that were submitted. hosts: what each has (one core
    and unlimited memory, if left out).
    """
    if [run.job for run in schedule.final] != sorted(jobs, key=lambda job: job.submit_time_s):
        raise PolicyFault("the schedule has not exactly one final attempt for each job")
    capacities = hosts or [HostCapacity()] * schedule.num_hosts
    uses: dict[int, list[tuple[float, float, Attempt, int]]] = {}
    before: dict[Job, Attempt] = {}
    for attempt in schedule.attempts:
        _check_attempt(attempt, schedule.num_hosts, before.get(attempt.job))
        before[attempt.job] = attempt
        assert attempt.start_s is not None
        assert attempt.end_s is not None
        cores = iter(attempt.cores or ())
        for host in attempt.hosts:
            taken = capacities[host].cores if attempt.cores is None else next(cores)
            if attempt.end_s > attempt.start_s:
                span = (attempt.start_s, attempt.end_s, attempt, taken)
                uses.setdefault(host, []).append(span)
    for host, spans in uses.items():
        _check_host(host, capacities[host], spans)
    for attempt in schedule.final:
        if attempt.state not in (REJECTED, KILLED) and attempt.start_s is None:
            raise PolicyFault(f"job '{attempt.job.id}' is lost")


def _check_attempt(attempt: Attempt, num_hosts: int, before: Attempt | None) -> None:
    """The dates and the placement of an attempt; ``before``: the one before of the same job."""
    job, start, end = attempt.job, attempt.start_s, attempt.end_s
    if start is None or end is None:
        raise PolicyFault(f"job '{job.id}' has an attempt without dates")
    if start < job.submit_time_s or end < start:
        raise PolicyFault(f"job '{job.id}' runs before it is submitted or backwards")
    if before is not None and (before.end_s is None or before.end_s > start):
        raise PolicyFault(f"job '{job.id}' has two attempts at a time")
    asked = job.num_hosts * (job.cores or 1)
    if attempt.mask >> num_hosts or len(attempt.ranks) != asked:
        raise PolicyFault(f"job '{job.id}' does not have the hosts that it asks for")


def _check_host(
    host: int, capacity: HostCapacity, spans: Sequence[tuple[float, float, Attempt, int]]
) -> None:
    """At each start on a host, what runs there has room; what is suspended keeps its memory."""
    for moment, _, one, _ in spans:
        there = [(a, cores) for begin, end, a, cores in spans if begin <= moment < end]
        running = [(a, cores) for a, cores in there if not _is_suspended(a, moment)]
        if sum(cores for _, cores in running) > capacity.cores:
            ids = ", ".join(f"'{a.job.id}'" for a, _ in running)
            raise PolicyFault(f"jobs {ids} share cores of host {host}")
        memory = sum(a.job.memory_B or 0.0 for a, _ in there)
        if capacity.memory_B is not None and memory > capacity.memory_B:
            raise PolicyFault(f"at {moment:g} s ('{one.job.id}') host {host} lacks memory")
        for name, count in capacity.resources.items():
            if sum(a.job.resources.get(name, 0) for a, _ in there) > count:
                raise PolicyFault(f"at {moment:g} s ('{one.job.id}') host {host} lacks '{name}'")


def _is_suspended(attempt: Attempt, moment: float) -> bool:
    return any(
        (since or 0.0) <= moment and (to is None or moment < to)
        for since, to in attempt.suspensions
    )


def random_jobs(seed: int, jobs: int, num_hosts: int) -> list[Job]:
    """Return `jobs` random jobs of at most `num_hosts` hosts each, the same for a `seed`.

    There are ties, bursts and all kinds of walltimes.
    """
    draw = random.Random(seed)
    date, made = 0.0, []
    for k in range(jobs):
        date += draw.choice((0.0, 0.0, 1.0, 2.0, draw.uniform(0, 6)))
        count = draw.choice((1, 1, 2, draw.randint(1, num_hosts), num_hosts))
        duration = draw.choice((1.0, 2.0, 5.0, draw.uniform(0.1, 12)))
        walltime = draw.choice((duration, duration + 1.0, 2 * duration, 4 * duration, 20.0))
        name = f"delay_{duration!r}"
        made.append(Job(f"j{k}", date, min(count, num_hosts), name, DelayWork(duration), walltime))
    return made


def check_policy(
    make_policy: Callable[[], Policy],
    *,
    promise: str = "none",
    workloads: int = 100,
    jobs: int = 30,
    num_hosts: int = 8,
    seed: int = 0,
    make_allocation: Callable[[], Allocation] | None = None,
    estimate: Callable[[Job], float] = walltime_or_inf,
) -> None:
    """Try a policy on random workloads; PolicyFault (with the seed) if it breaks a rule.

    Checked: every job runs once or is rejected, after its submission, on as many hosts as it asks
    for, each host serving one job at a time; the promise (see `Verifier`); and that the same
    workload gives the same schedule twice.

    make_policy: returns a new policy for each workload. promise: as of `Verifier`. workloads: how
    many are tried, each of ``jobs`` jobs on ``num_hosts`` hosts. seed: of the first; the others
    follow. make_allocation: returns a new rule that chooses hosts (None: the default one).
    estimate: how long a policy believes a job to run, s.
    """
    for number in range(seed, seed + workloads):
        workload = random_jobs(number, jobs, num_hosts)
        try:
            first = _once(make_policy, workload, num_hosts, promise, make_allocation, estimate)
            again = _once(make_policy, workload, num_hosts, "none", make_allocation, estimate)
            if first != again:
                raise PolicyFault("the same workload gives another schedule the second time")
        except PolicyFault as fault:
            raise PolicyFault(
                f"workload random_jobs({number}, {jobs}, {num_hosts}): {fault}"
            ) from None


def _once(
    make_policy: Callable[[], Policy],
    jobs: Sequence[Job],
    num_hosts: int,
    promise: str,
    make_allocation: Callable[[], Allocation] | None,
    estimate: Callable[[Job], float],
) -> list[tuple]:
    """One run, checked; the dates and hosts of all runs."""
    simulation = BatchSimulation(
        jobs,
        num_hosts,
        make_policy(),
        allocation=make_allocation() if make_allocation else None,
        estimate=estimate,
        observe=Verifier(promise),
    )
    schedule = simulation.run()
    check_schedule(schedule, jobs)
    for attempt in schedule.attempts:
        assert attempt.start_s is not None
        due = attempt.start_s + actual_duration_s(attempt.job)
        if attempt.state != KILLED and not attempt.suspensions and attempt.end_s != due:
            raise PolicyFault(f"job '{attempt.job.id}' does not end when it should")
    return [(a.job.id, a.start_s, a.end_s, a.mask) for a in schedule.attempts]
