"""Turn the event stream of a simulation into intervals of use, in bounded memory.

All rates are constant between two changes, so these intervals are exact: nothing is sampled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.engine.state import (
    CAPACITY,
    ENDED,
    EVENT,
    LIMIT_CORE,
    LIMIT_DELAY,
    LIMIT_NOTHING,
    RATE,
)
from ptaskmodel.recording.recorded import FIRST_ROUTE, Capacities, Names, Owners, Recorded

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Changes of rates gathered before they are looked at, and uses handed over at once.
GATHERED = 1 << 15
HANDED_OVER = 1 << 18
NONE = -1


class Phases(NamedTuple):
    """Intervals in which tasks kept their rates, one by one in time for each task.

    rate: stages per s. limit: what set it, see `limits.limit_name`. done: part of
    its stage that the task did in it (1 for a whole delay). Dates in s.
    """

    task: IntArray
    start: FloatArray
    end: FloatArray
    rate: FloatArray
    limit: IntArray
    done: FloatArray


class Uses(NamedTuple):
    """Intervals in which a task used a resource: ``rate`` flop/s or B/s of its ``capacity``.

    What the ranks of one task do at a time are intervals of their own.
    """

    resource: IntArray
    task: IntArray
    start: FloatArray
    end: FloatArray
    rate: FloatArray
    capacity: FloatArray

    @property
    def share(self) -> FloatArray:
        """The part of the capacity that is used (0 where the capacity is 0)."""
        whole = np.zeros(len(self.rate))
        return np.divide(self.rate, self.capacity, out=whole, where=self.capacity > 0.0)


class Listener(Protocol):
    """Takes what a `Recorder` finds. Methods are called with non-empty batches."""

    def begin(self, recorder: Recorder) -> None:
        """Prepare for a run that `recorder` records; called once, before anything is recorded."""

    def changes(self, events: np.ndarray) -> None:
        """Process `events` (`engine.state.EVENT` records), ordered by time.

        Kinds: RATE, CAPACITY (set by hand or by traces), ENDED (the rate of the task is 0 from then
        on, without a RATE event).
        """

    def phases(self, phases: Phases) -> None: ...

    def uses(self, uses: Uses) -> None: ...

    def end(self) -> None:
        """Called once, when all has been handed over."""


@runtime_checkable
class TakesRanks(Protocol):
    """A listener that is told of changes of ranks together with those of tasks, in place of these.

    Where a user of the platform changes a capacity, `Listener.changes` says so all the same.
    """

    def changes_with_ranks(
        self, events: np.ndarray, of_ranks: np.ndarray, owners: IntArray
    ) -> None:
        """events: as of `Listener.changes`, there may be none. of_ranks: RATEs of what ranks do,
        with the task as subject; owners: which rank or message it is, not negative.
        """


class Recorder:
    """Hands what the tasks of a simulation do from now on to listeners.

    Of tasks that replay traces there are only uses: ranks have no common rate.

    A context manager: on a normal exit what is under way is recorded up to the current date.
    Recording changes no result of the simulation.
    """

    def __init__(self, simulation: Recorded, listeners: Sequence[Listener]) -> None:
        self.simulation = simulation
        self.listeners = tuple(listeners)
        self.rows = Rows(simulation)
        self.names = Names(simulation)
        self.capacities = Capacities(simulation)
        self._gathered: list[np.ndarray] = []
        self._n_gathered = 0
        # By task: the last RATE, as long as it lasts.
        self._open = np.zeros(0, dtype=EVENT)
        # Of ranks: RATEs and whose they are; by owner the last, as long as it lasts, with its task.
        self._owners = Owners(simulation)
        self._of_ranks: list[tuple[np.ndarray, IntArray]] = []
        self._open_of_ranks = np.zeros(0, dtype=EVENT)
        for listener in self.listeners:
            listener.begin(self)
        simulation.listen(self, ranks=True)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()

    def close(self) -> None:
        """Hand over what is left, up to the current date."""
        self._look(self.simulation.now)
        left = self._open[self._open["limit"] != LIMIT_NOTHING]
        left = left[left["pattern"] >= 0]
        self._hand_over(left, np.full(len(left), self.simulation.now))
        left = self._open_of_ranks[self._open_of_ranks["value"] > 0.0]
        self._hand_over_uses(left, np.full(len(left), self.simulation.now))
        for listener in self.listeners:
            listener.end()

    def take(self, events: np.ndarray) -> None:
        """Process `events`, one chunk of the event stream (see `engine.stream.Listener`)."""
        tasks = self._owners.tasks(events)
        by_hand = np.flatnonzero(events["kind"] == CAPACITY).tolist()
        for first, last in zip([-1, *by_hand], [*by_hand, len(events)], strict=True):
            self._gather(events[first + 1 : last], tasks[first + 1 : last])
            if last < len(events):
                event = events[last]
                self._look(float(event["date"]))
                self.capacities.set(event)
                for listener in self.listeners:
                    listener.changes(events[last : last + 1])

    def forget(self, patterns: list[int]) -> None:
        """These numbers will be given to other patterns."""
        self._look(self.simulation.now)
        self.rows.forget(patterns)
        self.names.windows.forget(patterns)

    def _gather(self, events: np.ndarray, tasks: IntArray) -> None:
        of_ranks = events["subject"] < 0
        self._gathered.append(events[np.isin(events["kind"], (RATE, ENDED)) & ~of_ranks])
        if of_ranks.any():
            told = of_ranks & (events["kind"] == RATE)
            self._of_ranks.append((events[told], tasks[told]))
        self._n_gathered += len(events)
        if self._n_gathered >= GATHERED:
            self._look(self.simulation.now)

    def _look(self, date: float) -> None:
        """Make intervals of the changes gathered, none of them after a date, s."""
        records = self._known(np.concatenate([np.zeros(0, dtype=EVENT), *self._gathered]))
        self._gathered, self._n_gathered = [], 0
        self.rows.find(np.unique(records["pattern"][records["value"] > 0.0]))
        changed = self.capacities.advance(date)
        self._blame_hosts(records)
        self.names.windows.name(records, self.simulation.core)
        everything = np.concatenate([changed, records])
        everything = everything[np.argsort(everything["date"], kind="stable")]
        of_ranks, owners = self._told_of_ranks()
        for listener in self.listeners:
            if isinstance(listener, TakesRanks):
                listener.changes_with_ranks(everything, of_ranks, owners)
            elif len(everything):
                listener.changes(everything)
        tasks = np.unique(records["subject"])
        before = self._open[tasks]
        both = np.concatenate([before[before["pattern"] >= 0], records])
        both = both[np.argsort(both["subject"], kind="stable")]
        last = np.append(both["subject"][1:] != both["subject"][:-1], True)[: len(both)]
        self._open[tasks] = both[last]
        starts = np.flatnonzero(~last)
        self._hand_over(both[starts], both["date"][starts + 1])
        if len(of_ranks):
            self._look_at_ranks(of_ranks, owners)
        self.capacities.forget(self._oldest_open())

    def _told_of_ranks(self) -> tuple[np.ndarray, IntArray]:
        """What was gathered of ranks: with their tasks as subjects, and whose it is."""
        records = np.concatenate([np.zeros(0, dtype=EVENT), *(some for some, _ in self._of_ranks)])
        owners = (~records["subject"]).astype(np.int64)
        if len(records):
            records["subject"] = np.concatenate([tasks for _, tasks in self._of_ranks])
        self._of_ranks = []
        self.rows.find(np.unique(records["pattern"][records["value"] > 0.0]))
        return records, owners

    def _look_at_ranks(self, records: np.ndarray, owners: IntArray) -> None:
        """Make intervals of what was gathered of ranks."""
        self._open_of_ranks = _enlarged(self._open_of_ranks, int(owners.max(initial=-1)) + 1)
        known = np.unique(owners)
        everything = np.concatenate([self._open_of_ranks[known], records])
        owners = np.concatenate([known, owners])
        order = np.argsort(owners, kind="stable")
        everything, owners = everything[order], owners[order]
        last = np.append(owners[1:] != owners[:-1], True)[: len(owners)]
        self._open_of_ranks[known] = everything[last]
        starts = np.flatnonzero(~last)
        date = everything["date"]
        starts = starts[(everything["value"][starts] > 0.0) & (date[starts + 1] > date[starts])]
        self._hand_over_uses(everything[starts], date[starts + 1])

    def _known(self, events: np.ndarray) -> np.ndarray:
        """The events without ends of tasks that never had a rate, nor stops of those that end."""
        if not len(events):
            return events
        self._open = _enlarged(self._open, int(events["subject"].max()) + 1)
        rates, ends = events["kind"] == RATE, events["kind"] == ENDED
        subject = events["subject"]
        known = self._open["pattern"] >= 0
        known[subject[rates]] = True
        over = np.full(len(self._open), np.nan)
        over[subject[ends]] = events["date"][ends]
        stops = (events["limit"] == LIMIT_NOTHING) & (events["value"] == 0.0)
        kept = np.where(rates, ~(stops & (over[subject] == events["date"])), known[subject])
        events = events[kept]
        ends = events["kind"] == ENDED
        events["value"][ends] = 0.0
        events["pattern"][ends], events["limit"][ends] = NONE, LIMIT_NOTHING
        return events

    def _blame_hosts(self, records: np.ndarray) -> None:
        """Where one core is all that a host has left, let the host be what limits a task."""
        limit = records["limit"]
        of_core = (limit <= LIMIT_CORE) & (limit > FIRST_ROUTE)
        own = np.flatnonzero(of_core & (records["value"] > 0.0))
        place, resource, usage = self.rows.expand(records["pattern"][own])
        hosts = np.flatnonzero(resource < self.names.n_hosts)
        which, resource, usage = own[place[hosts]], resource[hosts], usage[hosts]
        capacity = self.capacities.at(resource, records["date"][which])
        full = usage * records["value"][which] >= capacity * (1.0 - 1e-9)
        # In reverse, so that the first host is the one that stays.
        records["limit"][which[full][::-1]] = resource[full][::-1]

    def _oldest_open(self) -> float:
        """The date since which what is under way goes on at one rate, inf if nothing does."""
        return min(
            float(some["date"][(some["pattern"] >= 0) & (some["value"] > 0.0)].min(initial=np.inf))
            for some in (self._open, self._open_of_ranks)
        )

    def _hand_over(self, records: np.ndarray, end: FloatArray) -> None:
        lasts = end > records["date"]
        records, end = records[lasts], end[lasts]
        if not len(records):
            return
        start, rate = records["date"], records["value"]
        done = rate * (end - start)
        progress = rate > 0.0
        done[progress] /= records["amount"][progress]
        done[records["limit"] == LIMIT_DELAY] = 1.0
        phases = Phases(records["subject"], start, end, rate, records["limit"], done)
        for listener in self.listeners:
            listener.phases(phases)
        self._hand_over_uses(records[progress], end[progress])

    def _hand_over_uses(self, records: np.ndarray, end: FloatArray) -> None:
        """Hand over what is used from the dates of RATEs in progress until others."""
        for uses in self._uses(records, end):
            for listener in self.listeners:
                listener.uses(uses)

    def _uses(self, records: np.ndarray, end: FloatArray) -> Iterator[Uses]:
        """The uses of tasks in progress, in batches."""
        total = np.cumsum(self.rows.count[records["pattern"]])
        first = 0
        while first < len(records):
            before = int(total[first - 1]) if first else 0
            last = max(int(np.searchsorted(total, before + HANDED_OVER, side="right")), first + 1)
            interval, resource, usage = self.rows.expand(records["pattern"][first:last])
            part = records[first:last]
            uses = Uses(
                resource,
                part["subject"][interval],
                part["date"][interval],
                end[first:last][interval],
                part["value"][interval] * usage,
                np.zeros(0),
            )
            first = last
            if len(resource):
                yield Uses(*self.capacities.split(*uses[:5]))


def _enlarged(records: np.ndarray, size: int) -> np.ndarray:
    """The records with room for so many, new ones with no pattern."""
    if size <= len(records):
        return records
    larger = np.zeros(max(size, 2 * len(records)), dtype=EVENT)
    larger["pattern"] = NONE
    larger[: len(records)] = records
    return larger


class Rows:
    """What patterns ask of resources, resources merged and without those of which nothing is asked.

    count: of each pattern that was found; 0 elsewhere.
    """

    def __init__(self, simulation: Recorded) -> None:
        self._core = simulation.core
        self.count = np.zeros(0, dtype=np.int64)
        self._first = np.full(0, NONE)
        self._resource = np.zeros(0, dtype=np.int64)
        self._usage = np.zeros(0)
        self._size = 0

    def find(self, patterns: IntArray) -> None:
        """Look up patterns that may be new."""
        if len(patterns) and int(patterns[-1]) >= len(self.count):
            room = max(int(patterns[-1]) + 1, 2 * len(self.count)) - len(self.count)
            self.count = np.concatenate([self.count, np.zeros(room, dtype=np.int64)])
            self._first = np.concatenate([self._first, np.full(room, NONE)])
        patterns = patterns[self._first[patterns] == NONE]
        if not len(patterns):
            return
        count, resource, usage = self._core.uses(patterns)
        used = usage > 0.0
        owner = np.repeat(np.arange(len(patterns)), count)[used]
        resource, usage = resource[used], usage[used]
        if self._core.router.repeats:
            owner, resource, usage = _merged(owner, resource, usage)
        self.count[patterns] = np.bincount(owner, minlength=len(patterns))
        counts = self.count[patterns]
        self._first[patterns] = self._put(resource, usage) + np.cumsum(counts) - counts

    def forget(self, patterns: list[int]) -> None:
        """Forget patterns; what others ask moves together if most of the room is theirs."""
        known = np.array([k for k in patterns if k < len(self.count)], dtype=np.int64)
        self._first[known], self.count[known] = NONE, 0
        if self._size > 2 * int(self.count.sum()) + 4096:
            left = np.flatnonzero(self._first != NONE)
            _, resource, usage = self.expand(left)
            counts = self.count[left]
            self._size = 0
            self._first[left] = self._put(resource, usage) + np.cumsum(counts) - counts

    def _put(self, resource: IntArray, usage: FloatArray) -> int:
        """Keep elements; returns the place of the first."""
        first, last = self._size, self._size + len(resource)
        if last > len(self._resource):
            room = max(last, 2 * len(self._resource)) - len(self._resource)
            self._resource = np.concatenate([self._resource, np.zeros(room, dtype=np.int64)])
            self._usage = np.concatenate([self._usage, np.zeros(room)])
        self._resource[first:last], self._usage[first:last] = resource, usage
        self._size = last
        return first

    def of(self, pattern: int) -> tuple[IntArray, FloatArray]:
        """(resources, usages) of a pattern that was found."""
        first = self._first[pattern]
        part = slice(first, first + self.count[pattern])
        return self._resource[part], self._usage[part]

    def table(self) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
        """(first, count, resource, usage): elements first[k] to first[k] + count[k] are of k.

        Of patterns that were not found the first is negative and the count 0.
        """
        return self._first, self.count, self._resource, self._usage

    def expand(self, patterns: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """The rows of patterns end to end: position in ``patterns``, resource, usage."""
        count = self.count[patterns]
        position = np.repeat(np.arange(len(patterns)), count)
        ends = np.cumsum(count)
        shift = self._first[patterns] - (ends - count)
        place = np.arange(len(position)) + shift[position]
        return position, self._resource[place], self._usage[place]


def _merged(
    owner: IntArray, resource: IntArray, usage: FloatArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Elements of which each owner has one for each resource, in order of both."""
    order = np.lexsort((resource, owner))
    owner, resource, usage = owner[order], resource[order], usage[order]
    first = np.append(True, (owner[1:] != owner[:-1]) | (resource[1:] != resource[:-1]))[
        : len(owner)
    ]
    total = np.bincount(np.cumsum(first) - 1, weights=usage).astype(np.float64)
    return owner[first], resource[first], total
