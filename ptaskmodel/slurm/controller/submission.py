"""Submission: jobs that arrive, are requeued or held, or leave the queue without a start."""

from __future__ import annotations

from collections.abc import Sequence

from ptaskmodel.slurm.conf.facts import Conf, Partition
from ptaskmodel.slurm.controller.allocations import Allocations
from ptaskmodel.slurm.controller.events import Events
from ptaskmodel.slurm.controller.job_list import JobList
from ptaskmodel.slurm.controller.limits import Deadlines
from ptaskmodel.slurm.controller.rules import INVALID_FEATURE, Rules
from ptaskmodel.slurm.jobs import record
from ptaskmodel.slurm.jobs.record import JobRecord
from ptaskmodel.slurm.jobs.request import JobRequest
from ptaskmodel.slurm.queue.queue import Queue

# How long a job that is requeued is not eligible: its credential lives on.
REQUEUED_S = 121


class Submission:
    """Puts jobs in the queue, and takes those out that never start.

    conf, rules: of the cluster. events, jobs, queue: what each change is noted in. allocations:
    what jobs use.
    """

    def __init__(
        self,
        conf: Conf,
        rules: Rules,
        events: Events,
        jobs: JobList,
        queue: Queue,
        allocations: Allocations,
    ) -> None:
        self._max_job_count = conf.max_job_count
        self._rules = rules
        self._events = events
        self._jobs = jobs
        self._queue = queue
        self._allocations = allocations
        self._deadlines = Deadlines(events.second)
        self._partitions = {p.name: p for p in conf.partitions}
        self._default = [conf.home_partition]

    def is_full(self, more: int) -> bool:
        """Whether so many `more` jobs would be too many to keep records of."""
        jobs = self._jobs
        kept = len(self._queue) + len(jobs.running) + len(self._allocations.cleaning) + jobs.ended
        return kept + more >= self._max_job_count

    def submit(self, request: JobRequest, date: float, reason: str | None = None) -> JobRecord:
        """Take in or refuse the job of a `request`, which arrives at a `date`.

        reason: why it is refused, whatever it asks for.
        """
        rules, now = self._rules, self._events.second(date)
        partitions = self._partitions_of(request.partitions)
        request = rules.as_taken_in(request, partitions[0])
        job = self._jobs.add(request, now, partitions)
        job.enter_list(self._jobs.first_place(job), rules.place(job))
        job.set_needs(rules.needs(job))
        if request.begin_s is not None:
            job.begin_after(max(now, self._events.second(request.begin_s)))
        deadline_s = request.deadline_s
        if deadline_s is not None and self._events.second(deadline_s) < now:
            reason = reason or "InvalidTimeLimit"
        reason = reason or rules.refuses(job, now)
        limited = None
        if reason is None and rules.limits.enforced:
            job.set_needs(rules.within_limits(job))
            limited = rules.limited(job)
        if reason is None and limited is None and not rules.could_start(job, now):
            # It is in the list of jobs when that is found, and stays there for a while; others
            # stand behind the priority that it was given.
            rules.waits(job, now)
            rules.priorities.gone(job)
            reason = "BadConstraints"
            self._jobs.end(job, now)
            self._events.change(date)
        if reason is not None:
            if reason == INVALID_FEATURE:  # found of a record, which is removed again
                self._events.change(date)
            job.leave(record.REFUSED, now, reason)
            return job
        rules.submitted(job, now)
        rules.waits(job, now)
        if limited is None:
            rules.tested_at_submit(job, self._allocations.select)
            self._allocations.tested_at_submit(job)
        self._queue.add(job)
        if limited is not None:
            self._queue.waits_because(job, limited)
        self._queue.expect(job, now)
        self._queue.bar(job, [rules.waits_for(job, p) for p in job.partitions])
        self._deadlines.add(job)
        self._events.ask_for_pass()
        self._events.change(date)
        self._events.tell(date, "submit", job)
        return job

    def _partitions_of(self, names: Sequence[str]) -> list[Partition]:
        if not names:
            return self._default
        found = [self._partitions[name] for name in names]
        return [each for each in found if each.accepts] or found

    def requeue(self, job: JobRecord, date: float) -> None:
        """A `job` that was stopped at a `date` waits again, and is eligible later."""
        now = self._events.second(date)
        job.requeue(now, now + REQUEUED_S)
        self._rules.waits_again(job, now)
        self._queue.again(job)
        self._queue.add(job)
        self._queue.waits_because(job, "BeginTime")
        self._deadlines.add(job)
        self._jobs.requeue(job)
        self._events.change(date)

    def hold(self, job: JobRecord, held: bool, date: float) -> None:
        """Hold a `job` at a `date`, or release it if it is not `held`."""
        now = self._events.second(date)
        self._queue.hold(job, held)
        if job.state == record.PENDING:
            if job.begin_s < now:
                job.set_eligible(None)
            self._rules.waits(job, now)
        if not held:
            self._events.ask_for_pass()
        self._events.change(date)

    def cancel(self, job: JobRecord, date: float) -> None:
        """Cancel a `job` that waits at a `date`."""
        self._leave(job, date, record.CANCELLED)

    def miss_deadlines(self, date: float) -> None:
        """Cancel jobs that would miss their deadlines if they started at a `date`."""
        if self._deadlines:
            for job in self._deadlines.missed(self._events.second(date)):
                self._leave(job, date, record.DEADLINE, "DeadLine")

    def _leave(self, job: JobRecord, date: float, state: str, reason: str | None = None) -> None:
        now = self._events.second(date)
        self._queue.remove(job)
        job.leave(state, now, reason)
        self._jobs.end(job, now)
        self._rules.gone(job, now)
        self._events.change(date)
        self._events.tell(date, "cancel", job)
