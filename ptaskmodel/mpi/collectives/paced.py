# mypy: allow-untyped-defs, allow-incomplete-defs
"""All-to-alls in rounds which ranks begin together, so that messages do not meet on the way.

Source: the algorithms of StarMPI, as SMPI replays them; A. Faraj, X. Yuan, "Automatic generation
and tuning of MPI collective communication routines", 2005.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.mpi.collectives.barriers import barrier
from ptaskmodel.mpi.collectives.selection import (
    PAIRS_EACH,
    PAIRS_LIGHT,
    PAIRS_ONE,
    RING_EACH,
    RING_ONE,
)
from ptaskmodel.mpi.collectives.steps import NO_MORE, exchange, swap


@jit
def steps_of_barrier(r, n, algorithm):
    steps = 0
    while barrier(r, n, steps, algorithm)[0] != NO_MORE:
        steps += 1
    return steps


@jit
def is_paced(algorithm):
    """Whether an algorithm is one of those of `paced_round`."""
    return PAIRS_LIGHT <= algorithm <= RING_EACH


@jit
def paced_round(r, n, k, algorithm, of_barrier):
    """Step k of rounds in pairs (n: a power of two) or round a ring: (what, peer, bytes).

    The first of them, or each, begins after a barrier; or, from the second on, after a byte to and
    from those that are next. Bytes are -1 for what the all-to-all itself sends or receives.
    """
    by_pairs = algorithm <= PAIRS_EACH
    i = 1
    if algorithm in (PAIRS_ONE, RING_ONE):
        steps = steps_of_barrier(r, n, of_barrier)
        if k < steps:
            return barrier(r, n, k, of_barrier)
        k -= steps
        i += k // 3
    elif algorithm in (PAIRS_EACH, RING_EACH):
        steps = steps_of_barrier(r, n, of_barrier)
        if k < steps:  # before what a rank keeps, too
            return barrier(r, n, k, of_barrier)
        i += (k - steps) // (steps + 3)
        k = (k - steps) % (steps + 3)
        if i < n and k < steps:
            return barrier(r, n, k, of_barrier)
        k -= steps
    else:
        i += (k + 3) // 6
        if i < n and k > 2 and (k + 3) % 6 < 3:
            if by_pairs:
                return exchange(k % 3, r ^ i, r ^ i, 1.0, 1.0)
            return exchange(k % 3, (r - i + n) % n, (r + i) % n, 1.0, 1.0)
    if i >= n:
        return NO_MORE, 0, 0.0
    if by_pairs:
        return swap(k % 3, r ^ i, -1.0)
    return exchange(k % 3, (r + i) % n, (r - i + n) % n, -1.0, -1.0)


@jit
def all_to_all_paced(r, n, size, k, algorithm, of_barrier):
    """As much to each other rank."""
    what, peer, sent = paced_round(r, n, k, algorithm, of_barrier)
    return what, peer, size if sent < 0.0 else sent


@jit
def each_paced(values, at, r, n, unit, k, algorithm, of_barrier):
    """To each other rank what the fields say."""
    what, peer, sent = paced_round(r, n, k, algorithm, of_barrier)
    return what, peer, np.floor(values[at + peer]) * unit if sent < 0.0 else sent
