"""Turns the changes of rates that a simulation logs into intervals of use, in bounded memory.

Between two changes everything is constant, so these intervals are exact: nothing is sampled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.core.state import LIMIT_BOUND, LIMIT_DELAY, LIMIT_NOTHING, LOG
from ptaskmodel.recording.capacities import Capacities

if TYPE_CHECKING:
    from ptaskmodel.simulation.simulation import Simulation

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Changes of rates gathered before they are looked at, and uses handed over at once.
GATHERED = 1 << 15
HANDED_OVER = 1 << 18
NONE = -1


class Phases(NamedTuple):
    """Intervals in which tasks kept their rates, one by one in time for each task.

    rate: stages per s. limit: the resource that set it or one of `state.LIMIT_...`. done: part of
    its stage that the task did in it (1 for a whole delay). Dates in s.
    """

    task: IntArray
    start: FloatArray
    end: FloatArray
    rate: FloatArray
    limit: IntArray
    done: FloatArray


class Uses(NamedTuple):
    """Intervals in which a task used a resource: ``rate`` flop/s or B/s of its ``capacity``."""

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
        """Called once, before anything is recorded."""

    def changes(self, records: np.ndarray) -> None:
        """`state.LOG` records, in order of time, with the changes of capacities by profiles and
        a last record for every task that ended.
        """

    def phases(self, phases: Phases) -> None: ...

    def uses(self, uses: Uses) -> None: ...

    def end(self) -> None:
        """Called once, when all has been handed over."""


class Recorder:
    """Hands what the tasks of a simulation do from now on to listeners.

    A context manager: on a normal exit what is under way is recorded up to the current date.
    Recording changes no result of the simulation.
    """

    def __init__(self, simulation: Simulation, listeners: Sequence[Listener]) -> None:
        self.simulation = simulation
        self.listeners = tuple(listeners)
        self.rows = Rows(simulation)
        self.names = Names(simulation)
        self.capacities = Capacities(simulation)
        self._gathered: list[np.ndarray] = []
        self._n_gathered = 0
        self._open = np.zeros(0, dtype=LOG)
        for listener in self.listeners:
            listener.begin(self)
        simulation.log_rates(self._take)

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
        self._look()
        left = self._open[self._open["limit"] != LIMIT_NOTHING]
        left = left[left["stage"] >= 0]
        self._hand_over(left, np.full(len(left), self.simulation.now))
        for listener in self.listeners:
            listener.end()

    def finished(self, tasks: IntArray) -> FloatArray:
        """Dates at which tasks ended, s; nan for those that have not."""
        return self.simulation._s.activities["finished"][tasks]

    def _take(self, records: np.ndarray) -> None:
        if records["task"][0] < 0:
            self._look()
            self.capacities.set(int(records["stage"][0]), float(records["time"][0]))
            for listener in self.listeners:
                listener.changes(records)
            return
        self._gathered.append(records)
        self._n_gathered += len(records)
        if self._n_gathered >= GATHERED:
            self._look()

    def _look(self) -> None:
        """Make intervals of the changes gathered."""
        records = np.concatenate([np.zeros(0, dtype=LOG), *self._gathered])
        self._gathered, self._n_gathered = [], 0
        self.rows.find(np.unique(records["stage"][records["rate"] > 0.0]))
        if len(records):
            self._enlarge(int(records["task"].max()) + 1)
        changed = self.capacities.advance(self.simulation.now)
        self._blame_hosts(records)
        records = np.concatenate([records, self._ends(records)])
        everything = np.concatenate([np.array(changed, dtype=LOG), records])
        everything = everything[np.argsort(everything["time"], kind="stable")]
        for listener in self.listeners if len(everything) else ():
            listener.changes(everything)
        tasks = np.unique(records["task"])
        before = self._open[tasks]
        both = np.concatenate([before[before["stage"] >= 0], records])
        both = both[np.argsort(both["task"], kind="stable")]
        last = np.append(both["task"][1:] != both["task"][:-1], True)[: len(both)]
        self._open[tasks] = both[last]
        starts = np.flatnonzero(~last)
        self._hand_over(both[starts], both["time"][starts + 1])
        self.capacities.forget(self._oldest_open())

    def _blame_hosts(self, records: np.ndarray) -> None:
        """Where a task's own bound is all that a host has, let the host be what limits it."""
        own = np.flatnonzero((records["limit"] == LIMIT_BOUND) & (records["rate"] > 0.0))
        place, resource, usage = self.rows.expand(records["stage"][own])
        hosts = np.flatnonzero(resource < self.names.n_hosts)
        which, resource, usage = own[place[hosts]], resource[hosts], usage[hosts]
        capacity = self.capacities.at(resource, records["time"][which])
        full = usage * records["rate"][which] >= capacity * (1.0 - 1e-9)
        # In reverse, so that the first host is the one that stays.
        records["limit"][which[full][::-1]] = resource[full][::-1]

    def _ends(self, records: np.ndarray) -> np.ndarray:
        """Records for the tasks that ended without one, because they were not progressing."""
        now = self._open.copy()
        now[records["task"]] = records  # the last of each task stays
        tasks = np.flatnonzero((now["stage"] >= 0) & (now["limit"] != LIMIT_NOTHING))
        tasks = tasks[~np.isnan(self.finished(tasks))]
        ends = now[tasks]
        ends["time"] = self.finished(tasks)
        ends["rate"], ends["limit"] = 0.0, LIMIT_NOTHING
        return ends

    def _enlarge(self, tasks: int) -> None:
        if tasks > len(self._open):
            larger = np.zeros(max(tasks, 2 * len(self._open)), dtype=LOG)
            larger["stage"] = NONE
            larger[: len(self._open)] = self._open
            self._open = larger

    def _oldest_open(self) -> float:
        times = self._open["time"][(self._open["stage"] >= 0) & (self._open["rate"] > 0.0)]
        return float(times.min()) if len(times) else np.inf

    def _hand_over(self, records: np.ndarray, end: FloatArray) -> None:
        lasts = end > records["time"]
        records, end = records[lasts], end[lasts]
        if not len(records):
            return
        start, rate, stage = records["time"], records["rate"], records["stage"]
        done = rate * (end - start)
        progress = rate > 0.0
        done[progress] /= self.rows.amount[stage[progress]]
        done[records["limit"] == LIMIT_DELAY] = 1.0
        phases = Phases(records["task"], start, end, rate, records["limit"], done)
        for listener in self.listeners:
            listener.phases(phases)
        for uses in self._uses(records[progress], end[progress]):
            for listener in self.listeners:
                listener.uses(uses)

    def _uses(self, records: np.ndarray, end: FloatArray) -> Iterator[Uses]:
        """The uses of progressing stages, in batches."""
        total = np.cumsum(self.rows.count[records["stage"]])
        first = 0
        while first < len(records):
            before = int(total[first - 1]) if first else 0
            last = max(int(np.searchsorted(total, before + HANDED_OVER, side="right")), first + 1)
            interval, resource, usage = self.rows.expand(records["stage"][first:last])
            part = records[first:last]
            uses = Uses(
                resource,
                part["task"][interval],
                part["time"][interval],
                end[first:last][interval],
                part["rate"][interval] * usage,
                np.zeros(0),
            )
            first = last
            if len(resource):
                yield Uses(*self.capacities.split(*uses[:5]))


