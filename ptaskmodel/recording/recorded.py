"""What can be recorded: tasks and ranks by their events, and capacities over time."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.engine.state import CAPACITY, EVENT, LIMIT_NOTHING, STARTED

if TYPE_CHECKING:
    from ptaskmodel.engine.driver import Core
    from ptaskmodel.engine.stream import Listener
    from ptaskmodel.platform import Platform

IntArray = NDArray[np.int64]


class Ranks(Protocol):
    """The ranks of a simulation, see `mpi.applications`.

    state: its ``ranks``, all that there is room for, and its ``messages``, by place. task_of_rank:
    the number of the task that each rank belongs to, or did.
    """

    @property
    def state(self) -> Any: ...

    @property
    def task_of_rank(self) -> IntArray: ...


class Recorded(Protocol):
    """What can be recorded: a `Simulation`, or what stands for one.

    tasks: those added so far, in the order of the numbers that the stream gives them; each has an
    ``id``, and what listeners ask of a `TaskRef`.
    """

    @property
    def core(self) -> Core: ...

    @property
    def platform(self) -> Platform: ...

    @property
    def now(self) -> float: ...

    def tasks(self) -> Iterator[Any]: ...

    def listen(self, listener: Listener, ranks: bool = False) -> None: ...

    @property
    def applications(self) -> Ranks | None: ...


class Owners:
    """Reads off the stream, part by part, the tasks whose ranks do what is told.

    A computation is told under its rank, ``~(2 * rank)``, a message under a place that others have
    after it, ``~(2 * place + 1)``: its STARTED says which rank sends it.
    """

    def __init__(self, simulation: Recorded) -> None:
        self._simulation = simulation
        found = simulation.applications
        # The rank that sends what is in each place now.
        self._source = (
            np.zeros(0, dtype=np.int64)
            if found is None
            else found.state.messages["source"].astype(np.int64)
        )

    def tasks(self, events: np.ndarray) -> IntArray:
        """The number of the task of each event, which says so itself or is of its ranks.

        events: the next part of the stream, as it came.
        """
        tasks = events["subject"].astype(np.int64)
        own = np.flatnonzero(tasks < 0)
        found = self._simulation.applications
        if not len(own) or found is None:
            return tasks
        number, is_message = ~tasks[own] >> 1, (~tasks[own] & 1).astype(np.bool_)
        ranks = number.copy()
        started = events["kind"][own] == STARTED
        source = events["value"][own].astype(np.int64) // len(found.state.ranks)
        ranks[is_message] = self._sources(
            number[is_message], started[is_message], source[is_message]
        )
        tasks[own] = found.task_of_rank[ranks]
        return tasks

    def _sources(self, place: IntArray, started: NDArray[np.bool_], source: IntArray) -> IntArray:
        """Who sends, for events of messages by places; source: said where one started."""
        places = np.unique(place)
        if len(places) and places[-1] >= len(self._source):
            room = max(int(places[-1]) + 1, 2 * len(self._source)) - len(self._source)
            self._source = np.concatenate([self._source, np.zeros(room, dtype=np.int64)])
        # Before the events of each place comes what it held until then.
        everyone = np.concatenate([places, place])
        says = np.concatenate([np.ones(len(places), dtype=np.bool_), started])
        said = np.concatenate([self._source[places], source])
        order = np.argsort(everyone, kind="stable")
        latest = np.maximum.accumulate(np.where(says[order], np.arange(len(order)), 0))
        found = np.empty_like(said)
        found[order] = said[order][latest]
        last = np.append(np.flatnonzero(np.diff(everyone[order])), len(order) - 1)
        self._source[places] = found[order][last[: len(places)]]
        return found[len(places) :]


FloatArray = NDArray[np.float64]

# date s, resource, its capacity from then on (of a host: a factor of its peak), what comes after
Coming = tuple[float, int, float, Iterator[tuple[float, float]]]


class Capacities:
    """Capacities of the resources of a simulation, from now on.

    Traces are deterministic, so their changes are computed again instead of being recorded;
    changes by hand are told with `set`.
    """

    def __init__(self, simulation: Recorded) -> None:
        core = simulation.core
        self._n_hosts = len(simulation.platform.hosts)
        self.now: FloatArray = core.capacities()
        resources = core.state.resources
        self._cores: FloatArray = resources["cores"].astype(np.float64)
        self._peak: FloatArray = resources["peak"].astype(np.float64)
        # By resource that changes: dates and the capacities from then on.
        self._history: dict[int, tuple[list[float], list[float]]] = {}
        self._changing = np.zeros(len(self.now), dtype=np.bool_)
        self._begun = core.has_begun
        self._coming = list(self._traces(simulation))
        heapq.heapify(self._coming)

    def _traces(self, simulation: Recorded) -> Iterator[Coming]:
        """The next change of each resource that has a trace."""
        platform = simulation.platform
        found = [(host.index, host.speed_trace) for host in platform.hosts]
        found += [(self._n_hosts + link.index, link.bandwidth_trace) for link in platform.links]
        begun, now = self._begun, simulation.now
        for resource, trace in found:
            if trace is not None:
                events = trace.events(now if begun else 0.0)
                yield from _next(resource, (e for e in events if not begun or e[0] > now))

    def advance(self, date: float) -> np.ndarray:
        """Apply the events of traces up to a date, s; returns them as CAPACITY events."""
        changes = []
        while self._coming and self._coming[0][0] <= date:
            when, resource, value, events = heapq.heappop(self._coming)
            if resource < self._n_hosts:
                value = float(self._cores[resource] * (self._peak[resource] * value))
            self._note(resource, when, value)
            changes.append((when, CAPACITY, resource, value, -1, 0.0, LIMIT_NOTHING))
            for coming in _next(resource, events):
                heapq.heappush(self._coming, coming)
        return np.array(changes, dtype=EVENT)

    def set(self, event: np.void) -> None:
        """A capacity was set by hand, as a CAPACITY event says."""
        resource = int(event["subject"])
        self._peak[resource] = event["amount"]
        self._note(resource, float(event["date"]), float(event["value"]))

    def _note(self, resource: int, date: float, value: float) -> None:
        if not self._changing[resource]:
            self._changing[resource] = True
            self._history[resource] = ([-np.inf], [float(self.now[resource])])
        dates, values = self._history[resource]
        dates.append(date)
        values.append(value)
        self.now[resource] = value

    def forget(self, date: float) -> None:
        """Forget what was before a date, s, which will not be needed."""
        for dates, values in self._history.values():
            first = int(np.searchsorted(dates, date, side="right")) - 1
            if first > 0:
                del dates[:first], values[:first]

    def at(self, resource: IntArray, date: FloatArray) -> FloatArray:
        """Capacities of resources from dates on (one each)."""
        capacity = self.now[resource]
        changing = self._changing[resource]
        for number in np.unique(resource[changing]).tolist():
            mine = resource == number
            dates, values = self._history[number]
            place = np.searchsorted(dates, date[mine], side="right") - 1
            capacity[mine] = np.array(values)[place]
        return capacity

    def split(
        self,
        resource: IntArray,
        task: IntArray,
        start: FloatArray,
        end: FloatArray,
        rate: FloatArray,
    ) -> tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        """The same uses, cut where the capacity of their resource changes, and that capacity."""
        capacity = self.now[resource]
        changing = self._changing[resource]
        if not changing.any():
            return resource, task, start, end, rate, capacity
        steady = ~changing
        columns = [[array[steady]] for array in (resource, task, start, end, rate, capacity)]
        for number in np.unique(resource[changing]).tolist():
            mine = np.flatnonzero(resource == number)
            dates, values = (np.array(part) for part in self._history[number])
            first = np.searchsorted(dates, start[mine], side="right") - 1
            last = np.searchsorted(dates, end[mine], side="left") - 1
            pieces = last - first + 1
            use = np.repeat(mine, pieces)
            ends = np.cumsum(pieces)
            place = np.arange(len(use)) - np.repeat(ends - pieces - first, pieces)
            until = np.append(dates[1:], np.inf)[place]
            since = np.maximum(start[use], dates[place])
            until = np.minimum(end[use], until)
            lasts = until > since
            use, place = use[lasts], place[lasts]
            found = (
                resource[use], task[use], since[lasts], until[lasts], rate[use], values[place]
            )  # fmt: skip
            for column, part in zip(columns, found, strict=True):
                column.append(part)
        return tuple(np.concatenate(column) for column in columns)  # type: ignore[return-value]


def _next(resource: int, events: Iterator[tuple[float, float]]) -> Iterator[Coming]:
    """The next change of a resource, if there is one."""
    for date, value in itertools.islice(events, 1):
        yield date, resource, value, events
