"""How many hosts are free from when on, as in `calendars.HostCounts`: slots in order of date.

Instants are the dates of reservations of no length, in no order; each is the date of a slot too.
"""

from __future__ import annotations

from ptaskmodel.kernels.decorators import jit

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
    for i in range(clock.n_instants - 1, -1, -1):
        if s.instants[i].date <= clock.now:
            _drop_instant(s, i)


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
    if (
        0 < k < clock.n_slots
        and s.slots[k].free == s.slots[k - 1].free
        and find_instant(s, s.slots[k].date) < 0
    ):
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
    for i in range(s.clock[0].n_instants):
        if begin < s.instants[i].date < end:
            s.instants[i].free += count
    _join(s, stop)
    _join(s, first)


# --- instants


@jit
def find_instant(s, date):
    """The instant of a date, or -1."""
    for i in range(s.clock[0].n_instants):
        if s.instants[i].date == date:
            return i
    return -1


@jit
def _drop_instant(s, i):
    clock = s.clock[0]
    clock.n_instants -= 1
    one, last = s.instants[i], s.instants[clock.n_instants]
    one.date, one.free, one.need = last.date, last.free, last.need


@jit
def take_instant(s, date, count, begin_then):
    """A reservation of no length. begin_then: the hosts of those who begin at its date."""
    clock, i = s.clock[0], find_instant(s, date)
    if i < 0:
        i = clock.n_instants
        clock.n_instants += 1
        one = s.instants[i]
        one.date, one.free, one.need = date, s.slots[_cut(s, date)].free + begin_then, count
    s.instants[i].need = max(s.instants[i].need, count)


@jit
def give_instant(s, date, need):
    """A reservation of no length is gone. need: the most of those that remain there; -1: none."""
    i = find_instant(s, date)
    if i >= 0 and need >= 0:
        s.instants[i].need = need
    elif i >= 0:
        _drop_instant(s, i)
        _join(s, _cut(s, date))


@jit
def _slot_after_refusal(s, count, begin, end, last):
    """The slot of the last instant, up to the date ``last``, that stops a job; -1: none does."""
    found = -INFINITY
    for i in range(s.clock[0].n_instants):
        one = s.instants[i]
        if found < one.date <= last and begin < one.date < end and one.free - one.need < count:
            found = one.date
    return -1 if found == -INFINITY else _first_from(s, found)


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
            k = _slot_after_refusal(s, count, slots[begin].date, end, INFINITY)
            if k < 0:
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
        until = slots[begin].date + duration
        end = min(date, until)
        k = begin + 1
        while k < n and slots[k].date < end and slots[k].free >= count:
            k += 1
        if k == n or slots[k].date >= end:
            k = _slot_after_refusal(s, count, slots[begin].date, until, date)
            if k < 0:
                return slots[begin].date
        begin = k
    return date


@jit
def fits_now(s, count, duration):
    """Whether so many hosts are free for ``duration`` from the first slot on."""
    slots, k = s.slots, 1
    end = slots[0].date + duration
    if slots[0].free < count:
        return False
    while k < s.clock[0].n_slots and slots[k].date < end:
        if slots[k].free < count:
            return False
        k += 1
    return _slot_after_refusal(s, count, slots[0].date, end, INFINITY) < 0


@jit
def fewest_free(s):
    """The slot with the fewest free hosts; the first of several."""
    found = 0
    for k in range(1, s.clock[0].n_slots):
        if s.slots[k].free < s.slots[found].free:
            found = k
    return found


@jit
def most_free(s, reach):
    """The most hosts free at once before a date."""
    most, k = s.slots[0].free, 1
    while k < s.clock[0].n_slots and s.slots[k].date < reach:
        most = max(most, s.slots[k].free)
        k += 1
    return most
