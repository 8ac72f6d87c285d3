# mypy: allow-untyped-defs, allow-incomplete-defs
"""The order of events at one time: traces, waits, ends, failures, rates.

Every front end asks `next_happening` and branches on the answer: tasks, MPI ranks, and `advance`,
which serves front ends in Python. docs/background/events.md states what users see of this order.
At a time T:

1. `to_next_date`: availability traces change what resources offer, at times <= T;
2. events of the queue within ``time_precision`` of T: waits end, front ends are woken;
3. activities whose work is done (up to ``work_precision``) end;
4. activities that use something that is off fail, unless they ended in steps 2 and 3;
5. nothing more happens: the front end stops what exceeds its limit,
6. and starts what is to start;
7. `to_next_date`: rates are recomputed where something changed.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.engine.activity import begin_tail, end, share, succeeds
from ptaskmodel.engine.availability import apply_traces, follow_live, pass_unused
from ptaskmodel.engine.queue import free_wake, push_date, remove_date
from ptaskmodel.engine.resharing import reshare
from ptaskmodel.engine.state import (
    AFTER,
    DONE,
    ENDED,
    EVENTS_FULL,
    FAILED,
    FAILING,
    FAILURES,
    IDLE,
    NEW_DATE,
    NO_CHANGE,
    NOTHING_MORE,
    OK,
    PAUSED,
    ROUND_TRIP,
    ROUTES_CHANGED,
    SETTLE,
    SOME_ENDED,
    STEP,
    STEPPED,
    TO_FAIL,
    TRACE,
    UNTIL,
    WAITED,
    WAKE,
    WOKE,
    WOKEN,
    WORKED,
    WORKED_FIRST,
)
from ptaskmodel.engine.stream import emit, has_room_for_events
from ptaskmodel.engine.wires import share_by_ports, widen
from ptaskmodel.kernels.decorators import entry, jit
from ptaskmodel.kernels.records import NOTHING

INFINITY = float("inf")
# Changes by traces in a row, while no activity progresses, after which nothing is expected of them.
MAX_IDLE_TRACES = 100_000


@jit
def counts(s, i):
    """Return whether entry i of the queue is an event: the trace of an unused resource is none."""
    entry = s.queue[i]
    return entry.kind != TRACE or s.graph.constraints[s.traces[entry.number].resource].users > 0


@jit
def is_certain(s):
    """Whether anything will happen that is more than a change by a trace."""
    clock = s.clock[0]
    return clock.n_heap > 0 or clock.n_queue > clock.n_traces


@jit
def next_date(s):
    """Date of the next event; inf: none. Without any activity in progress, traces are no events."""
    clock = s.clock[0]
    if not is_certain(s) and s.graph.counts[0].n_enabled == 0:
        return INFINITY
    date = INFINITY
    if clock.n_heap > 0:
        date = s.heap[0].date
    if clock.n_queue > 0:
        if counts(s, 0):
            date = min(date, s.queue[0].date)
        else:
            for i in range(1, clock.n_queue):
                if s.queue[i].date < date and counts(s, i):
                    date = s.queue[i].date
    return max(date, clock.now)


@jit
def renew_rates(s, o):
    """Share anew what changed; OK, or why to come back to Python."""
    clock = s.clock[0]
    if clock.changed != NO_CHANGE:
        return ROUTES_CHANGED
    status = share_by_ports(s, o) if o.by_ports else reshare(s, o)
    if status != OK:
        return status
    if not has_room_for_events(s, 2 * clock.n_active):
        return EVENTS_FULL
    if clock.stepping == 1 or o.mode == SETTLE:
        clock.stepping = 0
        return STEPPED
    if clock.events >= o.pause_at:
        return PAUSED
    return OK


@jit
def go_to_next_date(s, o):
    """Go to the next date at which something happens and let traces change what they change.

    OK if there is one, IDLE if nothing will ever happen, UNTIL if that date was reached before.
    """
    clock = s.clock[0]
    if is_certain(s) or o.until < INFINITY:
        date = o.until
        if clock.n_heap > 0:
            date = min(date, max(s.heap[0].date, clock.now))
        pass_unused(s, date, o)
        clock.idle_traces = 0
    else:
        clock.idle_traces += 1
        if clock.idle_traces > MAX_IDLE_TRACES:
            return IDLE
    date = next_date(s)
    if date == INFINITY and o.until == INFINITY:
        return IDLE
    if date > o.until:
        apply_traces(s, o.until, o)  # of resources whose users are all suspended
        clock.now = max(clock.now, o.until)
        return UNTIL
    clock.now = date
    clock.events += 1
    apply_traces(s, date, o)
    return OK


@jit
def due(s, precision):
    """Take the next date that is due out of the queue.

    WAIT: the wait of activity ``clock.argument`` is over, ROUND_TRIP: a round trip of it. WAKE: of
    token ``clock.argument``.
    NOTHING: none is due any more.
    """
    clock = s.clock[0]
    while clock.n_queue > 0:
        top = s.queue[0]
        if top.date > clock.now and top.date - clock.now >= precision:
            break
        kind = top.kind
        number = top.number
        remove_date(s, 0)
        if kind == TRACE:  # a moment too early: it applies from its very date on
            s.traces[number].aside = clock.aside
            clock.aside = number
            continue
        clock.argument = number
        if kind == WAKE:
            clock.argument = free_wake(s, number)
        return kind
    while clock.aside >= 0:
        number = clock.aside
        clock.aside = s.traces[number].aside
        push_date(s, s.traces[number].next_date, TRACE, number)
    return NOTHING


@jit
def finished(s, o):
    """An activity whose work is done at this date, -1 if there is none any more."""
    clock = s.clock[0]
    if clock.n_heap == 0:
        return NOTHING
    end = s.heap[0]
    date = clock.now
    if end.date > date and (
        s.graph.variables[end.slot].rate * (end.date - date) >= o.work_precision * o.time_precision
    ):
        if o.flows and end.date - date < o.time_precision:
            return early_execution(s, o.time_precision)
        return NOTHING
    return end.slot


@jit
def is_execution(s, slot):
    """Whether an activity uses a host alone."""
    t = s.graph.variables[slot]
    return t.n_nodes == 1 and s.resources[s.graph.nodes[t.nodes].resource].one_core < INFINITY


@jit
def early_execution(s, precision):
    """An execution that ends less than ``precision`` s from now, -1: none. In SimGrid's flow models
    the dates at which computations end stand in a queue, and are due a moment too early like any
    others. Times between dates are compared, as there: amounts of whole flop often end as far
    apart as the precision, and then the last digit decides.
    """
    n = s.clock[0].n_heap
    now = s.clock[0].now
    limit = INFINITY
    first = NOTHING
    order = np.int64(-1)
    i = 0
    while True:
        end = s.heap[min(i, n - 1)]
        if (
            i < n
            and end.date - now < precision
            and (end.date < limit or (end.date == limit and end.order < order))
        ):
            slot = end.slot
            while slot >= 0:  # the others of its run end at the same date
                a = s.activities[slot]
                if is_execution(s, slot):
                    if end.date < limit or a.order < order:
                        first = slot
                        limit, order = end.date, np.int64(a.order)
                    break
                slot = s.lists[AFTER, slot]
            i = 4 * i + 1
        else:
            while i > 0 and i % 4 == 0:
                i = (i - 1) >> 2
            if i == 0:
                return first
            i += 1


@jit
def next_failing(s):
    """The next activity of the state ``s`` that uses something that is off; NOTHING: none does."""
    clock = s.clock[0]
    while clock.n_failed < clock.n_failing:
        slot = s.lists[FAILURES, clock.n_failed]
        clock.n_failed += 1
        failing = s.activities[slot].failing == TO_FAIL
        s.activities[slot].failing = 0
        if failing:
            return slot
    clock.n_failing = 0
    clock.n_failed = 0
    return NOTHING


@jit
def next_wait(s, o):
    """The next event that is due, WOKEN or WAITED; NOTHING: none is.

    An activity that has waited and has work to do shares resources from now on; no answer says so.

    s: the engine's state. o: its options.
    """
    while True:
        kind = due(s, o.time_precision)
        if kind == NOTHING:
            return NOTHING
        if kind == WAKE:
            return WOKEN
        slot = s.clock[0].argument
        if kind == ROUND_TRIP:
            widen(s, slot, o)
            continue
        share(s, slot, o)
        if s.activities[slot].state == DONE:
            return WAITED


@jit
def next_happening(s, o, last, work_first):
    """Return what happens next at this date; its subject is ``clock.argument``.

    WOKEN: the time of a wake-up has come; the subject is its token. All other subjects are
    activities, which the front end stops. WAITED: its wait is over, and it has no work. WORKED: its
    work is done. FAILING: it uses something that is off. NOTHING_MORE: the date is over, for the
    engine. An activity that WAITED or WORKED may have failed, too (see `activity.succeeds`).

    s: the engine's state. o: its options. last: the last answer at this date, at first NEW_DATE.
    work_first: work that is done comes before events that are due, as WORKED_FIRST.
    """
    clock = s.clock[0]
    if last <= WAITED:
        if work_first:
            slot = finished(s, o)
            if slot >= 0:
                clock.argument = slot
                return WORKED_FIRST
        what = next_wait(s, o)
        if what != NOTHING:
            return what
    if last <= WORKED:
        slot = finished(s, o)
        while slot >= 0 and o.packet > 0.0 and begin_tail(s, slot, o):
            slot = finished(s, o)
        if slot >= 0:
            clock.argument = slot
            return WORKED
    slot = next_failing(s)
    if slot >= 0:
        clock.argument = slot
        return FAILING
    return NOTHING_MORE


@jit
def to_next_date(s, o, events):
    """Recompute rates where something changed and go to the next date at which something happens.

    Returns OK, or why to come back to Python.

    s: the engine's state. o: its options. events: how many events the front end may emit there.
    """
    status = renew_rates(s, o)
    if status != OK:
        return status
    if not has_room_for_events(s, events):
        return EVENTS_FULL
    status = go_to_next_date(s, o)
    if status == OK and o.mode == STEP:
        s.clock[0].stepping = 1
    return status


@entry
def advance(s, o):
    """Go on until something needs Python, something ended or woke, or ``until``; returns why.

    Everything that it leaves undone is in the state: calling it again goes on where it was.
    """
    clock = s.clock[0]
    follow_live(s, o)
    while True:
        status = to_next_date(s, o, clock.n_queue + 2 * clock.n_active)
        if status != OK:
            return status
        before = clock.n_events
        what = NEW_DATE
        while what != NOTHING_MORE:
            what = next_happening(s, o, what, False)
            subject = clock.argument
            if what == WOKEN:
                emit(s, WOKE, subject, 0.0)
            elif what != NOTHING_MORE:
                fine = what != FAILING and succeeds(s, subject)
                end(s, subject, ENDED if fine else FAILED)
        if o.mode != STEP and clock.n_events > before:
            return SOME_ENDED


@entry
def upcoming(s):
    """Date of the next event; inf: nothing will ever happen."""
    return next_date(s)
