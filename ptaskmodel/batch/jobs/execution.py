"""Attempts, each one execution of a job on its placement; executions, which start and end them.

An execution starts attempts and returns which of them ends next. Here are its interface, and jobs
of known run time; `parallel_tasks` has those whose ends depend on contention. Estimates are the run
times that the scheduler expects, of one job or of all in arrays.
"""

from __future__ import annotations

import copy
import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf, nan
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.batch.jobs.checkpoints import Checkpointing
from ptaskmodel.batch.machine.host_sets import (
    HostSet,
    Mask,
    Placement,
    holds,
    mask_of,
    members,
    runs,
    text,
)
from ptaskmodel.errors import SimulationError
from ptaskmodel.workload.jobs import Job, JobArrays
from ptaskmodel.workload.works import Work

SUCCESS = "COMPLETED_SUCCESSFULLY"
FAILED = "COMPLETED_FAILED"
WALLTIME = "COMPLETED_WALLTIME_REACHED"
KILLED = "COMPLETED_KILLED"
REJECTED = "REJECTED"
WAITING = "WAITING"
RUNNING = "RUNNING"
SUSPENDED = "SUSPENDED"
LEAVING = "LEAVING"
NOT_OVER = frozenset((WAITING, RUNNING, SUSPENDED, LEAVING))


class Attempt:
    """One execution of a job; a job that is requeued has several.

    job: the `Job`. work: what it runs, that of the job unless its start said otherwise. ordinal: 0
    for the first attempt of the job. number: among all attempts of the simulation, in order of
    their starts (-1: it never started). placement: the hosts that it holds, as they were chosen
    (with partitions more than it asked for; the work is on the lowest of them);
    ``hosts``, ``mask`` and ``runs`` are made of it when somebody asks. cores: how many of each,
    hosts ascending (None: whole hosts). use: of how many whole hosts that is worth. start_s,
    end_s: dates, None until then. expected_end_s: what the scheduler believes.
    state: one of the names above; reason: why it was rejected or stopped. suspensions: [from, to]
    for each time that it was suspended, ``to`` None while it lasts. kept_s: the seconds of its work
    that a checkpoint kept when it was stopped; overhead_s: that it read and wrote checkpoints.
    done: the part of the job's work that it did, 0 to 1, by what parts take alone; None: not noted.
    """

    __slots__ = (
        "cores",
        "done",
        "end_s",
        "expected_end_s",
        "job",
        "kept_s",
        "number",
        "ordinal",
        "overhead_s",
        "placement",
        "reason",
        "start_s",
        "state",
        "suspensions",
        "use",
        "work",
    )

    def __init__(
        self,
        job: Job,
        placement: Placement,
        start_s: float | None,
        expected_end_s: float,
        number: int,
        state: str = RUNNING,
        *,
        ordinal: int = 0,
        cores: tuple[int, ...] | None = None,
    ) -> None:
        self.job = job
        self.work: Work = job.work
        self.placement = placement
        self.cores = cores
        self.use: float = job.num_hosts
        self.start_s = start_s
        self.end_s: float | None = None
        self.expected_end_s = expected_end_s
        self.number = number
        self.ordinal = ordinal
        self.state = state
        self.reason = ""
        self.suspensions: Sequence[list[float | None]] = ()
        self.kept_s = 0.0
        self.overhead_s = 0.0
        self.done: float | None = None

    def __deepcopy__(self, memo: dict[int, object]) -> Attempt:
        """One that goes on by itself; an attempt that has ended is a fact."""
        if self.end_s is not None:
            return self
        other = copy.copy(self)
        memo[id(self)] = other
        other.suspensions = [list(stretch) for stretch in self.suspensions]
        return other

    def end(self, date: float, state: str, suspensions: Sequence[Sequence[float]]) -> None:
        """End at a `date` in a `state`, after `suspensions`, which are copied."""
        self.end_s, self.state = date, state
        self.suspensions = [list(stretch) for stretch in suspensions] if suspensions else ()

    @property
    def hosts(self) -> HostSet:
        """The hosts of its placement."""
        return HostSet(self.mask)

    @property
    def mask(self) -> Mask:
        """The hosts of its placement as bits."""
        return mask_of(self.placement)

    @property
    def runs(self) -> list[tuple[int, int]]:
        """(first, length) of each run of consecutive hosts of its placement, lowest first."""
        return list(runs(self.placement))

    @property
    def hosts_text(self) -> str:
        """The hosts of its placement as Batsim writes them, such as "0-2 5"."""
        return text(self.placement)

    def is_on(self, host: int) -> bool:
        """Whether a host, by its number, belongs to its placement."""
        return holds(self.placement, host)

    @property
    def ranks(self) -> list[int]:
        """The host of each rank of its work: one rank a host, or one on each core that it has."""
        hosts = members(self.placement)
        if self.cores is None:
            return hosts[: self.job.num_hosts]
        return [k for k, count in zip(hosts, self.cores, strict=True) for _ in range(count)]

    @property
    def was_cut(self) -> bool:
        """Whether something ended it before it was through, or at its walltime."""
        return self.state in (WALLTIME, KILLED) or (self.state == FAILED and bool(self.reason))

    @property
    def part_done(self) -> float:
        """The part of the job's work that it did, 1 if it ended by itself; nan: unknown."""
        if self.done is not None:
            return self.done
        return nan if self.was_cut else 1.0

    def suspended_s(self, now: float) -> float:
        """Return how long this attempt has been suspended in total, s, at time `now` (s)."""
        return sum(((now if to is None else to) - (since or 0.0)) for since, to in self.suspensions)

    def __repr__(self) -> str:
        return f"<attempt {self.ordinal} of job '{self.job.id}' on {self.hosts_text}: {self.state}>"


