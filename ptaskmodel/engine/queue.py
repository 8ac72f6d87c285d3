# mypy: allow-untyped-defs
"""Queues in the engine's arrays: the event queue, activities by end time, and linked lists.

The first two are heaps. Each entry stores its position in the heap, so that it can be removed. The
heaps are 4-ary: few steps to the top, through neighbours in memory. `loop` has the order of what
happens at one time.

Messages of a collective begin together, and often end together: thousands of activities have the
same time. These form *runs*: only the first is in the heap, and the others are queued behind it in
order. A new entry joins the run of its time if that run is among the last few that were used.

A linked list of records is first in, first out. It has a `LIST`, which holds the numbers of its
first and last record, and a field of each record for the number of the record after it. Front ends
use them too.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.engine.state import (
    AFTER,
    BEFORE,
    BEHIND,
    IN_ENDS,
    IN_QUEUE,
    ROUND_TRIP,
    TRACE,
    WAIT,
    WAKE,
)
from ptaskmodel.kernels.decorators import jit
from ptaskmodel.kernels.records import INT, NOTHING

# The numbers of the first and the last record.
LIST = np.dtype([("first", INT), ("last", INT)], align=True)
EMPTY = (-1, -1)
# Order of the first trace among entries of one date: before everything that is pushed.
TRACES_FIRST = -(2**60)
# How many runs of each heap can be joined.
RUNS = 4


@jit
def append(ends, after, number):
    """Put a record at the end of a list.

    ends: the list's `LIST`. after: int array, the number of the next record of each (the field of
    all records). number: of the record.
    """
    after[number] = -1
    if ends.last >= 0:
        after[ends.last] = number
    else:
        ends.first = number
    ends.last = number


@jit
def take_first(ends, after):
    """Take the first record out of a list that is not empty; returns its number.

    ends, after: as for `append`.
    """
    number = np.int64(ends.first)
    ends.first = after[number]
    if ends.first < 0:
        ends.last = -1
    return number


@jit
def run_to_join(s, row, date, order):
    """Where the run is noted that an activity can join at this date and order, -1: none.

    row: IN_ENDS or IN_QUEUE.
    """
    first = RUNS if row == IN_QUEUE else 0
    for k in range(first, first + RUNS):
        c = s.clock[k]
        if c.run_date == date and c.run_last >= 0:
            a = s.activities[c.run_last]
            if a.due == date and a.order < order and s.lists[row, c.run_last] != NOTHING:  # noqa: SIM102
                if s.lists[AFTER, c.run_last] < 0:
                    return k
    return -1


@jit
def join_run(s, row, k, slot):
    """Put an activity behind the last of the run noted at ``k``."""
    last = s.clock[k].run_last
    s.lists[AFTER, last] = slot
    s.lists[BEFORE, slot] = last
    s.lists[AFTER, slot] = NOTHING
    s.lists[row, slot] = BEHIND
    s.clock[k].run_last = slot


@jit
def begin_run(s, row, slot, date):
    """Note that an activity, alone at its date in a heap (row: which), can be joined."""
    first = RUNS if row == IN_QUEUE else 0
    s.lists[AFTER, slot] = NOTHING
    c = s.clock[first]
    c.run_turn = (c.run_turn + 1) % RUNS
    c = s.clock[first + c.run_turn]
    c.run_last = slot
    c.run_date = date


@jit
def leave_run(s, row, slot):
    """Take an activity out that stands behind another."""
    before = s.lists[BEFORE, slot]
    after = s.lists[AFTER, slot]
    s.lists[AFTER, before] = after
    if after >= 0:
        s.lists[BEFORE, after] = before
    s.lists[row, slot] = NOTHING


@jit
def put_date(s, i, date, order, kind, number):
    """Write place i of the queue: an event of a kind at a date, its order there, whose number."""
    entry = s.queue[i]
    entry.date = date
    entry.order = order
    entry.kind = kind
    entry.number = number
    if kind in (WAIT, ROUND_TRIP):
        s.lists[IN_QUEUE, number] = i
    elif kind == WAKE:
        s.wakes[number].queued = i
    else:
        s.traces[number].queued = i


@jit
def raise_date(s, i, date, order, kind, number):
    """Put (date, order, kind, number) in place i, which is free, or nearer to the top."""
    while i > 0:
        above = s.queue[(i - 1) >> 2]
        if above.date < date or (above.date == date and above.order < order):
            break
        put_date(s, i, above.date, above.order, above.kind, above.number)
        i = (i - 1) >> 2
    put_date(s, i, date, order, kind, number)


@jit
def lower_date(s, i, date, order, kind, number):
    """Put (date, order, kind, number) in place i, which is free, or farther from the top."""
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
    """Add an event of a kind at ``date``, with its number; each possible entry has a place."""
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
        s.lists[IN_QUEUE, gone.number] = NOTHING
        after = s.lists[AFTER, gone.number]
        if after >= 0:
            lower_date(s, i, gone.date, s.activities[after].order, WAIT, after)
            return
    elif gone.kind == ROUND_TRIP:
        s.lists[IN_QUEUE, gone.number] = NOTHING
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
def push_wait(s, date, slot):
    """Let an activity wait for a date."""
    clock = s.clock[0]
    a = s.activities[slot]
    k = run_to_join(s, IN_QUEUE, date, clock.order + 1)
    a.due = date
    a.order = clock.order + 1
    if k >= 0:
        clock.order += 1
        join_run(s, IN_QUEUE, k, slot)
    else:
        begin_run(s, IN_QUEUE, slot, date)
        push_date(s, date, WAIT, slot)


@jit
def push_round_trip(s, date, slot):
    """Let an activity (of s, slot) that runs be told of a date; none joins it there in a run."""
    for k in range(RUNS, 2 * RUNS):
        if s.clock[k].run_last == slot:
            s.clock[k].run_last = NOTHING
    push_date(s, date, ROUND_TRIP, slot)


@jit
def remove_wait(s, slot):
    """Let an activity wait no more, nor be told of a date."""
    i = s.lists[IN_QUEUE, slot]
    if i == BEHIND:
        leave_run(s, IN_QUEUE, slot)
    elif i != NOTHING:
        remove_date(s, i)


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
    """Forget the wake-up with this number, which has not come yet."""
    remove_date(s, s.wakes[number].queued)
    free_wake(s, number)


@jit
def put_end(s, i, date, order, slot):
    """Write place i of the heap of ends: an activity, its date and its order there."""
    end = s.heap[i]
    end.date = date
    end.order = order
    end.slot = slot
    s.lists[IN_ENDS, slot] = i


@jit
def raise_end(s, i, date, order, slot):
    """Put an end (date, order, slot) in place i, which is free, or nearer to the top."""
    while i > 0:
        above = s.heap[(i - 1) >> 2]
        if above.date < date or (above.date == date and above.order < order):
            break
        put_end(s, i, above.date, above.order, above.slot)
        i = (i - 1) >> 2
    put_end(s, i, date, order, slot)


@jit
def lower_end(s, i, date, order, slot):
    """Put an end (date, order, slot) in place i, which is free, or farther from the top."""
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
    """Put (date, order, slot) in place i, which is free, or where it belongs above or below."""
    if i > 0:
        above = s.heap[(i - 1) >> 2]
        if date < above.date or (date == above.date and order < above.order):
            raise_end(s, i, date, order, slot)
            return
    lower_end(s, i, date, order, slot)


@jit
def remove_end(s, slot):
    """Take an activity out of the ends, if it is there."""
    i = s.lists[IN_ENDS, slot]
    if i == NOTHING:
        return
    if i == BEHIND:
        leave_run(s, IN_ENDS, slot)
        return
    s.lists[IN_ENDS, slot] = NOTHING
    after = s.lists[AFTER, slot]
    if after >= 0:
        lower_end(s, i, s.heap[i].date, s.activities[after].order, after)
        return
    clock = s.clock[0]
    clock.n_heap -= 1
    if i < clock.n_heap:
        last = s.heap[clock.n_heap]
        place_end(s, i, last.date, last.order, last.slot)


@jit
def set_end(s, slot, date):
    """Give an activity its date of end (inf: never) and its place among the ends."""
    a = s.activities[slot]
    i = s.lists[IN_ENDS, slot]
    if date == np.inf:
        remove_end(s, slot)
        return
    if i != NOTHING and a.due == date:
        return
    k = run_to_join(s, IN_ENDS, date, a.order)
    if k >= 0 or (i != NOTHING and (i == BEHIND or s.lists[AFTER, slot] >= 0)):
        remove_end(s, slot)
        i = NOTHING
    a.due = date
    if k >= 0:
        join_run(s, IN_ENDS, k, slot)
        return
    if i == NOTHING:
        i = s.clock[0].n_heap
        s.clock[0].n_heap += 1
    begin_run(s, IN_ENDS, slot, date)
    place_end(s, i, date, a.order, slot)
