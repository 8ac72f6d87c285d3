# mypy: allow-untyped-defs, allow-incomplete-defs
"""Steps of any collective: read the fields of an action, call the kernel of its collective.

`packed_step` is a late kernel that all callers share. So the algorithms, which are most of the code
of a replay, are compiled once.

A non-blocking collective is one request, which is complete with the last of its messages. Source:
the behaviour of applications under SimGrid's SMPI, with one algorithm each: messages between the
root and all others, or between all pairs. (SimGrid's own replay does not support these actions.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ptaskmodel.kernels.decorators import jit, late
from ptaskmodel.mpi.collectives.allgather import (
    ALLGATHER_PHASES,
    allgather,
    allgatherv,
    of_all_gather,
    of_all_gather_of_each,
)
from ptaskmodel.mpi.collectives.allreduce import (
    ALLREDUCE_PHASES,
    allreduce,
)
from ptaskmodel.mpi.collectives.alltoall import (
    all_to_all_at_once,
    all_to_all_each,
    alltoall,
    alltoallv,
    of_all_to_all,
)
from ptaskmodel.mpi.collectives.barrier import barrier
from ptaskmodel.mpi.collectives.bcast import (
    BCAST_PHASES,
    broadcast_whole,
)
from ptaskmodel.mpi.collectives.gather_scatter import (
    fan_out_each,
    gather,
    scatter,
)
from ptaskmodel.mpi.collectives.names import CHOICES
from ptaskmodel.mpi.collectives.reduce import reduce
from ptaskmodel.mpi.collectives.reduce_scatter import (
    of_reduce_scatter,
    reduce_scatter,
)
from ptaskmodel.mpi.collectives.selection import TABLES, Chosen, picked
from ptaskmodel.mpi.collectives.steps import (
    CLOSE_REQUEST,
    DO_RECEIVE,
    DO_SEND,
    FINISHED,
    JOIN_RECEIVE,
    JOIN_SEND,
    NO_MORE,
    OPEN_REQUEST,
    POST_RECEIVE,
    POST_SEND,
    UNWANTED,
    all_to_all_pairs,
    computed,
    counted,
    fan_in,
    fan_out,
    has_displacements_alone,
    prefix,
    rooted,
    sized,
    sized_each,
)
from ptaskmodel.workload.actions import (
    ALLGATHER,
    ALLGATHERV,
    ALLREDUCE,
    ALLTOALL,
    ALLTOALLV,
    BARRIER,
    BCAST,
    EXSCAN,
    GATHER,
    GATHERV,
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
    REDUCE,
    REDUCESCATTER,
    SCAN,
    SCATTER,
)


@jit
def non_blocking(kind, phase, k, r, n, values, at, last, types, own):
    """Step k of a phase of a non-blocking collective.

    kind, last, own: as of `collective`.
    """
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
    """The k-th message of a rank in a non-blocking collective, as a step of a blocking one.

    kind, last, own: as of `collective`.
    """
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


@jit
def chosen(values, at, last, n, kind, types, own, c):
    """The algorithm of an action, where it depends on ranks and sizes.

    kind, last, own, c: as of `collective`.
    """
    algorithm = c.of_kind[kind]
    if 0 <= algorithm < TABLES:
        return algorithm
    size = deciding(values, at, last, n, kind, types, own)
    if kind == ALLTOALL:
        return of_all_to_all(c, n, size)
    if kind == ALLGATHER:
        return of_all_gather(c, n, size)
    algorithm = picked(c.choices, algorithm, n, size)
    if algorithm >= 0:
        return algorithm
    if kind == REDUCESCATTER:
        return of_reduce_scatter(values, at, n, algorithm)
    unit = sized_each(values, at, last, n, types, own)
    return of_all_gather_of_each(algorithm, n, counted(values, at + 1, 0, n), unit)


@jit
def deciding(values, at, last, n, kind, types, own):
    """The bytes by which an algorithm is chosen (see `selection`).

    kind, last, own: as of `collective`.
    """
    if kind in (BARRIER, ALLTOALLV):
        return 0.0
    if kind == REDUCESCATTER:
        return counted(values, at, 0, n) * sized(values, at, n + 1, last, types, own)
    if kind == ALLGATHERV:
        unit = sized_each(values, at, last, n, types, own)
        return np.floor(counted(values, at + 1, 0, n) * unit / n)
    field = 2
    if kind in (REDUCE, GATHER, SCATTER):
        field = 3
    return np.floor(values[at]) * sized(values, at, field, last, types, own)


@jit
def collective(kind, phase, k, r, n, values, at, last, types, own, algorithm, c):
    """Step k of a phase of a collective action, as rank r of n; FINISHED after its last phase.

    kind: of the action (`workload.actions`). values, at, last: its fields are ``values[at:last]``.
    own: bytes of an element without datatype, by the trace. algorithm: that of this action; c:
    `Chosen`, for actions made of others.
    """
    if kind >= IBARRIER:
        return non_blocking(kind, phase, k, r, n, values, at, last, types, own)
    if kind == BARRIER:
        return barrier(r, n, k, algorithm) if phase == 0 else (FINISHED, 0, 0.0)
    size = np.floor(values[at])
    if kind == BCAST:
        if phase >= BCAST_PHASES:
            return FINISHED, 0, 0.0
        unit = sized(values, at, 2, last, types, own)
        return broadcast_whole(phase, r, n, rooted(values, at, 1, last), size * unit, unit, k, c)
    if kind == REDUCE:
        if phase > 0:
            return computed(phase - 1, k, values[at + 1])
        unit = sized(values, at, 3, last, types, own)
        return reduce(r, n, rooted(values, at, 2, last), size, unit, k, algorithm)
    if kind == ALLREDUCE:
        if phase >= ALLREDUCE_PHASES:
            return computed(phase - ALLREDUCE_PHASES, k, values[at + 1])
        unit = sized(values, at, 2, last, types, own)
        return allreduce(phase, r, n, size, unit, k, algorithm, c)
    if kind in (SCAN, EXSCAN):
        if phase == 0:
            return prefix(r, n, size * sized(values, at, 2, last, types, own), k)
        return computed(phase - 1, k, values[at + 1])
    if kind == REDUCESCATTER:
        if phase > 1:
            return computed(phase - 2, k, values[at + n])
        unit = sized(values, at, n + 1, last, types, own)
        return reduce_scatter(phase, r, n, values, at, size, unit, k, algorithm)
    if kind == ALLGATHER:
        if phase >= ALLGATHER_PHASES:
            return FINISHED, 0, 0.0
        unit = sized(values, at, 2, last, types, own)
        return allgather(phase, r, n, size * unit, unit, k, algorithm, c)
    if kind == ALLGATHERV:
        if phase >= ALLGATHER_PHASES:
            return FINISHED, 0, 0.0
        typed = not has_displacements_alone(n, last - at)
        unit = sized(values, at, n + 1, last if typed else at, types, own)
        shifts = at + n + (3 if typed else 1)
        shifts = shifts if shifts + n <= last else -1
        return allgatherv(phase, values, at + 1, r, n, unit, shifts, k, algorithm, c)
    if phase > 0:
        return FINISHED, 0, 0.0
    return of_one_phase(kind, k, r, n, values, at, last, types, own, algorithm, c)


@jit
def of_one_phase(kind, k, r, n, values, at, last, types, own, algorithm, c):
    """As `collective`, for kinds that have one phase; kind, last, own: as there."""
    size = np.floor(values[at])
    if kind == ALLTOALL:
        return alltoall(r, n, size * sized(values, at, 2, last, types, own), k, algorithm, c)
    if kind == ALLTOALLV:
        unit = sized(values, at, 2 * n + 2, last, types, own)
        return alltoallv(values, at + 1, r, n, unit, k, algorithm, c)
    if kind == GATHER:
        size *= sized(values, at, 3, last, types, own)
        return gather(r, n, rooted(values, at, 2, last), size, k, algorithm)
    if kind == GATHERV:
        size *= sized(values, at, n + 2, last, types, own)
        return fan_in(r, n, rooted(values, at, n + 1, last), size, k)
    if kind == SCATTER:
        root = rooted(values, at, 2, last)
        size *= sized(values, at, 3, last, types, own)
        return scatter(r, n, root, size, k, algorithm)
    unit = sized(values, at, n + 2, last, types, own)
    return fan_out_each(values, at, r, n, rooted(values, at, n + 1, last), unit, k)


# What a step does and the rank that it concerns are one number, for no kernel asked by its address
# returns two.
RANKS = 2**32


def example() -> tuple[Any, ...]:
    """Arguments like those of `packed_step`."""
    one = np.zeros(1)
    return 0, 0, 0, 0, 0, one, 0, 0, one, 0.0, 0, np.zeros(1, dtype=np.int64), CHOICES, one


@late("ptaskmodel.mpi.collectives.dispatch:example")
def packed_step(
    kind, phase, k, r, n, values, at, last, types, own, algorithm, of_kind, choices, size
):  # fmt: skip
    """What and whom a step concerns, in one number; its bytes are written to ``size``.

    kind, last, own: as of `collective`. of_kind, choices: the fields of `Chosen`.
    """
    c = Chosen(of_kind, choices)
    what, peer, size[0] = collective(
        kind, phase, k, r, n, values, at, last, types, own, algorithm, c
    )
    return what * RANKS + peer


@jit
def step_of_collective(kind, phase, k, r, n, values, at, last, types, own, algorithm, c, size):
    """As `collective`, or UNWANTED; kind, last, own: as there. size: scratch for a number."""
    packed = packed_step(
        kind, phase, k, r, n, values, at, last, types, own, algorithm, c.of_kind, c.choices, size
    )
    if packed < 0:  # the kernel is not there
        return UNWANTED, 0, 0.0
    return packed // RANKS, packed % RANKS, size[0]
