"""Which cores of a node: cyclic over its sockets, or block after block; sets of cores as masks."""

from __future__ import annotations

from math import ceil

from ptaskmodel.batch.hostset import Mask, first_hosts, lowest
from ptaskmodel.batch.slurm.conf.facts import NodeLine


def of_sockets(line: NodeLine, free: Mask) -> list[Mask]:
    """The free cores of each socket."""
    size = line.cores_per_socket
    whole = first_hosts(size)
    return [free & whole << k * size for k in range(line.sockets)]


def whole_sockets(line: NodeLine, cores: Mask) -> Mask:
    """The cores of all sockets that some cores touch."""
    size = line.cores_per_socket
    whole = first_hosts(size)
    return sum(whole << k * size for k in range(line.sockets) if cores >> k * size & whole)


def cyclic(sockets: list[Mask], count: int) -> Mask:
    """The lowest free core of each socket in turn, until there are enough."""
    free = [each.bit_count() for each in sockets]
    taken = [0] * len(sockets)
    left = [k for k, cores in enumerate(free) if cores]
    while count > 0 and left:
        turns = min(count // len(left), *(free[k] - taken[k] for k in left))
        for k in left if turns else left[:count]:
            taken[k] += max(turns, 1)
        count -= turns * len(left) if turns else count
        left = [k for k in left if taken[k] < free[k]]
    return sum(lowest(each, cores) for each, cores in zip(sockets, taken, strict=True))


def block(sockets: list[Mask], count: int, boards: int = 1) -> Mask:
    """The fewest boards, then the tightest socket that suffices, else the fullest; lowest first."""
    if boards > 1:
        size = len(sockets) // boards
        groups = [sockets[k * size : (k + 1) * size] for k in range(boards)]
        found = 0
        left: list[list[Mask]] = groups
        while count > found.bit_count() and any(map(any, left)):
            need = count - found.bit_count()
            frees = [sum(socket.bit_count() for socket in group) for group in left]
            k = _tightest(frees, need)
            found |= block(left[k], need)
            left[k] = []
        return found
    rest, found = list(sockets), 0
    while count > 0 and any(rest):
        k = _tightest([socket.bit_count() for socket in rest], count)
        taken = lowest(rest[k], min(count, rest[k].bit_count()))
        rest[k] = 0
        found |= taken
        count -= taken.bit_count()
    return found


def packed(sockets: list[Mask], cpus: int, cpus_per_task: int, cpus_per_core: int) -> Mask:
    """The cores for so many CPUs of tasks that do not straddle sockets, the first socket first.

    What whole tasks on a socket do not cover is taken from the sockets in turn.
    """
    found = 0
    for free in sockets:
        fits = free.bit_count() * cpus_per_core
        fits -= fits % cpus_per_task
        count = min(cores_for(fits, cpus_per_core), cores_for(max(cpus, 0), cpus_per_core))
        found |= lowest(free, count)
        cpus -= count * cpus_per_core
    rest = [free & ~found for free in sockets]
    return found | cyclic(rest, cores_for(max(cpus, 0), cpus_per_core))


def cores_for(cpus: int, threads: int) -> int:
    """Whole cores that hold so many CPUs."""
    return ceil(cpus / threads)


def _tightest(frees: list[int], need: int) -> int:
    """Which has the fewest free that suffice, else the most; the lowest of equals."""
    return min(
        range(len(frees)),
        key=lambda k: (frees[k] < need, frees[k] if frees[k] >= need else -frees[k]),
    )
