# mypy: allow-untyped-defs, allow-incomplete-defs
"""Levels from event to event (bmf, max-min): slack resources have no level and cost nothing.

Counterparts that compute rates from nothing: `bottleneck_max_fairness.solver` and
`water_filling`.

Both rules are bottleneck max fairness; max-min fairness is that with every share coefficient 1.

Few resources limit an activity. These are *active*. Between two events the state keeps the level of
each, the load of every other kept resource, and each activity's kept elements, those on active
resources first. At an event:

1. The loads of affected resources are summed again. Activities that are new, or whose kept elements
   changed, take the rate that the present levels give them.
2. Every overloaded resource becomes active, without a level yet.
3. `component_levels` finds the levels of the active resources of these activities, with all other
   levels fixed. Resources on which another rate results are added, and so on, up to the connected
   component over active resources. If that visits too many activities, all are solved together.
4. Activities whose rate changed update the load of their other resources (`charge`). If some
   are overloaded, step 2 follows again.
5. Resources that limit no activity are no longer active.

Rates that did not change stay bit-identical. If levels do not converge, the caller solves the whole
component without earlier results, and `adopt` starts from that solution. `certified` checks all
periodically.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit, late
from ptaskmodel.kernels.records import NOTHING
from ptaskmodel.sharing.arrays import LIMIT_BOUND, LIMIT_NOTHING
from ptaskmodel.sharing.components import (
    SEVERAL,
    SKIPPED_SEARCHES,
    SMALL,
    coefficient,
    drop_kept,
    fill_common,
    forget_changes,
    forget_sides,
    is_kept,
    put_kept,
    swap_kept,
)
from ptaskmodel.sharing.levels.component_levels import (
    ACCEPT,
    activate,
    charge,
    counted_load,
    deactivate,
    find_levels,
    forget_watched,
    join,
    watch,
)
from ptaskmodel.sharing.state import (
    CHANGED,
    SIDE,
    SIDES,
    SUB,
    TODO,
    TOUCHED,
    USED,
    Graph,
    bare_graph,
)
from ptaskmodel.sharing.subproblem import subproblem_of

INFINITY = float("inf")
MAX_ROUNDS = 50
# Rounds that solve only resources on which a rate changed.
NEAR_ROUNDS = 2
# How often a search may look at each activity before there is none for a while; the part of all
# rates that must change at an event for that to go on.
LOOKED_AT, FEW_CHANGE = 2.0, 0.25
GAVE_UP = -1
# A rate that changes less, relatively, stays as it is.
SAME_RATE = 1e-12


@jit
def put_active_first(s, slot):
    """Order the kept elements of an activity."""
    t = s.variables[slot]
    t.n_active = 0
    for k in range(t.nodes, t.nodes + t.n_kept):
        if s.constraints[s.kept[k].resource].active == 1:
            put_in_front(s, t, k)


@jit
def put_in_front(s, t, k):
    """Put a kept element of an activity behind those on active resources that come first."""
    front = t.nodes + t.n_active
    if k > front:
        swap_kept(s, k, front)
    t.n_active += 1


@jit
def take_in(s, slot):
    """List anew what can limit an activity, and what bounds it whatever the others do.

    s: the state. slot: the activity.
    """
    t = s.variables[slot]
    t.n_kept = 0
    t.n_active = 0
    for k in range(np.uint64(t.nodes), np.uint64(t.nodes + t.n_nodes)):
        node = s.nodes[k]
        node.kept = NOTHING
        if node.usage > 0.0:
            r = s.constraints[np.uint64(node.resource)]
            kept = is_kept(s, node.resource, t.tightest)
            if r.active == 1 and (r.enabled == 1 or not kept):
                lose_level(r)
            if kept:
                put_kept(s, slot, np.int64(k))
                if r.active == 1:
                    put_in_front(s, t, t.nodes + t.n_kept - 1)
    bound_by_kept(s, slot)


@jit
def lose_level(r):
    """The resource ``r`` limits none of its users, which are taken in anew."""
    r.active = 0
    r.level = INFINITY


@jit
def bound_by_kept(s, slot):
    """Write what bounds an activity whatever the others do, and whether it is even.

    s: the state. slot: the activity.
    """
    t = s.variables[slot]
    t.uncontended_rate = t.bound
    t.uncontended_limit = LIMIT_BOUND
    common = 0.0
    even = True
    for k in range(np.uint64(t.nodes), np.uint64(t.nodes + t.n_kept)):
        element = s.kept[k]
        r = s.constraints[np.uint64(element.resource)]
        if r.capacity < t.uncontended_rate * element.usage:
            t.uncontended_rate = r.capacity / element.usage
            t.uncontended_limit = element.resource
        x = coefficient(element)
        even = even and (common == 0.0 or x == common)
        common = x
    t.even = common * t.penalty if even else 0.0
    if t.uncontended_rate == INFINITY:
        t.uncontended_rate = 1.0
        t.uncontended_limit = LIMIT_NOTHING


@jit
def take_in_sides(s):
    """Update kept elements of the activities of ``s`` of which only resources changed side."""
    counts = s.counts[0]
    for i in range(counts.n_sides):
        resource = s.worklists[SIDE, i]
        r = s.constraints[resource]
        if r.active == 1 and r.enabled == 1:
            lose_level(r)
        for h in range(r.first, r.first + r.users):
            user = s.users[h]
            t = s.variables[user.slot]
            if user.usage > 0.0 and t.enabled == 1 and t.todo == SIDES:
                place = np.int64(s.nodes[user.node].kept)
                if not is_kept(s, resource, t.tightest):
                    if r.active == 1:
                        lose_level(r)
                    if place >= 0:
                        drop_kept(s, user.slot, place)
                elif place < 0:
                    put_kept(s, user.slot, user.node)
                    if r.active == 1:
                        put_in_front(s, t, np.int64(s.nodes[user.node].kept))
                elif r.active == 0 and place < t.nodes + t.n_active:
                    t.n_active -= 1
                    swap_kept(s, place, t.nodes + t.n_active)


@jit
def join_active(s, slot, mark, m):
    """Add the active resources of an activity to the component; returns how many there are."""
    t = s.variables[np.uint64(slot)]
    for k in range(np.uint64(t.nodes), np.uint64(t.nodes + t.n_active)):
        resource = s.kept[k].resource
        if s.constraints[np.uint64(resource)].mark != mark:
            m = join(s, resource, mark, m)
    return m


@jit
def admit(s, slot, mark, n):
    """Add an activity to the component; returns how many there are."""
    t = s.variables[np.uint64(slot)]
    t.mark = mark
    t.next_rate = t.rate
    s.worklists[SUB, np.uint64(n)] = slot
    return n + 1


@jit
def keeps_limit(s, slot):
    """Whether an activity, just taken in, has the rate that is right if no level changes."""
    t = s.variables[slot]
    if t.limit == t.uncontended_limit:
        return t.rate == t.uncontended_rate
    for k in range(t.nodes, t.nodes + t.n_active):  # noqa: SIM110
        if s.kept[k].resource == t.limit:
            return True
    return False


@jit
def begin(s, mark):
    """Take in what changed; returns (activities, resources) of the component."""
    counts = s.counts[0]
    n = 0
    m = 0
    if counts.n_beside > 0:
        take_in_sides(s)
    for i in range(counts.n_todo):
        slot = s.worklists[TODO, i]
        changed = s.variables[slot].todo == CHANGED
        s.variables[slot].todo = 0
        if s.variables[slot].enabled == 1:
            if changed:
                take_in(s, slot)
            else:
                bound_by_kept(s, slot)
            if changed or not keeps_limit(s, slot):
                n = admit(s, slot, mark, n)
    counts.mark += 1
    summed = counts.mark
    for i in range(counts.n_touched):
        resource = s.worklists[TOUCHED, i]
        r = s.constraints[resource]
        r.mark = 0
        if r.active == 1:
            m = join(s, resource, mark, m)
        elif r.enabled > 0:
            r.stamp = summed
            r.load = counted_load(s, resource)
            watch(s, resource)
    for i in range(n):
        t = s.variables[s.worklists[SUB, i]]
        for k in range(t.nodes + t.n_active, t.nodes + t.n_kept):
            resource = s.kept[k].resource
            r = s.constraints[resource]
            if r.stamp != summed:
                r.stamp = summed
                r.load = counted_load(s, resource)
                watch(s, resource)
    forget_changes(s)
    forget_sides(s)
    return n, m


@jit
def take_in_changes(s):
    """Take in what changed since the last solve, for all to be solved anew."""
    s.counts[0].mark += 1
    begin(s, s.counts[0].mark)


@jit
def spread(s, mark, n, m, from_n, from_m, wholly):
    """Add the users of resources; wholly: and complete the component over active resources.

    Returns the numbers of activities and resources.
    """
    i = from_n
    j = from_m
    while j < m or (wholly and i < n):
        if wholly and i < n:
            m = join_active(s, s.worklists[SUB, np.uint64(i)], mark, m)
            i += 1
            continue
        r = s.constraints[s.worklists[USED, np.uint64(j)]]
        j += 1
        for k in range(np.uint64(r.first), np.uint64(r.first + r.users)):
            user = s.users[k]
            t = s.variables[np.uint64(user.slot)]
            if t.mark != mark and t.enabled == 1 and user.usage > 0.0:
                n = admit(s, user.slot, mark, n)
    return n, m


@jit
def judge_search(s, n, looked):
    """Whether all are to be solved at once for a while, or no longer.

    looked: at how many activities the search for those affected has looked, each time counted; 0:
    there was none, all ``n`` with an active resource were solved.
    """
    counts = s.counts[0]
    if looked > LOOKED_AT * max(SMALL, counts.n_enabled):
        counts.skip_search = SKIPPED_SEARCHES
    elif looked == 0 and counts.skip_search > 0:
        changed = 0
        for i in range(n):
            t = s.variables[np.uint64(s.worklists[SUB, i])]
            changed += 1 if t.next_rate != t.rate else 0
        if changed < FEW_CHANGE * n:
            counts.skip_search = 0


@jit
def all_on_active(s, mark, n, m):
    """Add every activity with an active resource: (activities, resources)."""
    slot = s.counts[0].oldest
    while slot >= 0:
        t = s.variables[np.uint64(slot)]
        if t.n_active > 0:
            if t.mark != mark:
                n = admit(s, slot, mark, n)
            m = join_active(s, slot, mark, m)
        slot = t.next
    return n, m


@jit
def look_for_common(s, n):
    """Note if the only resource of the component limits all its users, which share no other one.

    s: the state. n: how many activities there are in the component.
    """
    counts = s.counts[0]
    common = s.worklists[USED, 0]
    if s.constraints[common].enabled == n:
        counts.lowest = fill_common(s, n, common)
        if counts.lowest > 0.0:
            counts.common = common


def example() -> tuple[Graph]:
    """Arguments like those of `follow_levels`."""
    return (bare_graph(),)


@late("ptaskmodel.sharing.levels.levels:example")
def follow_levels(s):
    """Rates of what changed, found from the levels in force: how many activities, or GAVE_UP.

    They are written to the subproblem, limits by the numbers of resources. Where one resource
    limits all of them, ``common`` of the clock says which.
    """
    counts = s.counts[0]
    counts.common = NOTHING
    counts.mark += 1
    mark = counts.mark
    n, m = begin(s, mark)
    v = subproblem_of(s)
    for i in range(n):
        slot = s.worklists[SUB, i]
        t = s.variables[slot]
        rate = t.uncontended_rate
        cost = 1.0 / t.penalty
        for k in range(t.nodes, t.nodes + t.n_active):
            element = s.kept[k]
            level = s.constraints[element.resource].level
            rate = min(rate, level * cost / coefficient(element))
        charge(s, slot, rate)
        v.limit[i] = t.uncontended_limit
        m = join_active(s, slot, mark, m)
    m = activate(s, mark, m)
    near = NEAR_ROUNDS if counts.skip_search == 0 else 0
    from_n = 0
    from_m = 0
    looked = 0
    for step in range(MAX_ROUNDS):
        if m == from_m:
            judge_search(s, n, looked)
            for i in range(n):
                v.rate[i] = s.variables[s.worklists[SUB, i]].next_rate
            if m == 1 and n >= SEVERAL and counts.asks_common == 1:
                look_for_common(s, n)
            return n
        wholly = step >= near
        if near == 0 and step == 0:
            counts.skip_search -= 1
            n, m = all_on_active(s, mark, n, m)
        else:
            n, m = spread(s, mark, n, m, from_n, from_m, wholly)
        from_n = n if wholly else 0
        looked += n if near > 0 else 0
        if not find_levels(s, n, m, mark, wholly):
            return GAVE_UP
        from_m = m
        for j in range(m):
            s.constraints[s.worklists[USED, j]].level = v.level[j]
        for i in range(n):
            slot = s.worklists[SUB, i]
            rate = v.rate[i]
            if abs(rate - s.variables[slot].next_rate) > SAME_RATE * rate:
                charge(s, slot, rate)
                if not wholly:
                    m = join_active(s, slot, mark, m)
        m = activate(s, mark, m)
        if m == from_m:
            for j in range(m):
                if v.lowest[j] == 0.0:
                    deactivate(s, s.worklists[USED, j])
    return GAVE_UP


@jit
def adopt(s, n, m):
    """Start anew from the rates, just applied, of all ``n`` enabled activities and their limits."""
    forget_watched(s)
    for j in range(m):
        r = s.constraints[s.worklists[USED, j]]
        r.active = 0
        r.level = INFINITY
        r.load = 0.0
    for i in range(n):
        t = s.variables[s.worklists[SUB, i]]
        t.counted_rate = t.rate
        for k in range(t.nodes, t.nodes + t.n_kept):
            element = s.kept[k]
            r = s.constraints[element.resource]
            r.load += element.usage * t.rate
            if t.limit == element.resource and r.enabled > 1 and not r.fatpipe:
                level = t.rate * t.penalty * coefficient(element)
                r.level = level if r.active == 0 else max(r.level, level)
                r.active = 1
    for i in range(n):
        put_active_first(s, s.worklists[SUB, i])
        bound_by_kept(s, s.worklists[SUB, i])
    for j in range(m):
        watch(s, s.worklists[USED, j])


@jit
def certified(s):
    """Whether all rates in force are bottleneck max fair; sums all loads anew."""
    counts = s.counts[0]
    counts.mark += 1
    mark = counts.mark
    slot = counts.oldest
    while slot >= 0:
        t = s.variables[slot]
        t.counted_rate = t.rate
        for k in range(t.nodes, t.nodes + t.n_kept):
            element = s.kept[k]
            r = s.constraints[element.resource]
            if r.stamp != mark:
                r.stamp = mark
                r.load = 0.0
            r.load += element.usage * t.rate
        slot = t.next
    slot = counts.oldest
    while slot >= 0:
        t = s.variables[slot]
        best = t.uncontended_rate
        for k in range(t.nodes, t.nodes + t.n_kept):
            element = s.kept[k]
            r = s.constraints[element.resource]
            if r.load > r.capacity * (1.0 + ACCEPT) and not r.fatpipe:
                return False
            watch(s, element.resource)
            if r.active == 1:
                if r.load < r.capacity * (1.0 - ACCEPT):
                    return False
                best = min(best, r.level / (t.penalty * coefficient(element)))
        if abs(t.rate - best) > ACCEPT * best:
            return False
        slot = t.next
    return True
