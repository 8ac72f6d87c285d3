"""Random: free hosts drawn at random."""

from __future__ import annotations

import random

from ptaskmodel.batch.hostset import Mask, members, of_hosts


class Random:
    """Free hosts at random, the same for the same seed and the same sequence of requests."""

    constrained = False

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def choose(self, count: int, free: Mask) -> Mask | None:
        return of_hosts(self._random.sample(members(free), count))
