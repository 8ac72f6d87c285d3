"""Allocates and grows the arrays of the core's state."""

from __future__ import annotations

import numpy as np

from ptaskmodel.core.state import (
    ACTIVITY,
    BANDWIDTH,
    CACHE_LINE,
    CLOCK,
    DATE,
    ELEMENT,
    END,
    EVENT,
    KEPT,
    LATENCY,
    LISTS,
    NO_CHANGE,
    NODE,
    PATTERN,
    RESOURCE,
    SPEED,
    STATE,
    TRACE_EVENT,
    TRACE_RECORD,
    USER,
    WAKE_UP,
    State,
)
from ptaskmodel.core.sub_system import sub_system_sizes
from ptaskmodel.jit import INTERPRETED
from ptaskmodel.platform import Platform
from ptaskmodel.platform.model import FATPIPE, AvailabilityTrace
from ptaskmodel.sharing.solvers import scratch_sizes

INFINITY = float("inf")
SIZE_CLASSES = 48
EVENTS = 1 << 15  # in the stream before they are handed over
LARGE_BYTES = 1 << 19  # of arrays that grow fast


def records(size: int, dtype: np.dtype) -> np.ndarray:
    """Zeroed records from the start of a cache line on."""
    n = size * dtype.itemsize
    room = np.zeros(n + CACHE_LINE, dtype=np.uint8)
    first = -room.ctypes.data % CACHE_LINE
    return as_records(room[first : first + n].view(dtype))


def as_records(array: np.ndarray) -> np.ndarray:
    """The array; interpreted, kernels can only read the fields of recarrays."""
    return array.view(np.recarray) if INTERPRETED else array


def new_state(platform: Platform, live_bandwidths: bool) -> State:
    """The state of a core in which nothing has begun.

    live_bandwidths: routes depend on bandwidths, as in flow models.
    """
    resources = _resources(platform)
    clock = records(SIZE_CLASSES, CLOCK)
    free = ("free_nodes", "free_users", "free_slots", "free_wakes")
    for name in ("oldest", "newest", "aside", "run_last", "crowd", "crowd_head", *free):
        clock[name] = -1
    clock["changed"] = NO_CHANGE
    traces, events = _traces(platform, live_bandwidths)
    for k in range(len(traces) - 1, -1, -1):
        traces["next"][k] = resources["traces"][traces["resource"][k]]
        resources["traces"][traces["resource"][k]] = k
    state = State(
        clock=clock,
        activities=records(0, ACTIVITY),
        heap=records(0, END),
        resources=resources,
        lists=np.zeros((LISTS, len(resources)), dtype=np.int64),
        nodes=records(0, NODE),
        kept=records(0, KEPT),
        users=records(0, USER),
        patterns=records(0, PATTERN),
        elements=records(0, ELEMENT),
        queue=records(0, DATE),
        wakes=records(0, WAKE_UP),
        traces=traces,
        trace_events=events,
        reals=np.zeros(0),
        integers=np.zeros(0, dtype=np.int64),
        flags=np.zeros(len(resources), dtype=np.bool_),
        events=records(EVENTS, EVENT),
    )
    return room_for_wakes(room_for_activities(state, 64), 8)


def _resources(platform: Platform) -> np.ndarray:
    n = len(platform.hosts)
    r = records(n + len(platform.all_links), RESOURCE)
    r["on"] = True
    r["partner"] = -1
    r["traces"] = -1
    r["level"] = INFINITY
    r["group"] = -1
    r["group"][:n] = np.arange(n)
    r["cores"][:n] = [host.cores for host in platform.hosts]
    r["peak"][:n] = [host.speed_flops for host in platform.hosts]
    r["pstate"][:n] = [host.pstate for host in platform.hosts]
    r["one_core"] = INFINITY
    r["one_core"][:n] = r["peak"][:n]
    r["capacity"][:n] = r["cores"][:n] * r["peak"][:n]
    r["capacity"][n:] = [link.bandwidth_Bps for link in platform.all_links]
    r["latency"][n:] = [link.latency_s for link in platform.all_links]
    r["fatpipe"][n:] = [link.policy == FATPIPE for link in platform.all_links]
    return r


