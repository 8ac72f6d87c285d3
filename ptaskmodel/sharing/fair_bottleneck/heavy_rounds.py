# mypy: allow-untyped-defs, allow-incomplete-defs
"""Rounds of fair bottleneck on the candidate bottlenecks of activities: assemble and run them."""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.sharing.arrays import LIMIT_NOTHING
from ptaskmodel.sharing.fair_bottleneck.rounds import (
    ONE,
    ZERO,
    begin_task,
    close_run,
    go_through,
    order_places,
    put_user,
)
from ptaskmodel.sharing.rates import NOTHING_LEFT
from ptaskmodel.sharing.state import PLACED, SUB, UNLAID, USED

INFINITY = float("inf")


@jit
def take_place(s, resource):
    """A resource is heavy from now on; it has the place that it was given the first time."""
    counts = s.counts[0]
    place = s.worklists[PLACED, resource]
    if place >= counts.n_places or s.places[place].resource != resource:
        place = counts.n_places
        counts.n_places += 1
        s.worklists[PLACED, resource] = place
        s.places[place].resource = resource
    s.constraints[resource].heavy = 1


@jit
def write_row(s, slot):
    """Of each heavy element of an activity its place, times 2, and 1 if its use is another one."""
    t = s.variables[slot]
    before = 0.0
    run = np.uint64(t.nodes)
    for k in range(np.uint64(t.nodes), np.uint64(t.nodes + t.n_heavy)):
        element = s.kept[k]
        row = 2 * s.worklists[PLACED, element.resource]
        if element.usage != before:
            before = element.usage
            s.row_usage[run] = before
            run += ONE
            row += 1
        s.rows[k] = row


@jit
def lay_heavy(s, n, sub, v):
    """Lay the heavy elements of the first ``n`` activities chosen, of weight 1.

    Returns (resources, live activities); as the first -1 if there is a FATPIPE, or a user too many.
    """
    counts = s.counts[0]
    counts.mark += 1
    mark = counts.mark
    nowhere = v.left.size
    m = ZERO
    z = ZERO
    n_live = ZERO
    q = np.uint64(0)
    e = np.uint64(0)
    for i in range(np.uint64(n)):
        slot = np.uint64(s.worklists[SUB, i])
        t = s.variables[slot]
        v.run_from[i] = q
        v.ceiling[i] = t.bound
        sub.weight[i] = 1.0
        sub.limit[i] = LIMIT_NOTHING
        if t.n_heavy > 0 and s.rows[np.uint64(t.nodes)] == UNLAID:
            write_row(s, slot)
        run = np.uint64(t.nodes)
        for k in range(np.uint64(t.nodes), np.uint64(t.nodes + t.n_heavy)):
            row = np.uint64(s.rows[k])
            place = s.places[row >> ONE]
            if place.mark != mark:
                r = s.constraints[np.uint64(place.resource)]
                z += r.enabled
                if r.fatpipe or z > v.user.size:
                    return np.int64(-1), n_live
                place.mark = mark
                place.local = m
                p = np.uint64(m)
                s.worklists[USED, p] = place.resource
                v.origin[p] = m
                v.base[p] = z
                v.count[p] = z
                v.left[p] = r.capacity
                m += 1
            if row & ONE != 0:
                e = close_run(q, e, nowhere, v)
                v.run_usage[q] = s.row_usage[run]
                run += ONE
                v.run_weight[q] = 1.0
                v.value[q] = 0.0
                v.run_task[q] = i
                q += ONE
            v.element[e] = place.local
            e += ONE
            put_user(np.uint64(place.local), q - ONE, v)
        n_live = begin_task(i, q > np.uint64(v.run_from[i]), n_live, sub.rate, v)
    close_run(q, e, nowhere, v)
    v.run_from[np.uint64(n)] = q
    order_places(m, nowhere, v)
    v.share[nowhere] = INFINITY
    return m, n_live


@jit
def solve_rounds(s, n, sub, corrected, v):
    """Rates and limits (places) by the heavy elements alone; how many resources, -1: a FATPIPE."""
    m, n_live = lay_heavy(s, n, sub, v)
    if m >= 0:
        go_through(m, n_live, corrected, False, NOTHING_LEFT, sub.weight, sub.rate, sub.limit, v)
    return m
