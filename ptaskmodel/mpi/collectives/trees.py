# mypy: allow-untyped-defs, allow-incomplete-defs
"""Trees that several collectives share: flat ones, chains, binary and binomial trees.

A family of trees is a function that returns (parent, number of children) of a rank, both counted
from the root.
Source: the algorithms of Open MPI, as SMPI replays them; J. Pjesivac-Grbovic et al., "Performance
analysis of MPI collective operations", Cluster Computing 10(2), 2007.
"""

from __future__ import annotations

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.kernels.records import numbers
from ptaskmodel.mpi.collectives.steps import (
    ALL,
    DO_RECEIVE,
    DO_SEND,
    NO_MORE,
    POST_RECEIVE,
    POST_SEND,
    lowest_bit,
    other,
)


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
    """Every rank sends to the root, which receives from one rank after the other."""
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