def _traces(platform: Platform, live_bandwidths: bool) -> tuple[np.ndarray, np.ndarray]:
    """Every availability trace of the platform, connected to its resource."""
    found: list[tuple[int, int, AvailabilityTrace]] = []
    for host in platform.hosts:
        for kind, trace in ((SPEED, host.speed_trace), (STATE, host.state_trace)):
            if trace is not None and trace.dates_s:
                found.append((host.index, kind, trace))
    for link in platform.all_links:
        for kind, trace in (
            (BANDWIDTH, link.bandwidth_trace),
            (LATENCY, link.latency_trace),
            (STATE, link.state_trace),
        ):
            if trace is not None and trace.dates_s:
                found.append((len(platform.hosts) + link.index, kind, trace))
    table = records(len(found), TRACE_RECORD)
    events: list[tuple[float, float]] = []
    for k, (resource, kind, trace) in enumerate(found):
        record = table[k]
        record["resource"], record["kind"] = resource, kind
        record["first"], record["count"] = len(events), len(trace.dates_s)
        record["period"] = INFINITY if trace.period_s is None else trace.period_s
        record["next_date"] = trace.dates_s[0]
        record["queued"] = -1
        record["live"] = kind == LATENCY or (live_bandwidths and kind == BANDWIDTH)
        events.extend(zip(trace.dates_s, trace.values, strict=True))
    return table, as_records(np.array(events, dtype=TRACE_EVENT))


def enlarged(array: np.ndarray, size: int) -> np.ndarray:
    """``array`` with room for at least ``size``, at least twice as large as before.

    What is large grows faster: copies of it cost, room that is never touched does not.
    """
    if len(array) >= size:
        return array
    growth = 4 if array.nbytes >= LARGE_BYTES else 2
    larger = records(max(size, growth * len(array)), array.dtype)
    larger[: len(array)] = array
    return larger


def room_for_activities(state: State, count: int) -> State:
    """A state with room for so many activities at a time."""
    if len(state.activities) >= count:
        return state
    activities = enlarged(state.activities, count)
    lists = state.lists
    if lists.shape[1] < len(activities):
        lists = np.zeros((LISTS, len(activities)), dtype=np.int64)
        lists[:, : state.lists.shape[1]] = state.lists
    return with_scratch(
        state._replace(
            activities=activities, heap=enlarged(state.heap, len(activities)), lists=lists
        )
    )


def room_for_nodes(state: State, count: int) -> State:
    """A state with room for a block of ``count`` more nodes."""
    size = max(int(state.clock[0]["n_nodes"]) + 2 * count, 2 * len(state.nodes), 1024)
    nodes = enlarged(state.nodes, size)
    return with_scratch(state._replace(nodes=nodes, kept=enlarged(state.kept, len(nodes))))


def room_for_users(state: State, count: int) -> State:
    """A state with room for ``count`` more users of resources."""
    size = max(int(state.clock[0]["n_users"]) + 2 * count, 2 * len(state.users), 1024)
    return state._replace(users=enlarged(state.users, size))


def room_for_wakes(state: State, count: int) -> State:
    """A state with room for so many wake-ups at a time."""
    return _with_queue(state._replace(wakes=enlarged(state.wakes, count)))


def room_for_events(state: State, count: int) -> State:
    """A state whose stream, which must be empty, has room for so many events."""
    return state._replace(events=enlarged(state.events, count))


def with_scratch(state: State) -> State:
    """The state with room for a sub-system of everything at once (see `sub_system`)."""
    n, m, z = len(state.activities), len(state.resources), len(state.nodes)
    sizes = zip(scratch_sizes(n, m, z), sub_system_sizes(n, m, z), strict=True)
    reals, integers = (sum(parts) for parts in sizes)
    return _with_queue(
        state._replace(reals=np.empty(reals), integers=np.empty(integers, dtype=np.int64))
    )


def kept_arrays(state: State) -> dict[str, np.ndarray]:
    """Copies of all arrays but those that can be made again: scratch and the stream."""
    made = ("reals", "integers", "events")
    return {name: np.array(array) for name, array in state._asdict().items() if name not in made}


def state_of(kept: dict[str, np.ndarray]) -> State:
    """The state of `kept_arrays`, perhaps of another process; its stream is empty."""
    arrays = {name: _as_kernels_take_it(array) for name, array in kept.items()}
    arrays["reals"], arrays["integers"] = np.zeros(0), np.zeros(0, dtype=np.int64)
    return with_scratch(State(events=records(EVENTS, EVENT), **arrays))


def _as_kernels_take_it(array: np.ndarray) -> np.ndarray:
    if array.dtype.names is None:
        return array
    kept = records(len(array), array.dtype)
    kept[:] = array
    return kept


def _with_queue(state: State) -> State:
    """The state with a place in the queue of dates for each who may stand there."""
    places = len(state.activities) + len(state.wakes) + len(state.traces)
    return state._replace(queue=enlarged(state.queue, places))
