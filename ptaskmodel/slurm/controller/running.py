"""Running jobs: their attempts in an execution, which computes when they end.

Completing jobs are here too: they are over, but their nodes are not clean, and no job can start
there.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from math import inf
from typing import NamedTuple

from ptaskmodel.batch.jobs.attempt import Attempt
from ptaskmodel.batch.jobs.execution import Execution
from ptaskmodel.batch.machine.host_sets import Mask, members
from ptaskmodel.slurm.jobs.record import JobRecord
from ptaskmodel.workload.jobs import Job
from ptaskmodel.workload.works import (
    MAX_DEPTH,
    MAX_STAGES,
    DelayWork,
    SequenceWork,
    Work,
)

# How long a job runs whose end is told.
UNTIL_TOLD_S = 1e12


class Running:
    """Starts and stops jobs in an execution.

    cpus: of each node. longer_s: by how much each job runs longer than it says. told: when jobs end
    according to a recorded run, by id; the loop ends them. numbers: those of attempts, where the
    jobs of several controllers run in the execution; hosts: what each node is among its hosts.
    """

    def __init__(
        self,
        execution: Execution,
        cpus: Sequence[int],
        longer_s: float = 0.0,
        told: Mapping[str, float] | None = None,
        numbers: Iterator[int] | None = None,
        hosts: Sequence[int] | None = None,
    ) -> None:
        self._cpus = cpus
        self._numbers = count() if numbers is None else numbers
        self._hosts = hosts
        self.execution = execution
        self._longer_s = longer_s
        self._told = told or {}
        self._jobs: dict[int, JobRecord] = {}

    def has(self, attempt: Attempt) -> bool:
        """Whether an attempt is of one of these jobs."""
        return attempt.number in self._jobs

    def job_of(self, attempt: Attempt) -> JobRecord:
        """Whose an attempt is."""
        return self._jobs[attempt.number]

    def start(self, job: JobRecord, date: float) -> None:
        """The script of a job begins."""
        allocation, work = job.allocation, job.request.work
        assert allocation is not None
        if self._told.get(job.id, 0.0) > date:
            work = DelayWork(UNTIL_TOLD_S)
        elif self._longer_s:
            work = _followed_by(work, self._longer_s)
        run = Job(job.id, date, allocation.size, job.id, work)
        place = self._place(allocation.nodes)
        cores = self._tasks(job) if work.duration_s is None else None
        number = next(self._numbers)
        attempt = Attempt(run, place, date, job.end_s, number, ordinal=job.restarts, cores=cores)
        job.run_as(attempt)
        self._jobs[attempt.number] = job
        self.execution.start(attempt, date)

    def _place(self, nodes: Mask) -> Mask:
        """The hosts of the execution that nodes are."""
        if self._hosts is None:
            return nodes
        return sum(1 << self._hosts[k] for k in members(nodes))

    def _tasks(self, job: JobRecord) -> tuple[int, ...] | None:
        """How many tasks each node gets: as many as its CPUs hold, first nodes first; one at least.

        None: the job asked for nodes alone, and has one rank on each.
        """
        allocation, tasks = job.allocation, job.request.tasks
        assert allocation is not None
        if tasks is None:
            return None
        cpus = allocation.cpus or [self._cpus[k] for k in members(allocation.nodes)]
        found, left = [], tasks
        for k, held in enumerate(cpus):
            after = allocation.size - k - 1
            mine = min(max(1, held // job.request.cpus_per_task), left - after)
            found.append(mine if after else left)
            left -= mine
        return tuple(found)

    def stop(self, job: JobRecord, date: float) -> None:
        """A job is stopped for good."""
        assert job.attempt is not None
        self.execution.stop(job.attempt, date)

    def suspend(self, job: JobRecord, date: float) -> None:
        """A job does no work from now on."""
        assert job.attempt is not None
        self.execution.suspend(job.attempt, date)

    def resume(self, job: JobRecord, date: float) -> None:
        """A job goes on."""
        assert job.attempt is not None
        self.execution.resume(job.attempt, date)

    def note_end(self, job: JobRecord, date: float) -> None:
        """The attempt of a `job` is over at a `date`, in the job's state."""
        assert job.attempt is not None
        job.attempt.end(date, job.state, job.suspensions)


