# mypy: allow-untyped-defs, allow-incomplete-defs
"""Collective operations that reduce: recursive halving and doubling, rings.

Source: R. Rabenseifner, "Optimization of collective reduction operations", ICCS 2004; R. Thakur,
R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH", 2005, as
SMPI replays them. Where the number of ranks is no power of two, the first few pairs are one rank
each while it lasts.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.mpi.collectives.exchanges import hands_on
from ptaskmodel.mpi.collectives.steps import (
    AWAIT_RECEIVE,
    DO_RECEIVE,
    DO_SEND,
    NO_MORE,
    REQUEST_RECEIVE,
    counted,
    exchange,
    power_below,
    swap,
)


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


@jit
def reduce_doubling(r, n, size, k):
    """Everything with the ranks at distance 1, 2, 4, ..."""
    power = power_below(n)
    rest = n - power
    place = r - rest
    if r < 2 * rest:
        if r % 2 == 0:
            if k > 1:
                return NO_MORE, 0, 0.0
            return (DO_SEND if k == 0 else DO_RECEIVE), r + 1, size
        if k == 0:
            return DO_RECEIVE, r - 1, size
        k -= 1
        place = r // 2
    rounds = log2(power)
    if k < 3 * rounds:
        return swap(k % 3, rank_of(place ^ (1 << (k // 3)), rest, 1), size)
    if r < 2 * rest and k == 3 * rounds:
        return DO_SEND, r - 1, size
    return NO_MORE, 0, 0.0


@jit
def reduce_halving(r, n, count, unit, k):
    """Rabenseifner's: halve what is to be reduced, nearest first, then gather it by doubling."""
    power = power_below(n)
    rest = n - power
    place = r - rest
    if r < 2 * rest:
        if r % 2 == 0:
            if k > 1:
                return NO_MORE, 0, 0.0
            return (DO_SEND if k == 0 else DO_RECEIVE), r + 1, count * unit
        if k == 0:
            return DO_RECEIVE, r - 1, count * unit
        k -= 1
        place = r // 2
    rounds = log2(power)
    if k < 6 * rounds:
        s = k // 3
        if s < rounds:
            peer = rank_of(place ^ (1 << s), rest, 1)
            return halve(place, power, s, peer, count, unit, k % 3)
        s = 2 * rounds - 1 - s
        peer = rank_of(place ^ (1 << s), rest, 1)
        sent, received = kept(place, power, s, count, unit)
        return exchange(k % 3, peer, peer, sent, received)
    if r < 2 * rest and k == 6 * rounds:
        return DO_SEND, r - 1, count * unit
    return NO_MORE, 0, 0.0


@jit
def reduce_halving_to(r, n, root, count, unit, k):
    """Halve what is to be reduced, nearest first, then gather it up a tree to the root."""
    count = max(count, float(n))
    power = power_below(n)
    rest = n - power
    rounds = log2(power)
    place = r - rest
    root_is_out = root < 2 * rest and root % 2 == 1
    if r < 2 * rest:
        if k == 0:
            if r % 2 == 1:
                return DO_SEND, r - 1, count * unit
            return DO_RECEIVE, r + 1, count * unit
        k -= 1
        place = -1 if r % 2 == 1 else r // 2
    if place >= 0:
        if k < 3 * rounds:
            s = k // 3
            peer = rank_of(place ^ (1 << s), rest, 0)
            return halve(place, power, s, peer, count, unit, k % 3)
        k -= 3 * rounds
    goal = root // 2 if root < 2 * rest else root - rest
    if root_is_out:  # it takes the place of rank 0, with the part that that has
        goal = 0
        first = part(count, power, 0, 1) * unit
        if r == root:
            if k == 0:
                return DO_RECEIVE, 0, first
            k -= 1
            place = 0
        elif place == 0:
            return (DO_SEND, root, first) if k == 0 else (NO_MORE, 0, 0.0)
    if place < 0:
        return NO_MORE, 0, 0.0
    for s in range(rounds - 1, -1, -1):
        to = place ^ (1 << s)
        peer = root if root_is_out and to == 0 else rank_of(to, rest, 0)
        sent, received = kept(place, power, s, count, unit)
        if (to >> s) == (goal >> s):
            return (DO_SEND, peer, sent) if k == 0 else (NO_MORE, 0, 0.0)
        if k == 0:
            return DO_RECEIVE, peer, received
        k -= 1
    return NO_MORE, 0, 0.0


