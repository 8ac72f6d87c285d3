# mypy: allow-untyped-defs, allow-incomplete-defs
"""All-gathers, of equal and of different amounts: every rank receives the data of each rank.

Source: the algorithms of MPICH, Open MPI and StarMPI, as SMPI replays them; J. Bruck et al.,
"Efficient algorithms for all-to-all communications in multiport message-passing systems", 1997; J.
Chen et al., "Performance evaluation of allgather algorithms on terascale Linux cluster with Fast
Ethernet", 2005 (neighbour exchange).
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.kernels.records import numbers
from ptaskmodel.mpi.collectives.alltoall import MESHES, in_mesh
from ptaskmodel.mpi.collectives.bcast import broadcast_whole
from ptaskmodel.mpi.collectives.gather_scatter import gather
from ptaskmodel.mpi.collectives.selection import POWER_OF_TWO, Collective, picked
from ptaskmodel.mpi.collectives.steps import (
    ALL,
    AWAIT_RECEIVE,
    DO_RECEIVE,
    DO_SEND,
    NO_MORE,
    POST_RECEIVE,
    POST_SEND,
    REQUEST_RECEIVE,
    all_to_all_pairs,
    counted,
    doubling,
    exchange,
    fan_in,
    hands_on,
    pairwise,
    ring,
    swap,
    to_the_right,
)
from ptaskmodel.workload.actions import (
    ALLGATHER,
    GATHER,
)

# Choices by ranks and sizes, and algorithms.
MVAPICH2, MPICH = numbers(-2, 0)
(
    PAIRS,
    AT_ONCE,
    RING,
    PAIRWISE,
    DOUBLING,
    BRUCK,
    NEIGHBOURS,
    TO_THE_RIGHT,
    AHEAD,
    FAR_FIRST,
    COMPOSED,
    MESH_2D,
    MESH_3D,
    CHUNKS,
) = numbers(14)

# Choices of Open MPI by ranks and bytes (see `selection`).
OPEN_MPI = """
    2 0 rdb;
    3 0 pair;
    32 0 rdb;
    64 0 rdb 1024 ompi_neighborexchange 65536 ring;
    128 0 rdb 512 ompi_neighborexchange 65536 ring;
    256 0 rdb 512 ompi_neighborexchange 131072 ring 524288 ompi_neighborexchange 1048576 ring;
    512 0 rdb 32 bruck 128 rdb 1024 ompi_neighborexchange 131072 ring 524288 ompi_neighborexchange
      1048576 ring;
    1024 0 rdb 64 bruck 256 rdb 2048 ompi_neighborexchange;
    2048 0 rdb 4 bruck 8 rdb 16 bruck 32 rdb 256 bruck 512 rdb 4096 ompi_neighborexchange;
    4096 0 bruck 32 rdb 128 bruck 512 rdb 4096 ompi_neighborexchange;
    - 0 rdb 2 bruck 8 rdb 16 bruck 512 rdb 4096 ompi_neighborexchange"""

OPEN_MPI_EACH = """
    2 0 GB 256 ompi_neighborexchange 4096 mpich_ring 8192 ompi_neighborexchange 16384 ompi_bruck
      262144 ompi_neighborexchange;
    3 0 mpich_ring 2048 pair 4096 mpich_ring 8192 pair;
    8 0 GB 256 ompi_neighborexchange 4096 mpich_ring 8192 ompi_neighborexchange 16384 ompi_bruck
      262144 ompi_neighborexchange;
    16 0 GB 1024 ompi_bruck;
    32 0 GB 128 ompi_bruck 262144 mpich_ring;
    64 0 GB 256 ompi_bruck 8192 mpich_ring;
    128 0 GB 256 ompi_bruck 4096 mpich_ring;
    256 0 ompi_bruck 1024 ompi_neighborexchange 65536 mpich_ring;
    512 0 ompi_bruck 1024 mpich_ring;
    1024 0 ompi_bruck 512 GB 1024 ompi_bruck 4096 ompi_neighborexchange 1048576 mpich_ring;
    - 0 ompi_bruck 4096 ompi_neighborexchange"""

ALL_GATHERS = Collective(
    "allgather",
    "allgather",
    {
        "default": PAIRS,
        "mpich": MPICH,
        "2dmesh": MESH_2D,
        "3dmesh": MESH_3D,
        "GB": COMPOSED,
        "NTSLR": TO_THE_RIGHT,
        "NTSLR_NB": AHEAD,
        "bruck": BRUCK,
        "ompi_neighborexchange": NEIGHBOURS,
        "pair": PAIRWISE,
        "rdb": DOUBLING,
        "rhv": FAR_FIRST,
        "ring": RING,
        "spreading_simple": AT_ONCE,
        "ompi": OPEN_MPI,
    },
    needs={**MESHES, "pair": POWER_OF_TWO, "rhv": POWER_OF_TWO},
)

ALL_GATHERS_OF_EACH = Collective(
    "allgatherv",
    "allgatherv",
    {
        "default": PAIRS,
        "ompi_bruck": BRUCK,
        "pair": PAIRWISE,
        "ring": RING,
        "GB": COMPOSED,
        "mpich": MPICH,
        "mpich_rdb": DOUBLING,
        "mvapich2": MVAPICH2,
        "mpich_ring": CHUNKS,
        "ompi": OPEN_MPI_EACH,
        "ompi_neighborexchange": NEIGHBOURS,
    },
    needs={"pair": POWER_OF_TWO},
)


@jit
def doubling_each(values, at, r, n, unit, k):
    """Groups of 1, 2, 4, ... ranks exchange what they have, as `rings.doubling`."""
    if counted(values, at, 0, n) == 0.0:
        return NO_MORE, 0, 0.0
    mask = 1
    while mask < n:
        partner = r ^ mask
        theirs, mine = partner - partner % mask, r - r % mask
        got = counted(values, at, min(theirs, n), min(theirs + mask, n)) * unit
        if partner < n:
            if k < 3:
                sent = counted(values, at, mine, min(mine + mask, n)) * unit
                return exchange(k, partner, partner, sent, got)
            k -= 3
        if theirs + mask > n:
            what, peer, k = hands_on(r, n, mine, mask, k)
            if what != NO_MORE:
                return what, peer, got
        mask <<= 1
    return NO_MORE, 0, 0.0


@jit
def neighbours_each(values, at, r, n, unit, k):
    """With the two neighbours in turn: one's own, then what two ranks have in each round."""
    if n % 2:
        return ring(r, n, np.floor(values[at + r]) * unit, k)
    i = k // 3
    if i >= n // 2:
        return NO_MORE, 0, 0.0
    forth = (r % 2 == 0) == (i % 2 == 0)
    peer = (r + 1) % n if forth else (r - 1 + n) % n
    if i == 0:
        return exchange(k % 3, peer, peer, np.floor(values[at + r]) * unit, 0.0)
    # What was received last: from as far to one side as there were rounds.
    even = r - r % 2
    last = i - 1
    side = 1 if (r % 2 == 0) == (last % 2 == 0) else -1
    first = (even + side * 2 * ((last + 1) // 2)) % n
    return exchange(k % 3, peer, peer, counted(values, at, first, first + 2) * unit, 0.0)


@jit
def chunks_each(values, at, r, n, unit, k):
    """Round the ring in chunks of 256 KiB, or the least that a rank has, if that is more."""
    total = counted(values, at, 0, n)
    before, after = (r - 1 + n) % n, (r + 1) % n
    to_receive = total - np.floor(values[at + r])
    to_send = total - np.floor(values[at + after])
    most = np.floor(values[at])
    for j in range(1, n):
        most = min(most, np.floor(values[at + j]))
    if most * unit < 262144.0:
        most = np.floor(262144.0 / unit) if unit > 0.0 else 0.0
    most = max(most, 1.0)
    own, theirs = r, before
    sent_of, got_of = 0.0, 0.0
    while to_send > 0.0 or to_receive > 0.0:
        send = min(np.floor(values[at + own]) - sent_of, most) if to_send > 0.0 else 0.0
        get = min(np.floor(values[at + theirs]) - got_of, most) if to_receive > 0.0 else 0.0
        if send > 0.0 and get > 0.0:
            if k < 3:
                return exchange(k, after, before, send * unit, get * unit)
            k -= 3
        elif send > 0.0 or get > 0.0:
            if k == 0:
                if send > 0.0:
                    return DO_SEND, after, send * unit
                return DO_RECEIVE, before, get * unit
            k -= 1
        to_send -= send
        to_receive -= get
        sent_of += send
        got_of += get
        if sent_of == np.floor(values[at + own]):
            sent_of = 0.0
            own = (own - 1 + n) % n
        if got_of == np.floor(values[at + theirs]):
            got_of = 0.0
            theirs = (theirs - 1 + n) % n
    return NO_MORE, 0, 0.0


@jit
def all_gather_at_once(r, n, size, k):
    """From the ranks after one's own, then to them, all at once."""
    if k < 2 * (n - 1):
        what = POST_RECEIVE if k < n - 1 else POST_SEND
        return what, (r + 1 + k % (n - 1)) % n, size
    return (ALL, 0, 0.0) if k == 2 * (n - 1) else (NO_MORE, 0, 0.0)


@jit
def to_the_right_ahead(r, n, size, k):
    """As `to_the_right`, all receives posted at once."""
    if k < n - 1:
        return REQUEST_RECEIVE, (r - 1 + n) % n, size
    k -= n - 1
    if k // 3 >= n - 1:
        return NO_MORE, 0, 0.0
    if k % 3 == 0:
        return POST_SEND, (r + 1) % n, size
    return (AWAIT_RECEIVE if k % 3 == 1 else ALL), (r - 1 + n) % n, 0.0


@jit
def all_gather_bruck(r, n, size, k):
    """In round i to the rank 2^i back all that one has, as far as it is needed."""
    distance = 1 << (k // 3)
    if distance >= n:
        return NO_MORE, 0, 0.0
    sent = size * min(distance, n - distance)
    return exchange(k % 3, (r - distance + n) % n, (r + distance) % n, sent, sent)


@jit
def all_gather_bruck_each(values, at, r, n, unit, k):
    """As `all_gather_bruck`, with what the fields say of each rank."""
    what, peer, blocks = all_gather_bruck(r, n, 1.0, k)
    size = 0.0
    if what == POST_SEND:
        for i in range(int(blocks)):
            size += np.floor(values[at + (r + i) % n]) * unit
    return what, peer, size


@jit
def neighbours(r, n, size, k):
    """With the two neighbours in turn: one's own, then twice as much in each round."""
    if n % 2:
        return ring(r, n, size, k)
    i = k // 3
    if i >= n // 2:
        return NO_MORE, 0, 0.0
    forth = (r % 2 == 0) == (i % 2 == 0)
    peer = (r + 1) % n if forth else (r - 1 + n) % n
    return swap(k % 3, peer, size if i == 0 else 2.0 * size)


@jit
def far_first(r, n, size, k):
    """With ranks half of all away, a quarter, ...; twice as much each time; n: a power of two.

    Before, everybody gives the rank with the reverse of his bits what that is to have first.
    """
    mirrored = 0
    mask = 1
    while mask < n:
        mirrored = 2 * mirrored + (1 if r & mask else 0)
        mask <<= 1
    if mirrored != r:
        if k < 3:
            return swap(k, mirrored, size)
        k -= 3
    i = k // 3
    mask = n >> (i + 1)
    return swap(k % 3, r ^ mask, size * (1 << i)) if mask > 0 else (NO_MORE, 0, 0.0)


# How many phases there are at most, the empty ones included.
ALLGATHER_PHASES = numbers(5, 6)[0]


@jit
def of_all_gather(c, n, size):
    """The algorithm of an all-gather of ``size`` bytes of each of ``n`` ranks; c: `Chosen`."""
    algorithm = picked(c.choices, c.of_kind[ALLGATHER], n, size)
    if algorithm != MPICH:
        return algorithm
    if n & (n - 1) == 0 and n * size < 524288:
        return DOUBLING
    return BRUCK if n * size <= 81920 else RING


@jit
def of_all_gather_of_each(algorithm, n, total, unit):
    """The algorithm that the rule ``algorithm`` chooses, of an all-gather of different amounts.

    total: elements that all ``n`` ranks have together; unit: bytes of an element.
    """
    if algorithm == MVAPICH2:
        if total * unit > n * (512.0 if n < 33 else 256.0):
            return CHUNKS
        return DOUBLING if n & (n - 1) == 0 else BRUCK
    if n & (n - 1) == 0 and total < 524288:
        return DOUBLING
    return BRUCK if 0 < total <= 81920 else CHUNKS  # by which nothing is not sent


@jit
def allgather(phase, r, n, size, unit, k, algorithm, c):
    """In ALLGATHER_PHASES phases, the last of which may be empty."""
    if algorithm == COMPOSED:
        if phase == 0:
            return gather(r, n, 0, size, k, picked(c.choices, c.of_kind[GATHER], n, size))
        return broadcast_whole(phase - 1, r, n, 0, n * size, unit, k, c)
    if phase > 0:
        return NO_MORE, 0, 0.0
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
    if algorithm == AT_ONCE:
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
