"""First come, first served, and backfilling: EASY and conservative; a filler that starts what fits.

Under EASY the first waiting job has a reservation. Under conservative backfilling every waiting job
has one, and no job may delay it. `policy_under` makes the policy, chosen by name, on which
sleep-idle and power-cap build.

The compiled loop has its own versions in `batch.compiled.policies`; Slurm's backfill is in
`slurm.scheduling.backfill`.
Source: Mu'alem and Feitelson, "Utilization, predictability, workloads, and user runtime estimates
in scheduling the IBM SP2 with backfilling", IEEE TPDS 12(6), 2001.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Any

from ptaskmodel.batch.jobs.queue import SHORT
from ptaskmodel.batch.loop.decisions import Decision, Start
from ptaskmodel.batch.machine.capacity import HostCounts, PlaceCalendar
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


class Conservative:
    """Conservative backfilling: every job has a reservation, which is never postponed.

    When a job is submitted, it gets the first date at which it delays no other job. When a job ends
    before its estimate, the others, in the order of the queue, move to the first date that is now
    possible, if that is earlier. ``reserved_s`` gives the date of every waiting job. When a job
    outlives its estimate, or hosts come or go, no guarantee can be kept, and all reservations are
    made anew, in the order of the queue. Jobs of 0 s with the same date run one after the other
    then, before jobs that begin; a job that begins before that date and ends after it leaves them
    their hosts.

    depth: how many jobs hold reservations at a time (None: all): the first of the queue when one is
    free, each until it starts. The others start, in the order of the queue, as soon as they delay
    no reservation. With 1 this is EASY, except for jobs of 0 s, whose order among jobs of one date
    differs. Maui has this limit as RESERVATIONDEPTH and backfills the other jobs as here; Slurm has
    it as bf_max_job_test, and the other jobs wait.

    Raises SimulationError for a depth below 1.
    """

    def __init__(self, order: Order | None = None, depth: int | None = None) -> None:
        if depth is not None and depth < 1:
            raise SimulationError(f"conservative: depth={depth} is not a number of jobs >= 1")
        self.order = order
        self.depth = depth
        self.reserved_s: dict[Job, float] = {}
        self._places: dict[Job, int] = {}
        self._calendar: HostCounts | PlaceCalendar | None = None
        self._given: set[int] = set()

    def decide(self, view: View) -> Iterator[Decision]:
        now = view.now
        moved = False
        if self._calendar is None or view.estimates_changed or view.machine_changed:
            self._rebuild(view)
        else:
            self._calendar.forget_before(now)
            moved = self._give_back(view)
        if moved:
            self._move_forward(view)
        while True:
            self._reserve_more(view)
            due = [job for job in self._holders(view) if self.reserved_s[job] <= now]
            due.sort(key=lambda job: now + view.estimate_s(job) > now)  # those of 0 s are first
            for job in due:
                if not self._is_free(job, view):
                    return  # a job of 0 s is still there: all who are due wait for it, in order
                place = self._places.pop(job)
                del self.reserved_s[job]
                yield Start(job, place) if view.by_place else Start(job, within=view.within)
            if self.depth is None:
                return
            if not due:
                break
        if isinstance(self._calendar, HostCounts):
            yield from self._start_beside(view, self._calendar)
        elif self._calendar is not None:
            yield from self._start_places_beside(view, self._calendar)

    def _reserve_more(self, view: View) -> None:
        """The first jobs of the queue without a reservation get one, as far as there are any."""
        all_may = self.depth is None
        for job in view.submitted if all_may and self.order is None else view.queue:
            if self.depth is not None and len(self.reserved_s) >= self.depth:
                return
            if job not in self.reserved_s and view.is_waiting(job):
                self._reserve(job, view)

    def _holders(self, view: View) -> list[Job]:
        """The jobs that hold reservations, in the order of the queue."""
        if self.depth is None:
            return [job for job in view.queue if job in self.reserved_s]
        holders = (job for job in view.queue if job in self.reserved_s)
        return list(islice(holders, len(self.reserved_s)))

    def _start_beside(self, view: View, counts: HostCounts) -> Iterator[Decision]:
        """Start the jobs without reservations that delay none."""
        job: Job | None = None
        while True:
            hosts, least = counts.free[0], min(counts.free)
            until = counts.times[counts.free.index(least)]
            job = view.next_fitting(job, hosts=hosts, beyond=least, end_by=until)
            if job is None:
                return
            duration = view.estimate_s(job)
            if job in self.reserved_s or not counts.fits_now(job.num_hosts, duration):
                continue
            if job.num_hosts > view.free:
                return  # a job of 0 s is still there
            counts.take(view.now, view.now + duration, job.num_hosts)
            yield Start(job, within=view.within)

    def _start_places_beside(self, view: View, places: PlaceCalendar) -> Iterator[Decision]:
        for job in view.queue:
            if job in self.reserved_s or not view.is_waiting(job):
                continue
            duration = view.estimate_s(job)
            place = places.fits_now(job, duration)
            if place is None:
                continue
            if place & ~view.candidates(job):
                return  # a job of 0 s is still there
            places.take(view.now, view.now + duration, job, place)
            yield Start(job, place)

    def _is_free(self, job: Job, view: View) -> bool:
        if view.by_place:
            return self._places[job] & ~view.candidates(job) == 0
        return view.free >= job.num_hosts

    def _give_back(self, view: View) -> bool:
        """Free what ended jobs were expected to use still; whether there was any of it.

        A date may see several decisions: what was given back at the first is remembered.
        """
        assert self._calendar is not None
        early = False
        self._given &= {attempt.number for attempt in view.ended}
        for attempt in view.ended:
            if attempt.expected_end_s > view.now and attempt.number not in self._given:
                self._given.add(attempt.number)
                place = attempt.mask if view.by_place else attempt.job.num_hosts
                self._give(attempt.job, view.now, attempt.expected_end_s, place)
                early = True
        return early

    def _give(self, job: Job, begin: float, end: float, place: int) -> None:
        if isinstance(self._calendar, PlaceCalendar):
            self._calendar.give(begin, end, job, place)
        elif self._calendar is not None:
            self._calendar.give(begin, end, job.num_hosts)

    def _reserve(self, job: Job, view: View) -> None:
        """Give the job the first date at which it delays no other job, but no later one than it
        has.
        """
        assert self._calendar is not None
        duration = view.estimate_s(job)
        if isinstance(self._calendar, PlaceCalendar):
            date, place = self._calendar.earliest(job, duration)
        else:
            date, place = self._calendar.earliest(job.num_hosts, duration)
        if date > self.reserved_s.get(job, inf):  # of 0 s, before those that begin then
            date, place = self.reserved_s[job], self._places[job]
        if isinstance(self._calendar, PlaceCalendar):
            self._calendar.take(date, date + duration, job, place)
        else:
            self._calendar.take(date, date + duration, place)
        self.reserved_s[job], self._places[job] = date, place

    def _move_forward(self, view: View) -> None:
        """Move each waiting job in turn to the first place that is possible now.

        Repeat until no job moves: every date is then that of a job's end, or now.
        """
        moved, holders = True, self._holders(view)
        while moved:
            moved = False
            for job in holders:
                date = self.reserved_s[job]
                self._give(job, date, date + view.estimate_s(job), self._places[job])
                self._reserve(job, view)
                moved = moved or self.reserved_s[job] < date

    def _rebuild(self, view: View) -> None:
        """A calendar with the running jobs alone, then those that hold reservations."""
        holders = self._holders(view)
        if view.by_place:
            self._calendar = places = PlaceCalendar(
                view.now, view.space, view.working_mask, view.allocation.choose
            )
            for window in view.maintenance:
                places.close(max(window.start_s, view.now), window.end_s, window.hosts)
            for attempt in view.suspended:
                places.keep(attempt.job, attempt.mask, attempt.cores)
            for attempt in view.running:
                places.take(
                    view.now, attempt.expected_end_s, attempt.job, attempt.mask, attempt.cores
                )
        else:
            self._calendar = counts = HostCounts(view.now, view.num_available)
            for attempt in view.running:
                counts.take(view.now, attempt.expected_end_s, attempt.job.num_hosts)
        self.reserved_s.clear()
        self._places.clear()
        for job in view.queue if self.depth is None else holders:
            self._reserve(job, view)
