# mypy: allow-untyped-defs, allow-incomplete-defs
"""Match senders with receivers, in the order in which messages were posted."""

from __future__ import annotations

import numpy as np

from ptaskmodel.engine.activity import missing, start
from ptaskmodel.engine.queue import append
from ptaskmodel.engine.state import LOST, OK, STARTED, UNROUTED
from ptaskmodel.engine.stream import emit
from ptaskmodel.kernels.decorators import entry, jit
from ptaskmodel.mpi.state import (
    ACTION,
    ANYBODY,
    AWAITED,
    COLLECTIVES,
    FLYING,
    GROW_MESSAGES,
    GROW_REQUESTS,
    IN_ALL,
    IN_WAIT,
    IN_WAITALL,
    IS_OVER,
    NEEDS_PATTERN,
    NEEDS_ROUTE,
    NOBODY,
    OVER,
    READY,
    SENT,
    UNDER_WAY,
    WHICHEVER,
    WHICHEVER_OF_ALL,
)
from ptaskmodel.workload import actions as ti

INFINITY = float("inf")
ANY_TAG, NO_RANK = ti.ANY_TAG, ti.NO_RANK
A_WAIT, A_TEST, A_SENDRECV = ti.WAIT, ti.TEST, ti.SENDRECV


@jit
def make_ready(x, r):
    """Put a rank at the end of the list of those to go on."""
    x.ranks[r].state = READY
    append(x.counts[0].ready, x.ranks.next, r)


@jit
def place_of(x, key):
    """Where a pair of hosts stands in the table of routes, or would stand.

    Eight targets in a row of one source stand side by side: they are mostly wanted one by one.
    """
    mask = x.routes.size - 1
    i = (((key >> 3) * 0x9E3779B1 >> 15 << 3) | (key & 7)) & mask
    while x.routes[i].key != key and x.routes[i].key != -1:
        i = (i + 9) & mask
    return i


@jit
def route_between(s, x, source, target):
    """Place in the table of routes of a pair of hosts ready to be used, else -1 - what is missing.

    target -1: for computations on the source.
    """
    counts = x.counts[0]
    i = place_of(x, source * s.resources.size + target + 1)
    status = NEEDS_PATTERN
    if x.routes[i].key != -1 and x.routes[i].pattern >= 0:
        status = missing(s, x.routes[i].pattern)
    if status == UNROUTED:
        status = NEEDS_ROUTE
    if status in (NEEDS_PATTERN, NEEDS_ROUTE):
        counts.wanted_source = source
        counts.wanted_target = target
    return i if status == OK else -1 - status


@jit
def bucket_of(x, source, target, tag):
    """The bucket of messages from a rank to another.

    All messages to a rank that takes some from anybody are in one, in the order of posting. Those
    from a rank to ranks in a row lie side by side: they are mostly wanted one by one. Where the
    rows of sources begin is spread by the golden ratio.
    """
    if x.counts[0].take_any == 1 and x.ranks[target].takes_any == 1:
        source = 0
        tag = 0
    row = (source * 0x9E3779B1 & 0xFFFFFFFF) * x.buckets.size >> 32
    return (row + target + (tag & 0xFFFFFF) * 9) & (x.buckets.size - 1)


@jit
def fits(m, source, target, tag):
    """Whether a message has these ranks and this tag, or one of both sides takes any."""
    if m.target != target:
        return False
    if m.source != source and m.source != ANYBODY and source != ANYBODY:
        return False
    if m.tag == tag:
        return True
    return (m.tag == ANY_TAG and tag >= 0) or (tag == ANY_TAG and m.tag >= 0)


@jit
def found(x, source, target, tag, wanted):
    """The oldest message of those ranks and that tag that is posted by the other side, else -1.

    wanted: AWAITED by its receiver, or SENT (perhaps under way, or over already).
    """
    i = np.int64(x.buckets[bucket_of(x, source, target, tag)].first)
    while i >= 0:
        m = x.messages[i]
        if fits(m, source, target, tag) and (m.state == AWAITED) == (wanted == AWAITED):
            return i
        i = np.int64(m.next)
    return i


