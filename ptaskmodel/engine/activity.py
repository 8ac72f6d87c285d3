# mypy: allow-untyped-defs, allow-incomplete-defs
"""The life cycle of an activity: it starts, waits for its latency or delay, runs, and stops.

Compiled front ends call the kernels of the first part. The second part is for Python, between two
runs of the loop: start and change activities, cancel wake-ups, set capacities.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.engine.availability import (
    catch_up,
    follow,
    mark_failing,
    refresh_bound,
    set_speed,
    set_state,
)
from ptaskmodel.engine.queue import cancel_wake, push_wait, remove_wait
from ptaskmodel.engine.state import (
    DONE,
    ENDED,
    EVENTS_FULL,
    FAILED,
    FREE,
    GROW_ACTIVITIES,
    GROW_NODES,
    GROW_USERS,
    IN_ENDS,
    IN_QUEUE,
    LIMIT_DELAY,
    LIMIT_LATENCY,
    LIMIT_NOTHING,
    LIMIT_SUSPENDED,
    LIMIT_UNKNOWN,
    LISTED,
    LOST,
    OK,
    RUNNING,
    SUSPENDED,
    TO_FAIL,
    UNROUTED,
    WAITING,
)
from ptaskmodel.engine.stream import emit, emit_rate, has_room_for_events
from ptaskmodel.engine.virtual_time import dissolve, forget_end
from ptaskmodel.engine.wires import open_window, queues_back, queues_there
from ptaskmodel.kernels.decorators import entry, jit
from ptaskmodel.kernels.records import NOTHING, numbers
from ptaskmodel.sharing.graph import (
    classify,
    declassify,
    disable,
    enable,
    give_nodes_anew,
    has_room,
    link_nodes,
    missing_users,
    set_capacity,
    unlink_nodes,
)

INFINITY = float("inf")
# So many places are worth being given anew.
MANY = 1024

# What `change` is asked for.
(
    STOP,
    SUSPEND,
    RESUME,
    CANCEL_WAKE,
    SET_SPEED,
    SET_BANDWIDTH,
    TURN_OFF,
    TURN_ON,
    CATCH_UP,
) = numbers(9)


@jit
def missing(s, pattern):
    """What a start on this pattern still needs; OK if nothing."""
    clock = s.clock[0]
    p = s.patterns[pattern]
    if p.first < 0:
        return UNROUTED
    if clock.free_slots < 0 and clock.n_slots == s.activities.size:
        return GROW_ACTIVITIES
    if not has_room(s.graph, p.count):
        clock.argument = p.count
        return GROW_NODES
    clock.argument = missing_users(s.graph, p.count)
    if clock.argument > 0:
        return GROW_USERS
    if not has_room_for_events(s, 0):
        return EVENTS_FULL
    return OK


@jit
def start(s, pattern, amount, weight, bound, delay, owner, o):
    """Start an activity for which nothing is missing; returns its place.

    delay: what it waits for, s; nan: the latency of the pattern. It may be DONE at once, or LOST.
    """
    clock = s.clock[0]
    slot = clock.free_slots
    if slot >= 0:
        clock.free_slots = s.activities[slot].next
    else:
        slot = clock.n_slots
        clock.n_slots += 1
    clock.n_active += 1
    p = s.patterns[pattern]
    a = s.activities[slot]
    a.owner = owner
    a.pattern = pattern
    a.amount = amount
    a.remaining = amount
    a.weight = weight
    a.latency_bytes = p.latency_bytes
    a.asked = bound
    a.routed = p.bound
    a.window = INFINITY
    a.updated = clock.now
    t = s.graph.variables[slot]
    t.penalty = p.penalty / weight
    t.bound = INFINITY
    t.rate = 0.0
    t.limit = LIMIT_NOTHING
    s.lists[IN_ENDS, slot] = NOTHING
    s.lists[IN_QUEUE, slot] = NOTHING
    if s.traces.size > 0:
        follow(s, p.first, p.count, o)
    link_nodes(s.graph, s.elements, slot, p.first, p.count)
    if clock.n_off > 0 and uses_something_off(s, slot):
        if not o.fails_late:
            a.state = LOST
            return slot
        mark_failing(s, slot)
    if not np.isnan(delay):
        wait(s, slot, clock.now + delay, LIMIT_DELAY)
    elif p.latency > 0.0:
        latency = p.latency
        if o.packet > 0.0:
            latency += queues_there(s, slot, o) + queues_back(s, slot, o)
        wait(s, slot, clock.now + latency, LIMIT_LATENCY)
    else:
        share(s, slot, o)
    return slot


@jit
def uses_something_off(s, slot):
    """Whether a resource is off that the activity in ``slot`` of state ``s`` uses."""
    t = s.graph.variables[slot]
    for k in range(t.nodes, t.nodes + t.n_nodes):
        if not s.resources[s.graph.nodes[k].resource].on:
            return True
    return False


@jit
def wait(s, slot, date, reason):
    """Let an activity wait for a date."""
    a = s.activities[slot]
    a.state = WAITING
    a.waits_as = reason
    emit_rate(s, slot, 0.0, reason)
    push_wait(s, date, slot)


@jit
def share(s, slot, o):
    """The wait is over: the activity takes part in the sharing, or is done if it has no work."""
    a = s.activities[slot]
    if a.remaining <= 0.0:
        a.state = DONE
    else:
        if o.packet > 0.0:
            open_window(s, slot, o)
        refresh_bound(s, slot, o.gamma)
        clock = s.clock[0]
        clock.order += 1
        a.order = clock.order
        a.updated = clock.now
        a.state = RUNNING
        enable(s.graph, slot, clock.order)
        s.graph.variables[slot].limit = LIMIT_UNKNOWN


@jit
def stop(s, slot):
    """End an activity, whatever it is doing; its place is free again."""
    clock = s.clock[0]
    a = s.activities[slot]
    t = s.graph.variables[slot]
    if a.state == RUNNING:
        if t.rate > 0.0:
            emit_rate(s, slot, 0.0, LIMIT_NOTHING)
        forget_end(s, slot)
        disable(s.graph, slot)
    remove_wait(s, slot)
    if a.failing == TO_FAIL:
        a.failing = LISTED
    if t.n_nodes > 0:
        unlink_nodes(s.graph, slot)
    a.state = FREE
    t.rate = 0.0
    a.next = clock.free_slots
    clock.free_slots = slot
    clock.n_active -= 1
    if clock.n_active == 0 and clock.n_slots > MANY:
        give_anew(s)


@jit
def give_anew(s):
    """Nothing is active: hand out slots from the first on again, contiguous for common starts.

    Those given back come in the order of ends: after a while neighbours would lie anywhere.
    """
    clock = s.clock[0]
    clock.n_slots = 0
    clock.free_slots = NOTHING
    give_nodes_anew(s.graph)


@jit
def end(s, slot, kind):
    """For front ends written in Python: an activity is over (ENDED or FAILED): emit it."""
    emit(s, kind, s.activities[slot].owner, float(slot))
    stop(s, slot)


@jit
def succeeds(s, slot):
    """Whether an activity that has nothing left to do completes: nothing that it needs is off.

    As in SimGrid, an activity completes although a link is off, but not if a host is.
    """
    a = s.activities[slot]
    if a.failing == TO_FAIL:
        t = s.graph.variables[slot]
        for k in range(t.nodes, t.nodes + t.n_nodes):
            r = s.resources[s.graph.nodes[k].resource]
            if not r.on and r.one_core < INFINITY:
                return False
    return a.state != LOST


@jit
def suspend(s, slot):
    """Freeze an activity that waits or shares."""
    clock = s.clock[0]
    a = s.activities[slot]
    a.suspended_in = a.state
    emit_rate(s, slot, 0.0, LIMIT_SUSPENDED)
    if a.state == RUNNING:
        t = s.graph.variables[slot]
        a.remaining = max(a.remaining - t.rate * (clock.now - a.updated), 0.0)
        forget_end(s, slot)
        remove_wait(s, slot)
        a.state = SUSPENDED
        disable(s.graph, slot)
        t.rate = 0.0
        a.updated = clock.now
    else:
        remove_wait(s, slot)
        a.due -= clock.now
        a.state = SUSPENDED


@jit
def resume(s, slot, o):
    """Let a suspended activity go on where it was."""
    a = s.activities[slot]
    if a.suspended_in == RUNNING:
        share(s, slot, o)
    else:
        wait(s, slot, s.clock[0].now + a.due, np.int64(a.waits_as))


@jit
def begin_tail(s, slot, o):
    """Let a flow of a wire model (s, slot, o) whose work is done wait for its last byte.

    False if there is nothing to wait for.
    """
    a = s.activities[slot]
    p = s.patterns[a.pattern]
    tail = p.tail + p.tail_per_byte * min(o.packet, a.amount) + queues_there(s, slot, o)
    if tail <= 0.0:
        return False
    forget_end(s, slot)
    remove_wait(s, slot)
    disable(s.graph, slot)
    a.remaining = 0.0
    s.graph.variables[slot].rate = 0.0
    a.updated = s.clock[0].now
    wait(s, slot, s.clock[0].now + tail, LIMIT_LATENCY)
    return True


@entry
def start_now(s, pattern, amount, weight, bound, delay, owner, o):
    """Start an activity from Python: its place, or -2 minus the status that says what is missing.

    What has nothing to do, or begins on something off, is over at once, and told.
    """
    status = missing(s, pattern)
    if status != OK:
        return -2 - status
    slot = start(s, pattern, amount, weight, bound, delay, owner, o)
    if s.activities[slot].state in (DONE, LOST):
        end(s, slot, ENDED if succeeds(s, slot) else FAILED)
    return slot


@entry
def change(s, what, number, value, o):
    """STOP, SUSPEND or RESUME an activity, CANCEL_WAKE a wake-up, give a host SET_SPEED (value: its
    availability) or a link SET_BANDWIDTH, TURN_OFF or TURN_ON a resource, or let its traces
    CATCH_UP.
    """
    if what == STOP:
        stop(s, number)
        return
    if what == SUSPEND:
        dissolve(s)
        suspend(s, number)
        return
    if what == RESUME:
        resume(s, number, o)
        return
    if what == CANCEL_WAKE:
        cancel_wake(s, number)
        return
    if s.clock[0].begun == 1:
        catch_up(s, number, o)
    if what == SET_SPEED:
        set_speed(s, number, value, o.gamma)
    elif what == SET_BANDWIDTH:
        set_capacity(s.graph, number, value)
    elif what == TURN_OFF:
        set_state(s, number, False)
    elif what == TURN_ON:
        set_state(s, number, True)


@entry
def refresh_routed(s, slot, o):
    """The pattern of an activity was routed anew: its bound and its weight follow."""
    dissolve(s)
    a = s.activities[slot]
    p = s.patterns[a.pattern]
    a.latency_bytes = p.latency_bytes
    s.graph.variables[slot].penalty = p.penalty / a.weight
    if a.state == RUNNING:
        declassify(s.graph, slot)
        refresh_bound(s, slot, o.gamma)
        classify(s.graph, slot)
