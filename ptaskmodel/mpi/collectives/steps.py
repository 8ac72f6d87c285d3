# mypy: allow-untyped-defs, allow-incomplete-defs
"""Steps of a collective operation; trees and exchanges that its algorithms share.

An algorithm is a function of a rank, the number of ranks and the number k of a step, and returns
``(what, peer, bytes)``. It stores nothing between steps: k is the whole position of a rank in it.
A family of trees is a function that returns (parent, number of children) of a rank, both counted
from the root. If the number of ranks is not a power of two, recursive halving first merges each of
the first few pairs of ranks into one.

Sources: the algorithms of MPICH, Open MPI and StarMPI, as SMPI replays them; for trees, J.
Pjesivac-Grbovic et al., "Performance analysis of MPI collective operations", Cluster Computing
10(2), 2007; for exchanges, R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective
communication operations in MPICH", 2005.
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
    """Step k (0, 1, 2) of a message to one rank and one from another, both waited for.

    to, source: the ranks. sent, received: bytes.
    """
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
    """The lowest bit set in the number `own`; of 0 the smallest power of two not below n."""
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
    """The bytes of an element: by the datatype in field ``at``, if it is there, else `own`.

    first, last: the fields of the action are ``values[first:last]``.
    """
    if first + at < last:
        number = int(values[first + at])
        return 0.0 if number < 0 else types[number]
    return own


@jit
def rooted(values, first, at, last):
    """The root in field ``at``; 0 if it is not there. first, last: as of `sized`."""
    return int(values[first + at]) if first + at < last else 0


@jit
def sized_each(values, at, last, n, types, own):
    """The bytes of an element of an allgatherv, whose fields are ``values[at:last]``.

    own: bytes of an element without datatype.
    """
    typed = not has_displacements_alone(n, last - at)
    return sized(values, at, n + 1, last if typed else at, types, own)


@jit
def has_displacements_alone(n, fields):
    """Whether an allgatherv names displacements but no datatypes: as many fields as ranks."""
    return 2 < fields - 1 - n <= n


@jit
def fan_in(r, n, root, size, k):
    """Every rank sends to the root, which receives in the order of ranks, all at once."""
    if r == root:
        if k < n - 1:
            return POST_RECEIVE, other(k, r), size
        return (ALL, 0, 0.0) if k == n - 1 else (NO_MORE, 0, 0.0)
    if k == 0:
        return POST_SEND, root, size
    return (ALL, 0, 0.0) if k == 1 else (NO_MORE, 0, 0.0)


@jit
def fan_in_by_turns(r, n, root, size, k, backwards):
    """Every rank sends to the root, which receives from one rank after the other.

    backwards: from the last rank to the first.
    """
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


# Kinds of trees. A pipeline is one chain; `reduce` has the tree that is in order.
CHAIN, PIPELINE, BINARY, BINOMIAL, IN_ORDER = numbers(5)
# A root of Open MPI has no more children, however many ranks there are.
MAX_CHAINS = 32


@jit
def chains_of(n, kind):
    """In how many chains ``n`` ranks stand behind the root; kind: CHAIN or PIPELINE."""
    return max(min(n // 2, MAX_CHAINS), 1) if kind == CHAIN else 1


@jit
def first_of_chain(chain, chains, n):
    """The first rank of a chain; of chain ``chains``: n."""
    short, longer = (n - 1) // chains, (n - 1) % chains
    return 1 + chain * short + min(chain, longer)


@jit
def chain_of(own, chains, n):
    """The chain, of so many chains, in which a rank is; own: the rank, counted from the root."""
    short, longer = (n - 1) // chains, (n - 1) % chains
    if own - 1 < longer * (short + 1):
        return (own - 1) // (short + 1)
    return longer + (own - 1 - longer * (short + 1)) // short


@jit
def chain_family(own, chains, n):
    if own == 0:
        return -1, chains
    chain = chain_of(own, chains, n)
    first = own == first_of_chain(chain, chains, n)
    last = own + 1 == first_of_chain(chain + 1, chains, n)
    return (0 if first else own - 1), (0 if last else 1)


@jit
def binary_level(own):
    """The first rank of the level of rank `own` in a binary tree filled level by level."""
    first = 0
    while 2 * first + 1 <= own:
        first = 2 * first + 1
    return first


@jit
def binary_family(own, n):
    """(parent, number of children) of rank `own` in a binary tree.

    Ranks of a level have their children side by side: first one for each, then another.
    """
    if own == 0:
        return -1, min(2, n - 1)
    first = binary_level(own)
    width = first + 1
    children = max(0, min(2, (n - 1 - own) // width))
    above = width // 2
    parent = own
    while parent >= first:
        parent -= above
    return parent, children


@jit
def family(own, n, kind):
    """(parent, number of children) of a rank; see `child`.

    own: the rank, counted from the root. kind: of the tree.
    """
    if kind == BINARY:
        return binary_family(own, n)
    if kind == BINOMIAL:
        children = 0
        mask = 1
        lowest = lowest_bit(own, n)
        while mask < lowest and own + mask < n:
            mask <<= 1
            children += 1
        return (own - lowest if own > 0 else -1), children
    return chain_family(own, chains_of(n, kind), n)


@jit
def child(own, i, n, kind):
    """The i-th child of a rank; own, kind: as of `family`."""
    if kind == BINARY:
        return own + (binary_level(own) + 1) * (i + 1)
    if kind == BINOMIAL:
        return own + (1 << i)
    if own > 0:
        return own + 1
    return first_of_chain(i, chains_of(n, kind), n)


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
    """In each of so many rounds to the next rank, from the one before."""
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
    """Step k of round s: send the half of the parts that the peer keeps, receive one's own.

    place: of the rank among the `power` that take part.
    """
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
