"""Allocate and grow the arrays of the engine's state."""

from __future__ import annotations

import numpy as np

from ptaskmodel.engine.incremental.components import sub_system_sizes
from ptaskmodel.engine.state import (
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
    PLACE,
    RESOURCE,
    SPEED,
    STATE,
    TRACE_EVENT,
    TRACE_RECORD,
    USER,
    WAKE_UP,
    State,
)
from ptaskmodel.kernels.decorators import INTERPRETED
from ptaskmodel.platform import Platform
from ptaskmodel.platform.facts import FATPIPE, AvailabilityTrace
from ptaskmodel.sharing.solvers import scratch_sizes

INFINITY = float("inf")
SIZE_CLASSES = 48
EVENTS = 1 << 15  # in the stream before they are handed over
LARGE_BYTES = 1 << 19  # of arrays that grow fast
# Room for so many at first: each time that it grows the loop comes back.
ACTIVITIES, NODES = 256, 1 << 13


def records(size: int, dtype: np.dtype) -> np.ndarray:
    """Zeroed records from the start of a cache line on."""
    return _in_lines(np.zeros(size * dtype.itemsize + CACHE_LINE, dtype=np.uint8), size, dtype)


def blank_records(size: int, dtype: np.dtype) -> np.ndarray:
    """The same, holding anything: for what is written before it is read."""
    return _in_lines(np.empty(size * dtype.itemsize + CACHE_LINE, dtype=np.uint8), size, dtype)


def _in_lines(room: np.ndarray, size: int, dtype: np.dtype) -> np.ndarray:
    first = -room.ctypes.data % CACHE_LINE
    return as_records(room[first : first + size * dtype.itemsize].view(dtype))


def as_records(array: np.ndarray) -> np.ndarray:
    """The array; interpreted, kernels can only read the fields of recarrays."""
    return array.view(np.recarray) if INTERPRETED else array


def new_state(platform: Platform, live_bandwidths: bool) -> State:
    """The state of an engine in which nothing has begun.

    live_bandwidths: routes depend on bandwidths, as in flow models.
    """
    resources = _resources(platform)
    clock = records(SIZE_CLASSES, CLOCK)
    free = ("free_nodes", "free_users", "free_slots", "free_wakes")
    for name in ("oldest", "newest", "aside", "run_last", "common", "crowd", "crowd_head", *free):
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
        rows=np.zeros(0, np.uint32),
        row_usage=np.zeros(0),
        places=records(len(resources), PLACE),
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
    return room_for_wakes(room_for_activities(state, ACTIVITIES), 8)


def _resources(platform: Platform) -> np.ndarray:
    n = len(platform.hosts)
    r = records(n + len(platform.all_links), RESOURCE)
    r["on"] = True
    r["partner"] = -1
    r["traces"] = -1
    r["level"] = INFINITY
    r["queue_date"] = -INFINITY
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
    for host in platform.hosts_with_traces:
        for kind, trace in ((SPEED, host.speed_trace), (STATE, host.state_trace)):
            if trace is not None and trace.dates_s:
                found.append((host.index, kind, trace))
    for link in platform.links_with_traces:
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


def enlarged(array: np.ndarray, size: int, *, blank: bool = False) -> np.ndarray:
    """``array`` with room for at least ``size``, at least twice as large as before.

    What is large grows faster: copies of it cost, room that is never touched does not.
    blank: what is new is written before it is read; it need not be cleared.
    """
    if len(array) >= size:
        return array
    growth = 4 if array.nbytes >= LARGE_BYTES else 2
    larger = (blank_records if blank else records)(max(size, growth * len(array)), array.dtype)
    whole(larger)[: len(array)] = whole(array)
    return larger


def whole(array: np.ndarray) -> np.ndarray:
    """A view of records without their fields: numpy copies those one by one, these at once."""
    return array.view(np.ndarray).view(f"V{array.dtype.itemsize}")


def room_for_activities(state: State, count: int) -> State:
    """A state with room for so many activities at a time."""
    if len(state.activities) >= count:
        return state
    activities = enlarged(state.activities, count)
    lists = state.lists
    if lists.shape[1] < len(activities):
        lists = np.zeros((LISTS, len(activities)), dtype=np.int64)
        lists[:, : state.lists.shape[1]] = state.lists
    heap = enlarged(state.heap, len(activities))
    crowd = int(state.clock[0]["n_crowd"])  # at the far end
    whole(heap)[len(heap) - crowd :] = whole(state.heap)[len(state.heap) - crowd :]
    return with_scratch(state._replace(activities=activities, heap=heap, lists=lists))


def room_for_nodes(state: State, count: int) -> State:
    """A state with room for a block of ``count`` more nodes."""
    size = max(int(state.clock[0]["n_nodes"]) + 2 * count, 2 * len(state.nodes), NODES)
    nodes = enlarged(state.nodes, size, blank=True)
    kept = enlarged(state.kept, len(nodes), blank=True)
    rows = enlarged(state.rows, len(nodes), blank=True)
    row_usage = enlarged(state.row_usage, len(nodes), blank=True)
    return with_scratch(state._replace(nodes=nodes, kept=kept, rows=rows, row_usage=row_usage))


def room_for_users(state: State, count: int) -> State:
    """A state with room for ``count`` more users of resources."""
    size = max(int(state.clock[0]["n_users"]) + 2 * count, 2 * len(state.users), 2 * NODES)
    return state._replace(users=enlarged(state.users, size, blank=True))


def room_for_wakes(state: State, count: int) -> State:
    """A state with room for so many wake-ups at a time."""
    if len(state.wakes) >= count:
        return state
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


def room_for_elements(state: State, count: int) -> State:
    """A state with room for so many elements of patterns in all."""
    return state._replace(elements=enlarged(state.elements, count, blank=True))


def copied(state: State) -> State:
    """A copy of every array."""
    arrays = (
        as_records(whole(a).copy().view(a.dtype)) if a.dtype.names else a.copy() for a in state
    )
    return State(*arrays)


def kept_arrays(state: State, n_elements: int) -> dict[str, np.ndarray]:
    """Copies of all arrays but those that can be made again: scratch and the stream.

    Without the room that was never cleared, but for the first ``n_elements`` elements.
    """
    made = ("reals", "integers", "events")
    clock = state.clock[0]
    used = {
        "nodes": int(clock["n_nodes"]),
        "kept": int(clock["n_nodes"]),
        "rows": int(clock["n_nodes"]),
        "row_usage": int(clock["n_nodes"]),
        "users": int(clock["n_users"]),
        "elements": n_elements,
    }
    return {
        name: np.array(array[: used.get(name)])
        for name, array in state._asdict().items()
        if name not in made
    }


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
    """Return the state with a place in the event queue for each possible entry."""
    places = len(state.activities) + len(state.wakes) + len(state.traces)
    return state._replace(queue=enlarged(state.queue, places))
