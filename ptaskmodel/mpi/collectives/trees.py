# mypy: allow-untyped-defs, allow-incomplete-defs
"""Collective operations from or to one rank: flat, and down and up binomial trees.

Source: the algorithms of Open MPI and MPICH, as SMPI replays them; R. Thakur, R. Rabenseifner,
W. Gropp, "Optimization of collective communication operations in MPICH", 2005.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.mpi.collectives.steps import (
    ALL,
    DO_RECEIVE,
    DO_SEND,
    NO_MORE,
    POST_RECEIVE,
    POST_SEND,
    lowest_bit,
    other,
)


@jit
def broadcast(r, n, root, size, k):
    """Binomial tree over the ranks as counted from the root, the largest subtree first."""
    own = (r - root) % n
    mask = lowest_bit(own, n)
    if own > 0:
        if k == 0:
            return DO_RECEIVE, (own - mask + root) % n, size
        k -= 1
    mask >>= 1
    while mask > 0:
        if own + mask < n:
            if k == 0:
                return DO_SEND, (own + mask + root) % n, size
            k -= 1
        mask >>= 1
    return NO_MORE, 0, 0.0


@jit
def scatter_pieces(r, n, root, total, piece, k):
    """A whole cut into a piece for each rank, down a binomial tree; nobody sends nothing."""
    own = (r - root) % n
    mask = lowest_bit(own, n)
    have = min(max(total - own * piece, 0.0), mask * piece)
    if own > 0 and have > 0.0:
        if k == 0:
            return DO_RECEIVE, (own - mask + root) % n, have
        k -= 1
    mask >>= 1
    while mask > 0:
        sent = have - mask * piece
        if own + mask < n and sent > 0.0:
            if k == 0:
                return DO_SEND, (own + mask + root) % n, sent
            k -= 1
            have -= sent
        mask >>= 1
    return NO_MORE, 0, 0.0


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
def reduce_tree(r, n, root, size, k):
    """As much from each rank, up a binomial tree, the smallest subtree first."""
    what, peer, sent = gather_tree(r, n, root, 1.0, k)
    return what, peer, size if sent > 0.0 else 0.0


@jit
def reduce_k_nomial(r, n, root, size, k):
    """Up a tree of radix 4 over ranks as counted from the root."""
    own = (r - root) % n
    mask = 1
    while mask < n and own % (4 * mask) == 0:
        for i in range(1, 4):
            if own + i * mask < n:
                if k == 0:
                    return POST_RECEIVE, (r + i * mask) % n, size
                k -= 1
        mask *= 4
    if k == 0:
        return ALL, 0, 0.0
    if own > 0 and k < 3:
        to = (own - own % (4 * mask) + root) % n
        return (POST_SEND, to, size) if k == 1 else (ALL, 0, 0.0)
    return NO_MORE, 0, 0.0


@jit
def fan_in(r, n, root, size, k):
    """Everybody sends to the root, which receives in the order of ranks, all at once."""
    if r == root:
        if k < n - 1:
            return POST_RECEIVE, other(k, r), size
        return (ALL, 0, 0.0) if k == n - 1 else (NO_MORE, 0, 0.0)
    if k == 0:
        return POST_SEND, root, size
    return (ALL, 0, 0.0) if k == 1 else (NO_MORE, 0, 0.0)


@jit
def fan_in_by_turns(r, n, root, size, k, backwards):
    """Everybody sends to the root, which receives from one rank after the other."""
    if r != root:
        return (DO_SEND, root, size) if k == 0 else (NO_MORE, 0, 0.0)
    if k < n - 1:
        return DO_RECEIVE, other(n - 2 - k if backwards else k, r), size
    return NO_MORE, 0, 0.0


@jit
def fan_out(r, n, root, size, k):
    """The root sends to the others in the order of ranks, all at once."""
    if r != root:
        return (DO_RECEIVE, root, size) if k == 0 else (NO_MORE, 0, 0.0)
    if k < n - 1:
        return POST_SEND, other(k, r), size
    return (ALL, 0, 0.0) if k == n - 1 else (NO_MORE, 0, 0.0)


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
