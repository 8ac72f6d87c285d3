# mypy: allow-untyped-defs, allow-incomplete-defs
"""Kernels of the waiting queue, of free hosts over time, and of first fit.

The queue is a static tree over ranks. Each node holds the fewest hosts and the smallest estimate
below it. Node 1 is the root, the children of node i are 2 i and 2 i + 1, and leaf k is rank k.

The calendar counts free hosts over time, like `capacity.HostCounts`, in slots in order of time.
A reservation of no length is an instant, which starts a slot too; instants are in no order.

First fit stores the free hosts as runs of consecutive hosts, the lowest run last.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit

INFINITY = float("inf")
LARGEST = np.int64(np.iinfo(np.int64).max)


@jit
def put(tree, leaf, hosts, estimate):
    """One that waits, or (of LARGEST hosts) none."""
    node = tree[leaf]
    node.hosts, node.estimate = hosts, estimate
    i = leaf >> 1
    while i > 0:
        one, other, above = tree[2 * i], tree[2 * i + 1], tree[i]
        hosts = min(one.hosts, other.hosts)
        estimate = min(one.estimate, other.estimate)
        if above.hosts == hosts and above.estimate == estimate:
            return
        above.hosts, above.estimate = hosts, estimate
        i >>= 1


@jit
def first_from(tree, leaves, rank, free, extra, now, shadow):
    """The first rank from ``rank`` on that fits in ``free`` hosts and ends by ``shadow`` or is
    content with ``extra`` hosts; -1 if there is none.

    Exact at the leaves and necessary above, as rounding is monotone.
    """
    if rank >= leaves:
        return -1
    i = rank + leaves if rank > 0 else 1
    while True:
        node = tree[i]
        if node.hosts <= free and (
            node.hosts <= extra or (now + node.estimate <= shadow and shadow < INFINITY)
        ):
            if i >= leaves:
                return i - leaves
            i *= 2
            continue
        while i & 1:
            i >>= 1
        if i == 0:
            return -1
        i += 1


@jit
def enter(s, j):
    """A job waits."""
    leaves, job = s.clock[0].leaves, s.jobs[j]
    put(s.queue, leaves + job.rank, job.hosts, job.estimate)
    if s.clock[0].sorts:
        put(s.candidates, leaves + job.candidate, job.hosts, job.estimate)


@jit
def leave(s, j):
    """A job waits no more."""
    leaves, job = s.clock[0].leaves, s.jobs[j]
    put(s.queue, leaves + job.rank, LARGEST, INFINITY)
    if s.clock[0].sorts:
        put(s.candidates, leaves + job.candidate, LARGEST, INFINITY)


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
    """Reserve hosts for no length of time. begin_then: the hosts of jobs that begin at its date."""
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


@jit
def take_hosts(s, count):
    """The lowest free hosts become the next pieces."""
    clock, runs = s.clock[0], s.runs
    while count > 0:
        run, piece = runs[clock.n_runs - 1], s.pieces[clock.n_pieces]
        taken = min(run.length, count)
        piece.first, piece.length = run.first, taken
        clock.n_pieces += 1
        count -= taken
        if taken == run.length:
            clock.n_runs -= 1
        else:
            run.first += taken
            run.length -= taken


@jit
def give_hosts(s, first, length):
    """A piece is free again: it joins its neighbours."""
    clock, runs = s.clock[0], s.runs
    low, high = 0, clock.n_runs
    while low < high:
        middle = (low + high) >> 1
        if runs[middle].first > first:
            low = middle + 1
        else:
            high = middle
    joins_above = low > 0 and first + length == runs[low - 1].first
    joins_below = low < clock.n_runs and runs[low].first + runs[low].length == first
    if joins_above and joins_below:
        runs[low].length += length + runs[low - 1].length
        clock.n_runs -= 1
        for k in range(low - 1, clock.n_runs):
            runs[k].first, runs[k].length = runs[k + 1].first, runs[k + 1].length
    elif joins_above:
        runs[low - 1].first = first
        runs[low - 1].length += length
    elif joins_below:
        runs[low].length += length
    else:
        for k in range(clock.n_runs, low, -1):
            runs[k].first, runs[k].length = runs[k - 1].first, runs[k - 1].length
        runs[low].first, runs[low].length = first, length
        clock.n_runs += 1
