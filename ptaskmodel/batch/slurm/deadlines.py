"""Jobs that wait longer than their deadlines allow, and jobs that ended long ago."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ptaskmodel.batch.slurm import record
from ptaskmodel.batch.slurm.record import JobRecord


class Deadlines:
    """The jobs that must be over at a date. second: the clock, Unix seconds, at a date."""

    def __init__(self, second: Callable[[float], int]) -> None:
        self._second = second
        self._jobs: list[JobRecord] = []

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def add(self, job: JobRecord) -> None:
        """A job waits, for the first time or again."""
        if job.request.deadline_s is not None and job not in self._jobs:
            self._jobs.append(job)

    def missed(self, now: int) -> list[JobRecord]:
        """Those who wait and would not be over in time if they started now."""
        waiting = [job for job in self._jobs if job.state == record.PENDING]
        self._jobs = [job for job in self._jobs if job.state in record.OPEN]
        return [job for job in waiting if now + _least_s(job) > self._deadline(job)]

    def _deadline(self, job: JobRecord) -> int:
        deadline_s = job.request.deadline_s
        assert deadline_s is not None
        return self._second(deadline_s)


def _least_s(job: JobRecord) -> float:
    """How long a job may run at least, s."""
    need = job.needs[0]
    return (need.limit_s if need.least_limit_s is None else need.least_limit_s) or 0


class Ended:
    """The records of jobs that are over, which are forgotten after a while."""

    def __init__(self) -> None:
        self._jobs: deque[tuple[int, JobRecord]] = deque()

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __len__(self) -> int:
        return len(self._jobs)

    def add(self, now: int, job: JobRecord) -> None:
        """A job is over now."""
        self._jobs.append((now, job))

    def forget(self, until_s: int) -> list[JobRecord]:
        """The jobs that are over since a date or longer, once each."""
        gone = []
        while self._jobs and self._jobs[0][0] <= until_s:
            date_s, job = self._jobs.popleft()
            if job.state not in record.OPEN and job.end_s == date_s:
                gone.append(job)
        return gone
