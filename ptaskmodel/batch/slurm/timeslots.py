"""Backfill's map: which nodes are not reserved, slot after slot of future time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from ptaskmodel.batch.hostset import Mask


class TimeSlots:
    """Slots [begin, end) of whole seconds, contiguous, each with the nodes not reserved in it."""

    def __init__(self, begin: int, end: int, nodes: Mask) -> None:
        self.begins = [begin]
        self.ends = [end]
        self.free = [nodes]
        # How many were ever made: slots that are joined again are not counted back.
        self.records = 1

    def __len__(self) -> int:
        return len(self.begins)

    def open(self, start: float, end: float, nodes: Mask) -> tuple[Mask, int]:
        """Those of some nodes that are reserved nowhere in [start, end], and when to look again.

        That is the end of the first slot from start on after which another node is there; 0: none.
        """
        left, later = nodes, 0
        begins, ends, free = self.begins, self.ends, self.free
        last = len(begins) - 1
        for k in range(bisect_right(ends, start), len(begins)):
            if later == 0 and k < last and nodes & free[k + 1] & ~(left & free[k]):
                later = ends[k]
            if begins[k] > end:
                break
            left &= free[k]
            if later and not left:
                break
        return left, later

    def collides(self, begin: int, end: int, nodes: Mask) -> bool:
        """Whether some of the nodes are reserved within [begin, end)."""
        for k in range(bisect_right(self.ends, begin), len(self.begins)):
            if self.begins[k] >= end:
                return False
            if nodes & ~self.free[k]:
                return True
        return False

    def reserve(self, begin: int, end: int, nodes: Mask) -> None:
        """Take some nodes out of [begin, end); two equal neighbours are joined, as Slurm does."""
        begin = max(begin, self.begins[0])
        k = bisect_left(self.ends, begin)
        before = max(k - 1, 0)
        after = -1
        if k < len(self.begins):
            if self.ends[k] > begin:
                self._split(k, begin)
            slot = k + 1
            while slot < len(self.begins):
                if end < self.ends[slot]:
                    self._split(slot, end)
                self.free[slot] &= ~nodes
                slot += 1
                if end == self.ends[slot - 1]:
                    after = slot if slot < len(self.begins) else -1
                    break
        self._join(before, after)

    def _split(self, k: int, date: int) -> None:
        self.records += 1
        self.begins.insert(k + 1, date)
        self.ends.insert(k + 1, self.ends[k])
        self.ends[k] = date
        self.free.insert(k + 1, self.free[k])

    def _join(self, k: int, after: int) -> None:
        while k != after and k + 1 < len(self.begins):
            if self.free[k] == self.free[k + 1]:
                self.ends[k] = self.ends[k + 1]
                del self.begins[k + 1], self.ends[k + 1], self.free[k + 1]
                return
            k += 1
