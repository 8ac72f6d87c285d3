"""First fit: the lowest free hosts."""

from __future__ import annotations

from ptaskmodel.batch.hostset import Mask, lowest


class FirstFit:
    """The free hosts of lowest number."""

    constrained = False

    def choose(self, count: int, free: Mask) -> Mask | None:
        return lowest(free, count)
