"""How many hosts are free from when on, as in `calendars.HostCounts`: slots in order of date."""

from __future__ import annotations

from ptaskmodel.jit import jit

INFINITY = float("inf")


@jit
def _first_from(s, date):
    """The first slot that does not begin before a date."""
    low, high = 0, s.clock[0].n_slots
    while low < high:
        middle = (low + high) >> 1
        if s.slots[middle].date < date:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def _move(s, to, of):
    s.slots[to].date, s.slots[to].free = s.slots[of].date, s.slots[of].free


@jit
def forget_past(s):
    """The calendar begins now."""
    clock, slots = s.clock[0], s.slots
    past = _first_from(s, clock.now)
    if past == clock.n_slots or slots[past].date > clock.now:
        past -= 1
    if past > 0:
        clock.n_slots -= past
        for k in range(clock.n_slots):
            _move(s, k, k + past)
    slots[0].date = clock.now


@jit
def _cut(s, date):
    """The slot that begins at a date, cutting the one that spans it."""
    clock = s.clock[0]
    if date == INFINITY:
        return clock.n_slots
    found = _first_from(s, date)
    if found == clock.n_slots or s.slots[found].date != date:
        for k in range(clock.n_slots, found, -1):
            _move(s, k, k - 1)
        s.slots[found].date, s.slots[found].free = date, s.slots[found - 1].free
        clock.n_slots += 1
    return found


@jit
def _join(s, k):
    """Join a slot to the one before if they are equal."""
    clock = s.clock[0]
    if 0 < k < clock.n_slots and s.slots[k].free == s.slots[k - 1].free:
        clock.n_slots -= 1
        for m in range(k, clock.n_slots):
            _move(s, m, m + 1)


@jit
def add_free(s, begin, end, count):
    """So many hosts more (fewer, if negative) are free from one date to another."""
    if begin >= end or begin == INFINITY:
        return
    first, stop = _cut(s, begin), _cut(s, end)
    for k in range(first, stop):
        s.slots[k].free += count
    _join(s, stop)
    _join(s, first)


@jit
def earliest(s, count, duration):
    """The first date from which ``count`` hosts are free for ``duration``; inf if there is none."""
    n, slots, begin = s.clock[0].n_slots, s.slots, 0
    while True:
        while slots[begin].free < count:
            begin += 1
            if begin == n:
                return INFINITY
        end = slots[begin].date + duration
        k = begin + 1
        while k < n and slots[k].date < end and slots[k].free >= count:
            k += 1
        if k == n or slots[k].date >= end:
            return slots[begin].date
        begin = k


@jit
def sooner(s, count, duration, date, reach):
    """A date before ``date`` from which the job can run, or ``date``.

    Its own place counts as free: from ``date`` on it is enough. No new date is at ``reach`` or
    later.
    """
    n, slots, begin, last = s.clock[0].n_slots, s.slots, 0, min(date, reach)
    while begin < n and slots[begin].date < last:
        if slots[begin].free < count:
            begin += 1
            continue
        end = min(date, slots[begin].date + duration)
        k = begin + 1
        while k < n and slots[k].date < end and slots[k].free >= count:
            k += 1
        if k == n or slots[k].date >= end:
            return slots[begin].date
        begin = k
    return date


@jit
def most_free(s, reach):
    """The most hosts free at once before a date."""
    most, k = s.slots[0].free, 1
    while k < s.clock[0].n_slots and s.slots[k].date < reach:
        most = max(most, s.slots[k].free)
        k += 1
    return most
