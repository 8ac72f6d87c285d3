"""Jobs that are submitted when another is over: the closed loop of users who wait for results.

Source: Feitelson, "The Standard Workload Format", Parallel Workloads Archive: the think time
passes between the end of the preceding job and the submission of this one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ptaskmodel.batch.attempt import Attempt
from ptaskmodel.errors import WorkloadError
from ptaskmodel.workload.jobs import Job


class ClosedLoop:
    """Each job with a preceding job is submitted once that is over, and its user has thought.

    However that one ended, rejected or lost too; its own date of submission does not count. Jobs
    whose preceding job is not in the workload keep their dates. first: the jobs that wait for
    nobody. Raises WorkloadError for jobs that wait for each other in a circle.
    """

    def __init__(self, jobs: Iterable[Job]) -> None:
        jobs = list(jobs)
        known = {job.id for job in jobs}
        self.first: list[Job] = []
        self._followers: dict[str, list[Job]] = {}
        for job in jobs:
            if job.preceding_job is None or job.preceding_job not in known:
                self.first.append(job)
            else:
                self._followers.setdefault(job.preceding_job, []).append(job)
        self.waiting = len(jobs) - len(self.first)  # how many were not submitted yet
        self._check(jobs)

    def _check(self, jobs: list[Job]) -> None:
        """WorkloadError if some job can never be submitted."""
        reached = {job.id for job in self.first}
        stack = [job.id for job in self.first]
        while stack:
            for follower in self._followers.get(stack.pop(), ()):
                reached.add(follower.id)
                stack.append(follower.id)
        for job in jobs:
            if job.id not in reached:
                raise WorkloadError(
                    f"job '{job.id}' waits for job '{job.preceding_job}', and that, at last, for "
                    "itself: correct preceding_job"
                )

    def respond(self, attempt: Attempt, now: float) -> list[Job]:
        """The jobs to submit, with their dates, as the job of an attempt is over."""
        followers = self._followers.pop(attempt.job.id, [])
        self.waiting -= len(followers)
        return [replace(job, submit_time_s=now + job.think_time_s) for job in followers]
