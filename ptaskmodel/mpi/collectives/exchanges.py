# mypy: allow-untyped-defs, allow-incomplete-defs
"""Collective operations in which everybody sends to everybody: all-to-alls, all-gathers, scans.

Source: the algorithms of MPICH, Open MPI and StarMPI, as SMPI replays them; J. Bruck et al.,
"Efficient algorithms for all-to-all communications in multiport message-passing systems", 1997;
J. Chen et al., "Performance evaluation of allgather algorithms on terascale Linux cluster with
Fast Ethernet", 2005 (neighbour exchange).
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
def all_gather_at_once(r, n, size, k):
    """From the ranks after one's own, then to them, all at once."""
    if k < 2 * (n - 1):
        what = POST_RECEIVE if k < n - 1 else POST_SEND
        return what, (r + 1 + k % (n - 1)) % n, size
    return (ALL, 0, 0.0) if k == 2 * (n - 1) else (NO_MORE, 0, 0.0)


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
