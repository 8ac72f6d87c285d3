# mypy: allow-untyped-defs, allow-incomplete-defs
"""All-to-alls: every rank sends a different part of its data to each other rank.

In a mesh, ranks exchange along rows first, then columns, then planes; all-gathers do the same. In
paced algorithms all ranks begin a round together, so that messages do not collide.
Source: the algorithms of MPICH, Open MPI and StarMPI, as SMPI replays them; J. Bruck et al.,
"Efficient algorithms for all-to-all communications in multiport message-passing systems", 1997; A.
Faraj, X. Yuan, "Automatic generation and tuning of MPI collective communication routines", 2005.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.kernels.records import numbers
from ptaskmodel.mpi.collectives.barrier import barrier
from ptaskmodel.mpi.collectives.selection import POWER_OF_TWO, Collective, Need, picked
from ptaskmodel.mpi.collectives.steps import (
    ALL,
    AWAIT_ANY,
    DO_SEND,
    NO_MORE,
    POST_RECEIVE,
    POST_SEND,
    REQUEST_RECEIVE,
    doubling,
    exchange,
    other,
    pairwise,
    ring,
    swap,
)
from ptaskmodel.workload.actions import (
    ALLTOALL,
    BARRIER,
)

# A choice by ranks and sizes, and algorithms.
MPICH = numbers(-1, 0)[0]
(
    AT_ONCE,
    BLOCKS,
    BRUCK,
    PAIRWISE,
    DOUBLING,
    RING,
    MESH_2D,
    MESH_3D,
    PAIRS_LIGHT,
    PAIRS_ONE,
    PAIRS_EACH,
    RING_LIGHT,
    RING_ONE,
    RING_EACH,
) = numbers(14)

# Choices of Open MPI and MVAPICH2 by ranks and bytes (see `selection`).
OPEN_MPI = """
    2 0 basic_linear;
    3 0 pair 2 basic_linear 4 pair 16 basic_linear 64 pair 256 basic_linear 4096 pair
      32768 basic_linear 1048576 pair;
    8 0 basic_linear 524288 pair 1048576 basic_linear;
    16 0 basic_linear;
    32 0 basic_linear 4 bruck 512 basic_linear;
    64 0 bruck 512 basic_linear;
    256 0 bruck 1024 basic_linear 262144 pair;
    512 0 bruck 1024 basic_linear 32768 pair;
    1024 0 bruck 512 basic_linear 262144 pair;
    2048 0 bruck 512 basic_linear;
    4096 0 bruck 1024 basic_linear;
    - 0 bruck 2048 basic_linear"""

OPEN_MPI_EACH = """
    4 0 ring;
    64 0 ompi_basic_linear;
    128 0 ring;
    256 0 ompi_basic_linear;
    1024 0 ring;
    - 0 ompi_basic_linear"""

MVAPICH = """
    3 0 pair;
    5 0 mvapich2_scatter_dest 262145 pair;
    9 0 rdb 9 mvapich2_scatter_dest;
    17 0 rdb 65 bruck 513 mvapich2_scatter_dest;
    33 0 rdb 33 bruck 2049 mvapich2_scatter_dest;
    - 0 rdb 9 bruck 1025 mvapich2_scatter_dest"""

PAIRS = ("pair", "pair_light_barrier", "pair_mpi_barrier", "pair_one_barrier")
MESHES = {
    "2dmesh": Need(lambda ranks: columns_of(ranks) > 0, "is 2, 3 or not prime"),
    "3dmesh": Need(lambda ranks: edge_of(ranks) > 0, "splits into square planes"),
}

ALL_TO_ALLS = Collective(
    "alltoall",
    "alltoall",
    {
        "default": OPEN_MPI,
        "mpich": MPICH,
        "2dmesh": MESH_2D,
        "3dmesh": MESH_3D,
        "basic_linear": AT_ONCE,
        "bruck": BRUCK,
        "mvapich2": MVAPICH,
        "mvapich2_scatter_dest": BLOCKS,
        "pair": PAIRWISE,
        "pair_light_barrier": PAIRS_LIGHT,
        "pair_mpi_barrier": PAIRS_EACH,
        "pair_one_barrier": PAIRS_ONE,
        "rdb": DOUBLING,
        "ring": RING,
        "ring_light_barrier": RING_LIGHT,
        "ring_mpi_barrier": RING_EACH,
        "ring_one_barrier": RING_ONE,
        "ompi": OPEN_MPI,
    },
    needs={**MESHES, **dict.fromkeys(PAIRS, POWER_OF_TWO)},
)

ALL_TO_ALLS_OF_EACH = Collective(
    "alltoallv",
    "alltoallv",
    {
        "default": AT_ONCE,
        "mvapich2": RING,
        "mpich": BLOCKS,
        "bruck": BLOCKS,
        "ompi_basic_linear": AT_ONCE,
        "pair": RING,
        "pair_light_barrier": PAIRS_LIGHT,
        "pair_mpi_barrier": PAIRS_EACH,
        "pair_one_barrier": PAIRS_ONE,
        "ring": RING,
        "ring_light_barrier": RING_LIGHT,
        "ring_mpi_barrier": RING_EACH,
        "ring_one_barrier": RING_ONE,
        "ompi": OPEN_MPI_EACH,
    },
    needs=dict.fromkeys(PAIRS, POWER_OF_TWO),
)


@jit
def columns_of(n):
    """Ranks of a row of a mesh of two dimensions that is as square as can be; 0: there is none."""
    rows = int(np.sqrt(n))
    while rows > 1 and n % rows:
        rows -= 1
    return n // rows if rows > 1 or n <= 3 else 0


@jit
def edge_of(n):
    """Ranks of a row, and rows of a plane, of a mesh of three dimensions; 0: there is none."""
    edge = 1
    while (edge + 1) * (edge + 1) * (edge + 1) <= n:
        edge += 1
    while edge <= n // 3:
        if n % (edge * edge) == 0:
            return edge
        edge += 1
    return 0


@jit
def among(own, members, k, is_ring):
    """Step k of what a rank of a group sends to the others in turn: (what, rank in the group).

    own, members: its rank in the group, and how many ranks that has. In the order of ranks, or, if
    is_ring, from the one after one's own on. Receives are posted before.
    """
    if k >= 3 * (members - 1):
        return NO_MORE, 0
    i, what = k % (members - 1), REQUEST_RECEIVE
    if k >= members - 1:
        what = DO_SEND if k < 2 * (members - 1) else AWAIT_ANY
    return what, (own + 1 + i) % members if is_ring else other(i, own)


@jit
def in_mesh(r, n, size, k, is_3d, gathers):
    """In each dimension to all ranks of one's own line: what has been gathered, or all there is.

    size: of each rank. Of an all-to-all everything goes along all dimensions but the last.
    """
    row = edge_of(n) if is_3d else columns_of(n)
    plane = row * row if is_3d else n
    what, i = among(r % row, row, k, False)
    if what != NO_MORE:
        return what, r - r % row + i, size if gathers else size * n
    k -= 3 * (row - 1)
    what, i = among(r % plane // row, plane // row, k, False)
    if what != NO_MORE:
        sent = size * row * (n if is_3d and not gathers else 1)
        return what, r - r % plane + r % row + i * row, sent
    k -= 3 * (plane // row - 1)
    what, i = among(r // plane, n // plane, k, True)
    return what, r % plane + i * plane, size * plane


@jit
def steps_of_barrier(r, n, algorithm):
    steps = 0
    while barrier(r, n, steps, algorithm)[0] != NO_MORE:
        steps += 1
    return steps


@jit
def is_paced(algorithm):
    """Whether an algorithm is one of those of `paced_round`."""
    return PAIRS_LIGHT <= algorithm <= RING_EACH


@jit
def paced_round(r, n, k, algorithm, of_barrier):
    """Step k of rounds in pairs (n: a power of two) or round a ring: (what, peer, bytes).

    The first of them, or each, begins after a barrier; or, from the second on, after a byte to and
    from those that are next. Bytes are -1 for what the all-to-all itself sends or receives.
    """
    by_pairs = algorithm <= PAIRS_EACH
    i = 1
    if algorithm in (PAIRS_ONE, RING_ONE):
        steps = steps_of_barrier(r, n, of_barrier)
        if k < steps:
            return barrier(r, n, k, of_barrier)
        k -= steps
        i += k // 3
    elif algorithm in (PAIRS_EACH, RING_EACH):
        steps = steps_of_barrier(r, n, of_barrier)
        if k < steps:  # before what a rank keeps, too
            return barrier(r, n, k, of_barrier)
        i += (k - steps) // (steps + 3)
        k = (k - steps) % (steps + 3)
        if i < n and k < steps:
            return barrier(r, n, k, of_barrier)
        k -= steps
    else:
        i += (k + 3) // 6
        if i < n and k > 2 and (k + 3) % 6 < 3:
            if by_pairs:
                return exchange(k % 3, r ^ i, r ^ i, 1.0, 1.0)
            return exchange(k % 3, (r - i + n) % n, (r + i) % n, 1.0, 1.0)
    if i >= n:
        return NO_MORE, 0, 0.0
    if by_pairs:
        return swap(k % 3, r ^ i, -1.0)
    return exchange(k % 3, (r + i) % n, (r - i + n) % n, -1.0, -1.0)


@jit
def all_to_all_paced(r, n, size, k, algorithm, of_barrier):
    """As much to each other rank."""
    what, peer, sent = paced_round(r, n, k, algorithm, of_barrier)
    return what, peer, size if sent < 0.0 else sent


@jit
def each_paced(values, at, r, n, unit, k, algorithm, of_barrier):
    """To each other rank what the fields say."""
    what, peer, sent = paced_round(r, n, k, algorithm, of_barrier)
    return what, peer, np.floor(values[at + peer]) * unit if sent < 0.0 else sent


BLOCK = 4  # ranks that are served at once


@jit
def all_to_all_at_once(r, n, size, k):
    """From the ranks after one's own, to those before it, all at once."""
    if k < n - 1:
        return POST_RECEIVE, (r + 1 + k) % n, size
    k -= n - 1
    if k < n - 1:
        return POST_SEND, (r - 1 - k + n) % n, size
    return (ALL, 0, 0.0) if k == n - 1 else (NO_MORE, 0, 0.0)


