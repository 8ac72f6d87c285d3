"""Applications on an engine: their state, the requests of their loop, how they start and end."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ptaskmodel.engine.driver import Core
from ptaskmodel.engine.state import IDLE
from ptaskmodel.errors import PlatformError, SimulationError
from ptaskmodel.kernels.decorators import want
from ptaskmodel.kernels.records import enlarged, records
from ptaskmodel.mpi.collectives.dispatch import packed_step
from ptaskmodel.mpi.collectives.names import algorithms_of, default_algorithms
from ptaskmodel.mpi.loop import look_ahead, move_routes
from ptaskmodel.mpi.messages import place_of, spread
from ptaskmodel.mpi.protocol import Protocol
from ptaskmodel.mpi.ranks import advance_ready
from ptaskmodel.mpi.state import (
    GROW_MESSAGES,
    GROW_REQUESTS,
    LOST_RANK,
    NEEDS_PATTERN,
    NEEDS_ROUTE,
    RANK,
    READY,
    SPAN,
    Replays,
    bare_replays,
    empty_buckets,
    empty_routes,
)
from ptaskmodel.workload.actions import (
    ACTIONS,
    ANY_SOURCE,
    ANY_TAG,
    IRECV,
    RECV,
    SENDRECV,
    TEST,
)
from ptaskmodel.workload.traces import Trace
from ptaskmodel.workload.works import ParallelWork

UNIT_FLOP = ParallelWork.of_execution(1.0)
SPANS_AT_ONCE = 1 << 16


class Applications:
    """The Python side of `Replays`: ranks on a core, and the traces that they follow."""

    def __init__(self, core: Core, protocol: Protocol) -> None:
        self.core = core
        self.traces: list[Trace] = []
        self._known: dict[int, int] = {}  # the first action of each trace
        self._of_app: list[Trace] = []
        # The task that each rank belongs to, or did.
        self.task_of_rank = np.zeros(0, dtype=np.int64)
        self.state = bare_replays()._replace(
            protocol=protocol.figures,
            latency_factors=protocol.latency_factors,
            bandwidth_factors=protocol.bandwidth_factors,
            overheads=protocol.overheads,
            algorithms=default_algorithms(),
        )
        _want_kernels()

    def copy(self, core: Core) -> Applications:
        """An independent copy on another core, a copy of this one's."""
        twin = Applications.__new__(Applications)
        twin.core = core
        twin.traces, twin._known = self.traces.copy(), self._known.copy()
        twin._of_app, twin.task_of_rank = self._of_app.copy(), self.task_of_rank.copy()
        twin.state = Replays(*(array.copy() for array in self.state))
        twin.state.counts["names"] = 0
        return twin

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_known": {}}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept)
        _want_kernels()
        self.state.counts["names"] = 0
        first = 0
        for trace in self.traces:
            self._known[id(trace)] = first
            first += len(trace)

    # --- beginning --------------------------------------------------------------------------

    def choose(self, trace: Trace, asked: Mapping[str, str] | None = None) -> None:
        """Let the collectives of a trace be done as asked for, or as the platform says.

        Raises as `algorithms_of`.
        """
        chosen = algorithms_of(asked or {}, self.core.platform.config, trace)
        self.state.algorithms[:] = chosen

    def begin(self, task: int, trace: Trace, hosts: Sequence[int]) -> int:
        """Start the ranks of an application now, rank k on ``hosts[k]``; return its number.

        task: the front end's number for it. trace: the actions of its ranks. hosts: indices, one a
        rank.
        """
        first_action = self._taken_in(trace)
        n = trace.ranks
        number, first = self._place(trace)
        self._of_app[number] = trace
        if len(self.task_of_rank) < first + n:
            self.task_of_rank = enlarged(self.task_of_rank, first + n)
        self.task_of_rank[first : first + n] = task
        if self.core.listeners_to_ranks:
            self.name_activities()
        x = self.state
        app = x.apps[number]
        app["first"], app["ranks"], app["unfinished"] = first, n, n
        app["type_bytes"], app["finished"], app["task"] = trace.type_bytes, np.nan, task
        ranks = x.ranks[first : first + n]
        ranks[:] = np.zeros(1, dtype=RANK)
        ranks["state"], ranks["app"], ranks["host"] = READY, number, hosts
        ranks["action"] = first_action + trace.first[:-1]
        ranks["last"] = first_action + trace.first[1:]
        for name in ("awaited", "first_request", "last_request", "slot", "wake", "told", "line"):
            ranks[name] = -1
        ranks["began"], ranks["ended"] = self.core.now, np.nan
        ranks["takes_any"][_take_any(trace)] = 1
        if ranks["takes_any"].any():
            x.counts["take_any"] = x.counts["by_turns"] = 1
        x.spent[first : first + n] = 0.0
        counts = x.counts[0]
        counts["unfinished"] += n
        ranks["next"] = np.arange(first + 1, first + n + 1)
        ranks["next"][-1] = -1
        ready = counts["ready"]
        if ready["last"] >= 0:
            x.ranks["next"][ready["last"]] = first
        else:
            ready["first"] = first
        ready["last"] = first + n - 1
        return number

    def _place(self, trace: Trace) -> tuple[int, int]:
        """A free place for an application: its number and that of its first rank."""
        ranks = trace.ranks
        x, n_apps = self.state, int(self.state.counts["n_apps"][0])
        apps = x.apps[:n_apps]
        free = np.flatnonzero((apps["task"] < 0) & (apps["ranks"] == ranks))
        if len(free):
            return int(free[0]), int(apps["first"][free[0]])
        first = int(apps["first"][-1] + apps["ranks"][-1]) if n_apps else 0
        last = first + ranks
        spent = x.spent
        if len(spent) < last:
            spent = np.zeros((max(last, 2 * len(spent)), len(ACTIONS)))
            spent[: len(x.spent)] = x.spent
        self.state = x._replace(
            apps=enlarged(x.apps, n_apps + 1), ranks=enlarged(x.ranks, last), spent=spent
        )
        self.state.counts["n_apps"] = n_apps + 1
        self._of_app.append(trace)
        return n_apps, first

    def _taken_in(self, trace: Trace) -> int:
        """The number of the first action of a trace in the state."""
        known = self._known.get(id(trace))
        if known is None:
            x = self.state
            known = self._known[id(trace)] = len(x.actions)
            if not self.traces:
                start = trace.start
                self.state = x._replace(actions=trace.actions, start=start, values=trace.values)
            else:
                self.state = x._replace(
                    actions=np.concatenate((x.actions, trace.actions)),
                    start=np.concatenate((x.start[:-1], trace.start + len(x.values))),
                    values=np.concatenate((x.values, trace.values)),
                )
            self.traces.append(trace)
            if _asks_before(trace):
                self.state.counts["by_turns"] = 1
        return known

    # --- what the loop asks for -------------------------------------------------------------

    def serve(self, status: int) -> bool:
        """Handle the `status` with which the loop returned.

        Return False if it is not for this class.

        Raises SimulationError if ranks deadlock or a host is off, RouteError if a message has no
        route.
        """
        counts = self.state.counts[0]
        if status == NEEDS_PATTERN:
            self._find_routes()
        elif status == NEEDS_ROUTE:
            self._route_again(int(counts["wanted_source"]), int(counts["wanted_target"]))
        elif status == GROW_MESSAGES:
            self.make_room_for_messages()
        elif status == GROW_REQUESTS:
            requests = enlarged(self.state.requests, 2 * len(self.state.requests))
            self.state = self.state._replace(requests=requests)
        elif status == IDLE:
            raise SimulationError(self.deadlock())
        elif status == LOST_RANK:
            rank = int(counts["lost"])
            raise SimulationError(
                f"{self._rank(rank)}: a host or link is off; check failures and traces"
            )
        else:
            return False
        return True

    def _find_routes(self) -> None:
        """Route the pair of hosts that is wanted, and those that will be next."""
        core = self.core
        while not look_ahead(core.state, self.state):
            old = self.state.routes
            self.state = self.state._replace(routes=empty_routes(4 * len(old)))
            move_routes(self.state, old)
        routes = self.state.routes
        places = np.flatnonzero((routes["key"] >= 0) & (routes["pattern"] < 0))
        # Those wanted one after the other shall lie side by side.
        places = places[np.argsort(routes["key"][places])]
        sources, targets = np.divmod(routes["key"][places], len(core.state.resources))
        targets -= 1
        flows = targets >= 0
        patterns = np.empty(len(places), dtype=np.int64)
        patterns[flows] = core.find_flows(sources[flows], targets[flows])
        shape = core.router.shape
        own = sources[~flows].tolist()
        patterns[~flows] = core.find([shape(UNIT_FLOP, (host,), None)[0] for host in own])
        core.hold(patterns)
        routes["pattern"][places] = patterns
        routes["unit"][places] = np.where(flows, 1.0 / core.model.bandwidth_factor, 1.0)
        # Who needs one that cannot be routed will say so.
        with contextlib.suppress(PlatformError, SimulationError):
            core.route(patterns.tolist())

    def _route_again(self, source: int, target: int) -> None:
        """Routes changed, or this pair has none: route those known anew."""
        routes = self.state.routes
        known = np.sort(routes["pattern"][(routes["key"] >= 0) & (routes["pattern"] >= 0)])
        with contextlib.suppress(PlatformError, SimulationError):
            self.core.route(known.tolist())
        key = source * len(self.core.state.resources) + target + 1
        self.core.route([int(routes["pattern"][place_of(self.state, key)])])

    def name_activities(self) -> None:
        """From now on, the event stream says which messages begin, and what ends."""
        self.state.counts["names"] = 1

    def tell(self) -> None:
        """From now on, keep spans and flights."""
        self.state.counts["tells"] = 1
        self.state = self.state._replace(spans=records(SPANS_AT_ONCE, SPAN))
        self._make_room_for_flights()

    def _make_room_for_flights(self) -> None:
        x = self.state
        self.state = x._replace(
            departures=enlarged(x.departures, len(x.messages)),
            flights=enlarged(x.flights, 2 * len(x.messages) + SPANS_AT_ONCE),
        )

    def make_room_for_messages(self) -> None:
        """Let twice as many messages be under way."""
        old = self.state
        messages = enlarged(old.messages, 2 * len(old.messages))
        self.state = old._replace(messages=messages, buckets=empty_buckets(len(messages)))
        spread(self.state, old.buckets)
        if old.counts["tells"][0]:
            self._make_room_for_flights()

    # --- what to say of them ----------------------------------------------------------------

    def task_of(self, owner: int) -> int:
        """The task of the application that an activity with this owner, below 0, belongs to."""
        x, number = self.state, ~owner
        rank = x.messages["source"][number >> 1] if number & 1 else number >> 1
        return int(self.task_of_rank[rank])

    def _rank(self, rank: int) -> str:
        """Where a rank is, for messages."""
        app = int(self.state.ranks["app"][rank])
        own = rank - int(self.state.apps["first"][app])
        return f"{self._of_app[app].origin}: rank {own}: {self._action(rank)}"

    def _action(self, rank: int) -> str:
        x = self.state
        record = x.ranks[rank]
        k = int(record["action"])
        if k >= int(record["last"]):
            return "at its end"
        fields = " ".join(f"{v:.15g}" for v in x.values[x.start[k] : x.start[k + 1]].tolist()[:6])
        return f"{ACTIONS[x.actions[k]]} {fields}".strip()

    def deadlock(self) -> str:
        """Return the ranks that wait for ever, of the first application that has any."""
        x = self.state
        apps = x.apps[: int(x.counts["n_apps"][0])]
        unfinished = np.flatnonzero((apps["task"] >= 0) & (apps["unfinished"] > 0))
        if not len(unfinished):
            return ""
        app = int(unfinished[0])
        first, n = int(apps["first"][app]), int(apps["ranks"][app])
        waiting = [r for r in range(n) if np.isnan(x.ranks["ended"][first + r])]
        shown = "; ".join(f"rank {r} in '{self._action(first + r)}'" for r in waiting[:8])
        more = f" and {len(waiting) - 8} more" if len(waiting) > 8 else ""
        who = "1 rank waits" if len(waiting) == 1 else f"{len(waiting)} ranks wait"
        trace = self._of_app[app]
        if idle := int((np.diff(trace.first) == 0).sum()):
            more += f"; {idle} of {n} ranks have no actions: give the traces of all ranks"
        return f"{trace.origin}: {who} forever: {shown}{more}"


