# mypy: allow-untyped-defs, allow-incomplete-defs
"""Barriers: empty messages, after which every rank knows that all ranks have arrived.

Source: the algorithms of Open MPI, as SMPI replays them; D. Hensgen, R. Finkel, U. Manber, "Two
algorithms for barrier synchronization", 1988.
"""

from __future__ import annotations

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.kernels.records import numbers
from ptaskmodel.mpi.collectives.selection import Collective, Need
from ptaskmodel.mpi.collectives.steps import (
    ALL,
    DO_RECEIVE,
    DO_SEND,
    NO_MORE,
    POST_RECEIVE,
    POST_SEND,
    exchange,
    lowest_bit,
    power_below,
    swap,
)

# Algorithms.
(
    LINEAR,
    BRUCK,
    DOUBLING,
    RING,
    TREE,
    TWO,
) = numbers(6)

# Choice of Open MPI by ranks and bytes (see `selection`).
OPEN_MPI = """
    4 0 ompi_recursivedoubling;
    8 0 ompi_basic_linear;
    64 0 ompi_recursivedoubling;
    256 0 ompi_bruck;
    512 0 ompi_tree;
    1024 0 ompi_bruck;
    4096 0 ompi_tree;
    - 0 ompi_bruck"""

BARRIERS = Collective(
    "barrier",
    "barrier",
    {
        "default": LINEAR,
        "mpich": BRUCK,
        "ompi_basic_linear": LINEAR,
        "ompi_bruck": BRUCK,
        "ompi_doublering": RING,
        "ompi_recursivedoubling": DOUBLING,
        "mvapich2": DOUBLING,
        "mvapich2_pair": DOUBLING,
        "ompi_tree": TREE,
        "ompi_two_procs": TWO,
        "ompi": OPEN_MPI,
    },
    needs={"ompi_two_procs": Need(lambda ranks: ranks == 2, "is 2")},
)


@jit
def linear_barrier(r, n, k):
    """Every rank sends to rank 0, which then sends to every rank."""
    if r > 0:
        if k == 0:
            return DO_SEND, 0, 0.0
        if k == 1:
            return DO_RECEIVE, 0, 0.0
        return NO_MORE, 0, 0.0
    if k < n - 1:
        return POST_RECEIVE, k + 1, 0.0
    if k == n - 1:
        return ALL, 0, 0.0
    k -= n
    if k < n - 1:
        return POST_SEND, k + 1, 0.0
    if k == n - 1:
        return ALL, 0, 0.0
    return NO_MORE, 0, 0.0


@jit
def bruck_barrier(r, n, k):
    """In round i tell the rank 2^i further, and hear from the one as far back."""
    distance = 1 << (k // 3)
    if distance >= n:
        return NO_MORE, 0, 0.0
    return exchange(k % 3, (r + distance) % n, (r - distance + n) % n, 0.0, 0.0)


@jit
def ring_barrier(r, n, k):
    """Twice round all ranks."""
    left, right = (r - 1 + n) % n, (r + 1) % n
    if k >= 4:
        return NO_MORE, 0, 0.0
    hears = k % 2 == (1 if r == 0 else 0)
    return (DO_RECEIVE, left, 0.0) if hears else (DO_SEND, right, 0.0)


@jit
def tree_barrier(r, n, k):
    """Up a binomial tree to rank 0, and down again."""
    lowest = lowest_bit(r, n)
    children = 0
    while (1 << children) < lowest and r + (1 << children) < n:
        children += 1
    if k < children:
        return DO_RECEIVE, r + (1 << k), 0.0
    k -= children
    if r > 0:
        if k < 2:
            return (DO_SEND if k == 0 else DO_RECEIVE), r - lowest, 0.0
        k -= 2
    if k < children:
        return DO_SEND, r + (1 << (children - 1 - k)), 0.0
    return NO_MORE, 0, 0.0


@jit
def doubling_barrier(r, n, k):
    """Pairs at distance 1, 2, 4, ...; a rank beyond a power of two sends to one before it."""
    power = power_below(n)
    rest = n - power
    if r >= power:
        return swap(k, r - power, 0.0) if k < 3 else (NO_MORE, 0, 0.0)
    if r < rest:
        if k == 0:
            return DO_RECEIVE, r + power, 0.0
        k -= 1
    rounds = 0
    while (1 << rounds) < power:
        rounds += 1
    if k < 3 * rounds:
        return swap(k % 3, r ^ (1 << (k // 3)), 0.0)
    if r < rest and k == 3 * rounds:
        return DO_SEND, r + power, 0.0
    return NO_MORE, 0, 0.0


@jit
def barrier(r, n, k, algorithm):
    if algorithm == BRUCK:
        return bruck_barrier(r, n, k)
    if algorithm == DOUBLING:
        return doubling_barrier(r, n, k)
    if algorithm == RING:
        return ring_barrier(r, n, k)
    if algorithm == TREE:
        return tree_barrier(r, n, k)
    if algorithm == TWO:
        return swap(k, (r + 1) % 2, 0.0) if k < 3 else (NO_MORE, 0, 0.0)
    return linear_barrier(r, n, k)