def _followed_by(work: Work, more_s: float) -> Work:
    """A work, and so many seconds more; as it is where it has as many stages as there may be."""
    if work.duration_s is not None:
        return DelayWork(work.duration_s + more_s)
    full = isinstance(work, SequenceWork) and (
        work.depth >= MAX_DEPTH or work.stages_per_round >= MAX_STAGES
    )
    return work if full else SequenceWork((work, DelayWork(more_s)))


# How long it takes at least until the nodes of a killed job are clean: a pass in the same turn of
# the main loop finds them completing.
KILL_S = 0.015
# How long an epilog takes at least: of jobs that end at one date each asks for a pass of its own
# when its nodes are clean, and those of the others are not yet.
EPILOG_S = 0.01
# In a recorded run, the pass that a killed job asks for comes so soon, and its nodes are clean just
# before.
SOON_S, BEFORE_S = 0.5, 1e-4


class Completing(NamedTuple):
    """A job that is over, and whose nodes are clean at a date.

    at_once: a pass is asked for then, at once. requeued: it begins anew.
    """

    date_s: float
    job: JobRecord
    at_once: bool
    requeued: bool


def nodes_of(job: JobRecord) -> Mask:
    """The nodes that a job has, or had."""
    return 0 if job.allocation is None else job.allocation.nodes


class Cleaning:
    """The jobs that are completing, by the date at which their nodes are clean.

    nodes: those on which processes of them are. cleaned: when the nodes of jobs were clean that
    took long in a recorded run; passed: when it made passes of default depth.
    """

    def __init__(self) -> None:
        self.nodes: Mask = 0
        self.cleaned: Mapping[str, float] = {}
        self.passed: Sequence[float] = ()
        self._jobs: list[Completing] = []

    def __len__(self) -> int:
        return len(self._jobs)

    def follow(self, passed: Sequence[float], cleaned: Mapping[str, float]) -> None:
        """Follow a recorded run: set when it `passed` and when it `cleaned` nodes."""
        self.passed, self.cleaned = passed, cleaned

    @property
    def date(self) -> float:
        """When the next job gives its nodes back; inf: there is none."""
        return self._jobs[0].date_s if self._jobs else inf

    def date_of(self, job: JobRecord, date: float, clean_s: float, *, at_once: bool) -> float:
        """When the nodes of a job that is over at a date are clean, if that takes so long.

        at_once: whether it then asks for a pass of its own.
        """
        clean = date + clean_s
        if not at_once:
            return max(clean, self.cleaned.get(job.id, date))
        return self._as_told(date, clean) if self.passed else clean

    def _as_told(self, date: float, clean: float) -> float:
        """When the nodes of a job that is over now were clean, in a recorded run.

        Each of those that are over together asks for a pass of its own when its nodes are. Without
        any the nodes were clean at once, if there was a pass then.
        """
        before = sum(each.at_once for each in self._jobs)
        first = bisect_left(self.passed, date + KILL_S / 2)
        found = [each for each in self.passed[first : first + before + 1] if each < date + SOON_S]
        if not found:
            return date if first and self.passed[first - 1] >= date else clean
        last = found[-2] if len(found) > 1 else date
        return found[-1] - min(BEFORE_S, (found[-1] - last) / 2)

    def add(self, one: Completing) -> None:
        """A job is over, and its nodes are clean later."""
        insort(self._jobs, one, key=lambda each: each.date_s)
        self.nodes |= nodes_of(one.job)

    def pop(self) -> Completing:
        """The job whose nodes are clean first: they are now."""
        over = self._jobs.pop(0)
        self.nodes = 0
        for each in self._jobs:
            self.nodes |= nodes_of(each.job)
        return over

    def since(self, date_s: float) -> list[JobRecord]:
        """The jobs that are over since a date, Unix seconds."""
        return [each.job for each in self._jobs if each.job.end_s >= date_s]
