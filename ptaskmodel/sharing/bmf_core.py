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
iterations may cycle. The ladder, here, in ``bmf_presolve`` and in ``bmf_hard``:

* *presolve*: fold FATPIPEs and single users into bounds; drop resources that cannot be filled; fix
  tasks whose bound is below the share that they get in any case, C_r p_i / (m_ri W_r) with
  W_r = sum of a_rj p_j / m_rj; scale the rest to C = 1, bound = 1;
* *this kernel*: water filling of one resource after the other, then the levels that fill every
  resource where somebody sits, seats fixed (a linear system: Newton's method on the levels), until
  nobody wants to sit elsewhere. This solves nearly everything;
* ``bmf_hard``: damped water filling, path following, exact arithmetic.

Elements of a row that name a resource twice count as one: their usages and shares are summed on a
SHARED resource, the largest counts on a FATPIPE.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from ptaskmodel.jit import entry, jit, views
from ptaskmodel.sharing.arrays import carve
from ptaskmodel.sharing.bmf_presolve import carve_core, core_sizes, gather, presolve, scale

MAX_STEPS = 40
# Steps before each gets more sweeps of water filling.
PATIENCE = 10
# Larger systems of levels are solved by Gauss-Seidel sweeps as long as these converge.
DENSE, DENSE_LIMIT = 32, 400
MAX_SWEEPS = 100
# Relative change of every level in a sweep at which the sweeps have converged.
SETTLED = 2e-13
# Whether water filling comes before a Newton step: always, not before the first few (the levels
# are a good guess), never.
FILL, FILL_LATER, FILL_NEVER = np.arange(3)


class Seats(NamedTuple):
    """Of the resources where somebody sits, numbered: who sits there, and who sits elsewhere."""

    first_other: np.ndarray
    first_sitter: np.ndarray
    other: np.ndarray
    other_a: np.ndarray
    sitter: np.ndarray
    sitter_t: np.ndarray
    matrix: np.ndarray


def scratch_sizes(n: int, m: int, elements: int) -> tuple[int, int]:
    """Lengths of the float64 and int64 scratch arrays of the kernel."""
    reals, integers = core_sizes(n, m, elements)
    return reals + n + elements + DENSE * (DENSE + 1), integers + 2 * m + n + elements + 2


@views
def carve_seats(n, m, z, reals, integers):
    """The scratch that `carve_core` leaves as `Seats`."""
    sitter_t, reals = carve(reals, n)
    other_a, reals = carve(reals, z)
    matrix, reals = carve(reals, DENSE * (DENSE + 1))
    first_other, integers = carve(integers, m + 1)
    first_sitter, integers = carve(integers, m + 1)
    sitter, integers = carve(integers, n)
    other, integers = carve(integers, z)
    return Seats(first_other, first_sitter, other, other_a, sitter, sitter_t, matrix)


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
    lists = carve_seats(n, m, z, reals, integers)
    live = gather(system, answer, c)
    live = presolve(live, system, answer, c)
    cores = scale(live, system.weight, c)
    if live > 0:
        for r in range(cores):
            c.levels[r] = answer.level[c.origin[r]] if settings.warm else np.inf
        filling = FILL_LATER if settings.warm else FILL
        if not climb(live, cores, filling, settings.aim, c, lists) <= settings.accept:
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


@jit
def climb(live, cores, filling, aim, c, lists):
    """Water filling and Newton steps on the levels until nobody moves; returns the residual.

    The last step leaves the rates, seats and loads of its levels. Resources that overflow and limit
    nobody are filled whatever ``filling`` says.
    """
    residual = np.inf
    for step in range(MAX_STEPS + 1):
        residual = sit(live, cores, c)
        if residual <= aim or step == MAX_STEPS:
            break
        opening = filling == FILL_NEVER or (filling == FILL_LATER and step < PATIENCE)
        for _ in range(1 if opening or step < PATIENCE else 3):
            for r in range(cores):
                if (c.seats[r] > 0 and not opening) or (c.seats[r] == 0 and c.load[r] > 1.0 + aim):
                    fill(r, c)
        k = list_seats(live, cores, c, lists)
        settled = k > DENSE and relax(cores, c, lists)
        if not settled and k <= DENSE_LIMIT:
            solve_levels(k, cores, live, c, lists.matrix)
    return residual


@jit
def sit(live, cores, c):
    """Rates, seats (the element with the minimum, -1: the bound), loads; returns the residual."""
    levels, load, seats, used, t = c.levels, c.load, c.seats, c.used, c.t
    for r in range(cores):
        load[r] = 0.0
        seats[r] = 0
    for j in range(live):
        least = 1.0
        where = -1
        for k in range(c.row[j], c.row[j + 1]):
            x = levels[used[k]] * t[k]
            if x < least:
                least = x
                where = k
        c.y[j] = least
        c.seat[j] = where
        if where >= 0:
            seats[used[where]] += 1
        for k in range(c.row[j], c.row[j + 1]):
            load[used[k]] += c.a[k] * least
    residual = 0.0
    for r in range(cores):
        excess = load[r] - 1.0
        if seats[r] > 0:
            excess = abs(excess)
        else:
            levels[r] = np.inf
        residual = max(residual, excess)
    return residual


@jit
def fill(r, c):
    """Give resource r the level that just fills it, the other levels as they are."""
    levels, y, a, t = c.levels, c.y, c.a, c.t
    first, last = c.first_user[r], c.first_user[r + 1]
    load = 0.0
    slope = 0.0
    for h in range(first, last):
        j = c.user[h]
        e = c.element[h]
        x = y[j]
        if c.seat[j] == e:
            x = 1.0
            where = -1
            for k in range(c.row[j], c.row[j + 1]):
                z = levels[c.used[k]] * t[k]
                if z < x and k != e:
                    x = z
                    where = k
            y[j] = x
            c.seat[j] = where
        load += a[e] * x
        slope += a[e] * t[e]
    levels[r] = np.inf
    if load <= 1.0:
        return
    # The load is concave in the level: from below, Newton's method rises to the root in few steps.
    new = 1.0 / slope
    old = 0.0
    while new > old * (1.0 + 1e-15):
        old = new
        room = 1.0
        slope = 0.0
        for h in range(first, last):
            e = c.element[h]
            x = y[c.user[h]]
            if old * t[e] < x:
                slope += a[e] * t[e]
            else:
                room -= a[e] * x
        if slope > 0.0:
            new = room / slope
    levels[r] = old
    for h in range(first, last):
        j = c.user[h]
        e = c.element[h]
        if old * t[e] < y[j]:
            y[j] = old * t[e]
            c.seat[j] = e


@jit
def list_seats(live, cores, c, lists):
    """Number the resources with sitters in ``seats`` (-1: none); list who sits there or elsewhere.

    Returns how many. ``first_other[p]`` and ``first_sitter[p]`` begin the lists of number p,
    ``slope[p]`` is the load that its sitters make per unit of its level.
    """
    seats = c.seats
    for r in range(cores):
        seats[r] = -1
    for j in range(live):
        if c.seat[j] >= 0:
            seats[c.used[c.seat[j]]] = 0
    p = 0
    q = 0
    s = 0
    for r in range(cores):
        if seats[r] < 0:
            continue
        seats[r] = p
        lists.first_other[p] = q
        lists.first_sitter[p] = s
        c.slope[p] = 0.0
        for h in range(c.first_user[r], c.first_user[r + 1]):
            j = c.user[h]
            e = c.element[h]
            if c.seat[j] == e:
                lists.sitter[s] = j
                lists.sitter_t[s] = c.t[e]
                c.slope[p] += c.a[e] * c.t[e]
                s += 1
            else:
                lists.other[q] = j
                lists.other_a[q] = c.a[e]
                q += 1
        p += 1
    lists.first_other[p] = q
    lists.first_sitter[p] = s
    return p


@jit
def relax(cores, c, lists):
    """Levels that fill every resource with sitters, by Gauss-Seidel sweeps; False: not settled."""
    y = c.y
    for _ in range(MAX_SWEEPS):
        change = 0.0
        for r in range(cores):
            p = c.seats[r]
            if p >= 0:
                room = 1.0
                for h in range(lists.first_other[p], lists.first_other[p + 1]):
                    room -= lists.other_a[h] * y[lists.other[h]]
                old = c.levels[r]
                new = max(room / c.slope[p], 0.02 * old)
                change = max(change, abs(new - old) / old)
                c.levels[r] = new
                for h in range(lists.first_sitter[p], lists.first_sitter[p + 1]):
                    y[lists.sitter[h]] = new * lists.sitter_t[h]
        if change < SETTLED:
            return True
    return False


@partial(jit, allocates=True)
def solve_levels(k, cores, live, c, matrix):
    """Levels that fill every resource with sitters, by elimination; steps are cut to [1/20, 20].

    The unknowns are the factors by which levels change, so that the system is well scaled.
    """
    system = matrix if k <= DENSE else np.empty(k * (k + 1))
    width = k + 1
    for p in range(k * width):
        system[p] = 0.0
    for p in range(k):
        system[p * width + k] = 1.0
    for j in range(live):
        e = c.seat[j]
        for h in range(c.row[j], c.row[j + 1]):
            p = c.seats[c.used[h]]
            if p >= 0:
                if e < 0:
                    system[p * width + k] -= c.a[h]
                else:
                    r = c.used[e]
                    system[p * width + c.seats[r]] += c.a[h] * c.t[e] * c.levels[r]
    if eliminate(system, k, width):
        for r in range(cores):
            p = c.seats[r]
            if p >= 0:
                factor = system[p * width + k]
                if not factor > 0.05:
                    factor = 0.05
                c.levels[r] *= min(factor, 20.0)


@jit
def eliminate(system, k, width):
    """Solve a k x k system in place, right-hand sides in columns k and on; False: singular."""
    for c in range(k):
        pivot = c
        for r in range(c + 1, k):
            if abs(system[r * width + c]) > abs(system[pivot * width + c]):
                pivot = r
        if not abs(system[pivot * width + c]) > 1e-13:
            return False
        if pivot != c:
            for q in range(c, width):
                x = system[c * width + q]
                system[c * width + q] = system[pivot * width + q]
                system[pivot * width + q] = x
        for r in range(c + 1, k):
            factor = system[r * width + c]
            if factor != 0.0:
                factor /= system[c * width + c]
                for q in range(c + 1, width):
                    system[r * width + q] -= factor * system[c * width + q]
    for c in range(k - 1, -1, -1):
        for column in range(k, width):
            x = system[c * width + column]
            for q in range(c + 1, k):
                x -= system[c * width + q] * system[q * width + column]
            system[c * width + column] = x / system[c * width + c]
    return True
