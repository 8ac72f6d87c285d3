"""By topology: hosts under as few leaf switches as possible."""

from __future__ import annotations

from collections.abc import Sequence

from ptaskmodel.batch.hostset import Mask, lowest


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
