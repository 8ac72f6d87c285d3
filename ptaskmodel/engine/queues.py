"""The two heaps of the event loop: timers by (time, order), enabled tasks by date of end."""

from __future__ import annotations

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
def end_before(tasks, a, b):
    """Whether task a ends first; as early, the one enabled first."""
    x = tasks[a]
    y = tasks[b]
    return x.ends < y.ends or (x.ends == y.ends and x.order < y.order)


@jit
def sift_up(tasks, i):
    task = tasks[i].slot_heap
    while i > 0:
        parent = (i - 1) >> 1
        if not end_before(tasks, task, tasks[parent].slot_heap):
            break
        tasks[i].slot_heap = tasks[parent].slot_heap
        tasks[tasks[i].slot_heap].heap = i
        i = parent
    tasks[i].slot_heap = task
    tasks[task].heap = i


@jit
def sift_down(tasks, i, n):
    task = tasks[i].slot_heap
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        if child + 1 < n and end_before(tasks, tasks[child + 1].slot_heap, tasks[child].slot_heap):
            child += 1
        if not end_before(tasks, tasks[child].slot_heap, task):
            break
        tasks[i].slot_heap = tasks[child].slot_heap
        tasks[tasks[i].slot_heap].heap = i
        i = child
    tasks[i].slot_heap = task
    tasks[task].heap = i


@jit
def remove_end(s, task):
    """Take a task out of the heap of ends, if it is there."""
    clock = s.clock[0]
    i = s.tasks[task].heap
    if i < 0:
        return
    s.tasks[task].heap = -1
    clock.n_heap -= 1
    n = clock.n_heap
    if i == n:
        return
    moved = s.tasks[n].slot_heap
    s.tasks[i].slot_heap = moved
    s.tasks[moved].heap = i
    sift_up(s.tasks, i)
    sift_down(s.tasks, s.tasks[moved].heap, n)


@jit
def set_end(s, task, date):
    """Give a task its date of end (inf: never) and its place in the heap."""
    clock = s.clock[0]
    t = s.tasks[task]
    if date == float("inf"):
        remove_end(s, task)
        t.ends = date
        return
    t.ends = date
    if t.heap < 0:
        t.heap = clock.n_heap
        s.tasks[t.heap].slot_heap = task
        clock.n_heap += 1
    sift_up(s.tasks, t.heap)
    sift_down(s.tasks, t.heap, clock.n_heap)
