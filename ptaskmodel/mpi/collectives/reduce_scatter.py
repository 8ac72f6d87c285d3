# mypy: allow-untyped-defs, allow-incomplete-defs
"""Reduce-scatters: every rank receives its own part of the reduction of the data of all ranks.

Source: the algorithms of Open MPI and MPICH, as SMPI replays them; R. Thakur, R. Rabenseifner, W.
Gropp, "Optimization of collective communication operations in MPICH", 2005.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.kernels.records import numbers
from ptaskmodel.mpi.collectives.gather_scatter import fan_out_each
from ptaskmodel.mpi.collectives.selection import POWER_OF_TWO, Collective
from ptaskmodel.mpi.collectives.steps import (
    ALL,
    AWAIT_RECEIVE,
    DO_RECEIVE,
    DO_SEND,
    NO_MORE,
    REQUEST_RECEIVE,
    counted,
    exchange,
    fan_in,
    hands_on,
    log2,
    power_below,
    rank_of,
    swap,
)

# Choices by ranks and sizes, and algorithms.
MPICH, AUTOMATIC = numbers(-2, 0)
(
    BASIC,
    DOUBLING,
    PAIRWISE,
    HALVING,
    HALVING_EQUAL,
    BUTTERFLY,
    SEGMENTS,
) = numbers(7)

# Choices of Open MPI and MVAPICH2 by ranks and bytes (see `selection`).
OPEN_MPI = """
    4 0 ompi_ring 65536 ompi_butterfly 131072 ompi_ring;
    8 0 default 8 ompi_basic_recursivehalving 262144 ompi_ring;
    32 0 ompi_basic_recursivehalving 262144 ompi_ring;
    64 0 default 64 ompi_basic_recursivehalving 2048 ompi_butterfly 524288 ompi_ring;
    128 0 default 256 ompi_basic_recursivehalving 512 ompi_butterfly
      2048 ompi_basic_recursivehalving 4096 ompi_butterfly;
    256 0 default 256 ompi_basic_recursivehalving 512 ompi_butterfly;
    512 0 default 256 ompi_basic_recursivehalving 1024 ompi_butterfly;
    1024 0 default 512 ompi_basic_recursivehalving 2048 ompi_butterfly
      8192 ompi_basic_recursivehalving 16384 ompi_butterfly;
    2048 0 default 512 ompi_basic_recursivehalving 4096 ompi_butterfly
      16384 ompi_basic_recursivehalving 32768 ompi_butterfly;
    4096 0 default 512 ompi_basic_recursivehalving 4096 ompi_butterfly;
    - 0 default 1024 ompi_basic_recursivehalving 8192 ompi_butterfly"""

MVAPICH = """
    17 0 default 65 ompi_basic_recursivehalving 65537 mpich_pair;
    33 0 default 65 ompi_basic_recursivehalving 131073 mpich_pair;
    65 0 default 1025 ompi_basic_recursivehalving 262145 mpich_pair;
    - 0 default 129 ompi_basic_recursivehalving"""

REDUCE_SCATTERS = Collective(
    "reduce_scatter",
    "reducescatter",
    {
        "default": AUTOMATIC,
        "mpich": MPICH,
        "mpich_noncomm": HALVING_EQUAL,
        "mpich_pair": PAIRWISE,
        "mvapich2": MVAPICH,
        "mpich_rdb": DOUBLING,
        "ompi_basic_recursivehalving": HALVING,
        "ompi": OPEN_MPI,
        "ompi_butterfly": BUTTERFLY,
        "ompi_ring": SEGMENTS,
    },
    needs={"mpich_noncomm": POWER_OF_TWO},
)


@jit
def scatter_ring(values, at, r, n, unit, k):
    """Of reduce-scatter: blocks round the ring, the next receive posted before the last is over."""
    if n == 1:
        return NO_MORE, 0, 0.0
    before, after = (r - 1 + n) % n, (r + 1) % n
    if k == 0:
        return REQUEST_RECEIVE, before, 0.0
    i, j = (k - 1) // 3, (k - 1) % 3
    if i > n - 1:
        return NO_MORE, 0, 0.0
    if j == 0:
        sent = np.floor(values[at + (r - 1 - i + n) % n]) * unit
        return (DO_SEND, after, sent) if i < n - 1 else (NO_MORE, 0, 0.0)
    if j == 1:
        return (REQUEST_RECEIVE, before, 0.0) if i < n - 2 else (ALL, 0, 0.0)
    return AWAIT_RECEIVE, before, 0.0


@jit
def mirrored(place, bits):
    """A number with its bits in reverse order."""
    turned = 0
    for _ in range(bits):
        turned = 2 * turned + place % 2
        place //= 2
    return turned


@jit
def butterfly_scatter(values, at, r, n, unit, k):
    """Of reduce-scatter: halve with ranks 1, 2, 4, ... away, then give each what is its own."""
    power = power_below(n)
    rest = n - power
    total = counted(values, at, 0, n) * unit
    bits = log2(power)
    place = r - rest
    if r < 2 * rest:
        if r % 2 == 0:
            peer = rank_of(mirrored((r + 1) // 2, bits), rest, 1)
            if k > 1:
                return NO_MORE, 0, 0.0
            return (DO_SEND, r + 1, total) if k == 0 else (DO_RECEIVE, peer, 0.0)
        if k == 0:
            return DO_RECEIVE, r - 1, total
        k -= 1
        place = r // 2
    low, width, mask = 0, power // 2, 1
    while mask < power:
        if k < 3:
            peer = rank_of(place ^ mask, rest, 1)
            begin = low if place & mask else low + width
            sent = counted_places(values, at, rest, begin, begin + width) * unit
            return exchange(k, peer, peer, sent, 0.0)
        k -= 3
        if place & mask:
            low += width
        width //= 2
        mask <<= 1
    goal = mirrored(place, bits)
    peer = rank_of(goal, rest, 1)
    if goal < rest:
        if k == 0:
            return DO_SEND, peer - 1, np.floor(values[at + peer - 1]) * unit
        k -= 1
    if goal != place and k < 3:
        return exchange(k, peer, peer, np.floor(values[at + peer]) * unit, 0.0)
    return NO_MORE, 0, 0.0


@jit
def halve_equal_parts(values, at, r, n, unit, k):
    """Of reduce-scatter: halve with ranks 1, 2, 4, ... away; n: a power of two."""
    mask = 1 << (k // 3)
    size = counted(values, at, 0, n) * unit / (2 * mask)
    return swap(k % 3, r ^ mask, size) if mask < n else (NO_MORE, 0, 0.0)


@jit
def pairwise_scatter(values, at, r, n, unit, k):
    """Of reduce-scatter: in round i to r + i the part of that rank, from r - i one's own."""
    i = k // 3 + 1
    if i >= n:
        return NO_MORE, 0, 0.0
    to, source = (r + i) % n, (r - i + n) % n
    return exchange(
        k % 3, to, source, np.floor(values[at + to]) * unit, np.floor(values[at + r]) * unit
    )


