# mypy: allow-untyped-defs
"""The fallback chain of bottleneck max fairness, for problems that the kernel cannot solve.

`solver` defines the problem. The fallbacks work on the presolved and scaled problem (C = 1, bound =
1). The residual of the levels is checked after each before the next is tried:

* damped water filling: levels move a part of the way, geometrically, then Newton steps;
* *path following*: add the constraint y_i <= time d_i with random d_i > 0. At time 0 it binds every
  task and the solution is unique. For generic data the solutions form a piecewise linear path.
  Time may decrease on it, but the path is bounded and cannot return to its start, so it reaches a
  point where the constraint binds no task: a solution. The data are perturbed to be generic; the
  levels for the resulting bottlenecks are then computed with the true data;
* the same path in rational arithmetic, with data perturbed by 1e-12, for small problems;
* path following again, with a far higher limit of steps.

The order of tasks and resources and the seeds are fixed, so equal problems have equal solutions. In
exact arithmetic the path always ends, but its length can be exponential. If all fallbacks fail, the
best rates seen are scaled until they are feasible, and the certificate of the allocation says by
how much a task misses its bottleneck. No problem is known for which that happens.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.sharing.arrays import Answer, Settings, System
from ptaskmodel.sharing.bottleneck_max_fairness.active_set import (
    FILL_NEVER,
    carve_equations,
    fill,
    find_bottlenecks,
    improve_levels,
    list_equations,
    solve_levels,
)
from ptaskmodel.sharing.bottleneck_max_fairness.homotopy import (
    FAILED,
    PathProblem,
    exact_levels,
    follow,
)
from ptaskmodel.sharing.bottleneck_max_fairness.presolve import carve_core, gather, presolve, scale
from ptaskmodel.sharing.bottleneck_max_fairness.solver import scratch_sizes
from ptaskmodel.sharing.problem import Allocation, FloatArray, IntArray, SharingProblem

# By how much levels move: 1 / 2**halvings of the way.
DAMPING = (1, 2, 3, 5)
# Relative perturbations of the data of successive paths.
PERTURBATIONS = (1e-6, 1e-9, 1e-4, 1e-11) * 3
# Exact arithmetic is for problems with at most this many elements.
MAX_EXACT = 150


def solve_by_fallbacks(problem: SharingProblem) -> Allocation:
    """A bottleneck max fair allocation by the fallback chain."""
    reduced = _ReducedProblem(problem)
    for fallback in (_damped, _paths, _exact, _long_paths):
        if fallback(reduced):
            break
    else:
        reduced.make_feasible()
    rates, limits = reduced.answer()
    return Allocation(problem, "bmf", rates, limits)


class _ReducedProblem:
    """The presolved and scaled problem, and the best levels found so far."""

    def __init__(self, problem: SharingProblem) -> None:
        n, m, z = problem.n, problem.m, problem.usage.size
        system = System.of(problem)
        answer = Answer.room(problem)
        self.rates, self.limits = answer.rate, answer.limit
        reals, integers = scratch_sizes(n, m, z)
        c, rest, others = carve_core(n, m, z, np.empty(reals), np.empty(integers, np.int64))
        self.equations = carve_equations(m, z, rest, others)
        live = presolve(gather(system, answer, c), system, answer, c)
        self.n, self.m = live, scale(live, system.weight, c)
        z = c.row[live]
        c = c._replace(
            row=c.row[: live + 1], used=c.used[:z], a=c.a[:z], t=c.t[:z],
            first_user=c.first_user[: self.m + 1], user=c.user[:z], element=c.element[:z],
            levels=c.levels[: self.m], load=c.load[: self.m], slope=c.slope[: self.m],
            n_limited=c.n_limited[: self.m + 1], y=c.y[:live], bottleneck=c.bottleneck[:live],
        )  # fmt: skip
        # Levels in units such that 1 limits no task, for well scaled linear systems.
        least = np.full(self.m, np.inf)
        np.minimum.at(least, c.used, c.t)
        c.t[:] /= least[c.used]
        c.levels[:] = np.inf
        self.arrays = c
        self.settings = Settings()
        self.best = np.inf
        self.best_levels = c.levels.copy()

    def check(self) -> bool:
        """Whether the levels solve the system; the best are kept."""
        residual, _, _ = find_bottlenecks(self.n, self.m, self.settings.aim, self.arrays)
        if residual < self.best:
            self.best = residual
            self.best_levels = self.arrays.levels.copy()
        return residual <= self.settings.accept

    def newton(self) -> bool:
        """Newton steps from the levels; whether these then solve the system."""
        improve_levels(self.n, self.m, FILL_NEVER, self.settings.aim, self.arrays, self.equations)
        return self.check()

    def solve_bottlenecks(self) -> bool:
        """The levels of the present bottlenecks, from close by; whether these solve the system."""
        k = list_equations(self.n, self.m, self.arrays, self.equations)
        self.arrays.levels[self.arrays.n_limited[: self.m] < 0] = np.inf
        solve_levels(k, self.m, self.n, self.arrays, np.empty(k * (k + 1)))
        return self.check()

    def make_feasible(self) -> None:
        """Lower the best levels until no capacity is exceeded."""
        self.arrays.levels[:] = self.best_levels
        self.check()
        self.arrays.y[:] /= max(1.0, float(np.max(self.arrays.load)))

    def answer(self) -> tuple[FloatArray, IntArray]:
        """Rates and limits of all tasks of the problem."""
        c = self.arrays
        for j in range(self.n):
            i = c.task[j]
            self.rates[i] = c.y[j] * c.ub[j]
            bottleneck = c.bottleneck[j]
            self.limits[i] = c.reason[j] if bottleneck < 0 else c.origin[c.used[bottleneck]]
        return self.rates, self.limits


def _damped(reduced: _ReducedProblem) -> bool:
    """Damped water filling, then Newton steps."""
    c = reduced.arrays
    c.levels[:] = 1.0 / np.bincount(c.used, c.a * c.t, minlength=reduced.m)
    for number, halvings in enumerate(DAMPING, 1):
        levels = c.levels.copy()
        reduced.check()
        c.levels[:] = levels
        for _ in range(30 * number):
            if damp(halvings, c) < 1e-9:
                break
        levels = c.levels.copy()
        if reduced.newton():
            return True
        c.levels[:] = levels
    return False


def _paths(reduced: _ReducedProblem) -> bool:
    """Path following with the usual limit of steps."""
    patience = 200 * (reduced.n + reduced.m) + 2000
    return any(_path(reduced, e, s, patience) for s, e in enumerate(PERTURBATIONS))


def _long_paths(reduced: _ReducedProblem) -> bool:
    """Path following with enough steps for exponential paths."""
    patience = 20_000 * (reduced.n + reduced.m)
    return any(_path(reduced, e, s, patience) for s, e in enumerate(PERTURBATIONS, 100))


def _path(reduced: _ReducedProblem, perturbation: float, seed: int, patience: int) -> bool:
    """Follow one path, then solve its bottlenecks with the true data."""
    random = np.random.default_rng(seed)
    c = reduced.arrays

    def disturbed(values: FloatArray) -> FloatArray:
        return values * (1.0 + perturbation * random.random(values.size))

    problem = PathProblem(
        c.row, c.used, disturbed(c.a), disturbed(c.t), c.first_user, c.user, c.element,
        disturbed(np.ones(reduced.m)), disturbed(np.ones(reduced.n)),
        1.0 + random.random(reduced.n), c.bottleneck, c.levels,
    )  # fmt: skip
    if follow(problem, patience) == FAILED:
        return False
    levels = c.levels.copy()
    if reduced.solve_bottlenecks():
        return True
    c.levels[:] = levels
    return reduced.newton()


def _exact(reduced: _ReducedProblem) -> bool:
    """The path in rational arithmetic."""
    c = reduced.arrays
    if c.a.size > MAX_EXACT:
        return False
    levels = exact_levels(c.row, c.used, c.a, c.t, reduced.m)
    if levels is None:
        return False
    c.levels[:] = levels
    return reduced.check()


def prepare_kernels() -> None:
    """Use the kernels of fallbacks that few problems reach (see `kernels.building`)."""
    reduced = _ReducedProblem(SharingProblem.from_dense([[2.0, 1.0], [1.0, 2.0]], 1.0))
    for fallback in (_damped, _paths):
        fallback(reduced)
    reduced.solve_bottlenecks()


@jit
def damp(halvings, c):
    """One sweep of damped water filling; returns the largest relative change of a level.

    Levels go 1 / 2**halvings of the way, geometrically: by roots, which are equal everywhere.
    """
    levels, y, first_user, user, element = c.levels, c.y, c.first_user, c.user, c.element
    change = 0.0
    for r in range(levels.size):
        old = levels[r]
        fill(r, c)
        new = levels[r]
        if new == np.inf:
            # Not filled: the level that its users reach, raised by what is left.
            load = 0.0
            new = 0.0
            for h in range(first_user[r], first_user[r + 1]):
                load += c.a[element[h]] * y[user[h]]
                new = max(new, y[user[h]] / c.t[element[h]])
            new /= max(load, 0.25)
        for _ in range(halvings):
            new = np.sqrt(old) * np.sqrt(new)
        change = max(change, abs(new - old) / old)
        levels[r] = new
        for h in range(first_user[r], first_user[r + 1]):
            j = user[h]
            y[j] = 1.0
            c.bottleneck[j] = -1
            for k in range(c.row[j], c.row[j + 1]):
                x = levels[c.used[k]] * c.t[k]
                if x < y[j]:
                    y[j] = x
                    c.bottleneck[j] = k
    return change
