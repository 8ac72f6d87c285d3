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
iterations may cycle. The ladder, here and in ``bmf_hard``:

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

import numpy as np

from ptaskmodel.jit import entry, jit
from ptaskmodel.sharing.bmf_presolve import gather, presolve, scale
from ptaskmodel.sharing.problem import Allocation, FloatArray, IntArray, SharingProblem

# Relative residual aimed at, and the largest accepted from this kernel.
AIM, ACCEPT = 1e-11, 1e-10
MAX_STEPS = 40
# Steps before each gets more sweeps of water filling.
PATIENCE = 10
# Larger systems of levels are solved by Gauss-Seidel sweeps as long as these converge.
DENSE, DENSE_LIMIT = 32, 400
MAX_SWEEPS = 100


def bmf(problem: SharingProblem) -> Allocation:
    """A bottleneck max fair allocation (rates in 1/s); always found."""
    rates = np.empty(problem.n)
    limits = np.empty(problem.n, np.int64)
    levels = np.full(problem.m, np.inf)
    status = solve_bmf(*arguments(problem), levels, False, rates, limits, *scratch(problem))
    if status != 0:
        from ptaskmodel.sharing.bmf_hard import bmf_hard

        return bmf_hard(problem)
    return Allocation(problem, "bmf", rates, limits)


def arguments(problem: SharingProblem) -> tuple:
    """The fields of a problem in the order of the kernel's arguments."""
    return (
        problem.start,
        problem.resource,
        problem.usage,
        problem.share,
        problem.capacity,
        problem.fatpipe,
        problem.bound,
        problem.weight,
    )


def scratch_sizes(n: int, m: int, elements: int) -> tuple[int, int]:
    """Lengths of the float64 and int64 scratch arrays of the kernel."""
    return 4 * m + 3 * n + 3 * elements + DENSE * (DENSE + 1), 6 * m + 5 * n + 4 * elements + 4


def scratch(problem: SharingProblem) -> tuple[FloatArray, IntArray]:
    """New scratch arrays for one problem."""
    reals, integers = scratch_sizes(problem.n, problem.m, problem.usage.size)
    return np.empty(reals), np.empty(integers, np.int64)


@entry
def solve_bmf(
    start, resource, usage, share, capacity, fatpipe, bound, weight, level, warm, rate, limit,
    reals, integers,
):  # fmt: skip
    """Fill ``rate``, ``limit`` and ``level``; returns 0, or 1 where ``bmf_hard`` is needed.

    ``level`` (m) is lambda_r, inf where nobody sits; with ``warm`` it is also the first guess.
    Scratch: see ``scratch_sizes``.
    """
    n = start.size - 1
    m = capacity.size
    z = start[n]
    left = reals[:m]
    fair = reals[m : 2 * m]
    levels = reals[2 * m : 3 * m]
    load = reals[3 * m : 4 * m]
    ub = reals[4 * m : 4 * m + n]
    y = reals[4 * m + n : 4 * m + 2 * n]
    seat_t = reals[4 * m + 2 * n : 4 * m + 3 * n]
    f = 4 * m + 3 * n
    a = reals[f : f + z]
    t = reals[f + z : f + 2 * z]
    other_a = reals[f + 2 * z : f + 3 * z]
    matrix = reals[f + 3 * z : f + 3 * z + DENSE * (DENSE + 1)]
    place = integers[:m]
    origin = integers[m : 2 * m]
    seats = integers[2 * m : 3 * m]
    first_user = integers[3 * m : 4 * m + 1]
    first_other = integers[4 * m + 1 : 5 * m + 2]
    first_sitter = integers[5 * m + 2 : 6 * m + 3]
    g = 6 * m + 3
    row = integers[g : g + n + 1]
    task = integers[g + n + 1 : g + 2 * n + 1]
    reason = integers[g + 2 * n + 1 : g + 3 * n + 1]
    seat = integers[g + 3 * n + 1 : g + 4 * n + 1]
    sitter = integers[g + 4 * n + 1 : g + 5 * n + 1]
    g += 5 * n + 1
    used = integers[g : g + z]
    user = integers[g + z : g + 2 * z]
    element = integers[g + 2 * z : g + 3 * z]
    other = integers[g + 3 * z : g + 4 * z]

    live = gather(
        start, resource, usage, share, capacity, fatpipe, bound, rate, limit, place, row, task, ub,
        reason, used, a, t,
    )  # fmt: skip
    live = presolve(
        live,
        capacity,
        weight,
        rate,
        limit,
        left,
        fair,
        load,
        seats,
        row,
        task,
        ub,
        reason,
        used,
        a,
        t,
    )
    cores = scale(
        live, weight, left, place, origin, first_user, row, task, ub, used, a, t, user, element
    )
    if live > 0:
        for r in range(cores):
            levels[r] = level[origin[r]] if warm else np.inf
        filling = -1 if warm else 1
        residual = climb(
            live, cores, filling, levels, load, fair, y, a, t, row, seat, used, first_user,
            user, element, seats, first_other, first_sitter, other, other_a, sitter, seat_t, matrix,
        )  # fmt: skip
        if not residual <= ACCEPT:
            return 1
        for j in range(live):
            i = task[j]
            rate[i] = y[j] * ub[j]
            limit[i] = reason[j] if seat[j] < 0 else origin[used[seat[j]]]
    for r in range(m):
        level[r] = np.inf
    for r in range(cores):
        level[origin[r]] = levels[r]
    return 0


