# mypy: allow-untyped-defs, allow-incomplete-defs
"""Where the subproblem to solve lies: in the arrays ``reals``, ``integers``, ``flags`` of a graph.

`components.assemble_subproblem` writes it, `rates` solves it. Of its rows, variable i has the
elements ``start[i]:start[i + 1]``; constraint j is ``worklists[USED, j]`` of the graph.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ptaskmodel.kernels.decorators import views
from ptaskmodel.sharing.arrays import carve


class SubSystem(NamedTuple):
    """Where the subproblem to solve lies; what is left is the solvers' scratch."""

    start: np.ndarray
    resource: np.ndarray
    usage: np.ndarray
    share: np.ndarray
    capacity: np.ndarray
    bound: np.ndarray
    weight: np.ndarray
    penalty: np.ndarray
    level: np.ndarray
    load: np.ndarray
    highest: np.ndarray
    lowest: np.ndarray
    reached: np.ndarray
    rate: np.ndarray
    limit: np.ndarray
    reals: np.ndarray
    integers: np.ndarray


def subproblem_sizes(n: int, m: int, z: int) -> tuple[int, int]:
    """What `subproblem_of` takes of ``reals`` and ``integers``; the rest is for solvers."""
    return 2 * z + 6 * m + 4 * n, z + 2 * n + 1


@views
def subproblem_of(s):
    """The parts of ``reals`` and ``integers``, for as many as the state has room for.

    Rates and limits come first: of activity i they are ``s.reals[i]`` and ``s.integers[i]``, for
    who wants no more. To make all these views takes as long as to solve what is small.
    """
    n = s.variables.size
    m = s.constraints.size
    z = s.nodes.size
    rate, reals = carve(s.reals, n)
    limit, integers = carve(s.integers, n)
    usage, reals = carve(reals, z)
    share, reals = carve(reals, z)
    capacity, reals = carve(reals, m)
    level, reals = carve(reals, m)
    load, reals = carve(reals, m)
    highest, reals = carve(reals, m)
    lowest, reals = carve(reals, m)
    reached, reals = carve(reals, m)
    bound, reals = carve(reals, n)
    weight, reals = carve(reals, n)
    penalty, reals = carve(reals, n)
    start, integers = carve(integers, n + 1)
    resource, integers = carve(integers, z)
    return SubSystem(
        start, resource, usage, share, capacity, bound, weight, penalty, level, load, highest,
        lowest, reached, rate, limit, reals, integers,
    )  # fmt: skip
