"""Policies: first come first served, EASY and conservative backfilling, a filler; and orders.

Sources: Mu'alem and Feitelson, "Utilization, predictability, workloads, and user runtime estimates
in scheduling the IBM SP2 with backfilling", IEEE TPDS 12(6), 2001, for both backfillings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import inf

from ptaskmodel.batch.availability import HostCalendar, HostCounts
from ptaskmodel.batch.hostset import HostSet
from ptaskmodel.batch.state import Decision, Run, Start, View
from ptaskmodel.workload.jobs import Job

Order = Callable[[Job], object]
Estimate = Callable[[Job], float]


def orders(estimate: Estimate) -> Mapping[str, Order | None]:
    """The named orders of the queue; those by time go by the estimate."""
    return {
        "fcfs": None,
        "sjf": estimate,
        "ljf": lambda job: -estimate(job),
        "smallest": lambda job: job.num_hosts,
        "largest": lambda job: -job.num_hosts,
        "smallest-area": lambda job: job.num_hosts * estimate(job),
        "largest-area": lambda job: -job.num_hosts * estimate(job),
    }


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
        free = view.free
        for job in view.queue:
            if free == 0:
                return
            if job.num_hosts <= free and view.fits(job):
                yield Start(job, within=view.within)
                free -= job.num_hosts


class Easy:
    """EASY backfilling: a job may overtake the first of the queue if it does not delay it.

    The first job that does not fit gets a reservation at the first date at which, by the
    estimates, it will. A job behind it starts if it fits now and either ends by then, or is content
    with hosts that the reservation does not need. ``backfill_order`` sorts those candidates (None:
    the order of the queue).
    """

    def __init__(self, order: Order | None = None, backfill_order: Order | None = None) -> None:
        self.order = order
        self.backfill_order = backfill_order

    def decide(self, view: View) -> Iterator[Decision]:
        queue, started = view.queue, 0
        while started < len(queue) and view.fits(queue[started]):
            yield Start(queue[started], within=view.within)
            started += 1
        if view.free == 0 or started + 1 >= len(queue):
            return
        head = queue[started]
        candidates: list[Job] = list(queue[started + 1 :])
        if self.backfill_order is not None:
            candidates.sort(key=self.backfill_order)  # type: ignore[arg-type]
        if view.allocation.constrained:
            yield from _backfill_sets(view, head, candidates)
        else:
            yield from _backfill_counts(view, head, candidates)


def _backfill_counts(view: View, head: Job, candidates: list[Job]) -> Iterator[Decision]:
    """Backfill where any free hosts will do: numbers of hosts are enough."""
    now, free = view.now, view.free
    at_shadow, shadow = free, inf
    for run in view.by_expected_end:
        if run.expected_end_s > shadow:
            break
        at_shadow += (run.hosts & view.within).bit_count()
        if shadow == inf and at_shadow >= head.num_hosts:
            shadow = run.expected_end_s
    extra = at_shadow - head.num_hosts
    for job in candidates:
        count = job.num_hosts
        if count > free:
            continue
        if now + view.estimate_s(job) <= shadow < inf:
            yield Start(job, within=view.within)
        elif count <= extra:
            extra -= count
            yield Start(job, within=view.within)
        else:
            continue
        free -= count
        if free == 0:
            return


def _backfill_sets(view: View, head: Job, candidates: list[Job]) -> Iterator[Decision]:
    """Backfill where the allocation is choosy: the reservation names its hosts."""
    choose = view.allocation.choose
    shadow, reserved = _reserved_hosts(view, head)
    for job in candidates:
        count, free = job.num_hosts, view.free_hosts
        if count > free.bit_count():
            continue
        if not view.now + view.estimate_s(job) <= shadow < inf:
            free &= ~reserved
        if free.bit_count() >= count:
            hosts = choose(count, free)
            if hosts is not None:
                yield Start(job, hosts)


def _reserved_hosts(view: View, head: Job) -> tuple[float, HostSet]:
    """When the job will fit, by the estimates, and the hosts that it will get then."""
    free = view.free_hosts
    runs = list(view.by_expected_end)
    for k, run in enumerate(runs):
        free |= run.hosts & view.within
        if k + 1 < len(runs) and runs[k + 1].expected_end_s == run.expected_end_s:
            continue
        if free.bit_count() >= head.num_hosts:
            hosts = view.allocation.choose(head.num_hosts, free)
            if hosts is not None:
                return run.expected_end_s, hosts
    return inf, view.within


class Conservative:
    """Conservative backfilling: every job has a reservation, which is never put off.

    A job is given the first date that delays nobody when it is submitted. When a job ends before
    its estimate, the others, in the order of the queue, move to the first date now possible, if
    that is earlier. ``reserved_s`` tells the date of every waiting job. When a job outlives its
    estimate no promise can be kept: all are made anew, in the order of the queue.
    """

    def __init__(self, order: Order | None = None) -> None:
        self.order = order
        self.reserved_s: dict[Job, float] = {}
        self._places: dict[Job, int] = {}
        self._calendar: HostCounts | HostCalendar | None = None
        self._given: set[int] = set()

    def decide(self, view: View) -> Iterator[Decision]:
        now = view.now
        moved = False
        if self._calendar is None or view.estimates_changed:
            self._rebuild(view)
        else:
            self._calendar.forget_before(now)
            moved = self._give_back(view)
        if moved:
            self._move_forward(view)
        new = view.submitted if self.order is None else view.queue
        for job in new:
            if job not in self.reserved_s and view.is_waiting(job):
                self._reserve(job, view)
        for job in view.queue:
            if self.reserved_s[job] <= now:
                place = self._places.pop(job)
                del self.reserved_s[job]
                yield self._start(job, place, view)

    def _start(self, job: Job, place: int, view: View) -> Start:
        if view.allocation.constrained:
            return Start(job, place)
        return Start(job, within=view.within)

    def _give_back(self, view: View) -> bool:
        """Free what ended jobs were expected to use still; whether there was any of it.

        A date may see several decisions: what was given back at the first is remembered.
        """
        assert self._calendar is not None
        early = False
        self._given &= {run.number for run in view.ended}
        for run in view.ended:
            if run.expected_end_s > view.now and run.number not in self._given:
                self._given.add(run.number)
                place = self._place(run, view)
                self._calendar.give(view.now, run.expected_end_s, place)
                early = True
        return early

    def _place(self, run: Run, view: View) -> int:
        return run.hosts if view.allocation.constrained else run.hosts.bit_count()

    def _reserve(self, job: Job, view: View) -> None:
        assert self._calendar is not None
        duration = view.estimate_s(job)
        date, place = self._calendar.earliest(job.num_hosts, duration)
        self._calendar.take(date, date + duration, place)
        self.reserved_s[job], self._places[job] = date, place

    def _move_forward(self, view: View) -> None:
        """Each waiting job in turn gives up its place for the first that is possible now.

        Again until nobody moves: every date is then that of somebody's end, or now.
        """
        assert self._calendar is not None
        moved = True
        while moved:
            moved = False
            for job in view.queue:
                date = self.reserved_s.get(job)
                if date is not None:
                    self._calendar.give(date, date + view.estimate_s(job), self._places[job])
                    self._reserve(job, view)
                    moved = moved or self.reserved_s[job] < date

    def _rebuild(self, view: View) -> None:
        """A calendar with the running jobs alone, then the queue."""
        if view.allocation.constrained:
            self._calendar = HostCalendar(view.now, view.within, view.allocation.choose)
        else:
            self._calendar = HostCounts(view.now, view.num_hosts)
        for run in view.running:
            self._calendar.take(view.now, run.expected_end_s, self._place(run, view))
        self.reserved_s.clear()
        self._places.clear()
        for job in view.queue:
            self._reserve(job, view)
