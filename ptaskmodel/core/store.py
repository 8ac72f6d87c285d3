"""Allocates and grows the arrays of a simulation's state."""

from __future__ import annotations

import functools

import numba
import numpy as np

from ptaskmodel.core.state import (
    ACTIVITY,
    BANDWIDTH,
    CLOCK,
    ELEMENT,
    END,
    FOLLOWER,
    LATENCY,
    LIMIT_NOTHING,
    LOG,
    NO_CHANGE,
    NODE,
    PROFILE,
    PROFILE_EVENT,
    PROGRAM,
    RESOURCE,
    SPEED,
    STAGE,
    STATE,
    TIMER,
    State,
)
from ptaskmodel.core.sub_system import sub_system_sizes
from ptaskmodel.platform import Platform
from ptaskmodel.platform.model import FATPIPE, AvailabilityTrace
from ptaskmodel.sharing.solvers import scratch_sizes

INFINITY = float("inf")
SIZE_CLASSES = 48
CACHE_LINE = 64  # bytes


def records(size: int, dtype: np.dtype) -> np.ndarray:
    """Zeroed records from the start of a cache line on."""
    n = size * dtype.itemsize
    room = np.zeros(n + CACHE_LINE, dtype=np.uint8)
    first = -room.ctypes.data % CACHE_LINE
    return as_records(room[first : first + n].view(dtype))


def as_records(array: np.ndarray) -> np.ndarray:
    """The array; interpreted, kernels can only read the fields of recarrays."""
    return array.view(np.recarray) if numba.config.DISABLE_JIT else array  # type: ignore[attr-defined]


@functools.cache
def activity_template() -> np.ndarray:
    """One activity record with the values that a new activity has, not to be written to."""
    template = records(1, ACTIVITY)
    for name in ("walltime", "rate_bound", "bound"):
        template[name] = INFINITY
    for name in ("started", "finished"):
        template[name] = np.nan
    for name in ("followers", "previous", "next", "heap", "tightest"):
        template[name] = -1
    template["weight"] = 1.0
    template["limit"] = LIMIT_NOTHING
    return template


def new_state(platform: Platform) -> State:
    """The state of a simulation in which nothing has been added yet."""
    resources = _resources(platform)
    clock = records(SIZE_CLASSES, CLOCK)
    for name in ("oldest", "newest"):
        clock[name] = -1
    clock["free_nodes"] = -1
    clock["changed"] = NO_CHANGE
    profiles, events = _traces(platform)
    state = State(
        clock=clock,
        activities=records(1, ACTIVITY),
        heap=records(1, END),
        resources=resources,
        nodes=records(0, NODE),
        kept=records(0, ELEMENT),
        programs=records(1, PROGRAM),
        stages=records(1, STAGE),
        elements=records(0, ELEMENT),
        followers=records(1, FOLLOWER),
        timers=records(8, TIMER),
        profiles=profiles,
        profile_events=events,
        reals=np.zeros(0),
        integers=np.zeros(0, dtype=np.int64),
        flags=np.zeros(len(resources), dtype=np.bool_),
        log=records(0, LOG),
    )
    return _with_scratch(state)


def _resources(platform: Platform) -> np.ndarray:
    n = len(platform.hosts)
    r = records(n + len(platform.links), RESOURCE)
    r["on"] = True
    r["first"] = -1
    r["partner"] = -1
    r["level"] = INFINITY
    r["group"] = -1
    r["group"][:n] = np.arange(n)
    r["cores"][:n] = [host.cores for host in platform.hosts]
    r["peak"][:n] = [host.speed_flops for host in platform.hosts]
    r["one_core"] = INFINITY
    r["one_core"][:n] = r["peak"][:n]
    r["capacity"][:n] = r["cores"][:n] * r["peak"][:n]
    r["capacity"][n:] = [link.bandwidth_Bps for link in platform.links]
    r["latency"][n:] = [link.latency_s for link in platform.links]
    r["fatpipe"][n:] = [link.policy == FATPIPE for link in platform.links]
    return r


def _traces(platform: Platform) -> tuple[np.ndarray, np.ndarray]:
    """Every availability trace of the platform, connected to its resource."""
    found: list[tuple[int, int, AvailabilityTrace]] = []
    for host in platform.hosts:
        for kind, trace in ((SPEED, host.speed_trace), (STATE, host.state_trace)):
            if trace is not None and trace.dates_s:
                found.append((host.index, kind, trace))
    for link in platform.links:
        for kind, trace in (
            (BANDWIDTH, link.bandwidth_trace),
            (LATENCY, link.latency_trace),
            (STATE, link.state_trace),
        ):
            if trace is not None and trace.dates_s:
                found.append((len(platform.hosts) + link.index, kind, trace))
    table = records(len(found), PROFILE)
    events: list[tuple[float, float]] = []
    for k, (resource, kind, trace) in enumerate(found):
        period = INFINITY if trace.period_s is None else trace.period_s
        first = len(events)
        table[k] = (resource, kind, first, len(trace.dates_s), period, 0, 0, trace.dates_s[0])
        events.extend(zip(trace.dates_s, trace.values, strict=True))
    return table, as_records(np.array(events, dtype=PROFILE_EVENT))


def enlarged(array: np.ndarray, size: int) -> np.ndarray:
    """``array`` with room for at least ``size``, at least twice as large as before."""
    if len(array) >= size:
        return array
    larger = records(max(size, 2 * len(array)), array.dtype)
    larger[: len(array)] = array
    return larger


def room_for_activities(state: State, activities: int) -> State:
    """A state with room for so many activities."""
    if len(state.activities) >= activities:
        return state
    _unroll(state)
    return _with_scratch(
        state._replace(
            activities=enlarged(state.activities, activities), heap=enlarged(state.heap, activities)
        )
    )


def _unroll(state: State) -> None:
    """Turn the ring of ready activities so that it starts at place 0: it can then grow."""
    clock, ring = state.clock[0], state.activities["slot_ready"]
    ring[:] = np.roll(ring, -int(clock["ready_first"]))
    clock["ready_first"] = 0


def room_for_nodes(state: State, count: int) -> State:
    """A state with room for a block of ``count`` more nodes."""
    size = max(int(state.clock[0]["n_nodes"]) + 2 * count, 2 * len(state.nodes), 1024)
    return _with_scratch(
        state._replace(nodes=enlarged(state.nodes, size), kept=enlarged(state.kept, size))
    )


def _with_scratch(state: State) -> State:
    """The state with room for a sub-system of everything at once (see `sub_system`)."""
    n, m, z = len(state.activities), len(state.resources), len(state.nodes)
    sizes = zip(scratch_sizes(n, m, z), sub_system_sizes(n, m, z), strict=True)
    reals, integers = (sum(parts) for parts in sizes)
    return state._replace(reals=np.empty(reals), integers=np.empty(integers, dtype=np.int64))


def room_for_timers(state: State, count: int) -> State:
    """A state with room for so many more timers, beside those of activities still to be admitted."""
    clock = state.clock[0]
    coming = int(clock["n_tasks"] - clock["n_admitted"])
    return state._replace(
        timers=enlarged(state.timers, int(clock["n_timers"]) + coming + count + 4)
    )


def new_log_size(activities: int) -> int:
    """Room that the log needs: at one date, every activity may stop and every activity change its rate."""
    return 4 * activities + 4096


def new_log(activities: int) -> np.ndarray:
    """A log for that many activities."""
    return records(new_log_size(activities), LOG)
