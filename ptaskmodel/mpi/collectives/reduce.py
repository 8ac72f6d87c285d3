# mypy: allow-untyped-defs, allow-incomplete-defs
"""Reductions to one rank: flat, up a tree or a chain in segments, by halving.

Source: the algorithms of Open MPI, MPICH and StarMPI, as SMPI replays them; R. Rabenseifner,
"Optimization of collective reduction operations", ICCS 2004; J. Pjesivac-Grbovic et al.,
"Performance analysis of MPI collective operations", Cluster Computing 10(2), 2007.
"""

from __future__ import annotations

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.kernels.records import numbers
from ptaskmodel.mpi.collectives.gather_scatter import gather_tree
from ptaskmodel.mpi.collectives.selection import Collective
from ptaskmodel.mpi.collectives.steps import (
    ALL,
    AWAIT_RECEIVE,
    BINARY,
    BINOMIAL,
    CHAIN,
    DO_RECEIVE,
    DO_SEND,
    IN_ORDER,
    NO_MORE,
    PIPELINE,
    POST_RECEIVE,
    POST_SEND,
    REQUEST_RECEIVE,
    SHORT_SEGMENT,
    child,
    family,
    fan_in,
    fan_in_by_turns,
    halve,
    in_segments,
    kept,
    log2,
    number_of,
    part,
    power_below,
    rank_of,
)

# Algorithms, besides the kinds of trees.
(
    AT_ONCE,
    BY_TURNS,
    TREE,
    HALVING,
    LINE,
    K_NOMIAL,
) = numbers(5, 11)

# Choice of Open MPI by ranks and bytes (see `selection`).
OPEN_MPI = """
    4 0 ompi_basic_linear 8 ompi_binary 16 ompi_pipeline 32 ompi_basic_linear 262144 ompi_pipeline
      524288 ompi_chain 1048576 ompi_pipeline;
    8 0 ompi_binary 4096 ompi_chain 65536 ompi_binomial 262144 ompi_basic_linear
      524288 ompi_binomial 1048576 ompi_basic_linear;
    16 0 ompi_binary 8192 ompi_binomial;
    32 0 ompi_binary 4096 ompi_binomial;
    256 0 ompi_binomial;
    512 0 ompi_binomial 8192 ompi_in_order_binary 16384 ompi_binomial;
    2048 0 ompi_binomial;
    4096 0 ompi_binomial 512 ompi_in_order_binary 1024 ompi_binomial 8192 ompi_in_order_binary
      16384 ompi_binomial;
    - 0 ompi_binomial 16 ompi_in_order_binary 32 ompi_binomial 1024 ompi_in_order_binary
      2048 ompi_binomial 8192 ompi_in_order_binary 16384 ompi_binomial"""

REDUCTIONS = Collective(
    "reduce",
    "reduce",
    {
        "default": AT_ONCE,
        "binomial": TREE,
        "flat_tree": BY_TURNS,
        "ompi_basic_linear": BY_TURNS,
        "scatter_gather": HALVING,
        "NTSL": LINE,
        "mvapich2_knomial": K_NOMIAL,
        "ompi": OPEN_MPI,
        "ompi_binary": BINARY,
        "ompi_binomial": BINOMIAL,
        "ompi_chain": CHAIN,
        "ompi_in_order_binary": IN_ORDER,
        "ompi_pipeline": PIPELINE,
    },
)


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
def reduce_tree(r, n, root, size, k):
    """As much from each rank, up a binomial tree, the smallest subtree first."""
    what, peer, sent = gather_tree(r, n, root, 1.0, k)
    return what, peer, size if sent > 0.0 else 0.0


@jit
def reduce_k_nomial(r, n, root, size, k):
    """Up a tree of radix 4 over ranks as counted from the root."""
    own = (r - root) % n
    mask = 1
    while mask < n and own % (4 * mask) == 0:
        for i in range(1, 4):
            if own + i * mask < n:
                if k == 0:
                    return POST_RECEIVE, (r + i * mask) % n, size
                k -= 1
        mask *= 4
    if k == 0:
        return ALL, 0, 0.0
    if own > 0 and k < 3:
        to = (own - own % (4 * mask) + root) % n
        return (POST_SEND, to, size) if k == 1 else (ALL, 0, 0.0)
    return NO_MORE, 0, 0.0


@jit
def reduce(r, n, root, count, unit, k, algorithm):
    if algorithm == BY_TURNS:
        return fan_in_by_turns(r, n, root, count * unit, k, True)
    if algorithm == AT_ONCE:
        return fan_in(r, n, root, count * unit, k)
    if algorithm == LINE:
        return reduce_in_line(r, n, root, count * unit, k)
    if count == 0.0:
        return NO_MORE, 0, 0.0
    if algorithm in (CHAIN, PIPELINE, BINARY, BINOMIAL, IN_ORDER):
        return reduce_upwards(r, n, root, count, unit, k, algorithm)
    if algorithm == HALVING:
        return reduce_halving_to(r, n, root, count, unit, k)
    if algorithm == K_NOMIAL:
        return reduce_k_nomial(r, n, root, count * unit, k)
    return reduce_tree(r, n, root, count * unit, k)
