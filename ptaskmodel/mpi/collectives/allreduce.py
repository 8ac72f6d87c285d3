# mypy: allow-untyped-defs, allow-incomplete-defs
"""All-reduces: every rank receives the reduction of the data of all ranks.

Source: the algorithms of Open MPI, MPICH and StarMPI, as SMPI replays them; R. Rabenseifner,
"Optimization of collective reduction operations", ICCS 2004.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.kernels.records import numbers
from ptaskmodel.mpi.collectives.allgather import allgather, of_all_gather
from ptaskmodel.mpi.collectives.alltoall import alltoall, of_all_to_all
from ptaskmodel.mpi.collectives.bcast import broadcast, broadcast_whole
from ptaskmodel.mpi.collectives.reduce import reduce
from ptaskmodel.mpi.collectives.selection import POWER_OF_TWO, Collective, picked
from ptaskmodel.mpi.collectives.steps import (
    AWAIT_RECEIVE,
    DO_RECEIVE,
    DO_SEND,
    NO_MORE,
    REQUEST_RECEIVE,
    exchange,
    fan_in,
    halve,
    kept,
    log2,
    power_below,
    rank_of,
    swap,
    to_the_right,
)
from ptaskmodel.workload.actions import REDUCE

# Algorithms.
(
    AUTOMATIC,
    RING,
    FAR_FIRST,
    TO_ALL,
    HALVING,
    DOUBLING,
    COMPOSED,
    HALVING_LONG,
    SEGMENTS,
) = numbers(9)

# Choice of Open MPI by ranks and bytes (see `selection`).
OPEN_MPI = """
    4 0 lr 8 rdb 4096 lr 8192 rdb 16384 lr 65536 ompi_ring_segmented 262144 rab_rdb;
    8 0 lr 16 rdb 8192 rab_rdb;
    16 0 rdb 8192 rab_rdb;
    32 0 ompi_ring_segmented 64 rdb 4096 rab_rdb;
    64 0 ompi_ring_segmented 128 rab_rdb;
    128 0 rdb 262144 rab_rdb;
    256 0 redbcast 131072 rdb 262144 rab_rdb;
    512 0 redbcast 4096 rab_rdb;
    2048 0 redbcast 2048 rdb 16384 rab_rdb;
    4096 0 redbcast 2048 ompi_ring_segmented 4096 rdb 16384 rab_rdb;
    - 0 redbcast 2048 ompi_ring_segmented 16384 rdb 32768 rab_rdb"""

ALL_REDUCES = Collective(
    "allreduce",
    "allreduce",
    {
        "default": AUTOMATIC,
        "lr": RING,
        "rab1": FAR_FIRST,
        "rab2": TO_ALL,
        "rab_rdb": HALVING,
        "rdb": DOUBLING,
        "redbcast": COMPOSED,
        "mvapich2_rs": HALVING_LONG,
        "ompi": OPEN_MPI,
        "ompi_ring_segmented": SEGMENTS,
    },
    needs={"rab1": POWER_OF_TWO},
)


@jit
def block_of(count, parts, k):
    """Elements of part k, where the first parts have one more."""
    return np.floor(count / parts) + (1.0 if k < count % parts else 0.0)


@jit
def is_segmented(n, count, unit):
    """Into how many rounds `reduce_segments` cuts; 0: it is too little for that."""
    most = np.floor(1048576.0 / unit) if unit > 0.0 and count * unit > 1048576.0 else count
    if count < n * most:
        return 0
    rounds = np.floor(count / (n * most)) if count > 0.0 else 0.0
    rest = count - rounds * n * most
    return int(rounds) + (1 if rest >= n and rest > np.floor(n * most / 2.0) else 0)


@jit
def reduce_segments(r, n, count, unit, rounds, k):
    """Of allreduce: a part of each block round the ring in each round, then whole blocks."""
    before, after = (r - 1 + n) % n, (r + 1) % n
    steps = 3 * n - 3
    if k < rounds * steps:
        part, i = k // steps, k % steps
        if i == 0:
            return REQUEST_RECEIVE, before, 0.0
        hop, j = (i - 1) // 3, (i - 1) % 3
        if j == 0:
            block = block_of(count, n, (r - hop + n) % n)
            return DO_SEND, after, block_of(block, rounds, part) * unit
        if j == 1 and hop < n - 2:
            return REQUEST_RECEIVE, before, 0.0
        return AWAIT_RECEIVE, before, 0.0
    k -= rounds * steps
    hop = k // 3
    if hop >= n - 1:
        return NO_MORE, 0, 0.0
    sent = block_of(count, n, (r + 1 - hop + n) % n)
    return exchange(k % 3, after, before, sent * unit, 0.0)


@jit
def reduce_doubling(r, n, size, k):
    """Everything with the ranks at distance 1, 2, 4, ..."""
    power = power_below(n)
    rest = n - power
    place = r - rest
    if r < 2 * rest:
        if r % 2 == 0:
            if k > 1:
                return NO_MORE, 0, 0.0
            return (DO_SEND if k == 0 else DO_RECEIVE), r + 1, size
        if k == 0:
            return DO_RECEIVE, r - 1, size
        k -= 1
        place = r // 2
    rounds = log2(power)
    if k < 3 * rounds:
        return swap(k % 3, rank_of(place ^ (1 << (k // 3)), rest, 1), size)
    if r < 2 * rest and k == 3 * rounds:
        return DO_SEND, r - 1, size
    return NO_MORE, 0, 0.0


@jit
def reduce_halving(r, n, count, unit, k):
    """Rabenseifner's: halve what is to be reduced, nearest first, then gather it by doubling."""
    power = power_below(n)
    rest = n - power
    place = r - rest
    if r < 2 * rest:
        if r % 2 == 0:
            if k > 1:
                return NO_MORE, 0, 0.0
            return (DO_SEND if k == 0 else DO_RECEIVE), r + 1, count * unit
        if k == 0:
            return DO_RECEIVE, r - 1, count * unit
        k -= 1
        place = r // 2
    rounds = log2(power)
    if k < 6 * rounds:
        s = k // 3
        if s < rounds:
            peer = rank_of(place ^ (1 << s), rest, 1)
            return halve(place, power, s, peer, count, unit, k % 3)
        s = 2 * rounds - 1 - s
        peer = rank_of(place ^ (1 << s), rest, 1)
        sent, received = kept(place, power, s, count, unit)
        return exchange(k % 3, peer, peer, sent, received)
    if r < 2 * rest and k == 6 * rounds:
        return DO_SEND, r - 1, count * unit
    return NO_MORE, 0, 0.0


@jit
def halve_far_first(r, n, count, unit, k):
    """Halve with the rank half of all away, a quarter, ...; n: a power of two."""
    mask = n >> (k // 3 + 1)
    return swap(k % 3, r ^ mask, count * mask / n * unit) if mask > 0 else (NO_MORE, 0, 0.0)


# How many phases there are at most, the empty ones included.
ALLREDUCE_PHASES = numbers(6, 7)[0]


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
        return allgather(phase - 1, r, n, size, unit, k, of_all_gather(c, n, size), c)
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
