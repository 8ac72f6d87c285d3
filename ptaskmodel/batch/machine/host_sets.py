"""Sets of hosts as integers: bit k is host k, so that counting and searching are a few operations.

A `Mask` is the bare integer, for speed; a `HostSet` wraps it as a set. On large machines, sets of
few runs of consecutive hosts are kept as `Runs`. `FreeHosts` are the free hosts of a machine: their
number, their runs of consecutive hosts, and on demand their mask.
"""

from __future__ import annotations

import functools
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import cast

import numpy as np

from ptaskmodel.errors import WorkloadError

Mask = int
# The first host of a run and the one after its last, of each run, lowest first: (0, 3, 5, 6).
Runs = tuple[int, ...]
# The hosts of a job, in the form in which they were chosen.
Placement = Mask | Runs
# From so many hosts on, arrays of flags are quicker than operations on whole numbers, run by run.
MANY_HOSTS = 4096
# So many changes are made up for in a mask; after more, it is made anew when somebody asks.
KEPT_CHANGES = 8


class HostSet(int):
    """A set of host numbers: iterate, ``len``, ``in``, ``&``, ``|``, ``-``, ``^``, ``<=``.

    Made of host numbers, ``HostSet.of([0, 1, 5])``, or of a mask, ``HostSet(0b100011)``; shown as
    Batsim does: ``str(HostSet.of([0, 1, 5])) == "0-1 5"``.
    """

    __slots__ = ()

    @classmethod
    def of(cls, hosts: Iterable[int]) -> HostSet:
        """Return the set of these `hosts` (numbers; a mask or another set stays unchanged)."""
        return cls(as_mask(hosts))

    def __iter__(self) -> Iterator[int]:
        return iter(members(self))

    def __len__(self) -> int:
        return self.bit_count()

    def __contains__(self, host: object) -> bool:
        return isinstance(host, int) and host >= 0 and bool(int(self) >> host & 1)

    def __and__(self, other: object) -> HostSet:
        return HostSet(int(self) & as_mask(other))

    def __or__(self, other: object) -> HostSet:
        return HostSet(int(self) | as_mask(other))

    def __xor__(self, other: object) -> HostSet:
        return HostSet(int(self) ^ as_mask(other))

    def __sub__(self, other: object) -> HostSet:
        return HostSet(int(self) & ~as_mask(other))

    def __le__(self, other: object) -> bool:
        return int(self) & ~as_mask(other) == 0

    def __ge__(self, other: object) -> bool:
        return as_mask(other) & ~int(self) == 0

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __lt__(self, other: object) -> bool:
        return self <= other and int(self) != as_mask(other)

    def __gt__(self, other: object) -> bool:
        return self >= other and int(self) != as_mask(other)

    def __str__(self) -> str:
        return text(self)

    def __repr__(self) -> str:
        return f"HostSet({text(self)!r})"


def as_mask(hosts: object) -> Mask:
    """The mask of a mask, a `HostSet` or host numbers; WorkloadError for anything else."""
    if isinstance(hosts, int):
        return int(hosts)
    try:
        return of_hosts(cast("Iterable[int]", hosts))
    except (TypeError, ValueError):
        raise WorkloadError(
            f"{str(hosts)[:60]} is not a set of hosts; give a HostSet or host numbers"
        ) from None


def first_hosts(count: int) -> Mask:
    """The hosts 0 .. count - 1."""
    return (1 << count) - 1


@functools.cache
def _first(k: int) -> Mask:
    """The first 2**k hosts."""
    return first_hosts(1 << k)


def of_hosts(hosts: Iterable[int]) -> Mask:
    """Return the set of these `hosts` (numbers)."""
    hosts = hosts if isinstance(hosts, (list, tuple)) else list(hosts)
    if len(hosts) > MANY_HOSTS and min(hosts) >= 0:
        octets = bytearray((max(hosts) >> 3) + 1)  # an int would be copied for each of them
        for host in hosts:
            octets[host >> 3] |= 1 << (host & 7)
        return int.from_bytes(octets, "little")
    mask = 0
    for host in hosts:
        mask |= 1 << host
    return mask


