"""When hosts go down and come up by the availability traces of the platform, date by date."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from math import inf

from ptaskmodel.platform.model import AvailabilityTrace


class Outages:
    """The events of the traces of hosts, computed as they come (a trace may go on for ever).

    traces: by number of the host; a host is up while the value is positive, and before the first.
    """

    def __init__(self, traces: Mapping[int, AvailabilityTrace]) -> None:
        self._traces = dict(traces)
        # (date, host, position in the trace, repetition), the dates as the core computes them
        self._next = [
            (trace.dates_s[0], host, 0, 0) for host, trace in self._traces.items() if trace.dates_s
        ]
        heapq.heapify(self._next)
        self.next_date = self._next[0][0] if self._next else inf  # of the first event, s

    def take(self, now: float) -> list[tuple[float, int, bool]]:
        """(date, host, whether it is up) of the events up to ``now``, which are gone then."""
        found = []
        while self._next and self._next[0][0] <= now:
            date, host, position, repetition = heapq.heappop(self._next)
            trace = self._traces[host]
            found.append((date, host, trace.values[position] > 0))
            position += 1
            if position == len(trace.dates_s):
                if trace.period_s is None:
                    continue
                position, repetition = 0, repetition + 1
            date = trace.dates_s[position]
            if repetition:
                assert trace.period_s is not None
                date += repetition * trace.period_s
            heapq.heappush(self._next, (date, host, position, repetition))
        self.next_date = self._next[0][0] if self._next else inf
        return found
