"""A replay: applications on the hosts of a platform, advanced by the compiled loop."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ptaskmodel.core.driver import Core, as_compiled
from ptaskmodel.core.state import IDLE, OK, PAUSED, UNROUTED
from ptaskmodel.core.store import enlarged, records
from ptaskmodel.errors import PlatformError, SimulationError, WorkloadError
from ptaskmodel.platform import Platform
from ptaskmodel.replay.ahead import look_ahead, move_routes
from ptaskmodel.replay.loop import run
from ptaskmodel.replay.messages import place_of, spread
from ptaskmodel.replay.placement import hosts_of_ranks
from ptaskmodel.replay.smpi import protocol_of
from ptaskmodel.replay.state import (
    APP,
    FLIGHT,
    GROW_MESSAGES,
    GROW_REQUESTS,
    LOST_RANK,
    LOST_WAIT,
    MESSAGE,
    NEEDS_PATTERN,
    RANK,
    READY,
    REQUEST,
    SENT,
    SPAN,
    TOLD_FULL,
    Replays,
    empty_buckets,
    empty_routes,
    new_counts,
)
from ptaskmodel.workload.ti_actions import ACTIONS, DATATYPE_BYTES
from ptaskmodel.workload.ti_traces import Trace
from ptaskmodel.workload.works import ParallelWork

UNIT_FLOP = ParallelWork.of_execution(1.0)
UNIT_BYTE = ParallelWork.of_flow(1.0)


SPANS_AT_ONCE = 1 << 16
PAUSE_EVENTS = 1 << 18  # between two calls of `Progress`

# Takes what a replay tells, a part at a time: spans and flights (see `state`).
Listener = Callable[[np.ndarray, np.ndarray], None]
# Told now and then of the date, the number of actions that are over, and their number in all.
Progress = Callable[[float, int, int], None]


@dataclass(frozen=True, slots=True, eq=False)
class ReplayResult:
    """When each rank ended, and what it did until then.

    hosts: of the ranks. end_s: shape (ranks,). spent_s: seconds in actions of each kind (see
    `ti_actions.ACTIONS`), shape (ranks, kinds). makespan_s: the last end. unmatched: messages that
    were sent and never received. model, solver: what was simulated with.
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


