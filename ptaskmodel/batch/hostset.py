"""Sets of hosts as whole numbers: bit k is host k. Counting and searching are a few operations.

A `Mask` is the bare number, for speed; a `HostSet` is the same number that also looks like a set.
On large machines, sets that are made of few runs of consecutive hosts are kept as `Runs`.
"""

from __future__ import annotations

from bisect import bisect_right
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
# The masks of the first 1, 2, 4, ... hosts.
_HALVES = [(1 << (1 << k)) - 1 for k in range(24)]


class HostSet(int):
    """A set of host numbers: iterate, ``len``, ``in``, ``&``, ``|``, ``-``, ``^``, ``<=``.

    Made of host numbers, ``HostSet.of([0, 1, 5])``, or of a mask, ``HostSet(0b100011)``; shown as
    Batsim does: ``str(HostSet.of([0, 1, 5])) == "0-1 5"``.
    """

    __slots__ = ()

    @classmethod
    def of(cls, hosts: Iterable[int]) -> HostSet:
        """The set of these host numbers (a mask or another set stays what it is)."""
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
            f"{str(hosts)[:60]} is not a set of hosts: give a HostSet or host numbers"
        ) from None


def first_hosts(count: int) -> Mask:
    """The hosts 0 .. count - 1."""
    return (1 << count) - 1


def of_hosts(hosts: Iterable[int]) -> Mask:
    """The set of these host numbers."""
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
    """The host numbers, ascending."""
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
        half = part & _HALVES[k]
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
    """The set in Batsim's notation, such as "0-2 5"."""
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
