"""Map of backfill: which nodes, and how many licences, are not reserved in each slot of time.

`backfill.Cycle` makes one; `slot_kernel` has the same for compiled cycles, without licences.
Source: Slurm 22.05, `_add_reservation` and `_test_resv_overlap` of src/plugins/sched/backfill.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from types import MappingProxyType

from ptaskmodel.batch.machine.host_sets import Mask

Licences = Mapping[str, int]
NONE: Licences = MappingProxyType({})


class TimeSlots:
    """Slots [begin, end) of whole seconds, contiguous, each with what is not reserved in it.

    nodes, licences: there at first. Without licences nothing is counted of them.
    """

    def __init__(self, begin: int, end: int, nodes: Mask, licences: Licences = NONE) -> None:
        self.begins = [begin]
        self.ends = [end]
        self.free = [nodes]
        self.licences = [dict(licences)]
        # How many were ever made: slots that are joined again are not counted back.
        self.records = 1

    def __len__(self) -> int:
        return len(self.begins)

    def open(self, start: float, end: float, nodes: Mask, asked: Licences) -> tuple[Mask, int]:
        """Those of some `nodes` that are reserved nowhere in [`start`, `end`], and when to retry.

        That is the end of the first slot from `start` on after which another node is there; 0:
        none. If a slot lacks licences that are `asked`, no node will do, and it is the end of the
        last such slot.
        """
        left, later = nodes, 0
        begins, ends, free = self.begins, self.ends, self.free
        last = len(begins) - 1
        lacks = False
        for k in range(bisect_right(ends, start), len(begins)):
            if later == 0 and k < last and nodes & free[k + 1] & ~(left & free[k]):
                later = ends[k]
            if begins[k] > end:
                break
            left &= free[k]
            if asked and self._lacks(k, asked):
                lacks, later = True, ends[k]
            elif later and not left and not asked:
                break
        return (0 if lacks else left), later

    def _lacks(self, k: int, asked: Licences) -> bool:
        there = self.licences[k]
        return any(there.get(name, count) < count for name, count in asked.items())

    def collides(self, begin: int, end: int, nodes: Mask, asked: Licences) -> bool:
        """Whether some of the `nodes`, or licences `asked`, are reserved in [`begin`, `end`)."""
        for k in range(bisect_right(self.ends, begin), len(self.begins)):
            if self.begins[k] >= end:
                return False
            if nodes & ~self.free[k] or (asked and self._lacks(k, asked)):
                return True
        return False

    def reserve(self, begin: int, end: int, nodes: Mask, asked: Licences) -> None:
        """Take `nodes` and licences out of [`begin`, `end`); join two equal neighbours, as Slurm.

        asked: how many licences, by name.
        """
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
                there = self.licences[slot]
                for name in asked.keys() & there.keys():
                    there[name] = max(0, there[name] - asked[name])
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
        self.licences.insert(k + 1, self.licences[k].copy())

    def _join(self, k: int, after: int) -> None:
        while k != after and k + 1 < len(self.begins):
            if self.free[k] == self.free[k + 1] and self.licences[k] == self.licences[k + 1]:
                self.ends[k] = self.ends[k + 1]
                for column in (self.begins, self.ends, self.free, self.licences):
                    del column[k + 1]
                return
            k += 1
