"""Interference: how long tasks take alone on the platform, and which tasks slow each of them.

While a resource limits a task, its other users are charged in proportion to their use of it, second
by second. In a task that replays a trace, each computation and each message of its ranks is delayed
and charged separately.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.engine.state import RATE
from ptaskmodel.platform.facts import FATPIPE
from ptaskmodel.recording.intervals import NONE, Rows
from ptaskmodel.recording.recorded import Owners

if TYPE_CHECKING:
    from ptaskmodel.recording.intervals import FloatArray, IntArray
    from ptaskmodel.simulation.records import TaskRef
    from ptaskmodel.simulation.simulation import Simulation
    from ptaskmodel.workload.tasks import Task


# An activity: its task, rate, pattern and limit; a seat: a place on a resource, how much it uses at
# rate 1, and its part of the use there, summed over time, s.
_DOER = np.dtype([("task", "i4"), ("rate", "f8"), ("pattern", "i8"), ("limit", "i8")])
_SEAT = np.dtype([("place", "i4"), ("resource", "i4"), ("task", "i4"), ("usage", "f8"),
                  ("reached", "f8")])  # fmt: skip
_CHARGE = np.dtype([("task", "i4"), ("other", "i4"), ("limit", "i4"), ("seconds", "f8")])
PENDING = 1 << 20  # charges that are gathered before they are added up
LEAST_EMPTY = 4096  # seats of those that have left, before they are taken away


class Neighbours:
    """Watch a simulation: how many seconds each task slows each other one, and on what.

    A second is divided by use of the limiting resource. Links of policy FATPIPE limit only the task
    itself. For each user of each resource, a sum over time holds its part of the use there; the
    charge against a task that is limited there is what the sum gains meanwhile.

    by_limit: whether to tell charges on different hosts and links apart.
    """

    def __init__(self, simulation: Simulation, by_limit: bool = False) -> None:
        self._by_limit = by_limit
        self._found = Rows(simulation)
        hosts, links = len(simulation.platform.hosts), simulation.platform.all_links
        self._resources = hosts + len(links)
        self._private = np.array(
            [hosts + link.index for link in links if link.policy == FATPIPE], dtype=np.int64
        )
        self._owners = Owners(simulation)
        self._date = 0.0
        # What runs, by place: an activity of a task, or of one of its ranks.
        self._doers = np.zeros(0, dtype=_DOER)
        # A seat is a place on a resource, of those that have left with no use.
        self._seats = np.zeros(0, dtype=_SEAT)
        self._n_seats = self._n_empty = 0
        # By place, since it is limited by what limits it: the sums of the seats there.
        self._began: dict[int, FloatArray] = {}
        self._charges = np.zeros(0, dtype=_CHARGE)
        self._pending: list[NDArray[np.void]] = []
        self._n_pending = 0
        simulation.listen(self, ranks=True)

    def take(self, events: np.ndarray) -> None:
        """Process changes of rates in `events`, ordered by time.

        Those at one time happen together.
        """
        told = events["kind"] == RATE
        rates, tasks = events[told], self._owners.tasks(events)[told]
        if not len(rates):
            return
        subject = rates["subject"].astype(np.int64)
        places = np.where(subject < 0, 2 * ~subject + 1, 2 * subject)
        self._doers = _grown(self._doers, int(places.max()) + 1)
        ends = np.append(np.flatnonzero(np.diff(rates["date"])) + 1, len(rates)).tolist()
        for first, last in zip([0, *ends], ends, strict=False):
            # Of what is told of a place at one time, the last holds.
            _, at = np.unique(places[first:last][::-1], return_index=True)
            at = last - 1 - at
            self._advance(float(rates["date"][first]))
            self._change(places[at], tasks[at], rates[at])

    def rows(self) -> NDArray[np.void]:
        """Return (task, other, limit, seconds) of each task that slowed another one, in order.

        limit: the number of a host or link; 0 unless ``by_limit``.
        """
        self._tidy()
        self._add_up()
        return self._charges

    @property
    def charges(self) -> dict[tuple[int, int], float]:
        """The seconds during which a task was slowed by another one, by both numbers."""
        found: dict[tuple[int, int], float] = {}
        for task, other, _, seconds in self.rows().tolist():
            found[task, other] = found.get((task, other), 0.0) + seconds
        return found

    def forget(self, patterns: list[int]) -> None:
        """These numbers will be given to other patterns."""
        self._found.forget(patterns)

    def _advance(self, date: float) -> None:
        """Add to the sum of each seat its part of the use of its resource until ``date``."""
        passed, self._date = date - self._date, date
        if passed <= 0.0 or not self._n_seats:
            return
        seats = self._seats[: self._n_seats]
        use = self._doers["rate"][seats["place"]] * seats["usage"]
        total = np.bincount(seats["resource"], use, self._resources)
        total[total <= 0.0] = 1.0
        seats["reached"] += passed * use / total[seats["resource"]]

    def _change(self, places: IntArray, tasks: IntArray, rates: np.ndarray) -> None:
        """Let places, each of them once, have other rates, patterns and limits."""
        runs, old = rates["value"] > 0.0, self._doers[places]
        new = np.empty(len(places), dtype=_DOER)
        new["task"], new["rate"] = tasks, rates["value"]
        new["pattern"] = np.where(runs, rates["pattern"], NONE)
        new["limit"] = np.where(runs, rates["limit"], NONE)
        new["limit"][np.isin(new["limit"], self._private)] = NONE
        turned = (old["limit"] != new["limit"]) | (old["task"] != new["task"])
        self._close(places[turned])
        moved = np.flatnonzero((old["pattern"] != new["pattern"]) | (old["task"] != new["task"]))
        left = places[moved][old["pattern"][moved] != NONE]
        if len(left):
            seats = self._seats[: self._n_seats]
            gone = np.isin(seats["place"], left) & (seats["usage"] > 0.0)
            seats["usage"][gone] = 0.0
            self._n_empty += int(gone.sum())
        self._doers[places] = new
        self._sit(places[moved][runs[moved]])
        self._open(places[turned])
        if 2 * self._n_empty > self._n_seats + LEAST_EMPTY:
            self._tidy()

    def _sit(self, places: IntArray) -> None:
        """Give places a seat on each resource that they use."""
        patterns = self._doers["pattern"][places]
        self._found.find(np.unique(patterns))
        whose, resource, usage = self._found.expand(patterns)
        first, self._n_seats = self._n_seats, self._n_seats + len(whose)
        self._seats = _grown(self._seats, self._n_seats)
        seats = self._seats[first : self._n_seats]
        seats["place"], seats["resource"], seats["usage"] = places[whose], resource, usage
        seats["task"], seats["reached"] = self._doers["task"][places[whose]], 0.0

    def _at(self, limit: int) -> NDArray[np.void]:
        """The seats on a resource, in order of time."""
        seats = self._seats[: self._n_seats]
        return seats[seats["resource"] == limit]

    def _open(self, places: IntArray) -> None:
        """Begin to charge others for what places lose on what limits them now."""
        for place, limit in zip(
            places.tolist(), self._doers["limit"][places].tolist(), strict=True
        ):
            if limit >= 0:
                self._began[place] = self._at(limit)["reached"]

    def _close(self, places: IntArray) -> None:
        """Charge others for what places lost on what has limited them."""
        for place in places.tolist():
            if (began := self._began.pop(place, None)) is None:
                continue
            task, limit = int(self._doers["task"][place]), int(self._doers["limit"][place])
            seats = self._at(limit)
            seats["reached"][: len(began)] -= began
            seats = seats[(seats["reached"] > 0.0) & (seats["task"] != task)]
            found = np.empty(len(seats), dtype=_CHARGE)
            found["task"], found["other"], found["seconds"] = task, seats["task"], seats["reached"]
            found["limit"] = limit if self._by_limit else 0
            self._pending.append(found)
            self._n_pending += len(found)
        if self._n_pending > PENDING:
            self._add_up()

    def _tidy(self) -> None:
        """Take away the seats of those that have left."""
        places = np.array(sorted(self._began), dtype=np.int64)
        self._close(places)
        seats = self._seats[: self._n_seats]
        self._seats = seats[seats["usage"] > 0.0]
        self._seats["reached"] = 0.0
        self._n_seats, self._n_empty = len(self._seats), 0
        self._open(places)

    def _add_up(self) -> None:
        """Sum the charges of a task against another one on a resource."""
        rows = np.concatenate([self._charges, *self._pending])
        self._pending, self._n_pending = [], 0
        rows = rows[np.lexsort((rows["limit"], rows["other"], rows["task"]))]
        same = np.ones(len(rows), dtype=np.bool_)
        for name in ("task", "other", "limit"):
            same[1:] &= rows[name][1:] == rows[name][:-1]
        same[:1] = False
        first = np.flatnonzero(~same)
        self._charges = rows[first]
        if len(first):
            self._charges["seconds"] = np.add.reduceat(rows["seconds"], first)


def _grown(table: NDArray[np.void], size: int) -> NDArray[np.void]:
    """A table with room for ``size`` rows; new ones are of nobody."""
    if size <= len(table):
        return table
    more = np.zeros(max(size, 2 * len(table)) - len(table), dtype=table.dtype)
    for name in ("task", "pattern", "limit"):
        if name in (table.dtype.names or ()):
            more[name] = NONE
    return np.concatenate([table, more])


def times_alone(simulation: Simulation) -> list[float | None]:
    """Return the time alone of each task that completed, s; None for the others.

    Execution time over time alone is the contention slowdown: 1 without contention. The solver and
    the network model are the same. Tasks with the same work on the same hosts are simulated once,
    one after the other in one simulation; if the platform has traces, each is simulated from its
    own start date. Changes made by hand (`set_bandwidth`, `fail` ...) are not repeated.
    """
    alone: list[float | None] = [None] * sum(1 for _ in simulation.tasks())
    done = [ref for ref in simulation.tasks() if ref.state == "completed"]
    if _changes_by_itself(simulation):
        for ref, time_s in zip(done, _one_by_one(simulation, done), strict=True):
            alone[ref.index] = time_s
        return alone
    routes = simulation.core.router.flow_routes
    groups: dict[tuple, list[TaskRef]] = {}
    tasks = [ref.task for ref in done]  # kept, so that no two works have one identity
    for ref, task in zip(done, tasks, strict=True):
        own_route = None if routes.routing is None else routes.name(ref.id, task.connection)
        key = (id(task.work), task.hosts, task.competitors, task.rate_bound, own_route)
        groups.setdefault(key, []).append(ref)
    # Short ones first: their times are differences of dates, exact while dates are small.
    ordered = sorted(groups.values(), key=lambda refs: min(_lasted(ref) for ref in refs))
    for refs, time_s in zip(ordered, _in_turn(simulation, [r[0] for r in ordered]), strict=True):
        for ref in refs:
            alone[ref.index] = time_s
    return alone


def _lasted(ref: TaskRef) -> float:
    start, finish = ref.start_s, ref.end_s
    assert start is not None
    assert finish is not None
    return finish - start


def _changes_by_itself(simulation: Simulation) -> bool:
    hosts, links = simulation.platform.hosts, simulation.platform.all_links
    return any(host.speed_trace or host.state_trace for host in hosts) or any(
        link.bandwidth_trace or link.latency_trace or link.state_trace for link in links
    )


def _empty(simulation: Simulation) -> Simulation:
    return type(simulation)(
        simulation.platform,
        solver=simulation.solver,
        network_model=simulation.network_model,
        count=simulation.count,
        routing=simulation.routing,
    )


def _bare(task: Task, **changes: object) -> Task:
    """The task without what depends on others."""
    from ptaskmodel.workload.tasks import Task

    return replace(
        Task(
            task.hosts,
            task.work,
            rate_bound=task.rate_bound,
            competitors=task.competitors,
            connection=task.connection,
        ),
        **changes,  # type: ignore[arg-type]
    )


def _in_turn(simulation: Simulation, refs: Sequence[TaskRef]) -> list[float]:
    """Times of tasks that run one after the other."""
    alone = _empty(simulation)
    before = [(), *((ref.id,) for ref in refs)]
    tasks = [_bare(ref.task, id=ref.id, after=ids) for ref, ids in zip(refs, before, strict=False)]
    alone.add_all(tasks)
    alone.run()
    return [_lasted(ref) for ref in alone.tasks()]


def _one_by_one(simulation: Simulation, refs: Sequence[TaskRef]) -> list[float | None]:
    """Times of tasks that each start at their own date on a platform that changes."""
    empty = _empty(simulation)
    times: dict[int, float | None] = {}
    for ref in sorted(refs, key=lambda ref: (ref.start_s or 0.0, ref.index)):
        empty.advance_to(ref.start_s or 0.0)
        alone = empty.fork()
        task = alone.add(_bare(ref.task, id=ref.id))
        alone.run_until_change()
        times[ref.index] = _lasted(task) if task.state == "completed" else None
    return [times[ref.index] for ref in refs]
