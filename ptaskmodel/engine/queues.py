"""The two heaps of the event loop: timers by (time, order), enabled tasks by date of end."""

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
    target.task = source.task
    target.stamp = source.stamp


@jit
def push_timer(s, time, kind, task, stamp):
    """Add a timer; the caller has made sure that there is room (one spare place is scratch)."""
    timers = s.timers
    clock = s.clock[0]
    clock.order += 1
    spare = timers[timers.size - 1]
    spare.time = time
    spare.order = clock.order
    spare.kind = kind
    spare.task = task
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
def put_end(heap, tasks, i, date, order, task):
    """Write a place of the heap of ends."""
    end = heap[i]
    end.date = date
    end.order = order
    end.task = task
    tasks[task].heap = i


@jit
def sift_up(heap, tasks, i):
    """Move an end towards the top until it is in its place."""
    date, order, task = heap[i].date, heap[i].order, heap[i].task
    while i > 0:
        parent = heap[(i - 1) >> 1]
        if parent.date < date or (parent.date == date and parent.order < order):
            break
        put_end(heap, tasks, i, parent.date, parent.order, parent.task)
        i = (i - 1) >> 1
    put_end(heap, tasks, i, date, order, task)


@jit
def sift_down(heap, tasks, i, n):
    """Move an end away from the top until it is in its place."""
    date, order, task = heap[i].date, heap[i].order, heap[i].task
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
        put_end(heap, tasks, i, c.date, c.order, c.task)
        i = child
    put_end(heap, tasks, i, date, order, task)


@jit
def remove_end(heap, tasks, clock, task):
    """Take a task out of the heap of ends, if it is there."""
    i = tasks[task].heap
    if i < 0:
        return
    tasks[task].heap = -1
    clock.n_heap -= 1
    n = clock.n_heap
    if i == n:
        return
    last = heap[n]
    moved = last.task
    put_end(heap, tasks, i, last.date, last.order, moved)
    sift_up(heap, tasks, i)
    sift_down(heap, tasks, tasks[moved].heap, n)


@jit
def set_end(heap, tasks, clock, task, date):
    """Give a task its date of end (inf: never) and its place in the heap."""
    t = tasks[task]
    if date == np.inf:
        remove_end(heap, tasks, clock, task)
        return
    i = t.heap
    if i < 0:
        i = clock.n_heap
        clock.n_heap += 1
    put_end(heap, tasks, i, date, t.order, task)
    sift_up(heap, tasks, i)
    sift_down(heap, tasks, t.heap, clock.n_heap)