@jit
def doubling_scatter(values, at, r, n, unit, k):
    """Of reduce-scatter: recursive doubling, for any number of ranks.

    Groups of ``mask`` ranks exchange all but what their own group is to keep. Where the other group
    is incomplete, those who received hand it on inside their group, down a tree.
    """
    total = counted(values, at, 0, n)
    mask = 1
    while mask < n:
        partner = r ^ mask
        theirs, mine = partner - partner % mask, r - r % mask
        received = total - counted(values, at, min(theirs, n), min(theirs + mask, n))
        if partner < n:
            if k < 3:
                sent = total - counted(values, at, mine, min(mine + mask, n))
                return exchange(k, partner, partner, sent * unit, received * unit)
            k -= 3
        if theirs + mask > n:
            what, peer, k = hands_on(r, n, mine, mask, k)
            if what != NO_MORE:
                return what, peer, received * unit
        mask <<= 1
    return NO_MORE, 0, 0.0


@jit
def counted_places(values, at, rest, first, last):
    """Elements of the ranks at places first, ..., last - 1 and of those that they stand for."""
    begin = 2 * first if first < rest else first + rest
    end = 2 * last if last <= rest else last + rest
    return counted(values, at, begin, end)


@jit
def halving_scatter(values, at, r, n, unit, k):
    """Of reduce-scatter: recursive halving, farthest first; halves without elements stay away."""
    power = power_below(n)
    rest = n - power
    total = counted(values, at, 0, n) * unit
    place = r - rest
    if r < 2 * rest:
        if r % 2 == 0:
            if k == 0:
                return DO_SEND, r + 1, total
            own = np.floor(values[at + r])
            return (DO_RECEIVE, r + 1, own * unit) if k == 1 and own > 0.0 else (NO_MORE, 0, 0.0)
        if k == 0:
            return DO_RECEIVE, r - 1, total
        k -= 1
        place = r // 2
    low = 0
    mask = power >> 1
    while mask > 0:
        lower = counted_places(values, at, rest, low, low + mask)
        upper = counted_places(values, at, rest, low + mask, low + 2 * mask)
        if lower > 0.0 and upper > 0.0:
            if k < 3:
                peer = rank_of(place ^ mask, rest, 1)
                if k == 1:
                    return DO_SEND, peer, (lower if place & mask else upper) * unit
                return (REQUEST_RECEIVE if k == 0 else AWAIT_RECEIVE), peer, 0.0
            k -= 3
        if place & mask:
            low += mask
        mask >>= 1
    if r < 2 * rest and k == 0:
        theirs = np.floor(values[at + r - 1])
        if theirs > 0.0:
            return DO_SEND, r - 1, theirs * unit
    return NO_MORE, 0, 0.0


@jit
def of_reduce_scatter(values, at, n, algorithm):
    """The algorithm that the rule ``algorithm`` chooses; parts: ``values[at : at + n]``."""
    equal = algorithm == AUTOMATIC
    for j in range(n):
        equal = equal and values[at + j] == values[at]
    if equal:
        return BASIC
    return PAIRWISE if counted(values, at, 0, n) > 524288 else DOUBLING


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
