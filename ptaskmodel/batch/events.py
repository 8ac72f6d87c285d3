"""What happens to a batch: events in order of date, priority, sequence number."""

from __future__ import annotations

import heapq
from math import inf
from typing import Any, NamedTuple

ENDED = "ended"
HOST_DOWN = "host down"
HOST_UP = "host up"
LINK_DOWN = "link down"
LINK_UP = "link up"
MAINTENANCE_BEGINS = "maintenance begins"
MAINTENANCE_ENDS = "maintenance ends"
SUBMITTED = "submitted"
MESSAGE = "message"
WAKE = "wake"
SWITCHED = "switched"
# What happens to the machine.
MACHINE = (HOST_DOWN, HOST_UP, LINK_DOWN, LINK_UP, MAINTENANCE_BEGINS, MAINTENANCE_ENDS)

# Of events of one date: jobs end first; hosts change by their traces, then by hand, then comes the
# rest; the policy is asked when all is told.
BY_HAND, LATER = 1, 2


class Event(NamedTuple):
    """Something that the policy is told: when, what (the names above), and of whom.

    subject: the `Attempt` that ended, the number of the host, the name of the link, the `Window` of
    maintenance, the `Job` submitted (or requeued), the message, the `Switch` of hosts that have got
    to the pstate asked for, or None.
    """

    date_s: float
    kind: str
    subject: Any = None


class Agenda:
    """Events to come, but for ends and submissions, which have queues of their own."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, int, Event]] = []
        self._number = 0
        self.urgent = 0  # events other than wakes
        self.next_date = inf  # of the first event, s

    def add(self, event: Event, priority: int) -> None:
        """Plan an event."""
        self._number += 1
        self.urgent += event.kind != WAKE
        heapq.heappush(self._heap, (event.date_s, priority, self._number, event))
        self.next_date = self._heap[0][0]

    def take(self, now: float) -> list[Event]:
        """The events of dates up to ``now``, in order; they are gone then."""
        found = []
        while self._heap and self._heap[0][0] <= now:
            event = heapq.heappop(self._heap)[3]
            self.urgent -= event.kind != WAKE
            found.append(event)
        self.next_date = self._heap[0][0] if self._heap else inf
        return found
