# mypy: allow-untyped-defs, allow-incomplete-defs
"""Apply changes of resources, by calls or by traces: capacities, latencies, on or off.

The trace of an unused resource stays out of the event queue, so that it costs nothing. When an
activity uses the resource, its capacity is brought up to date. Traces that routes depend on (*live*
ones: latencies, and the bandwidths of flow models) are always followed.
"""

from __future__ import annotations

from ptaskmodel.engine.queue import push_date, remove_date
from ptaskmodel.engine.state import (
    BANDWIDTH,
    FAILURES,
    LATENCY,
    NO_CHANGE,
    SEVERAL_CHANGES,
    SPEED,
    TO_FAIL,
    TRACE,
)
from ptaskmodel.kernels.decorators import jit
from ptaskmodel.sharing.graph import set_capacity

INFINITY = float("inf")


@jit
def mark_failing(s, slot):
    """The activity uses something off: it fails at the next event, unless it completes then."""
    clock = s.clock[0]
    a = s.activities[slot]
    if a.failing == 0:
        s.lists[FAILURES, clock.n_failing] = slot
        clock.n_failing += 1
    a.failing = TO_FAIL


@jit
def set_state(s, resource, on):
    """Turn a host or a link on or off; its users fail at this date."""
    r = s.resources[resource]
    if r.on != on:
        s.clock[0].n_off += -1 if on else 1
    r.on = on
    if not on:
        used = s.graph.constraints[resource]
        for k in range(used.first + used.users - 1, used.first - 1, -1):
            mark_failing(s, s.graph.users[k].slot)


@jit
def refresh_bound(s, slot, gamma):
    """Largest rate of an activity: as asked, the TCP window, one core for each host entry.

    As in SimGrid, a flow keeps the bound of the bandwidths that it began with (with latency, but
    without a TCP window, it has none: only FATPIPEs notice); but while one of them is 0, so is it.
    """
    a = s.activities[slot]
    routed = s.patterns[a.pattern].bound
    if routed > 0.0 and a.routed > 0.0:
        routed = a.routed if gamma > 0.0 or a.latency_bytes == 0.0 else INFINITY
    bound = min(a.asked, routed, a.window)
    if gamma > 0.0 and a.latency_bytes > 0.0:
        bound = min(bound, gamma / (2.0 * a.latency_bytes))
    t = s.graph.variables[slot]
    for k in range(t.nodes, t.nodes + t.n_nodes):
        node = s.graph.nodes[k]
        one_core = s.resources[node.resource].one_core
        if one_core == INFINITY:  # hosts come first
            break
        if node.usage > 0.0:
            bound = min(bound, one_core / node.largest)
    t.bound = bound


@jit
def set_speed(s, resource, factor, gamma):
    """Availability of a host: capacity and single-core bounds follow."""
    r = s.resources[resource]
    r.one_core = r.peak * factor
    # Bounds first: the activities are counted in again with them around the change of capacity.
    used = s.graph.constraints[resource]
    for k in range(used.first, used.first + used.users):
        slot = s.graph.users[k].slot
        if s.graph.variables[slot].enabled == 1:
            refresh_bound(s, slot, gamma)
    set_capacity(s.graph, resource, r.cores * r.one_core)


@jit
def note_change(s, link):
    """What is routed over a link holds no longer; see ``clock.changed``."""
    clock = s.clock[0]
    clock.changed = link if clock.changed in (NO_CHANGE, link) else SEVERAL_CHANGES


@jit
def apply_trace(s, number, o):
    """Apply the next change of a trace and move on to the one after."""
    t = s.traces[number]
    value = s.trace_events[t.first + t.position].value
    if t.kind == SPEED:
        set_speed(s, t.resource, value, o.gamma)
    elif t.kind == BANDWIDTH:
        set_capacity(s.graph, t.resource, value)
        if o.flows:
            note_change(s, t.resource)
    elif t.kind == LATENCY:
        s.resources[t.resource].latency = value
        note_change(s, t.resource)
    else:
        set_state(s, t.resource, value > 0.0)
    t.position += 1
    if t.position == t.count:
        t.position = 0
        t.rounds += 1
    set_next_date(s, number)


@jit
def set_next_date(s, number):
    """Date of the next change of a trace: its position in this round."""
    t = s.traces[number]
    if t.rounds > 0 and t.period == INFINITY:
        t.next_date = INFINITY
        return
    t.next_date = s.trace_events[t.first + t.position].date
    if t.rounds > 0:
        t.next_date += t.rounds * t.period


@jit
def catch_up(s, resource, o):
    """Apply what the traces of a resource changed while it was unused."""
    now = s.clock[0].now
    number = s.resources[resource].traces
    while number >= 0:
        t = s.traces[number]
        if t.queued < 0:
            if t.next_date < now and t.period < INFINITY:
                # Whole rounds are gone: only the last one can matter.
                rounds = int((now - t.next_date) / t.period) - 1
                if rounds > 0:
                    t.rounds += rounds
                    set_next_date(s, number)
            while t.next_date <= now:
                apply_trace(s, number, o)
        number = t.next


@jit
def follow(s, first, count, o):
    """Let the traces of the resources of elements stand in the queue, since they are used now."""
    for k in range(first, first + count):
        resource = s.elements[k].resource
        r = s.resources[resource]
        if r.traces >= 0 and s.graph.constraints[resource].users == 0:
            catch_up(s, resource, o)
            number = r.traces
            while number >= 0:
                t = s.traces[number]
                if t.queued < 0 and t.next_date < INFINITY:
                    push_date(s, t.next_date, TRACE, number)
                number = t.next


@jit
def follow_live(s, o):
    """The first time: apply what live traces say of date 0 and follow them."""
    if s.clock[0].begun == 1:
        return
    s.clock[0].begun = 1
    for number in range(s.traces.size):
        t = s.traces[number]
        if t.live == 1:
            while t.next_date <= s.clock[0].now:
                apply_trace(s, number, o)
            if t.next_date < INFINITY:
                push_date(s, t.next_date, TRACE, number)


@jit
def pass_trace(s, o):
    """Apply the trace at the top of the queue, or drop it if its resource is unused."""
    number = s.queue[0].number
    t = s.traces[number]
    remove_date(s, 0)
    if t.live == 1 or s.graph.constraints[t.resource].users > 0:
        apply_trace(s, number, o)
        if t.next_date < INFINITY:
            push_date(s, t.next_date, TRACE, number)


@jit
def pass_unused(s, date, o):
    """Skip the traces of unused resources at the top of the queue, up to ``date``."""
    while s.clock[0].n_queue > 0 and s.queue[0].kind == TRACE and s.queue[0].date <= date:
        if s.graph.constraints[s.traces[s.queue[0].number].resource].users > 0:
            break
        pass_trace(s, o)


@jit
def apply_traces(s, date, o):
    """Apply every change dated up to a date."""
    while s.clock[0].n_queue > 0 and s.queue[0].kind == TRACE and s.queue[0].date <= date:
        pass_trace(s, o)
