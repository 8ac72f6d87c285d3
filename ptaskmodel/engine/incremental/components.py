# mypy: allow-untyped-defs, allow-incomplete-defs
"""Find the subproblem to solve in the sharing graph, and assemble it for a solver."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ptaskmodel.engine.incremental.graph import can_limit
from ptaskmodel.engine.state import (
    CHANGED,
    NOTHING,
    RUNNING,
    SIDE,
    SIDES,
    SUB,
    TODO,
    TOUCHED,
    UNLAID,
    USED,
)
from ptaskmodel.kernels.decorators import jit, views
from ptaskmodel.sharing.arrays import carve

# Searching for components that turn out to hold most activities is a waste: it is skipped a while.
GIANT, SKIPPED_SEARCHES, SMALL = 0.7, 30, 16


@jit
def is_kept(s, resource, tightest):
    """Return whether a resource can limit its users; tightest: of its user if it has only one."""
    r = s.resources[resource]
    if r.enabled == 1 and not r.fatpipe and r.capacity > 0.0:
        return resource == tightest
    return r.violations > 0 and can_limit(s, r, r.demand)


@jit
def put_kept(s, slot, k):
    """List the element of a node, in the order of nodes behind what comes first in any case."""
    t = s.activities[slot]
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
    target.share, target.node = 1.0 if s.clock[0].compares_rates == 1 else node.share, k
    t.n_kept += 1


@jit
def rebuild_kept(s, slot, incremental):
    """List the elements of an activity that can limit it."""
    t = s.activities[slot]
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
    t = s.activities[slot]
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
    clock = s.clock[0]
    for i in range(clock.n_todo):
        t = s.activities[s.lists[TODO, i]]
        if t.state == RUNNING and (t.todo == CHANGED or not incremental):
            rebuild_kept(s, s.lists[TODO, i], incremental)
    sides = clock.n_sides if incremental and clock.n_beside > 0 else 0
    for i in range(sides):
        resource = s.lists[SIDE, i]
        r = s.resources[resource]
        for h in range(r.first, r.first + r.users):
            user = s.users[h]
            t = s.activities[user.slot]
            if user.usage > 0.0 and t.state == RUNNING and t.todo == SIDES:
                place = np.int64(s.nodes[user.node].kept)
                if not is_kept(s, resource, t.tightest):
                    if place >= 0:
                        drop_kept(s, user.slot, place)
                elif place < 0:
                    put_kept(s, user.slot, user.node)
    forget_sides(s)


@jit
def keeps(s, slot, resource):
    """Whether a resource is among what can limit an activity."""
    t = s.activities[slot]
    for k in range(t.nodes, t.nodes + t.n_kept):  # noqa: SIM110
        if s.kept[k].resource == resource:
            return True
    return False


@jit
def forget_changes(s):
    """All that changed has been taken in."""
    clock = s.clock[0]
    clock.n_todo = 0
    clock.n_beside = 0
    clock.n_touched = 0


@jit
def forget_sides(s):
    """No resource has changed side."""
    clock = s.clock[0]
    for i in range(clock.n_sides):
        s.resources[s.lists[SIDE, i]].changed_side = False
    clock.n_sides = 0


@jit
def add_users(s, resource, mark, n):
    """Append the enabled users of a resource that are not in the sub-system yet."""
    r = s.resources[resource]
    for k in range(r.first, r.first + r.users):
        user = s.users[k]
        t = s.activities[user.slot]
        if user.usage > 0.0 and t.mark != mark and t.state == RUNNING:
            t.mark = mark
            s.lists[SUB, n] = user.slot
            n += 1
    return n


@jit
def search(s, mark):
    """List, in any order, the activities that are or use what is affected; return their number."""
    clock = s.clock[0]
    n = 0
    for i in range(clock.n_todo):
        t = s.activities[s.lists[TODO, i]]
        if t.state == RUNNING and t.mark != mark:
            t.mark = mark
            s.lists[SUB, n] = s.lists[TODO, i]
            n += 1
    for i in range(clock.n_touched):
        r = s.resources[s.lists[TOUCHED, i]]
        r.mark = mark
        if r.enabled == 1 or r.violations > 0:
            n = add_users(s, s.lists[TOUCHED, i], mark, n)
    return n


@jit
def spread(s, mark, n):
    """Complete the components of the first n activities, all marked; their number."""
    i = 0
    while i < n:
        t = s.activities[s.lists[SUB, i]]
        for k in range(t.nodes, t.nodes + t.n_kept):
            resource = s.kept[k].resource
            r = s.resources[resource]
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
    slot = s.clock[0].oldest
    while slot >= 0:
        if mark < 0 or s.activities[slot].mark == mark:
            s.lists[SUB, n] = slot
            n += 1
        slot = s.activities[slot].next
    return n


@jit
def sort_oldest_first(s, n):
    """Insertion sort of a few activities by the order in which they were enabled."""
    for i in range(1, n):
        slot = s.lists[SUB, i]
        order = s.activities[slot].order
        j = i - 1
        while j >= 0 and s.activities[s.lists[SUB, j]].order > order:
            s.lists[SUB, j + 1] = s.lists[SUB, j]
            j -= 1
        s.lists[SUB, j + 1] = slot


@jit
def whole_components(s, mark, n):
    """The activities of the components of the first n, which are marked, oldest first."""
    clock = s.clock[0]
    if clock.skip_search > 0:
        clock.skip_search -= 1
        return list_enabled(s, -1)
    if n > SMALL and n > GIANT * clock.n_enabled:
        return list_enabled(s, -1)
    n = spread(s, mark, n)
    if n > SMALL and n > GIANT * clock.n_enabled:
        clock.skip_search = SKIPPED_SEARCHES
    if n <= 2 * SMALL:
        sort_oldest_first(s, n)
        return n
    return list_enabled(s, mark)


@jit
def find_sub_system(s, incremental):
    """Choose the activities to solve, oldest first, with their kept elements; their number."""
    clock = s.clock[0]
    update_kept(s, incremental)
    for i in range(clock.n_todo):
        t = s.activities[s.lists[TODO, i]]
        t.todo = 0
        t.charged = 0.0
    clock.mark += 1
    if not incremental:
        n = list_enabled(s, -1)
    else:
        n = whole_components(s, clock.mark, search(s, clock.mark))
    for i in range(clock.n_touched):
        s.resources[s.lists[TOUCHED, i]].mark = 0
    forget_changes(s)
    return n


class SubSystem(NamedTuple):
    """Where the sub-system to solve lies; what is left is the solvers' scratch."""

    start: np.ndarray
    resource: np.ndarray
    usage: np.ndarray
    share: np.ndarray
    capacity: np.ndarray
    bound: np.ndarray
    weight: np.ndarray
    penalty: np.ndarray
    level: np.ndarray
    load: np.ndarray
    highest: np.ndarray
    lowest: np.ndarray
    reached: np.ndarray
    rate: np.ndarray
    limit: np.ndarray
    reals: np.ndarray
    integers: np.ndarray


