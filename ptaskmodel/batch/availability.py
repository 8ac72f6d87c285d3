"""How many hosts, or which, are free from when on: the calendar that backfilling plans with."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from math import inf

from ptaskmodel.batch.hostset import HostSet

Choose = Callable[[int, HostSet], HostSet | None]


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


class HostCalendar:
    """Sets of free hosts over time, for allocations to which their numbers are not enough.

    A place in it is a set of hosts.
    """

    def __init__(self, now: float, free: HostSet, choose: Choose) -> None:
        self.times = [now]
        self.free = [free]
        self._choose = choose

    def forget_before(self, now: float) -> None:
        """Drop what is past: the calendar begins at ``now``."""
        first = bisect_right(self.times, now) - 1
        del self.times[:first], self.free[:first]
        self.times[0] = now

    def earliest(self, count: int, duration: float) -> tuple[float, HostSet]:
        """The first date from which hosts that will do are free for ``duration``, and which.

        The date is inf if there is none.
        """
        times, free = self.times, self.free
        for begin, date in enumerate(times):
            common, k = free[begin], begin + 1
            while k < len(times) and times[k] < date + duration and common:
                common &= free[k]
                k += 1
            if common.bit_count() >= count:
                place = self._choose(count, common)
                if place is not None:
                    return date, place
        return inf, 0

    def take(self, begin: float, end: float, place: HostSet) -> None:
        """The hosts are used from ``begin`` to ``end``."""
        if begin >= end or begin == inf:
            return
        first, stop = _cut(self.times, self.free, begin), _cut(self.times, self.free, end)
        for k in range(first, stop):
            self.free[k] &= ~place
        _join(self.times, self.free, first, stop)

    def give(self, begin: float, end: float, place: HostSet) -> None:
        """The hosts are no longer used from ``begin`` to ``end``."""
        if begin >= end or begin == inf:
            return
        first, stop = _cut(self.times, self.free, begin), _cut(self.times, self.free, end)
        for k in range(first, stop):
            self.free[k] |= place
        _join(self.times, self.free, first, stop)


def _cut(times: list[float], free: list[int], date: float) -> int:
    """Position of the slot that begins at ``date``, cutting the slot that spans it."""
    if date == inf:
        return len(times)
    k = bisect_left(times, date)
    if k == len(times) or times[k] != date:
        times.insert(k, date)
        free.insert(k, free[k - 1])
    return k


def _join(times: list[float], free: list[int], first: int, stop: int) -> None:
    """Join equal neighbours at both ends of the slots [first, stop)."""
    for k in (stop, first):
        if 0 < k < len(times) and free[k] == free[k - 1]:
            del times[k], free[k]
