"""Who waits: a static tree over ranks. A node knows the fewest hosts and smallest estimate below.

Node 1 is the root, the leaves of node i are those of 2 i and 2 i + 1, leaf k belongs to rank k.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit

INFINITY = float("inf")
LARGEST = np.int64(np.iinfo(np.int64).max)


@jit
def put(tree, leaf, hosts, estimate):
    """One that waits, or (of LARGEST hosts) none."""
    node = tree[leaf]
    node.hosts, node.estimate = hosts, estimate
    i = leaf >> 1
    while i > 0:
        one, other, above = tree[2 * i], tree[2 * i + 1], tree[i]
        hosts = min(one.hosts, other.hosts)
        estimate = min(one.estimate, other.estimate)
        if above.hosts == hosts and above.estimate == estimate:
            return
        above.hosts, above.estimate = hosts, estimate
        i >>= 1


@jit
def first_from(tree, leaves, rank, free, extra, now, shadow):
    """The first rank from ``rank`` on that fits in ``free`` hosts and ends by ``shadow`` or is
    content with ``extra`` hosts; -1 if there is none.

    Exact at the leaves and necessary above, as rounding is monotone.
    """
    if rank >= leaves:
        return -1
    i = rank + leaves if rank > 0 else 1
    while True:
        node = tree[i]
        if node.hosts <= free and (
            node.hosts <= extra or (now + node.estimate <= shadow and shadow < INFINITY)
        ):
            if i >= leaves:
                return i - leaves
            i *= 2
            continue
        while i & 1:
            i >>= 1
        if i == 0:
            return -1
        i += 1


@jit
def enter(s, j):
    """A job waits."""
    leaves, job = s.clock[0].leaves, s.jobs[j]
    put(s.queue, leaves + job.rank, job.hosts, job.estimate)
    if s.clock[0].sorts:
        put(s.candidates, leaves + job.candidate, job.hosts, job.estimate)


@jit
def leave(s, j):
    """A job waits no more."""
    leaves, job = s.clock[0].leaves, s.jobs[j]
    put(s.queue, leaves + job.rank, LARGEST, INFINITY)
    if s.clock[0].sorts:
        put(s.candidates, leaves + job.candidate, LARGEST, INFINITY)
