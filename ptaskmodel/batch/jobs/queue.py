"""The waiting queue in the order of the policy, with a search for the next job that fits.

It also holds back jobs whose submission follows the end of another job, which models users who wait
for results. The think time passes between the end of the preceding job and the submission.
Source: Feitelson, "The Standard Workload Format", Parallel Workloads Archive.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.batch.jobs.execution import Attempt
from ptaskmodel.errors import SimulationError, WorkloadError
from ptaskmodel.workload.jobs import Job, in_turn

# Of so many jobs each is looked at; of more, columns are searched.
SHORT = 48
# How many are searched at once at first: whoever fits is often not far.
STRETCH = 256


class JobQueue:
    """Jobs in order of (key, submission); the keys by ``order``, without one by submission alone.

    jobs: all of them, a list that stays the same object and changes between decisions only.
    waiting: those that nothing was decided on since.
    """

    def __init__(self, order: Callable[[Job], Any] | None, estimates: Mapping[Job, float]) -> None:
        self.jobs: list[Job] = []
        self.waiting: set[Job] = set()
        self._order = order
        self._estimates = estimates
        self._rank: dict[Job, Any] = {}
        self._arrivals = 0
        self._columns: _Columns | None = None  # of the jobs, while somebody searches long queues
        self._found = 0  # where the search before ended

    def enter(self, job: Job) -> None:
        """A job is submitted."""
        self._arrivals += 1
        if self._order is None:
            self._rank[job] = self._arrivals
            self.waiting.add(job)
            if self._columns is not None:
                self._columns.insert(len(self.jobs), job, self._estimates[job])
            self.jobs.append(job)
        else:
            self._rank[job] = (self._order(job), self._arrivals)
            self.enter_again(job)

    def enter_again(self, job: Job) -> None:
        """A job that was stopped waits again, at its place."""
        self.waiting.add(job)
        place = bisect_right(self.jobs, self._rank[job], key=self._rank.__getitem__)
        self.jobs.insert(place, job)
        if self._columns is not None:
            self._columns.insert(place, job, self._estimates[job])

    def forget_but(self, kept: Iterable[Job]) -> None:
        """Forget the places of all jobs but these, which are kept."""
        rank = self._rank
        self._rank = {job: rank[job] for job in kept}

    def leave(self, gone: Sequence[Job]) -> None:
        """Take out of the queue the jobs that are gone."""
        jobs = self.jobs
        if self._columns is not None:
            self._columns.delete([self._place(job) for job in gone])
            if len(jobs) < SHORT // 2:
                self._columns = None
        if len(gone) > 8:
            left = set(gone)
            jobs[:] = [job for job in jobs if job not in left]
        elif len(jobs) > SHORT:
            for job in gone:
                del jobs[self._place(job)]
        else:
            for job in gone:
                jobs.remove(job)

    def _place(self, job: Job) -> int:
        place = bisect_left(self.jobs, self._rank[job], key=self._rank.__getitem__)
        if place < len(self.jobs) and self.jobs[place] is job:
            return place
        return self.jobs.index(job)  # keys that are not in order, such as nan

    def _behind(self, job: Job) -> int:
        """Return where the jobs behind a job begin."""
        found = self._found
        if found < len(self.jobs) and self.jobs[found] is job:
            return found + 1
        if job not in self._rank:
            raise SimulationError(f"job '{job.id}' has not been submitted; name one that waits")
        return bisect_right(self.jobs, self._rank[job], key=self._rank.__getitem__)

    def next_fitting(
        self, after: Job | None, hosts: int, beyond: int, now: float, end_by: float
    ) -> Job | None:
        """The first that waits behind ``after``, needs at most so many hosts, and either needs at
        most ``beyond`` of them or is believed to have ended by a date (inf: nobody is), s.
        """
        begin = self._behind(after) if after is not None else 0
        jobs, waiting, estimates = self.jobs, self.waiting, self._estimates
        if end_by == inf:
            end_by = -inf
        if len(jobs) - begin > SHORT:
            return self._search(begin, hosts, beyond, now, end_by)
        for place, job in enumerate(jobs[begin:] if begin else jobs, begin):
            count = job.num_hosts
            if (
                count <= hosts
                and (count <= beyond or now + estimates[job] <= end_by)
                and job in waiting
            ):
                self._found = place
                return job
        return None

    def _search(self, begin: int, hosts: int, beyond: int, now: float, end_by: float) -> Job | None:
        """The same in columns."""
        jobs, waiting = self.jobs, self.waiting
        if self._columns is None:
            self._columns = _Columns(jobs, self._estimates)
        sizes, estimates = self._columns.sizes, self._columns.estimates
        stretch = STRETCH
        while begin < len(jobs):
            end = min(begin + stretch, len(jobs))
            places = np.flatnonzero(sizes[begin:end] <= hosts) + begin
            if len(places) and beyond < hosts:
                enough = sizes[places] <= beyond
                enough |= now + estimates[places] <= end_by
                places = places[enough]
            for place in places.tolist():
                if jobs[place] in waiting:
                    self._found = place
                    return jobs[place]
            begin, stretch = end, 4 * stretch
        return None


class _Columns:
    """Hosts and estimates of the jobs of a queue, in its order; longer than the queue is."""

    def __init__(self, jobs: Sequence[Job], estimates: Mapping[Job, float]) -> None:
        self._used = len(jobs)
        self.sizes: NDArray[np.int64] = np.zeros(2 * len(jobs), dtype=np.int64)
        self.estimates: NDArray[np.float64] = np.zeros(2 * len(jobs))
        self.sizes[: self._used] = [job.num_hosts for job in jobs]
        self.estimates[: self._used] = [estimates[job] for job in jobs]

    def insert(self, place: int, job: Job, estimate_s: float) -> None:
        used = self._used
        if used == len(self.sizes):
            self.sizes = np.concatenate([self.sizes, np.zeros_like(self.sizes)])
            self.estimates = np.concatenate([self.estimates, np.zeros_like(self.estimates)])
        if place < used:
            self.sizes[place + 1 : used + 1] = self.sizes[place:used]
            self.estimates[place + 1 : used + 1] = self.estimates[place:used]
        self.sizes[place] = job.num_hosts
        self.estimates[place] = estimate_s
        self._used += 1

    def delete(self, places: list[int]) -> None:
        used, left = self._used, self._used - len(places)
        first = min(places)
        if len(places) == 1:
            self.sizes[first:left] = self.sizes[first + 1 : used]
            self.estimates[first:left] = self.estimates[first + 1 : used]
        else:
            gone = [place - first for place in places]
            self.sizes[first:left] = np.delete(self.sizes[first:used], gone)
            self.estimates[first:left] = np.delete(self.estimates[first:used], gone)
        self._used = left


class ClosedLoop:
    """Each job with preceding jobs is submitted once all are over, and its user has thought.

    However these ended, rejected or lost too; its own date of submission does not count. Preceding
    jobs that are not in the workload are not waited for. first: the jobs that wait for no job.
    origin: of the jobs, for the WorkloadError with the jobs of each circle.
    """

    def __init__(self, jobs: Iterable[Job], origin: str) -> None:
        jobs = list(jobs)
        in_turn(jobs, origin, WorkloadError)
        known = {job.id for job in jobs}
        self.first: list[Job] = []
        self._followers: dict[str, list[Job]] = {}
        self._waits_for: dict[str, int] = {}  # how many jobs that are not over, by job
        for job in jobs:
            before = known.intersection(job.preceding_jobs)
            self._waits_for[job.id] = len(before)
            for each in before:
                self._followers.setdefault(each, []).append(job)
            if not before:
                self.first.append(job)
        self.waiting = len(jobs) - len(self.first)  # how many were not submitted yet

    def respond(self, attempt: Attempt, now: float) -> list[Job]:
        """Return the jobs to submit, with their dates, as that of `attempt` ends at `now` (s)."""
        due = []
        for job in self._followers.pop(attempt.job.id, []):
            self._waits_for[job.id] -= 1
            if self._waits_for[job.id] == 0:
                due.append(replace(job, submit_time_s=now + job.think_time_s))
        self.waiting -= len(due)
        return due