@jit
def put_in_bucket(x, i):
    m = x.messages[i]
    append(x.buckets[bucket_of(x, m.source, m.target, m.tag)], x.messages.next, i)


@jit
def take_from_bucket(x, i):
    m = x.messages[i]
    bucket = x.buckets[bucket_of(x, m.source, m.target, m.tag)]
    before = np.int64(-1)
    k = np.int64(bucket.first)
    while k != i:
        before = k
        k = np.int64(x.messages[k].next)
    if before < 0:
        bucket.first = m.next
    else:
        x.messages[before].next = m.next
    if bucket.last == i:
        bucket.last = before


@entry
def spread(x, buckets):
    """Put the messages of other buckets into those of ``x``, which are empty."""
    for k in range(buckets.size):
        i = np.int64(buckets[k].first)
        while i >= 0:
            after = np.int64(x.messages[i].next)
            put_in_bucket(x, i)
            i = after


@jit
def new_message(x, source, target, tag, state):
    counts = x.counts[0]
    i = counts.free_message
    if i >= 0:
        counts.free_message = x.messages[i].next
    else:
        i = counts.n_messages
        counts.n_messages += 1
    counts.n_posted += 1
    m = x.messages[i]
    m.state = state
    m.source = source
    m.target = target
    m.tag = tag
    m.bytes = 0.0
    m.slot = -1
    m.sender = NOBODY
    m.receiver = NOBODY
    m.detached = 0
    return i


@jit
def free_message(x, i):
    counts = x.counts[0]
    x.messages[i].next = counts.free_message
    x.messages[i].state = OVER
    x.messages[i].source = -1
    counts.free_message = i
    counts.n_posted -= 1
    if counts.n_posted == 0:  # in a row again: those given back lie anywhere after a while
        counts.free_message = -1
        counts.n_messages = 0


@jit
def room_to_post(x):
    """Whether there is room for a message and a request more; OK or what is missing."""
    counts = x.counts[0]
    if counts.free_message < 0 and counts.n_messages == x.messages.size:
        return GROW_MESSAGES
    if counts.free_request < 0 and counts.n_requests == x.requests.size:
        return GROW_REQUESTS
    return OK


@jit
def begins(x, i, sends, size):
    """Whether a message begins to travel once it is posted by one side; i: the other's, or -1."""
    if i >= 0:
        return x.messages[i].state in (SENT, AWAITED)
    return sends and size < x.protocol[0].early


@jit
def factor(steps, size):
    """The figure that holds for a size."""
    value = 1.0
    for k in range(steps.size):
        if size > steps[k].above:
            value = steps[k].value
    return value


@jit
def fly(s, x, o, i, poster, place):
    """The transfer of a message begins, as a rank has posted it; there is room.

    place: of its route.
    """
    m = x.messages[i]
    counts = x.counts[0]
    route = x.routes[place]
    size = m.bytes + x.protocol[0].envelope
    m.state = FLYING
    p = s.patterns[route.pattern]
    latency = p.latency * factor(x.latency_factors, size)
    amount = size * route.unit / factor(x.bandwidth_factors, size)
    delay = latency if latency > 0.0 else np.nan
    if counts.tells == 1:
        departure = x.departures[i]
        departure.began = s.clock[0].now
        departure.latency = latency
        departure.after = x.ranks[poster].told
        departure.number = counts.begun
    counts.begun += 1
    if counts.names == 1:
        emit(s, STARTED, ~(2 * i + 1), float(m.source * x.ranks.size + m.target))
    slot = start(s, route.pattern, amount, 1.0, INFINITY, delay, ~(2 * i + 1), o)
    m.slot = slot
    if s.activities[slot].state == LOST:
        counts.lost = m.source


