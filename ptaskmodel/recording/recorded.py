"""What can be recorded: tasks and ranks by their events, capacities, and what limits a task.

Limits include the TCP windows of routes: `narrowest_window` finds the flow of a work that its TCP
window limits, the flow with the largest latency * bytes. `Windows` numbers the routes of such flows
as limits.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.engine.state import (
    CAPACITY,
    EVENT,
    LIMIT_CORE,
    LIMIT_DELAY,
    LIMIT_LATENCY,
    LIMIT_NOTHING,
    LIMIT_RATE_BOUND,
    LIMIT_SUSPENDED,
    LIMIT_WINDOW,
    STARTED,
)
from ptaskmodel.engine.usage.placement import Shape
from ptaskmodel.engine.usage.router import Router
from ptaskmodel.recording import (
    CORE,
    DELAY,
    LATENCY,
    RATE_BOUND,
    STOPPED,
    SUSPENDED,
    WINDOW,
)

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


PAIRS_AT_ONCE = 1 << 16
# Part of the largest product at which the flow is found: sums of latencies are rounded.
FOUND = 1.0 - 1e-9

# In recordings LIMIT_WINDOW gives way to the number of a route, below those of cores.
FIRST_ROUTE = -(1 << 40)

_WORDS = {
    int(LIMIT_RATE_BOUND): RATE_BOUND,
    int(LIMIT_NOTHING): STOPPED,
    int(LIMIT_LATENCY): LATENCY,
    int(LIMIT_DELAY): DELAY,
    int(LIMIT_SUSPENDED): SUSPENDED,
}


class Window(NamedTuple):
    """A route on which the TCP window holds a flow back; latency_s: one way."""

    source: str
    target: str
    latency_s: float


def narrowest_window(router: Router, shape: Shape, latency_bytes: float) -> Window:
    """The flow of a shape that a window holds back most; latency_bytes: its product, about."""
    source, target, latency_s, most = -1, -1, 0.0, -1.0
    for sources, targets, sizes in _flows(router, shape):
        latencies = _latencies_s(router, sources, targets)
        products = latencies * sizes
        k = int(np.argmax(products))
        if products[k] > most:
            most = float(products[k])
            source, target, latency_s = int(sources[k]), int(targets[k]), float(latencies[k])
        if most >= latency_bytes * FOUND:
            break
    hosts = router.platform.hosts
    return Window(hosts[source].name, hosts[target].name, latency_s)


def _flows(router: Router, shape: Shape) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    """Sources, targets (hosts) and bytes of flows, some at a time."""
    hosts = np.array(shape.hosts, dtype=np.int64)
    if not router.model.parallel:
        yield hosts[:1], hosts[1:], np.ones(1)
        return
    asked = shape.work.demand(len(hosts))
    if asked.pair_bytes > 0.0 and len(hosts) > 1:
        hosts = np.unique(hosts)
        rows = max(PAIRS_AT_ONCE // len(hosts), 1)
        for first in range(0, len(hosts), rows):
            part = hosts[first : first + rows]
            sources, targets = np.repeat(part, len(hosts)), np.tile(hosts, len(part))
            apart = sources != targets
            sizes = np.full(int(apart.sum()), asked.pair_bytes)
            yield sources[apart], targets[apart], sizes
        return
    for first in range(0, len(asked.flow_bytes), PAIRS_AT_ONCE):
        some = slice(first, first + PAIRS_AT_ONCE)
        yield hosts[asked.flow_from[some]], hosts[asked.flow_to[some]], asked.flow_bytes[some]


def _latencies_s(router: Router, sources: IntArray, targets: IntArray) -> FloatArray:
    """The latencies of routes as they are now."""
    found = np.zeros(len(sources))
    for group in router.paths.groups(sources, targets):
        legs = router.paths.many(sources[group], targets[group])
        route = np.repeat(np.arange(len(group)), np.diff(legs.start))
        sums = np.bincount(route, router.latency_s[legs.links], minlength=len(group))
        found[group] = sums + legs.extra_s
    return found


class Windows:
    """The routes whose TCP window limited something, numbered as limits from FIRST_ROUTE down."""

    def __init__(self) -> None:
        self.routes: list[Window] = []
        self._numbers: dict[Window, int] = {}
        self._of: dict[tuple[int, float], int] = {}

    def name(self, records: np.ndarray, core: Core) -> None:
        """Say in RATE events that a window limits which route's it is; patterns are as they run."""
        held = np.flatnonzero(records["limit"] == LIMIT_WINDOW)
        patterns = records["pattern"][held]
        products = core.state.patterns["latency_bytes"][patterns]
        records["limit"][held] = [
            self._number(core, *pair)
            for pair in zip(patterns.tolist(), products.tolist(), strict=True)
        ]

    def _number(self, core: Core, pattern: int, latency_bytes: float) -> int:
        number = self._of.get((pattern, latency_bytes))
        if number is None:
            window = narrowest_window(core.router, core.patterns.shape(pattern), latency_bytes)
            number = self._numbers.setdefault(window, FIRST_ROUTE - len(self.routes))
            if number == FIRST_ROUTE - len(self.routes):
                self.routes.append(window)
            self._of[pattern, latency_bytes] = number
        return number

    def forget(self, patterns: list[int]) -> None:
        """These numbers will be given to other patterns."""
        gone = set(patterns)
        self._of = {key: number for key, number in self._of.items() if key[0] not in gone}

    def route(self, limit: int) -> Window | None:
        """The route of a limit, None if it is another one."""
        return self.routes[FIRST_ROUTE - limit] if limit <= FIRST_ROUTE else None


class Names:
    """Names of the resources, routes and tasks of a simulation, by number."""

    def __init__(self, simulation: Recorded) -> None:
        platform = simulation.platform
        self._simulation = simulation
        self.n_hosts = len(platform.hosts)
        self.resources = [host.name for host in platform.hosts]
        self.resources += [link.name for link in platform.all_links]
        self.windows = Windows()
        self._tasks: list[str] = []

    def kind(self, resource: int) -> str:
        return "host" if resource < self.n_hosts else "link"

    def tasks(self) -> list[str]:
        """Ids of all tasks added so far."""
        new = islice(self._simulation.tasks(), len(self._tasks), None)
        self._tasks += [ref.id for ref in new]
        return self._tasks


def limit_name(limit: int, names: Names) -> tuple[str, str]:
    """Return the kind (of KINDS) and the name of a `limit` (number in a recording), by `names`.

    The name is that of a host, a link, the host of a core, ``source->target`` of a window, or "".
    """
    if limit >= 0:
        return names.kind(limit), names.resources[limit]
    window = names.windows.route(limit)
    if window is not None:
        return WINDOW, f"{window.source}->{window.target}"
    if limit <= LIMIT_CORE:
        return CORE, names.resources[LIMIT_CORE - limit]
    return _WORDS[limit], ""
