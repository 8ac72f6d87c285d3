"""Times when hosts and links are down: failures, read or drawn, and maintenance windows.

The readers of small CSV files of machine events (failures, maintenance) are here too.
Source: Schroeder and Gibson, "A large-scale study of failures in high-performance computing
systems", IEEE TDSC 7(4), 2010 (Weibull distributions of shape 0.7 to 0.8 fit the times between
failures of real machines).

A maintenance window is known in advance. Failures, repairs and maintenance are merged into one
sequence of machine events.
"""

from __future__ import annotations

import copy
import heapq
import itertools
import math
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from ptaskmodel.batch.machine.host_sets import Mask, first_hosts
from ptaskmodel.batch.machine.machine import Machine
from ptaskmodel.batch.names import FAILURE_LAW
from ptaskmodel.errors import SimulationError, shown
from ptaskmodel.files import AnyPath, read_text
from ptaskmodel.platform.facts import LOOPBACK_NAME, AvailabilityTrace
from ptaskmodel.remarks import Account, reader
from ptaskmodel.units import UnitError, split_float

Changes = Iterable[tuple[float, bool]]
UP, DOWN = "up", "down"
REPAIR_LAWS = ("exponential", "constant")
# Longer than any run; beyond it dates lose the seconds.
LONGEST_S = 1e12


_Rows = Iterator[tuple[int, tuple[str, ...]]]


def _table(path: AnyPath, account: Account, columns: Sequence[str]) -> _Rows:
    """The lines of a CSV file with a header, and what they have in some columns."""
    header, rows = account.table(read_text(path, error=SimulationError))
    counts = {name: header.count(name) for name in columns}
    wrong = ", ".join(f"'{name}' {count} times" for name, count in counts.items() if count != 1)
    if wrong:
        account.problem(f"the header names column {wrong}; give {','.join(columns)}, each once", 1)
    account.check()
    places = [header.index(name) for name in columns]
    return ((line, tuple(row[k].strip() for k in places)) for line, row in rows)


def _date(text: str, column: str) -> float:
    """A date in s; SimulationError if it is none."""
    try:
        value, rest = split_float(text)
    except UnitError:
        value, rest = math.nan, ""
    if rest or not 0 <= value < math.inf:
        raise SimulationError(f"{column} {shown(text)}; give a finite date in s, >= 0")
    return value


@dataclass(frozen=True, slots=True)
class FailureLaw:
    """Failures drawn for each host and link on its own, whatever happens to the others.

    Times from a start or a repair to the next failure follow a Weibull law of mean ``mtbf`` s and
    of this ``shape`` (1: exponential; below 1 failures come in bursts), times to repair have mean
    ``repair`` s and are exponential or constant (``repair_law``). ``link_mtbf`` and ``link_repair``
    are those of links (None: links do not fail; ``repair``). All resources begin as new at date 0.
    The stream of a resource depends on its name and the ``seed`` alone.
    """

    mtbf: float | None = None
    repair: float = 0.0
    shape: float = 1.0
    repair_law: str = "exponential"
    link_mtbf: float | None = None
    link_repair: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("mtbf", 1e-3), ("link_mtbf", 1e-3), ("repair", 0), ("link_repair", 0)):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and least <= value <= LONGEST_S):
                raise SimulationError(
                    f"failures: {name} is {shown(value)}; give {least:g} to {LONGEST_S:g} s"
                )
        if not (_is_number(self.shape) and 0.1 <= self.shape <= 100):
            raise SimulationError(f"failures: shape is {shown(self.shape)}; give 0.1 to 100")
        if self.repair_law not in REPAIR_LAWS:
            raise SimulationError(
                f"failures: repair_law is {shown(self.repair_law)}; use {' or '.join(REPAIR_LAWS)}"
            )
        if type(self.seed) is not int or self.seed < 0:
            raise SimulationError(f"failures: seed is {shown(self.seed)}; give a whole number >= 0")
        if self.mtbf is None and self.link_mtbf is None:
            raise SimulationError("failures: neither mtbf nor link_mtbf is given: nothing fails")

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> FailureLaw:
        """From KEY=VALUE options; SimulationError for an unknown one."""
        for key in options:
            if key not in FAILURE_LAW:
                raise SimulationError(
                    f"failures: option '{key[:60]}' is unknown; use one of {', '.join(FAILURE_LAW)}"
                )
        return cls(**options)

    def stream(self, name: str, *, link: bool = False) -> Iterator[tuple[float, bool]]:
        """Yield (time in s, whether it is up then), endlessly; name: of the host or `link`."""
        mean_s = self.link_mtbf if link else self.mtbf
        if mean_s is None:
            return
        repair_s = self.repair if not link or self.link_repair is None else self.link_repair
        draw = random.Random(f"{self.seed}:{'link' if link else 'host'}:{name}")
        scale_s = mean_s / math.gamma(1 + 1 / self.shape)
        date = 0.0
        while date < LONGEST_S:
            date += draw.weibullvariate(scale_s, self.shape)
            yield date, False
            constant = self.repair_law == "constant" or repair_s == 0
            date += repair_s if constant else draw.expovariate(1 / repair_s)
            yield date, True