def flat_runs(hosts: Placement) -> Runs:
    """The runs of a set."""
    if isinstance(hosts, tuple):
        return hosts
    hosts = int(hosts)
    if hosts.bit_length() > MANY_HOSTS:
        octets = np.frombuffer(hosts.to_bytes(hosts.bit_length() // 8 + 1, "little"), np.uint8)
        flags = np.unpackbits(octets, bitorder="little")
        return tuple((np.flatnonzero(np.diff(flags, prepend=0))).tolist())
    found: list[int] = []
    position = 0
    while hosts:
        gap = (hosts & -hosts).bit_length() - 1
        hosts >>= gap
        length = (hosts + 1 & ~hosts).bit_length() - 1
        hosts >>= length
        found += (position + gap, position + gap + length)
        position += gap + length
    return tuple(found)


def runs(hosts: Placement) -> Iterator[tuple[int, int]]:
    """(first, length) of each run of consecutive hosts, lowest first."""
    flat = flat_runs(hosts)
    return ((flat[k], flat[k + 1] - flat[k]) for k in range(0, len(flat), 2))


def members(hosts: Placement) -> list[int]:
    """Return the numbers of `hosts`, ascending."""
    flat = flat_runs(hosts)
    if len(flat) == 2:
        return list(range(flat[0], flat[1]))
    return [host for k in range(0, len(flat), 2) for host in range(flat[k], flat[k + 1])]


def mask_of(placement: Placement, num_hosts: int = 0) -> Mask:
    """The mask of a placement. num_hosts: of the machine, if it is known."""
    if isinstance(placement, int):
        return placement
    if len(placement) > 8 and num_hosts > MANY_HOSTS:
        borders, steps = np.array(placement), np.zeros(num_hosts + 1, dtype=np.int8)
        steps[borders[0::2]] += 1
        steps[borders[1::2]] -= 1
        flags = np.packbits(np.cumsum(steps, dtype=np.int8), bitorder="little")
        return int.from_bytes(flags.tobytes(), "little")
    mask = 0
    for k in range(0, len(placement), 2):
        mask |= (1 << placement[k + 1]) - (1 << placement[k])
    return mask


def holds(placement: Placement, host: int) -> bool:
    """Whether a host belongs to a placement."""
    if isinstance(placement, int):
        return bool(placement >> host & 1)
    return bool(bisect_right(placement, host) & 1)


def lowest(hosts: Mask, count: int) -> Mask:
    """The ``count`` lowest hosts of a set that has at least as many."""
    if count <= 1:
        return hosts & -hosts if count else 0
    # Halve the part that holds the last of them.
    part, left, position = hosts, count, 0
    for k in range((hosts.bit_length() - 1).bit_length() - 1, -1, -1):
        half = part & _first(k)
        within = half.bit_count()
        if within >= left:
            part = half
        else:
            left -= within
            part >>= 1 << k
            position += 1 << k
    return hosts & ((2 << position) - 1)


def contiguous(hosts: Mask, count: int) -> Mask | None:
    """The lowest ``count`` consecutive hosts of the set; None if there is no such run."""
    begins, length = hosts, 1
    while length < count:
        step = min(length, count - length)
        begins &= begins >> step
        length += step
    if not begins:
        return None
    return ((1 << count) - 1) << ((begins & -begins).bit_length() - 1)


def text(hosts: Placement) -> str:
    """Return `hosts` in Batsim's notation, such as "0-2 5"."""
    flat = flat_runs(hosts)
    return " ".join(
        str(first) if end == first + 1 else f"{first}-{end - 1}"
        for first, end in zip(flat[::2], flat[1::2], strict=True)
    )


def parse(notation: str) -> Mask:
    """The set that `text` (or Batsim, also with commas) wrote; WorkloadError if it is malformed."""
    mask = 0
    for part in notation.replace(",", " ").split():
        first, dash, last = part.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise WorkloadError(f"'{notation}' is not a set of hosts such as '0-2 5'")
        begin, end = int(first), int(last) if dash else int(first)
        if end < begin:
            raise WorkloadError(f"'{notation}': {begin}-{end} runs backwards")
        mask |= first_hosts(end - begin + 1) << begin
    return mask


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
