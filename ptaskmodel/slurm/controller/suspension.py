"""Suspension: jobs stop and later continue on the same nodes.

A command, the gang scheduler or a preemptor suspends them.
Source: Slurm 22.05, Gang Scheduling.
"""

from __future__ import annotations

from collections.abc import Iterable

from ptaskmodel.slurm.conf.facts import Conf, Nodes
from ptaskmodel.slurm.controller.allocations import Allocations
from ptaskmodel.slurm.controller.events import Events
from ptaskmodel.slurm.controller.job_list import JobList
from ptaskmodel.slurm.controller.running import Running
from ptaskmodel.slurm.jobs import record
from ptaskmodel.slurm.jobs.needs import YEAR_S
from ptaskmodel.slurm.jobs.record import JobRecord
from ptaskmodel.slurm.queue.gang import Gang


class Suspension:
    """Suspends and resumes jobs.

    conf, nodes: the cluster. events, jobs, allocations: what each change is noted in. running: the
    execution.
    """

    def __init__(
        self,
        conf: Conf,
        nodes: Nodes,
        events: Events,
        jobs: JobList,
        allocations: Allocations,
        running: Running,
    ) -> None:
        self._events = events
        self._jobs = jobs
        self._allocations = allocations
        self._running = running
        self._gang = Gang(conf.partitions, nodes, conf.gang_counts_cpus) if conf.gang else None

    def suspend(self, job: JobRecord, date: float) -> None:
        """Suspend a `job` at a `date`.

        The limit of a preemptor's victim goes on; that of any other job does not.
        """
        job.suspend(self._events.second(date), date)
        self._allocations.pause(job)
        if not job.lost:
            self._running.suspend(job, date)
        self._events.change(date)
        self._events.tell(date, "suspend", job)

    def resume(self, job: JobRecord, date: float) -> None:
        """Let a suspended `job` go on at a `date`."""
        now = self._events.second(date)
        job.resume(now, date)
        if not job.victim:
            self._jobs.stop(job)
            job.extend(now, YEAR_S)
            self._jobs.run(job)
        self._allocations.resume(job)
        if not job.lost:
            self._running.resume(job, date)
        self._events.change(date)
        self._events.tell(date, "resume", job)

    # --- the gang scheduler -----------------------------------------------------------------

    @property
    def waits_for_slice(self) -> bool:
        """Whether some job of the gang scheduler waits for the next time slice."""
        return self._gang is not None and self._gang.stopped

    def started(self, job: JobRecord, date: float) -> None:
        """A `job` has started at a `date`: the gang scheduler may stop it or others."""
        if self._gang is not None:
            self._change(self._gang.started(job), date)

    def ended(self, job: JobRecord, date: float) -> None:
        """The nodes of a `job` are clean at a `date`: the gang scheduler may let others go on."""
        if self._gang is not None:
            self._change(self._gang.ended(job), date)

    def slice(self, date: float) -> None:
        """A time slice of the gang scheduler is over at a `date`."""
        assert self._gang is not None
        self._change(self._gang.slice(), date)

    def _change(self, changes: Iterable[tuple[JobRecord, bool]], date: float) -> None:
        for job, runs in changes:
            if runs and job.state == record.SUSPENDED:
                self.resume(job, date)
            elif not runs and job.state == record.RUNNING:
                self.suspend(job, date)
