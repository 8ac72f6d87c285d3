# mypy: allow-untyped-defs
"""Bottleneck max fairness from the levels of a system much like this one.

Of all resources few limit anybody, from 2 in 600 to 75 in 800 on contended loads: these are
*active*, the others have no level. So the levels are found among the active resources alone, with a
seventh of the elements; then one pass over all elements finds who overflows. These become active
too, and so on until nobody does, after 1.6 rounds on average. Resources without a seat are active
no more.

The last pass is a certificate: capacities hold everywhere, every task is at its bound or sits on an
active resource, which is full.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.sharing.bmf_levels import FILL_LATER, climb
from ptaskmodel.sharing.bmf_presolve import list_users
from ptaskmodel.sharing.limits import LIMIT_BOUND, LIMIT_NOTHING

MAX_ROUNDS = 50
NOT_ACTIVE = -1


@jit
def solve_active(system, settings, answer, c, seats):
    """Fill rates, limits and levels; False: the levels do not settle, levels are as they were."""
    n = system.start.size - 1
    m = system.capacity.size
    cores = 0
    for r in range(m):
        c.place[r] = NOT_ACTIVE
        if answer.level[r] < np.inf and not system.fatpipe[r]:
            c.place[r] = cores
            c.origin[cores] = r
            c.levels[cores] = answer.level[r]
            cores += 1
    if not _begin(system, answer, c):
        return False
    # Whether the rates can only fall from here on: then nothing else will overflow.
    falling = cores == 0
    settled = falling
    for _ in range(MAX_ROUNDS):
        active = _activate(cores, settings.aim, system, answer, c)
        if active == cores and settled:
            break
        cores = active
        _take(cores, system, c)
        if not climb(n, cores, FILL_LATER, settings.aim, c, seats) <= settings.accept:
            return False
        settled = True
        for i in range(n):
            where = c.seat[i]
            answer.rate[i] = c.y[i] * c.ub[i]
            answer.limit[i] = c.reason[i] if where < 0 else c.origin[c.used[where]]
        if falling:
            break
    else:
        return False
    for r in range(m):
        answer.level[r] = np.inf
    for r in range(cores):
        answer.level[c.origin[r]] = c.levels[r]
    return True


@jit
def _begin(system, answer, c):
    """The largest rate of each task alone and, as first guess, the one at the levels in force.

    False: a task names a resource twice, which `gather` knows how to deal with.
    """
    start, resource, capacity = system.start, system.resource, system.capacity
    last_user = c.seats
    for r in range(capacity.size):
        last_user[r] = -1
    for i in range(start.size - 1):
        top = system.bound[i]
        why = LIMIT_BOUND
        least = np.inf
        idle = True
        for k in range(start[i], start[i + 1]):
            a = system.usage[k]
            if a > 0.0:
                idle = False
                r = resource[k]
                if capacity[r] < top * a:
                    top = capacity[r] / a
                    why = r
                if not system.fatpipe[r]:
                    if last_user[r] == i:
                        return False
                    last_user[r] = i
                    if c.place[r] >= 0:
                        share = system.share[k] if system.share[k] > 0.0 else a
                        least = min(least, answer.level[r] * system.weight[i] / share)
        if idle and top == np.inf:
            top = 1.0
            why = LIMIT_NOTHING
        c.ub[i] = top
        c.reason[i] = why
        answer.rate[i] = min(top, least)
        answer.limit[i] = why
    return True


@jit
def _activate(cores, aim, system, answer, c):
    """Make active what the rates fill beyond its capacity; returns how many are active then."""
    load, place = c.left, c.place
    for r in range(load.size):
        load[r] = 0.0
    for i in range(system.start.size - 1):
        x = answer.rate[i]
        for k in range(system.start[i], system.start[i + 1]):
            load[system.resource[k]] += system.usage[k] * x
    for r in range(load.size):
        if place[r] < 0 and load[r] > system.capacity[r] * (1.0 + aim) and not system.fatpipe[r]:
            place[r] = cores
            c.origin[cores] = r
            c.levels[cores] = np.inf
            cores += 1
    return cores


@jit
def _take(cores, system, c):
    """Write the uses of active resources as a core scaled to C = 1, bound = 1."""
    start = system.start
    q = 0
    for i in range(start.size - 1):
        c.row[i] = q
        x = c.ub[i]
        if x > 0.0:
            inverse = system.weight[i] / x
            for k in range(start[i], start[i + 1]):
                r = system.resource[k]
                a = system.usage[k]
                if c.place[r] >= 0 and a > 0.0:
                    share = system.share[k] if system.share[k] > 0.0 else a
                    c.used[q] = c.place[r]
                    c.a[q] = a * x / system.capacity[r]
                    c.t[q] = inverse / share
                    q += 1
    c.row[start.size - 1] = q
    list_users(start.size - 1, cores, c)