@jit
def post(s, x, o, i, source, target, tag, size, sends, waiter, route):
    """A rank sends, or receives; ``waiter``: what of it is to learn of the end (see `MESSAGE`).

    i: the message that the other side has posted, or -1. route: the place of its route if it
    begins to travel now. Returns whether the end is still to come: senders do not wait for small
    messages. There is room.
    """
    if i >= 0:
        take_from_bucket(x, i)
    else:
        i = new_message(x, source, target, tag, SENT if sends else AWAITED)
        put_in_bucket(x, i)
    m = x.messages[i]
    waits = True
    if sends:
        m.source = source
        m.tag = tag
        small = size < x.protocol[0].detached
        m.bytes = size
        m.detached = 1 if small else 0
        m.sender = NOBODY if small else waiter
        waits = not small
    else:
        m.receiver = waiter
    if m.state == OVER:
        received(x, i)
        free_message(x, i)
        return False
    if route >= 0:
        fly(s, x, o, i, source if sends else target, route)
    return waits


@jit
def overhead(x, side, size):
    """Seconds that sending (side 0: send, 1: isend) or receiving (2) so many bytes costs.

    The first of the steps holds for all sizes below it too.
    """
    steps = x.overheads[side]
    cost = steps[0].a + steps[0].b * size
    for k in range(1, steps.size):
        if size > steps[k].above:
            cost = steps[k].a + steps[k].b * size
    return cost


@jit
def received(x, i):
    """What receiving a message costs its receiver, kept until it has waited for it."""
    m = x.messages[i]
    if m.receiver >= 0:
        if m.detached == 1:
            x.requests[m.receiver].owed += overhead(x, 2, m.bytes)
        ends_for(x, m.receiver)


@jit
def ends_for(x, i):
    """A message of a request is over; with its last one the request is."""
    q = x.requests[i]
    q.left -= 1
    if q.left == 0:
        q.over = IS_OVER


@jit
def arrived(x, i, now):
    """End the transfer of a message: ranks that wait for it continue."""
    m = x.messages[i]
    counts = x.counts[0]
    counts.messages += 1
    if counts.tells == 1:
        flight = x.flights[counts.n_flights]
        departure = x.departures[i]
        flight.number = departure.number
        flight.source = m.source
        flight.target = m.target
        flight.bytes = m.bytes
        flight.after = departure.after
        flight.begin = departure.began
        flight.latency = departure.latency
        flight.end = now
        counts.n_flights += 1
    if m.sender >= 0:
        ends_for(x, m.sender)
    if m.receiver == NOBODY:  # sent early and not received yet
        wake(x, m.source, m.sender)
        m.state = OVER
        m.sender = NOBODY
        return
    received(x, i)
    if x.ranks[m.source].waits < x.ranks[m.target].waits:  # who waits longest goes on first
        wake(x, m.source, m.sender)
        wake(x, m.target, m.receiver)
    else:
        wake(x, m.target, m.receiver)
        wake(x, m.source, m.sender)
    free_message(x, i)


@jit
def wake(x, r, waiter):
    """A message that a rank, or a request of it, waited for is over."""
    rank = x.ranks[r]
    if waiter == NOBODY:
        return
    rank.cause = x.counts[0].messages - 1
    by_turns = x.counts[0].by_turns
    costs = waiter >= 0 and x.requests[waiter].owed > 0.0
    if waiter == ACTION or x.requests[waiter].of_action == 1:
        rank.undone -= 1
        if rank.state != IN_ALL:
            rank.answers += by_turns
        elif by_turns == 1 or rank.undone == 0 or costs:
            rank.awaited = waiter
            make_ready(x, r)
        return
    if x.requests[waiter].over == UNDER_WAY:
        return
    rank.open -= 1
    is_awaited = rank.awaited in (waiter, WHICHEVER_OF_ALL)
    if rank.awaited == WHICHEVER:
        is_awaited = x.requests[waiter].tag == COLLECTIVES - x.actions[rank.action]
    if (rank.state == IN_WAIT and is_awaited) or (
        rank.state == IN_WAITALL and (by_turns == 1 or rank.open == 0 or costs)
    ):
        rank.answers = by_turns
        make_ready(x, r)
