# mypy: allow-untyped-defs, allow-incomplete-defs
"""Reductions in segments, up a chain or a tree.

Source: the algorithms of Open MPI, as SMPI replays them; J. Pjesivac-Grbovic et al., "Performance
analysis of MPI collective operations", Cluster Computing 10(2), 2007. A family is (parent, number
of children) of a rank, both counted from the root.
"""

from __future__ import annotations

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.mpi.collectives.segments import in_segments, number_of
from ptaskmodel.mpi.collectives.selection import BINARY, BINOMIAL, CHAIN, IN_ORDER
from ptaskmodel.mpi.collectives.steps import (
    ALL,
    AWAIT_RECEIVE,
    DO_RECEIVE,
    DO_SEND,
    NO_MORE,
    REQUEST_RECEIVE,
    lowest_bit,
)

# A root of Open MPI has no more children, however many ranks there are.
MAX_CHAINS = 32


@jit
def chains_of(n, kind):
    """In how many chains ``n`` ranks stand behind the root."""
    return max(min(n // 2, MAX_CHAINS), 1) if kind == CHAIN else 1


@jit
def first_of_chain(chain, chains, n):
    """The first rank of a chain; of chain ``chains``: n."""
    short, longer = (n - 1) // chains, (n - 1) % chains
    return 1 + chain * short + min(chain, longer)


@jit
def chain_of(own, chains, n):
    """The chain in which a rank is."""
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
    """The first rank of the level of a rank in a binary tree filled level by level."""
    first = 0
    while 2 * first + 1 <= own:
        first = 2 * first + 1
    return first


@jit
def binary_family(own, n):
    """Ranks of a level have their children side by side: first one for each, then another."""
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
def in_order_family(r, n):
    """(parent, first child, second child), -1: none, of the tree whose root is the last rank."""
    size, delta, own, parent, above = n, 0, r, n - 1, -1
    while True:
        half = size >> 1
        left = parent - 1 if size > 1 else -1
        right = half - 1 if left > 0 else -1
        if own == parent:
            return above, left + delta if left >= 0 else -1, right + delta if right >= 0 else -1
        if own > right:
            if own == left:
                above = parent + delta
            size -= half + 1
            delta += half
            own -= half
            parent = size - 1
        else:
            if own == right:
                above = parent + delta
            size = half
            parent = right


@jit
def family(own, n, kind):
    """(parent, number of children) of a rank, as counted from the root; see `child`."""
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
    """The i-th child of a rank."""
    if kind == BINARY:
        return own + (binary_level(own) + 1) * (i + 1)
    if kind == BINOMIAL:
        return own + (1 << i)
    if own > 0:
        return own + 1
    return first_of_chain(i, chains_of(n, kind), n)


@jit
def segment_of(n, size, kind, alone):
    """Bytes of a segment; alone: there is one element at most."""
    if kind == CHAIN:
        return in_segments(size, 65536.0)
    if kind == BINARY:
        return in_segments(size, 32768.0)
    if kind == IN_ORDER:
        return size
    if kind == BINOMIAL:
        little = (n < 8 and size < 20480.0) or size < 2048.0 or alone
        short = not little and n > 0.6016 / 1024.0 * size + 1.3496
        return in_segments(size, 1024.0 if short else 0.0)
    if n > 0.0410 / 1024.0 * size + 9.7128:
        return in_segments(size, 1024.0)
    return in_segments(size, 32768.0 if n > 0.0033 / 1024.0 * size + 1.6761 else 65536.0)


@jit
def piece(size, segment, pieces, i):
    return size - (pieces - 1) * segment if i == pieces - 1 else segment


@jit
def upwards(parent, children, size, segment, k):
    """Step k of receiving segments from children in turn, and sending each on when it is complete.

    Of a receive the peer is the number of a child, of a send -1. The next receive is posted before
    the last is waited for.
    """
    pieces = number_of(size, segment)
    if children == 0:
        if k < pieces:
            return DO_SEND, -1, piece(size, segment, pieces, k)
        return NO_MORE, 0, 0.0
    whole = pieces * children
    if whole == 0:
        return NO_MORE, 0, 0.0
    if k == 0:
        return REQUEST_RECEIVE, 0, 0.0
    q, j = (k - 1) // 3 + 1, (k - 1) % 3
    if q > whole:
        return NO_MORE, 0, 0.0
    if j == 0:
        return (REQUEST_RECEIVE, q % children, 0.0) if q < whole else (ALL, 0, 0.0)
    if j == 1:
        return AWAIT_RECEIVE, (q - 1) % children, 0.0
    if q % children == 0 and parent >= 0:
        return DO_SEND, -1, piece(size, segment, pieces, q // children - 1)
    return ALL, 0, 0.0


@jit
def reduce_upwards(r, n, root, count, unit, k, kind):
    """Up a tree to the root, in segments."""
    if n == 1:
        return NO_MORE, 0, 0.0
    size = count * unit
    segment = segment_of(n, size, kind, count <= 1.0)
    if kind == IN_ORDER:
        return reduce_in_order(r, n, root, size, segment, k)
    own = (r - root) % n
    parent, children = family(own, n, kind)
    what, peer, sent = upwards(parent, children, size, segment, k)
    peer = parent if peer < 0 else child(own, peer, n, kind)
    return what, (peer + root) % n, sent


@jit
def reduce_in_order(r, n, root, size, segment, k):
    """Up the tree of `in_order_family`, whose root hands it to the real one."""
    parent, left, right = in_order_family(r, n)
    children = (1 if left >= 0 else 0) + (1 if right >= 0 else 0)
    what, peer, sent = upwards(parent, children, size, segment, k)
    if what != NO_MORE:
        peer = parent if peer < 0 else (left if peer == 0 else right)
        return what, max(peer, 0), sent
    if root == n - 1 or (r != root and r != n - 1):
        return NO_MORE, 0, 0.0
    steps = upwards_steps(children, size, segment)
    if k > steps:
        return NO_MORE, 0, 0.0
    return (DO_RECEIVE, n - 1, size) if r == root else (DO_SEND, root, size)


@jit
def upwards_steps(children, size, segment):
    """How many steps `upwards` has."""
    pieces = number_of(size, segment)
    if children == 0:
        return pieces
    return 3 * pieces * children + 1 if pieces > 0 else 0