@jit
def halve_far_first(r, n, count, unit, k):
    """Halve with the rank half of all away, a quarter, ...; n: a power of two."""
    mask = n >> (k // 3 + 1)
    return swap(k % 3, r ^ mask, count * mask / n * unit) if mask > 0 else (NO_MORE, 0, 0.0)


@jit
def halve_equal_parts(values, at, r, n, unit, k):
    """Of reduce-scatter: halve with ranks 1, 2, 4, ... away; n: a power of two."""
    mask = 1 << (k // 3)
    size = counted(values, at, 0, n) * unit / (2 * mask)
    return swap(k % 3, r ^ mask, size) if mask < n else (NO_MORE, 0, 0.0)


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
def doubling_scatter(values, at, r, n, unit, k):
    """Of reduce-scatter: recursive doubling, for any number of ranks.

    Groups of ``mask`` ranks exchange all but what their own group is to keep. Where the other group
    is incomplete, those who received hand it on inside their group, down a tree.
    """
    total = counted(values, at, 0, n)
    mask = 1
    while mask < n:
        partner = r ^ mask
        theirs, mine = partner - partner % mask, r - r % mask
        received = total - counted(values, at, min(theirs, n), min(theirs + mask, n))
        if partner < n:
            if k < 3:
                sent = total - counted(values, at, mine, min(mine + mask, n))
                return exchange(k, partner, partner, sent * unit, received * unit)
            k -= 3
        if theirs + mask > n:
            what, peer, k = hands_on(r, n, mine, mask, k)
            if what != NO_MORE:
                return what, peer, received * unit
        mask <<= 1
    return NO_MORE, 0, 0.0


@jit
def counted_places(values, at, rest, first, last):
    """Elements of the ranks at places first, ..., last - 1 and of those that they stand for."""
    begin = 2 * first if first < rest else first + rest
    end = 2 * last if last <= rest else last + rest
    return counted(values, at, begin, end)


@jit
def halving_scatter(values, at, r, n, unit, k):
    """Of reduce-scatter: recursive halving, farthest first; halves without elements stay away."""
    power = power_below(n)
    rest = n - power
    total = counted(values, at, 0, n) * unit
    place = r - rest
    if r < 2 * rest:
        if r % 2 == 0:
            if k == 0:
                return DO_SEND, r + 1, total
            own = np.floor(values[at + r])
            return (DO_RECEIVE, r + 1, own * unit) if k == 1 and own > 0.0 else (NO_MORE, 0, 0.0)
        if k == 0:
            return DO_RECEIVE, r - 1, total
        k -= 1
        place = r // 2
    low = 0
    mask = power >> 1
    while mask > 0:
        lower = counted_places(values, at, rest, low, low + mask)
        upper = counted_places(values, at, rest, low + mask, low + 2 * mask)
        if lower > 0.0 and upper > 0.0:
            if k < 3:
                peer = rank_of(place ^ mask, rest, 1)
                if k == 1:
                    return DO_SEND, peer, (lower if place & mask else upper) * unit
                return (REQUEST_RECEIVE if k == 0 else AWAIT_RECEIVE), peer, 0.0
            k -= 3
        if place & mask:
            low += mask
        mask >>= 1
    if r < 2 * rest and k == 0:
        theirs = np.floor(values[at + r - 1])
        if theirs > 0.0:
            return DO_SEND, r - 1, theirs * unit
    return NO_MORE, 0, 0.0
