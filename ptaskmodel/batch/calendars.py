"""How many hosts, or which, are free from when on: calendars that backfilling plans with."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np

from ptaskmodel.batch.hostset import Mask
from ptaskmodel.batch.spaces import Cores, Free, Space
from ptaskmodel.workload.jobs import Job

Choose = Callable[[int, Mask], Mask | None]


class HostCounts:
    """Numbers of free hosts over time: ``free[k]`` from ``times[k]`` to ``times[k + 1]``.

    A place in it is a number of hosts.
    """

    def __init__(self, now: float, free: int) -> None:
        self.times = [now]
        self.free = [free]

    def forget_before(self, now: float) -> None:
        """Drop what is past: the calendar begins at ``now``."""
        first = bisect_right(self.times, now) - 1
        del self.times[:first], self.free[:first]
        self.times[0] = now

    def earliest(self, count: int, duration: float) -> tuple[float, int]:
        """The first date from which ``count`` hosts are free for ``duration``, and their place.

        The date is inf if there is none.
        """
        times, free = self.times, self.free
        begin, last = 0, len(times) - 1
        while True:
            while free[begin] < count:
                if begin == last:
                    return inf, count
                begin += 1
            end = times[begin] + duration
            k = begin + 1
            while k <= last and times[k] < end and free[k] >= count:
                k += 1
            if k > last or times[k] >= end:
                return times[begin], count
            begin = k

    def take(self, begin: float, end: float, place: int) -> None:
        """The place is used from ``begin`` to ``end``."""
        self._add(begin, end, -place)

    def give(self, begin: float, end: float, place: int) -> None:
        """The place is no longer used from ``begin`` to ``end``."""
        self._add(begin, end, place)

    def _add(self, begin: float, end: float, count: int) -> None:
        if begin >= end or begin == inf:
            return
        first, stop = _cut(self.times, self.free, begin), _cut(self.times, self.free, end)
        free = self.free
        for k in range(first, stop):
            free[k] += count
        _join(self.times, free, first, stop)


class PlaceCalendar:
    """What is free over time, where numbers of hosts are not enough: choosy allocations, cores.

    A place in it is a mask of hosts. usable: the hosts that are up and on.
    """

    def __init__(self, now: float, space: Space, usable: Mask, choose: Choose) -> None:
        self.times = [now]
        self.free: list[Any] = [space.everything]
        self._space = space
        self._usable = usable
        self._choose = choose

    def forget_before(self, now: float) -> None:
        """Drop what is past: the calendar begins at ``now``."""
        first = bisect_right(self.times, now) - 1
        del self.times[:first], self.free[:first]
        self.times[0] = now

    def earliest(self, job: Job, duration: float) -> tuple[float, Mask]:
        """The first date from which hosts that will do are free for ``duration``, and which.

        The date is inf if there is none.
        """
        for begin, date in enumerate(self.times):
            place = self.room(job, begin, duration, self._usable)
            if place is not None:
                return date, place
        return inf, 0

    def room(self, job: Job, begin: int, duration: float, within: Mask) -> Mask | None:
        """Hosts of ``within`` that are free for ``duration`` from the date ``times[begin]`` on.

        None: there are too few.
        """
        times, free, space = self.times, self.free, self._space
        end, common, k = times[begin] + duration, free[begin], begin + 1
        while k < len(times) and times[k] < end and common:
            common = space.meet(common, free[k])
            k += 1
        hosts = space.candidates(common, job) & within
        if hosts.bit_count() < job.num_hosts:
            return None
        return self._choose(job.num_hosts, hosts)

    def keep(self, job: Job, place: Mask, cores: Cores) -> None:
        """A suspended job keeps all but its cores, for nobody knows how long."""
        self.free = [self._space.kept(free, job, place, cores) for free in self.free]

    def close(self, begin: float, end: float, hosts: Mask) -> None:
        """Nobody gets these hosts from ``begin`` to ``end``."""
        first, stop = _cut(self.times, self.free, begin), _cut(self.times, self.free, end)
        for k in range(first, stop):
            self.free[k] = self._space.closed(self.free[k], hosts)
        _join(self.times, self.free, first, stop)

    def take(self, begin: float, end: float, job: Job, place: Mask, cores: Cores = None) -> None:
        """The job is on its place from ``begin`` to ``end``."""
        self._change(self._space.taken, begin, end, job, place, cores)

    def give(self, begin: float, end: float, job: Job, place: Mask, cores: Cores = None) -> None:
        """The job is no longer there from ``begin`` to ``end``."""
        self._change(self._space.given, begin, end, job, place, cores)

    def _change(
        self,
        how: Callable[..., Any],
        begin: float,
        end: float,
        job: Job,
        place: Mask,
        cores: Cores,
    ) -> None:
        if begin >= end or begin == inf:
            return
        first, stop = _cut(self.times, self.free, begin), _cut(self.times, self.free, end)
        for k in range(first, stop):
            self.free[k] = how(self.free[k], job, place, cores)
        _join(self.times, self.free, first, stop)


def _cut(times: list[float], free: list[Any], date: float) -> int:
    """Position of the slot that begins at ``date``, cutting the slot that spans it."""
    if date == inf:
        return len(times)
    k = bisect_left(times, date)
    if k == len(times) or times[k] != date:
        times.insert(k, date)
        free.insert(k, free[k - 1])
    return k


def _join(times: list[float], free: list[Any], first: int, stop: int) -> None:
    """Join equal neighbours at both ends of the slots [first, stop)."""
    for k in (stop, first):
        if 0 < k < len(times) and _equal(free[k], free[k - 1]):
            del times[k], free[k]


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, Free):
        return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)
