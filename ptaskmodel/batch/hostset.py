"""Sets of hosts as whole numbers: bit k is host k. Counting and searching are a few operations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ptaskmodel.errors import WorkloadError

HostSet = int


def first_hosts(count: int) -> HostSet:
    """The hosts 0 .. count - 1."""
    return (1 << count) - 1


def of_hosts(hosts: Iterable[int]) -> HostSet:
    """The set of these host numbers."""
    mask = 0
    for host in hosts:
        mask |= 1 << host
    return mask


def runs(hosts: HostSet) -> Iterator[tuple[int, int]]:
    """(first, length) of each run of consecutive hosts, lowest first."""
    position = 0
    while hosts:
        gap = (hosts & -hosts).bit_length() - 1
        hosts >>= gap
        position += gap
        length = (hosts + 1 & ~hosts).bit_length() - 1
        yield position, length
        hosts >>= length
        position += length


def members(hosts: HostSet) -> list[int]:
    """The host numbers, ascending."""
    return [host for first, length in runs(hosts) for host in range(first, first + length)]


def lowest(hosts: HostSet, count: int) -> HostSet:
    """The ``count`` lowest hosts of a set that has at least as many."""
    low, high = count, hosts.bit_length()
    while low < high:
        middle = (low + high) // 2
        if (hosts & ((1 << middle) - 1)).bit_count() >= count:
            high = middle
        else:
            low = middle + 1
    return hosts & ((1 << low) - 1)


def contiguous(hosts: HostSet, count: int) -> HostSet | None:
    """The lowest ``count`` consecutive hosts of the set; None if there is no such run."""
    begins, length = hosts, 1
    while length < count:
        step = min(length, count - length)
        begins &= begins >> step
        length += step
    if not begins:
        return None
    return ((1 << count) - 1) << ((begins & -begins).bit_length() - 1)


def text(hosts: HostSet) -> str:
    """The set in Batsim's notation, such as "0-2 5"."""
    return " ".join(
        str(first) if length == 1 else f"{first}-{first + length - 1}"
        for first, length in runs(hosts)
    )


def parse(notation: str) -> HostSet:
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
