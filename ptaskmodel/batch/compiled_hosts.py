"""The hosts of the attempts of a compiled batch, asked of the allocation when all is over.

Dates do not depend on hosts there, so that it can be asked start by start, as the open loop does.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.batch.allocations import Allocation
from ptaskmodel.batch.hostset import Mask, runs
from ptaskmodel.batch.plain_schedule import Places

Ints = NDArray[np.int64]


def chosen_hosts(
    allocation: Allocation,
    groups: Sequence[Mask],
    sizes: Ints,
    began: Ints,
    over: Ints,
    group: Ints | None = None,
    instead_of: Ints | None = None,
) -> Places:
    """The hosts that an allocation chooses for each attempt.

    groups: of hosts. By number of the attempt: how many hosts it needs, at which decision it began,
    before which it ended (-1: not by itself), in which group it is (the first, if left out), and
    which attempt was stopped so that it could begin (-1, or left out: none).
    """
    ended = np.flatnonzero(over >= 0)
    leaving = ended[np.argsort(over[ended], kind="stable")].tolist()
    left = over[leaving].tolist()
    groups_of = repeat(0, len(sizes)) if group is None else group.tolist()
    stopped = repeat(-1, len(sizes)) if instead_of is None else instead_of.tolist()
    free, gone = list(groups), 0
    running: dict[int, tuple[int, Mask]] = {}
    begins, first, length = [0], [], []

    def give_back(number: int) -> None:
        place, mask = running.pop(number)
        free[place] |= mask

    rows = zip(began.tolist(), sizes.tolist(), groups_of, stopped, strict=True)
    for number, (decision, size, place, other) in enumerate(rows):
        while gone < len(left) and left[gone] < decision:
            give_back(leaving[gone])
            gone += 1
        if other >= 0:
            give_back(other)
        mask = allocation.choose(size, free[place])
        assert mask is not None
        free[place] &= ~mask
        running[number] = place, mask
        for begin, count in runs(mask):
            first.append(begin)
            length.append(count)
        begins.append(len(first))
    return Places(
        np.array(begins, dtype=np.int64),
        np.array(first, dtype=np.int32),
        np.array(length, dtype=np.int32),
    )
