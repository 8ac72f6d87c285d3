# mypy: allow-untyped-defs, allow-incomplete-defs
"""Steps of a collective operation, and the common part of its algorithms.

An algorithm is a function of a rank, the number of ranks and the number k of a step, and returns
``(what, peer, bytes)``. It stores nothing between steps: k is the whole position of a rank in it.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.kernels.records import numbers

# What a step does. What is posted by POST_... is waited for by ALL, what REQUEST_... posts by
# AWAIT_..., the oldest with a rank, or by AWAIT_ANY, the first that is over; what JOIN_... posts
# is part of the newest request, which OPEN_REQUEST makes; COMPUTE: bytes are flops.
(
    POST_SEND, POST_RECEIVE, DO_SEND, DO_RECEIVE, ALL, COMPUTE, NO_MORE, FINISHED, REQUEST_SEND,
    REQUEST_RECEIVE, AWAIT_SEND, AWAIT_RECEIVE, AWAIT_ANY, JOIN_SEND, JOIN_RECEIVE,
    OPEN_REQUEST, CLOSE_REQUEST,
) = numbers(17)  # fmt: skip
# Nobody wanted the kernel that knows the steps: no step.
UNWANTED = numbers(-1, 0)[0]
SHORT_SEGMENT = 8192.0  # bytes


@jit
def other(k, r):
    """The k-th rank that is not r."""
    return k if k < r else k + 1


@jit
def exchange(k, to, source, sent, received):
    """Step k (0, 1, 2) of a message to one rank and one from another, both waited for."""
    if k == 0:
        return POST_SEND, to, sent
    if k == 1:
        return POST_RECEIVE, source, received
    return ALL, 0, 0.0


@jit
def swap(k, peer, size):
    """Step k (0, 1, 2) of messages of one size with a rank, both ways."""
    return exchange(k, peer, peer, size, size)


@jit
def lowest_bit(own, n):
    """The lowest bit set in a number; of 0 the smallest power of two that is not below n."""
    mask = 1
    while mask < n and own & mask == 0:
        mask <<= 1
    return mask


@jit
def power_below(n):
    """The largest power of two that is not above n."""
    power = 1
    while 2 * power <= n:
        power *= 2
    return power


@jit
def counted(values, at, first, last):
    """Elements that the fields of ranks first, ..., last - 1 say, together."""
    total = 0.0
    for j in range(first, last):
        total += np.floor(values[at + j])
    return total


@jit
def pieces(total, piece, first, last):
    """Bytes of pieces first, ..., last - 1 of a whole; the last piece is what is left."""
    return min(total, last * piece) - min(total, first * piece)


@jit
def computed(phase, k, flops):
    """What each rank computes after its messages."""
    if phase > 0:
        return FINISHED, 0, 0.0
    return (COMPUTE, 0, flops) if k == 0 and flops > 0.0 else (NO_MORE, 0, 0.0)


@jit
def in_segments(size, segment):
    """Bytes of a segment where the whole is cut at ``segment`` bytes (0: it is not)."""
    return segment if 0.0 < segment < size else size


@jit
def number_of(size, segment):
    """How many segments there are."""
    return int(np.ceil(size / segment)) if segment > 0.0 else 0


@jit
def sized(values, first, at, last, types, own):
    """The bytes of an element: by the datatype in field ``at``, if it is there."""
    if first + at < last:
        number = int(values[first + at])
        return 0.0 if number < 0 else types[number]
    return own


@jit
def rooted(values, first, at, last):
    """The root in field ``at``; 0 if it is not there."""
    return int(values[first + at]) if first + at < last else 0


@jit
def sized_each(values, at, last, n, types, own):
    """The bytes of an element of an allgatherv."""
    typed = not has_displacements_alone(n, last - at)
    return sized(values, at, n + 1, last if typed else at, types, own)


@jit
def has_displacements_alone(n, fields):
    """Whether an allgatherv names displacements but no datatypes: as many fields as ranks."""
    return 2 < fields - 1 - n <= n