def replay(
    platform: Platform,
    trace: Trace,
    hosts: Sequence[str] | None = None,
    *,
    model: str | None = None,
    solver: str | None = None,
    listener: Listener | None = None,
    progress: Progress | None = None,
) -> ReplayResult:
    """Replay the trace of an application, rank k on ``hosts[k]``, from date 0 on.

    hosts: None for those that ``smpirun`` would take. model: a network model (None: as the platform
    asks, else SMPI's). solver: None for max-min fairness, with L07 for SimGrid's fair bottleneck.

    Raises SimulationError where ranks wait for each other for ever or a host is off, WorkloadError
    for a wait that makes no sense, RouteError where a message has no way to go.
    """
    if hosts is None:
        hosts = hosts_of_ranks(platform, trace.ranks)
    made = Replay(platform, trace, hosts, model=model, solver=solver)
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
    ) -> None:
        if len(hosts) != trace.ranks:
            raise SimulationError(
                f"{trace.origin}: has {trace.ranks} ranks for {len(hosts)} hosts: give one for each"
            )
        self.trace = trace
        self.protocol = protocol = protocol_of(model, platform.config)
        by_default = "fairbottleneck" if protocol.model.parallel else "maxmin"
        self.core = Core(platform, protocol.model, solver or by_default)
        indices = []
        for name in hosts:
            indices.append(platform.host(name).index)
        n = trace.ranks
        ranks = records(n, RANK)
        ranks["state"] = READY
        ranks["host"] = indices
        ranks["action"], ranks["last"] = trace.first[:-1], trace.first[1:]
        ranks["next"] = np.arange(1, n + 1)
        ranks["next"][-1] = -1
        for name in ("awaited", "first_request", "last_request", "slot"):
            ranks[name] = -1
        ranks["ended"] = np.nan
        apps = records(1, APP)
        apps["ranks"] = apps["unfinished"] = n
        apps["type_bytes"] = trace.type_bytes
        apps["finished"] = np.nan
        counts = new_counts()
        counts["unfinished"] = n
        counts["first_ready"], counts["last_ready"] = 0, n - 1
        self.state = Replays(
            counts=counts,
            protocol=protocol.figures,
            apps=apps,
            ranks=ranks,
            messages=records(64, MESSAGE),
            requests=records(64, REQUEST),
            buckets=empty_buckets(64),
            routes=empty_routes(1024),
            latency_factors=protocol.latency_factors,
            bandwidth_factors=protocol.bandwidth_factors,
            overheads=protocol.overheads,
            actions=trace.actions,
            start=trace.start,
            values=trace.values,
            algorithms=np.zeros(len(ACTIONS), dtype=np.int64),
            type_bytes=DATATYPE_BYTES,
            spent=np.zeros((n, len(ACTIONS))),
            spans=records(0, SPAN),
            flights=records(0, FLIGHT),
        )

    def run(
        self, listener: Listener | None = None, progress: Progress | None = None
    ) -> ReplayResult:
        """Replay to the end."""
        if listener is not None:
            self._tell()
        core = self.core
        core.expect()
        total = len(self.trace)
        status = -2
        while status != OK:
            options = core.options._replace(pause_at=core.events + PAUSE_EVENTS)
            with as_compiled():
                status = int(run(core.state, self.state, options))
            if listener is not None and status in (OK, TOLD_FULL):
                self._hand_over(listener)
            if progress is not None:
                progress(core.now, int(self.state.counts["actions"][0]), total)
            if status not in (OK, PAUSED, TOLD_FULL) and not core.serve(status):
                self._serve(status)
        x = self.state
        left = x.messages["state"][: int(x.counts["n_messages"][0])]
        return ReplayResult(
            tuple(core.platform.hosts[k].name for k in x.ranks["host"].tolist()),
            x.ranks["ended"].copy(),
            x.spent,
            float(x.apps["finished"][0]),
            int(x.counts["messages"][0]),
            int(x.counts["actions"][0]),
            core.events,
            int((left == SENT).sum()),
            self.protocol.model.name,
            core.rule,
        )

    def _tell(self) -> None:
        """From now on, keep spans and flights."""
        self.state.counts["tells"] = 1
        self.state = self.state._replace(spans=records(SPANS_AT_ONCE, SPAN))
        self._make_room_for_flights()

    def _make_room_for_flights(self) -> None:
        most = 2 * len(self.state.messages) + SPANS_AT_ONCE
        self.state = self.state._replace(flights=enlarged(self.state.flights, most))

    def _hand_over(self, listener: Listener) -> None:
        counts, x = self.state.counts, self.state
        spans, flights = int(counts["n_spans"][0]), int(counts["n_flights"][0])
        counts["n_spans"] = counts["n_flights"] = 0
        listener(np.array(x.spans[:spans]), np.array(x.flights[:flights]))

    def _serve(self, status: int) -> None:
        counts = self.state.counts[0]
        if status == NEEDS_PATTERN:
            self._find_routes()
        elif status == UNROUTED:
            self._route_again(int(counts["wanted_source"]), int(counts["wanted_target"]))
        elif status == GROW_MESSAGES:
            self.make_room_for_messages()
        elif status == GROW_REQUESTS:
            requests = enlarged(self.state.requests, 2 * len(self.state.requests))
            self.state = self.state._replace(requests=requests)
        elif status == IDLE:
            raise SimulationError(f"{self.trace.origin}: {self._deadlock()}")
        elif status == LOST_WAIT:
            rank = int(counts["lost"])
            raise WorkloadError(
                f"{self.trace.origin}: rank {rank}: {self._action(rank)}: there is no request to "
                "wait for"
            )
        elif status == LOST_RANK:
            rank = int(counts["lost"])
            raise SimulationError(
                f"{self.trace.origin}: rank {rank}: {self._action(rank)}: a host or link is off"
            )
        else:
            raise AssertionError(status)

    def _find_routes(self) -> None:
        """Route the pair of hosts that is wanted, and those that will be next."""
        core = self.core
        while not look_ahead(core.state, self.state):
            old = self.state.routes
            self.state = self.state._replace(routes=empty_routes(4 * len(old)))
            move_routes(self.state, old)
        routes = self.state.routes
        places = np.flatnonzero((routes["key"] >= 0) & (routes["pattern"] < 0))
        sources, targets = np.divmod(routes["key"][places], len(core.state.resources))
        targets -= 1
        flows = targets >= 0
        patterns = np.empty(len(places), dtype=np.int64)
        if core.model.parallel:
            hosts = zip(sources[flows].tolist(), targets[flows].tolist(), strict=True)
            patterns[flows] = self._patterns(UNIT_BYTE, hosts)
        else:
            patterns[flows] = core.find_flows(sources[flows], targets[flows])
        own = ((host,) for host in sources[~flows].tolist())
        patterns[~flows] = self._patterns(UNIT_FLOP, own)
        core.hold(patterns)
        routes["pattern"][places] = patterns
        routes["unit"][places] = np.where(flows, 1.0 / core.model.bandwidth_factor, 1.0)
        # Who needs one that cannot be routed will say so.
        with contextlib.suppress(PlatformError, SimulationError):
            core.route(patterns.tolist())

    def _patterns(self, work: ParallelWork, hosts: Iterable[tuple[int, ...]]) -> list[int]:
        shape = self.core.router.shape
        return self.core.find([shape(work, own, None)[0] for own in hosts])

    def _route_again(self, source: int, target: int) -> None:
        """Routes changed, or this pair has none: route those known anew."""
        routes = self.state.routes
        known = np.sort(routes["pattern"][(routes["key"] >= 0) & (routes["pattern"] >= 0)])
        with contextlib.suppress(PlatformError, SimulationError):
            self.core.route(known.tolist())
        key = source * len(self.core.state.resources) + target + 1
        self.core.route([int(routes["pattern"][place_of(self.state, key)])])

    def make_room_for_messages(self) -> None:
        """Let twice as many messages be under way."""
        old = self.state
        messages = enlarged(old.messages, 2 * len(old.messages))
        self.state = old._replace(messages=messages, buckets=empty_buckets(len(messages)))
        spread(self.state, old.buckets)
        if old.counts["tells"][0]:
            self._make_room_for_flights()

    def _action(self, rank: int) -> str:
        record = self.state.ranks[rank]
        k = int(record["action"])
        if k >= int(record["last"]):
            return "at its end"
        first, last = self.trace.start[k], self.trace.start[k + 1]
        fields = " ".join(f"{v:.15g}" for v in self.trace.values[first:last].tolist()[:6])
        return f"{ACTIONS[self.trace.actions[k]]} {fields}".strip()

    def _deadlock(self) -> str:
        ranks = self.state.ranks
        waiting = [r for r in range(len(ranks)) if np.isnan(ranks["ended"][r])]
        shown = "; ".join(f"rank {r} in '{self._action(r)}'" for r in waiting[:8])
        more = f" and {len(waiting) - 8} more" if len(waiting) > 8 else ""
        return f"{len(waiting)} ranks wait for ever: {shown}{more}"
