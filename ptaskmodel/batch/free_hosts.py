"""The free hosts of a machine: how many, as runs of consecutive hosts, as a mask if one asks."""

from __future__ import annotations

from bisect import bisect_left

from ptaskmodel.batch.hostset import Mask, Placement, Runs, flat_runs, mask_of

# So many changes are made up for in a mask; after more, it is made anew when somebody asks.
KEPT_CHANGES = 8


class FreeHosts:
    """A set of hosts that gives its lowest ones and takes them back in a time that does not depend
    on the size of the machine.

    It is kept as runs, as a mask, or as both; what is missing is made when somebody asks for it.
    Placements come back in the form in which they went, so that a batch in which nobody looks at
    masks makes none, and one whose allocation works on masks makes no runs.
    """

    __slots__ = ("_changes", "_ends", "_firsts", "_mask", "_num_hosts", "count")

    def __init__(self, num_hosts: int) -> None:
        self.count = num_hosts
        self._num_hosts = num_hosts
        # The runs, the lowest last: minus the first host of each (so that they ascend), its end.
        self._firsts: list[int] | None = None
        self._ends: list[int] = []
        self._mask: Mask | None = (1 << num_hosts) - 1
        self._changes: list[Runs] = []  # placements taken or given since the mask was made

    @property
    def mask(self) -> Mask:
        """The free hosts as a mask."""
        if self._mask is None:
            self._mask = mask_of(self.runs, self._num_hosts)
        elif self._changes:
            # A placement that was taken had been free, one that was given had not.
            for placement in self._changes:
                self._mask ^= mask_of(placement, self._num_hosts)
            self._changes.clear()
        return self._mask

    @mask.setter
    def mask(self, hosts: Mask) -> None:
        self._mask, self._firsts, self.count = hosts, None, hosts.bit_count()
        self._changes.clear()

    @property
    def runs(self) -> Runs:
        """The free hosts as runs."""
        firsts = self._make_runs()
        flat = [0] * (2 * len(firsts))
        flat[0::2] = [-first for first in reversed(firsts)]
        flat[1::2] = reversed(self._ends)
        return tuple(flat)

    def _make_runs(self) -> list[int]:
        if self._firsts is None:
            flat = flat_runs(self.mask)
            self._firsts = [-first for first in flat[-2::-2]]
            self._ends = list(flat[-1::-2])
        return self._firsts

    def take_lowest(self, count: int) -> Runs:
        """Take the ``count`` lowest hosts; there must be as many."""
        firsts, ends = self._firsts, self._ends
        if firsts is None:
            firsts = self._make_runs()
            ends = self._ends
        self.count -= count
        taken: list[int] = []
        while count:
            first = -firsts[-1]
            end = first + count
            if end >= ends[-1]:
                end = ends.pop()
                firsts.pop()
            else:
                firsts[-1] = -end
            taken += (first, end)
            count -= end - first
        placement = tuple(taken)
        if self._mask is not None:
            self._note(placement)
        return placement

    def take(self, placement: Placement) -> None:
        """These hosts, which are free, no longer are."""
        if isinstance(placement, int):
            self.mask = self.mask & ~placement
            return
        firsts, ends = self._make_runs(), self._ends
        for begin, end in zip(placement[0::2], placement[1::2], strict=True):
            # The run that holds them; what it has above and below them stays.
            k = bisect_left(firsts, -begin)
            first, last = -firsts[k], ends[k]
            del firsts[k], ends[k]
            if first < begin:
                firsts.insert(k, -first)
                ends.insert(k, begin)
            if end < last:
                firsts.insert(k, -end)
                ends.insert(k, last)
            self.count -= end - begin
        if self._mask is not None:
            self._note(placement)

    def give(self, placement: Placement) -> None:
        """These hosts, which were not free, are."""
        if isinstance(placement, int):
            self.mask = self.mask | placement
            return
        firsts, ends = self._firsts, self._ends
        if firsts is None:
            self.mask = self.mask | mask_of(placement, self._num_hosts)
            return
        borders = iter(placement)
        for begin, end in zip(borders, borders, strict=True):
            self.count += end - begin
            # The neighbours: the run above stands before the place, the run below at it.
            place = bisect_left(firsts, -begin)
            if place and firsts[place - 1] == -end:
                if place < len(ends) and ends[place] == begin:
                    ends[place] = ends[place - 1]
                    del firsts[place - 1], ends[place - 1]
                else:
                    firsts[place - 1] = -begin
            elif place < len(ends) and ends[place] == begin:
                ends[place] = end
            else:
                firsts.insert(place, -begin)
                ends.insert(place, end)
        if self._mask is not None:
            self._note(placement)

    def _note(self, placement: Runs) -> None:
        """A change of the runs, to be made up for in the mask."""
        self._changes.append(placement)
        if len(self._changes) > KEPT_CHANGES:
            self._mask = None
            self._changes.clear()
