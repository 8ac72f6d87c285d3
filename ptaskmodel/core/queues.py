"""The two heaps of the core: the queue of dates, and enabled activities by date of end.

Who stands in a heap knows its position there, so that it can be taken out.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.core.state import TRACE, WAIT, WAKE
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
        s.activities[number].queued = i
    elif kind == WAKE:
        s.wakes[number].queued = i
    else:
        s.traces[number].queued = i


@jit
def raise_date(s, i, date, order, kind, number):
    """Put a date in place i, which is free, or nearer to the top."""
    while i > 0:
        above = s.queue[(i - 1) >> 1]
        if above.date < date or (above.date == date and above.order < order):
            break
        put_date(s, i, above.date, above.order, above.kind, above.number)
        i = (i - 1) >> 1
    put_date(s, i, date, order, kind, number)


@jit
def lower_date(s, i, date, order, kind, number):
    """Put a date in place i, which is free, or farther from the top."""
    n = s.clock[0].n_queue
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        c = s.queue[child]
        if child + 1 < n:
            other = s.queue[child + 1]
            if other.date < c.date or (other.date == c.date and other.order < c.order):
                child += 1
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
        s.activities[gone.number].queued = -1
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
        above = s.queue[(i - 1) >> 1]
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
def put_end(heap, activities, i, date, order, slot):
    """Write a place of the heap of ends."""
    end = heap[i]
    end.date = date
    end.order = order
    end.slot = slot
    activities[slot].heap = i


@jit
def sift_up(heap, activities, i):
    """Move an end towards the top until it is in its place."""
    date, order, slot = heap[i].date, heap[i].order, heap[i].slot
    while i > 0:
        parent = heap[(i - 1) >> 1]
        if parent.date < date or (parent.date == date and parent.order < order):
            break
        put_end(heap, activities, i, parent.date, parent.order, parent.slot)
        i = (i - 1) >> 1
    put_end(heap, activities, i, date, order, slot)


@jit
def sift_down(heap, activities, i, n):
    """Move an end away from the top until it is in its place."""
    date, order, slot = heap[i].date, heap[i].order, heap[i].slot
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        c = heap[child]
        if child + 1 < n:
            other = heap[child + 1]
            if other.date < c.date or (other.date == c.date and other.order < c.order):
                child += 1
                c = other
        if date < c.date or (date == c.date and order < c.order):
            break
        put_end(heap, activities, i, c.date, c.order, c.slot)
        i = child
    put_end(heap, activities, i, date, order, slot)


@jit
def remove_end(heap, activities, clock, slot):
    """Take an activity out of the heap of ends, if it is there."""
    i = activities[slot].heap
    if i < 0:
        return
    activities[slot].heap = -1
    clock.n_heap -= 1
    n = clock.n_heap
    if i == n:
        return
    last = heap[n]
    moved = last.slot
    put_end(heap, activities, i, last.date, last.order, moved)
    sift_up(heap, activities, i)
    sift_down(heap, activities, activities[moved].heap, n)


@jit
def set_end(heap, activities, clock, slot, date):
    """Give an activity its date of end (inf: never) and its place in the heap."""
    t = activities[slot]
    if date == np.inf:
        remove_end(heap, activities, clock, slot)
        return
    i = t.heap
    if i < 0:
        i = clock.n_heap
        clock.n_heap += 1
    put_end(heap, activities, i, date, t.order, slot)
    sift_up(heap, activities, i)
    sift_down(heap, activities, t.heap, clock.n_heap)