Ended = list[tuple[Attempt, str]]
# Of an attempt that a host or link which went down, or maintenance, stopped; not a final state.
INTERRUPTED = "INTERRUPTED"
# Of an attempt that has written the checkpoint that it was asked for; not a final state either.
LEFT = "LEFT"
# (date, number of the attempt, order of planning, attempt, state) of an end to come.
_End = tuple[float, int, int, Attempt, str]
Estimate = Callable[[Job], float]
FloatArray = NDArray[np.float64]


class Progress(NamedTuple):
    """How far an attempt is: simple works behind it, and the part of the next that is done.

    Works of a sequence are counted over all its rounds.
    """

    behind: int
    part: float


class Execution(Protocol):
    """What the batch simulation needs to know of time."""

    def start(self, attempt: Attempt, now: float) -> None:
        """The attempt begins on its placement, now."""

    def stop(self, attempt: Attempt, now: float) -> None:
        """The attempt, running or suspended, stops now."""

    def suspend(self, attempt: Attempt, now: float) -> None:
        """Freeze an attempt at time `now` (s); its walltime stops, too."""

    def resume(self, attempt: Attempt, now: float) -> None:
        """Continue a suspended attempt at time `now` (s)."""

    def leave(self, attempt: Attempt, now: float) -> float | None:
        """Let a running attempt write a checkpoint from time `now` (s) on, then end in state LEFT.

        Returns the time of that end, s; None if jobs write no checkpoints.
        """
        ...

    def fail_host(self, host: int, now: float) -> None:
        """A host (its number) fails or is turned off at time `now` (s), not by a trace."""

    def restore_host(self, host: int, now: float) -> None:
        """A host (its number) works again at time `now` (s), not by a trace."""

    def fail_other(self, name: str, now: float) -> list[Attempt]:
        """A link, or a host that runs no jobs, fails at time `now` (s).

        name: the link's or host's. Returns the attempts that this stopped.
        """
        ...

    def restore_other(self, name: str, now: float) -> None:
        """The link `name`, or the host `name` that runs no jobs, works again at time `now` (s)."""

    def set_pstate(self, host: int, pstate: int, now: float) -> None:
        """Put a host (its number) into performance state `pstate` at time `now` (s)."""

    def progress(self, attempt: Attempt, now: float) -> Progress:
        """How far an attempt that runs or is suspended is now."""
        ...

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
    jobs are not ``limited``. checkpoints: what jobs save, for attempts that are interrupted (None:
    nothing). Performance states change nothing: a delay is nothing but time.
    """

    def __init__(self, limited: bool = True, checkpoints: Checkpointing | None = None) -> None:
        self._limited = limited
        self._checkpoints = checkpoints
        self._ends: list[_End] = []
        self._number = 0
        # What each attempt is there for in the heap; other entries are void.
        self._due: dict[int, _End] = {}
        self._suspended: dict[int, tuple[float, str]] = {}
        self._assumed: Callable[[Job], float] | None = None
        # Seconds of the work of each job that a checkpoint holds; of those that are leaving, what
        # the one being written will hold, and for how long they had run when they were told to.
        self._saved: dict[Job, float] = {}
        self._leaving: dict[int, tuple[float, float]] = {}

    def assume(
        self,
        running: Iterable[Attempt],
        suspended: Iterable[Attempt],
        duration_s: Callable[[Job], float],
    ) -> None:
        """From now on, let attempts last as long as expected.

        `running` and `suspended` are those begun.

        duration_s: returns how long an attempt of a job that starts later lasts, s.
        """
        self._assumed = duration_s
        self._ends, self._due, self._suspended = [], {}, {}
        for attempt in running:
            self._plan(attempt, attempt.expected_end_s, SUCCESS)
        for attempt in suspended:
            since = attempt.suspensions[-1][0] or 0.0
            self._suspended[attempt.number] = (attempt.expected_end_s - since, SUCCESS)

    def start(self, attempt: Attempt, now: float) -> None:
        job = attempt.job
        duration = attempt.work.duration_s
        if self._assumed is not None:
            self._plan(attempt, now + self._assumed(job), SUCCESS)
            return
        if duration is None:
            duration = delay_of(job)
        if duration == inf:
            return
        if self._checkpoints is not None:
            duration = self._checkpoints.lasts_s(job, duration, self._saved.get(job, 0.0))
        state = FAILED if job.return_code else SUCCESS
        if self._limited and job.walltime_s is not None and duration >= job.walltime_s:
            duration, state = job.walltime_s, WALLTIME
        self._plan(attempt, now + duration, state)

    def _plan(self, attempt: Attempt, date: float, state: str) -> None:
        self._number += 1
        self._due[attempt.number] = end = (date, attempt.number, self._number, attempt, state)
        heapq.heappush(self._ends, end)

    def stop(self, attempt: Attempt, now: float) -> None:
        self._due.pop(attempt.number, None)
        self._suspended.pop(attempt.number, None)
        if self._checkpoints is not None:
            self._note_spent(attempt, now)

    def suspend(self, attempt: Attempt, now: float) -> None:
        end = self._due.pop(attempt.number)
        self._suspended[attempt.number] = (end[0] - now, end[4])

    def resume(self, attempt: Attempt, now: float) -> None:
        left_s, state = self._suspended.pop(attempt.number)
        self._plan(attempt, now + left_s, state)

    def leave(self, attempt: Attempt, now: float) -> float | None:
        checkpoints = self._checkpoints
        if checkpoints is None:
            return None
        job, saved_s = attempt.job, self._saved.get(attempt.job, 0.0)
        ran_s = run_s(attempt, now)
        spent = checkpoints.spent(job, ran_s, saved_s)
        # One that is being written already counts, and nothing is written of nothing.
        begun_s = ran_s - spent.work_s - checkpoints.reading_s(saved_s)
        begun_s -= checkpoints.write_s * round(spent.kept_s / checkpoints.interval_s(job))
        write_s = checkpoints.write_s - max(0.0, begun_s) if spent.work_s > spent.kept_s else 0.0
        self._leaving[attempt.number] = (saved_s + spent.work_s, ran_s)
        self._plan(attempt, now + write_s, LEFT)
        return now + write_s

    def _note_spent(self, attempt: Attempt, now: float, left: bool = False) -> None:
        """What an attempt that is over did, and what of it a checkpoint holds."""
        assert self._checkpoints is not None
        job, saved_s = attempt.job, self._saved.get(attempt.job, 0.0)
        kept_at_end_s, ran_s = self._leaving.pop(attempt.number, (0.0, run_s(attempt, now)))
        spent = self._checkpoints.spent(job, ran_s, saved_s)
        attempt.kept_s = kept_at_end_s - saved_s if left else spent.kept_s
        attempt.overhead_s = run_s(attempt, now) - spent.work_s
        if attempt.kept_s > 0:
            self._saved[job] = saved_s + attempt.kept_s

    def fail_host(self, host: int, now: float) -> None:
        """Do nothing at time `now` (s), as delays do not use the host (its number)."""

    restore_host = fail_host

    def fail_other(self, name: str, now: float) -> list[Attempt]:
        """Do nothing at time `now` (s), as delays do not use the link or host `name`."""
        return []

    def restore_other(self, name: str, now: float) -> None:
        """Do nothing at time `now` (s), as delays do not use the link or host `name`."""

    def set_pstate(self, host: int, pstate: int, now: float) -> None:
        """Do nothing at time `now` (s): delays do not depend on the `pstate` of a host."""

    def progress(self, attempt: Attempt, now: float) -> Progress:
        return progress_of_delays(attempt.work, run_s(attempt, now))

    def next_date(self) -> float:
        ends, due = self._ends, self._due
        while ends and due.get(ends[0][1]) is not ends[0]:
            heapq.heappop(ends)
        return ends[0][0] if ends else inf

    def advance(self, until: float) -> tuple[float, Ended]:
        ends = self._ends
        if not ends or ends[0][0] > until or (now := self.next_date()) > until or not ends:
            return until, []
        ended: Ended = []
        while ends and ends[0][0] == now:
            end = heapq.heappop(ends)
            if self._due.get(end[1]) is end:
                del self._due[end[1]]
                ended.append((end[3], end[4]))
                if self._checkpoints is not None:
                    self._note_spent(end[3], now, end[4] == LEFT)
        return now, ended


def run_s(attempt: Attempt, now: float) -> float:
    """For how long an attempt has run by now, its suspensions not counted, s."""
    return now - (attempt.start_s or 0.0) - attempt.suspended_s(now)


def progress_of_delays(work: Work, elapsed_s: float) -> Progress:
    """Return how far a work of delays is after `elapsed_s` seconds."""
    lasts_s = [part.duration_s or 0.0 for part in work.one_round()]
    rounds, elapsed_s = divmod(elapsed_s, sum(lasts_s) or inf)
    behind = min(int(rounds), work.rounds) * len(lasts_s)
    if rounds >= work.rounds:
        return Progress(behind, 0.0)
    for each_s in lasts_s:
        if elapsed_s < each_s:
            return Progress(behind, elapsed_s / each_s)
        elapsed_s -= each_s
        behind += 1
    return Progress(behind, 0.0)


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


@dataclass(frozen=True, slots=True)
class Scaled:
    """So many times another estimate; at most the walltime, if jobs are ``limited`` to it."""

    factor: float
    of: Estimate
    limited: bool

    def __call__(self, job: Job) -> float:
        scaled = self.factor * self.of(job)
        return min(scaled, walltime_or_inf(job)) if self.limited else scaled


def estimates_of(estimate: Estimate, jobs: Sequence[Job], arrays: JobArrays) -> FloatArray:
    """Return the estimate of each of `jobs`, s, shape (jobs,).

    estimate: how long a job is believed to run. arrays: what built-in estimates take instead of
    jobs.
    """
    if estimate is walltime_or_inf:
        return arrays.limit_s
    if estimate is delay_of:
        return arrays.duration_s
    if estimate is actual_duration_s:
        return np.minimum(arrays.duration_s, arrays.limit_s)
    if isinstance(estimate, Scaled):
        scaled = estimate.factor * estimates_of(estimate.of, jobs, arrays)
        return np.minimum(scaled, arrays.limit_s) if estimate.limited else scaled
    return np.array([estimate(job) for job in jobs], dtype=np.float64)
