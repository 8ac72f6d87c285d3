"""Contiguous: consecutive hosts, or as few pieces as possible."""

from __future__ import annotations

from ptaskmodel.batch.hostset import Mask, contiguous, runs


class Contiguous:
    """The first run of consecutive free hosts that is long enough.

    Strict: the job waits until there is one. Otherwise, when there is none, the longest runs are
    taken first, which makes few pieces.
    """

    def __init__(self, strict: bool = True) -> None:
        self.constrained = strict

    def choose(self, count: int, free: Mask) -> Mask | None:
        found = contiguous(free, count)
        if found is not None or self.constrained:
            return found
        pieces = sorted(runs(free), key=lambda run: (-run[1], run[0]))
        chosen = 0
        for first, length in pieces:
            taken = min(length, count)
            chosen |= ((1 << taken) - 1) << first
            count -= taken
            if count == 0:
                break
        return chosen
