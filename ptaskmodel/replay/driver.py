"""A replay: applications on the hosts of a platform, advanced by the compiled loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ptaskmodel.core.driver import Core
from ptaskmodel.core.state import OK, PAUSED
from ptaskmodel.errors import SimulationError
from ptaskmodel.kernels.decorators import as_compiled
from ptaskmodel.platform import Platform
from ptaskmodel.replay.applications import Applications
from ptaskmodel.replay.loop import run
from ptaskmodel.replay.placement import hosts_of_ranks
from ptaskmodel.replay.smpi import protocol_of
from ptaskmodel.replay.state import SENT, TOLD_FULL, Replays
from ptaskmodel.workload.ti_traces import Trace

# Between two calls of `Progress`: events at most, and about how many actions, so that little of a
# large trace is in memory at a time.
PAUSE_EVENTS = 1 << 18
PAUSE_ACTIONS = 1 << 17

# Takes what a replay tells, a part at a time: spans and flights (see `state`).
Listener = Callable[[np.ndarray, np.ndarray], None]
# Told now and then of the date, the number of actions that are over, and their number in all.
Progress = Callable[[float, int, int], None]


@dataclass(frozen=True, slots=True, eq=False)
class ReplayResult:
    """When each rank ended, and what it did until then.

    hosts: of the ranks. end_s: shape (ranks,). spent_s: seconds in actions of each kind (see
    `ti_actions.ACTIONS`), shape (ranks, kinds). makespan_s: the last end. unmatched: messages that
    were sent and never received. model, solver: what was simulated with. first_unmatched: sender,
    receiver and tag of the first of these (in this order), None if there are none.
    """

    hosts: tuple[str, ...]
    end_s: np.ndarray
    spent_s: np.ndarray
    makespan_s: float
    messages: int
    actions: int
    events: int
    unmatched: int
    model: str
    solver: str
    first_unmatched: tuple[int, int, int] | None = None


def replay(
    platform: Platform,
    trace: Trace,
    hosts: Sequence[str] | None = None,
    *,
    model: str | None = None,
    solver: str | None = None,
    collectives: Mapping[str, str] | None = None,
    listener: Listener | None = None,
    progress: Progress | None = None,
) -> ReplayResult:
    """Replay the trace of an application, rank k on ``hosts[k]``, from date 0 on.

    hosts: None for those that ``smpirun`` would take. model: a network model (None: SMPI's, or
    L07 if the platform asks for that). solver: None for max-min fairness, with L07 for SimGrid's
    fair bottleneck. collectives: names of algorithms by names of collectives (see
    `algorithms.ALGORITHMS`; those left out: as the platform asks, else SMPI's default).

    Raises SimulationError where ranks wait for each other for ever or a host is off, WorkloadError
    for a wait that makes no sense, RouteError where a message has no way to go.
    """
    if hosts is None:
        hosts = hosts_of_ranks(platform, trace.ranks)
    made = Replay(platform, trace, hosts, model=model, solver=solver, collectives=collectives)
    return made.run(listener, progress)


class Replay:
    """One application on its hosts."""

    def __init__(
        self,
        platform: Platform,
        trace: Trace,
        hosts: Sequence[str],
        *,
        model: str | None = None,
        solver: str | None = None,
        collectives: Mapping[str, str] | None = None,
    ) -> None:
        if len(hosts) != trace.ranks:
            raise SimulationError(
                f"{trace.origin}: has {trace.ranks} ranks for {len(hosts)} hosts: give one for each"
            )
        self.trace = trace
        self.protocol = protocol = protocol_of(model, platform.config)
        by_default = "fairbottleneck" if protocol.model.parallel else "maxmin"
        self.core = Core(platform, protocol.model, solver or by_default)
        self.core.state.clock[0]["gathers"] = 1
        self.applications = Applications(self.core, protocol)
        self.applications.choose(trace, collectives)
        self.applications.begin(0, trace, [platform.host(name).index for name in hosts])

    @property
    def state(self) -> Replays:
        """The arrays of the ranks."""
        return self.applications.state

    def run(
        self, listener: Listener | None = None, progress: Progress | None = None
    ) -> ReplayResult:
        """Replay to the end."""
        if listener is not None:
            self.applications.tell()
        core = self.core
        core.expect()
        total = len(self.trace)
        status, events = -2, 1 << 8
        while status != OK:
            actions = int(self.state.counts["actions"][0])
            options = core.options._replace(pause_at=core.events + events)
            with as_compiled():
                status = int(run(core.state, self.state, options))
            core.hand_over()
            self.trace.let_go()
            if status == PAUSED:
                acted = max(int(self.state.counts["actions"][0]) - actions, 1)
                events = min(events * PAUSE_ACTIONS // acted + 1, PAUSE_EVENTS)
            if listener is not None and status in (OK, TOLD_FULL):
                self._hand_over(listener)
            if progress is not None:
                progress(core.now, int(self.state.counts["actions"][0]), total)
            if status in (OK, PAUSED, TOLD_FULL) or core.serve(status):
                continue
            if not self.applications.serve(status):
                raise AssertionError(status)
        x = self.state
        sent = x.messages[: int(x.counts["n_messages"][0])]
        sent = sent[sent["state"] == SENT]
        return ReplayResult(
            tuple(core.platform.hosts[k].name for k in x.ranks["host"].tolist()),
            x.ranks["ended"].copy(),
            x.spent,
            float(x.apps["finished"][0]),
            int(x.counts["messages"][0]),
            int(x.counts["actions"][0]),
            core.events,
            len(sent),
            self.protocol.model.name,
            core.rule,
            min(sent[["source", "target", "tag"]].tolist(), default=None),
        )

    def name_activities(self) -> None:
        """From now on, the stream of the core says which messages begin, and what ends."""
        self.applications.name_activities()

    def _hand_over(self, listener: Listener) -> None:
        counts, x = self.state.counts, self.state
        spans, flights = int(counts["n_spans"][0]), int(counts["n_flights"][0])
        counts["n_spans"] = counts["n_flights"] = 0
        listener(np.array(x.spans[:spans]), np.array(x.flights[:flights]))
