"""State of the open batch loop: the queue, the running attempts, and the events of this time."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from math import inf
from typing import Any

from ptaskmodel.batch.allocations import Allocation
from ptaskmodel.batch.allocations.free_hosts import FirstFit
from ptaskmodel.batch.jobs.attempt import RUNNING, SUSPENDED, Attempt
from ptaskmodel.batch.jobs.queue import JobQueue
from ptaskmodel.batch.loop.cluster import Cluster
from ptaskmodel.batch.loop.decisions import Event
from ptaskmodel.batch.loop.power_states import Pstates
from ptaskmodel.batch.machine.failures import Maintenance
from ptaskmodel.batch.machine.host_sets import Mask
from ptaskmodel.workload.jobs import Job


class Estimates(dict[Job, float]):
    """How long each job is believed to run, s: asked for once, when it is submitted or before."""

    def __init__(self, estimate: Callable[[Job], float]) -> None:
        super().__init__()
        self._estimate = estimate

    def __missing__(self, job: Job) -> float:
        self[job] = believed = self._estimate(job)
        return believed


class State:
    """The machine, the queue and the attempts; only the simulation changes it.

    limited: whether a job ends at its walltime at the latest. maintenance: None without any.
    """

    def __init__(
        self,
        cluster: Cluster,
        allocation: Allocation,
        estimate: Callable[[Job], float],
        order: Callable[[Job], Any] | None,
        limited: bool = True,
        maintenance: Maintenance | None = None,
        pstates: Pstates | None = None,
    ) -> None:
        self.now = 0.0
        self.cluster = cluster
        self.pstates = pstates or Pstates()
        self.allocation = allocation
        # Whether the lowest free hosts are always right: nobody need be asked then.
        self.first_fit = type(allocation) is FirstFit
        self.estimates = Estimates(estimate)
        self._estimate = estimate
        self.limited = limited
        self.maintenance = maintenance
        self.line = JobQueue(order, self.estimates)
        self.queue = self.line.jobs
        self.waiting = self.line.waiting
        self.running: dict[Job, Attempt] = {}
        self.suspended: dict[Job, Attempt] = {}
        # Running attempts by expected end, then by start.
        self.by_end: list[tuple[float, int, Attempt]] = []
        # What happened at this date.
        self.submitted: list[Job] = []
        self.ended: list[Attempt] = []
        self.other_events: list[Event] = []
        self.estimates_changed = False
        self.machine_changed = False
        self.machine_changes = False  # since the last decision began

    # --- the queue --------------------------------------------------------------------------

    def submit(self, job: Job) -> None:
        """Put a job in the queue; how long it is believed to run is asked for here, once."""
        self.estimates[job] = self._estimate(job)
        self.line.enter(job)
        self.submitted.append(job)

    def submit_again(self, job: Job) -> None:
        """Put a job that was stopped at its place in the queue."""
        self.line.enter_again(job)
        self.submitted.append(job)

    # --- what fits --------------------------------------------------------------------------

    def by_count(self, job: Job) -> bool:
        """Whether the number of idle hosts says if a job fits now.

        No cores are counted, no host is shared, and by its estimate it ends before any maintenance.
        """
        cluster, maintenance = self.cluster, self.maintenance
        return (
            not cluster.counted
            and not cluster.shared
            and (maintenance is None or self.now + self.estimates[job] <= maintenance.first_s)
        )

    @property
    def occupied(self) -> Mask:
        """The hosts on which jobs run."""
        mask = 0
        for attempt in self.running.values():
            mask |= attempt.mask
        return mask

    def any_will_do(self, job: Job) -> bool:
        """Whether moreover the lowest idle hosts are right: nobody need be asked then."""
        return self.first_fit and self.by_count(job)

    def candidates(self, job: Job) -> Mask:
        """The hosts on which a job could start now, and end by its estimate before maintenance."""
        free = self.cluster.candidates(job)
        if self.maintenance is not None:
            free &= ~self.maintenance.during(self.now, self.now + self.estimates[job])
        return free

    def can_resume(self, attempt: Attempt) -> bool:
        """Whether the cores of a suspended attempt are free, until its end by its estimate."""
        if not self.cluster.cores_free(attempt):
            return False
        if self.maintenance is None:
            return True
        left_s = attempt.expected_end_s - (attempt.suspensions[-1][0] or 0.0)
        return not attempt.mask & self.maintenance.during(self.now, self.now + left_s)

    # --- attempts ---------------------------------------------------------------------------

    def started(self, attempt: Attempt) -> None:
        """An attempt has begun; its hosts have been taken."""
        self.running[attempt.job] = attempt
        insort(self.by_end, (attempt.expected_end_s, attempt.number, attempt))

    def stopped(self, attempt: Attempt) -> None:
        """An attempt has ended, running or suspended."""
        job = attempt.job
        if job in self.suspended:
            del self.suspended[job]
            attempt.suspensions[-1][1] = self.now
            self.cluster.forget(attempt)
        else:
            del self.running[job]
            self.cluster.give(attempt)
            self._leave_by_end(attempt)

    def suspend(self, attempt: Attempt) -> None:
        del self.running[attempt.job]
        self.suspended[attempt.job] = attempt
        self._leave_by_end(attempt)
        self.cluster.release(attempt)
        attempt.state = SUSPENDED
        attempt.suspensions = [*attempt.suspensions, [self.now, None]]
        self.machine_changes = True

    def resume(self, attempt: Attempt) -> None:
        del self.suspended[attempt.job]
        self.running[attempt.job] = attempt
        attempt.state = RUNNING
        last = attempt.suspensions[-1]
        last[1] = self.now
        attempt.expected_end_s += self.now - (last[0] or 0.0)
        self.cluster.take_again(attempt)
        insort(self.by_end, (attempt.expected_end_s, attempt.number, attempt))
        self.machine_changes = True

    def expect(self, attempt: Attempt, date: float) -> None:
        """A running attempt will end at this date."""
        self._leave_by_end(attempt)
        attempt.expected_end_s = date
        insort(self.by_end, (date, attempt.number, attempt))
        self.machine_changes = True

    def _leave_by_end(self, attempt: Attempt) -> None:
        del self.by_end[bisect_left(self.by_end, (attempt.expected_end_s, attempt.number))]

    def extend_outlived(self) -> None:
        """Double the estimates of the jobs that outlived them, never beyond their walltime."""
        now, by_end, late = self.now, self.by_end, []
        if by_end and by_end[0][0] <= now:
            for entry in by_end:
                if entry[0] > now:
                    break
                if (entry[2].start_s or 0.0) < now:
                    late.append(entry)
        self.estimates_changed = bool(late)
        for attempt in self.ended:
            if attempt.expected_end_s < now:
                self.estimates_changed = True
        for entry in late:
            self._extend(entry)

    def _extend(self, entry: tuple[float, int, Attempt]) -> None:
        _, number, attempt = entry
        # From the start that it would have had without its suspensions.
        start = (attempt.start_s or 0.0) + attempt.suspended_s(self.now)
        expected = attempt.expected_end_s - start or self.now - start
        while start + expected <= self.now:
            expected *= 2
        walltime = attempt.job.walltime_s
        limit = inf if walltime is None or not self.limited else walltime
        self.by_end.remove(entry)
        attempt.expected_end_s = start + min(expected, limit)
        if self.maintenance is not None:
            end = self.maintenance.next_start(attempt.mask, self.now)
            attempt.expected_end_s = min(attempt.expected_end_s, end)
        insort(self.by_end, (attempt.expected_end_s, number, attempt))
