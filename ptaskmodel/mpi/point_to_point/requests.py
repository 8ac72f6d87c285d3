# mypy: allow-untyped-defs, allow-incomplete-defs
"""Requests of a rank: non-blocking messages and collectives that it may wait for or test."""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.mpi.state import ANYBODY, COLLECTIVES, UNDER_WAY
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
