"""How long jobs run: an execution starts jobs and says which of them ends next."""

from __future__ import annotations

import heapq
from math import inf
from typing import Protocol

from ptaskmodel.batch.state import FAILED, SUCCESS, WALLTIME, Run
from ptaskmodel.errors import SimulationError
from ptaskmodel.workload.jobs import Job

Ended = list[tuple[Run, str]]


class Execution(Protocol):
    """What the batch simulation needs to know of time."""

    def start(self, run: Run, now: float) -> None:
        """The run begins on its hosts, now."""

    def kill(self, run: Run) -> None:
        """The run stops, now."""

    def advance(self, until: float) -> tuple[float, Ended]:
        """Go to the first date at which some run ends, or to ``until`` if that is earlier.

        Returns the date and what ended there, in order of the starts, with the final state.
        """
        ...


class DelayExecution:
    """Every job lasts a time known beforehand, whoever runs beside it: a heap of ends.

    A job that needs its whole walltime or more is killed at its walltime (Batsim's rule).
    """

    def __init__(self) -> None:
        self._ends: list[tuple[float, int, Run]] = []
        self._killed: set[int] = set()

    def start(self, run: Run, now: float) -> None:
        duration = delay_of(run.job)
        if run.job.walltime_s is not None and duration >= run.job.walltime_s:
            duration = run.job.walltime_s
        heapq.heappush(self._ends, (now + duration, run.number, run))

    def kill(self, run: Run) -> None:
        self._killed.add(run.number)

    def next_end(self) -> float:
        """The date of the next end; inf if nothing runs."""
        ends = self._ends
        while ends and ends[0][1] in self._killed:
            self._killed.discard(heapq.heappop(ends)[1])
        return ends[0][0] if ends else inf

    def advance(self, until: float) -> tuple[float, Ended]:
        now, ends = self.next_end(), self._ends
        if not ends or now > until:
            return until, []
        ended: Ended = []
        while ends and ends[0][0] == now:
            _, number, run = heapq.heappop(ends)
            if number in self._killed:
                self._killed.discard(number)
            else:
                ended.append((run, _final_state(run.job)))
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


def _final_state(job: Job) -> str:
    if job.walltime_s is not None and delay_of(job) >= job.walltime_s:
        return WALLTIME
    return FAILED if job.return_code else SUCCESS


def actual_duration_s(job: Job) -> float:
    """How long a job of delays runs, its walltime taken into account."""
    delay = delay_of(job)
    return delay if job.walltime_s is None else min(delay, job.walltime_s)


def walltime_or_inf(job: Job) -> float:
    return inf if job.walltime_s is None else job.walltime_s
