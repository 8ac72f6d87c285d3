# mypy: allow-untyped-defs, allow-incomplete-defs
"""All-to-alls and all-gathers over ranks laid in a mesh: rows first, then columns, then planes.

Source: the algorithms of StarMPI, as SMPI replays them; A. Faraj, X. Yuan, "Automatic generation
and tuning of MPI collective communication routines", 2005.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.mpi.collectives.steps import AWAIT_ANY, DO_SEND, NO_MORE, REQUEST_RECEIVE, other


@jit
def columns_of(n):
    """Ranks of a row of a mesh of two dimensions that is as square as can be; 0: there is none."""
    rows = int(np.sqrt(n))
    while rows > 1 and n % rows:
        rows -= 1
    return n // rows if rows > 1 or n <= 3 else 0


@jit
def edge_of(n):
    """Ranks of a row, and rows of a plane, of a mesh of three dimensions; 0: there is none."""
    edge = 1
    while (edge + 1) * (edge + 1) * (edge + 1) <= n:
        edge += 1
    while edge <= n // 3:
        if n % (edge * edge) == 0:
            return edge
        edge += 1
    return 0


@jit
def among(own, count, k, is_ring):
    """Step k of what a rank of a group sends to the others in turn: (what, rank in the group).

    In the order of ranks, or from the one after one's own on. Receives are posted before.
    """
    if k >= 3 * (count - 1):
        return NO_MORE, 0
    i, what = k % (count - 1), REQUEST_RECEIVE
    if k >= count - 1:
        what = DO_SEND if k < 2 * (count - 1) else AWAIT_ANY
    return what, (own + 1 + i) % count if is_ring else other(i, own)


@jit
def in_mesh(r, n, size, k, is_3d, gathers):
    """In each dimension to all ranks of one's own line: what has been gathered, or all there is.

    size: of each rank. Of an all-to-all everything goes along all dimensions but the last.
    """
    row = edge_of(n) if is_3d else columns_of(n)
    plane = row * row if is_3d else n
    what, i = among(r % row, row, k, False)
    if what != NO_MORE:
        return what, r - r % row + i, size if gathers else size * n
    k -= 3 * (row - 1)
    what, i = among(r % plane // row, plane // row, k, False)
    if what != NO_MORE:
        sent = size * row * (n if is_3d and not gathers else 1)
        return what, r - r % plane + r % row + i * row, sent
    k -= 3 * (plane // row - 1)
    what, i = among(r // plane, n // plane, k, True)
    return what, r % plane + i * plane, size * plane
