"""The two heaps of the event loop: timers by (time, order), enabled activities by date of end."""

from __future__ import annotations

import numpy as np

from ptaskmodel.jit import jit


@jit
def timer_before(a, b):
    """Whether timer record a comes first: earlier, or as early and pushed before."""
    return a.time < b.time or (a.time == b.time and a.order < b.order)


@jit
def set_timer(target, source):
    target.time = source.time
    target.order = source.order
    target.kind = source.kind
    target.slot = source.slot
    target.stamp = source.stamp


@jit
def push_timer(s, time, kind, slot, stamp):
    """Add a timer; the caller has made sure that there is room (one spare place is scratch)."""
    timers = s.timers
    clock = s.clock[0]
    clock.order += 1
    spare = timers[timers.size - 1]
    spare.time = time
    spare.order = clock.order
    spare.kind = kind
    spare.slot = slot
    spare.stamp = stamp
    i = clock.n_timers
    clock.n_timers += 1
    while i > 0:
        parent = (i - 1) >> 1
        if not timer_before(spare, timers[parent]):
            break
        set_timer(timers[i], timers[parent])
        i = parent
    set_timer(timers[i], spare)


@jit
def pop_timer(s):
    """Remove the first timer."""
    timers = s.timers
    clock = s.clock[0]
    clock.n_timers -= 1
    n = clock.n_timers
    last = timers[n]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        if child + 1 < n and timer_before(timers[child + 1], timers[child]):
            child += 1
        if not timer_before(timers[child], last):
            break
        set_timer(timers[i], timers[child])
        i = child
    if i != n:
        set_timer(timers[i], last)


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
