"""Usage vectors of an engine: each work on hosts is routed once, and freed by reference count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.engine.state import FREE, PATTERN, State
from ptaskmodel.engine.store import room_for_elements
from ptaskmodel.engine.usage.placement import FlowName, Placement, Row, Shape, flat_hosts, places_of
from ptaskmodel.engine.usage.router import Router
from ptaskmodel.errors import PlatformError, PTaskModelError, RouteError, SimulationError
from ptaskmodel.kernels.records import enlarged, whole
from ptaskmodel.workload.works import ParallelWork

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]


ONE_BYTE = ParallelWork.of_flow(1.0)
FLOWS_AT_ONCE = 1 << 16

# A pattern that is not routed.
NEW = np.array((-1, 0, 0, *[0.0] * 3, 1.0, np.inf, *[0.0] * 4), dtype=PATTERN)


@dataclass(slots=True)
class Patterns:
    """The Python side of ``State.patterns``: shapes, and the places of their elements."""

    may_fail: BoolArray  # hosts of which flows of a flow model are users, as they may be off
    # Of a flow that `add_flows` entered, a number that stands for its hosts.
    shapes: list[Shape | int | None] = field(default_factory=list)
    known: dict[tuple, int] = field(default_factory=dict)
    free: list[int] = field(default_factory=list)
    routed: list[int] = field(default_factory=list)  # those with elements, in their order
    n_elements: int = 0
    full_at: int = 1024  # number of elements at which to look for unused patterns

    @property
    def n_hosts(self) -> int:
        """How many hosts there are."""
        return len(self.may_fail)

    def copy(self) -> Patterns:
        return Patterns(
            self.may_fail.copy(),
            self.shapes.copy(),
            self.known.copy(),
            self.free.copy(),
            self.routed.copy(),
            self.n_elements,
            self.full_at,
        )

    def find(self, state: State, shapes: Sequence[Shape]) -> tuple[State, list[int]]:
        """Return the patterns of shapes, new where there is none yet; a new one has no holder."""
        numbers: list[int] = []
        new: list[int] = []
        for shape in shapes:
            fresh = self.free[-1] if self.free else len(self.shapes)
            number = self.known.setdefault(shape.key, fresh)
            if number == fresh:
                if self.free:
                    self.free.pop()
                    self.shapes[number] = shape
                else:
                    self.shapes.append(shape)
                new.append(number)
            numbers.append(number)
        if new:
            state = state._replace(patterns=enlarged(state.patterns, len(self.shapes)))
            state.patterns[new] = NEW
        return state, numbers

    def add_flows(
        self, state: State, sources: IntArray, targets: IntArray
    ) -> tuple[State, IntArray]:
        """New patterns of flows from hosts to hosts, neither held nor routed: little is kept."""
        first = len(self.shapes)
        self.shapes += (sources * self.n_hosts + targets).tolist()
        state = state._replace(patterns=enlarged(state.patterns, len(self.shapes)))
        state.patterns[first : len(self.shapes)] = NEW
        return state, np.arange(first, len(self.shapes))

    def route(
        self, state: State, numbers: list[int], router: Router
    ) -> tuple[State, PTaskModelError | None]:
        """Route patterns: delays together, flows, works inside a cluster, others one by one.

        What cannot be routed is left out; the second value says what is wrong with the first such,
        as `Router.route` does.
        """
        unrouted = self._unrouted(state, numbers)
        shapes = [self.shapes[number] for number in unrouted]
        each = zip(unrouted, shapes, strict=True)
        delays = [k for k, shape in each if type(shape) is Shape and shape.key[0] is None]
        if delays:
            state = self._route_delays(state, delays)
        if len(delays) == len(unrouted):
            return state, None
        others = self._unrouted(state, unrouted)
        flows = others
        if router.model.parallel:
            flows = [k for k, shape in zip(unrouted, shapes, strict=True) if type(shape) is int]
        for first in range(0, len(flows), FLOWS_AT_ONCE):
            state = self._route_flows(state, flows[first : first + FLOWS_AT_ONCE], router)
        if router.model.parallel and router.flow_routes.routing is None:
            others = self._unrouted(state, others)
            state = self._route_in_clusters(state, others, router)
        failure = None
        for number in self._unrouted(state, others):
            try:
                row = router.route(self.shape(number))
            except (PlatformError, SimulationError) as error:
                failure = failure or error
            else:
                state = self._write(state, number, row)
        return state, failure

    @staticmethod
    def _unrouted(state: State, numbers: list[int]) -> list[int]:
        """Those of the patterns that are not routed."""
        given = np.array(numbers, dtype=np.int64)
        return given[state.patterns["first"][given] < 0].tolist()

    def shape(self, number: int) -> Shape:
        """The work and the hosts of a pattern in use."""
        shape = self.shapes[number]
        assert shape is not None
        if isinstance(shape, int):
            ends = divmod(shape, self.n_hosts)
            return Shape(ends, ONE_BYTE, places_of(ends), None)
        return shape

    def _write(self, state: State, number: int, row: Row) -> State:
        count = len(row.resource)
        state = self._with_room(state, count)
        first = self.n_elements
        elements = state.elements[first : first + count]
        elements["resource"] = row.resource
        elements["usage"] = row.usage
        elements["share"] = row.share
        elements["largest"] = row.largest
        record = state.patterns[number]
        record["first"], record["count"], record["amount"] = first, count, row.amount
        record["latency"], record["latency_bytes"] = row.latency_s, row.latency_bytes
        record["penalty"], record["bound"] = row.penalty, row.bound
        self.n_elements += count
        self.routed.append(number)
        return state

    def _route_delays(self, state: State, numbers: list[int]) -> State:
        """Delays use nothing, but end if one of their hosts fails."""
        counts, hosts = flat_hosts([self.shape(number).key[1] for number in numbers])
        total = len(hosts)
        state = self._with_room(state, total)
        first = self.n_elements
        elements = state.elements[first : first + total]
        elements[:] = 0
        elements["resource"] = hosts
        state.patterns["first"][numbers] = first + np.cumsum(counts) - counts
        state.patterns["count"][numbers] = counts
        self.n_elements += total
        self.routed += numbers
        return state

    def _route_in_clusters(self, state: State, numbers: list[int], router: Router) -> State:
        """Those of the patterns that lie inside a cluster each, those of a cluster together."""
        shapes = [self.shape(number) for number in numbers]
        placement = Placement.of([shape.places for shape in shapes], router.clusters)
        for cluster in sorted(set(placement.cluster[placement.cluster >= 0].tolist())):
            group = np.flatnonzero(placement.cluster == cluster)
            given = np.array(numbers, dtype=np.int64)[group]
            together = [shapes[k] for k in group.tolist()]
            part = placement.part(group)
            state = self._with_room(state, 8 * len(part.hosts))
            self.n_elements = router.route_together(
                part, together, state.patterns, given, state.elements, self.n_elements
            )
            self.routed += given[state.patterns["first"][given] >= 0].tolist()
        return state

    def _route_flows(self, state: State, numbers: list[int], router: Router) -> State:
        """Those of the patterns that are flows, as far as they have a way to go."""
        source, target = self._ends(numbers)
        wanted = target >= 0
        if router.model.parallel:  # a host is asked twice by what it sends itself
            wanted &= source != target
        flows = np.flatnonzero(wanted)
        given = np.array(numbers, dtype=np.int64)[flows]
        if not len(flows):
            return state

        def room(count: int) -> np.ndarray:
            nonlocal state
            state = room_for_elements(state, count)
            return state.elements

        names: list[FlowName] | None = None
        if router.flow_routes.routing is not None:
            ends = zip(given.tolist(), source[flows].tolist(), target[flows].tolist(), strict=True)
            first = (self.shape(k).first_flow or router.flow_routes.connection(*pair)
                     for k, *pair in ends)  # fmt: skip
            names = [name for name in first if name is not None]
        try:
            self.n_elements = router.assemble_flows(
                source[flows], target[flows], self.may_fail, given, state.patterns, room,
                self.n_elements, names,
            )  # fmt: skip
        except RouteError:  # one has no way: routed alone, the others do
            for number in given.tolist() if len(given) > 1 else ():
                state = self._route_flows(state, [number], router)
            return state
        self.routed += given[state.patterns["first"][given] >= 0].tolist()
        return state

    def first_lost_with(self, state: State, host: int) -> list[int]:
        """Return the owners of flows, of a flow model, on a host that was not expected to fail.

        Flows that are routed from now on are users of the host.
        """
        if self.may_fail[host]:
            return []
        self.may_fail[host] = True
        slots = np.flatnonzero(state.activities["state"] != FREE)
        numbers, which = np.unique(state.activities["pattern"][slots], return_inverse=True)
        flows = np.array([self._is_flow_of(number, host) for number in numbers.tolist()], np.bool_)
        self.forget_routes(state)
        return state.activities["owner"][slots[flows[which]]].tolist()

    def _is_flow_of(self, number: int, host: int) -> bool:
        """Whether a pattern of a flow model is a flow from or to a host."""
        shape = self.shapes[number]
        if isinstance(shape, Shape):
            return len(shape.key) > 1 and shape.key[0] is not None and host in shape.key[:2]
        return shape is not None and host in divmod(shape, self.n_hosts)

    def _ends(self, numbers: list[int]) -> tuple[IntArray, IntArray]:
        """Where flows go from and to, as hosts; to -1 if a pattern is an execution."""
        shapes = [self.shapes[number] for number in numbers]
        coded = [shape if isinstance(shape, int) else -1 for shape in shapes]
        source, target = np.divmod(np.array(coded, dtype=np.int64), self.n_hosts)
        for k in np.flatnonzero(source < 0).tolist():
            shape = shapes[k]
            assert isinstance(shape, Shape)
            source[k], target[k] = shape.key[:2] if len(shape.key) > 1 else (shape.key[0], -1)
        return source, target

    def _with_room(self, state: State, count: int) -> State:
        return room_for_elements(state, self.n_elements + count)

    def forget_routes(self, state: State) -> None:
        """Mark every pattern to be routed again before an activity starts on it: routes changed."""
        state.patterns["first"][self.routed] = -1
        self.routed.clear()
        self.n_elements = 0

    def idle(self, state: State) -> list[int]:
        """Return the patterns without holders and uses."""
        kept = state.patterns["users"][: len(self.shapes)] > 0
        active = state.activities["state"] != FREE
        kept[state.activities["pattern"][active]] = True
        return [k for k in np.flatnonzero(~kept).tolist() if self.shapes[k] is not None]

    def free_all(self, state: State, gone: list[int]) -> None:
        """Free patterns without holders and uses, and close the gaps that they leave."""
        for number in gone:
            shape = self.shapes[number]
            if isinstance(shape, Shape):
                del self.known[shape.key]
            self.shapes[number] = None
        self.free += reversed(gone)
        state.patterns["first"][gone] = -1
        routed = np.array(self.routed, dtype=np.int64)
        routed = routed[state.patterns["first"][routed] >= 0]
        place = self._places(state, routed)
        elements = whole(state.elements)
        elements[: len(place)] = elements[place]
        counts = state.patterns["count"][routed]
        state.patterns["first"][routed] = np.cumsum(counts) - counts
        self.routed = routed.tolist()
        self.n_elements = len(place)
        self.full_at = 2 * self.n_elements + 1024

    @staticmethod
    def _places(state: State, numbers: IntArray) -> IntArray:
        """Places of the elements of routed patterns, one after the other."""
        first, counts = state.patterns["first"][numbers], state.patterns["count"][numbers]
        before = np.cumsum(counts) - counts
        return np.arange(int(counts.sum())) + np.repeat(first - before, counts)

    def uses(
        self, state: State, numbers: IntArray, router: Router
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """What patterns ask: number of elements of each, then resource and usage of all."""
        first = state.patterns["first"][numbers]
        if (first >= 0).all():
            place = self._places(state, numbers)
            counts = state.patterns["count"][numbers]
            return counts, state.elements["resource"][place], state.elements["usage"][place]
        rows = [router.route(self.shape(number)) for number in numbers.tolist()]
        return (
            np.array([len(row.resource) for row in rows], dtype=np.int64),
            np.concatenate([row.resource for row in rows]),
            np.concatenate([row.usage for row in rows]),
        )
