# mypy: allow-untyped-defs, allow-incomplete-defs
"""Approximate loads of slack resources under bottleneck max fairness; exact where nearly full.

`levels` calls it. A resource that is not active keeps the load of its users' *counted* rates. Most
rates change little at an event; a rate that changed by less than the tolerance `LOAD_TOLERANCE` is
not counted again. So the true load may exceed the stored load by that part. A resource that this
could overload is *watched*: its load is summed at each event.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.sharing.arrays import Settings
from ptaskmodel.sharing.components import swap_kept
from ptaskmodel.sharing.graph import can_limit
from ptaskmodel.sharing.state import USED, WATCH

INFINITY = float("inf")
AIM = Settings().aim
# The part by which a rate changes before it is counted anew.
LOAD_TOLERANCE = 0.02
# Instead of 0 or 1 in `active`.
WATCHED = 2


@jit
def load_of(s, resource, mark):
    """What the enabled users of a resource take; those marked at the rate being found."""
    load = 0.0
    r = s.constraints[np.uint64(resource)]
    for k in range(np.uint64(r.first), np.uint64(r.first + r.users)):
        user = s.users[k]
        if user.usage > 0.0:
            t = s.variables[np.uint64(user.slot)]
            if t.enabled == 1:
                load += user.usage * (t.next_rate if t.mark == mark else t.rate)
    return load


@jit
def counted_load(s, resource):
    """What the enabled users of a resource take at their counted rates."""
    load = 0.0
    r = s.constraints[np.uint64(resource)]
    for k in range(np.uint64(r.first), np.uint64(r.first + r.users)):
        user = s.users[k]
        if user.usage > 0.0:
            t = s.variables[np.uint64(user.slot)]
            if t.enabled == 1:
                load += user.usage * t.counted_rate
    return load


@jit
def may_overflow(r):
    """Whether the load of a resource may exceed its capacity, as far as the one kept tells."""
    return r.load * (1.0 + LOAD_TOLERANCE) > r.capacity and not r.fatpipe


@jit
def watch(s, resource):
    """Watch a resource from now on if it may overflow and is not active."""
    counts = s.counts[0]
    r = s.constraints[np.uint64(resource)]
    if r.active == 0 and may_overflow(r):
        r.active = WATCHED
        s.worklists[WATCH, np.uint64(counts.n_watched)] = resource
        counts.n_watched += 1


@jit
def join(s, resource, mark, m):
    """Add an active resource to the component; returns how many there are."""
    r = s.constraints[np.uint64(resource)]
    r.mark = mark
    r.local = m
    s.worklists[USED, np.uint64(m)] = resource
    return m + 1


@jit
def charge(s, slot, rate):
    """Give an activity another rate, and charge slack resources for it."""
    t = s.variables[np.uint64(slot)]
    t.next_rate = rate
    change = rate - t.counted_rate
    if abs(change) > LOAD_TOLERANCE * t.counted_rate:
        t.counted_rate = rate
        for k in range(np.uint64(t.nodes + t.n_active), np.uint64(t.nodes + t.n_kept)):
            element = s.kept[k]
            r = s.constraints[np.uint64(element.resource)]
            r.load += element.usage * change
            if change > 0.0:
                watch(s, element.resource)


@jit
def activate(s, mark, m):
    """Make active what overflows of what is watched; returns the resources of the component."""
    counts = s.counts[0]
    watched = counts.n_watched
    counts.n_watched = 0
    for i in range(watched):
        resource = s.worklists[WATCH, i]
        r = s.constraints[resource]
        r.active = 0
        if r.enabled < 2 or r.violations == 0 or not can_limit(s, r, r.demand):
            continue
        load = load_of(s, resource, mark)
        if load <= r.capacity * (1.0 + AIM) or r.fatpipe:
            watch(s, resource)
        else:
            r.active = 1
            r.level = INFINITY
            m = join(s, resource, mark, m)
            for k in range(r.first, r.first + r.users):
                t = s.variables[s.users[k].slot]
                if s.users[k].usage > 0.0 and t.enabled == 1:
                    swap_kept(s, np.int64(s.nodes[s.users[k].node].kept), t.nodes + t.n_active)
                    t.n_active += 1
    return m


@jit
def deactivate(s, resource):
    """A resource limits no activity: it is no longer active."""
    r = s.constraints[resource]
    r.active = 0
    r.level = INFINITY
    r.load = counted_load(s, resource)
    watch(s, resource)
    for k in range(r.first, r.first + r.users):
        t = s.variables[s.users[k].slot]
        if s.users[k].usage > 0.0 and t.enabled == 1:
            t.n_active -= 1
            swap_kept(s, np.int64(s.nodes[s.users[k].node].kept), t.nodes + t.n_active)


@jit
def forget_watched(s):
    """Watch nothing."""
    counts = s.counts[0]
    for i in range(counts.n_watched):
        r = s.constraints[s.worklists[WATCH, i]]
        if r.active == WATCHED:
            r.active = 0
    counts.n_watched = 0
