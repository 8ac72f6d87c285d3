"""Turn the trace of an MPI application into a parallel task: as one bundle, or in phases.

A bundle has no order: all computations and exchanges progress together from beginning to end.
Phases keep some order. They are cut at collectives, from the trace alone, or in time, by the times
of a replay.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ptaskmodel.apps.names import PHASES
from ptaskmodel.errors import WorkloadError, shown
from ptaskmodel.mpi import Replay
from ptaskmodel.mpi.collectives.names import algorithms_of
from ptaskmodel.mpi.run import Progress, Several
from ptaskmodel.mpi.state import COMPUTING
from ptaskmodel.mpi.traffic import Amounts, Tally, bundle, in_turn, stages_of
from ptaskmodel.platform import Platform
from ptaskmodel.workload.actions import (
    ACTIONS,
    ALLREDUCE,
    BARRIER,
    COMPUTE,
    EXSCAN,
    NON_BLOCKING,
    REDUCE,
    REDUCESCATTER,
    SCAN,
    SCATTERV,
)
from ptaskmodel.workload.amounts import SMALLEST, FloatArray, IntArray
from ptaskmodel.workload.tasks import Task
from ptaskmodel.workload.traces import Trace
from ptaskmodel.workload.works import DelayWork, Work


def phases_at_collectives(trace: Trace, algorithms: IntArray | None = None) -> Work:
    """Each collective as a parallel work, and in between whatever ranks do between two of them.

    Phases that are alike share their work. algorithms: as of `bundle`. Raises WorkloadError if
    ranks do not take part in the same collectives in the same order.
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
    """What an application does in ``count`` equal windows of time, replayed alone on its hosts.

    model, solver, collectives: as of `replay`, which is done twice: for its makespan, and for what
    happens when; progress hears of the actions of both.

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
