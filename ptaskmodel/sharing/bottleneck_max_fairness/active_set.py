# mypy: allow-untyped-defs, disable-error-code="assignment"
"""Levels of a reduced problem: fix which resource limits each task, solve, and repeat.

`solver` defines the problem. If the bottlenecks are fixed, a task j that resource s limits has the
rate lambda_s t_js. The load of r is then slope_r lambda_r + the sum of w_rs lambda_s over its users
with another bottleneck s (w = a_rj t_js) + the rates of those at their bound, so sweeps need only
the levels. (Sparse elimination, in the order of fewest products, takes twice as long as sweeps on
75 levels.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ptaskmodel.kernels.decorators import jit, views
from ptaskmodel.sharing.arrays import carve

MAX_STEPS = 40
# Steps before each gets more sweeps of water filling.
PATIENCE = 10
# Few levels are found by elimination; more by sweeps, and by elimination if these do not converge.
FEW, DENSE_LIMIT = 8, 400
MAX_SWEEPS = 100
# Equations are in order of their number of terms, up to this one.
MANY_TERMS = 32
# Sweeps have converged when no level changes more, relatively: while bottlenecks still change, in
# proportion to the residual.
SETTLED, SETTLED_PART = 2e-13, 1e-4
# The bottleneck of a task before the first step.
UNKNOWN = -2
# Whether water filling comes before a Newton step: always, not before the first few (the levels
# are a good guess), never.
FILL, FILL_LATER, FILL_NEVER = np.arange(3)


class LevelEquations(NamedTuple):
    """The equations of the resources that limit a task, those with the fewest terms first.

    A level is what is fixed less the sum of its terms times `inverse`.
    """

    where: np.ndarray  # the resource
    first: np.ndarray  # of its terms, one for each user with another bottleneck
    last: np.ndarray
    fixed: np.ndarray
    inverse: np.ndarray  # 1 / load of the tasks that it limits, per unit of level
    left: np.ndarray  # of each resource: what those at their bound leave
    end: np.ndarray  # and the end of its terms
    source: np.ndarray  # of each term: the resource whose level it is a part of
    w: np.ndarray
    places: np.ndarray
    matrix: np.ndarray


def equations_sizes(m: int, z: int) -> tuple[int, int]:
    """Lengths of the float64 and int64 arrays that `carve_equations` divides."""
    return 3 * m + z + matrix_size(m), 4 * m + z + MANY_TERMS + 2


@jit
def matrix_size(m):
    """Room for the largest system of equations, and their right-hand sides, to be eliminated."""
    k = min(m, DENSE_LIMIT)
    return k * (k + 1)


@views
def carve_equations(m, z, reals, integers):
    """Room for the `LevelEquations` of m resources with z elements."""
    fixed, reals = carve(reals, m)
    inverse, reals = carve(reals, m)
    left, reals = carve(reals, m)
    w, reals = carve(reals, z)
    matrix, reals = carve(reals, matrix_size(m))
    where, integers = carve(integers, m)
    first, integers = carve(integers, m)
    last, integers = carve(integers, m)
    end, integers = carve(integers, m)
    places, integers = carve(integers, MANY_TERMS + 2)
    source, integers = carve(integers, z)
    return LevelEquations(where, first, last, fixed, inverse, left, end, source, w, places, matrix)


@jit
def improve_levels(live, cores, filling, aim, c, equations):
    """Water filling and Newton steps on the levels until no task moves; returns the residual.

    The last step leaves the rates, bottlenecks and loads of its levels. Resources that overflow and
    limit no task are filled whatever ``filling`` says.
    """
    residual = np.inf
    k = 0
    for j in range(live):
        c.bottleneck[j] = UNKNOWN
    for step in range(MAX_STEPS + 1):
        residual, moved, over = find_bottlenecks(live, cores, aim, c)
        if residual <= aim or step == MAX_STEPS:
            break
        opening = filling == FILL_NEVER or (filling == FILL_LATER and step < PATIENCE)
        if over or not opening:
            moved = True
            for _ in range(1 if opening or step < PATIENCE else 3):
                for r in range(cores):
                    limits = c.n_limited[r] > 0
                    if (limits and not opening) or (not limits and c.load[r] > 1.0 + aim):
                        fill(r, c)
        if moved:
            k = list_equations(live, cores, c, equations)
        settled = k > FEW and relax(k, max(SETTLED, SETTLED_PART * residual), c, equations)
        if not settled and k <= DENSE_LIMIT:
            if not moved:  # `find_bottlenecks` has replaced their numbers by counts of tasks
                list_equations(live, cores, c, equations)
            solve_levels(k, cores, live, c, equations.matrix)
    return residual


@jit
def find_bottlenecks(live, cores, aim, c):
    """Rates, bottlenecks (the element with the minimum, -1: the bound) and loads of the levels.

    Returns the residual, whether a task moved, and whether a resource that limits no task is
    overloaded.
    """
    levels, load, n_limited, used, t = c.levels, c.load, c.n_limited, c.used, c.t
    for r in range(cores):
        load[r] = 0.0
        n_limited[r] = 0
    n_limited[cores] = 0
    moved = 0
    for j in range(live):
        first = np.uint64(c.row[j])
        last = np.uint64(c.row[j + 1])
        least = 1.0
        where = -1
        at = cores
        for k in range(first, last):  # without branches: none could be foreseen
            r = used[k]
            x = levels[np.uint64(r)] * t[k]
            less = x < least
            where = np.int64(k) if less else where
            at = r if less else at
            least = x if less else least
        c.y[j] = least
        moved |= c.bottleneck[j] ^ where
        c.bottleneck[j] = where
        n_limited[np.uint64(at)] += 1
        for k in range(first, last):
            load[np.uint64(used[k])] += c.a[k] * least
    residual = 0.0
    over = False
    for r in range(cores):
        excess = load[r] - 1.0
        if n_limited[r] > 0:
            excess = abs(excess)
        else:
            levels[r] = np.inf
            over = over or excess > aim
        residual = max(residual, excess)
    return residual, moved != 0, over


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
        if c.bottleneck[j] == e:
            x = 1.0
            where = -1
            for k in range(c.row[j], c.row[j + 1]):
                z = levels[c.used[k]] * t[k]
                if z < x and k != e:
                    x = z
                    where = k
            y[j] = x
            c.bottleneck[j] = where
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
            c.bottleneck[j] = e


@jit
def list_equations(live, cores, c, equations):
    """Write the equations of the resources that limit a task, numbered in ``c.n_limited``.

    Terms lie where the users of a resource are listed, so that one pass is enough. Returns how many
    equations there are.
    """
    row, used, a, t, bottleneck = c.row, c.used, c.a, c.t, c.bottleneck
    slope, left, last = c.slope, equations.left, equations.end
    source, w = equations.source, equations.w
    for r in range(cores):
        slope[r] = 0.0
        left[r] = 1.0
        last[r] = c.first_user[r]
    for j in range(live):
        e = bottleneck[j]
        if e >= 0:
            r = np.uint64(used[np.uint64(e)])
            rate = t[np.uint64(e)]
            for h in range(np.uint64(row[j]), np.uint64(row[j + 1])):
                p = np.uint64(used[h])
                i = last[p]
                last[p] = i + 1
                source[np.uint64(i)] = r
                w[np.uint64(i)] = a[h] * rate
            last[r] -= 1  # its own bottleneck is no term
            slope[r] += a[np.uint64(e)] * rate
        else:
            for h in range(np.uint64(row[j]), np.uint64(row[j + 1])):
                left[np.uint64(used[h])] -= a[h]
    return number_equations(cores, c, equations)


@jit
def number_equations(cores, c, equations):
    """Number the resources that limit a task; return how many there are.

    They are in order of their number of terms: loops of one length for long are predicted well.
    """
    places = equations.places
    for i in range(MANY_TERMS + 2):
        places[i] = 0
    for r in range(cores):
        if c.slope[r] > 0.0:
            places[min(equations.end[r] - c.first_user[r], MANY_TERMS) + 1] += 1
    for i in range(MANY_TERMS + 1):
        places[i + 1] += places[i]
    k = places[MANY_TERMS + 1]
    for r in range(cores):
        c.n_limited[r] = -1
        if c.slope[r] > 0.0:
            i = min(equations.end[r] - c.first_user[r], MANY_TERMS)
            p = places[i]
            places[i] = p + 1
            c.n_limited[r] = p
            equations.where[p] = r
            equations.first[p] = c.first_user[r]
            equations.last[p] = equations.end[r]
            equations.inverse[p] = 1.0 / c.slope[r]
            equations.fixed[p] = equations.left[r] * equations.inverse[p]
    return k


@jit
def relax(k, tolerance, c, equations):
    """Find levels that fill all resources that limit a task, by Gauss-Seidel sweeps.

    Returns whether they have settled.
    """
    levels, where, fixed, inverse = c.levels, equations.where, equations.fixed, equations.inverse
    first, last, source, w = equations.first, equations.last, equations.source, equations.w
    for _ in range(MAX_SWEEPS):
        moving = False
        for p in range(k):
            terms = 0.0
            for h in range(np.uint64(first[p]), np.uint64(last[p])):
                terms += w[h] * levels[np.uint64(source[h])]
            r = np.uint64(where[p])
            old = levels[r]
            x = fixed[p] - terms * inverse[p]
            x = x if x > 0.02 * old else 0.02 * old
            levels[r] = x
            moving |= abs(x - old) > tolerance * old
        if not moving:
            return True
    return False


@jit
def solve_levels(k, cores, live, c, system):
    """Find levels that fill all resources that limit a task, by elimination.

    Steps are cut to [1/20, 20].

    The unknowns are the factors by which levels change, so that the system is well scaled.
    """
    width = k + 1
    for p in range(k * width):
        system[p] = 0.0
    for p in range(k):
        system[p * width + k] = 1.0
    for j in range(live):
        e = c.bottleneck[j]
        for h in range(c.row[j], c.row[j + 1]):
            p = c.n_limited[c.used[h]]
            if p >= 0:
                if e < 0:
                    system[p * width + k] -= c.a[h]
                else:
                    r = c.used[e]
                    system[p * width + c.n_limited[r]] += c.a[h] * c.t[e] * c.levels[r]
    if eliminate(system, k, width):
        for r in range(cores):
            p = c.n_limited[r]
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
