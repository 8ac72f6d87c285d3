"""Forecasts of free capacity without new submissions, for policies that replan at each time.

A forecast is a calendar of the running jobs and their expected ends, on which a policy places jobs
one after the other. A copy is cheap, so that a policy can try several orders.
"""

from __future__ import annotations

from math import inf
from typing import Any, Protocol, TypeVar

from ptaskmodel.batch.loop.view import View
from ptaskmodel.batch.machine.calendars import HostCounts, PlaceCalendar
from ptaskmodel.batch.machine.host_sets import Mask
from ptaskmodel.workload.jobs import Job

Same = TypeVar("Same", bound="Forecast")


class Forecast(Protocol):
    """What is free from when on, beside what was put there.

    A place is a number of hosts, or a mask where numbers do not say what fits. A job whose date is
    inf waits for jobs that nobody knows the end of: those put after it leave it the room that it
    will need. One that asks for more than is up and on holds up nobody.
    """

    def place(self, job: Job, duration: float) -> tuple[float, int]:
        """The first date at which there is room for ``duration``, and where; inf: not foreseen."""
        ...

    def now(self, job: Job, duration: float) -> int | None:
        """Where there is room for ``duration`` from now on; None: nowhere."""
        ...

    def put(self, job: Job, date: float, duration: float, place: int) -> None:
        """The job is there from ``date`` on."""
        ...

    def copy(self: Same) -> Same: ...


def forecast(view: View) -> HostForecast | PlaceForecast:
    """What the running jobs leave free, by their expected ends."""
    if view.allocation.constrained or view.counted:
        return PlaceForecast.of(view)
    return HostForecast.of(view)


class HostForecast(HostCounts):
    """Numbers of hosts: enough where any free hosts will do."""

    def __init__(self, now: float, available: int) -> None:
        super().__init__(now, available)
        self._beyond = available  # free when all that runs has ended
        self._unknown = False  # whether a job waits for a date that nobody knows

    @classmethod
    def of(cls, view: View) -> HostForecast:
        now, within = view.now, view.within
        made = cls(now, view.num_available)
        times, free = made.times, made.free
        ends = [
            (
                attempt.expected_end_s,
                attempt.job.num_hosts if within is None else (attempt.mask & within).bit_count(),
            )
            for attempt in view.by_expected_end
            if attempt.expected_end_s > now
        ]
        free[0] -= sum(count for _, count in ends)
        for end, count in ends:
            if end == times[-1]:
                free[-1] += count
            elif end < inf:
                times.append(end)
                free.append(free[-1] + count)
        made.at = free.copy()
        return made

    def place(self, job: Job, duration: float) -> tuple[float, int]:
        count = job.num_hosts
        if self._unknown and count > self._beyond:
            return inf, count
        return self.earliest(count, duration)

    def now(self, job: Job, duration: float) -> int | None:
        count = job.num_hosts
        if self._unknown and count > self._beyond:
            return None
        return count if self.fits_now(count, duration) else None

    def put(self, job: Job, date: float, duration: float, place: int) -> None:
        if date < inf:
            self.take(date, date + duration, place)
        if (date == inf or self._unknown) and place <= self._beyond:
            self._beyond -= place
            self._unknown = True

    def copy(self) -> HostForecast:
        other = HostForecast.__new__(HostForecast)
        self._copied_to(other)
        other._beyond, other._unknown = self._beyond, self._unknown
        return other


class PlaceForecast(PlaceCalendar):
    """Sets of hosts, or what is free of each: for choosy allocations, cores and memory."""

    _beyond: Any
    _unknown = False

    @classmethod
    def of(cls, view: View) -> PlaceForecast:
        made = cls(view.now, view.space, view.available_mask, view.allocation.choose)
        for attempt in view.suspended:
            made.keep(attempt.job, attempt.mask, attempt.cores)
        made._beyond = made.free[0]
        for attempt in view.running:
            made.take(view.now, attempt.expected_end_s, attempt.job, attempt.mask, attempt.cores)
        return made

    def place(self, job: Job, duration: float) -> tuple[float, Mask]:
        within = self._left(job)
        for begin, date in enumerate(self.times):
            place = self.room(job, begin, duration, within)
            if place is not None:
                return date, place
        return inf, 0

    def now(self, job: Job, duration: float) -> Mask | None:
        return self.room(job, 0, duration, self._left(job))

    def put(self, job: Job, date: float, duration: float, place: Mask) -> None:
        if date < inf:
            self.take(date, date + duration, job, place)
            if self._unknown:
                self._beyond = self._space.taken(self._beyond, job, place)
            return
        hosts = self._space.candidates(self._beyond, job) & self._usable
        chosen = self._choose(job.num_hosts, hosts) if hosts.bit_count() >= job.num_hosts else None
        if chosen is not None:
            self._beyond = self._space.taken(self._beyond, job, chosen)
            self._unknown = True

    def copy(self) -> PlaceForecast:
        other = PlaceForecast(self.times[0], self._space, self._usable, self._choose)
        self._copied_to(other)
        other._beyond, other._unknown = self._beyond, self._unknown
        return other

    def _left(self, job: Job) -> Mask:
        """The hosts that jobs of unknown date leave to the job."""
        if not self._unknown:
            return self._usable
        return self._space.candidates(self._beyond, job) & self._usable