@reader(SimulationError)
def read_failures(path: AnyPath, account: Account) -> dict[str, list[tuple[float, bool]]]:
    """Return the changes of each resource in a file: (time in s, whether it is up then), by name.

    path: a CSV file with the columns ``date`` (s), ``resource`` and ``event`` ("down" or "up"),
    sorted by time for each resource; a resource is up before its first line. account: of the file.

    Lines that cannot be read are left out, and told; SimulationError is raised if most are such.
    """
    found: dict[str, list[tuple[float, bool]]] = {}
    for line, (date, name, event) in _table(path, account, ("date", "resource", "event")):
        with account.row(line):
            when = _date(date, "date")
            if event not in (UP, DOWN):
                raise SimulationError(f"event {shown(event)}; write down or up")
            changes = found.get(name, [])
            last_s, was_up = changes[-1] if changes else (0.0, True)
            if when < last_s:
                raise SimulationError(
                    f"{when:g} s is before the last event of '{name[:60]}' ({last_s:g} s): put "
                    "the lines of a resource in order of date"
                )
            if was_up == (event == UP):
                raise SimulationError(f"'{name[:60]}' is {event} already; remove the line")
            changes.append((when, event == UP))
            found[name] = changes
    account.check_rows()
    return found


def failures_of(
    machine: Machine, *, file: str | Path | None = None, law: FailureLaw | None = None
) -> dict[int | str, Changes]:
    """The failures of a machine: of a file, and drawn for what the file does not name.

    By number of the host, and by name of links and hosts that run no jobs. law: by which failures
    are drawn (None: none are).

    Raises SimulationError for a name that the platform does not have, and for a resource that has
    an availability (state) trace in the platform.
    """
    platform = machine.platform
    number = {name: k for k, name in enumerate(machine.names)}
    traced = {host.name for host in platform.hosts if host.state_trace is not None}
    traced |= {link.name for link in platform.links if link.state_trace is not None}
    known = {host.name: False for host in platform.hosts}
    known |= {link.name: True for link in platform.all_links if link.name not in known}
    changes: dict[str, Changes] = {}
    if law is not None:
        # What a host sends to itself crosses no cable.
        known.pop(LOOPBACK_NAME, None)
        wanted = {False: law.mtbf is not None, True: law.link_mtbf is not None}
        changes |= {
            name: law.stream(name, link=link) for name, link in known.items() if wanted[link]
        }
    if file is not None:
        given = read_failures(file)
        account = Account(file, SimulationError)
        for name in sorted(given.keys() - known.keys()):
            halves = [f"{name}_UP", f"{name}_DOWN"]
            remedy = "use the platform's names"
            if all(half in known for half in halves):
                remedy = f"it is SPLITDUPLEX, which is two; use {' and '.join(halves)}"
            account.problem(f"there is no host and no link '{name[:60]}': {remedy}")
        account.check()
        changes |= given
    for name in changes:
        if name in traced:
            raise SimulationError(
                f"'{name[:60]}' has an availability trace in the platform file and failures beside "
                "it: remove one of them"
            )
    return {number.get(name, name): events for name, events in changes.items()}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


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


@reader(SimulationError)
def read_maintenance(path: AnyPath, account: Account, names: Sequence[str]) -> list[Window]:
    """The windows of the file at a path with the columns ``hosts``, ``start`` and ``end`` (s).

    Hosts are names separated by blanks, or numbers as in ``allocated_resources`` ("0-3 7"), or
    "all"; a word that is a name of a host means that host. names: of the hosts, in order. account:
    of the file. Lines that cannot be read are left out, and told; SimulationError is raised if most
    are such.
    """
    number = {name: k for k, name in enumerate(names)}
    found = []
    for line, (hosts, start, end) in _table(path, account, ("hosts", "start", "end")):
        with account.row(line):
            begin_s, end_s = _date(start, "start"), _date(end, "end")
            if end_s <= begin_s:
                raise SimulationError(f"ends at {end_s:g} s, not after its start; correct it")
            mask = 0
            for word in hosts.split():
                mask |= _hosts(word, number)
            if mask == 0:
                raise SimulationError("names no host: give names, numbers such as 0-3, or all")
            found.append(Window(mask, begin_s, end_s))
    account.check_rows()
    return found


def _hosts(word: str, number: dict[str, int]) -> Mask:
    if word in number:
        return 1 << number[word]
    everything = (1 << len(number)) - 1
    if word == "all":
        return everything
    match = _RANGE.fullmatch(word)
    if match is None:
        raise SimulationError(
            f"there is no host {shown(word)}; give names, numbers such as 0-3, or all"
        )
    first, last = int(match[1]), int(match[2] or match[1])
    if not first <= last < len(number):
        raise SimulationError(
            f"hosts {shown(word)}; give ascending numbers from 0 to {len(number) - 1}"
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
            self._take_next(k, stream)
        self.next_date = self._next[0][0] if self._next else inf  # of the first change, s

    def __deepcopy__(self, memo: dict[int, object]) -> Outages:
        """One that goes on by itself."""
        other = memo[id(self)] = copy.copy(self)
        pairs = [itertools.tee(stream) for stream in self._streams]
        self._streams, other._streams = [a for a, _ in pairs], [b for _, b in pairs]
        other._next = list(self._next)
        return other

    def _take_next(self, number: int, stream: Iterator[Outage]) -> None:
        change = next(stream, None)
        if change is not None:
            heapq.heappush(self._next, (change.date_s, number, change))

    def take(self, now: float) -> list[Outage]:
        """The changes up to ``now``, which are gone then."""
        found = []
        while self._next and self._next[0][0] <= now:
            _, number, change = heapq.heappop(self._next)
            found.append(change)
            self._take_next(number, self._streams[number])
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
