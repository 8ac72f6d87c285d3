"""Run the engine for a front end: grow arrays, call solvers, forward events.

The driver never calls a higher layer. A Python front end starts activities and calls `advance`. A
compiled front end uses the parts of the loop in its own loop, and lets the driver `serve` its
requests.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.engine.activity import (
    CANCEL_WAKE,
    CATCH_UP,
    RESUME,
    SET_BANDWIDTH,
    SET_SPEED,
    STOP,
    SUSPEND,
    TURN_OFF,
    TURN_ON,
    change,
    refresh_routed,
    start_now,
)
from ptaskmodel.engine.loop import advance, upcoming
from ptaskmodel.engine.queue import push_wake
from ptaskmodel.engine.resharing import late_kernels, named_optimisations, rule_of, solver_of
from ptaskmodel.engine.state import (
    CAPACITY,
    EVENT,
    EVENTS_FULL,
    FAILURES,
    FREE,
    GROW_ACTIVITIES,
    GROW_NODES,
    GROW_USERS,
    GROW_WAKES,
    NO_CHANGE,
    OK,
    PSTATE,
    RATES_OF_ALL,
    RATES_OF_TASKS,
    ROUTES_CHANGED,
    RUN,
    SEVERAL_CHANGES,
    TO_FAIL,
    TURNED,
    UNROUTED,
    UNSOLVED,
    Options,
)
from ptaskmodel.engine.store import (
    copied,
    kept_arrays,
    new_state,
    room_for_activities,
    room_for_events,
    room_for_wakes,
    state_of,
)
from ptaskmodel.engine.stream import Listener, contains_end
from ptaskmodel.engine.usage.network_models import NetworkModel, config_number, loop_facts
from ptaskmodel.engine.usage.placement import Shape
from ptaskmodel.engine.usage.router import Router
from ptaskmodel.engine.usage.vectors import Patterns
from ptaskmodel.kernels.decorators import as_compiled, is_wanted, want
from ptaskmodel.kernels.records import whole
from ptaskmodel.platform import Platform
from ptaskmodel.platform.routing import Routing
from ptaskmodel.sharing.rates import code, solve_hard
from ptaskmodel.sharing.rules import RULES, WAYS
from ptaskmodel.sharing.state import room_for_nodes, room_for_users

INFINITY = float("inf")
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

NO_EVENTS = np.zeros(0, dtype=EVENT)


class Core:
    """Activities on the resources of a platform.

    model: how communications become uses of links. solver: one of `sharing.rules.SOLVERS`.
    count: what counts as one competitor on a shared link: each task, flow, or pair of hosts.
    optimise: False, every change re-solves the whole system with nothing left out. Names, some of
    `resharing.OPTIMISATIONS`: what cannot matter is left out, and these alone are on besides.
    routing: how flows choose their routes; None: they take those of the platform.

    Raises SimulationError on an unknown option.
    """

    def __init__(
        self,
        platform: Platform,
        model: NetworkModel,
        solver: str,
        count: str = "task",
        optimise: bool | Collection[str] = True,
        routing: Routing | None = None,
    ) -> None:
        self.platform = platform
        self.model = model
        self.rule = rule = rule_of(solver, model.parallel)
        self.optimisations = named_optimisations(optimise)
        self.state = new_state(platform, live_bandwidths=not model.parallel)
        counts = self.state.graph.counts[0]
        counts["drops_slack"] = RULES[rule].skips_slack
        counts["compares_rates"] = RULES[rule].compares_rates
        if RULES[rule].way in self.optimisations:
            counts["way"] = WAYS.index(RULES[rule].way)
        repeats = RULES[rule].counts_repeats
        self._want_kernels()
        self.router = Router(platform, model, count, repeats, self.state, routing)
        n_hosts = len(platform.hosts)
        self.state.graph.constraints["group"][n_hosts:] = self.router.clusters.owner
        may_fail = np.zeros(n_hosts, dtype=np.bool_)
        may_fail[[h.index for h in platform.hosts_with_traces if h.state_trace is not None]] = True
        self.patterns = Patterns(may_fail)
        self.listeners: list[Listener] = []
        self.listeners_to_ranks: list[Listener] = []
        self.options = Options(
            solver=code(rule),
            flows=not model.parallel,
            gamma=model.tcp_gamma,
            **loop_facts(model.wire),
            work_precision=config_number(platform.config, "precision/work-amount", 1e-5),
            time_precision=config_number(platform.config, "precision/timing", model.precision_s),
            incremental=optimise is not False,
            fails_late=repeats or not model.parallel,
            mode=RUN,
            stop_on_end=False,
            until=INFINITY,
            pause_at=np.iinfo(np.int64).max,
        )

    def _want_kernels(self) -> None:
        for each in late_kernels(self.rule, int(self.state.graph.counts[0]["way"])):
            want(each)

    def let_gather(self, allowed: bool = True) -> None:
        """If allowed, virtual time follows what one link limits: `virtual_time.write_members`."""
        self.state.graph.counts[0]["asks_common"] = allowed and "virtual-time" in self.optimisations

    # --- time -------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """The current date, s."""
        return float(self.state.clock[0]["now"])

    @property
    def events(self) -> int:
        """Number of dates at which something happened."""
        return int(self.state.clock[0]["events"])

    @property
    def has_begun(self) -> bool:
        """Whether anything has been simulated: what traces say of date 0 applies then."""
        return bool(self.state.clock[0]["begun"])

    @property
    def is_settled(self) -> bool:
        """Whether the rates are those in force."""
        counts = self.state.graph.counts[0]
        routed = self.state.clock[0]["changed"] == NO_CHANGE
        return self.has_begun and routed and counts["n_todo"] == counts["n_touched"] == 0

    def next_date(self) -> float:
        """Date of the next event, s; inf if nothing will ever happen. Rates must be in force."""
        with as_compiled():
            return float(upcoming(self.state))

    def advance(self, until: float = INFINITY) -> np.ndarray:
        """Advance to the first time at which an activity ends or a wake-up is due, or to ``until``.

        Returns the events on the way, as `state.EVENT` records. Their last date is that of the
        core; without any, ``until`` was reached or nothing will ever happen.

        Raises RouteError, SimulationError.
        """
        self.expect()
        options = self.options._replace(until=until)
        told = [self.hand_over()]
        status = int(OK)
        while not contains_end(told[-1]) and (status == OK or self.serve(status)):
            with as_compiled():
                status = int(advance(self.state, options))
            told.append(self.hand_over())
        return np.concatenate(told)

    def expect(self) -> None:
        """A new call of the loop: changes by traces may be expected to help those that starve."""
        self.state.clock[0]["idle_traces"] = 0

    # --- activities -------------------------------------------------------------------------

    def find(self, shapes: Sequence[Shape]) -> list[int]:
        """The patterns of shapes (see `Router.shape`); new ones are neither held nor routed."""
        self.state, numbers = self.patterns.find(self.state, shapes)
        return numbers

    def find_flows(self, sources: IntArray, targets: IntArray) -> IntArray:
        """Return new patterns, neither held nor routed, of a byte from each of sources to targets.

        Both are numbers of hosts, shape (flows,).
        """
        self.state, numbers = self.patterns.add_flows(self.state, sources, targets)
        return numbers

    def route(self, patterns: list[int]) -> None:
        """Route those of the patterns that are not, as far as possible.

        Raises RouteError where bytes have no way to go, SimulationError where a link on the way
        cannot be simulated.
        """
        self.state, failure = self.patterns.route(self.state, patterns, self.router)
        if failure is not None:
            raise failure

    def hold(self, patterns: Sequence[int] | IntArray, by: int = 1) -> None:
        """Keep patterns although nothing runs on them, or (by -1) let them go."""
        np.add.at(self.state.patterns["users"], patterns, by)

    def has_idle_patterns(self) -> bool:
        """Whether it is time to `reclaim` patterns."""
        return self.patterns.n_elements > self.patterns.full_at

    def reclaim(self) -> None:
        """Free the patterns without holders; the stream must have been forwarded."""
        idle = self.patterns.idle(self.state)
        for listener in self.listeners:
            listener.forget(idle)
        self.patterns.free_all(self.state, idle)

    def start(
        self,
        pattern: int,
        amount: float = 1.0,
        *,
        weight: float = 1.0,
        bound: float = INFINITY,
        delay_s: float | None = None,
        owner: int = 0,
    ) -> int:
        """Start an activity now: ``amount`` units of a pattern; returns its place.

        weight: its share relative to others. bound: its largest rate, units/s. delay_s: what it
        waits for first, instead of the pattern's latency. owner: what events call it. Its place is
        given to others when it is over. Raises RouteError, SimulationError.
        """
        delay = np.nan if delay_s is None else delay_s
        while True:
            with as_compiled():
                slot = start_now(
                    self.state, pattern, amount, weight, bound, delay, owner, self.options
                )
            if slot >= 0:
                return int(slot)
            if slot == -2 - UNROUTED:
                self.route([pattern])
            else:
                self.serve(int(-2 - slot))

    def stop(self, slot: int) -> None:
        """End the activity at a place (`slot`), whatever it is doing; no event says so."""
        self.change(STOP, slot)

    def suspend(self, slot: int) -> None:
        """Freeze the activity at a place (`slot`), which waits or progresses."""
        self.change(SUSPEND, slot)

    def resume(self, slot: int) -> None:
        """Resume the suspended activity at a place (`slot`)."""
        self.change(RESUME, slot)

    def wake(self, date_s: float, token: int) -> int:
        """Ask for an event WOKE with a token at `date_s`; returns the number of the wake-up."""
        self.make_room_for_wakes(1)
        return int(push_wake(self.state, date_s, token))

    def make_room_for_wakes(self, count: int) -> None:
        """Let `count` more wake-ups be asked for."""
        self.state = room_for_wakes(self.state, int(self.state.clock[0]["n_wakes"]) + count)

    def cancel_wake(self, number: int) -> None:
        """Forget the wake-up with this number, which has not come yet."""
        self.change(CANCEL_WAKE, number)

    def change(self, what: int, number: int, value: float = 0.0) -> None:
        """Make a change, with the parameters what, number and value of `activity.change`."""
        self.make_room_for_events(4)
        with as_compiled():
            change(self.state, what, number, float(value), self.options)

    def set_capacity(self, resource: int, value: float) -> None:
        """Change a resource from now on: to `value` B/s, or of a host to that availability."""
        self.change(
            SET_SPEED if resource < len(self.platform.hosts) else SET_BANDWIDTH, resource, value
        )
        capacity = self.state.graph.constraints["capacity"][resource]
        self._tell(CAPACITY, resource, capacity, self.state.resources["peak"][resource])
        if not self.model.parallel:
            self.state.clock[0]["changed"] = SEVERAL_CHANGES

    def _tell(self, kind: int, subject: int, value: float, amount: float = 0.0) -> None:
        """Add an event to the stream, in which `change` has left room."""
        clock = self.state.clock[0]
        event = self.state.events[clock["n_events"]]
        event["date"], event["kind"], event["subject"] = clock["now"], kind, subject
        event["value"], event["amount"] = value, amount
        clock["n_events"] += 1

    def set_latency(self, link: int, latency_s: float) -> None:
        """Change the latency of a link (its resource number) to `latency_s` from now on."""
        self.state.resources["latency"][link] = latency_s
        self.state.clock[0]["changed"] = SEVERAL_CHANGES

    def set_pstate(self, host: int, pstate: int) -> None:
        """Give the cores of a host the speed of a `pstate`; its availability factor stays."""
        self.change(CATCH_UP, host)
        record = self.state.resources[host]
        factor = record["one_core"] / record["peak"] if record["peak"] > 0.0 else 1.0
        record["peak"] = self.platform.hosts[host].speeds_flops[pstate]
        record["pstate"] = pstate
        self._tell(PSTATE, host, pstate)
        self.set_capacity(host, factor)

    def set_on(self, resource: int, on: bool) -> list[int]:
        """Turn a resource on or off now; returns the owners of activities that this leaves lost.

        They go on until their front end stops them.
        """
        first: list[int] = []
        if not (on or self.model.parallel) and resource < len(self.platform.hosts):
            first = self.patterns.first_lost_with(self.state, resource)
        self.change(TURN_ON if on else TURN_OFF, resource)
        self._tell(TURNED, resource, on)
        clock, activities = self.state.clock[0], self.state.activities
        slots = self.state.lists[FAILURES, : clock["n_failing"]]
        lost = activities["owner"][slots[activities["failing"][slots] == TO_FAIL]].tolist()
        if not on:
            activities["failing"][slots] = 0
            clock["n_failing"] = 0
        return first + lost if not on else []

    # --- reading ----------------------------------------------------------------------------

    def capacities(self) -> FloatArray:
        """The present capacity of every resource (flop/s, B/s), shape (hosts + links,)."""
        traces = self.state.traces
        if self.state.clock[0]["begun"]:
            for resource in np.unique(traces["resource"][traces["queued"] < 0]).tolist():
                self.change(CATCH_UP, resource)
        return self.state.graph.constraints["capacity"].astype(np.float64)

    def is_on(self, resource: int) -> bool:
        """Whether a resource is on."""
        self.change(CATCH_UP, resource)
        return bool(self.state.resources["on"][resource])

    def uses(self, patterns: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """What patterns ask of resources: how many elements each has, resource and usage of all."""
        return self.patterns.uses(self.state, patterns, self.router)

    def resource_name(self, resource: int) -> tuple[str, str]:
        """("host" or "link", name) of a resource: hosts are numbered first, then links."""
        n = len(self.platform.hosts)
        if resource < n:
            return "host", self.platform.hosts[resource].name
        return "link", self.platform.all_links[resource - n].name

    # --- the stream -------------------------------------------------------------------------

    def listen(self, listener: Listener, ranks: bool = False) -> None:
        """Hand the stream of events to a listener from now on. No result changes.

        ranks: also what ranks do: events whose subject, their owner, is below 0.
        """
        self.hand_over()
        self.listeners.append(listener)
        if ranks:
            self.listeners_to_ranks.append(listener)
        told = RATES_OF_ALL if self.listeners_to_ranks else RATES_OF_TASKS
        self.state.clock[0]["tells_rates"] = told

    def make_room_for_events(self, count: int) -> None:
        """Let `count` events be emitted from Python."""
        self.state = room_for_events(self.state, int(self.state.clock[0]["n_events"]) + count)

    def hand_over(self) -> np.ndarray:
        """Give the events told since the last time to the listeners; returns those of no rank."""
        n = int(self.state.clock[0]["n_events"])
        if n == 0:
            return NO_EVENTS
        events = whole(self.state.events[:n]).copy().view(EVENT)
        self.state.clock[0]["n_events"] = 0
        own = events
        if self.listeners_to_ranks:
            own = events[events["subject"] >= 0]
        for listener in self.listeners:
            listener.take(events if listener in self.listeners_to_ranks else own)
        return own

    # --- what the loop asks for -------------------------------------------------------------

    def serve(self, status: int) -> bool:
        """Do what a loop returned this status for; False if another has to do it.

        EVENTS_FULL: the stream was handed over. Raises as `route`.
        """
        state = self.state
        argument = int(state.clock[0]["argument"])
        if status == GROW_ACTIVITIES:
            self.state = room_for_activities(state, len(state.activities) + 1)
        elif status == GROW_NODES:
            self.state = state._replace(graph=room_for_nodes(state.graph, argument))
        elif status == GROW_USERS:
            self.state = state._replace(graph=room_for_users(state.graph, argument))
        elif status == GROW_WAKES:
            self.state = room_for_wakes(state, len(state.wakes) + 1)
        elif status == UNSOLVED:
            self._solve_whole()
        elif status == ROUTES_CHANGED:
            self._refresh_routes()
        elif status == EVENTS_FULL:
            self.state = room_for_events(state, int(state.clock[0]["n_events"]) + argument)
        else:
            return False
        return True

    def _solve_whole(self) -> None:
        """The assembled subproblem has no rates: have them found now, or by the loop once more."""
        solver, clock = solver_of(self.rule), self.state.clock[0]
        if is_wanted(solver):
            solve_hard(self.state.graph, self.rule)
            return
        want(solver)
        clock["unsolved"], clock["anew"] = 0, 1
        self.state.graph.counts[0]["solves"] -= 1

    def _refresh_routes(self) -> None:
        """A latency or a bandwidth changed: route again, refresh the activities in progress."""
        s = self.state
        link = int(s.clock[0]["changed"])
        s.clock[0]["changed"] = NO_CHANGE
        self.patterns.forget_routes(s)
        slots = range(int(s.clock[0]["n_slots"])) if link == SEVERAL_CHANGES else self._users(link)
        active = np.array(slots, dtype=np.int64)
        active = active[s.activities["state"][active] != FREE]
        active = active[np.argsort(s.activities["owner"][active], kind="stable")]
        self.route(np.unique(s.activities["pattern"][active]).tolist())
        for slot in active.tolist():
            refresh_routed(self.state, slot, self.options)

    def _users(self, resource: int) -> list[int]:
        """The activities on a resource."""
        r = self.state.graph.constraints[resource]
        users = self.state.graph.users[r["first"] : r["first"] + r["users"]]
        return sorted(set(users["slot"].tolist()))

    # --- copies -----------------------------------------------------------------------------

    def copy(self) -> Core:
        """An independent engine in the same state; listeners do not follow."""
        twin = copy.copy(self)
        twin.state = copied(self.state)
        twin._forget_listeners()
        twin.router = self.router.on(twin.state)
        twin.patterns = self.patterns.copy()
        return twin

    def _forget_listeners(self) -> None:
        self.listeners, self.listeners_to_ranks = [], []
        self.state.clock[0]["tells_rates"] = 0
        self.state.clock[0]["n_events"] = 0

    def __getstate__(self) -> dict[str, Any]:
        """All but listeners and what can be made again: routes found, scratch, the stream."""
        kept = self.__dict__.copy()
        del kept["router"], kept["listeners"], kept["listeners_to_ranks"]
        kept["state"] = kept_arrays(self.state, self.patterns.n_elements)
        kept["router"] = self.router.count, self.router.repeats, self.router.flow_routes.routing
        return kept

    def __setstate__(self, kept: dict[str, Any]) -> None:
        state = state_of(kept.pop("state"))
        count, repeats, routing = kept.pop("router")
        self.__dict__.update(kept)
        self.state = state
        self._want_kernels()
        self.router = Router(self.platform, self.model, count, repeats, self.state, routing)
        self._forget_listeners()