class Rows:
    """What stages ask of resources, resources merged and without those of which nothing is asked.

    amount, count: of each stage that was found; 0 elsewhere.
    """

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self.amount = np.zeros(0)
        self.count = np.zeros(0, dtype=np.int64)
        self._first = np.full(0, NONE)
        self._resource = np.zeros(0, dtype=np.int64)
        self._usage = np.zeros(0)
        self._size = 0

    def find(self, stages: IntArray) -> None:
        """Look up stages that may be new."""
        if len(stages) and int(stages[-1]) >= len(self.count):
            room = max(int(stages[-1]) + 1, 2 * len(self.count)) - len(self.count)
            self.amount = np.concatenate([self.amount, np.zeros(room)])
            self.count = np.concatenate([self.count, np.zeros(room, dtype=np.int64)])
            self._first = np.concatenate([self._first, np.full(room, NONE)])
        stages = stages[self._first[stages] == NONE]
        if not self._simulation._layout.repeats:
            stages = self._copy(stages)
        for stage in stages.tolist():
            row = self._simulation.stage_row(stage)
            used = row.usage > 0.0
            resource, usage = row.resource[used], row.usage[used]
            if len(set(resource.tolist())) < len(resource):
                resource, inverse = np.unique(resource, return_inverse=True)
                usage = np.bincount(inverse, weights=usage).astype(np.float64)
            self._add(stage, resource, usage, row.amount)

    def _copy(self, stages: IntArray) -> IntArray:
        """Take over the rows that lie ready in the simulation; returns the stages without one."""
        state = self._simulation._s
        laid = state.stages["first"][stages] >= 0
        ready = stages[laid]
        first, count = state.stages["first"][ready], state.stages["count"][ready]
        ends = np.cumsum(count)
        owner = np.repeat(np.arange(len(ready)), count)
        # Stages laid out one after the other, as most are, need no gathering.
        together = len(ready) > 0 and bool((first - first[0] == ends - count).all())
        place: slice | IntArray = np.arange(len(owner)) + (first - ends + count)[owner]
        if together:
            place = slice(first[0], first[0] + len(owner))
        resource, usage = state.elements["resource"][place], state.elements["usage"][place]
        used = usage > 0.0
        if not used.all():
            resource, usage = resource[used], usage[used]
            count = np.bincount(owner[used], minlength=len(ready))
        start = self._put(resource, usage)
        self._first[ready] = start + np.cumsum(count) - count
        self.count[ready], self.amount[ready] = count, state.stages["amount"][ready]
        return stages[~laid]

    def _add(self, stage: int, resource: IntArray, usage: FloatArray, amount: float) -> None:
        self._first[stage] = self._put(resource, usage)
        self.count[stage], self.amount[stage] = len(resource), amount

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

    def of(self, stage: int) -> tuple[IntArray, FloatArray]:
        """(resources, usages) of a stage that was found."""
        first = self._first[stage]
        part = slice(first, first + self.count[stage])
        return self._resource[part], self._usage[part]

    def expand(self, stages: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """The rows of stages end to end: position in ``stages``, resource, usage."""
        count = self.count[stages]
        position = np.repeat(np.arange(len(stages)), count)
        ends = np.cumsum(count)
        shift = self._first[stages] - (ends - count)
        place = np.arange(len(position)) + shift[position]
        return position, self._resource[place], self._usage[place]


class Names:
    """Names of the resources and tasks of a simulation, by number."""

    def __init__(self, simulation: Simulation) -> None:
        platform = simulation.platform
        self._simulation = simulation
        self.n_hosts = len(platform.hosts)
        self.resources = [host.name for host in platform.hosts]
        self.resources += [link.name for link in platform.links]
        self._tasks: list[str] = []

    def kind(self, resource: int) -> str:
        return "host" if resource < self.n_hosts else "link"

    def tasks(self) -> list[str]:
        """Ids of all tasks added so far."""
        known = len(self._tasks)
        if known < self._simulation._s.clock[0]["n_tasks"]:
            self._tasks += [ref.id for ref in islice(self._simulation.tasks(), known, None)]
        return self._tasks
