# mypy: allow-untyped-defs, allow-incomplete-defs
"""Steps of any collective: read the fields of an action, call the kernel of its collective.

`packed_step` is a kernel of its own, which all callers share: the algorithms are most of what
replays compile, and are compiled once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ptaskmodel.kernels.decorators import jit, late
from ptaskmodel.mpi.collectives.allgather import (
    ALLGATHER_PHASES,
    allgather,
    allgatherv,
)
from ptaskmodel.mpi.collectives.allreduce import (
    ALLREDUCE_PHASES,
    allreduce,
)
from ptaskmodel.mpi.collectives.alltoall import (
    all_to_all_each,
    alltoall,
    each_by_rounds,
    each_paced,
    is_paced,
)
from ptaskmodel.mpi.collectives.barrier import barrier
from ptaskmodel.mpi.collectives.bcast import (
    BCAST_PHASES,
    broadcast_whole,
)
from ptaskmodel.mpi.collectives.gather_scatter import (
    fan_out_by_turns,
    fan_out_each,
    gather,
    scatter_tree,
)
from ptaskmodel.mpi.collectives.nonblocking import non_blocking
from ptaskmodel.mpi.collectives.reduce import (
    reduce,
)
from ptaskmodel.mpi.collectives.reduce_scatter import (
    reduce_scatter,
)
from ptaskmodel.mpi.collectives.rings import (
    prefix,
)
from ptaskmodel.mpi.collectives.selection import (
    BLOCKS,
    BY_TURNS,
    CHOICES,
    RING,
    TREE,
    Chosen,
    has_displacements_alone,
    picked,
    rooted,
    sized,
)
from ptaskmodel.mpi.collectives.steps import (
    FINISHED,
    UNWANTED,
    computed,
)
from ptaskmodel.mpi.collectives.trees import fan_in, fan_out
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
    IBARRIER,
    REDUCE,
    REDUCESCATTER,
    SCAN,
    SCATTER,
)


@jit
def collective(kind, phase, k, r, n, values, at, last, types, own, algorithm, c):
    """Step k of a phase of a collective action, as rank r of n; FINISHED after its last phase.

    values, at, last: its fields are ``values[at:last]``. own: bytes of an element without datatype.
    algorithm: that of this action; c: `Chosen`, for actions made of others.
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
    """As `collective`, for those that have one."""
    size = np.floor(values[at])
    if kind == ALLTOALL:
        return alltoall(r, n, size * sized(values, at, 2, last, types, own), k, algorithm, c)
    if kind == ALLTOALLV:
        unit = sized(values, at, 2 * n + 2, last, types, own)
        if algorithm in (RING, BLOCKS):
            return each_by_rounds(values, at + 1, r, n, unit, k, algorithm == BLOCKS)
        if is_paced(algorithm):
            own_barrier = picked(c.choices, c.of_kind[BARRIER], n, 0.0)
            return each_paced(values, at + 1, r, n, unit, k, algorithm, own_barrier)
        return all_to_all_each(values, at + 1, r, n, unit, k)
    if kind == GATHER:
        size *= sized(values, at, 3, last, types, own)
        return gather(r, n, rooted(values, at, 2, last), size, k, algorithm)
    if kind == GATHERV:
        size *= sized(values, at, n + 2, last, types, own)
        return fan_in(r, n, rooted(values, at, n + 1, last), size, k)
    if kind == SCATTER:
        root = rooted(values, at, 2, last)
        size *= sized(values, at, 3, last, types, own)
        if algorithm == BY_TURNS:
            return fan_out_by_turns(r, n, root, size, k)
        if algorithm == TREE:
            return scatter_tree(r, n, root, size, k)
        return fan_out(r, n, root, size, k)
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
    """What and whom a step concerns, in one number; its bytes are written to ``size``."""
    c = Chosen(of_kind, choices)
    what, peer, size[0] = collective(
        kind, phase, k, r, n, values, at, last, types, own, algorithm, c
    )
    return what * RANKS + peer


@jit
def step_of_collective(kind, phase, k, r, n, values, at, last, types, own, algorithm, c, size):
    """As `collective`, or UNWANTED; size: scratch for a number."""
    packed = packed_step(
        kind, phase, k, r, n, values, at, last, types, own, algorithm, c.of_kind, c.choices, size
    )
    if packed < 0:  # the kernel is not there
        return UNWANTED, 0, 0.0
    return packed // RANKS, packed % RANKS, size[0]
