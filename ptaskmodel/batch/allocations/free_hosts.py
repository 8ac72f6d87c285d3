"""Allocation rules that choose among the free hosts of a machine without partitions.

First fit takes the lowest hosts. Contiguous takes consecutive hosts, or as few runs of them as
possible. Topology takes hosts below as few leaf switches as possible. Random draws hosts. Spread
takes hosts far from each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptaskmodel.batch.machine.host_sets import Mask, contiguous, lowest, members, of_hosts, runs


class FirstFit:
    """The free hosts of lowest number."""

    constrained = False

    def choose(self, count: int, free: Mask) -> Mask | None:
        return lowest(free, count)


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


class FewestSwitches:
    """Hosts under as few leaf switches as possible.

    One switch that has room is enough: the fullest such is taken. Otherwise the switches with most
    free hosts are emptied first, and the rest goes under the fullest switch that has room for it.
    ``switches``: the hosts below each leaf switch.
    """

    constrained = False

    def __init__(self, switches: Sequence[Mask]) -> None:
        self._switches = tuple(switches)

    def choose(self, count: int, free: Mask) -> Mask | None:
        chosen = 0
        rooms = [(below & free, k) for k, below in enumerate(self._switches) if below & free]
        while count:
            fitting = [room for room in rooms if room[0].bit_count() >= count]
            if fitting:
                hosts, _ = min(fitting, key=lambda room: (room[0].bit_count(), room[1]))
                return chosen | lowest(hosts, count)
            largest = max(rooms, key=lambda room: (room[0].bit_count(), -room[1]))
            chosen |= largest[0]
            count -= largest[0].bit_count()
            rooms.remove(largest)
        return chosen


class Random:
    """Free hosts at random, the same for the same seed and the same sequence of requests."""

    constrained = False

    def __init__(self, seed: int = 0) -> None:
        import random

        self._random = random.Random(seed)

    def choose(self, count: int, free: Mask) -> Mask | None:
        return of_hosts(self._random.sample(members(free), count))


class Spread:
    """Free hosts as evenly far apart as possible, in order of their numbers."""

    constrained = False

    def choose(self, count: int, free: Mask) -> Mask | None:
        hosts = members(free)
        return of_hosts(hosts[k * len(hosts) // count] for k in range(count))
