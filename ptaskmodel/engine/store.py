"""Allocate and grow the arrays of the engine's state."""

from __future__ import annotations

import numpy as np

from ptaskmodel.engine.queue import RUNS
from ptaskmodel.engine.state import (
    ACTIVITY,
    BANDWIDTH,
    CLOCK,
    DATE,
    END,
    EVENT,
    LATENCY,
    LISTS,
    NO_CHANGE,
    PATTERN,
    RESOURCE,
    SPEED,
    STATE,
    TRACE_EVENT,
    TRACE_RECORD,
    WAKE_UP,
    State,
    arrays_of,
    bare_state,
)
from ptaskmodel.kernels.records import (
    NOTHING,
    as_kernels_take_it,
    as_records,
    enlarged,
    records,
    whole,
)
from ptaskmodel.platform import Platform
from ptaskmodel.platform.facts import FATPIPE, AvailabilityTrace
from ptaskmodel.sharing.state import (
    ELEMENT,
    Graph,
    new_graph,
    room_for_variables,
    with_scratch,
)

INFINITY = float("inf")
SIZE_CLASSES = 48
EVENTS = 1 << 15  # in the stream before they are handed over
# Room for so many at first: each time that it grows the loop comes back.
ACTIVITIES, NODES = 256, 1 << 13


def new_state(platform: Platform, live_bandwidths: bool) -> State:
    """The state of an engine in which nothing has begun.

    live_bandwidths: routes depend on bandwidths, as in flow models.
    """
    resources, graph = _resources(platform)
    clock = records(2 * RUNS, CLOCK)
    for name in ("aside", "run_last", "group", "group_next", "free_slots", "free_wakes"):
        clock[name] = NOTHING
    clock["changed"] = NO_CHANGE
    traces, events = _traces(platform, live_bandwidths)
    for k in range(len(traces) - 1, -1, -1):
        traces["next"][k] = resources["traces"][traces["resource"][k]]
        resources["traces"][traces["resource"][k]] = k
    state = bare_state()._replace(
        clock=clock,
        activities=records(0, ACTIVITY),
        heap=records(0, END),
        resources=resources,
        graph=graph,
        patterns=records(0, PATTERN),
        elements=records(0, ELEMENT),
        queue=records(0, DATE),
        wakes=records(0, WAKE_UP),
        traces=traces,
        trace_events=events,
        events=records(EVENTS, EVENT),
    )
    return room_for_wakes(room_for_activities(state, ACTIVITIES), 8)


def _resources(platform: Platform) -> tuple[np.ndarray, Graph]:
    """Every host, then every link of a platform, and a graph of them as constraints."""
    n = len(platform.hosts)
    r = records(n + len(platform.all_links), RESOURCE)
    r["on"] = True
    r["traces"] = NOTHING
    r["queue_date"] = -INFINITY
    r["cores"][:n] = [host.cores for host in platform.hosts]
    r["peak"][:n] = [host.speed_flops for host in platform.hosts]
    r["pstate"][:n] = [host.pstate for host in platform.hosts]
    r["one_core"] = INFINITY
    r["one_core"][:n] = r["peak"][:n]
    r["latency"][n:] = [link.latency_s for link in platform.all_links]
    graph = new_graph(len(r))
    c = graph.constraints
    c["group"][:n] = np.arange(n)
    c["capacity"][:n] = r["cores"][:n] * r["peak"][:n]
    c["capacity"][n:] = [link.bandwidth_Bps for link in platform.all_links]
    c["fatpipe"][n:] = [link.policy == FATPIPE for link in platform.all_links]
    return r, graph


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


def room_for_activities(state: State, count: int) -> State:
    """A state with room for so many activities at a time."""
    if len(state.activities) >= count:
        return state
    activities = enlarged(state.activities, count)
    lists = np.zeros((LISTS, len(activities)), dtype=np.int64)
    lists[:, : state.lists.shape[1]] = state.lists
    heap = enlarged(state.heap, len(activities))
    group = int(state.clock[0]["group_size"])  # at the far end
    whole(heap)[len(heap) - group :] = whole(state.heap)[len(state.heap) - group :]
    graph = room_for_variables(state.graph, len(activities))
    return _with_queue(state._replace(activities=activities, heap=heap, lists=lists, graph=graph))


def room_for_wakes(state: State, count: int) -> State:
    """A state with room for so many wake-ups at a time."""
    if len(state.wakes) >= count:
        return state
    return _with_queue(state._replace(wakes=enlarged(state.wakes, count)))


def room_for_events(state: State, count: int) -> State:
    """A state whose stream, which must be empty, has room for so many events."""
    return state._replace(events=enlarged(state.events, count))


def room_for_elements(state: State, count: int) -> State:
    """A state with room for so many elements of patterns in all."""
    return state._replace(elements=enlarged(state.elements, count, blank=True))


def copied(state: State) -> State:
    """A copy of every array."""
    arrays = {
        name: as_records(whole(a).copy().view(a.dtype)) if a.dtype.names else a.copy()
        for name, a in arrays_of(state).items()
    }
    return _of_arrays(arrays)


def kept_arrays(state: State, n_elements: int) -> dict[str, np.ndarray]:
    """Copies of all arrays but those that can be made again: scratch and the stream.

    Without the room that was never cleared, but for the first ``n_elements`` elements.
    """
    made = ("reals", "integers", "events")
    counts = state.graph.counts[0]
    used = {
        "nodes": int(counts["n_nodes"]),
        "kept": int(counts["n_nodes"]),
        "rows": int(counts["n_nodes"]),
        "row_usage": int(counts["n_nodes"]),
        "users": int(counts["n_users"]),
        "elements": n_elements,
    }
    return {
        name: np.array(array[: used.get(name)])
        for name, array in arrays_of(state).items()
        if name not in made
    }


def state_of(kept: dict[str, np.ndarray]) -> State:
    """The state of `kept_arrays`, perhaps of another process; its stream is empty."""
    arrays = {name: as_kernels_take_it(array) for name, array in kept.items()}
    arrays["reals"], arrays["integers"] = np.zeros(0), np.zeros(0, dtype=np.int64)
    state = _of_arrays({"events": records(EVENTS, EVENT), **arrays})
    return _with_queue(state._replace(graph=with_scratch(state.graph)))


def _of_arrays(arrays: dict[str, np.ndarray]) -> State:
    """The state of the arrays that `arrays_of` names."""
    graph = Graph(**{name: arrays.pop(name) for name in Graph._fields})
    return State(graph=graph, **arrays)


def _with_queue(state: State) -> State:
    """Return the state with a place in the event queue for each possible entry."""
    places = len(state.activities) + len(state.wakes) + len(state.traces)
    return state._replace(queue=enlarged(state.queue, places))
