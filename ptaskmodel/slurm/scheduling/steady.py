"""Starts of the main scheduler where the number of idle nodes alone decides.

`MainScheduler` calls it before it looks at jobs one by one; its starts and reasons equal those.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from ptaskmodel.batch.machine.host_sets import Mask
from ptaskmodel.slurm.conf.facts import FORCE, LINEAR, NEVER, YES
from ptaskmodel.slurm.controller.queue import Entry
from ptaskmodel.slurm.jobs.needs import Need
from ptaskmodel.slurm.jobs.record import PENDING, Allocation, JobRecord
from ptaskmodel.slurm.scheduling.vectorised_backfill import is_alone, is_plain
from ptaskmodel.slurm.select.linear import Linear

if TYPE_CHECKING:
    from ptaskmodel.slurm.controller.controller import Controller

MAIN = "main"
# Reasons of jobs that have not been told that others are first.
NOT_TOLD = frozenset({"None", "Resources"})


def is_steady(controller: Controller) -> bool:
    """Whether the number of free nodes alone says where jobs of a `controller` start.

    It has one partition then.
    """
    conf, nodes = controller.conf, controller.nodes
    options = conf.scheduler
    return (
        controller.rules.unreserved
        and conf.select_type == LINEAR
        and nodes.alike
        and len(nodes.sets) == len(conf.partitions) == 1
        and not conf.switches
        and not conf.gang
        and conf.preempt_type == NEVER
        and not conf.licenses
        and not conf.complete_wait_s
        and conf.partitions[0].state == "UP"
        and conf.partitions[0].over_subscribe not in (YES, FORCE)
        and not (options.partition_job_depth or options.sched_max_job_start)
        and not (options.bf_min_age_reserve_s or options.bf_min_prio_reserve)
    )


def idle_nodes(controller: Controller) -> Mask:
    """Return the nodes of a `controller` where a job can start."""
    allocations = controller.allocations
    return allocations.select.idle & ~allocations.cleaning.nodes


class SteadyStarts:
    """Starts jobs of a `controller` that `is_steady`.

    head: the last job that found no nodes, and the nodes that were idle.
    """

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        assert isinstance(controller.allocations.select, Linear)
        self._select: Linear = controller.allocations.select
        self._depth = controller.conf.scheduler.default_queue_depth + 1
        self._nodes = controller.nodes.partitions[controller.conf.partitions[0].name]
        self.head: tuple[JobRecord, Mask] | None = None
        # How many nodes jobs of a kind wait for; 0: something else matters to them, too. The same
        # of the first job.
        self._sizes: dict[Hashable, int] = {}
        self._sized: JobRecord | None = None
        self._size = 0
        # The job that all others were told is first, and how many had come to the queue then.
        self._first: JobRecord | None = None
        self._told = 0

    def start(self, entries: list[Entry], date: float, *, full: bool) -> list[Entry]:
        """Start jobs of `entries` at a `date`, up to the first that waits, or is not plain.

        full: however deep the queue is. Returns the entries that need another look.
        """
        controller, entries = self._controller, entries.copy()  # without those that start
        idle = idle_nodes(controller)
        most = len(entries)
        if not full and most > self._depth:
            most = self._depth
        for place in range(most):
            job = entries[place][2]
            need: Need = job.needs[0]
            if job is not self._sized:
                self._sized, self._size = job, self._size_of(job, need)
            size = self._size
            if size:
                usable = need.nodes & idle
                if usable.bit_count() >= size:
                    found = Allocation(self._select.tightest(need, usable), size)
                    controller.rules.tested(job, found)
                    controller.runs.start(job, 0, found, date, MAIN)
                    idle &= ~found.nodes
                    continue
                waits = (controller.nodes.up & self._nodes).bit_count() >= size
            else:
                waits = self._head_waits(entries[place], idle)
            if not waits:
                self._first = None
                return entries[place:]
            job.wait_for("Resources")
            self._tell_others(job, entries, most)
            if place + 1 < most:
                controller.events.change(date)
            break
        return []

    def _tell_others(self, first: JobRecord, entries: list[Entry], most: int) -> None:
        """Tell those of `most` entries that wait that another is first.

        If all were told of the one before, these are that one and those that have come since.
        """
        queue = self._controller.queue
        if self._first is first and self._told == len(queue.came):
            return
        are_all = most == len(entries) and queue.settled and self._controller.rules.frees_alone
        if self._first is not None and are_all:
            others = [*queue.came[self._told :], self._first]
        else:
            others = [job for _, _, job in entries[:most]]
        for job in others:
            if job.reason in NOT_TOLD and job is not first and job.state == PENDING:
                job.wait_for("Priority")
        self._first, self._told = first if are_all else None, len(queue.came)

    def _size_of(self, job: JobRecord, need: Need) -> int:
        """How many nodes a `job` with a `need` waits for; 0: something else matters, too."""
        if not is_alone(job) or job.request.array is not None:
            return 0
        size = self._sizes.get(need.kind)
        if size is None:
            rules = self._controller.rules
            # Its partition takes it: else it would not be looked at.
            fits = (
                rules.frees_alone
                and is_plain(job)
                and need.share == 1
                and job.request.least_nodes <= need.least <= need.most
                and need.cpus <= need.least * self._controller.nodes.cpus[0]
                and rules.could_ever(need)
                and rules.never_starts(job, job.partition) is None
            )
            size = self._sizes[need.kind] = need.least if fits else 0
        return size

    def _head_waits(self, first: Entry, idle: Mask) -> bool:
        """Whether the first in the queue is known to wait: too few nodes are `idle`, as before.

        That is so where all take whole, equal nodes, and nothing but their number matters.
        """
        if self.head is None or self.head[0] is not first.job:
            return False
        self._controller.rules.use_features(first.job, prefers=first.prefers)
        need: Need = first.job.needs[first.which]
        return self.head[1] == idle or (need.nodes & idle).bit_count() < need.least