@jit
def climb(
    live, cores, filling, levels, load, slope, y, a, t, row, seat, used, first_user, user, element,
    seats, first_other, first_sitter, other, other_a, sitter, seat_t, matrix,
):  # fmt: skip
    """Water filling and Newton steps on the levels until nobody moves; returns the residual.

    The last step leaves the rates, seats and loads of its levels. ``filling`` 1: water filling
    before every Newton step; -1: not before the first few (the levels are a good guess); 0: never.
    Resources that overflow and limit nobody are opened in any case.
    """
    residual = np.inf
    for step in range(MAX_STEPS + 1):
        residual = sit(live, cores, levels, load, y, a, t, row, seat, used, seats)
        if residual <= AIM or step == MAX_STEPS:
            break
        opening = filling == 0 or (filling < 0 and step < PATIENCE)
        for _ in range(1 if opening or step < PATIENCE else 3):
            for r in range(cores):
                if (seats[r] > 0 and not opening) or (seats[r] == 0 and load[r] > 1.0 + AIM):
                    fill(r, levels, y, a, t, row, seat, used, first_user, user, element)
        k = list_seats(
            live, cores, slope, a, t, seat, used, first_user, user, element, seats, first_other,
            first_sitter, other, other_a, sitter, seat_t,
        )  # fmt: skip
        settled = k > DENSE and relax(
            cores,
            levels,
            y,
            seats,
            slope,
            first_other,
            first_sitter,
            other,
            other_a,
            sitter,
            seat_t,
        )
        if not settled and k <= DENSE_LIMIT:
            solve_levels(k, cores, live, levels, a, t, row, seat, used, seats, matrix)
    return residual


