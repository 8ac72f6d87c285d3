"""When hosts and links go down and come up, and maintenance begins and ends, date by date."""

from __future__ import annotations

import copy
import heapq
import itertools
from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import NamedTuple

from ptaskmodel.batch.maintenance import Window
from ptaskmodel.platform.model import AvailabilityTrace

Subject = int | str | Window


class Outage(NamedTuple):
    """A host (its number), a link or a host without jobs (a name), or a window of maintenance.

    up: whether it is there from ``date_s`` on. followed: the platform's traces say so too.
    """

    date_s: float
    subject: Subject
    up: bool
    followed: bool


class Outages:
    """The changes of many resources in order of date, computed as they come: they may be endless.

    traces: of the platform; the execution follows those by itself. failures: (date, whether it is
    up), which the execution must be told. Of one date: traces first, then failures, then windows,
    each in the order given.
    """

    def __init__(
        self,
        traces: Mapping[int | str, AvailabilityTrace],
        failures: Iterable[tuple[Subject, Iterable[tuple[float, bool]]]] = (),
        windows: Iterable[Window] = (),
    ) -> None:
        streams: list[Iterator[Outage]] = [
            _of_trace(subject, trace) for subject, trace in traces.items()
        ]
        streams += [_of_failures(subject, changes) for subject, changes in failures]
        streams += [_of_window(window) for window in windows]
        self._streams = streams
        self._next: list[tuple[float, int, Outage]] = []
        for k, stream in enumerate(streams):
            self._go_on(k, stream)
        self.next_date = self._next[0][0] if self._next else inf  # of the first change, s

    def __deepcopy__(self, memo: dict[int, object]) -> Outages:
        """One that goes on by itself."""
        other = memo[id(self)] = copy.copy(self)
        pairs = [itertools.tee(stream) for stream in self._streams]
        self._streams, other._streams = [a for a, _ in pairs], [b for _, b in pairs]
        other._next = list(self._next)
        return other

    def _go_on(self, number: int, stream: Iterator[Outage]) -> None:
        change = next(stream, None)
        if change is not None:
            heapq.heappush(self._next, (change.date_s, number, change))

    def take(self, now: float) -> list[Outage]:
        """The changes up to ``now``, which are gone then."""
        found = []
        while self._next and self._next[0][0] <= now:
            _, number, change = heapq.heappop(self._next)
            found.append(change)
            self._go_on(number, self._streams[number])
        self.next_date = self._next[0][0] if self._next else inf
        return found


def _of_trace(subject: Subject, trace: AvailabilityTrace) -> Iterator[Outage]:
    """A resource is up while the value of its trace is positive, and before the first."""
    for date_s, value in trace.events():
        yield Outage(date_s, subject, value > 0, True)


def _of_failures(subject: Subject, changes: Iterable[tuple[float, bool]]) -> Iterator[Outage]:
    for date_s, up in changes:
        yield Outage(date_s, subject, up, False)


def _of_window(window: Window) -> Iterator[Outage]:
    yield Outage(window.start_s, window, False, False)
    yield Outage(window.end_s, window, True, False)