@jit
def all_to_all_bruck(r, n, size, k):
    """In round i to the rank 2^i further all that has to go such a way."""
    distance = 1 << (k // 3)
    if distance >= n:
        return NO_MORE, 0, 0.0
    whole, rest = n // (2 * distance), n % (2 * distance)
    part = size * (whole * distance + max(rest - distance, 0))
    return exchange(k % 3, (r + distance) % n, (r - distance + n) % n, part, part)


@jit
def all_to_all_blocks(r, n, size, k, with_oneself):
    """To a few ranks at once, the first of them perhaps oneself, then to the next few."""
    first = 0
    while first < n:
        skipped = 1 if first == 0 and not with_oneself else 0
        count = min(BLOCK, n - first) - skipped
        if k <= 2 * count:
            if k == 2 * count:
                return ALL, 0, 0.0
            i = k % count + skipped + first
            if k < count:
                return POST_RECEIVE, (r + i) % n, size
            return POST_SEND, (r - i + n) % n, size
        k -= 2 * count + 1
        first += BLOCK
    return NO_MORE, 0, 0.0


@jit
def all_to_all_each(values, at, r, n, unit, k):
    """All receives, then all sends of what the fields say, all at once."""
    if k < n - 1:
        return POST_RECEIVE, other(k, r), 0.0
    k -= n - 1
    if k < n - 1:
        to = other(k, r)
        return POST_SEND, to, np.floor(values[at + to]) * unit
    return (ALL, 0, 0.0) if k == n - 1 else (NO_MORE, 0, 0.0)


@jit
def each_by_rounds(values, at, r, n, unit, k, in_blocks):
    """What the fields say for each rank: in rounds by pairs (or round a ring), or a few at once."""
    if in_blocks:
        what, peer, size = all_to_all_blocks(r, n, 0.0, k, False)
    else:
        what, peer, size = pairwise(r, n, 0.0, k)
    if what == POST_SEND:
        size = np.floor(values[at + peer]) * unit
    return what, peer, size


@jit
def of_all_to_all(c, n, size):
    """The algorithm of an all-to-all of ``size`` bytes to each of ``n`` ranks; c: `Chosen`."""
    algorithm = picked(c.choices, c.of_kind[ALLTOALL], n, size)
    if algorithm != MPICH:
        return algorithm
    if size < 256 and n >= 8:
        return BRUCK
    return BLOCKS if size < 32768 else RING


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
def alltoallv(values, at, r, n, unit, k, algorithm, c):
    if algorithm in (RING, BLOCKS):
        return each_by_rounds(values, at, r, n, unit, k, algorithm == BLOCKS)
    if is_paced(algorithm):
        own = picked(c.choices, c.of_kind[BARRIER], n, 0.0)
        return each_paced(values, at, r, n, unit, k, algorithm, own)
    return all_to_all_each(values, at, r, n, unit, k)