@jit
def sit(live, cores, levels, load, y, a, t, row, seat, used, seats):
    """Rates, seats (the element with the minimum, -1: the bound), loads; returns the residual."""
    for r in range(cores):
        load[r] = 0.0
        seats[r] = 0
    for j in range(live):
        least = 1.0
        where = -1
        for k in range(row[j], row[j + 1]):
            x = levels[used[k]] * t[k]
            if x < least:
                least = x
                where = k
        y[j] = least
        seat[j] = where
        if where >= 0:
            seats[used[where]] += 1
        for k in range(row[j], row[j + 1]):
            load[used[k]] += a[k] * least
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
def fill(r, levels, y, a, t, row, seat, used, first_user, user, element):
    """Give resource r the level that just fills it, the other levels as they are."""
    load = 0.0
    slope = 0.0
    for h in range(first_user[r], first_user[r + 1]):
        j = user[h]
        e = element[h]
        x = y[j]
        if seat[j] == e:
            x = 1.0
            where = -1
            for k in range(row[j], row[j + 1]):
                z = levels[used[k]] * t[k]
                if z < x and k != e:
                    x = z
                    where = k
            y[j] = x
            seat[j] = where
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
        for h in range(first_user[r], first_user[r + 1]):
            e = element[h]
            x = y[user[h]]
            if old * t[e] < x:
                slope += a[e] * t[e]
            else:
                room -= a[e] * x
        if slope > 0.0:
            new = room / slope
    levels[r] = old
    for h in range(first_user[r], first_user[r + 1]):
        j = user[h]
        e = element[h]
        if old * t[e] < y[j]:
            y[j] = old * t[e]
            seat[j] = e


@jit
def list_seats(
    live, cores, slope, a, t, seat, used, first_user, user, element, seats, first_other,
    first_sitter, other, other_a, sitter, seat_t,
):  # fmt: skip
    """Number the resources with sitters in ``seats`` (-1: none); list who sits there or elsewhere.

    Returns how many. ``first_other[c]`` and ``first_sitter[c]`` begin the lists of number c,
    ``slope[c]`` is the load that its sitters make per unit of its level.
    """
    for r in range(cores):
        seats[r] = -1
    for j in range(live):
        if seat[j] >= 0:
            seats[used[seat[j]]] = 0
    k = 0
    q = 0
    s = 0
    for r in range(cores):
        if seats[r] < 0:
            continue
        seats[r] = k
        first_other[k] = q
        first_sitter[k] = s
        slope[k] = 0.0
        for h in range(first_user[r], first_user[r + 1]):
            j = user[h]
            e = element[h]
            if seat[j] == e:
                sitter[s] = j
                seat_t[s] = t[e]
                slope[k] += a[e] * t[e]
                s += 1
            else:
                other[q] = j
                other_a[q] = a[e]
                q += 1
        k += 1
    first_other[k] = q
    first_sitter[k] = s
    return k


@jit
def relax(
    cores, levels, y, seats, slope, first_other, first_sitter, other, other_a, sitter, seat_t
):
    """Levels that fill every resource with sitters, by Gauss-Seidel sweeps; False: not settled."""
    for _ in range(MAX_SWEEPS):
        change = 0.0
        for r in range(cores):
            c = seats[r]
            if c >= 0:
                room = 1.0
                for h in range(first_other[c], first_other[c + 1]):
                    room -= other_a[h] * y[other[h]]
                old = levels[r]
                new = max(room / slope[c], 0.02 * old)
                change = max(change, abs(new - old) / old)
                levels[r] = new
                for h in range(first_sitter[c], first_sitter[c + 1]):
                    y[sitter[h]] = new * seat_t[h]
        if change < 2e-13:
            return True
    return False


@partial(jit, allocates=True)
def solve_levels(k, cores, live, levels, a, t, row, seat, used, seats, matrix):
    """Levels that fill every resource with sitters, by elimination; steps are cut to [1/20, 20].

    The unknowns are the factors by which levels change, so that the system is well scaled.
    """
    system = matrix if k <= DENSE else np.empty(k * (k + 1))
    width = k + 1
    for c in range(k * width):
        system[c] = 0.0
    for c in range(k):
        system[c * width + k] = 1.0
    for j in range(live):
        e = seat[j]
        for h in range(row[j], row[j + 1]):
            c = seats[used[h]]
            if c >= 0:
                if e < 0:
                    system[c * width + k] -= a[h]
                else:
                    system[c * width + seats[used[e]]] += a[h] * t[e] * levels[used[e]]
    if eliminate(system, k, width):
        for r in range(cores):
            c = seats[r]
            if c >= 0:
                factor = system[c * width + k]
                if not factor > 0.05:
                    factor = 0.05
                levels[r] *= min(factor, 20.0)


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
