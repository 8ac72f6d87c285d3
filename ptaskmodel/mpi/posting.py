# mypy: allow-untyped-defs, allow-incomplete-defs
"""Post messages: first their overheads, then the calls that SMPI makes, in turn."""

from __future__ import annotations

from ptaskmodel.engine.queue import has_room_for_wake
from ptaskmodel.engine.state import GROW_WAKES, OK
from ptaskmodel.kernels.decorators import jit
from ptaskmodel.mpi.collectives.steps import (
    DO_RECEIVE,
    DO_SEND,
    JOIN_RECEIVE,
    JOIN_SEND,
    POST_SEND,
    REQUEST_RECEIVE,
    REQUEST_SEND,
)
from ptaskmodel.mpi.messages import (
    begins,
    ends_for,
    found,
    make_ready,
    overhead,
    post,
    room_to_post,
    route_between,
)
from ptaskmodel.mpi.state import (
    ACTION,
    AWAITED,
    IN_LOCK,
    IS_OVER,
    LOCKED,
    LOOKED,
    MISSED,
    NOT_YET,
    PAID,
    POSTED,
    PROBED,
    SENT,
    UNLOCKING,
)
from ptaskmodel.mpi.waiting import GOES_ON, TURNS, WAITS, new_request, sleep_now


@jit
def locks(x, r, owner):
    """Take the mailboxes of a rank, or stand in line for them."""
    box = x.ranks[owner]
    rank = x.ranks[r]
    rank.posted = LOCKED
    if box.taken == 0:
        box.taken = 1
        return TURNS
    rank.behind = -1
    rank.state = IN_LOCK
    last = box.line
    if last < 0:
        box.line = r
        return WAITS
    while x.ranks[last].behind >= 0:
        last = x.ranks[last].behind
    x.ranks[last].behind = r
    return WAITS


@jit
def unlocks(x, owner):
    """Give the mailboxes of a rank to the next in line."""
    box = x.ranks[owner]
    first = box.line
    if first < 0:
        box.taken = 0
        return
    box.line = x.ranks[first].behind
    make_ready(x, first)


@jit
def calls_before(x, r, source, target, tag, size, sends):
    """Make the next call of those before a message is posted, if messages may be sent early.

    TURNS or WAITS; OK if there is none left. SMPI keeps small and large messages in two mailboxes,
    locks them, and looks for the other side in that in which it need not be.
    """
    rank = x.ranks[r]
    small = size < x.protocol[0].early
    if rank.posted in (NOT_YET, PAID):
        return locks(x, r, target)
    if rank.posted == LOCKED:
        rank.posted = PROBED
        if small or not sends:
            return TURNS
    if rank.posted == PROBED:
        rank.posted = LOOKED
        asked = small and not sends and size >= 0.0
        if asked and not is_small(x, found(x, source, target, tag, SENT)):
            return TURNS
    return OK


@jit
def is_small(x, i):
    """Whether there is a message that was sent early."""
    return i >= 0 and x.messages[i].bytes < x.protocol[0].early


@jit
def looks(x, r, source, tag):
    """Ask if a message is there, in the mailbox of small ones first; act on it a turn later."""
    rank = x.ranks[r]
    counts = x.counts[0]
    early = x.protocol[0].early > 0.0
    if rank.posted == LOOKED:
        counts.poll_misses = 1
        rank.step += 1
    elif rank.posted == MISSED:
        counts.poll_misses += x.protocol[0].miss
        rank.step = 0
    else:
        i = found(x, source, r, tag, SENT)
        is_there = i >= 0 and (not early or is_small(x, i) == (rank.posted == NOT_YET))
        missed = PROBED if early and rank.posted == NOT_YET else MISSED
        rank.posted = LOOKED if is_there else missed
        return TURNS
    rank.posted = NOT_YET
    return GOES_ON


@jit
def posted(rank, waited_for):
    """A message has been posted: it is waited for at once, or the step is over."""
    rank.posted = POSTED if waited_for else NOT_YET
    rank.step += 0 if waited_for else 1
    return TURNS


@jit
def posts(s, x, o, r, what, peer, size, tag):
    """Send or receive, for the action (to wait for at once, or later) or for a request.

    A call to SimGrid's kernel ends a turn: to post a message, to ask for one, to look for one.
    """
    rank = x.ranks[r]
    sends = what in (POST_SEND, DO_SEND, REQUEST_SEND, JOIN_SEND)
    if sends and rank.posted == NOT_YET:
        cost = 0.0
        if what != DO_SEND:
            cost = overhead(x, 1, size)
        elif size < x.protocol[0].detached:  # who waits for its message pays with that
            cost = overhead(x, 0, size)
        if cost > 0.0:
            if not has_room_for_wake(s):
                return GROW_WAKES
            rank.posted = PAID
            return sleep_now(s, x, r, cost)
    source, target = (r, peer) if sends else (peer, r)
    locked = x.counts[0].by_turns == 1 and x.protocol[0].early > 0.0
    waited_for = what == DO_RECEIVE or (what == DO_SEND and size >= x.protocol[0].detached)
    if rank.posted == UNLOCKING:
        unlocks(x, target)
        return posted(rank, waited_for)
    if locked and rank.posted != LOOKED:
        status = calls_before(x, r, source, target, tag, size, sends)
        if status != OK:
            return status
    status = room_to_post(x)
    if status != OK:
        return status
    i = found(x, source, target, tag, AWAITED if sends else SENT)
    named = source
    if i >= 0 and not sends:
        source = x.messages[i].source
    route = -1
    if begins(x, i, sends, size):
        route = route_between(s, x, x.ranks[source].host, x.ranks[target].host)
        if route < 0:
            return -1 - route
    waiter = ACTION
    by_request = what in (REQUEST_SEND, REQUEST_RECEIVE)
    joins = what in (JOIN_SEND, JOIN_RECEIVE)
    if by_request:
        waiter = new_request(x, r, named, target, tag)
    elif joins:
        waiter = rank.last_request
        x.requests[waiter].left += 1
    elif not sends and x.protocol[0].costs == 1:
        waiter = new_request(x, r, ACTION, target, tag)
        x.requests[waiter].of_action = 1
    waiting = post(s, x, o, i, source, target, tag, size, sends, waiter, route)
    if (by_request or joins) and sends and not waiting:
        ends_for(x, waiter)
    if by_request:
        if waiting:
            rank.open += 1
        elif sends:
            x.requests[waiter].detached = 1
    elif not joins:
        if waiting:
            rank.undone += 1
        elif not sends and x.counts[0].by_turns == 1:
            rank.answers += 1
    if locked:
        rank.posted = UNLOCKING
        return TURNS
    return posted(rank, waited_for)


@jit
def opens_request(x, r, tag):
    """Make the request of a non-blocking collective; its messages join it."""
    status = room_to_post(x)
    if status != OK:
        return status
    new_request(x, r, r, r, tag)
    x.ranks[r].open += 1
    x.ranks[r].step += 1
    return GOES_ON


@jit
def closes_request(x, r):
    """All messages of the newest request are posted."""
    rank = x.ranks[r]
    ends_for(x, rank.last_request)
    if x.requests[rank.last_request].over == IS_OVER:
        rank.open -= 1
    rank.step += 1
    return GOES_ON
