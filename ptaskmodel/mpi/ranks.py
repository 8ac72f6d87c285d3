# mypy: allow-untyped-defs, allow-incomplete-defs
"""Execute the actions of a rank: each becomes operations, one at a time, until the rank must wait.

`next_operation` chooses an operation, and `operate` executes it. A rank's position is in its
record, so Python can supply what is missing (a route, memory) in between.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.engine.activity import start, stop
from ptaskmodel.engine.queue import append, cancel_wake, has_room_for_wake, take_first
from ptaskmodel.engine.state import (
    DONE,
    GROW_WAKES,
    LOST,
    OK,
    Options,
    State,
    bare_options,
    bare_state,
)
from ptaskmodel.kernels.decorators import jit, late
from ptaskmodel.kernels.records import numbers
from ptaskmodel.mpi.collectives.dispatch import chosen, step_of_collective
from ptaskmodel.mpi.collectives.selection import Chosen
from ptaskmodel.mpi.collectives.steps import (
    ALL,
    AWAIT_ANY,
    AWAIT_RECEIVE,
    AWAIT_SEND,
    CLOSE_REQUEST,
    COMPUTE,
    DO_RECEIVE,
    DO_SEND,
    FINISHED,
    NO_MORE,
    OPEN_REQUEST,
    POST_RECEIVE,
    POST_SEND,
    REQUEST_RECEIVE,
    REQUEST_SEND,
    UNWANTED,
    sized,
)
from ptaskmodel.mpi.messages import free_message, make_ready, route_between, take_from_bucket
from ptaskmodel.mpi.posting import closes_request, looks, opens_request, posts
from ptaskmodel.mpi.state import (
    AWAITED,
    COLLECTIVES,
    COMPUTING,
    ENDED,
    FLYING,
    IN_ALL,
    LOST_RANK,
    NO_STEPS,
    NOBODY,
    NOT_YET,
    PAID,
    POSTED,
    READY,
    SLEEPING,
    TESTED,
    TOLD_FULL,
    Replays,
    bare_replays,
)
from ptaskmodel.mpi.waiting import (
    GOES_ON,
    TURNS,
    WAITS,
    asks_for_any,
    asks_for_first,
    asks_for_request,
    drop_request,
    is_of_nobody,
    named_request,
    request_of,
    sender,
    sleep_now,
    waits_for_action,
    waits_for_requests,
)
from ptaskmodel.workload import actions as ti

A_BARRIER, A_COMPUTE, A_ISEND = ti.BARRIER, ti.COMPUTE, ti.ISEND
A_RECV, A_SEND, A_SENDRECV, A_SLEEP = ti.RECV, ti.SEND, ti.SENDRECV, ti.SLEEP
A_TEST, A_WAIT, A_WAITALL, A_LOCATION = ti.TEST, ti.WAIT, ti.WAITALL, ti.LOCATION
A_WAITANY, A_IBARRIER = ti.WAITANY, ti.IBARRIER
A_INIT, NO_RANK = ti.INIT, ti.NO_RANK

INFINITY = float("inf")

# Operations besides those of collectives (see `steps`): sleep; compute for so many s to look if
# a message is there; let others go first; look; wait for a request, test one, wait for all,
# for whichever is over first.
SLEEP, POLL, TURN, LOOK, WAIT_ONE, TEST_ONE, WAIT_REQUESTS, WAIT_FIRST = numbers(17, 25)


@jit
def testing(x, r, first, k):
    """Step k of a test: it takes its time, then looks."""
    if k > 2:
        return FINISHED, 0, 0.0, 0
    i = named_request(x, r, first)
    if k == 0:
        if i < 0:
            return FINISHED, 0, 0.0, 0
        if x.requests[i].over == TESTED:
            return TEST_ONE, 0, 0.0, 0
        return SLEEP, 0, x.counts[0].test_misses * x.protocol[0].test, 0
    return (TURN if k == 1 and x.requests[i].detached == 0 else TEST_ONE), 0, 0.0, 0


@jit
def next_operation(s, x, r):
    """(what, peer, size, tag) of a rank: size in bytes, flop or s, peer a rank of all."""
    rank = x.ranks[r]
    app = x.apps[rank.app]
    k = rank.step
    kind = A_BARRIER
    first = 0
    last = 0
    phase = rank.phase
    if rank.action < rank.last:
        kind = x.actions[rank.action]
        first = x.start[rank.action]
        last = x.start[rank.action + 1]
        if kind <= A_LOCATION:
            if kind == A_INIT and k == 0:
                return SLEEP, 0, x.protocol[0].init, 0
            return FINISHED, 0, 0.0, 0
    else:  # at its end it waits for its requests, and perhaps for the others
        if phase == 0:
            return (WAIT_REQUESTS if k == 0 else NO_MORE), 0, 0.0, 0
        if x.protocol[0].end_barrier == 0:
            return FINISHED, 0, 0.0, 0
        phase -= 1
    values = x.values
    if kind == A_WAITANY:
        return (WAIT_FIRST if k == 0 else FINISHED), 0, 0.0, 0
    if kind >= A_BARRIER:
        c = Chosen(x.algorithms, x.choices)
        if phase == 0 and k == 0 and kind < A_IBARRIER:
            rank.algorithm = chosen(
                values, first, last, app.ranks, kind, x.type_bytes, app.type_bytes, c
            )
        what, peer, size = step_of_collective(
            kind, phase, k, r - app.first, app.ranks, values, first, last, x.type_bytes,
            app.type_bytes, rank.algorithm, c, x.size,
        )  # fmt: skip
        return what, app.first + peer, size, COLLECTIVES - kind
    if kind == A_COMPUTE:
        if x.protocol[0].computes == 0 or k > 0:
            return FINISHED, 0, 0.0, 0
        return COMPUTE, 0, values[first], 0
    if kind == A_SLEEP:
        return (SLEEP if k == 0 else FINISHED), 0, values[first], 0
    if kind == A_WAITALL:
        return (WAIT_REQUESTS if k == 0 else FINISHED), 0, 0.0, 0
    if is_of_nobody(kind, values, first):
        return FINISHED, 0, 0.0, 0
    if kind == A_WAIT:
        return (WAIT_ONE if k == 0 else FINISHED), 0, 0.0, 0
    if kind == A_TEST:
        return testing(x, r, first, k)
    if kind == A_SENDRECV:
        to, source = app.first + int(values[first + 1]), sender(app, values[first + 3])
        if (to == r and source == r) or k == 3:
            return FINISHED, 0, 0.0, 0
        if values[first + 1 + 2 * min(k, 1)] == NO_RANK:
            return (TURN if k < 2 else ALL), 0, 0.0, 0
        unit = sized(values, first, 5 if k > 0 else 4, last, x.type_bytes, app.type_bytes)
        if k == 0:
            return POST_SEND, to, np.floor(values[first]) * unit, 0
        return (POST_RECEIVE if k == 1 else ALL), source, np.floor(values[first + 2]) * unit, 0
    peer = sender(app, values[first])
    tag = int(values[first + 1])
    count = values[first + 2]
    size = np.floor(count) * sized(values, first, 3, last, x.type_bytes, app.type_bytes)
    if kind in (A_SEND, A_ISEND):
        what = DO_SEND if kind == A_SEND else REQUEST_SEND
        return (what if k == 0 else FINISHED), peer, size, tag
    if count < 0.0:  # its size is asked for before
        if k == 0:
            return POLL, 0, x.counts[0].poll_misses * x.protocol[0].poll, 0
        if k == 1:
            return LOOK, peer, 0.0, tag
        k -= 2
    what = DO_RECEIVE if kind == A_RECV else REQUEST_RECEIVE
    return (what if k == 0 else FINISHED), peer, size, tag


@jit
def operate(s, x, o, r, what, peer, size, tag):
    """Do an operation of a rank: GOES_ON, TURNS, WAITS or what is missing."""
    rank = x.ranks[r]
    if what == COMPUTE:
        return computes(s, x, o, r, size, INFINITY)
    if what == POLL:
        if rank.posted == NOT_YET:  # its bound is set by a call of its own
            rank.posted = PAID
            rank.poll = size
            return TURNS
        part = x.protocol[0].poll_load
        rate = part * s.resources[rank.host].peak  # whatever is available of it
        status = computes(s, x, o, r, rank.poll * rate, rate if part < 1.0 else INFINITY)
        if status in (WAITS, GOES_ON):
            rank.posted = NOT_YET
        return status
    if what == ALL or rank.posted == POSTED:
        return waits_for_action(s, x, r)
    if what == SLEEP:
        return sleeps(s, x, r, size)
    if what == TURN:
        rank.step += 1
        return TURNS
    if what == LOOK:
        return looks(x, r, peer, tag)
    if what == WAIT_REQUESTS:
        return waits_for_requests(s, x, r)
    if what in (WAIT_ONE, TEST_ONE):
        i = named_request(x, r, x.start[rank.action])
        return asks_for_request(s, x, r, what == TEST_ONE, i)
    if what == WAIT_FIRST:
        return asks_for_first(s, x, r)
    if what == AWAIT_ANY:
        return asks_for_any(s, x, r, tag)
    if what == OPEN_REQUEST:
        return opens_request(x, r, tag)
    if what == CLOSE_REQUEST:
        return closes_request(x, r)
    if what == AWAIT_SEND:
        return asks_for_request(s, x, r, False, request_of(x, r, r, peer, tag))
    if what == AWAIT_RECEIVE:
        return asks_for_request(s, x, r, False, request_of(x, r, peer, r, tag))
    return posts(s, x, o, r, what, peer, size, tag)


@jit
def sleeps(s, x, r, seconds):
    """The step is over when the rank wakes."""
    if seconds > 0.0 and not has_room_for_wake(s):
        return GROW_WAKES
    x.ranks[r].step += 1
    return sleep_now(s, x, r, seconds) if seconds > 0.0 else GOES_ON


@jit
def computes(s, x, o, r, flops, most):
    """Compute, at so many flop/s at most, on the host of the rank; then the step is over."""
    rank = x.ranks[r]
    if flops <= 0.0:
        rank.step += 1
        return GOES_ON
    route = route_between(s, x, rank.host, -1)
    if route < 0:
        return -1 - route
    amount = flops * x.routes[route].unit
    slot = start(s, x.routes[route].pattern, amount, 1.0, most, np.nan, ~(2 * r), o)
    rank.step += 1
    state = s.activities[slot].state
    if state in (DONE, LOST):
        stop(s, slot)
        if state == LOST:
            x.counts[0].lost = r
        return GOES_ON
    rank.slot = slot
    rank.state = COMPUTING
    return WAITS


@jit
def tell_span(x, r, now):
    """Keep that a rank did not go on until now."""
    counts = x.counts[0]
    rank = x.ranks[r]
    span = x.spans[counts.n_spans]
    span.rank = r
    span.action = rank.action if rank.action < rank.last else -1
    span.held = rank.held
    span.cause = -1 if rank.held in (COMPUTING, SLEEPING) else rank.cause
    span.begin = rank.since
    span.end = now
    rank.told = counts.spans
    counts.spans += 1
    counts.n_spans += 1


@jit
def go(s, x, o, r):
    """Let a rank act until it has to wait; OK, or what is missing to go on.

    TURNS: it has not had to wait, but the others shall act first.
    """
    rank = x.ranks[r]
    now = s.clock[0].now
    waits_on = rank.held == IN_ALL
    if rank.held != READY:
        if x.counts[0].tells == 1 and now > rank.since:
            if x.counts[0].n_spans == x.spans.size:
                return TOLD_FULL
            tell_span(x, r, now)
        rank.held = READY
    while True:
        if waits_on:  # as before: what it does next is not asked again
            what, peer, size, tag = ALL, 0, 0.0, 0
            waits_on = False
        else:
            what, peer, size, tag = next_operation(s, x, r)
        if what == NO_MORE:
            rank.phase += 1
            rank.step = 0
            continue
        if what == UNWANTED:
            return NO_STEPS
        if what != FINISHED:
            status = operate(s, x, o, r, what, peer, size, tag)
            if status == GOES_ON or (status == TURNS and x.counts[0].by_turns == 0):
                continue
            if status == TURNS:
                return TURNS
            if status != WAITS:
                return status
            rank.held = rank.state
            rank.since = now
            x.counts[0].waits += 1
            rank.waits = x.counts[0].waits
            return OK
        rank.phase = 0
        rank.step = 0
        if rank.action == rank.last:
            rank.state = ENDED
            rank.ended = now
            app = x.apps[rank.app]
            app.unfinished -= 1
            if app.unfinished == 0:
                app.finished = now
                append(x.counts[0].over, x.apps.next, rank.app)
            x.counts[0].unfinished -= 1
            return OK
        x.spent[r, x.actions[rank.action]] += now - rank.began
        rank.began = now
        rank.action += 1
        x.counts[0].actions += 1


def example() -> tuple[State, Replays, Options]:
    """Arguments like those of `advance_ready`."""
    return bare_state(), bare_replays(), bare_options()


@late("ptaskmodel.mpi.ranks:example")
def advance_ready(s, x, o):
    """Run the actions of all ready ranks; return OK, or the status that needs Python.

    It takes the engine's state `s`, that of applications `x`, and the options `o`.
    """
    counts = x.counts[0]
    while counts.ready.first >= 0:
        r = counts.ready.first
        if x.ranks[r].state == READY:
            status = go(s, x, o, r)
            if status == TURNS:
                take_first(counts.ready, x.ranks.next)
                make_ready(x, r)
                continue
            if status != OK:
                return status
            if counts.lost >= 0:
                return LOST_RANK
        take_first(counts.ready, x.ranks.next)
    return OK


@jit
def end_application(s, x, a):
    """End the running computations and messages of application `a` (index).

    The states `s` and `x` are as for `advance_ready`.
    """
    app = x.apps[a]
    last = app.first + app.ranks
    for r in range(app.first, last):
        rank = x.ranks[r]
        if rank.slot >= 0:
            stop(s, rank.slot)
            rank.slot = -1
        if rank.wake >= 0:
            cancel_wake(s, rank.wake)
            rank.wake = -1
        if rank.state != ENDED:
            rank.state = ENDED
            x.counts[0].unfinished -= 1
        while rank.first_request >= 0:
            drop_request(x, r, rank.first_request)
    for i in range(x.counts[0].n_messages):
        m = x.messages[i]
        if m.source != -1 and app.first <= m.target < last:
            if m.state == FLYING:
                stop(s, np.int64(m.slot))
            if m.state == AWAITED or m.receiver == NOBODY:
                take_from_bucket(x, i)
            free_message(x, i)
    drop_ended(x)
    app.task = -1


@jit
def drop_ended(x):
    """Leave those that are not ready any more out of the list of ranks that can go on."""
    ready = x.counts[0].ready
    r = ready.first
    ready.first = -1
    ready.last = -1
    while r >= 0:
        after = x.ranks[r].next
        if x.ranks[r].state == READY:
            append(ready, x.ranks.next, r)
        r = after
