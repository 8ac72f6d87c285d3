# mypy: allow-untyped-defs, allow-incomplete-defs
"""One resource that limits all its users: each rate is a level over the user's cost there.

`levels` and `max_min` call it; `engine.virtual_time` follows such activities from event to event.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.kernels.records import NOTHING
from ptaskmodel.sharing.components import coefficient
from ptaskmodel.sharing.state import SUB
from ptaskmodel.sharing.subproblem import sub_system

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
    else limits an activity, 0: that is not higher.

    s: the state. n: how many activities are chosen. common: that resource.
    """
    counts = s.counts[0]
    counts.mark += 1
    mark = counts.mark
    v = sub_system(s)
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
                m += 1
            v.load[r.local] += element.usage / cost
    here = s.constraints[common].local
    level = v.capacity[here] / v.load[here]
    above = level * (1.0 + CLOSE)
    lowest = first_bound
    for j in range(m):
        if j != here:
            lowest = min(lowest, v.capacity[j] / v.load[j])
    if lowest <= above:
        return 0.0
    for i in range(n):
        v.rate[i] = level / v.weight[i]
        v.limit[i] = common
    return lowest
