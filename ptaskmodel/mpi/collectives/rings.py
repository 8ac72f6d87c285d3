# mypy: allow-untyped-defs, allow-incomplete-defs
"""Exchanges that several collectives share: rings, pairs, recursive doubling and halving.

If the number of ranks is not a power of two, recursive halving first merges each of the first few
pairs of ranks into one.
Source: the algorithms of MPICH, Open MPI and StarMPI, as SMPI replays them; R. Thakur, R.
Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH", 2005.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.mpi.collectives.steps import (
    ALL,
    AWAIT_RECEIVE,
    AWAIT_SEND,
    DO_RECEIVE,
    DO_SEND,
    NO_MORE,
    POST_RECEIVE,
    POST_SEND,
    REQUEST_RECEIVE,
    REQUEST_SEND,
    exchange,
    other,
    pieces,
    swap,
)


@jit
def all_to_all_pairs(r, n, size, k):
    """To and from each other rank in order, all at once."""
    if k < 2 * (n - 1):
        return (POST_SEND if k % 2 == 0 else POST_RECEIVE), other(k // 2, r), size
    return (ALL, 0, 0.0) if k == 2 * (n - 1) else (NO_MORE, 0, 0.0)


@jit
def prefix(r, n, size, k):
    """From all lower ranks, to all higher ones; then they are waited for in this order."""
    waits = k >= n - 1
    if waits:
        k -= n - 1
    if k < r:
        return (AWAIT_RECEIVE if waits else REQUEST_RECEIVE), k, size
    if k < n - 1:
        return (AWAIT_SEND if waits else REQUEST_SEND), k + 1, size
    return NO_MORE, 0, 0.0


@jit
def ring(r, n, size, k):
    """In round i to the rank i further, from the one as far back."""
    i = k // 3 + 1
    if i >= n:
        return NO_MORE, 0, 0.0
    return exchange(k % 3, (r + i) % n, (r - i + n) % n, size, size)


@jit
def pairwise(r, n, size, k):
    """In round i with the rank whose number differs by i in its bits; n: a power of two."""
    if n & (n - 1):
        return ring(r, n, size, k)
    i = k // 3 + 1
    return swap(k % 3, r ^ i, size) if i < n else (NO_MORE, 0, 0.0)


@jit
def to_the_right(r, n, size, rounds, k):
    """In each round to the next rank, from the one before."""
    if k // 3 >= rounds:
        return NO_MORE, 0, 0.0
    return exchange(k % 3, (r + 1) % n, (r - 1 + n) % n, size, size)


@jit
def ring_of_pieces(r, n, root, total, piece, k):
    """The pieces of a whole, which ranks have as counted from the root, round a ring."""
    i = k // 3
    if i >= n - 1:
        return NO_MORE, 0, 0.0
    own, next_one = (r - i - root) % n, (r - i - 1 - root) % n
    return exchange(
        k % 3,
        (r + 1) % n,
        (r - 1 + n) % n,
        pieces(total, piece, own, own + 1),
        pieces(total, piece, next_one, next_one + 1),
    )


@jit
def hands_on(r, n, mine, mask, k):
    """Step k of handing what came from an incomplete group on, down a tree in the group of r.

    The group is of the ``mask`` ranks from ``mine`` on. Returns (what, peer, steps left).
    """
    complete = n - mine - mask
    half = mask >> 1
    while half > 0:
        peer = r ^ half
        root = r - r % (2 * half)
        if peer > r and r < root + complete and peer >= root + complete:
            if k == 0:
                return DO_SEND, peer, 0
            k -= 1
        elif peer < r and peer < root + complete and r >= root + complete:
            if k == 0:
                return DO_RECEIVE, peer, 0
            k -= 1
        half >>= 1
    return NO_MORE, 0, k


@jit
def doubling(r, n, root, total, piece, k):
    """Recursive doubling of the pieces of a whole, which ranks have as counted from the root.

    Groups of 1, 2, 4, ... ranks exchange what they have. Where the other group is incomplete, those
    who received hand it on inside their own.
    """
    own = (r - root) % n
    mask = 1
    while mask < n:
        partner = own ^ mask
        theirs, mine = partner - partner % mask, own - own % mask
        got = pieces(total, piece, min(theirs, n), min(theirs + mask, n))
        if partner < n:
            if k < 3:
                sent = pieces(total, piece, mine, min(mine + mask, n))
                return exchange(k, (partner + root) % n, (partner + root) % n, sent, got)
            k -= 3
        if theirs + mask > n:
            what, peer, k = hands_on(own, n, mine, mask, k)
            if what != NO_MORE:
                return what, (peer + root) % n, got
        mask <<= 1
    return NO_MORE, 0, 0.0


@jit
def log2(power):
    rounds = 0
    while (1 << rounds) < power:
        rounds += 1
    return rounds


@jit
def rank_of(place, rest, odd):
    """The rank at a place among those that stay: of a pair the second (odd 1) or the first."""
    return 2 * place + odd if place < rest else place + rest


@jit
def part(count, parts, first, last):
    """Elements of parts first, ..., last - 1 of a whole; the last part has what is left besides."""
    each = np.floor(count / parts)
    return (last - first) * each + (count - parts * each if last == parts else 0.0)


@jit
def half_way(place, power, rounds):
    """The first part that is left to a place after so many rounds of halving, nearest first."""
    low = 0
    for s in range(rounds):
        if place & (1 << s):
            low += power >> (s + 1)
    return low


@jit
def halve(place, power, s, peer, count, unit, k):
    """Step k of round s: send the half of the parts that the peer keeps, receive one's own."""
    low = half_way(place, power, s)
    half = power >> (s + 1)
    lower = part(count, power, low, low + half) * unit
    upper = part(count, power, low + half, low + 2 * half) * unit
    if place & (1 << s):
        return exchange(k, peer, peer, lower, upper)
    return exchange(k, peer, peer, upper, lower)


@jit
def kept(place, power, s, count, unit):
    """Bytes of (the parts that a place has after round s, those of its peer in it)."""
    low = half_way(place, power, s + 1)
    half = power >> (s + 1)
    peer = low - half if place & (1 << s) else low + half
    return (
        part(count, power, low, low + half) * unit,
        part(count, power, peer, peer + half) * unit,
    )
