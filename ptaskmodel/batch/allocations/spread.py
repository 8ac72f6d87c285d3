"""Spread: free hosts as far apart as possible."""

from __future__ import annotations

from ptaskmodel.batch.hostset import Mask, members, of_hosts


class Spread:
    """Free hosts as evenly far apart as possible, in order of their numbers."""

    constrained = False

    def choose(self, count: int, free: Mask) -> Mask | None:
        hosts = members(free)
        return of_hosts(hosts[k * len(hosts) // count] for k in range(count))
