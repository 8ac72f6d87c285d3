# mypy: allow-untyped-defs
"""Levels of connected active resources, and loads of slack ones; `levels` calls both.

Levels are found by filling if that suffices, else by Newton steps. An activity is *even* (a uniform
task) if its share coefficient is the same on each of its resources, like a message, which uses all
links of its route equally. If all activities are even, bottleneck max fairness is weighted max-min
fairness. Levels are then found in increasing order, one resource at a time, exactly and without
steps that might not converge.

This is a second progressive filling, on the records of the engine; `water_filling` is the first, on
a solver's arrays.

Loads of slack resources are approximate, but exact where nearly full. A resource that is not active
keeps the load of its users' *counted* rates. Most rates change little at an event; a rate that
changed by less than the tolerance `LOAD_TOLERANCE` is not counted again. So the true load may
exceed the stored load by that part. A resource that this could overload is *watched*: its load is
summed at each event.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.sharing.arrays import Settings, carve
from ptaskmodel.sharing.bottleneck_max_fairness.active_set import (
    FILL_LATER,
    carve_equations,
    improve_levels,
)
from ptaskmodel.sharing.bottleneck_max_fairness.presolve import carve_core, list_users
from ptaskmodel.sharing.components import coefficient, swap_kept
from ptaskmodel.sharing.graph import can_limit
from ptaskmodel.sharing.levels.water_filling import MUCH_LESS, sift_down
from ptaskmodel.sharing.state import SUB, USED, WATCH
from ptaskmodel.sharing.subproblem import subproblem_of

INFINITY = float("inf")
TOLERANCES = Settings()
AIM, ACCEPT = TOLERANCES.aim, TOLERANCES.accept
# A resource is full later than was thought only beyond rounding.
LATER = 1.0 + 1e-13
# The least rest of a resource, as a part of its capacity, with which activities still rise on it.
SLIVER = 1e-15
ZERO = np.int64(0)
# Activities are in order of their active elements, up to this number.
MANY_ACTIVE = np.int64(16)
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


@jit
def write_core(s, n, m, c, mark, limit, wholly):
    """Write what is to be solved as a core scaled to C = 1, bound = 1; returns its elements.

    The level of an active resource that is not solved bounds its users; ``limit`` is what does.
    wholly: all are solved.
    """
    for j in range(m):
        r = s.constraints[s.worklists[USED, j]]
        c.levels[j] = r.level
        c.left[j] = 1.0 / r.capacity
    q = 0
    for i in range(n):
        t = s.variables[np.uint64(s.worklists[SUB, i])]
        c.row[i] = q
        first = np.uint64(t.nodes)
        last = np.uint64(t.nodes + t.n_active)
        bound = t.uncontended_rate
        limit[i] = t.uncontended_limit
        cost = 1.0 / t.penalty
        if not wholly:
            for k in range(first, last):
                element = s.kept[k]
                r = s.constraints[np.uint64(element.resource)]
                if r.mark != mark:
                    rate = r.level * cost / coefficient(element)
                    if rate < bound:
                        bound = rate
                        limit[i] = element.resource
        c.ub[i] = bound
        if bound > 0.0:
            inverse = cost / bound
            for k in range(first, last):
                element = s.kept[k]
                r = s.constraints[np.uint64(element.resource)]
                if wholly or r.mark == mark:
                    c.used[q] = r.local
                    c.a[q] = element.usage * bound * c.left[r.local]
                    c.t[q] = inverse / coefficient(element)
                    q += 1
    c.row[n] = q
    list_users(n, m, c)


@jit
def sort_by_active(s, n, integers):
    """Put the activities of the component in order of their active elements; returns the sum.

    Loops over the elements of one that are as long as the last are predicted well.
    """
    places, integers = carve(integers, MANY_ACTIVE + 2)
    slots, _ = carve(integers, n)
    for k in range(MANY_ACTIVE + 2):
        places[k] = 0
    z = ZERO
    for i in range(n):
        slot = s.worklists[SUB, np.uint64(i)]
        slots[np.uint64(i)] = slot
        active = np.int64(s.variables[np.uint64(slot)].n_active)
        z += active
        places[min(active, MANY_ACTIVE) + 1] += 1
    for k in range(MANY_ACTIVE):
        places[k + 1] += places[k]
    for i in range(n):
        slot = slots[np.uint64(i)]
        active = min(np.int64(s.variables[np.uint64(slot)].n_active), MANY_ACTIVE)
        s.worklists[SUB, np.uint64(places[active])] = slot
        places[active] += 1
    return z


@jit
def begin_filling(s, n, m, mark, v, rising):
    """Let all activities rise from 0; False if one is not even.

    Of each activity: its largest rate and the reason; of each resource: what is left (``load``),
    what is taken of it for each unit of level (``reached``; ``capacity``: when last summed), how
    many uses still rise.
    """
    for j in range(m):
        v.load[j] = s.constraints[s.worklists[USED, j]].capacity
        v.reached[j] = 0.0
        v.level[j] = INFINITY
        v.lowest[j] = 0.0
        rising[j] = 0
    for i in range(n):
        t = s.variables[np.uint64(s.worklists[SUB, i])]
        if t.even == 0.0 and t.n_active > 0:
            return False
        t.local = i
        v.rate[i] = -1.0
        inverse = 1.0 / t.even
        bound = t.uncontended_rate
        reason = t.uncontended_limit
        for k in range(np.uint64(t.nodes), np.uint64(t.nodes + t.n_active)):
            element = s.kept[k]
            r = s.constraints[np.uint64(element.resource)]
            if r.mark == mark:
                where = np.uint64(r.local)
                v.reached[where] += element.usage * inverse
                rising[where] += 1
            elif r.level * inverse < bound:
                bound = r.level * inverse
                reason = element.resource
        v.bound[i] = bound
        v.limit[i] = reason
    return True


@jit
def settle_rate(s, slot, rate, mark, v, rising):
    """An activity rises no more."""
    t = s.variables[np.uint64(slot)]
    v.rate[np.uint64(t.local)] = rate
    inverse = 1.0 / t.even
    for k in range(np.uint64(t.nodes), np.uint64(t.nodes + t.n_active)):
        element = s.kept[k]
        r = s.constraints[np.uint64(element.resource)]
        if r.mark == mark:
            j = np.uint64(r.local)
            rising[j] -= 1
            v.load[j] -= element.usage * rate
            v.reached[j] -= element.usage * inverse


@jit
def stop_users(s, resource, level, fills, mark, v, rising):
    """Stop the users of a resource that cannot rise to a level, or all if that ``fills`` it.

    Returns whether some have stopped; if not, what is left of it has been summed anew.
    """
    r = s.constraints[resource]
    left = r.capacity
    slope = 0.0
    some = False
    for k in range(np.uint64(r.first), np.uint64(r.first + r.users)):
        user = s.users[k]
        t = s.variables[np.uint64(user.slot)]
        if user.usage > 0.0 and t.mark == mark:
            i = np.uint64(t.local)
            if v.rate[i] >= 0.0:
                left -= user.usage * v.rate[i]
                continue
            rate = v.bound[i]
            if rate * t.even > level:
                if not fills:
                    slope += user.usage / t.even
                    continue
                rate = level / t.even
                v.limit[i] = resource
            settle_rate(s, user.slot, rate, mark, v, rising)
            some = True
    if not some:
        v.load[r.local] = max(left, r.capacity * SLIVER)
        v.reached[r.local] = slope
        v.capacity[r.local] = slope
    return some


@jit
def fill(s, n, m, mark, v):
    """Rates, limits and levels by filling; False if an activity is not even."""
    rising, integers = carve(v.integers, m)
    heap, _ = carve(integers, m)
    full_at = v.highest
    if not begin_filling(s, n, m, mark, v, rising):
        return False
    for j in range(m):
        heap[j] = j
        v.capacity[j] = v.reached[j]
        full_at[j] = v.load[j] / v.reached[j]
    for j in range(m // 2 - 1, -1, -1):
        sift_down(heap, full_at, j, m)
    n_heap = m
    fills = False
    while n_heap > 0:
        j = heap[0]
        doubtful = v.reached[j] < MUCH_LESS * v.capacity[j]
        level = -1.0 if doubtful else v.load[j] / v.reached[j]
        if rising[j] > 0 and level <= full_at[j] * LATER:
            # First those stop that are bounded below; then it is summed; then all stop.
            some = stop_users(s, s.worklists[USED, j], level, fills, mark, v, rising)
            if fills:
                v.level[j] = level
                v.lowest[j] = 1.0
            exact = v.load[j] / v.reached[j]
            fills = not (fills or some or doubtful) and exact <= full_at[j] * LATER
            continue
        if rising[j] == 0:
            n_heap -= 1
            heap[0] = heap[n_heap]
        else:
            full_at[j] = level
        sift_down(heap, full_at, ZERO, n_heap)
    for i in range(n):
        if v.rate[i] < 0.0:
            v.rate[i] = v.bound[i]
    return True


@jit
def find_levels(s, n, m, mark, wholly):
    """Rates, limits (numbers of resources) and levels of the component; False: do not settle.

    They are written to the subproblem, with, as ``lowest``, 0 where a resource limits no activity.
    """
    v = subproblem_of(s)
    if fill(s, n, m, mark, v):
        return True
    z = sort_by_active(s, n, v.integers)
    c, reals, integers = carve_core(n, m, z, v.reals, v.integers)
    write_core(s, n, m, c, mark, v.limit, wholly)
    if (
        not improve_levels(n, m, FILL_LATER, AIM, c, carve_equations(m, z, reals, integers))
        <= ACCEPT
    ):
        return False
    for j in range(m):
        v.level[j] = c.levels[j]
        v.lowest[j] = c.n_limited[j]
    for i in range(n):
        v.rate[i] = c.y[i] * c.ub[i]
        if c.bottleneck[i] >= 0:
            v.limit[i] = s.worklists[USED, c.used[c.bottleneck[i]]]
    return True
