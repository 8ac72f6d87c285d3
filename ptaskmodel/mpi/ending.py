# mypy: allow-untyped-defs, allow-incomplete-defs
"""End an application whose ranks have finished or are stopped, and free its memory."""

from __future__ import annotations

import numpy as np

from ptaskmodel.engine.activity import stop
from ptaskmodel.engine.queue import cancel_wake
from ptaskmodel.kernels.decorators import jit
from ptaskmodel.mpi.point_to_point.messages import free_message, take_from_bucket
from ptaskmodel.mpi.point_to_point.requests import drop_request
from ptaskmodel.mpi.state import AWAITED, ENDED, FLYING, NOBODY, READY


@jit
def end_application(s, x, a):
    """End what is left of an application."""
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
    counts = x.counts[0]
    r = counts.first_ready
    counts.first_ready = -1
    counts.last_ready = -1
    while r >= 0:
        after = x.ranks[r].next
        x.ranks[r].next = -1
        if x.ranks[r].state == READY:
            if counts.last_ready >= 0:
                x.ranks[counts.last_ready].next = r
            else:
                counts.first_ready = r
            counts.last_ready = r
        r = after
