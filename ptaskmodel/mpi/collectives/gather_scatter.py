# mypy: allow-untyped-defs, allow-incomplete-defs
"""Gathers to one rank and scatters from one: flat, or along binomial trees.

Source: the algorithms of Open MPI and MPICH, as SMPI replays them; R. Thakur, R. Rabenseifner,
W. Gropp, "Optimization of collective communication operations in MPICH", 2005.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.kernels.records import numbers
from ptaskmodel.mpi.collectives.selection import Collective
from ptaskmodel.mpi.collectives.steps import (
    ALL,
    AWAIT_RECEIVE,
    DO_RECEIVE,
    DO_SEND,
    NO_MORE,
    POST_RECEIVE,
    POST_SEND,
    REQUEST_RECEIVE,
    fan_in,
    fan_in_by_turns,
    fan_out,
    in_segments,
    lowest_bit,
    other,
)

# Algorithms.
(
    AT_ONCE,
    TREE,
    BY_TURNS,
    IN_TWO,
) = numbers(4)

# Choices of Open MPI by ranks and bytes (see `selection`).
OPEN_MPI_GATHER = """
    4 0 ompi_linear_sync 2 ompi_basic_linear 4 ompi_binomial 32768 ompi_basic_linear
      65536 ompi_binomial 131072 ompi_linear_sync;
    8 0 ompi_binomial 1024 ompi_basic_linear 8192 ompi_binomial 32768 ompi_basic_linear
      262144 ompi_linear_sync;
    256 0 ompi_binomial;
    512 0 ompi_binomial 2048 ompi_basic_linear 8192 ompi_binomial;
    - 0 ompi_binomial"""

OPEN_MPI_SCATTER = """
    4 0 ompi_linear_nb 2 ompi_basic_linear 131072 ompi_linear_nb 262144 ompi_basic_linear;
    8 0 ompi_binomial 2048 ompi_basic_linear 4096 ompi_binomial 8192 ompi_basic_linear
      32768 ompi_linear_nb 1048576 ompi_basic_linear;
    16 0 ompi_binomial 16384 ompi_linear_nb 1048576 ompi_basic_linear;
    32 0 ompi_binomial 16384 ompi_basic_linear 32768 ompi_linear_nb;
    64 0 ompi_binomial 512 ompi_linear_nb 8192 ompi_binomial 16384 ompi_linear_nb;
    - 0 ompi_binomial 512 ompi_linear_nb"""

GATHERS = Collective(
    "gather",
    "gather",
    {
        "default": AT_ONCE,
        "mvapich2": TREE,
        "mpich": TREE,
        "ompi_basic_linear": BY_TURNS,
        "ompi_binomial": TREE,
        "ompi": OPEN_MPI_GATHER,
        "ompi_linear_sync": IN_TWO,
    },
)

SCATTERS = Collective(
    "scatter",
    "scatter",
    {
        "default": AT_ONCE,
        "mpich": TREE,
        "ompi_basic_linear": BY_TURNS,
        "ompi_binomial": TREE,
        "ompi": OPEN_MPI_SCATTER,
        "ompi_linear_nb": AT_ONCE,
    },
)


@jit
def scatter_tree(r, n, root, size, k):
    """So many bytes for each rank, down a binomial tree, the smallest subtree first."""
    own = (r - root) % n
    lowest = lowest_bit(own, n)
    if own > 0:
        if k == 0:
            return DO_RECEIVE, (own - lowest + root) % n, min(lowest, n - own) * size
        k -= 1
    mask = 1 << k
    if mask < lowest and own + mask < n:
        return DO_SEND, (own + mask + root) % n, min(mask, n - own - mask) * size
    return NO_MORE, 0, 0.0


@jit
def gather_tree(r, n, root, size, k):
    """So many bytes from each rank, up a binomial tree, the smallest subtree first."""
    own = (r - root) % n
    lowest = lowest_bit(own, n)
    mask = 1 << k
    if mask < lowest and own + mask < n:
        return DO_RECEIVE, (own + mask + root) % n, min(mask, n - own - mask) * size
    mask >>= 1
    at_end = k == 0 or (mask < lowest and own + mask < n)
    if own > 0 and at_end:
        return DO_SEND, (own - lowest + root) % n, min(lowest, n - own) * size
    return NO_MORE, 0, 0.0


@jit
def fan_out_each(values, at, r, n, root, unit, k):
    """As `fan_out`, with what the fields say for each rank."""
    what, peer, size = fan_out(r, n, root, 0.0, k)
    if what == POST_SEND:
        size = np.floor(values[at + peer]) * unit
    return what, peer, size


@jit
def fan_out_by_turns(r, n, root, size, k):
    """The root sends to one rank after the other."""
    if r != root:
        return (DO_RECEIVE, root, size) if k == 0 else (NO_MORE, 0, 0.0)
    return (DO_SEND, other(k, r), size) if k < n - 1 else (NO_MORE, 0, 0.0)


@jit
def gather_in_two(r, n, root, size, k):
    """The root asks one rank after the other, and waits for the first part of what each has."""
    first = in_segments(size, 32768.0 if size > 92160.0 else 1024.0)
    if r != root:
        if k == 0:
            return DO_RECEIVE, root, 0.0
        if k > 2:
            return NO_MORE, 0, 0.0
        return DO_SEND, root, first if k == 1 else size - first
    if k < 4 * (n - 1):
        peer, what = other(k // 4, root), k % 4
        if what == 0:
            return REQUEST_RECEIVE, peer, 0.0
        if what == 1:
            return DO_SEND, peer, 0.0
        return (POST_RECEIVE if what == 2 else AWAIT_RECEIVE), peer, 0.0
    return (ALL, 0, 0.0) if k == 4 * (n - 1) else (NO_MORE, 0, 0.0)


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
def scatter(r, n, root, size, k, algorithm):
    if algorithm == BY_TURNS:
        return fan_out_by_turns(r, n, root, size, k)
    if algorithm == TREE:
        return scatter_tree(r, n, root, size, k)
    return fan_out(r, n, root, size, k)