def _want_kernels() -> None:
    want(advance_ready)
    want(packed_step)


def _asks_before(trace: Trace) -> bool:
    """Whether ranks test requests, or ask for messages before they receive them.

    What that costs depends on who does it first, so all that is done at a date has its order.
    """
    for part in trace.parts():
        actions, start = trace.actions[part], trace.start[part]
        if (actions == TEST).any():
            return True
        receives = start[(actions == RECV) | (actions == IRECV)]
        if (trace.values[receives + 2] < 0).any():
            return True
    return False


def _take_any(trace: Trace) -> np.ndarray:
    """The ranks that receive from anybody, or with any tag: in which order matters to them."""
    found = []
    for part in trace.parts():
        actions, start = trace.actions[part], trace.start[part]
        p2p = np.flatnonzero((actions == RECV) | (actions == IRECV))
        both = np.flatnonzero(actions == SENDRECV)
        first = start[p2p]
        takes = (trace.values[first] == ANY_SOURCE) | (trace.values[first + 1] == ANY_TAG)
        swaps = trace.values[start[both] + 3] == ANY_SOURCE
        found += [part.start + p2p[takes], part.start + both[swaps]]
    actions = np.concatenate([np.zeros(0, dtype=np.int64), *found])
    ranks = np.searchsorted(trace.first, actions, side="right") - 1
    return np.array(sorted(set(ranks.tolist())), dtype=np.int64)
