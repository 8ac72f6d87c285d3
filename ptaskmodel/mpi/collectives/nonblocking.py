# mypy: allow-untyped-defs, allow-incomplete-defs
"""Non-blocking collectives: a rank posts all its messages at once, and waits for them later.

The messages are one request, which is complete with the last of them. `dispatch.collective` calls
this module.
Source: the behaviour of applications under SimGrid's SMPI, with one algorithm each: messages
between the root and all others, or between all pairs. (SimGrid's own replay does not support these
actions.)
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.mpi.collectives.alltoall import all_to_all_at_once, all_to_all_each
from ptaskmodel.mpi.collectives.gather_scatter import fan_out_each
from ptaskmodel.mpi.collectives.steps import (
    CLOSE_REQUEST,
    DO_RECEIVE,
    DO_SEND,
    JOIN_RECEIVE,
    JOIN_SEND,
    NO_MORE,
    OPEN_REQUEST,
    POST_RECEIVE,
    POST_SEND,
    all_to_all_pairs,
    computed,
    fan_in,
    fan_out,
    rooted,
    sized,
    sized_each,
)
from ptaskmodel.workload.actions import (
    IALLGATHER,
    IALLGATHERV,
    IALLREDUCE,
    IALLTOALL,
    IALLTOALLV,
    IBARRIER,
    IBCAST,
    IEXSCAN,
    IGATHER,
    IGATHERV,
    IREDUCE,
    IREDUCESCATTER,
    ISCAN,
    ISCATTER,
)


@jit
def non_blocking(kind, phase, k, r, n, values, at, last, types, own):
    """Step k of a phase of a non-blocking collective; arguments as of `dispatch.collective`."""
    if phase == 1:
        return (CLOSE_REQUEST if k == 0 else NO_MORE), 0, 0.0
    if phase > 1:
        flops = 0.0
        if kind == IREDUCESCATTER:
            flops = values[at + n]
        elif kind in (IREDUCE, IALLREDUCE, ISCAN, IEXSCAN):
            flops = values[at + 1]
        return computed(phase - 2, k, flops)
    if k == 0:
        return OPEN_REQUEST, 0, 0.0
    what, peer, size = message(kind, k - 1, r, n, values, at, last, types, own)
    if what in (POST_SEND, DO_SEND):
        return JOIN_SEND, peer, size
    if what in (POST_RECEIVE, DO_RECEIVE):
        return JOIN_RECEIVE, peer, size
    return NO_MORE, 0, 0.0


@jit
def message(kind, k, r, n, values, at, last, types, own):
    """The k-th message of a rank, as steps of blocking collectives tell it."""
    if kind == IBARRIER:
        return to_and_from_root(r, n, k)
    size = np.floor(values[at])
    if kind == IBCAST:
        unit = sized(values, at, 2, last, types, own)
        return fan_out(r, n, rooted(values, at, 1, last), size * unit, k)
    if kind == IREDUCE:
        unit = sized(values, at, 3, last, types, own)
        return fan_in(r, n, rooted(values, at, 2, last), size * unit, k)
    if kind in (IALLREDUCE, IALLGATHER):
        return all_to_all_pairs(r, n, size * sized(values, at, 2, last, types, own), k)
    if kind in (ISCAN, IEXSCAN):
        return to_higher(r, n, size * sized(values, at, 2, last, types, own), k)
    if kind == IREDUCESCATTER:
        return to_each(values, at, r, n, sized(values, at, n + 1, last, types, own), k)
    if kind == IALLTOALL:
        return all_to_all_at_once(r, n, size * sized(values, at, 2, last, types, own), k)
    if kind == IALLTOALLV:
        unit = sized(values, at, 2 * n + 2, last, types, own)
        return all_to_all_each(values, at + 1, r, n, unit, k)
    if kind == IGATHER:
        size *= sized(values, at, 3, last, types, own)
        return fan_in(r, n, rooted(values, at, 2, last), size, k)
    if kind == IALLGATHERV:
        return all_to_all_pairs(r, n, size * sized_each(values, at, last, n, types, own), k)
    if kind == IGATHERV:
        size *= sized(values, at, n + 2, last, types, own)
        return fan_in(r, n, rooted(values, at, n + 1, last), size, k)
    if kind == ISCATTER:
        size *= sized(values, at, 3, last, types, own)
        return fan_out(r, n, rooted(values, at, 2, last), size, k)
    unit = sized(values, at, n + 2, last, types, own)
    return fan_out_each(values, at, r, n, rooted(values, at, n + 1, last), unit, k)


@jit
def to_and_from_root(r, n, k):
    """Nothing from all to rank 0, and back, at once."""
    if r > 0:
        return (POST_SEND if k == 0 else POST_RECEIVE if k == 1 else NO_MORE), 0, 0.0
    if k < n - 1:
        return POST_RECEIVE, k + 1, 0.0
    return (POST_SEND, k - n + 2, 0.0) if k < 2 * (n - 1) else (NO_MORE, 0, 0.0)


@jit
def to_higher(r, n, size, k):
    """From all lower ranks, to all higher ones."""
    if k < r:
        return POST_RECEIVE, k, size
    return (POST_SEND, k + 1, size) if k < n - 1 else (NO_MORE, 0, 0.0)


@jit
def to_each(values, at, r, n, unit, k):
    """To and from each other rank in order: to each what its own field says."""
    what, peer, size = all_to_all_pairs(r, n, 0.0, k)
    if what == POST_SEND:
        size = np.floor(values[at + peer]) * unit
    return what, peer, size
