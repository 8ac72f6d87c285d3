"""Compare parallel-task models of an application with its replay, alone and under contention.

`compare_in_company` runs both in a simulation that the caller prepares. `disturbed` runs a replay
beside endless flows, which are messages between hosts that never end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ptaskmodel.apps.trace_works import WindowSums, phases_at_collectives
from ptaskmodel.errors import SimulationError, WorkloadError
from ptaskmodel.mpi import Replay
from ptaskmodel.mpi.collectives.names import algorithms_of
from ptaskmodel.mpi.run import Progress
from ptaskmodel.mpi.traffic import bundle
from ptaskmodel.platform import Platform
from ptaskmodel.simulation.simulation import Simulation
from ptaskmodel.workload.actions import RECV, SEND
from ptaskmodel.workload.batch_works import TraceWork
from ptaskmodel.workload.tasks import Task
from ptaskmodel.workload.traces import Trace
from ptaskmodel.workload.works import SequenceWork, Work

REPLAY, BUNDLE, COLLECTIVES = "replay", "bundle", "collectives"

# Years at any bandwidth there is.
ENDLESS_BYTES = 2.0**60

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class InCompany:
    """How long an application takes by a model: alone_s on an empty platform, taken_s beside the
    tasks of a simulation. error, slowdown_error: relative, against the replay.
    """

    model: str
    alone_s: float
    taken_s: float
    error: float
    slowdown_error: float

    @property
    def slowdown(self) -> float:
        """Beside the others, against the same model alone."""
        return self.taken_s / self.alone_s


def compare_in_company(
    simulation: Simulation,
    trace: Trace,
    hosts: Sequence[str],
    *,
    start_s: float | None = None,
    windows: Sequence[int] = (1, 10),
    replayed_in: Simulation | None = None,
) -> list[InCompany]:
    """Replay an application in a simulation of one's own, and run it as parallel tasks there.

    The replay comes first, then the models of `tasks_of_trace`, each in a copy of the simulation:
    whatever runs there, or is still to come, contends with it. The simulation itself stays as it
    is. Rank k is on ``hosts[k]``.

    start_s: when the application begins (None: now). replayed_in: where it is replayed instead, so
    that its messages can travel by another network model, such as SMPI's; its tasks should be the
    same company. Only a simulation by L07 runs parallel tasks.

    Raises WorkloadError if no tasks can be made of the trace, SimulationError for a simulation of
    another network model than L07, or where the application never ends.
    """
    if not simulation.network_model.parallel:
        raise SimulationError(
            f"{simulation.network_model.name} carries no parallel tasks; give a simulation by L07, "
            "and this one as replayed_in"
        )
    platform, reference = simulation.platform, replayed_in or simulation
    replays = [(REPLAY, Task(tuple(hosts), TraceWork(trace)), reference)]
    model, solver = reference.network_model.name, reference.solver
    alone_s = Replay(reference.platform, trace, hosts, model=model, solver=solver).run().makespan_s
    tasks = tasks_of_trace(
        platform, trace, hosts, alone_s, windows, model=model, solver=solver
    ).items()
    made: list[InCompany] = []
    for name, task, host in (*replays, *((name, task, simulation) for name, task in tasks)):
        begin_s = host.now if start_s is None else start_s
        empty = Simulation(
            host.platform,
            solver=host.solver,
            network_model=host.network_model.name,
            count=host.count,
        )
        alone_s, taken_s = _duration(empty, task, 0.0), _duration(host.fork(), task, begin_s)
        true = made[0] if made else InCompany(name, alone_s, taken_s, 0.0, 0.0)
        slowdown = taken_s / alone_s
        errors = taken_s / true.taken_s - 1.0, slowdown / true.slowdown - 1.0
        made.append(InCompany(name, alone_s, taken_s, *errors))
    return made


def _duration(simulation: Simulation, task: Task, start_s: float) -> float:
    """How long a task takes that is added to a simulation; this one ends with it."""
    (own,) = simulation.add_all(
        [Task(task.hosts, task.work, start_s=start_s, rate_bound=task.rate_bound)]
    )
    while own.end_s is None:
        if not simulation.run_until_change():
            raise SimulationError(f"task '{own.id}' never ends: it is {own.state}")
    assert own.start_s is not None
    return own.end_s - own.start_s


def tasks_of_trace(
    platform: Platform,
    trace: Trace,
    hosts: Sequence[str],
    alone_s: float,
    windows: Sequence[int],
    *,
    model: str | None = None,
    solver: str | None = None,
    collectives: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> dict[str, Task]:
    """The parallel tasks of a trace by the names of their models: a bundle; phases at collectives,
    if there are any; and windows in time of a replay alone, as many as each of ``windows`` says.

    alone_s: the makespan of that replay. model, solver, collectives, progress: as of `replay`.
    Raises as `replay`, and WorkloadError if a bundle cannot be made.
    """
    algorithms = algorithms_of(collectives or {}, platform.config, trace)
    works: dict[str, tuple[Work, float | None]] = {BUNDLE: (bundle(trace, algorithms), None)}
    phases = phases_at_collectives(trace, algorithms)
    if isinstance(phases, SequenceWork):
        works[COLLECTIVES] = phases, None
    again = partial(
        Replay, platform, trace, hosts, model=model, solver=solver, collectives=collectives
    )
    sums = [WindowSums(trace, alone_s, count) for count in windows]

    def listen(spans: np.ndarray, flights: np.ndarray) -> None:
        for one in sums:
            one(spans, flights)

    if sums:
        again().run(listen, progress)
    for count, one in zip(windows, sums, strict=True):
        found = one.windows()
        works[f"{count} window{'s' * (count != 1)}"] = found.work, 1.0 / found.window_s
    return {
        name: Task(tuple(hosts), work, "application", rate_bound=bound)
        for name, (work, bound) in works.items()
    }


def disturbed(
    platform: Platform,
    trace: Trace,
    hosts: Sequence[str],
    pairs: Pairs,
    *,
    model: str | None = None,
    solver: str | None = None,
    collectives: Mapping[str, str] | None = None,
) -> Replay:
    """The replay of an application beside endless flows, one from the first host of each pair to
    the second; it is over when the application is.

    A flow is a message between two ranks of a second application, so it travels as the messages of
    the first do. What `run` returns holds these ranks too, after those of the application.

    Raises as `replay`; who waits for ever must be found without flows, since these go on for ever.
    """
    made = Replay(platform, trace, hosts, model=model, solver=solver, collectives=collectives)
    m = 2 * len(pairs)
    if m == 0:
        return made
    fields = np.array([[k ^ 1, 0.0, ENDLESS_BYTES] for k in range(m)])
    flows = Trace(
        np.tile(np.array([SEND, RECV], np.int8), len(pairs)),
        np.arange(m + 1),
        3 * np.arange(m + 1),
        fields.ravel(),
        1.0,
        trace.origin,
    )
    ends = [platform.host(host).index for pair in pairs for host in pair]
    made.applications.begin(1, flows, ends)
    made.state.counts["unfinished"] = trace.ranks
    return made


def pairs_of(sources: Sequence[str], targets: Sequence[str]) -> list[tuple[str, str]]:
    """Each of the sources with the target at its place. Raises WorkloadError if they differ."""
    if len(sources) != len(targets):
        raise WorkloadError(
            f"flows from {len(sources)} hosts to {len(targets)}; give as many of both"
        )
    return list(zip(sources, targets, strict=True))
