# mypy: allow-untyped-defs, allow-incomplete-defs
"""Find the subproblem to solve in the sharing graph, and assemble it for a solver.

Where one resource limits all tasks of a component, each rate is a level over the cost of the task
there.

`levels` and `affected` call it; `engine.virtual_time` follows such activities from event to event.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.kernels.records import NOTHING
from ptaskmodel.sharing.graph import can_limit
from ptaskmodel.sharing.state import CHANGED, SIDE, SIDES, SUB, TODO, TOUCHED, UNLAID, USED
from ptaskmodel.sharing.subproblem import subproblem_of

# Searching for components that turn out to hold most activities is a waste: it is skipped a while.
GIANT, SKIPPED_SEARCHES, SMALL = 0.7, 30, 16


@jit
def is_kept(s, resource, tightest):
    """Return whether a resource can limit its users; tightest: of its user if it has only one."""
    r = s.constraints[resource]
    if r.enabled == 1 and not r.fatpipe and r.capacity > 0.0:
        return resource == tightest
    return r.violations > 0 and can_limit(s, r, r.demand)


@jit
def put_kept(s, slot, k):
    """List the element of a node, in the order of nodes behind what comes first in any case."""
    t = s.variables[slot]
    place = t.nodes + t.n_kept
    while place > t.nodes + t.n_active and s.kept[place - 1].node > k:
        before = s.kept[place - 1]
        target = s.kept[place]
        target.resource, target.usage = before.resource, before.usage
        target.share, target.node = before.share, before.node
        s.nodes[before.node].kept = place
        place -= 1
    node = s.nodes[k]
    node.kept = place
    target = s.kept[place]
    target.resource, target.usage = node.resource, node.usage
    target.share, target.node = 1.0 if s.counts[0].compares_rates == 1 else node.share, k
    t.n_kept += 1


@jit
def rebuild_kept(s, slot, incremental):
    """List the elements of an activity that can limit it."""
    t = s.variables[slot]
    t.n_kept = 0
    t.n_active = 0
    for k in range(t.nodes, t.nodes + t.n_nodes):
        node = s.nodes[k]
        node.kept = NOTHING
        if node.usage > 0.0 and (not incremental or is_kept(s, node.resource, t.tightest)):
            put_kept(s, slot, k)


@jit
def drop_kept(s, slot, place):
    """Take an element off the list of an activity."""
    t = s.variables[slot]
    s.nodes[s.kept[place].node].kept = NOTHING
    for q in range(place, t.nodes + t.n_kept - 1):
        target = s.kept[q]
        after = s.kept[q + 1]
        target.resource, target.usage = after.resource, after.usage
        target.share, target.node = after.share, after.node
        s.nodes[after.node].kept = q
    t.n_kept -= 1
    if place < t.nodes + t.n_active:
        t.n_active -= 1
        s.rows[t.nodes] = UNLAID


@jit
def update_kept(s, incremental):
    """List what can limit activities that changed, and for others resources that changed status."""
    counts = s.counts[0]
    for i in range(counts.n_todo):
        t = s.variables[s.worklists[TODO, i]]
        if t.enabled == 1 and (t.todo == CHANGED or not incremental):
            rebuild_kept(s, s.worklists[TODO, i], incremental)
    sides = counts.n_sides if incremental and counts.n_beside > 0 else 0
    for i in range(sides):
        resource = s.worklists[SIDE, i]
        r = s.constraints[resource]
        for h in range(r.first, r.first + r.users):
            user = s.users[h]
            t = s.variables[user.slot]
            if user.usage > 0.0 and t.enabled == 1 and t.todo == SIDES:
                place = np.int64(s.nodes[user.node].kept)
                if not is_kept(s, resource, t.tightest):
                    if place >= 0:
                        drop_kept(s, user.slot, place)
                elif place < 0:
                    put_kept(s, user.slot, user.node)
    forget_sides(s)


@jit
def swap_kept(s, a, b):
    """Let two kept elements change places."""
    x = s.kept[a]
    y = s.kept[b]
    resource, usage, share, node = x.resource, x.usage, x.share, x.node
    x.resource, x.usage, x.share, x.node = y.resource, y.usage, y.share, y.node
    y.resource, y.usage, y.share, y.node = resource, usage, share, node
    s.nodes[x.node].kept = a
    s.nodes[node].kept = b


@jit
def coefficient(element):
    """What fairness compares."""
    return element.share if element.share > 0.0 else element.usage


@jit
def keeps(s, slot, resource):
    """Whether a resource is among what can limit an activity."""
    t = s.variables[slot]
    for k in range(t.nodes, t.nodes + t.n_kept):  # noqa: SIM110
        if s.kept[k].resource == resource:
            return True
    return False


@jit
def forget_changes(s):
    """All that changed has been taken in."""
    counts = s.counts[0]
    counts.n_todo = 0
    counts.n_beside = 0
    counts.n_touched = 0


@jit
def forget_sides(s):
    """No resource has changed side."""
    counts = s.counts[0]
    for i in range(counts.n_sides):
        s.constraints[s.worklists[SIDE, i]].changed_side = False
    counts.n_sides = 0


@jit
def add_users(s, resource, mark, n):
    """Append the enabled users of a resource that are not in the subproblem yet."""
    r = s.constraints[resource]
    for k in range(r.first, r.first + r.users):
        user = s.users[k]
        t = s.variables[user.slot]
        if user.usage > 0.0 and t.mark != mark and t.enabled == 1:
            t.mark = mark
            s.worklists[SUB, n] = user.slot
            n += 1
    return n


@jit
def search(s, mark):
    """List, in any order, the activities that are or use what is affected; return their number."""
    counts = s.counts[0]
    n = 0
    for i in range(counts.n_todo):
        t = s.variables[s.worklists[TODO, i]]
        if t.enabled == 1 and t.mark != mark:
            t.mark = mark
            s.worklists[SUB, n] = s.worklists[TODO, i]
            n += 1
    for i in range(counts.n_touched):
        r = s.constraints[s.worklists[TOUCHED, i]]
        r.mark = mark
        if r.enabled == 1 or r.violations > 0:
            n = add_users(s, s.worklists[TOUCHED, i], mark, n)
    return n


@jit
def spread(s, mark, n):
    """Complete the components of the first n activities, all marked; their number."""
    i = 0
    while i < n:
        t = s.variables[s.worklists[SUB, i]]
        for k in range(t.nodes, t.nodes + t.n_kept):
            resource = s.kept[k].resource
            r = s.constraints[resource]
            if r.mark != mark:
                r.mark = mark
                if r.enabled > 1:
                    n = add_users(s, resource, mark, n)
        i += 1
    return n


@jit
def list_enabled(s, mark):
    """Every enabled activity (``mark`` < 0), or those with the mark, oldest first; their number."""
    n = 0
    slot = s.counts[0].oldest
    while slot >= 0:
        if mark < 0 or s.variables[slot].mark == mark:
            s.worklists[SUB, n] = slot
            n += 1
        slot = s.variables[slot].next
    return n


@jit
def sort_oldest_first(s, n):
    """Insertion sort of a few activities by the order in which they were enabled."""
    for i in range(1, n):
        slot = s.worklists[SUB, i]
        order = s.variables[slot].order
        j = i - 1
        while j >= 0 and s.variables[s.worklists[SUB, j]].order > order:
            s.worklists[SUB, j + 1] = s.worklists[SUB, j]
            j -= 1
        s.worklists[SUB, j + 1] = slot


@jit
def whole_components(s, mark, n):
    """The activities of the components of the first n, which are marked, oldest first."""
    counts = s.counts[0]
    if counts.skip_search > 0:
        counts.skip_search -= 1
        return list_enabled(s, -1)
    if n > SMALL and n > GIANT * counts.n_enabled:
        return list_enabled(s, -1)
    n = spread(s, mark, n)
    if n > SMALL and n > GIANT * counts.n_enabled:
        counts.skip_search = SKIPPED_SEARCHES
    if n <= 2 * SMALL:
        sort_oldest_first(s, n)
        return n
    return list_enabled(s, mark)


@jit
def list_kept(s, incremental):
    """Let all that changed have its kept elements listed; incremental: else all elements."""
    counts = s.counts[0]
    update_kept(s, incremental)
    for i in range(counts.n_todo):
        t = s.variables[s.worklists[TODO, i]]
        t.todo = 0
        t.counted_rate = 0.0


@jit
def take_in_unmoved(s, incremental):
    """Take in changes of the graph ``s`` by which no rate moves: only what is kept may differ.

    incremental: as `find_subproblem` takes it.
    """
    list_kept(s, incremental)
    for i in range(s.counts[0].n_touched):
        s.constraints[s.worklists[TOUCHED, i]].mark = 0
    forget_changes(s)


@jit
def find_subproblem(s, incremental):
    """Choose the activities to solve, oldest first, with their kept elements; their number."""
    counts = s.counts[0]
    list_kept(s, incremental)
    counts.mark += 1
    if not incremental:
        n = list_enabled(s, -1)
    else:
        n = whole_components(s, counts.mark, search(s, counts.mark))
    for i in range(counts.n_touched):
        s.constraints[s.worklists[TOUCHED, i]].mark = 0
    forget_changes(s)
    return n


@jit
def assemble_subproblem(s, v, n, heavy):
    """Write the subproblem of the first ``n`` activities chosen; its number of resources.

    heavy: only with elements of candidate bottlenecks, which come first (see `fair_bottleneck`).
    """
    counts = s.counts[0]
    counts.mark += 1
    mark = counts.mark
    m = 0
    z = 0
    for i in range(n):
        t = s.variables[np.uint64(s.worklists[SUB, i])]
        v.start[i] = z
        v.bound[i] = t.bound
        v.penalty[i] = t.penalty
        v.weight[i] = 1.0 / t.penalty
        last = t.nodes + (t.n_active if heavy else t.n_kept)
        for k in range(np.uint64(t.nodes), np.uint64(last)):
            element = s.kept[k]
            r = s.constraints[np.uint64(element.resource)]
            if r.mark != mark:
                r.mark = mark
                r.local = m
                s.worklists[USED, m] = element.resource
                v.capacity[m] = r.capacity
                s.flags[m] = r.fatpipe
                v.level[m] = r.level
                m += 1
            place = np.uint64(z)
            v.resource[place] = r.local
            v.usage[place] = element.usage
            v.share[place] = element.share
            z += 1
    v.start[n] = z
    return m


INFINITY = float("inf")
# Of so many it is worth asking whether one resource limits all.
SEVERAL = 32
# The relative difference by which anything else limits an activity later.
CLOSE = 1e-12


@jit
def cost_on(s, slot, resource):
    """The level of a resource over the rate that it gives an activity; 0: it is not kept.

    s: the state. slot: the activity.
    """
    t = s.variables[np.uint64(slot)]
    for k in range(np.uint64(t.nodes), np.uint64(t.nodes + t.n_kept)):
        if s.kept[k].resource == resource:
            return t.penalty * coefficient(s.kept[k])
    return 0.0


@jit
def used_by_all(s, n):
    """Return a resource of the state ``s`` that only the first ``n`` activities chosen use, all of
    them; -1: none.
    """
    t = s.variables[s.worklists[SUB, 0]]
    for k in range(t.nodes, t.nodes + t.n_kept):
        if s.constraints[s.kept[k].resource].enabled == n:
            return s.kept[k].resource
    return NOTHING


@jit
def fill_common(s, n, common):
    """Rates if a resource that all use is full before anything else limits an activity.

    That is what filling comes to then, to the last bit. Returns the lowest level at which anything
    else limits an activity; 0: that is not higher, or others use what these use, so that what is
    left to these is not known.

    s: the state. n: how many activities are chosen. common: that resource.
    """
    counts = s.counts[0]
    counts.mark += 1
    mark = counts.mark
    v = subproblem_of(s)
    uses_of_others = v.reached
    m = 0
    first_bound = INFINITY
    for i in range(n):
        t = s.variables[np.uint64(s.worklists[SUB, i])]
        cost = cost_on(s, s.worklists[SUB, i], common)
        if cost == 0.0:
            return 0.0
        v.weight[i] = cost
        first_bound = min(first_bound, t.bound * cost)
        for k in range(np.uint64(t.nodes), np.uint64(t.nodes + t.n_kept)):
            element = s.kept[k]
            r = s.constraints[np.uint64(element.resource)]
            if r.mark != mark:
                if r.fatpipe or r.capacity == 0.0:
                    return 0.0
                r.mark = mark
                r.local = m
                v.capacity[m] = r.capacity
                v.load[m] = 0.0
                uses_of_others[m] = r.enabled
                m += 1
            v.load[r.local] += element.usage / cost
            uses_of_others[r.local] -= 1.0
    here = s.constraints[common].local
    level = v.capacity[here] / v.load[here]
    above = level * (1.0 + CLOSE)
    lowest = first_bound
    for j in range(m):
        if uses_of_others[j] > 0.0:
            return 0.0
        if j != here:
            lowest = min(lowest, v.capacity[j] / v.load[j])
    if lowest <= above:
        return 0.0
    for i in range(n):
        v.rate[i] = level / v.weight[i]
        v.limit[i] = common
    return lowest
