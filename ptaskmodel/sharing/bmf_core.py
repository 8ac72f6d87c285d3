# mypy: allow-untyped-defs
"""Bottleneck max fairness: every task is at its bound or has a bottleneck of its own.

A rate allocation x is bottleneck max fair (T. Bonald and J. Roberts, Multi-resource fairness:
objectives, algorithms and performance, SIGMETRICS 2015) when no capacity is exceeded and every task
is at its bound, fills a FATPIPE, or uses a full SHARED resource on which its m_ri x_i / p_i is the
largest of all users (m: share coefficient, the usage a unless given; p: weight).

Equivalently there is a *level* lambda_r > 0 for each SHARED resource, infinite where nobody is
limited, with

    x_i = min(bound_i, min over r of lambda_r p_i / m_ri),   load_r = sum of a_ri x_i <= C_r,

and load_r = C_r wherever a task *sits*, that is, has its minimum. A solution always exists,
whatever m: over a box of levels wide enough, C - load(lambda) is continuous, so the complementarity
problem has a solution (Hartman and Stampacchia), and lambda_r = 0 is none since r is then empty. It
need not be unique, and since raising one level can only lower the best level of another, simple
iterations may cycle. The ladder:

* ``bmf_presolve``: fold FATPIPEs and single users into bounds; drop resources that cannot be
  filled; fix tasks whose bound is below the share that they get in any case, C_r p_i / (m_ri W_r)
  with W_r = sum of a_rj p_j / m_rj; scale the rest to C = 1, bound = 1;
* ``bmf_levels``: water filling of one resource after the other, then the levels that fill every
  resource where somebody sits, seats fixed (a linear system: Newton's method on the levels), until
  nobody wants to sit elsewhere. This solves nearly everything;
* ``bmf_hard``: damped water filling, path following, exact arithmetic.

With the levels of a system much like this one, ``bmf_active`` comes before all that: only resources
that limit somebody, a small part of them, have a level; it goes on from there.

Elements of a row that name a resource twice count as one: their usages and shares are summed on a
SHARED resource, the largest counts on a FATPIPE.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import entry
from ptaskmodel.sharing.bmf_active import solve_active
from ptaskmodel.sharing.bmf_levels import FILL, FILL_LATER, carve_seats, climb, seats_sizes
from ptaskmodel.sharing.bmf_presolve import carve_core, core_sizes, gather, presolve, scale


def scratch_sizes(n: int, m: int, elements: int) -> tuple[int, int]:
    """Lengths of the float64 and int64 scratch arrays of the kernel."""
    sizes = zip(core_sizes(n, m, elements), seats_sizes(m, elements), strict=True)
    reals, integers = (sum(parts) for parts in sizes)
    return reals, integers


@entry
def solve_bmf(system, settings, answer, reals, integers):
    """Fill rates, limits and levels; returns 0, or 1 where ``bmf_hard`` is needed.

    The level of a resource is lambda_r, inf where nobody sits; if ``settings.warm`` it is also the
    first guess. Scratch: see ``scratch_sizes``.
    """
    n = system.start.size - 1
    m = system.capacity.size
    z = system.start[n]
    c, reals, integers = carve_core(n, m, z, reals, integers)
    seats = carve_seats(m, z, reals, integers)
    if settings.warm and solve_active(system, settings, answer, c, seats):
        return 0
    live = gather(system, answer, c)
    live = presolve(live, system, answer, c)
    cores = scale(live, system.weight, c)
    if live > 0:
        for r in range(cores):
            c.levels[r] = answer.level[c.origin[r]] if settings.warm else np.inf
        filling = FILL_LATER if settings.warm else FILL
        if not climb(live, cores, filling, settings.aim, c, seats) <= settings.accept:
            return 1
        for j in range(live):
            i = c.task[j]
            answer.rate[i] = c.y[j] * c.ub[j]
            where = c.seat[j]
            answer.limit[i] = c.reason[j] if where < 0 else c.origin[c.used[where]]
    for r in range(m):
        answer.level[r] = np.inf
    for r in range(cores):
        answer.level[c.origin[r]] = c.levels[r]
    return 0
