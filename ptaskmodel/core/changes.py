"""What changes under the activities, by a profile or by hand: capacities, states, suspended activities."""

from __future__ import annotations

import numpy as np

from ptaskmodel.core.life import (
    doom,
    end_task,
    fail_doomed,
    log_rate,
    refresh_bound,
    share,
)
from ptaskmodel.core.queues import push_timer, remove_end
from ptaskmodel.core.sharing_graph import classify, declassify, disable, set_capacity
from ptaskmodel.core.state import (
    BANDWIDTH,
    DELAY_END,
    LATENCY,
    LATENCY_END,
    LATENT,
    LIMIT_DELAY,
    LIMIT_LATENCY,
    LIMIT_SUSPENDED,
    NO_CHANGE,
    RUNNING,
    SEVERAL_CHANGES,
    SPEED,
    SUSPENDED,
    numbers,
)
from ptaskmodel.jit import entry, jit

# What `change` is asked for.
END, SUSPEND, RESUME, SET_SPEED, SET_BANDWIDTH, FAIL, RESTORE = numbers(7)
INFINITY = float("inf")
# Profile events in a row, while no activity progresses, after which nothing is expected of them.
MAX_IDLE_PROFILES = 100_000


@jit
def set_state(s, resource, on):
    """Turn a host or a link on or off; its users are doomed."""
    r = s.resources[resource]
    r.on = on
    if not on:
        k = r.first
        while k >= 0:
            doom(s, s.nodes[k].slot)
            k = s.nodes[k].next


@jit
def set_speed(s, resource, factor, gamma):
    """Availability of a host: capacity and single-core bounds follow."""
    r = s.resources[resource]
    r.one_core = r.peak * factor
    # Bounds first: the activities are counted in again with them around the change of capacity.
    k = r.first
    while k >= 0:
        if s.activities[s.nodes[k].slot].state == RUNNING:
            refresh_bound(s, s.nodes[k].slot, gamma)
        k = s.nodes[k].next
    set_capacity(s, resource, r.cores * r.one_core)


@jit
def note_change(s, link):
    """What is laid out over a link holds no longer; see ``clock.changed``."""
    clock = s.clock[0]
    clock.changed = link if clock.changed in (NO_CHANGE, link) else SEVERAL_CHANGES


@jit
def apply_profile(s, profile, o):
    """Apply the next event of a profile and move on to the one after."""
    p = s.profiles[profile]
    value = s.profile_events[p.first + p.position].value
    if p.kind == SPEED:
        set_speed(s, p.resource, value, o.gamma)
    elif p.kind == BANDWIDTH:
        set_capacity(s, p.resource, value)
        if o.flows:
            note_change(s, p.resource)
    elif p.kind == LATENCY:
        s.resources[p.resource].latency = value
        note_change(s, p.resource)
    else:
        set_state(s, p.resource, value > 0.0)
    p.position += 1
    if p.position == p.count:
        p.position = 0
        p.rounds += 1
    if p.position == 0 and p.period == INFINITY:
        p.next_date = INFINITY
    else:
        p.next_date = s.profile_events[p.first + p.position].date
        if p.rounds > 0:
            p.next_date += p.rounds * p.period


@jit
def next_profile(s):
    """The profile with the earliest next event (the first of equals), -1: none is left."""
    best = -1
    for i in range(s.profiles.size):
        if s.profiles[i].next_date < INFINITY and (
            best < 0 or s.profiles[i].next_date < s.profiles[best].next_date
        ):
            best = i
    return best


@jit
def apply_profiles(s, date, o):
    """Apply the events dated <= ``date``; the first on a resource in use cuts the step there."""
    clock = s.clock[0]
    while True:
        profile = next_profile(s)
        if profile < 0 or s.profiles[profile].next_date > date:
            return date
        if s.resources[s.profiles[profile].resource].users > 0:
            date = s.profiles[profile].next_date
            clock.cut = 1
        elif date == INFINITY:
            clock.idle_profiles += 1
            if clock.idle_profiles > MAX_IDLE_PROFILES:
                return date
        apply_profile(s, profile, o)


@jit
def suspend(s, slot):
    """Freeze an activity that is delayed, in its latency or running."""
    clock = s.clock[0]
    t = s.activities[slot]
    t.suspended_in = t.state
    log_rate(s, slot, 0.0, LIMIT_SUSPENDED)
    if t.state == RUNNING:
        t.remaining = max(t.remaining - t.rate * (clock.now - t.updated), 0.0)
        remove_end(s.heap, s.activities, s.clock[0], slot)
        disable(s, slot, SUSPENDED)
        t.rate = 0.0
        t.updated = clock.now
        return
    for i in range(clock.n_timers):
        timer = s.timers[i]
        if timer.slot == slot and timer.stamp == t.timer and timer.kind in (LATENCY_END, DELAY_END):
            t.pending = timer.time - clock.now
    t.state = SUSPENDED
    t.timer += 1


@jit
def resume(s, slot, gamma):
    """Let a suspended activity go on where it was (the caller has made room for a timer)."""
    t = s.activities[slot]
    t.state = t.suspended_in
    if t.state == RUNNING:
        share(s, slot, gamma)
        return
    kind = LATENCY_END if t.state == LATENT else DELAY_END
    log_rate(s, slot, 0.0, LIMIT_LATENCY if t.state == LATENT else LIMIT_DELAY)
    push_timer(s, s.clock[0].now + t.pending, kind, slot, t.timer)


@entry
def refresh_stage(s, slot, latency_bytes, penalty, gamma):
    """Latencies changed: the bound and the weight of a stage under way follow."""
    t = s.activities[slot]
    t.latency_bytes = latency_bytes
    t.penalty = penalty / t.weight
    if t.state == RUNNING:
        declassify(s, slot)
        refresh_bound(s, slot, gamma)
        classify(s, slot)


@entry
def change(s, what, number, value, gamma):
    """What Python asks for between two runs: END (value: the state), SUSPEND or RESUME an activity, give
    a host SET_SPEED (value: its availability) or a link SET_BANDWIDTH, FAIL or RESTORE a resource.
    """
    if what == END:
        end_task(s, number, np.int64(value))
    elif what == SUSPEND:
        suspend(s, number)
    elif what == RESUME:
        resume(s, number, gamma)
    elif what == SET_SPEED:
        set_speed(s, number, value, gamma)
    elif what == SET_BANDWIDTH:
        set_capacity(s, number, value)
    elif what == FAIL:
        set_state(s, number, False)
        fail_doomed(s)
    else:
        set_state(s, number, True)
