"""Jobs that run: their attempts, and the execution that says when they end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from ptaskmodel.batch.attempt import Attempt
from ptaskmodel.batch.execution import Execution
from ptaskmodel.batch.hostset import Mask, members
from ptaskmodel.batch.slurm.record import JobRecord
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
        attempt = Attempt(run, place, date, job.end_s, next(self._numbers))
        attempt.ordinal = job.restarts
        if work.duration_s is None:
            attempt.cores = self._tasks(job)
        job.attempt = attempt
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


def _followed_by(work: Work, more_s: float) -> Work:
    """A work, and so many seconds more; as it is where it has as many stages as there may be."""
    if work.duration_s is not None:
        return DelayWork(work.duration_s + more_s)
    full = isinstance(work, SequenceWork) and (
        work.depth >= MAX_DEPTH or work.stages_per_round >= MAX_STAGES
    )
    return work if full else SequenceWork((work, DelayWork(more_s)))
