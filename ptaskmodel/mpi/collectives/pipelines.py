# mypy: allow-untyped-defs, allow-incomplete-defs
"""Broadcasts and reductions in segments of which none waits for the one before.

Source: the algorithms of StarMPI and Open MPI, as SMPI replays them; J. Pjesivac-Grbovic et al.,
"Performance analysis of MPI collective operations", Cluster Computing 10(2), 2007.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.mpi.collectives.reducing import binary_family, child
from ptaskmodel.mpi.collectives.segments import SHORT_SEGMENT, number_of
from ptaskmodel.mpi.collectives.selection import BINARY
from ptaskmodel.mpi.collectives.steps import (
    ALL,
    AWAIT_RECEIVE,
    DO_RECEIVE,
    DO_SEND,
    NO_MORE,
    POST_SEND,
    REQUEST_RECEIVE,
    exchange,
    other,
)
from ptaskmodel.mpi.collectives.trees import fan_in, fan_out

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
def reduce_in_line(r, n, root, size, k):
    """Segments of 8 KiB along the ranks as counted from the root, the last first.

    What is left of several segments everybody sends to the root.
    """
    own = (r - root) % n
    before, after = (r + 1) % n, (r - 1 + n) % n
    if size <= SHORT_SEGMENT:
        if own < n - 1:
            if k == 0:
                return DO_RECEIVE, before, size
            k -= 1
        return (DO_SEND, after, size) if own > 0 and k == 0 else (NO_MORE, 0, 0.0)
    pieces = int(size / SHORT_SEGMENT)
    if own == n - 1:
        steps = pieces + 1
        if k < steps and n > 1:
            return (POST_SEND, after, SHORT_SEGMENT) if k < pieces else (ALL, 0, 0.0)
    else:
        if k < pieces:
            return REQUEST_RECEIVE, before, SHORT_SEGMENT
        sends = 1 if own > 0 else 0
        steps = pieces * (2 + sends) + 1
        if k < steps - 1:
            i = (k - pieces) % (1 + sends)
            return (AWAIT_RECEIVE, before, 0.0) if i == 0 else (POST_SEND, after, SHORT_SEGMENT)
        if k == steps - 1:
            return ALL, 0, 0.0
    rest = size - pieces * SHORT_SEGMENT
    if rest == 0.0 or n == 1:
        return NO_MORE, 0, 0.0
    return fan_in(r, n, root, rest, k - steps)


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
