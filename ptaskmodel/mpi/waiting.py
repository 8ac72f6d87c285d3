# mypy: allow-untyped-defs, allow-incomplete-defs
"""Requests of a rank, and how it waits for them: it sleeps, or polls until they are complete.

A request is a non-blocking message or collective that a rank may wait for or test.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.engine.queue import has_room_for_wake, push_wake
from ptaskmodel.engine.state import GROW_WAKES
from ptaskmodel.kernels.decorators import jit
from ptaskmodel.mpi.state import (
    ANYBODY,
    COLLECTIVES,
    IN_ALL,
    IN_WAIT,
    IN_WAITALL,
    IS_OVER,
    NOT_YET,
    SLEEPING,
    TESTED,
    UNDER_WAY,
    WHICHEVER,
    WHICHEVER_OF_ALL,
)
from ptaskmodel.workload import actions as ti

ANY_TAG, NO_RANK = ti.ANY_TAG, ti.NO_RANK
A_WAIT, A_TEST, A_SENDRECV = ti.WAIT, ti.TEST, ti.SENDRECV


@jit
def new_request(x, r, source, target, tag):
    """A request of a rank, the newest; nothing has to be waited for yet."""
    counts = x.counts[0]
    i = counts.free_request
    if i >= 0:
        counts.free_request = x.requests[i].next
    else:
        i = counts.n_requests
        counts.n_requests += 1
    q = x.requests[i]
    q.over = UNDER_WAY
    q.detached = 0
    q.of_action = 0
    q.left = 1
    q.source = source
    q.target = target
    q.tag = tag
    q.owed = 0.0
    append_request(x, r, i)
    return i


@jit
def append_request(x, r, i):
    rank = x.ranks[r]
    q = x.requests[i]
    q.next = -1
    q.previous = rank.last_request
    if rank.last_request >= 0:
        x.requests[rank.last_request].next = i
    else:
        rank.first_request = i
    rank.last_request = i


@jit
def unlink_request(x, r, i):
    rank = x.ranks[r]
    q = x.requests[i]
    if q.previous >= 0:
        x.requests[q.previous].next = q.next
    else:
        rank.first_request = q.next
    if q.next >= 0:
        x.requests[q.next].previous = q.previous
    else:
        rank.last_request = q.previous


@jit
def drop_request(x, r, i):
    unlink_request(x, r, i)
    x.requests[i].next = x.counts[0].free_request
    x.counts[0].free_request = i


@jit
def request_of(x, r, source, target, tag):
    """The oldest request of a rank with these ends and tag, -1: none."""
    i = x.ranks[r].first_request
    while i >= 0:
        q = x.requests[i]
        if q.source == source and q.target == target and q.tag == tag:
            return i
        i = q.next
    return i


@jit
def sender(app, named):
    """The rank in a field of an action; ANYBODY if it names none."""
    return app.first + int(named) if named >= 0.0 else ANYBODY


@jit
def named_request(x, r, first):
    """The oldest request of a rank with the names in the fields of its action, -1: none."""
    tag = int(x.values[first + 2])
    if is_of_collective(tag):
        return collective_request(x, r, tag)
    app = x.apps[x.ranks[r].app]
    source, target = sender(app, x.values[first]), app.first + int(x.values[first + 1])
    return request_of(x, r, source, target, tag)


@jit
def is_of_collective(tag):
    """Whether a wait or a test with this tag is for a non-blocking collective."""
    return tag < 0 and tag != ANY_TAG


@jit
def collective_request(x, r, tag):
    """The oldest non-blocking collective of the kind that has this tag in traces; -1: none.

    The oldest of any kind where none is of that kind: tags differ from one SimGrid to another.
    """
    oldest = np.int64(-1)
    i = x.ranks[r].first_request
    while i >= 0:
        q = x.requests[i]
        if q.tag <= COLLECTIVES:
            if x.collective_tags[COLLECTIVES - q.tag] == tag:
                return i
            if oldest < 0:
                oldest = i
        i = q.next
    return oldest


@jit
def is_of_nobody(kind, values, first):
    """Whether a message, or a wait or a test for one, is one from or to no rank."""
    if kind in (A_WAIT, A_TEST):
        if is_of_collective(values[first + 2]):
            return False
        return values[first] == NO_RANK or values[first + 1] == NO_RANK
    return kind != A_SENDRECV and values[first] == NO_RANK


# What becomes of an operation, besides what is missing for it: the next may follow, the rank has to
# wait, or it goes on with it when others have acted, if ranks act by turns.
GOES_ON, WAITS, TURNS = -2, -3, -4


@jit
def sleep_now(s, x, r, seconds):
    """A rank sleeps from now on."""
    seconds = max(seconds, x.protocol[0].least_sleep)
    x.ranks[r].wake = push_wake(s, s.clock[0].now + seconds, ~r)
    x.ranks[r].state = SLEEPING
    return WAITS


@jit
def is_asked_for(x, rank, q):
    """Whether a rank, by turns, has yet to ask for a request that is over.

    Each takes a turn, as SMPI waits for one after the other, but for what ended its wait, for what
    a test has told, and for small messages that it sent.
    """
    if x.counts[0].by_turns == 0 or q.over == TESTED or q.detached == 1:
        return False
    rank.answers = 1 - rank.answers
    return rank.answers == 1


@jit
def next_cost(x, r):
    """What the next message that the action has received costs, in s; 0: nothing more, so far.

    The first is the one that ended the wait, the others follow in the order of posting.
    """
    rank = x.ranks[r]
    i = rank.awaited
    rank.awaited = -1
    if i < 0 or x.requests[i].owed == 0.0:
        i = rank.first_request
    while i >= 0:
        q = x.requests[i]
        after = q.next
        if q.of_action == 1 and q.over == IS_OVER:
            cost = q.owed
            drop_request(x, r, i)
            if cost > 0.0:
                return cost
        i = after
    return 0.0


@jit
def waits_for_action(s, x, r):
    """Wait for all messages of the present action, and sleep what receiving them costs."""
    rank = x.ranks[r]
    if x.protocol[0].costs == 1:
        if not has_room_for_wake(s):
            return GROW_WAKES
        cost = next_cost(x, r)
        if cost > 0.0:
            return sleep_now(s, x, r, cost)
    if rank.answers > 0:
        rank.answers -= 1
        return TURNS
    if rank.undone > 0:
        rank.state = IN_ALL
        rank.awaited = -1
        return WAITS
    rank.posted = NOT_YET
    rank.step += 1
    return GOES_ON


@jit
def asks_for_request(s, x, r, tests, i):
    """Wait for a request (-1: none), or test it."""
    rank = x.ranks[r]
    if i < 0:
        rank.step += 1
        return GOES_ON
    q = x.requests[i]
    owed = q.owed if q.over != UNDER_WAY else 0.0
    if owed > 0.0 and not has_room_for_wake(s):
        return GROW_WAKES
    if tests:
        if q.over == IS_OVER and owed > 0.0:  # only then is it told
            q.owed = 0.0
            return sleep_now(s, x, r, owed)
        rank.step = 3
        if q.over == TESTED:  # it has been found over before
            drop_request(x, r, i)
            return GOES_ON
        if q.over == IS_OVER:
            q.over = TESTED
            x.counts[0].test_misses = 1
        else:
            x.counts[0].test_misses += x.protocol[0].miss
        unlink_request(x, r, i)
        append_request(x, r, i)
        return GOES_ON
    if q.over == UNDER_WAY:
        rank.state = IN_WAIT
        rank.awaited = i
        return WAITS
    if is_asked_for(x, rank, q):
        return TURNS
    rank.awaited = -1
    drop_request(x, r, i)
    rank.step += 1
    return sleep_now(s, x, r, owed) if owed > 0.0 else GOES_ON


@jit
def asks_for_any(s, x, r, tag):
    """Wait for whichever of the requests of the present collective is over first."""
    i = x.ranks[r].first_request
    while i >= 0 and (x.requests[i].tag != tag or x.requests[i].over == UNDER_WAY):
        i = x.requests[i].next
    if i >= 0:
        return asks_for_request(s, x, r, False, i)
    x.ranks[r].state = IN_WAIT
    x.ranks[r].awaited = WHICHEVER
    return WAITS


@jit
def asks_for_first(s, x, r):
    """Wait for whichever request of the rank is over first; go on if it has none."""
    i = x.ranks[r].first_request
    oldest = i
    while i >= 0 and x.requests[i].over == UNDER_WAY:
        i = x.requests[i].next
    if i < 0 and oldest >= 0:
        x.ranks[r].state = IN_WAIT
        x.ranks[r].awaited = WHICHEVER_OF_ALL
        return WAITS
    return asks_for_request(s, x, r, False, i)


@jit
def waits_for_requests(s, x, r):
    """Wait for all requests of the rank, and sleep what receiving each costs."""
    rank = x.ranks[r]
    i = rank.first_request
    while i >= 0:
        q = x.requests[i]
        after = q.next
        if q.over != UNDER_WAY:
            cost = q.owed
            if cost > 0.0 and not has_room_for_wake(s):
                return GROW_WAKES
            if is_asked_for(x, rank, q):
                return TURNS
            drop_request(x, r, i)
            if cost > 0.0:
                return sleep_now(s, x, r, cost)
        i = after
    if rank.open > 0:
        rank.state = IN_WAITALL
        return WAITS
    rank.step += 1
    return GOES_ON
