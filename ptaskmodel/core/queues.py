"""The two heaps of the core: the queue of dates, and enabled activities by date of end.

Who stands in a heap knows its position there, so that it can be taken out. Each place has four
below it: few steps to the top, through neighbours.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.core.state import IN_ENDS, IN_QUEUE, TRACE, WAIT, WAKE
from ptaskmodel.jit import jit

# Order of the first trace among entries of one date: before everything that is pushed.
TRACES_FIRST = -(2**60)


@jit
def put_date(s, i, date, order, kind, number):
    """Write a place of the queue of dates."""
    entry = s.queue[i]
    entry.date = date
    entry.order = order
    entry.kind = kind
    entry.number = number
    if kind == WAIT:
        s.lists[IN_QUEUE, number] = i
    elif kind == WAKE:
        s.wakes[number].queued = i
    else:
        s.traces[number].queued = i


@jit
def raise_date(s, i, date, order, kind, number):
    """Put a date in place i, which is free, or nearer to the top."""
    while i > 0:
        above = s.queue[(i - 1) >> 2]
        if above.date < date or (above.date == date and above.order < order):
            break
        put_date(s, i, above.date, above.order, above.kind, above.number)
        i = (i - 1) >> 2
    put_date(s, i, date, order, kind, number)


@jit
def lower_date(s, i, date, order, kind, number):
    """Put a date in place i, which is free, or farther from the top."""
    n = s.clock[0].n_queue
    while True:
        first = 4 * i + 1
        if first >= n:
            break
        child = first
        c = s.queue[child]
        for k in range(first + 1, min(first + 4, n)):
            other = s.queue[k]
            if other.date < c.date or (other.date == c.date and other.order < c.order):
                child = k
                c = other
        if date < c.date or (date == c.date and order < c.order):
            break
        put_date(s, i, c.date, c.order, c.kind, c.number)
        i = child
    put_date(s, i, date, order, kind, number)


@jit
def push_date(s, date, kind, number):
    """Add a date to the queue; there is always room: one place for each who may stand there."""
    clock = s.clock[0]
    order = TRACES_FIRST + number
    if kind == TRACE:
        clock.n_traces += 1
    else:
        clock.order += 1
        order = clock.order
    clock.n_queue += 1
    raise_date(s, clock.n_queue - 1, date, order, kind, number)


@jit
def remove_date(s, i):
    """Take a place out of the queue."""
    clock = s.clock[0]
    gone = s.queue[i]
    if gone.kind == WAIT:
        s.lists[IN_QUEUE, gone.number] = -1
    elif gone.kind == WAKE:
        s.wakes[gone.number].queued = -1
    else:
        s.traces[gone.number].queued = -1
        clock.n_traces -= 1
    clock.n_queue -= 1
    n = clock.n_queue
    if i == n:
        return
    last = s.queue[n]
    date, order = last.date, last.order
    if i > 0:
        above = s.queue[(i - 1) >> 2]
        if date < above.date or (date == above.date and order < above.order):
            raise_date(s, i, date, order, last.kind, last.number)
            return
    lower_date(s, i, date, order, last.kind, last.number)


@jit
def push_wake(s, date, token):
    """Ask for an event at a date; returns its number. The caller has made sure of room."""
    clock = s.clock[0]
    number = clock.free_wakes
    if number >= 0:
        clock.free_wakes = s.wakes[number].token
    else:
        number = clock.n_wakes
        clock.n_wakes += 1
    s.wakes[number].token = token
    push_date(s, date, WAKE, number)
    return number


@jit
def has_room_for_wake(s):
    """Whether a wake-up can be asked for."""
    return s.clock[0].free_wakes >= 0 or s.clock[0].n_wakes < s.wakes.size


@jit
def free_wake(s, number):
    """Give back the number of a wake-up that is over; returns its token."""
    token = s.wakes[number].token
    s.wakes[number].token = s.clock[0].free_wakes
    s.clock[0].free_wakes = number
    return token


@jit
def cancel_wake(s, number):
    """Forget a wake-up that has not come yet."""
    remove_date(s, s.wakes[number].queued)
    free_wake(s, number)


@jit
def put_end(s, i, date, order, slot):
    """Write a place of the heap of ends."""
    end = s.heap[i]
    end.date = date
    end.order = order
    end.slot = slot
    s.lists[IN_ENDS, slot] = i


@jit
def raise_end(s, i, date, order, slot):
    """Put an end in place i, which is free, or nearer to the top."""
    while i > 0:
        above = s.heap[(i - 1) >> 2]
        if above.date < date or (above.date == date and above.order < order):
            break
        put_end(s, i, above.date, above.order, above.slot)
        i = (i - 1) >> 2
    put_end(s, i, date, order, slot)


@jit
def lower_end(s, i, date, order, slot):
    """Put an end in place i, which is free, or farther from the top."""
    n = s.clock[0].n_heap
    while True:
        first = 4 * i + 1
        if first >= n:
            break
        child = first
        c = s.heap[child]
        for k in range(first + 1, min(first + 4, n)):
            other = s.heap[k]
            if other.date < c.date or (other.date == c.date and other.order < c.order):
                child = k
                c = other
        if date < c.date or (date == c.date and order < c.order):
            break
        put_end(s, i, c.date, c.order, c.slot)
        i = child
    put_end(s, i, date, order, slot)


@jit
def place_end(s, i, date, order, slot):
    """Put an end in place i, which is free, or where it belongs above or below."""
    if i > 0:
        above = s.heap[(i - 1) >> 2]
        if date < above.date or (date == above.date and order < above.order):
            raise_end(s, i, date, order, slot)
            return
    lower_end(s, i, date, order, slot)


@jit
def remove_end(s, slot):
    """Take an activity out of the heap of ends, if it is there."""
    i = s.lists[IN_ENDS, slot]
    if i < 0:
        return
    s.lists[IN_ENDS, slot] = -1
    clock = s.clock[0]
    clock.n_heap -= 1
    if i < clock.n_heap:
        last = s.heap[clock.n_heap]
        place_end(s, i, last.date, last.order, last.slot)


@jit
def set_end(s, slot, date):
    """Give an activity its date of end (inf: never) and its place in the heap."""
    if date == np.inf:
        remove_end(s, slot)
        return
    i = s.lists[IN_ENDS, slot]
    if i < 0:
        i = s.clock[0].n_heap
        s.clock[0].n_heap += 1
    place_end(s, i, date, s.activities[slot].order, slot)
