# mypy: allow-untyped-defs
"""The levels of a scaled core: who sits where, and what fills every resource where somebody sits.

See ``bmf_core`` for the problem. With everybody in his seat, a task j on resource s has the rate
lambda_s t_js, so the load of r is slope_r lambda_r + the sum of w_rs lambda_s over the users that
sit elsewhere (w = a_rj t_js) + what those at their bound take: sweeps need the levels alone.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from ptaskmodel.jit import jit, views
from ptaskmodel.sharing.arrays import carve

MAX_STEPS = 40
# Steps before each gets more sweeps of water filling.
PATIENCE = 10
# Few levels are found by elimination; more by sweeps, and by elimination if these do not converge.
FEW, DENSE, DENSE_LIMIT = 8, 32, 400
MAX_SWEEPS = 100
# Sweeps have converged when no level changes more, relatively: while seats still move, in
# proportion to the residual.
SETTLED, SETTLED_PART = 2e-13, 1e-4
# The seat of a task that has not sat yet.
UNKNOWN = -2
# Whether water filling comes before a Newton step: always, not before the first few (the levels
# are a good guess), never.
FILL, FILL_LATER, FILL_NEVER = np.arange(3)


class Seats(NamedTuple):
    """Of each resource where somebody sits, numbered: its equation in the other levels."""

    where: np.ndarray  # the resource
    fixed: np.ndarray  # capacity that those at their bound leave
    inverse: np.ndarray  # 1 / load for a unit of its own level
    first: np.ndarray  # of its users that sit elsewhere
    source: np.ndarray  # where that is
    w: np.ndarray  # load for a unit of that level
    matrix: np.ndarray


def seats_sizes(m: int, z: int) -> tuple[int, int]:
    """Lengths of the float64 and int64 arrays that `carve_seats` divides."""
    return 2 * m + z + DENSE * (DENSE + 1), 2 * m + z + 1


@views
def carve_seats(m, z, reals, integers):
    """Room for the `Seats` of m resources with z elements."""
    fixed, reals = carve(reals, m)
    inverse, reals = carve(reals, m)
    w, reals = carve(reals, z)
    matrix, reals = carve(reals, DENSE * (DENSE + 1))
    where, integers = carve(integers, m)
    first, integers = carve(integers, m + 1)
    source, integers = carve(integers, z)
    return Seats(where, fixed, inverse, first, source, w, matrix)


@jit
def climb(live, cores, filling, aim, c, seats):
    """Water filling and Newton steps on the levels until nobody moves; returns the residual.

    The last step leaves the rates, seats and loads of its levels. Resources that overflow and limit
    nobody are filled whatever ``filling`` says.
    """
    residual = np.inf
    k = 0
    for j in range(live):
        c.seat[j] = UNKNOWN
    for step in range(MAX_STEPS + 1):
        residual, moved, over = sit(live, cores, aim, c)
        if residual <= aim or step == MAX_STEPS:
            break
        opening = filling == FILL_NEVER or (filling == FILL_LATER and step < PATIENCE)
        if over or not opening:
            moved = True
            for _ in range(1 if opening or step < PATIENCE else 3):
                for r in range(cores):
                    sits = c.seats[r] > 0
                    if (sits and not opening) or (not sits and c.load[r] > 1.0 + aim):
                        fill(r, c)
        if moved:
            k = list_seats(live, cores, c, seats)
        settled = k > FEW and relax(k, max(SETTLED, SETTLED_PART * residual), c.levels, seats)
        if not settled and k <= DENSE_LIMIT:
            number_seats(k, cores, c, seats)
            solve_levels(k, cores, live, c, seats.matrix)
    return residual


@jit
def sit(live, cores, aim, c):
    """Rates, seats (the element with the minimum, -1: the bound) and loads of the levels.

    Returns the residual, whether anybody moved, whether a resource where nobody sits overflows.
    """
    levels, load, seats, used, t = c.levels, c.load, c.seats, c.used, c.t
    for r in range(cores):
        load[r] = 0.0
        seats[r] = 0
    moved = False
    for j in range(live):
        least = 1.0
        where = -1
        for k in range(c.row[j], c.row[j + 1]):
            x = levels[used[k]] * t[k]
            if x < least:
                least = x
                where = k
        c.y[j] = least
        moved = moved or c.seat[j] != where
        c.seat[j] = where
        if where >= 0:
            seats[used[where]] += 1
        for k in range(c.row[j], c.row[j + 1]):
            load[used[k]] += c.a[k] * least
    residual = 0.0
    over = False
    for r in range(cores):
        excess = load[r] - 1.0
        if seats[r] > 0:
            excess = abs(excess)
        else:
            levels[r] = np.inf
            over = over or excess > aim
        residual = max(residual, excess)
    return residual, moved, over


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
def list_seats(live, cores, c, seats):
    """Write the equations of the resources where somebody sits; returns how many there are."""
    for r in range(cores):
        c.seats[r] = -1
    for j in range(live):
        if c.seat[j] >= 0:
            c.seats[c.used[c.seat[j]]] = 0
    p = 0
    q = 0
    for r in range(cores):
        if c.seats[r] < 0:
            continue
        seats.where[p] = r
        seats.first[p] = q
        slope = 0.0
        fixed = 1.0
        for h in range(c.first_user[r], c.first_user[r + 1]):
            e = c.element[h]
            sits_at = c.seat[c.user[h]]
            if sits_at == e:
                slope += c.a[e] * c.t[e]
            elif sits_at < 0:
                fixed -= c.a[e]
            else:
                seats.source[q] = c.used[sits_at]
                seats.w[q] = c.a[e] * c.t[sits_at]
                q += 1
        seats.inverse[p] = 1.0 / slope
        seats.fixed[p] = fixed
        p += 1
    seats.first[p] = q
    return p


@jit
def relax(k, tolerance, levels, seats):
    """Levels that fill every resource with sitters, by Gauss-Seidel sweeps; False: not settled."""
    for _ in range(MAX_SWEEPS):
        change = 0.0
        for p in range(k):
            room = seats.fixed[p]
            for h in range(seats.first[p], seats.first[p + 1]):
                room -= seats.w[h] * levels[seats.source[h]]
            old = levels[seats.where[p]]
            new = max(room * seats.inverse[p], 0.02 * old)
            if abs(new - old) > change * old:
                change = abs(new - old) / old
            levels[seats.where[p]] = new
        if change < tolerance:
            return True
    return False


@jit
def number_seats(k, cores, c, seats):
    """Put the number of a resource among those with sitters in ``seats`` (-1: it has none)."""
    for r in range(cores):
        c.seats[r] = -1
    for p in range(k):
        c.seats[seats.where[p]] = p


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
