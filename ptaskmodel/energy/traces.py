"""What availability traces change that matters to power: hosts on and off, bandwidths of links."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator

import numpy as np

from ptaskmodel.core.state import CAPACITY, EVENT, LIMIT_NOTHING, TURNED
from ptaskmodel.platform import Platform

# date s, resource, kind, value, what comes after
Coming = tuple[float, int, int, float, Iterator[tuple[float, float]]]


class PowerTraces:
    """The changes of a platform by itself, in order of date: computed again, not recorded."""

    def __init__(self, platform: Platform, since_s: float) -> None:
        n = len(platform.hosts)
        found = [(host.index, int(TURNED), host.state_trace) for host in platform.hosts]
        found += [(n + link.index, int(CAPACITY), link.bandwidth_trace) for link in platform.links]
        self._coming: list[Coming] = []
        for resource, kind, trace in found:
            if trace is not None:
                events = trace.events(since_s)
                if since_s > 0.0:
                    events = itertools.dropwhile(lambda event: event[0] <= since_s, events)
                self._next(resource, kind, events)

    def advance(self, date: float) -> np.ndarray:
        """The changes up to a date, s, as records of the stream."""
        changes = []
        while self._coming and self._coming[0][0] <= date:
            when, resource, kind, value, events = heapq.heappop(self._coming)
            changes.append((when, kind, resource, value, -1, 0.0, LIMIT_NOTHING))
            self._next(resource, kind, events)
        return np.array(changes, dtype=EVENT)

    def _next(self, resource: int, kind: int, events: Iterator[tuple[float, float]]) -> None:
        for date, value in itertools.islice(events, 1):
            heapq.heappush(self._coming, (date, resource, kind, value, events))
