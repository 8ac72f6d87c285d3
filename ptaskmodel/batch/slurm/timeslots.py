"""Backfill's map: which nodes are not reserved, slot after slot of future time."""

from __future__ import annotations

from ptaskmodel.batch.hostset import Mask


class TimeSlots:
    """Slots [begin, end) of whole seconds, contiguous, each with the nodes not reserved in it."""

    def __init__(self, begin: int, end: int, nodes: Mask) -> None:
        self.begins = [begin]
        self.ends = [end]
        self.free = [nodes]

    def __len__(self) -> int:
        return len(self.begins)

    def open(self, start: float, end: float, nodes: Mask) -> tuple[Mask, int]:
        """Those of some nodes that are reserved nowhere in [start, end], and when to look again.

        That is the end of the first slot from start on after which another node is there; 0: none.
        """
        left, later = nodes, 0
        begins, ends, free = self.begins, self.ends, self.free
        last = len(begins) - 1
        for k in range(len(begins)):
            if ends[k] <= start:
                continue
            if later == 0 and k < last and nodes & free[k + 1] & ~(left & free[k]):
                later = ends[k]
            if begins[k] > end:
                break
            left &= free[k]
        return left, later

    def collides(self, begin: int, end: int, nodes: Mask) -> bool:
        """Whether some of the nodes are reserved within [begin, end)."""
        for k, free in enumerate(self.free):
            if self.ends[k] > begin and self.begins[k] < end and nodes & ~free:
                return True
        return False

    def reserve(self, begin: int, end: int, nodes: Mask) -> None:
        """Take some nodes out of [begin, end)."""
        self._cut(begin)
        self._cut(end)
        for k in range(len(self.begins)):
            if self.begins[k] >= end:
                break
            if self.ends[k] > begin:
                self.free[k] &= ~nodes
        self._merge()

    def _cut(self, date: int) -> None:
        for k in range(len(self.begins)):
            if self.begins[k] < date < self.ends[k]:
                self.begins.insert(k + 1, date)
                self.ends.insert(k + 1, self.ends[k])
                self.ends[k] = date
                self.free.insert(k + 1, self.free[k])
                return

    def _merge(self) -> None:
        for k in range(len(self.begins) - 1, 0, -1):
            if self.free[k] == self.free[k - 1]:
                self.ends[k - 1] = self.ends[k]
                del self.begins[k], self.ends[k], self.free[k]
