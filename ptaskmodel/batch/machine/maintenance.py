"""Maintenance windows: hosts that are unavailable for a time that is known in advance.

It also merges failures, repairs and maintenance into one sequence of machine events.
"""

from __future__ import annotations

import copy
import heapq
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import NamedTuple

from ptaskmodel.batch.machine.failures import read_table, table_date
from ptaskmodel.batch.machine.host_sets import Mask, first_hosts
from ptaskmodel.errors import SimulationError, shown
from ptaskmodel.platform.facts import AvailabilityTrace

_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


class Window(NamedTuple):
    """A time from ``start_s`` to ``end_s`` in which no job has these hosts."""

    hosts: Mask
    start_s: float
    end_s: float


class Maintenance:
    """The windows of a machine that are not over yet, by start.

    Raises SimulationError for a window that ends before it starts or has hosts that do not exist.
    """

    def __init__(self, windows: Iterable[Window], num_hosts: int) -> None:
        self.windows: Sequence[Window] = sorted(windows, key=lambda window: window[1:])
        for window in self.windows:
            if not 0 <= window.start_s < window.end_s < float("inf"):
                raise SimulationError(
                    f"maintenance from {window.start_s:g} to {window.end_s:g} s; give a start >= 0 "
                    "and a later end"
                )
            if not 0 < window.hosts < 1 << num_hosts:
                raise SimulationError(
                    f"maintenance at {window.start_s:g} s: its hosts are not among 0 to "
                    f"{num_hosts - 1}"
                )

    @property
    def first_s(self) -> float:
        """When the first window begins, or began, s; inf without one."""
        return self.windows[0].start_s if self.windows else float("inf")

    def forget_before(self, now: float) -> None:
        """Drop the windows that are over."""
        self.windows = [window for window in self.windows if window.end_s > now]

    def during(self, begin_s: float, end_s: float) -> Mask:
        """The hosts that a window takes at ``begin_s`` or at some time before ``end_s``."""
        found = 0
        for window in self.windows:
            if window.start_s > begin_s and window.start_s >= end_s:
                break
            if window.end_s > begin_s:
                found |= window.hosts
        return found

    def next_start(self, hosts: Mask, now: float) -> float:
        """When the next window that takes any of these hosts begins, s; inf without one."""
        starts = (w.start_s for w in self.windows if w.hosts & hosts and w.start_s > now)
        return min(starts, default=float("inf"))


def read_maintenance(path: str | Path, names: Sequence[str]) -> list[Window]:
    """The windows of a file with the columns ``hosts``, ``start`` and ``end`` (dates in s).

    Hosts are names separated by blanks, or numbers as in ``allocated_resources`` ("0-3 7"), or
    "all"; a word that is a name of a host means that host. names: of the hosts, in order. Raises
    SimulationError with file and line.
    """
    number = {name: k for k, name in enumerate(names)}
    found = []
    for where, (hosts, start, end) in read_table(path, ("hosts", "start", "end")):
        begin_s, end_s = table_date(start, where, "start"), table_date(end, where, "end")
        if end_s <= begin_s:
            raise SimulationError(f"{where}: ends at {end_s:g} s, not after its start; correct it")
        mask = 0
        for word in hosts.split():
            mask |= _hosts(word, number, where)
        if mask == 0:
            raise SimulationError(
                f"{where}: names no host: give names, numbers such as 0-3, or all"
            )
        found.append(Window(mask, begin_s, end_s))
    return found


def _hosts(word: str, number: dict[str, int], where: str) -> Mask:
    if word in number:
        return 1 << number[word]
    everything = (1 << len(number)) - 1
    if word == "all":
        return everything
    match = _RANGE.fullmatch(word)
    if match is None:
        raise SimulationError(
            f"{where}: there is no host {shown(word)}; give names, numbers such as 0-3, or all"
        )
    first, last = int(match[1]), int(match[2] or match[1])
    if not first <= last < len(number):
        raise SimulationError(
            f"{where}: hosts {shown(word)}; give ascending numbers from 0 to {len(number) - 1}"
        )
    return first_hosts(last + 1) ^ first_hosts(first)


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
