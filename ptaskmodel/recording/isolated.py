"""Find the isolated run time of each task: alone on the platform, on the same hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptaskmodel.simulation.records import TaskRef
    from ptaskmodel.simulation.simulation import Simulation
    from ptaskmodel.workload.tasks import Task


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
    for ref in done:
        task = ref.task
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
