"""How long jobs run: an execution starts attempts and says which of them ends next."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from math import inf
from typing import Protocol

from ptaskmodel.batch.attempt import FAILED, SUCCESS, WALLTIME, Attempt
from ptaskmodel.errors import SimulationError
from ptaskmodel.workload.jobs import Job

Ended = list[tuple[Attempt, str]]
# Of an attempt that a host or link which went down, or maintenance, stopped; not a final state.
INTERRUPTED = "INTERRUPTED"


class Execution(Protocol):
    """What the batch simulation needs to know of time."""

    def start(self, attempt: Attempt, now: float) -> None:
        """The attempt begins on its placement, now."""

    def stop(self, attempt: Attempt, now: float) -> None:
        """The attempt, running or suspended, stops now."""

    def suspend(self, attempt: Attempt, now: float) -> None:
        """The attempt is frozen; its walltime does not run."""

    def resume(self, attempt: Attempt, now: float) -> None:
        """The attempt goes on."""

    def fail_host(self, host: int, now: float) -> None:
        """A host fails or is turned off (not by a trace of the platform)."""

    def restore_host(self, host: int, now: float) -> None:
        """A host works again (not by a trace of the platform)."""

    def fail_other(self, name: str, now: float) -> list[Attempt]:
        """A link, or a host that runs no jobs, fails; the attempts that this stopped."""
        ...

    def restore_other(self, name: str, now: float) -> None:
        """A link, or a host that runs no jobs, works again."""

    def set_pstate(self, host: int, pstate: int, now: float) -> None:
        """A host has another performance state."""

    def next_date(self) -> float:
        """A date up to which nothing will end, s; inf if nothing ever will by itself."""
        ...

    def advance(self, until: float) -> tuple[float, Ended]:
        """Go to the first date at which some attempt ends, or to ``until`` if that is earlier.

        Returns the date and what ended there, in order of the starts, with the final state.
        """
        ...


class DelayExecution:
    """Every job lasts a time known beforehand, whoever runs beside it: a heap of ends.

    A job that needs its whole walltime or more is killed at its walltime (Batsim's rule), unless
    jobs are not ``limited``. Performance states change nothing: a delay is nothing but time.
    """

    def __init__(self, limited: bool = True) -> None:
        self._limited = limited
        self._ends: list[tuple[float, int, Attempt, str]] = []
        # What each attempt in the heap is there for; entries of others are void.
        self._due: dict[int, float] = {}
        self._suspended: dict[int, tuple[float, str]] = {}
        self._assumed: Callable[[Job], float] | None = None

    def assume(
        self,
        running: Iterable[Attempt],
        suspended: Iterable[Attempt],
        duration_s: Callable[[Job], float],
    ) -> None:
        """From now on attempts last what they are expected to; those that start, ``duration_s``."""
        self._assumed = duration_s
        self._ends, self._due, self._suspended = [], {}, {}
        for attempt in running:
            self._plan(attempt, attempt.expected_end_s, SUCCESS)
        for attempt in suspended:
            since = attempt.suspensions[-1][0] or 0.0
            self._suspended[attempt.number] = (attempt.expected_end_s - since, SUCCESS)

    def start(self, attempt: Attempt, now: float) -> None:
        job = attempt.job
        if self._assumed is not None:
            self._plan(attempt, now + self._assumed(job), SUCCESS)
            return
        duration = job.work.duration_s
        if duration is None:
            duration = delay_of(job)
        state = FAILED if job.return_code else SUCCESS
        if self._limited and job.walltime_s is not None and duration >= job.walltime_s:
            duration, state = job.walltime_s, WALLTIME
        self._plan(attempt, now + duration, state)

    def _plan(self, attempt: Attempt, date: float, state: str) -> None:
        self._due[attempt.number] = date
        heapq.heappush(self._ends, (date, attempt.number, attempt, state))

    def stop(self, attempt: Attempt, now: float) -> None:
        self._due.pop(attempt.number, None)
        self._suspended.pop(attempt.number, None)

    def suspend(self, attempt: Attempt, now: float) -> None:
        number = attempt.number
        state = next(entry[3] for entry in self._ends if entry[1] == number)
        self._suspended[number] = (self._due.pop(number) - now, state)

    def resume(self, attempt: Attempt, now: float) -> None:
        left_s, state = self._suspended.pop(attempt.number)
        self._plan(attempt, now + left_s, state)

    def fail_host(self, host: int, now: float) -> None:
        """Delays use no host."""

    restore_host = fail_host

    def fail_other(self, name: str, now: float) -> list[Attempt]:
        """Delays use no link."""
        return []

    def restore_other(self, name: str, now: float) -> None:
        """Delays use no link."""

    def set_pstate(self, host: int, pstate: int, now: float) -> None:
        """Delays use no host."""

    def next_date(self) -> float:
        ends, due = self._ends, self._due
        while ends and due.get(ends[0][1]) != ends[0][0]:
            heapq.heappop(ends)
        return ends[0][0] if ends else inf

    def advance(self, until: float) -> tuple[float, Ended]:
        now, ends = self.next_date(), self._ends
        if not ends or now > until:
            return until, []
        ended: Ended = []
        while ends and ends[0][0] == now:
            date, number, attempt, state = heapq.heappop(ends)
            if self._due.get(number) == date:
                del self._due[number]
                ended.append((attempt, state))
        return now, ended


def delay_of(job: Job) -> float:
    """How long a job of delays lasts without its walltime; SimulationError for other jobs."""
    delay = job.work.duration_s
    if delay is None:
        raise SimulationError(
            f"job '{job.id}': how long profile '{job.profile}' lasts depends on the platform: "
            "simulate it as a parallel task (--profiles ptask)"
        )
    return delay


def actual_duration_s(job: Job) -> float:
    """How long a job of delays runs, its walltime taken into account."""
    delay = delay_of(job)
    return delay if job.walltime_s is None else min(delay, job.walltime_s)


def walltime_or_inf(job: Job) -> float:
    """How long the user of a job said that it would last at most, s; inf if that is unknown."""
    return inf if job.walltime_s is None else job.walltime_s
