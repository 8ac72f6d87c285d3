"""Parallel tasks of the trace of an MPI application, and how far they are from its replay.

A bundle has no order: all computations and exchanges progress together from beginning to end.
Phases keep some order. They are cut at collectives, from the trace alone, or in time, by the times
of a replay.

`compare_in_company` runs the task and the replay in a simulation that the caller prepares.
`disturbed` runs a replay beside endless flows, which are messages between hosts that never end.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ptaskmodel.apps.names import PHASES
from ptaskmodel.errors import SimulationError, WorkloadError, shown
from ptaskmodel.mpi import Replay
from ptaskmodel.mpi.collectives.names import algorithms_of
from ptaskmodel.mpi.run import Progress, Several
from ptaskmodel.mpi.state import COMPUTING
from ptaskmodel.mpi.traffic import Amounts, Tally, bundle, in_turn, stages_of
from ptaskmodel.platform import Platform
from ptaskmodel.simulation.simulation import Simulation
from ptaskmodel.workload.actions import (
    ACTIONS,
    ALLREDUCE,
    BARRIER,
    COMPUTE,
    EXSCAN,
    NON_BLOCKING,
    RECV,
    REDUCE,
    REDUCESCATTER,
    SCAN,
    SCATTERV,
    SEND,
)
from ptaskmodel.workload.amounts import SMALLEST, FloatArray, IntArray
from ptaskmodel.workload.tasks import Task
from ptaskmodel.workload.traces import Trace
from ptaskmodel.workload.works import DelayWork, SequenceWork, TraceWork, Work


def phases_at_collectives(trace: Trace, algorithms: IntArray | None = None) -> Work:
    """Return a work with a phase for each collective of a trace, and for what is between two.

    Phases that are alike share their work. trace: of all ranks. algorithms: as of `bundle`. Raises
    WorkloadError if ranks do not take part in the same collectives in the same order.
    """
    tally = Tally(trace, algorithms)
    cuts = collective_cuts(trace)
    stages: list[Work] = []
    for first, last in itertools.pairwise(cuts):
        stages += stages_of(tally.amounts(first, last))
    return in_turn(stages, trace)


def collective_cuts(trace: Trace) -> IntArray:
    """The action of each rank at which each phase begins, and its end: shape (phases + 1, ranks).

    Raises WorkloadError as `phases_at_collectives`.
    """
    where = np.flatnonzero((trace.actions >= BARRIER) & (trace.actions <= SCATTERV))
    first = np.searchsorted(where, trace.first)
    counts = np.diff(first)
    if (counts != counts[0]).any():
        odd = int(np.flatnonzero(counts != counts[0])[0])
        raise WorkloadError(
            f"{trace.origin}: rank {odd} takes part in {counts[odd]} collectives and rank 0 in "
            f"{counts[0]}: cannot cut there; choose other phases"
        )
    places = where.reshape(trace.ranks, counts[0]).T
    kinds = trace.actions[places]
    wrong = np.argwhere(kinds != kinds[:, :1])
    if len(wrong):
        k, odd = wrong[0].tolist()
        raise WorkloadError(
            f"{trace.origin}: collective {k + 1} is {ACTIONS[kinds[k, odd]]} on rank {odd} and "
            f"{ACTIONS[kinds[k, 0]]} on rank 0: cannot cut there; choose other phases"
        )
    cuts = np.empty((2 * len(places) + 2, trace.ranks), dtype=np.int64)
    cuts[0], cuts[-1] = trace.first[:-1], trace.first[1:]
    cuts[1:-1:2], cuts[2:-1:2] = places, places + 1
    return cuts


@dataclass(frozen=True, slots=True)
class Windows:
    """What an application did in equal windows of time: as a work, a stage a window of window_s.

    A task of this work with ``rate_bound`` 1 / window_s takes as long as the replay did, where
    nothing disturbs it, and longer where a window does not fit its time.
    """

    work: Work
    window_s: float


class WindowSums:
    """Listens to a replay and adds up what is done in equal windows of time (see `Windows`).

    What takes long is dealt to its windows by time.
    """

    def __init__(self, trace: Trace, makespan_s: float, windows: int) -> None:
        if windows < 1 or not makespan_s > 0.0:
            raise WorkloadError(
                f"{windows} windows of a replay of {makespan_s:g} s; give at least one, of a trace "
                "that takes time"
            )
        self._trace = trace
        self._windows = windows
        self.window_s = makespan_s / windows
        n = trace.ranks
        self._flops = np.zeros((windows, n))
        self._bytes: list[dict[int, float]] = [{} for _ in range(windows)]
        self._computed = _flops_of_actions(trace)

    def __call__(self, spans: np.ndarray, flights: np.ndarray) -> None:
        spans = spans[spans["held"] == COMPUTING]
        flops = self._computed[spans["action"]]
        row, window, part = self._dealt(spans["begin"], spans["end"])
        np.add.at(self._flops, (window, spans["rank"][row]), flops[row] * part)
        other = flights["source"] != flights["target"]
        flights = flights[other & (flights["bytes"] > 0.0)]
        row, window, part = self._dealt(flights["begin"], flights["end"])
        n = self._trace.ranks
        keys = (window * n + flights["source"][row]) * n + flights["target"][row]
        found, place = np.unique(keys, return_inverse=True)
        sums = np.bincount(place, flights["bytes"][row] * part, len(found))
        for key, amount in zip(found.tolist(), sums.tolist(), strict=True):
            at, pair = divmod(key, n * n)
            self._bytes[at][pair] = self._bytes[at].get(pair, 0.0) + amount

    def _dealt(self, begin: FloatArray, end: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
        """(row, window, part of it that is there) of what lasts from begin to end."""
        last = self._windows - 1
        low = np.minimum((begin / self.window_s).astype(np.int64), last)
        high = np.minimum((end / self.window_s).astype(np.int64), last)
        counts = high - low + 1
        row = np.repeat(np.arange(len(begin)), counts)
        window = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts) + low[row]
        edge = window * self.window_s
        after = np.where(window == last, np.inf, edge + self.window_s)
        there = np.minimum(end[row], after) - np.maximum(begin[row], edge)
        lasted = (end - begin)[row]
        part = np.where(lasted > 0.0, there / np.where(lasted > 0.0, lasted, 1.0), 1.0)
        return row, window, np.where(counts[row] == 1, 1.0, np.maximum(part, 0.0))

    def windows(self) -> Windows:
        """What has been heard of; a window in which nothing is done is a delay."""
        n = self._trace.ranks
        stages: list[Work] = []
        for flops, sent in zip(self._flops, self._bytes, strict=True):
            talking = sorted(pair for pair, size in sent.items() if size >= SMALLEST)
            pairs = np.array(talking, dtype=np.int64)
            sizes = np.array([sent[pair] for pair in talking])
            amounts = Amounts(flops, np.zeros(n), pairs // n, pairs % n, sizes)
            stages += stages_of(amounts) or [DelayWork(self.window_s)]
        return Windows(in_turn(stages, self._trace), self.window_s)


def _flops_of_actions(trace: Trace) -> FloatArray:
    """What the rank computes in each action, shape (actions,)."""
    place = np.full(len(ACTIONS), -1)
    place[COMPUTE] = 0
    place[[REDUCE, ALLREDUCE, SCAN, EXSCAN]] = 1
    place[REDUCESCATTER] = trace.ranks
    place[BARRIER + NON_BLOCKING :] = place[BARRIER : SCATTERV + 1]
    field = place[trace.actions]
    flops = np.zeros(len(trace))
    computes = field >= 0
    flops[computes] = trace.values[trace.start[:-1][computes] + field[computes]]
    return flops


def windows(
    trace: Trace,
    platform: Platform,
    hosts: Sequence[str],
    count: int,
    *,
    model: str | None = None,
    solver: str | None = None,
    collectives: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Windows:
    """Return what an application does in ``count`` equal windows of time, alone on its hosts.

    trace: what its ranks do. platform: has the hosts. hosts: a name for each rank. model, solver,
    collectives: as of `replay`, which is done twice: for its makespan, and for what happens when;
    progress hears of the actions of both.

    Raises as `replay`, and WorkloadError if nothing takes time or ``count`` is not positive.
    """
    again = partial(
        Replay, platform, trace, hosts, model=model, solver=solver, collectives=collectives
    )
    both = Several(2, trace, progress)
    sums = WindowSums(trace, again().run(None, both.replay(0)).makespan_s, count)
    again().run(sums, both.replay(1))
    return sums.windows()


def task_of_trace(
    trace: Trace,
    hosts: Sequence[str],
    phases: str = "none",
    *,
    platform: Platform | None = None,
    count: int = 10,
    model: str | None = None,
    collectives: Mapping[str, str] | None = None,
    name: str | None = None,
    progress: Progress | None = None,
) -> Task:
    """The task of a trace, rank k on ``hosts[k]``, with phases by their name in `names.PHASES`.

    platform, count, model, progress: for phases in time, see `windows`. collectives: as of
    `replay`; what it leaves out is as the platform's <config> says, if there is one. name: its id.

    Raises WorkloadError as the functions above do, SimulationError for an unknown algorithm.
    """
    if phases not in PHASES:
        raise WorkloadError(f"unknown phases {shown(phases)}; use one of {', '.join(PHASES)}")
    if phases == "time":
        if platform is None:
            raise WorkloadError("phases in time need a platform to replay on; give one")
        found = windows(
            trace,
            platform,
            hosts,
            count,
            model=model,
            collectives=collectives,
            progress=progress,
        )
        return Task(tuple(hosts), found.work, name, rate_bound=1.0 / found.window_s)
    config = {} if platform is None else platform.config
    algorithms = algorithms_of(collectives or {}, config, trace)
    cut = bundle if phases == "none" else phases_at_collectives
    work = cut(trace, algorithms)
    return Task(tuple(hosts), work, name)


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

    start_s: when the application begins (None: now). windows: numbers of windows; each gives a
    model (see `tasks_of_trace`). replayed_in: where it is replayed instead, so
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
