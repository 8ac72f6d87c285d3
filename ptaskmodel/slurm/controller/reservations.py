"""Reservations: advance ones, and the starts that backfill plans for waiting jobs."""

from __future__ import annotations

from ptaskmodel.batch.machine.host_sets import Mask
from ptaskmodel.slurm.conf.facts import Nodes, SchedulerParameters
from ptaskmodel.slurm.conf.reservations import Asker, Reserved
from ptaskmodel.slurm.controller.events import Events
from ptaskmodel.slurm.controller.job_list import JobList
from ptaskmodel.slurm.jobs.needs import Need
from ptaskmodel.slurm.jobs.record import JobRecord
from ptaskmodel.slurm.queue.queue import RESERVATION_DELETED, Queue


class Reservations:
    """Which nodes reservations leave to a job, and which starts are planned.

    reserved: the advance reservations. options: SchedulerParameters. planned: the jobs for which
    the last backfill cycle made a reservation. keeps_plans: whether somebody looks at them.
    """

    def __init__(
        self,
        reserved: Reserved,
        nodes: Nodes,
        options: SchedulerParameters,
        *,
        keeps_plans: bool,
    ) -> None:
        self._reserved = reserved
        self._nodes = nodes
        self._options = options
        self.keeps_plans = keeps_plans
        self.planned: list[JobRecord] = []

    # --- advance reservations ---------------------------------------------------------------

    def allowed(self, job: JobRecord, need: Need, now: int) -> Mask:
        """Return the nodes that no advance reservation keeps from a `job` with a `need` `now`."""
        if self._reserved.empty:
            return self._nodes.up
        asker = self._asker(job, need)
        return self._reserved.allowed(asker, now, need.planned_s, self._nodes.up).nodes

    def from_date(
        self, job: JobRecord, need: Need, date: float, lasts: float
    ) -> tuple[float, Mask, int | None] | None:
        """Return the first date that advance reservations allow, the nodes, and when to look again.

        job, need: what starts at `date` or later, and lasts so long, s. None: they allow no date.
        """
        if self._reserved.empty:
            return date, self._nodes.up, None
        return self._reserved.from_date(self._asker(job, need), date, lasts, self._nodes.up)

    def _asker(self, job: JobRecord, need: Need) -> Asker:
        partition = self._nodes.partitions[need.partition.name]
        return Asker(job.reservation, partition, need.required)

    def purge(self, jobs: JobList, queue: Queue, events: Events, now: int) -> None:
        """Forget, at `now`, reservations that are over and that no job of `jobs` uses.

        A job of the `queue` that waits for one of them waits for ever; `events` notes the change.
        """
        if self._reserved.empty:
            return
        used = [job.reservation for _, _, job in jobs.running if job.reservation is not None]
        gone = self._reserved.purge(now, used)
        if gone:
            events.change_at(now)
        for job in [job for job in queue.jobs if job.reservation in gone]:
            queue.give_up(job, RESERVATION_DELETED)

    # --- planned starts ---------------------------------------------------------------------

    def may_pass(self, job: JobRecord, which: int, now: int) -> bool:
        """Whether others may pass a `job` in a partition `now`.

        If so, it gets no reservation and blocks no other. which: the place of the partition.
        """
        options = self._options
        if job.priorities[which] < options.bf_min_prio_reserve:
            return True
        age = now - (job.submit_s if job.eligible_s is None else job.eligible_s)
        return age < options.bf_min_age_reserve_s

    def plan(self, job: JobRecord, date: float, nodes: Mask) -> None:
        """Plan that a `job` starts at a `date`, Unix s, on some `nodes`."""
        job.plan(date, nodes)
        self.planned.append(job)

    def forget_plans(self) -> None:
        """Forget all planned starts."""
        for job in self.planned:
            job.forget_plan()
        self.planned.clear()
