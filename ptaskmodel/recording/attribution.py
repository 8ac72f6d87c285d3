"""Interference: how long tasks take alone on the platform, and which tasks slow each of them.

While a resource limits a task, its other users are charged in proportion to their use of it, second
by second. In a task that replays a trace, each computation and each message of its ranks is delayed
and charged separately.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ptaskmodel.engine.state import RATE
from ptaskmodel.platform.facts import FATPIPE
from ptaskmodel.recording.intervals import Rows
from ptaskmodel.recording.recorded import Owners

if TYPE_CHECKING:
    from ptaskmodel.simulation.records import TaskRef
    from ptaskmodel.simulation.simulation import Simulation
    from ptaskmodel.workload.tasks import Task


class _Phase:
    """What a task, or one of its ranks, does at a constant rate since a date."""

    __slots__ = ("limit", "rate", "row", "since", "task")

    def __init__(
        self, task: int, row: Mapping[int, float], rate: float, limit: int, since: float
    ) -> None:
        self.task = task
        self.row = row
        self.rate = rate
        self.limit = limit
        self.since = since


class Neighbours:
    """Watch a simulation: charges[i, k] are the seconds during which task k slowed task i.

    on: the same by limit, the number of a host or link; empty unless ``by_limit``. A second is
    divided by use of the limiting resource. Links of policy FATPIPE limit only the task itself.
    """

    def __init__(self, simulation: Simulation, by_limit: bool = False) -> None:
        self.on: dict[tuple[int, int, int], float] = {}
        self._by_limit = by_limit
        self.charges: dict[tuple[int, int], float] = {}
        self._found = Rows(simulation)
        self._rows: dict[int, dict[int, float]] = {}
        self._running: dict[int, _Phase] = {}
        hosts = len(simulation.platform.hosts)
        links = simulation.platform.all_links
        self._private = {hosts + link.index for link in links if link.policy == FATPIPE}
        self._owners = Owners(simulation)
        simulation.listen(self, ranks=True)

    def take(self, events: np.ndarray) -> None:
        """Process changes of rates in `events`, ordered by time.

        Those at one time happen together.
        """
        told = events["kind"] == RATE
        rates, tasks = events[told], self._owners.tasks(events)[told]
        if not len(rates):
            return
        cuts = np.flatnonzero(np.diff(rates["date"])) + 1
        for group, doers in zip(np.split(rates, cuts), np.split(tasks, cuts), strict=True):
            fields = (group[name].tolist() for name in ("subject", "pattern", "value", "limit"))
            records = list(zip(*fields, doers.tolist(), strict=True))
            self._change(float(group["date"][0]), records)

    def by_task(self) -> dict[int, dict[tuple[int, int], float]]:
        """Of each task the charges against others, by them and by limit; see ``on``."""
        found: dict[int, dict[tuple[int, int], float]] = {}
        for (task, other, limit), charge in sorted(self.on.items()):
            found.setdefault(task, {})[other, limit] = charge
        return found

    def forget(self, patterns: list[int]) -> None:
        """These numbers will be given to other patterns."""
        for pattern in patterns:
            self._rows.pop(pattern, None)
        self._found.forget(patterns)

    def _change(self, date: float, records: Sequence[tuple]) -> None:
        rows = [self._row(pattern, rate) for _, pattern, rate, _, _ in records]
        changed = {record[0] for record in records}
        running = self._running
        touched = [running[one].row for one in changed if one in running] + rows
        limits = {phase.limit for phase in running.values()}
        affected = {limit for limit in limits if any(limit in row for row in touched)}
        for one, phase in running.items():
            if one in changed or phase.limit in affected:
                self._charge(phase, date)
        for (one, _, rate, limit, task), row in zip(records, rows, strict=True):
            if rate > 0:
                running[one] = _Phase(task, row, rate, limit, date)
            else:
                running.pop(one, None)

    def _charge(self, phase: _Phase, date: float) -> None:
        """Charge the time since the last change to the users of the resource that limits a task."""
        passed, limit = date - phase.since, phase.limit
        phase.since = date
        if passed <= 0 or limit < 0 or limit in self._private:
            return
        uses = [
            (neighbour.task, neighbour.rate * neighbour.row[limit])
            for neighbour in self._running.values()
            if limit in neighbour.row
        ]
        total = sum(use for _, use in uses)
        for other, use in uses:
            if other != phase.task:
                key = phase.task, other
                self.charges[key] = self.charges.get(key, 0.0) + passed * use / total
                if self._by_limit:
                    place = *key, limit
                    self.on[place] = self.on.get(place, 0.0) + passed * use / total

    def _row(self, pattern: int, rate: float) -> dict[int, float]:
        """What a pattern asks of each resource."""
        if rate <= 0:
            return {}
        if pattern not in self._rows:
            self._found.find(np.array([pattern]))
            resources, usages = self._found.of(pattern)
            self._rows[pattern] = dict(zip(resources.tolist(), usages.tolist(), strict=True))
        return self._rows[pattern]


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
    groups: dict[tuple, list[TaskRef]] = {}
    tasks = [ref.task for ref in done]  # kept, so that no two works have one identity
    for ref, task in zip(done, tasks, strict=True):
        own_route = None if simulation.routing is None else ref.id
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
