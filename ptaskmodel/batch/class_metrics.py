"""Waiting and slowdown by classes of jobs (size, length, user), and fairness.

Fairness compares each start with the start that the job would have had without later submissions.
Sources: G. Sabin, G. Kochhar, P. Sadayappan, "Job fairness in non-preemptive job scheduling", ICPP
2004 (fair start times); W. Tang, D. Ren, Z. Lan, N. Desai, "Toward balanced and sustainable job
scheduling for production supercomputers", Parallel Computing 39(12), 2013 (unfair jobs).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from math import inf, nan
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.batch.jobs.execution import FAILED, SUCCESS, WALLTIME, Attempt, DelayExecution
from ptaskmodel.batch.loop.schedule import Schedule, figures_of
from ptaskmodel.batch.schedule_metrics import job_times
from ptaskmodel.workload.jobs import Job, users_of

if TYPE_CHECKING:
    from ptaskmodel.batch.loop.loop import BatchSimulation, Progress

# Lengths are execution times; each class goes up to its limit, s.
LENGTH_LIMITS_S = (60.0, 600.0, 3600.0, 6 * 3600.0, 24 * 3600.0)
LENGTHS = ("up to 1 min", "1 to 10 min", "10 min to 1 h", "1 to 6 h", "6 to 24 h", "over 24 h")
UNKNOWN = "unknown"
BASES = ("runtimes", "estimates")
# A job is unfair if it starts later than was fair by more than this, s.
TOLERANCE_S = 1e-6


class ClassRow(NamedTuple):
    """What became of the jobs of a class: those that ran; times in s.

    kind: "size" (hosts asked for), "length", "size and length" or "user". killed: how many of them
    were cut off, whose executions are shorter than their work. host_s: host seconds executed.
    unfair: how many started later than was fair; None where that was not asked for.
    """

    kind: str
    name: str
    jobs: int
    killed: int
    host_s: float
    mean_waiting_s: float
    max_waiting_s: float
    mean_execution_s: float
    mean_bounded_slowdown: float
    unfair: int | None


def size_name(k: int) -> str:
    """The name of a class of sizes: 1, 2, 3-4, 5-8, and so on; that of 1 is 0."""
    return str(k + 1) if k < 2 else f"{2 ** (k - 1) + 1}-{2**k}"


def _users(schedule: Schedule) -> Iterable[str | None]:
    """The users of the jobs that ran and ended."""
    if schedule.plain is None:
        return (attempt.job.user for attempt in schedule.ended())
    ended = ~np.isnan(schedule.plain.end_s)
    return itertools.compress(users_of(schedule.plain.jobs), ended.tolist())


def by_class(
    schedule: Schedule, *, tau_s: float = 60.0, unfair: Iterable[str] | None = None
) -> list[ClassRow]:
    """Return a row for each class of jobs of a `schedule`: by size, length, both, and user.

    tau_s: threshold of the bounded slowdown, s. unfair: ids of jobs that started later than was
    fair.
    """
    times = job_times(schedule)
    if not len(times.submit_s):
        return []
    figures = figures_of(schedule)
    asked = figures.num_hosts[figures.ended]
    # The smallest k with 2**k >= hosts.
    sizes = np.ceil(np.log2(np.maximum(asked, 1))).astype(np.int64)
    lengths = np.searchsorted(LENGTH_LIMITS_S, times.execution_s, side="left")
    users, names = _numbered(list(_users(schedule)))
    late = None
    if unfair is not None:
        ids = set(unfair)
        late = np.array([a.job.id in ids for a in schedule.ended()], dtype=np.float64)
    columns = (
        figures.cut[figures.ended].astype(np.float64),
        times.hosts * times.execution_s,
        times.waiting_s,
        times.execution_s,
        times.bounded_slowdown(tau_s),
        late,
    )
    size_names = [size_name(k) for k in range(int(sizes.max()) + 1)]
    both = [f"{size}, {length}" for size in size_names for length in LENGTHS]
    found: list[ClassRow] = []
    for kind, classes, labels in (
        ("size", sizes, size_names),
        ("length", lengths, LENGTHS),
        ("size and length", sizes * len(LENGTHS) + lengths, both),
        ("user", users, names),
    ):
        found += _rows(kind, classes, labels, columns)
    return found


def _numbered(users: Sequence[str | None]) -> tuple[NDArray[np.int64], list[str]]:
    """Each user as its number among all names, numbers among them in their order first."""
    name_of = {user: UNKNOWN if user is None else user for user in set(users)}
    known = sorted(
        set(name_of.values()), key=lambda n: (0, len(n), n) if n.isdecimal() else (1, 0, n)
    )
    place = {name: k for k, name in enumerate(known)}
    number = {user: place[name] for user, name in name_of.items()}
    return np.fromiter(map(number.__getitem__, users), np.int64, len(users)), known


def _rows(
    kind: str,
    classes: NDArray[np.int64],
    names: Sequence[str],
    columns: tuple[NDArray[np.float64] | None, ...],
) -> list[ClassRow]:
    killed, host_s, waited, lasted, slowed, late = columns
    assert waited is not None
    jobs = np.bincount(classes, minlength=len(names))
    longest = np.zeros(len(names))
    np.maximum.at(longest, classes, waited)
    sums = [
        None if column is None else np.bincount(classes, column, minlength=len(names))
        for column in (killed, host_s, waited, lasted, slowed, late)
    ]

    def total(which: int, k: int) -> float:
        column = sums[which]
        assert column is not None
        return float(column[k])

    return [
        ClassRow(
            kind,
            names[k],
            int(jobs[k]),
            round(total(0, k)),
            total(1, k),
            total(2, k) / int(jobs[k]),
            float(longest[k]),
            total(3, k) / int(jobs[k]),
            total(4, k) / int(jobs[k]),
            None if late is None else round(total(5, k)),
        )
        for k in np.flatnonzero(jobs).tolist()
    ]


class FairStart(NamedTuple):
    """When a job first started, and when it would have without later submissions; dates in s.

    runtimes_s: if jobs last as long as they do; estimates_s: if all jobs last, from its submission
    on, as long as estimated. inf: never; nan: it would have been rejected, or this was not
    requested. None for a job that started when it was submitted.
    """

    job: Job
    start_s: float
    runtimes_s: float | None
    estimates_s: float | None

    def is_unfair(self, basis: str) -> bool:
        """Return whether the job started later than was fair, on one `basis` of BASES."""
        fair = self.runtimes_s if basis == "runtimes" else self.estimates_s
        return fair is not None and self.start_s > fair + TOLERANCE_S


class _Known(dict[Job, Attempt]):
    """Attempts that are over, by job: facts, which copies share."""

    def __deepcopy__(self, memo: object) -> _Known:
        return self


class Replayed(DelayExecution):
    """An execution in which every attempt lasts as long as its job did in a schedule.

    It is for jobs that are not delays. An attempt that starts at the same date also ends at the
    same date. A job that was stopped, and so has no duration, lasts as long as estimated.
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
    while (following := replay.next_event_s()) is not None and following < date:
        if not replay.step():
            return


def _fair(fork: BatchSimulation, job: Job, bases: Sequence[str], frozen: bool) -> Iterator[float]:
    """When the last job to come starts, on each of the bases."""
    fork.step()
    if frozen:
        from ptaskmodel.batch.policies.tuning import Tuning

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
