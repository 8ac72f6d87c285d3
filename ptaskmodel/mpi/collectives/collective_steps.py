# mypy: allow-untyped-defs, allow-incomplete-defs
"""Steps of collective operations by a kernel of their own, which all who ask for them share.

The algorithms are most of what replays compile: here they are compiled once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ptaskmodel.kernels.decorators import jit, late
from ptaskmodel.mpi.collectives.collectives import collective
from ptaskmodel.mpi.collectives.selection import CHOICES, Chosen
from ptaskmodel.mpi.collectives.steps import UNWANTED

# What a step does and the rank that it concerns are one number, for no kernel asked by its address
# returns two.
RANKS = 2**32


def example() -> tuple[Any, ...]:
    """Arguments like those of `packed_step`."""
    one = np.zeros(1)
    return 0, 0, 0, 0, 0, one, 0, 0, one, 0.0, 0, np.zeros(1, dtype=np.int64), CHOICES, one


@late("ptaskmodel.mpi.collectives.collective_steps:example")
def packed_step(
    kind, phase, k, r, n, values, at, last, types, own, algorithm, of_kind, choices, size
):  # fmt: skip
    """What and whom a step concerns, in one number; its bytes are written to ``size``."""
    c = Chosen(of_kind, choices)
    what, peer, size[0] = collective(
        kind, phase, k, r, n, values, at, last, types, own, algorithm, c
    )
    return what * RANKS + peer


@jit
def step_of_collective(kind, phase, k, r, n, values, at, last, types, own, algorithm, c, size):
    """As `collectives.collective`, or UNWANTED; size: scratch for a number."""
    packed = packed_step(
        kind, phase, k, r, n, values, at, last, types, own, algorithm, c.of_kind, c.choices, size
    )
    if packed < 0:  # the kernel is not there
        return UNWANTED, 0, 0.0
    return packed // RANKS, packed % RANKS, size[0]
