# mypy: allow-untyped-defs, allow-incomplete-defs
"""Collective operations that send a whole in segments, one behind the other, along lines and trees.

Source: the algorithms of Open MPI, MPICH and StarMPI, as SMPI replays them; J. Pjesivac-Grbovic et
al., "Performance analysis of MPI collective operations", Cluster Computing 10(2), 2007.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.mpi.collectives.steps import (
    ALL,
    AWAIT_RECEIVE,
    DO_RECEIVE,
    DO_SEND,
    NO_MORE,
    POST_RECEIVE,
    POST_SEND,
    REQUEST_RECEIVE,
    exchange,
    other,
)

SHORT_SEGMENT = 8192.0


@jit
def in_segments(size, segment):
    """Bytes of a segment where the whole is cut at ``segment`` bytes (0: it is not)."""
    return segment if 0.0 < segment < size else size


@jit
def number_of(size, segment):
    """How many segments there are."""
    return int(np.ceil(size / segment)) if segment > 0.0 else 0


@jit
def relayed(left, right, before, pieces, k):
    """Step k of handing segments of 8 KiB on, from the one before (-1: none) to the next ones.

    What is received is posted at once; who has nobody after him waits for all of it together.
    """
    sends = (1 if left >= 0 else 0) + (1 if right >= 0 else 0)
    if before < 0:
        if k < pieces * sends:
            return POST_SEND, left if k % sends == 0 else right, SHORT_SEGMENT
        return (ALL, 0, 0.0) if k == pieces * sends else (NO_MORE, 0, 0.0)
    if sends == 0:
        if k < pieces:
            return POST_RECEIVE, before, SHORT_SEGMENT
        return (ALL, 0, 0.0) if k == pieces else (NO_MORE, 0, 0.0)
    if k < pieces:
        return REQUEST_RECEIVE, before, SHORT_SEGMENT
    k -= pieces
    if k < pieces * (1 + sends):
        i = k % (1 + sends)
        if i == 0:
            return AWAIT_RECEIVE, before, 0.0
        return POST_SEND, left if i == 1 else right, SHORT_SEGMENT
    return (ALL, 0, 0.0) if k == pieces * (1 + sends) else (NO_MORE, 0, 0.0)


@jit
def short_relay(left, right, before, size, k):
    """Step k of handing a whole on, as `relayed`."""
    if before >= 0:
        if k == 0:
            return DO_RECEIVE, before, size
        k -= 1
    if left >= 0 and k == 0:
        return DO_SEND, left, size
    if right >= 0 and k == 1:
        return DO_SEND, right, size
    return NO_MORE, 0, 0.0


@jit
def broadcast_by_relay(r, n, root, size, k, by_tree):
    """From the root to rank 0, then along a line of ranks, or down a binary tree; but the rest.

    The rest is what is left of several segments: it is broadcast after them.
    """
    if n == 1:
        return NO_MORE, 0, 0.0
    if root != 0 and (r == root or r == 0):
        if k == 0:
            return (DO_SEND, 0, size) if r == root else (DO_RECEIVE, root, size)
        k -= 1
    if by_tree:
        left, right, before = 2 * r + 1, 2 * r + 2, (r - 1) // 2
    else:
        left, right, before = r + 1, n, r - 1
    left = left if left < n else -1
    right = right if right < n else -1
    before = before if r > 0 else -1
    if size <= SHORT_SEGMENT:
        return short_relay(left, right, before, size, k)
    return relayed(left, right, before, int(size / SHORT_SEGMENT), k)


@jit
def rest_of_relay(size):
    """What `broadcast_by_relay` leaves."""
    return size - np.floor(size / SHORT_SEGMENT) * SHORT_SEGMENT if size > SHORT_SEGMENT else 0.0


@jit
def broadcast_in_line(r, n, root, size, k):
    """Segments along the ranks as counted from the root, each received before it is handed on."""
    if n == 1:
        return NO_MORE, 0, 0.0
    segment = 131072.0
    if n >= 1.6134e-6 * size + 2.1102:
        if n < 2.3679e-6 * size + 1.1787:
            segment = 65536.0
        elif n < 3.2118e-6 * size + 8.7936:
            segment = 16384.0
    segment = in_segments(size, segment)
    pieces = max(number_of(size, segment), 1)
    last = size - (pieces - 1) * segment
    own = (r - root) % n
    before, after = (r - 1 + n) % n, (r + 1) % n
    if own == 0:
        if k < 2 * pieces:
            sent = last if k // 2 == pieces - 1 else segment
            return (POST_SEND, after, sent) if k % 2 == 0 else (ALL, 0, 0.0)
        return NO_MORE, 0, 0.0
    if k == 0:
        return REQUEST_RECEIVE, before, 0.0
    sends = own < n - 1
    steps = 4 if sends else 2
    i, j = (k - 1) // steps, (k - 1) % steps
    if i >= pieces:
        return NO_MORE, 0, 0.0
    if j == 0:  # the next one is posted before this one is waited for
        return (REQUEST_RECEIVE, before, 0.0) if i < pieces - 1 else (ALL, 0, 0.0)
    if j == 1:
        return AWAIT_RECEIVE, before, 0.0
    if j == 2:
        return POST_SEND, after, last if i == pieces - 1 else segment
    return ALL, 0, 0.0


@jit
def broadcast_k_nomial(r, n, root, size, k):
    """Down a tree of radix 4 over ranks as counted from the root, its largest subtrees first."""
    own = (r - root) % n
    mask = 1
    while mask < n and own % (4 * mask) == 0:
        mask *= 4
    if mask < n and own > 0:
        if k == 0:
            return DO_RECEIVE, (own - own % (4 * mask) + root) % n, size
        k -= 1
    mask //= 4
    while mask > 0:
        children = min(3, (n - 1 - own) // mask)
        if k < children:
            return POST_SEND, (r + mask * (k + 1)) % n, size
        if k == children:
            return ALL, 0, 0.0
        k -= children + 1
        mask //= 4
    return NO_MORE, 0, 0.0


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
