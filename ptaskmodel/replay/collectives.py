"""Collective operations as messages: step k of what a rank does in one.

Each function gives ``(what, peer, bytes)`` of a step; ranks are those of the application. Nothing
is kept between steps: where a rank stands in a collective is one number.

Source: the default algorithms of SimGrid's SMPI, as its documentation and its replays show them;
pairwise and Bruck's all-to-all after J. Bruck et al., "Efficient algorithms for all-to-all
communications in multiport message-passing systems", 1997.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.core.state import numbers
from ptaskmodel.jit import jit
from ptaskmodel.workload.ti_actions import (
    ALLGATHER,
    ALLGATHERV,
    ALLREDUCE,
    ALLTOALL,
    ALLTOALLV,
    BARRIER,
    BCAST,
    EXSCAN,
    GATHER,
    GATHERV,
    REDUCE,
    REDUCESCATTER,
    SCAN,
    SCATTER,
)

# What a step does. Sends and receives of POST_... are waited for by ALL; COMPUTE: bytes are flops.
POST_SEND, POST_RECEIVE, DO_SEND, DO_RECEIVE, ALL, COMPUTE, NO_MORE, FINISHED = numbers(8)

# Algorithms: as the sizes ask, or one for all of them.
AUTOMATIC, BASIC, PAIRWISE, BRUCK, DOUBLING = numbers(5)


@jit
def barrier(r, n, k):
    """Linear: everybody tells rank 0, which then tells everybody."""
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
def broadcast(r, n, root, size, k):
    """Binomial tree over the ranks as counted from the root."""
    own = (r - root) % n
    mask = 1
    if own > 0:
        while own & mask == 0:
            mask <<= 1
        if k == 0:
            return DO_RECEIVE, (own - mask + root) % n, size
        k -= 1
    else:
        while mask < n:
            mask <<= 1
    mask >>= 1
    while mask > 0:
        if own + mask < n:
            if k == 0:
                return DO_SEND, (own + mask + root) % n, size
            k -= 1
        mask >>= 1
    return NO_MORE, 0, 0.0


@jit
def other(k, r):
    """The k-th rank that is not r."""
    return k if k < r else k + 1


@jit
def fan_in(r, n, root, size, k):
    """Everybody sends to the root, which receives in the order of ranks."""
    if r == root:
        if k < n - 1:
            return POST_RECEIVE, other(k, r), size
        return (ALL, 0, 0.0) if k == n - 1 else (NO_MORE, 0, 0.0)
    if k == 0:
        return POST_SEND, root, size
    return (ALL, 0, 0.0) if k == 1 else (NO_MORE, 0, 0.0)


@jit
def all_to_all_pairs(r, n, size, k):
    """To and from each other rank in order, all at once."""
    if k < 2 * (n - 1):
        return (POST_SEND if k % 2 == 0 else POST_RECEIVE), other(k // 2, r), size
    return (ALL, 0, 0.0) if k == 2 * (n - 1) else (NO_MORE, 0, 0.0)


@jit
def prefix(r, n, size, k):
    """From all lower ranks, to all higher ones."""
    if k < r:
        return POST_RECEIVE, k, size
    if k < n - 1:
        return POST_SEND, k + 1, size
    return (ALL, 0, 0.0) if k == n - 1 else (NO_MORE, 0, 0.0)


@jit
def exchange(k, to, source, sent, received):
    """Step k (0, 1, 2) of a message to one rank and one from another, both waited for."""
    if k == 0:
        return POST_SEND, to, sent
    if k == 1:
        return POST_RECEIVE, source, received
    return ALL, 0, 0.0


@jit
def alltoall_kind(n, size):
    """The algorithm that the number of ranks and the bytes for each ask for."""
    if n == 2:
        if (
            size < 2
            or 4 <= size < 16
            or 64 <= size < 256
            or 4096 <= size < 32768
            or size >= 1048576
        ):
            return PAIRWISE
        return BASIC
    if n < 8:
        return PAIRWISE if 524288 <= size < 1048576 else BASIC
    if n < 16:
        return BASIC
    if n < 32:
        return BRUCK if 4 <= size < 512 else BASIC
    if n < 64:
        return BRUCK if size < 512 else BASIC
    if n < 256:
        if size < 1024:
            return BRUCK
        return PAIRWISE if size >= 262144 else BASIC
    if n < 512:
        if size < 1024:
            return BRUCK
        return PAIRWISE if size >= 32768 else BASIC
    if n < 1024:
        if size < 512:
            return BRUCK
        return PAIRWISE if size >= 262144 else BASIC
    most = 512 if n < 2048 else (1024 if n < 4096 else 2048)
    return BRUCK if size < most else BASIC


@jit
def alltoall(r, n, size, k, algorithm):
    """To each other rank as many bytes, by one of three algorithms."""
    kind = alltoall_kind(n, size) if algorithm == AUTOMATIC else algorithm
    if kind == BASIC:
        if k < n - 1:
            return POST_RECEIVE, (r + 1 + k) % n, size
        k -= n - 1
        if k < n - 1:
            return POST_SEND, (r - 1 - k + n) % n, size
        return (ALL, 0, 0.0) if k == n - 1 else (NO_MORE, 0, 0.0)
    if kind == PAIRWISE:
        i = k // 3 + 1
        if i >= n:
            return NO_MORE, 0, 0.0
        if n & (n - 1):
            return exchange(k % 3, (r + i) % n, (r - i + n) % n, size, size)
        return exchange(k % 3, r ^ i, r ^ i, size, size)
    distance = 1 << (k // 3)
    if distance >= n:
        return NO_MORE, 0, 0.0
    whole, rest = n // (2 * distance), n % (2 * distance)
    blocks = whole * distance + max(rest - distance, 0)
    part = size * blocks
    return exchange(k % 3, (r + distance) % n, (r - distance + n) % n, part, part)


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
def part_outside(values, at, n, root, mask):
    """Elements of all ranks but the ``mask`` ranks from ``root`` on."""
    total = 0.0
    for j in range(n):
        if j < root or j >= root + mask:
            total += np.floor(values[at + j])
    return total


@jit
def doubling_scatter(values, at, r, n, unit, k):
    """Of reduce-scatter: recursive doubling, for any number of ranks.

    Groups of ``mask`` ranks exchange all but what their own group is to keep. Where the other group
    is incomplete, those who received hand it on inside their group, down a tree.
    """
    mask = 1
    level = 0
    while mask < n:
        partner = r ^ mask
        theirs = (partner >> level) << level
        mine = (r >> level) << level
        received = part_outside(values, at, n, theirs, mask) * unit
        if partner < n:
            if k < 3:
                sent = part_outside(values, at, n, mine, mask) * unit
                return exchange(k, partner, partner, sent, received)
            k -= 3
        if theirs + mask > n:
            complete = n - mine - mask
            depth = level
            half = mask >> 1
            while half > 0:
                peer = r ^ half
                root = (r >> depth) << depth
                if peer > r and r < root + complete and peer >= root + complete:
                    if k == 0:
                        return DO_SEND, peer, received
                    k -= 1
                elif peer < r and peer < root + complete and r >= root + complete:
                    if k == 0:
                        return DO_RECEIVE, peer, received
                    k -= 1
                half >>= 1
                depth -= 1
        mask <<= 1
        level += 1
    return NO_MORE, 0, 0.0


@jit
def fan_out(values, at, each, r, n, root, size, unit, k):
    """The root sends to the others in the order of ranks: ``size``, or what its fields say."""
    if r == root:
        if k < n - 1:
            to = other(k, r)
            return POST_SEND, to, np.floor(values[at + to]) * unit if each else size
        return (ALL, 0, 0.0) if k == n - 1 else (NO_MORE, 0, 0.0)
    if k == 0:
        return DO_RECEIVE, root, 0.0
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
def chosen(values, at, n, kind, algorithm):
    """The algorithm of an action, where it does not depend on sizes alone."""
    if kind != REDUCESCATTER:
        return algorithm
    total = 0.0
    equal = True
    for j in range(n):
        total += np.floor(values[at + j])
        equal = equal and values[at + j] == values[at]
    if equal:
        return BASIC
    return PAIRWISE if total > 524288 else DOUBLING


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
def collective(kind, phase, k, r, n, values, at, last, types, own, algorithm):
    """Step k of a phase of a collective action, as rank r of n; FINISHED after its last phase.

    values, at, last: its fields are ``values[at:last]``. own: bytes of an element without datatype.
    """
    if kind == BARRIER:
        return barrier(r, n, k) if phase == 0 else (FINISHED, 0, 0.0)
    size = np.floor(values[at])
    if kind == BCAST:
        if phase > 0:
            return FINISHED, 0, 0.0
        unit = sized(values, at, 2, last, types, own)
        return broadcast(r, n, rooted(values, at, 1, last), size * unit, k)
    if kind in (REDUCE, ALLREDUCE):
        field = 3 if kind == REDUCE else 2
        size *= sized(values, at, field, last, types, own)
        root = rooted(values, at, 2, last) if kind == REDUCE else 0
        if phase == 0:
            return fan_in(r, n, root, size, k)
        if phase == 1 and kind == ALLREDUCE:
            return broadcast(r, n, 0, size, k)
        return computed(phase - (1 if kind == REDUCE else 2), k, values[at + 1])
    if kind in (SCAN, EXSCAN):
        if phase == 0:
            return prefix(r, n, size * sized(values, at, 2, last, types, own), k)
        return computed(phase - 1, k, values[at + 1])
    if kind == REDUCESCATTER:
        unit = sized(values, at, n + 1, last, types, own)
        if phase == 0:
            if algorithm == PAIRWISE:
                return pairwise_scatter(values, at, r, n, unit, k)
            if algorithm == DOUBLING:
                return doubling_scatter(values, at, r, n, unit, k)
            return fan_in(r, n, 0, size * n * unit, k)
        if phase == 1:
            if algorithm == BASIC:
                return fan_out(values, at, True, r, n, 0, 0.0, unit, k)
            return NO_MORE, 0, 0.0
        return computed(phase - 2, k, values[at + n])
    if phase > 0:
        return FINISHED, 0, 0.0
    if kind == ALLTOALL:
        size *= sized(values, at, 2, last, types, own)
        return alltoall(r, n, size, k, algorithm)
    if kind == ALLTOALLV:
        unit = sized(values, at, 2 * n + 2, last, types, own)
        return all_to_all_each(values, at + 1, r, n, unit, k)
    if kind == GATHER:
        size *= sized(values, at, 3, last, types, own)
        return fan_in(r, n, rooted(values, at, 2, last), size, k)
    if kind == GATHERV:
        size *= sized(values, at, n + 2, last, types, own)
        return fan_in(r, n, rooted(values, at, n + 1, last), size, k)
    if kind == ALLGATHER:
        return all_to_all_pairs(r, n, size * sized(values, at, 2, last, types, own), k)
    if kind == ALLGATHERV:
        return all_to_all_pairs(r, n, size * sized(values, at, n + 1, last, types, own), k)
    if kind == SCATTER:
        size *= sized(values, at, 3, last, types, own)
        return fan_out(values, at, False, r, n, rooted(values, at, 2, last), size, 0.0, k)
    unit = sized(values, at, n + 2, last, types, own)
    return fan_out(values, at, True, r, n, rooted(values, at, n + 1, last), 0.0, unit, k)


@jit
def computed(phase, k, flops):
    """What each rank computes after its messages."""
    if phase > 0:
        return FINISHED, 0, 0.0
    return (COMPUTE, 0, flops) if k == 0 and flops > 0.0 else (NO_MORE, 0, 0.0)
