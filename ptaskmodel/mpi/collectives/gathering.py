# mypy: allow-untyped-defs, allow-incomplete-defs
"""All-gathers of different amounts, and what else depends on the amount of each rank.

Source: the algorithms of MPICH and Open MPI, as SMPI replays them.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.mpi.collectives.exchanges import hands_on, ring
from ptaskmodel.mpi.collectives.halving import counted_places, log2, rank_of
from ptaskmodel.mpi.collectives.steps import (
    DO_RECEIVE,
    DO_SEND,
    NO_MORE,
    counted,
    exchange,
    power_below,
)


@jit
def doubling_each(values, at, r, n, unit, k):
    """Groups of 1, 2, 4, ... ranks exchange what they have, as `exchanges.doubling`."""
    if counted(values, at, 0, n) == 0.0:
        return NO_MORE, 0, 0.0
    mask = 1
    while mask < n:
        partner = r ^ mask
        theirs, mine = partner - partner % mask, r - r % mask
        got = counted(values, at, min(theirs, n), min(theirs + mask, n)) * unit
        if partner < n:
            if k < 3:
                sent = counted(values, at, mine, min(mine + mask, n)) * unit
                return exchange(k, partner, partner, sent, got)
            k -= 3
        if theirs + mask > n:
            what, peer, k = hands_on(r, n, mine, mask, k)
            if what != NO_MORE:
                return what, peer, got
        mask <<= 1
    return NO_MORE, 0, 0.0


@jit
def neighbours_each(values, at, r, n, unit, k):
    """With the two neighbours in turn: one's own, then what two ranks have in each round."""
    if n % 2:
        return ring(r, n, np.floor(values[at + r]) * unit, k)
    i = k // 3
    if i >= n // 2:
        return NO_MORE, 0, 0.0
    forth = (r % 2 == 0) == (i % 2 == 0)
    peer = (r + 1) % n if forth else (r - 1 + n) % n
    if i == 0:
        return exchange(k % 3, peer, peer, np.floor(values[at + r]) * unit, 0.0)
    # What was received last: from as far to one side as there were rounds.
    even = r - r % 2
    last = i - 1
    side = 1 if (r % 2 == 0) == (last % 2 == 0) else -1
    first = (even + side * 2 * ((last + 1) // 2)) % n
    return exchange(k % 3, peer, peer, counted(values, at, first, first + 2) * unit, 0.0)


@jit
def chunks_each(values, at, r, n, unit, k):
    """Round the ring in chunks of 256 KiB, or the least that a rank has, if that is more."""
    total = counted(values, at, 0, n)
    before, after = (r - 1 + n) % n, (r + 1) % n
    to_receive = total - np.floor(values[at + r])
    to_send = total - np.floor(values[at + after])
    most = np.floor(values[at])
    for j in range(1, n):
        most = min(most, np.floor(values[at + j]))
    if most * unit < 262144.0:
        most = np.floor(262144.0 / unit) if unit > 0.0 else 0.0
    most = max(most, 1.0)
    own, theirs = r, before
    sent_of, got_of = 0.0, 0.0
    while to_send > 0.0 or to_receive > 0.0:
        send = min(np.floor(values[at + own]) - sent_of, most) if to_send > 0.0 else 0.0
        get = min(np.floor(values[at + theirs]) - got_of, most) if to_receive > 0.0 else 0.0
        if send > 0.0 and get > 0.0:
            if k < 3:
                return exchange(k, after, before, send * unit, get * unit)
            k -= 3
        elif send > 0.0 or get > 0.0:
            if k == 0:
                if send > 0.0:
                    return DO_SEND, after, send * unit
                return DO_RECEIVE, before, get * unit
            k -= 1
        to_send -= send
        to_receive -= get
        sent_of += send
        got_of += get
        if sent_of == np.floor(values[at + own]):
            sent_of = 0.0
            own = (own - 1 + n) % n
        if got_of == np.floor(values[at + theirs]):
            got_of = 0.0
            theirs = (theirs - 1 + n) % n
    return NO_MORE, 0, 0.0


@jit
def mirrored(place, bits):
    """A number with its bits in reverse order."""
    turned = 0
    for _ in range(bits):
        turned = 2 * turned + place % 2
        place //= 2
    return turned


@jit
def butterfly_scatter(values, at, r, n, unit, k):
    """Of reduce-scatter: halve with ranks 1, 2, 4, ... away, then give each what is its own."""
    power = power_below(n)
    rest = n - power
    total = counted(values, at, 0, n) * unit
    bits = log2(power)
    place = r - rest
    if r < 2 * rest:
        if r % 2 == 0:
            peer = rank_of(mirrored((r + 1) // 2, bits), rest, 1)
            if k > 1:
                return NO_MORE, 0, 0.0
            return (DO_SEND, r + 1, total) if k == 0 else (DO_RECEIVE, peer, 0.0)
        if k == 0:
            return DO_RECEIVE, r - 1, total
        k -= 1
        place = r // 2
    low, width, mask = 0, power // 2, 1
    while mask < power:
        if k < 3:
            peer = rank_of(place ^ mask, rest, 1)
            begin = low if place & mask else low + width
            sent = counted_places(values, at, rest, begin, begin + width) * unit
            return exchange(k, peer, peer, sent, 0.0)
        k -= 3
        if place & mask:
            low += width
        width //= 2
        mask <<= 1
    goal = mirrored(place, bits)
    peer = rank_of(goal, rest, 1)
    if goal < rest:
        if k == 0:
            return DO_SEND, peer - 1, np.floor(values[at + peer - 1]) * unit
        k -= 1
    if goal != place and k < 3:
        return exchange(k, peer, peer, np.floor(values[at + peer]) * unit, 0.0)
    return NO_MORE, 0, 0.0
