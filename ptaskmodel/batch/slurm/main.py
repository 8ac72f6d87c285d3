"""The main scheduler: one pass over the queue, in order; who does not fit blocks a partition."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

from ptaskmodel.batch.hostset import Mask
from ptaskmodel.batch.slurm.queueing import Entry
from ptaskmodel.batch.slurm.reasons import is_account_limit
from ptaskmodel.batch.slurm.record import PENDING
from ptaskmodel.batch.slurm.rules import ARRAY_LIMIT, LICENCES

if TYPE_CHECKING:
    from ptaskmodel.batch.slurm.controller import Controller

MAIN = "main"


def stops_others(reason: str) -> bool:
    """Whether a limit stops those behind too, under assoc_limit_stop."""
    return is_account_limit(reason) and reason != "QOSMaxJobsPerUserLimit"


def main_pass(controller: Controller, date: float, *, full: bool) -> None:
    """Start who can start, strictly in order; full: however deep the queue is."""
    now = controller.second(date)
    conf, queue = controller.conf, controller.queue
    options = conf.scheduler
    late = controller.completed_lately(now)
    if late and not options.reduce_completing_frag:
        return
    entries = queue.build(now)
    if not entries:
        return
    partitions = controller.nodes.partitions
    if _head_waits(controller, entries[0]):
        entries[0].job.reason = "Resources"
        most = len(entries) if full else options.default_queue_depth
        _all_wait(controller, islice(entries, 1, None), set(), now, most)
        return
    barred = 0
    for each in late:
        barred |= partitions[each.partition.name]
    blocked = {name for name, nodes in partitions.items() if nodes & barred}
    rejected: set[tuple[str, str]] = set()
    withdrawn, completing = 0, controller.cleaning.nodes
    for name in blocked:
        withdrawn |= partitions[name]
    looked = started = 0
    by_partition: dict[str, int] = {}
    every = entries.copy()
    for place, entry in enumerate(every):
        if len(blocked) == len(partitions) and not options.partition_job_depth:
            most = len(every) if full else options.default_queue_depth + 1 - looked
            _all_wait(controller, islice(every, place, None), rejected, now, most)
            break
        job, partition = entry.job, entry.job.partitions[entry.which]
        if job.state != PENDING:
            continue
        if not _is_queued(controller, entry, rejected):
            continue
        if options.partition_job_depth:
            depth = by_partition.get(partition.name, 0)
            if depth >= options.partition_job_depth:
                if job.reason == "None":
                    job.reason, controller.changed_s = "Priority", now
                continue
            by_partition[partition.name] = depth + 1
        if not full:
            if looked > options.default_queue_depth:
                break
            looked += 1
        if partition.name in blocked:
            if job.reason in ("None", "Resources"):
                job.reason = "Priority"
            controller.changed_s = now
            continue
        need = job.needs[entry.which]
        reason = controller.forbidden(job, entry.which)
        left = partitions[partition.name] & controller.nodes.up & ~withdrawn
        limited = is_account_limit(job.reason) and reason is not None and is_account_limit(reason)
        if left.bit_count() < job.request.least_nodes and not limited:
            # The nodes are not looked at, and nobody may pass.
            job.reason, controller.changed_s = "Resources", now
            blocked.add(partition.name)
            withdrawn |= partitions[partition.name]
            continue
        if reason is not None:
            queue.waits_because(job, reason)
            if reason == LICENCES:
                controller.changed_s = now
                if options.bf_licenses:
                    break
            if options.assoc_limit_stop and stops_others(reason):
                blocked.add(partition.name)
                withdrawn |= controller.nodes.partitions[partition.name]
            continue
        allowed, why = controller.allowed(job, need, now)
        found = controller.find(job, entry.which, allowed & ~(withdrawn | completing), now)
        reason = controller.exceeds(job, entry.which, found)
        if reason is not None:
            queue.waits_because(job, reason)
            if options.assoc_limit_stop and stops_others(reason):
                blocked.add(partition.name)
                withdrawn |= controller.nodes.partitions[partition.name]
            continue
        if found is not None:
            controller.start(job, entry.which, found, date, MAIN)
            rejected.discard(_array_in(entry))
            started += 1
            if options.sched_max_job_start and started >= options.sched_max_job_start:
                break
            continue
        queue.waits_because(job, "Resources" if why is None else why)
        if need.required and need.required.bit_count() >= need.least:
            withdrawn |= need.required
            continue
        if why is not None or job.request.reservation is not None:
            continue
        if len(job.partitions) > 1 and not controller.rules.could_ever(need):
            continue
        if controller.may_pass(job, entry.which, now):
            continue
        if controller.steady and not withdrawn:
            controller.head = job, _idle(controller)
        blocked.add(partition.name)
        withdrawn |= controller.nodes.partitions[partition.name]


def _idle(controller: Controller) -> Mask:
    return controller.select.idle & controller.nodes.up & ~controller.cleaning.nodes


def _head_waits(controller: Controller, first: Entry) -> bool:
    """Whether the first in the queue is known to find no nodes: it did not among those now idle.

    That is so where all take whole, equal nodes, and nothing but their number matters.
    """
    known = controller.head
    return known is not None and known[0] is first.job and known[1] == _idle(controller)


def _array_in(entry: Entry) -> tuple[str, str]:
    """The array of a job, in the partition of an entry."""
    return entry.job.request.array_id, entry.job.partitions[entry.which].name


def _is_queued(controller: Controller, entry: Entry, rejected: set[tuple[str, str]]) -> bool:
    """Whether an entry counts: its partition may take it, and no task before it was rejected.

    Of an array a task is rejected, as all behind it in the same partition, until it starts.
    """
    job = entry.job
    if controller.rules.waits_for(job, job.partitions[entry.which]) is not None:
        return False
    if job.request.array is not None:
        if _array_in(entry) in rejected:
            return False
        rejected.add(_array_in(entry))
        if controller.rules.array_is_full(job):
            controller.queue.waits_because(job, ARRAY_LIMIT)
            return False
    return True


def _all_wait(
    controller: Controller,
    entries: Iterable[Entry],
    rejected: set[tuple[str, str]],
    now: int,
    most: int,
) -> None:
    """What is left of a pass whose partitions are all blocked: so many entries at most."""
    steady = controller.steady
    for entry in entries:
        if most <= 0:
            return
        job = entry[-1]
        if job.state != PENDING:
            continue
        if not steady and not _is_queued(controller, entry, rejected):
            continue
        most -= 1
        if job.reason in _NOT_TOLD:
            job.reason = "Priority"
        controller.changed_s = now


_NOT_TOLD = frozenset({"None", "Resources"})