def sub_system_sizes(n: int, m: int, z: int) -> tuple[int, int]:
    """What `sub_system` takes of ``reals`` and ``integers``; the rest is the solvers' scratch."""
    return 2 * z + 6 * m + 4 * n, z + 2 * n + 1


@views
def sub_system(s):
    """The parts of ``reals`` and ``integers``, for as many as the state has room for.

    Rates and limits come first: of activity i they are ``s.reals[i]`` and ``s.integers[i]``, for
    who wants no more. To make all these views takes as long as to solve what is small.
    """
    n = s.activities.size
    m = s.resources.size
    z = s.nodes.size
    rate, reals = carve(s.reals, n)
    limit, integers = carve(s.integers, n)
    usage, reals = carve(reals, z)
    share, reals = carve(reals, z)
    capacity, reals = carve(reals, m)
    level, reals = carve(reals, m)
    load, reals = carve(reals, m)
    highest, reals = carve(reals, m)
    lowest, reals = carve(reals, m)
    reached, reals = carve(reals, m)
    bound, reals = carve(reals, n)
    weight, reals = carve(reals, n)
    penalty, reals = carve(reals, n)
    start, integers = carve(integers, n + 1)
    resource, integers = carve(integers, z)
    return SubSystem(
        start, resource, usage, share, capacity, bound, weight, penalty, level, load, highest,
        lowest, reached, rate, limit, reals, integers,
    )  # fmt: skip


@jit
def lay_sub_system(s, v, n, heavy):
    """Write the sub-system of the first ``n`` activities chosen; its number of resources.

    heavy: only with elements of candidate bottlenecks, which come first (see `fair_bottleneck`).
    """
    clock = s.clock[0]
    clock.mark += 1
    mark = clock.mark
    m = 0
    z = 0
    for i in range(n):
        t = s.activities[np.uint64(s.lists[SUB, i])]
        v.start[i] = z
        v.bound[i] = t.bound
        v.penalty[i] = t.penalty
        v.weight[i] = 1.0 / t.penalty
        last = t.nodes + (t.n_active if heavy else t.n_kept)
        for k in range(np.uint64(t.nodes), np.uint64(last)):
            element = s.kept[k]
            r = s.resources[np.uint64(element.resource)]
            if r.mark != mark:
                r.mark = mark
                r.local = m
                s.lists[USED, m] = element.resource
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
