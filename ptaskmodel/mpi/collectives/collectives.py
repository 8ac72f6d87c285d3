# mypy: allow-untyped-defs, allow-incomplete-defs
"""Collective operations as messages: step k of what a rank does in one, by the chosen algorithm.

Source: the default algorithms of SimGrid's SMPI, as its documentation and its replays show them;
the others in `trees`, `exchanges`, `gathering`, `halving`, `reducing`, `segments` and `barriers`.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.engine.state import numbers
from ptaskmodel.kernels.decorators import jit
from ptaskmodel.mpi.collectives.barriers import barrier
from ptaskmodel.mpi.collectives.exchanges import (
    all_gather_at_once,
    all_gather_bruck,
    all_gather_bruck_each,
    all_to_all_at_once,
    all_to_all_blocks,
    all_to_all_bruck,
    all_to_all_each,
    all_to_all_pairs,
    doubling,
    each_by_rounds,
    far_first,
    neighbours,
    pairwise,
    prefix,
    ring,
    ring_of_pieces,
    to_the_right,
    to_the_right_ahead,
)
from ptaskmodel.mpi.collectives.gathering import (
    butterfly_scatter,
    chunks_each,
    doubling_each,
    neighbours_each,
)
from ptaskmodel.mpi.collectives.halving import (
    doubling_scatter,
    halve_equal_parts,
    halve_far_first,
    halving_scatter,
    pairwise_scatter,
    reduce_doubling,
    reduce_halving,
    reduce_halving_to,
)
from ptaskmodel.mpi.collectives.meshes import in_mesh
from ptaskmodel.mpi.collectives.nonblocking import non_blocking
from ptaskmodel.mpi.collectives.paced import all_to_all_paced, each_paced, is_paced
from ptaskmodel.mpi.collectives.pipelines import (
    broadcast_flat_in_segments,
    broadcast_in_halves,
    reduce_in_line,
)
from ptaskmodel.mpi.collectives.reducing import reduce_upwards
from ptaskmodel.mpi.collectives.segments import (
    broadcast_by_relay,
    broadcast_in_line,
    broadcast_k_nomial,
    gather_in_two,
    is_segmented,
    reduce_segments,
    rest_of_relay,
    scatter_ring,
)
from ptaskmodel.mpi.collectives.selection import (
    AHEAD,
    AUTOMATIC,
    BASIC,
    BINARY,
    BINOMIAL,
    BLOCKS,
    BRUCK,
    BUTTERFLY,
    BY_TURNS,
    CHAIN,
    CHUNKS,
    COMPOSED,
    DOUBLING,
    FAR_FIRST,
    FLAT_IN_SEGMENTS,
    HALVES,
    HALVING,
    HALVING_EQUAL,
    HALVING_LONG,
    IN_ORDER,
    IN_TWO,
    K_NOMIAL,
    LINE,
    MESH_2D,
    MESH_3D,
    MPICH,
    NEIGHBOURS,
    PAIRWISE,
    PIECES_DOUBLING,
    PIECES_RING,
    PIPELINE,
    RING,
    SEGMENTS,
    TO_ALL,
    TO_THE_RIGHT,
    TREE,
    has_displacements_alone,
    of_all_to_all,
    picked,
    rooted,
    sized,
)
from ptaskmodel.mpi.collectives.steps import (
    FINISHED,
    NO_MORE,
    computed,
    counted,
    power_below,
)
from ptaskmodel.mpi.collectives.trees import (
    broadcast,
    fan_in,
    fan_in_by_turns,
    fan_out,
    fan_out_by_turns,
    fan_out_each,
    gather_tree,
    reduce_k_nomial,
    reduce_tree,
    scatter_pieces,
    scatter_tree,
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
    IBARRIER,
    REDUCE,
    REDUCESCATTER,
    SCAN,
    SCATTER,
)

# How many phases there are at most, the empty ones included.
BCAST_PHASES, ALLGATHER_PHASES, ALLREDUCE_PHASES = numbers(4, 7)


@jit
def bcast(phase, r, n, root, size, unit, k, algorithm):
    """In two phases, the second of which may be empty; without the rest of `broadcast_whole`."""
    if algorithm in (PIECES_RING, PIECES_DOUBLING):
        piece = np.floor((size + n - 1) / n)
        if phase == 0:
            return scatter_pieces(r, n, root, size, piece, k)
        if algorithm == PIECES_RING:
            return ring_of_pieces(r, n, root, size, piece, k)
        if size == 0.0:
            return NO_MORE, 0, 0.0
        return doubling(r, n, root, size, piece, k)
    if phase > 0:
        return NO_MORE, 0, 0.0
    if algorithm in (LINE, BINARY):
        return broadcast_by_relay(r, n, root, size, k, algorithm == BINARY)
    if algorithm == PIPELINE:
        return broadcast_in_line(r, n, root, size, k)
    if algorithm == K_NOMIAL:
        return broadcast_k_nomial(r, n, root, size, k)
    if algorithm == BASIC:
        return fan_out(r, n, root, size, k)
    if algorithm == FLAT_IN_SEGMENTS:
        return broadcast_flat_in_segments(r, n, root, size, k)
    if algorithm == HALVES:
        return broadcast_in_halves(r, n, root, size, unit, k)
    return broadcast(r, n, root, size, k)


@jit
def broadcast_whole(phase, r, n, root, size, unit, k, c):
    """As the chosen algorithms have it; in BCAST_PHASES phases, the last of which may be empty."""
    algorithm = picked(c.choices, c.of_kind[BCAST], n, size)
    if phase < 2:
        return bcast(phase, r, n, root, size, unit, k, algorithm)
    rest = rest_of_relay(size)
    if algorithm not in (LINE, BINARY) or rest == 0.0 or n == 1:
        return NO_MORE, 0, 0.0
    algorithm = picked(c.choices, c.of_kind[BCAST], n, rest)
    return bcast(phase - 2, r, n, root, rest, unit, k, algorithm)


@jit
def reduce(r, n, root, count, unit, k, algorithm):
    if algorithm == BY_TURNS:
        return fan_in_by_turns(r, n, root, count * unit, k, True)
    if algorithm == AUTOMATIC:
        return fan_in(r, n, root, count * unit, k)
    if algorithm == LINE:
        return reduce_in_line(r, n, root, count * unit, k)
    if count == 0.0:
        return NO_MORE, 0, 0.0
    if algorithm in (CHAIN, PIPELINE, BINARY, BINOMIAL, IN_ORDER):
        return reduce_upwards(r, n, root, count, unit, k, algorithm)
    if algorithm == HALVING:
        return reduce_halving_to(r, n, root, count, unit, k)
    if algorithm == K_NOMIAL:
        return reduce_k_nomial(r, n, root, count * unit, k)
    return reduce_tree(r, n, root, count * unit, k)


@jit
def gather(r, n, root, size, k, algorithm):
    if algorithm == BY_TURNS:
        return fan_in_by_turns(r, n, root, size, k, False)
    if algorithm == TREE:
        return gather_tree(r, n, root, size, k)
    if algorithm == IN_TWO:
        return gather_in_two(r, n, root, size, k)
    return fan_in(r, n, root, size, k)


@jit
def allreduce(phase, r, n, count, unit, k, algorithm, c):
    """In ALLREDUCE_PHASES phases, the last of which may be empty."""
    if algorithm == AUTOMATIC:
        if phase == 0:
            return fan_in(r, n, 0, count * unit, k)
        return broadcast(r, n, 0, count * unit, k) if phase == 1 else (NO_MORE, 0, 0.0)
    rest = count
    if algorithm == SEGMENTS:
        rounds = is_segmented(n, count, unit)
        if rounds > 0 and n > 1:
            if phase > 0:
                return NO_MORE, 0, 0.0
            return reduce_segments(r, n, count, unit, rounds, k)
        algorithm = RING
    if algorithm == RING:  # what cannot be divided is reduced and broadcast
        rest = count % n
        if phase == 0:
            return to_the_right(r, n, np.floor(count / n) * unit, 2 * (n - 1) * (count >= n), k)
        if rest == 0.0 and count >= n:
            return NO_MORE, 0, 0.0
        phase -= 1
    elif algorithm in (FAR_FIRST, TO_ALL):
        if algorithm == TO_ALL and 0.0 < count < n:
            count = float(n * n)  # as SMPI fills it up
        elif count % n > 0.0:
            count = np.floor((count + n) / n) * n
        size = count / n * unit
        if phase == 0 and algorithm == FAR_FIRST:
            return halve_far_first(r, n, count, unit, k)
        if phase == 0:
            return alltoall(r, n, size, k, of_all_to_all(c, n, size), c)
        if n == 1:
            return NO_MORE, 0, 0.0
        own = picked(c.choices, c.of_kind[ALLGATHER], n, size)
        return allgather(phase - 1, r, n, size, unit, k, own, c)
    elif algorithm != COMPOSED:
        if phase > 0:
            return NO_MORE, 0, 0.0
        if algorithm == HALVING or (algorithm == HALVING_LONG and count >= power_below(n)):
            return reduce_halving(r, n, count, unit, k)
        if algorithm == HALVING_LONG and count == 0.0:
            return NO_MORE, 0, 0.0
        return reduce_doubling(r, n, count * unit, k)
    if phase == 0:
        own = picked(c.choices, c.of_kind[REDUCE], n, rest * unit)
        return reduce(r, n, 0, rest, unit, k, own)
    return broadcast_whole(phase - 1, r, n, 0, rest * unit, unit, k, c)


@jit
def allgather(phase, r, n, size, unit, k, algorithm, c):
    """In ALLGATHER_PHASES phases, the last of which may be empty."""
    if algorithm == COMPOSED:
        if phase == 0:
            return gather(r, n, 0, size, k, picked(c.choices, c.of_kind[GATHER], n, size))
        return broadcast_whole(phase - 1, r, n, 0, n * size, unit, k, c)
    if phase > 0:
        return NO_MORE, 0, 0.0
    if algorithm == MPICH:
        algorithm = RING
        if n & (n - 1) == 0 and n * size < 524288:
            algorithm = DOUBLING
        elif n * size <= 81920:
            algorithm = BRUCK
    if algorithm == RING:
        return ring(r, n, size, k)
    if algorithm == PAIRWISE:
        return pairwise(r, n, size, k)
    if algorithm == TO_THE_RIGHT:
        return to_the_right(r, n, size, n - 1, k)
    if algorithm == NEIGHBOURS:
        return neighbours(r, n, size, k)
    if algorithm == FAR_FIRST:
        return far_first(r, n, size, k)
    if algorithm == DOUBLING:
        return doubling(r, n, 0, n * size, size, k)
    if algorithm == BRUCK:
        return all_gather_bruck(r, n, size, k)
    if algorithm == BASIC:
        return all_gather_at_once(r, n, size, k)
    if algorithm == AHEAD:
        return to_the_right_ahead(r, n, size, k)
    if algorithm in (MESH_2D, MESH_3D):
        return in_mesh(r, n, size, k, algorithm == MESH_3D, True)
    return all_to_all_pairs(r, n, size, k)


@jit
def allgatherv(phase, values, at, r, n, unit, shifts, k, algorithm, c):
    """In ALLGATHER_PHASES phases, the last of which may be empty; shifts: of fields, -1: none."""
    size = np.floor(values[at + r]) * unit
    if algorithm == COMPOSED:
        if phase == 0:
            return fan_in(r, n, 0, size, k)
        size = longest(values, at, shifts, n) * unit
        return broadcast_whole(phase - 1, r, n, 0, size, unit, k, c)
    if phase > 0:
        return NO_MORE, 0, 0.0
    if algorithm == BRUCK:
        return all_gather_bruck_each(values, at, r, n, unit, k)
    if algorithm == DOUBLING:
        return doubling_each(values, at, r, n, unit, k)
    if algorithm == CHUNKS:
        return chunks_each(values, at, r, n, unit, k)
    if algorithm == NEIGHBOURS:
        return neighbours_each(values, at, r, n, unit, k)
    if algorithm == RING:
        return ring(r, n, size, k)
    if algorithm == PAIRWISE:
        return pairwise(r, n, size, k)
    return all_to_all_pairs(r, n, size, k)


@jit
def longest(values, at, shifts, n):
    """Elements of a buffer that holds what the fields say, each shifted as others say."""
    most = 0.0
    for j in range(n):
        shift = np.floor(values[shifts + j]) if shifts >= 0 else 0.0
        most = max(most, shift + np.floor(values[at + j]))
    return most


@jit
def alltoall(r, n, size, k, algorithm, c):
    if algorithm == PAIRWISE:
        return pairwise(r, n, size, k)
    if algorithm == BRUCK:
        return all_to_all_bruck(r, n, size, k)
    if algorithm == RING:
        return ring(r, n, size, k)
    if algorithm == DOUBLING:
        return doubling(r, n, 0, n * n * size, n * size, k)
    if algorithm == BLOCKS:
        if size == 0.0:
            return NO_MORE, 0, 0.0
        return all_to_all_blocks(r, n, size, k, True)
    if algorithm in (MESH_2D, MESH_3D):
        return in_mesh(r, n, size, k, algorithm == MESH_3D, False)
    if is_paced(algorithm):
        own = picked(c.choices, c.of_kind[BARRIER], n, 0.0)
        return all_to_all_paced(r, n, size, k, algorithm, own)
    return all_to_all_at_once(r, n, size, k)


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


@jit
def reduce_scatter(phase, r, n, values, at, count, unit, k, algorithm):
    if algorithm == BASIC:
        if phase == 0:
            return fan_in(r, n, 0, count * n * unit, k)
        return fan_out_each(values, at, r, n, 0, unit, k)
    if phase > 0:
        return NO_MORE, 0, 0.0
    if algorithm == DOUBLING:
        return doubling_scatter(values, at, r, n, unit, k)
    if algorithm == SEGMENTS:
        return scatter_ring(values, at, r, n, unit, k)
    if algorithm == BUTTERFLY:
        return butterfly_scatter(values, at, r, n, unit, k)
    if algorithm == HALVING_EQUAL:
        return halve_equal_parts(values, at, r, n, unit, k)
    if k == 0 and counted(values, at, 0, n) == 0.0:  # the others do nothing then
        return NO_MORE, 0, 0.0
    if algorithm == PAIRWISE:
        return pairwise_scatter(values, at, r, n, unit, k)
    return halving_scatter(values, at, r, n, unit, k)
