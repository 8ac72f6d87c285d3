"""First come, first served, alone and with EASY backfilling; a filler that starts what fits.

The compiled loop has its own version in `batch.compiled.policies`; Slurm's backfill is in
`slurm.scheduling.backfill`.
Source: Mu'alem and Feitelson, "Utilization, predictability, workloads, and user runtime estimates
in scheduling the IBM SP2 with backfilling", IEEE TPDS 12(6), 2001.

`policy_under` makes the policy, chosen by name, on which sleep-idle and power-cap build.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING, Any

from ptaskmodel.batch.jobs.queue import SHORT
from ptaskmodel.batch.loop.decisions import Decision, Start
from ptaskmodel.batch.policies import Order
from ptaskmodel.errors import SimulationError
from ptaskmodel.workload.jobs import Job

if TYPE_CHECKING:
    from ptaskmodel.batch.loop.view import Policy, View


class Easy:
    """EASY backfilling: a job may overtake the first of the queue if it does not delay it.

    The first job that does not fit gets a reservation at the first date at which, by the estimates,
    it will fit. A job behind it starts if it fits now and either ends by then, or needs only hosts
    that the reservation does not need. ``backfill_order`` sorts these candidates (None: the order
    of the queue). If the first job needs more hosts than are up and on, its start is unknown and it
    blocks no other job: whatever fits may start.
    """

    def __init__(self, order: Order | None = None, backfill_order: Order | None = None) -> None:
        self.order = order
        self.backfill_order = backfill_order

    def decide(self, view: View) -> Iterator[Decision]:
        queue, started = view.queue, 0
        while started < len(queue) and view.fits(queue[started]):
            yield Start(queue[started], within=view.within)
            started += 1
        if started + 1 >= len(queue) or (view.free == 0 and not view.counted):
            return
        head = queue[started]
        room = _room_beyond(view, head)
        if self.backfill_order is None and room is not None and len(queue) > SHORT:
            yield from _backfill_far(view, head, *room)
            return
        candidates: list[Job] = list(queue[started + 1 :])
        if self.backfill_order is not None:
            candidates.sort(key=self.backfill_order)
        if room is None:
            yield from _backfill_places(view, head, candidates)
        else:
            yield from _backfill_counts(view, candidates, *room)


def _room_beyond(view: View, head: Job) -> tuple[float, int] | None:
    """Return when the first job is expected to start, and how many hosts it leaves free then.

    If it needs more hosts than are up and on, this is unknown, and no job is in its way. None:
    numbers of hosts do not say; those of a job that ends before any maintenance do.
    """
    if view.counted or view.allocation.constrained:
        return None
    if head.num_hosts > view.num_available:
        return None if view.maintenance else (inf, view.num_hosts)
    shadow, at_shadow = view.first_room(head.num_hosts)
    if view.maintenance and shadow + view.estimate_s(head) > view.maintenance[0].start_s:
        return None
    return shadow, at_shadow - head.num_hosts


def _backfill_far(view: View, head: Job, shadow: float, extra: int) -> Iterator[Decision]:
    """Backfill in the order of a long queue, where numbers of hosts are enough."""
    job = view.next_fitting(head, beyond=extra, end_by=shadow)
    while job is not None:
        if not view.now + view.estimate_s(job) <= shadow < inf:
            extra -= job.num_hosts
        yield Start(job, None, view.within)
        if view.free == 0:
            return
        job = view.next_fitting(job, beyond=extra, end_by=shadow)


def _backfill_counts(
    view: View, candidates: list[Job], shadow: float, extra: int
) -> Iterator[Decision]:
    """The same looking at each of few candidates, in any order."""
    now, free, within, estimate_s = view.now, view.free, view.within, view.estimate_s
    closes = bool(view.maintenance)
    for job in candidates:
        count = job.num_hosts
        if count > free or (closes and not view.fits(job)):
            continue
        if now + estimate_s(job) <= shadow < inf:
            yield Start(job, None, within)
        elif count <= extra:
            extra -= count
            yield Start(job, None, within)
        else:
            continue
        free -= count
        if free == 0:
            return


def _fill(view: View, candidates: list[Job]) -> Iterator[Decision]:
    for job in candidates:
        if view.fits(job):
            yield Start(job, within=view.within)


def _backfill_places(view: View, head: Job, candidates: list[Job]) -> Iterator[Decision]:
    """Backfill where the allocation is choosy or cores are counted: a reservation is a place."""
    space, choose = view.space, view.allocation.choose
    reservation = _reservation(view, head)
    if reservation is None:
        yield from _fill(view, candidates)
        return
    shadow, left = reservation
    for job in candidates:
        count, free = job.num_hosts, view.candidates(job)
        if count > free.bit_count():
            continue
        short = view.now + view.estimate_s(job) <= shadow < inf
        if not short:
            free &= space.candidates(left, job)
        if free.bit_count() >= count:
            hosts = choose(count, free)
            if hosts is not None:
                yield Start(job, hosts)
                if not short:
                    left = space.taken(left, job, hosts)


def _reservation(view: View, head: Job) -> tuple[float, Any] | None:
    """When the job will fit, by the estimates, and what will be free then beside it.

    None: not even when all that runs has ended and maintenance is over, as hosts are down or off,
    or memory is kept by suspended jobs.
    """
    space, free, estimate_s = view.space, view.free_value, view.estimate_s(head)
    attempts, k = view.by_expected_end, 0
    dates = {attempt.expected_end_s for attempt in attempts}
    for date in sorted(dates.union(window.end_s for window in view.maintenance)):
        while k < len(attempts) and attempts[k].expected_end_s <= date:
            attempt = attempts[k]
            free = space.given(free, attempt.job, attempt.mask, attempt.cores)
            k += 1
        hosts = space.candidates(free, head) & view.usable(date, date + estimate_s)
        if hosts.bit_count() >= head.num_hosts:
            place = view.allocation.choose(head.num_hosts, hosts)
            if place is not None:
                return date, space.taken(free, head, place)
    return None


class Fcfs:
    """Jobs start in the order of the queue; one that does not fit holds up all behind it."""

    def __init__(self, order: Order | None = None) -> None:
        self.order = order

    def decide(self, view: View) -> Iterator[Decision]:
        for job in view.queue:
            if not view.fits(job):
                return
            yield Start(job, within=view.within)


class Filler:
    """Every job that fits starts, in the order of the queue. Large jobs may wait for ever."""

    def __init__(self, order: Order | None = None) -> None:
        self.order = order

    def decide(self, view: View) -> Iterator[Decision]:
        job = view.next_fitting()
        while job is not None:
            yield Start(job, within=view.within)
            job = view.next_fitting(job)


def policy_under(name: str, order: Order | None) -> Policy:
    """The policy that starts jobs: "easy" or "fcfs". Raises SimulationError for another name."""
    if name == "easy":
        return Easy(order)
    if name == "fcfs":
        return Fcfs(order)
    raise SimulationError(f"option under is '{name}'; use easy or fcfs")
