# mypy: allow-untyped-defs, allow-incomplete-defs
"""How ranks wait: they sleep, or poll messages and requests until these are complete."""

from __future__ import annotations

from ptaskmodel.engine.queue import has_room_for_wake, push_wake
from ptaskmodel.engine.state import GROW_WAKES
from ptaskmodel.kernels.decorators import jit
from ptaskmodel.mpi.point_to_point.requests import append_request, drop_request, unlink_request
from ptaskmodel.mpi.state import (
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
