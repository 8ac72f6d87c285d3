# mypy: allow-untyped-defs, allow-incomplete-defs
"""Broadcasts: one rank sends its data to all others, at once, in pieces or in segments.

Source: the algorithms of Open MPI, MPICH and StarMPI, as SMPI replays them; R. Thakur, R.
Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH", 2005; J.
Pjesivac-Grbovic et al., "Performance analysis of MPI collective operations", Cluster Computing
10(2), 2007.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.kernels.records import numbers
from ptaskmodel.mpi.collectives.selection import Collective, picked
from ptaskmodel.mpi.collectives.steps import (
    ALL,
    AWAIT_RECEIVE,
    BINARY,
    DO_RECEIVE,
    DO_SEND,
    NO_MORE,
    POST_RECEIVE,
    POST_SEND,
    REQUEST_RECEIVE,
    SHORT_SEGMENT,
    binary_family,
    child,
    doubling,
    exchange,
    fan_out,
    in_segments,
    lowest_bit,
    number_of,
    other,
    ring_of_pieces,
)
from ptaskmodel.workload.actions import BCAST

# Algorithms.
(
    BINOMIAL,
    FLAT,
    FLAT_IN_SEGMENTS,
    PIECES_RING,
    PIECES_DOUBLING,
    RELAY_BINARY,
    RELAY_LINE,
    K_NOMIAL,
    PIPELINE,
    HALVES,
) = numbers(10)

# Choice of Open MPI by ranks and bytes (see `selection`).
OPEN_MPI = """
    4 0 ompi_pipeline 32 NTSB 256 ompi_pipeline 512 mvapich2_knomial_intra_node 1024 NTSL
      32768 NTSB 131072 ompi_pipeline 262144 NTSL 524288 binomial_tree 1048576 NTSB;
    8 0 NTSB 64 binomial_tree 128 NTSB 2048 binomial_tree 8192 NTSL 1048576 ompi_pipeline;
    16 0 mvapich2_knomial_intra_node 8 NTSB 64 mvapich2_knomial_intra_node 4096 NTSB
      16384 binomial_tree 32768 NTSL;
    32 0 mvapich2_knomial_intra_node 4096 binomial_tree 1048576 scatter_rdb_allgather;
    64 0 binomial_tree 2048 mvapich2_knomial_intra_node;
    128 0 mvapich2_knomial_intra_node;
    256 0 binomial_tree 2 NTSB 16384 NTSL 32768 NTSB 65536 mvapich2_knomial_intra_node;
    1024 0 mvapich2_knomial_intra_node 16384 ompi_split_bintree 32768 mvapich2_knomial_intra_node;
    2048 0 mvapich2_knomial_intra_node 524288 scatter_rdb_allgather;
    4096 0 mvapich2_knomial_intra_node 262144 scatter_rdb_allgather;
    - 0 mvapich2_knomial_intra_node 8192 NTSB 16384 mvapich2_knomial_intra_node
      262144 scatter_rdb_allgather"""

BROADCASTS = Collective(
    "bcast",
    "bcast",
    {
        "default": BINOMIAL,
        "binomial_tree": BINOMIAL,
        "flattree": FLAT,
        "flattree_pipeline": FLAT_IN_SEGMENTS,
        "scatter_LR_allgather": PIECES_RING,
        "scatter_rdb_allgather": PIECES_DOUBLING,
        "NTSB": RELAY_BINARY,
        "NTSL": RELAY_LINE,
        "NTSL_Isend": RELAY_LINE,
        "mvapich2_knomial_intra_node": K_NOMIAL,
        "ompi": OPEN_MPI,
        "ompi_pipeline": PIPELINE,
        "ompi_split_bintree": HALVES,
    },
)


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


# Segments of halves, and of halves of what has so many bytes.
HALF_SEGMENT, LONG_HALF_SEGMENT, LONG = 1024.0, 8192.0, 370728.0


@jit
def broadcast_flat_in_segments(r, n, root, size, k):
    """The root sends whole segments of 8 KiB to the others in the order of ranks.

    As SMPI does it: what is left of several segments is not sent.
    """
    if size < SHORT_SEGMENT:
        return fan_out(r, n, root, size, k)
    pieces = int(size / SHORT_SEGMENT)
    if r != root and k < 2 * pieces:
        return (REQUEST_RECEIVE if k < pieces else AWAIT_RECEIVE), root, SHORT_SEGMENT
    if r == root and k < pieces * (n - 1):
        return DO_SEND, other(k // pieces, root), SHORT_SEGMENT
    return NO_MORE, 0, 0.0


@jit
def halves(size, unit, segment, side):
    """(bytes, segments, bytes of the last segment) of a half of a whole, the first the larger."""
    half = np.floor(size / unit / 2.0) * unit if unit > 0.0 else 0.0
    if side == 0:
        half = size - half
    pieces = number_of(half, segment)
    return half, pieces, half - (pieces - 1) * segment


@jit
def broadcast_in_halves(r, n, root, size, unit, k):
    """Halves, in segments, down the two sides of a binary tree, then swapped in pairs.

    What is less than two segments the root sends to everybody at once.
    """
    segment = HALF_SEGMENT if size < LONG else LONG_HALF_SEGMENT
    first, first_pieces, first_last = halves(size, unit, segment, 0)
    second, second_pieces, second_last = halves(size, unit, segment, 1)
    if second < segment or n == 1:
        return fan_out(r, n, root, size, k)
    own = (r - root) % n
    if own == 0:
        sides = min(2, n - 1)
        for i in range(first_pieces):
            for side in range(sides):
                pieces = first_pieces if side == 0 else second_pieces
                if i < pieces:
                    if k == 0:
                        last = first_last if side == 0 else second_last
                        sent = last if i == pieces - 1 else segment
                        return DO_SEND, (root + 1 + side) % n, sent
                    k -= 1
        if n % 2 == 0 and k == 0:
            return DO_SEND, (root + n - 1) % n, second
        return NO_MORE, 0, 0.0
    is_first = own % 2 == 1
    pieces = first_pieces if is_first else second_pieces
    last = first_last if is_first else second_last
    parent, children = binary_family(own, n)
    steps = pieces * (children + 2) + 1 if children > 0 else pieces
    if k < steps:
        if children == 0:
            return DO_RECEIVE, (root + parent) % n, 0.0
        if k == 0:
            return REQUEST_RECEIVE, (root + parent) % n, 0.0
        i, j = (k - 1) // (children + 2), (k - 1) % (children + 2)
        if j == 0:  # the next one is posted before this one is waited for
            return (REQUEST_RECEIVE if i < pieces - 1 else ALL), (root + parent) % n, 0.0
        if j == 1:
            return AWAIT_RECEIVE, (root + parent) % n, 0.0
        to = child(own, j - 2, n, BINARY)
        return DO_SEND, (root + to) % n, last if i == pieces - 1 else segment
    k -= steps
    if n % 2 == 0 and own == n - 1:
        return (DO_RECEIVE, root, 0.0) if k == 0 else (NO_MORE, 0, 0.0)
    if k > 2:
        return NO_MORE, 0, 0.0
    peer = own + 1 if is_first else own - 1
    sent, received = (first, second) if is_first else (second, first)
    return exchange(k, (root + peer) % n, (root + peer) % n, sent, received)


# How many phases there are at most, the empty ones included.
BCAST_PHASES = numbers(4, 5)[0]


@jit
def bcast(phase, r, n, root, size, unit, k, algorithm):
    """In two phases, the second of which may be empty; without the rest of `broadcast_whole`."""
    if algorithm in (PIECES_RING, PIECES_DOUBLING):
        piece = np.floor((size + n - 1) / n)
        if phase == 0:
            return scatter_pieces(r, n, root, size, piece, k)
        if algorithm == PIECES_RING:
            return ring_of_pieces(r, n, root, size, piece, k)
        if size == 0.0:
            return NO_MORE, 0, 0.0
        return doubling(r, n, root, size, piece, k)
    if phase > 0:
        return NO_MORE, 0, 0.0
    if algorithm in (RELAY_LINE, RELAY_BINARY):
        return broadcast_by_relay(r, n, root, size, k, algorithm == RELAY_BINARY)
    if algorithm == PIPELINE:
        return broadcast_in_line(r, n, root, size, k)
    if algorithm == K_NOMIAL:
        return broadcast_k_nomial(r, n, root, size, k)
    if algorithm == FLAT:
        return fan_out(r, n, root, size, k)
    if algorithm == FLAT_IN_SEGMENTS:
        return broadcast_flat_in_segments(r, n, root, size, k)
    if algorithm == HALVES:
        return broadcast_in_halves(r, n, root, size, unit, k)
    return broadcast(r, n, root, size, k)


@jit
def broadcast_whole(phase, r, n, root, size, unit, k, c):
    """As the chosen algorithms have it; in BCAST_PHASES phases, the last of which may be empty."""
    algorithm = picked(c.choices, c.of_kind[BCAST], n, size)
    if phase < 2:
        return bcast(phase, r, n, root, size, unit, k, algorithm)
    rest = rest_of_relay(size)
    if algorithm not in (RELAY_LINE, RELAY_BINARY) or rest == 0.0 or n == 1:
        return NO_MORE, 0, 0.0
    algorithm = picked(c.choices, c.of_kind[BCAST], n, rest)
    return bcast(phase - 2, r, n, root, rest, unit, k, algorithm)
