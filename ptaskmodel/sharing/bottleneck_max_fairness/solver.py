"""Bottleneck max fairness: every task is at its bound or has a bottleneck of its own.

Counterpart that updates rates from event to event: `levels.levels`.

A rate allocation x is bottleneck max fair (T. Bonald and J. Roberts, Multi-resource fairness:
objectives, algorithms and performance, SIGMETRICS 2015) when no capacity is exceeded and every task
is at its bound, fills a FATPIPE, or uses a full SHARED resource on which its m_ri x_i / p_i is the
largest of all users (m: share coefficient, the usage if not given; p: weight).

Equivalently there is a *level* lambda_r > 0 for each SHARED resource, infinite where it limits no
task, with

    x_i = min(bound_i, min over r of lambda_r p_i / m_ri),   load_r = sum of a_ri x_i <= C_r,

and load_r = C_r wherever a task has its minimum. A solution exists for every m: over a wide enough
box of levels, C - load(lambda) is continuous, so the complementarity problem has a solution
(Hartman and Stampacchia), and lambda_r = 0 does not solve it, since r is then empty. It need not be
unique. If one level rises, the right levels of others can only fall, so simple iterations may
cycle. The steps are:

* `presolve`: fold FATPIPEs and single users into bounds; drop resources that cannot be filled; fix
  tasks whose bound is below their guaranteed share C_r p_i / (m_ri W_r), with W_r = sum of
  a_rj p_j / m_rj; scale the rest to C = 1, bound = 1;
* `active_set`: water filling of one resource after the other, then the levels that fill every
  resource that limits a task, with bottlenecks fixed (a linear system: Newton's method on the
  levels), until no bottleneck changes. This solves nearly all problems;
* `fallbacks`: damped water filling, path following, exact arithmetic.

If the levels of a similar problem are known, `solve_active` runs before these steps. It starts from
these levels, and only the resources that limit a task, a small part of them, have a level.

If a row names a resource twice, its elements count as one: their usages and shares are summed on a
SHARED resource, the largest counts on a FATPIPE.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import entry, jit
from ptaskmodel.sharing.arrays import LIMIT_BOUND, LIMIT_NOTHING
from ptaskmodel.sharing.bottleneck_max_fairness.active_set import (
    FILL,
    FILL_LATER,
    carve_equations,
    equations_sizes,
    improve_levels,
)
from ptaskmodel.sharing.bottleneck_max_fairness.presolve import (
    carve_core,
    core_sizes,
    gather,
    list_users,
    presolve,
    scale,
)

# mypy: allow-untyped-defs


MAX_ROUNDS = 50
NOT_ACTIVE = -1


@jit
def solve_active(system, settings, answer, c, equations):
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
        if not improve_levels(n, cores, FILL_LATER, settings.aim, c, equations) <= settings.accept:
            return False
        settled = True
        for i in range(n):
            where = c.bottleneck[i]
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
    last_user = c.n_limited
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


# mypy: allow-untyped-defs


def scratch_sizes(n: int, m: int, elements: int) -> tuple[int, int]:
    """Lengths of the float64 and int64 scratch arrays of the kernel."""
    sizes = zip(core_sizes(n, m, elements), equations_sizes(m, elements), strict=True)
    reals, integers = (sum(parts) for parts in sizes)
    return reals, integers


@entry
def solve_bmf(system, settings, answer, reals, integers):
    """Fill rates, limits and levels; returns 0, or 1 where `fallbacks` are needed.

    The level of a resource is lambda_r, inf where it limits no task; if ``settings.warm`` it is
    also the first guess. Scratch: see ``scratch_sizes``.
    """
    n = system.start.size - 1
    m = system.capacity.size
    z = system.start[n]
    c, reals, integers = carve_core(n, m, z, reals, integers)
    equations = carve_equations(m, z, reals, integers)
    if settings.warm and solve_active(system, settings, answer, c, equations):
        return 0
    live = gather(system, answer, c)
    live = presolve(live, system, answer, c)
    cores = scale(live, system.weight, c)
    if live > 0:
        for r in range(cores):
            c.levels[r] = answer.level[c.origin[r]] if settings.warm else np.inf
        filling = FILL_LATER if settings.warm else FILL
        if not improve_levels(live, cores, filling, settings.aim, c, equations) <= settings.accept:
            return 1
        for j in range(live):
            i = c.task[j]
            answer.rate[i] = c.y[j] * c.ub[j]
            where = c.bottleneck[j]
            answer.limit[i] = c.reason[j] if where < 0 else c.origin[c.used[where]]
    for r in range(m):
        answer.level[r] = np.inf
    for r in range(cores):
        answer.level[c.origin[r]] = c.levels[r]
    return 0
