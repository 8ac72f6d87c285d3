"""Fairness: when each job would have started if nobody had come after it.

Sources: G. Sabin, G. Kochhar, P. Sadayappan, "Job fairness in non-preemptive job scheduling", ICPP
2004 (fair start times); W. Tang, D. Ren, Z. Lan, N. Desai, "Toward balanced and sustainable job
scheduling for production supercomputers", Parallel Computing 39(12), 2013 (unfair jobs).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import inf, nan
from typing import NamedTuple

from ptaskmodel.batch.attempt import FAILED, SUCCESS, WALLTIME, Attempt
from ptaskmodel.batch.execution import DelayExecution
from ptaskmodel.batch.policies.tuning import Tuning
from ptaskmodel.batch.schedule import Schedule
from ptaskmodel.batch.simulator import BatchSimulation, Progress
from ptaskmodel.workload.jobs import Job

BASES = ("runtimes", "estimates")
# A job is unfair if it starts later than was fair by more than this, s.
TOLERANCE_S = 1e-6


class FairStart(NamedTuple):
    """When a job started first, and when it would have if nobody had come after it; dates in s.

    runtimes_s: if jobs last as long as they do; estimates_s: if all jobs last, from its submission
    on, what they are believed to. inf: never; nan: it would have been rejected, or this was not
    asked for. None of a job that started when it was submitted: there is nothing to ask.
    """

    job: Job
    start_s: float
    runtimes_s: float | None
    estimates_s: float | None

    def is_unfair(self, basis: str) -> bool:
        """Whether it started later than was fair, on one of BASES."""
        fair = self.runtimes_s if basis == "runtimes" else self.estimates_s
        return fair is not None and self.start_s > fair + TOLERANCE_S


class _Known(dict[Job, Attempt]):
    """Attempts that are over, by job: facts, which copies share."""

    def __deepcopy__(self, memo: object) -> _Known:
        return self


class Replayed(DelayExecution):
    """Every attempt lasts what that of its job lasted in a schedule; for jobs that are no delays.

    An attempt that starts when it did then ends when it did then. Who was stopped then, and so has
    no time of its own, lasts what it was believed to.
    """

    def __init__(self, schedule: Schedule) -> None:
        super().__init__()
        self._known = _Known(
            (attempt.job, attempt)
            for attempt in schedule.attempts
            if attempt.state in (SUCCESS, WALLTIME)
            or (attempt.state == FAILED and not attempt.reason)
        )

    def start(self, attempt: Attempt, now: float) -> None:
        known = self._known.get(attempt.job)
        if self._assumed is not None:
            super().start(attempt, now)
        elif known is None or known.end_s is None or known.start_s is None:
            self._plan(attempt, attempt.expected_end_s, SUCCESS)
        elif now == known.start_s and not known.suspensions:
            self._plan(attempt, known.end_s, known.state)
        else:
            lasted = known.end_s - known.start_s - known.suspended_s(known.end_s)
            self._plan(attempt, now + lasted, known.state)


def fair_starts(
    replay: BatchSimulation,
    schedule: Schedule,
    *,
    bases: Sequence[str] = BASES,
    frozen: bool = False,
    progress: Progress | None = None,
) -> list[FairStart]:
    """The fair start of every job that started, in order of submission.

    replay: the simulation that gave the schedule, anew at date 0, of jobs that are delays (or as
    `Replayed`). frozen: the parameters of an adaptive policy stay as they are when a job is
    submitted; else tuning goes on. For each job that waited the simulation is forked at its
    submission, without those after it, and goes on until the job starts, once for each of the
    ``bases``. progress: called with the date, and for how many jobs it is known and is not yet.
    """
    firsts: dict[Job, float] = {}
    for attempt in schedule.attempts:
        firsts.setdefault(attempt.job, attempt.start_s or 0.0)
    found: list[FairStart] = []
    jobs = [attempt.job for attempt in schedule.final]
    for date, group in groupby(jobs, key=lambda job: job.submit_time_s):
        together = list(group)
        late = [k for k, job in enumerate(together) if firsts.get(job, date) > date]
        if late:
            _go_before(replay, date)
            replay.forget_past()
        for k, job in enumerate(together):
            if k in late:
                fork = replay.fork(together[: k + 1])
                dates = dict(zip(bases, _fair(fork, job, bases, frozen), strict=True))
                fair = dates.get("runtimes", nan), dates.get("estimates", nan)
                found.append(FairStart(job, firsts[job], *fair))
            elif job in firsts:
                found.append(FairStart(job, firsts[job], None, None))
            if progress is not None:
                progress(date, len(found), len(jobs) - len(found))
    return found


def _go_before(replay: BatchSimulation, date: float) -> None:
    """Do all that is due before a date."""
    while (following := replay.next_event_time()) is not None and following < date:
        if not replay.step():
            return


def _fair(fork: BatchSimulation, job: Job, bases: Sequence[str], frozen: bool) -> Iterator[float]:
    """When the last job to come starts, on each of the bases."""
    fork.step()
    if frozen:
        tuning = getattr(fork.policy, "tuning", None)
        if isinstance(tuning, Tuning):
            tuning.freeze()
    for number, basis in enumerate(bases):
        last = number == len(bases) - 1 or not fork.view.is_waiting(job)
        other = fork if last else fork.fork()
        if basis == "estimates" and other.view.is_waiting(job):
            other.assume_estimates()
        while other.view.is_waiting(job):
            if not other.step():
                yield inf
                break
        else:
            yield nan if other.view.attempt(job) is None else other.now
