# mypy: allow-untyped-defs
"""Bottleneck max fairness where the quick kernel gives up; see ``bmf`` for the problem.

The rungs of the ladder, on the presolved and scaled core (C = 1, bound = 1), each checked by the
residual of its levels before the next is tried:

* damped water filling: levels move a part of the way, geometrically, then Newton steps;
* *path following*: add the constraint y_i <= time d_i with random d_i > 0. At time 0 it holds
  everybody and the solution is unique; for generic data the solutions form a piecewise linear path
  on which time may go back, but which is bounded and cannot come back to its start, so it reaches a
  point where the constraint holds nobody: a solution. The data are perturbed to be generic, and the
  seats found are solved with the true data;
* the same path in rational arithmetic, with data perturbed by 1e-12, for small cores;
* path following again, with far longer patience.

The order of tasks and resources and the seeds are fixed: equal problems have equal answers. In
exact arithmetic the path always ends, but its length can be exponential. Should all rungs fail, the
best rates seen are scaled until they are feasible, and the certificate of the allocation says by
how much a task misses its bottleneck; no system is known to come to that.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.jit import jit
from ptaskmodel.sharing.bmf import (
    ACCEPT,
    DENSE,
    arguments,
    climb,
    fill,
    list_seats,
    sit,
    solve_levels,
)
from ptaskmodel.sharing.bmf_exact import exact_levels
from ptaskmodel.sharing.bmf_path import follow
from ptaskmodel.sharing.bmf_presolve import gather, presolve, scale
from ptaskmodel.sharing.problem import Allocation, FloatArray, IntArray, SharingProblem

DAMPING = (0.5, 0.25, 0.1, 0.04)
# Relative perturbations of the data of successive paths.
PERTURBATIONS = (1e-6, 1e-9, 1e-4, 1e-11) * 3
# Exact arithmetic is for cores with at most this many elements.
MAX_EXACT = 150


def bmf_hard(problem: SharingProblem) -> Allocation:
    """A bottleneck max fair allocation by the slow rungs."""
    core = _Core(problem)
    for rung in (_damped, _paths, _exact, _long_paths):
        if rung(core):
            break
    else:
        core.make_feasible()
    rates, limits = core.answer()
    return Allocation(problem, "bmf", rates, limits)


class _Core:
    """The presolved and scaled system, and the best levels found so far."""

    def __init__(self, problem: SharingProblem) -> None:
        n, m, z = problem.n, problem.m, problem.usage.size
        self.rates = np.empty(n)
        self.limits = np.empty(n, np.int64)
        self.task, self.reason = np.empty(n, np.int64), np.empty(n, np.int64)
        self.origin = np.empty(m, np.int64)
        self.ub = np.empty(n)
        row, used = np.empty(n + 1, np.int64), np.empty(z, np.int64)
        a, t = np.empty(z), np.empty(z)
        place = np.empty(m, np.int64)
        left = np.empty(m)
        start, resource, usage, share, capacity, fatpipe, bound, weight = arguments(problem)
        live = gather(
            start, resource, usage, share, capacity, fatpipe, bound, self.rates, self.limits, place,
            row, self.task, self.ub, self.reason, used, a, t,
        )  # fmt: skip
        live = presolve(
            live, capacity, weight, self.rates, self.limits, left, np.empty(m), np.empty(m),
            np.empty(m, np.int64), row, self.task, self.ub, self.reason, used, a, t,
        )  # fmt: skip
        first_user = np.empty(m + 1, np.int64)
        user, element = np.empty(z, np.int64), np.empty(z, np.int64)
        self.m = scale(
            live, weight, left, place, self.origin, first_user, row, self.task, self.ub, used, a, t,
            user, element,
        )  # fmt: skip
        self.n = live
        z = row[live]
        self.row, self.used, self.a = row[: live + 1], used[:z], a[:z]
        self.first_user, self.user, self.element = first_user[: self.m + 1], user[:z], element[:z]
        # Levels in units such that 1 limits nobody, for well scaled linear systems.
        least = np.full(self.m, np.inf)
        np.minimum.at(least, self.used, t[:z])
        self.t = t[:z] / least[self.used]
        self.levels = np.full(self.m, np.inf)
        self.y, self.seat = np.empty(live), np.empty(live, np.int64)
        self.load, self.seats = np.empty(self.m), np.empty(self.m, np.int64)
        self.lists = (
            np.empty(self.m + 1, np.int64),
            np.empty(self.m + 1, np.int64),
            np.empty(z, np.int64),
            np.empty(z),
            np.empty(live, np.int64),
            np.empty(live),
        )
        self.slope = np.empty(self.m)
        self.matrix = np.empty(DENSE * (DENSE + 1))
        self.best = np.inf
        self.best_levels = self.levels.copy()

    def check(self) -> bool:
        """Whether the levels solve the system; the best are kept."""
        residual = sit(
            self.n, self.m, self.levels, self.load, self.y, self.a, self.t, self.row, self.seat,
            self.used, self.seats,
        )  # fmt: skip
        if residual < self.best:
            self.best = residual
            self.best_levels = self.levels.copy()
        return residual <= ACCEPT

    def newton(self, filling: int) -> bool:
        """Newton steps from the levels; whether these then solve the system."""
        first_other, first_sitter, other, other_a, sitter, seat_t = self.lists
        climb(
            self.n, self.m, filling, self.levels, self.load, self.slope, self.y, self.a, self.t,
            self.row, self.seat, self.used, self.first_user, self.user, self.element, self.seats,
            first_other, first_sitter, other, other_a, sitter, seat_t, self.matrix,
        )  # fmt: skip
        return self.check()

    def solve_seats(self) -> bool:
        """The levels of the present seats, from close by; whether these solve the system."""
        first_other, first_sitter, other, other_a, sitter, seat_t = self.lists
        k = list_seats(
            self.n, self.m, self.slope, self.a, self.t, self.seat, self.used, self.first_user,
            self.user, self.element, self.seats, first_other, first_sitter, other, other_a, sitter,
            seat_t,
        )  # fmt: skip
        self.levels[self.seats < 0] = np.inf
        solve_levels(
            k, self.m, self.n, self.levels, self.a, self.t, self.row, self.seat, self.used,
            self.seats, self.matrix,
        )  # fmt: skip
        return self.check()

    def make_feasible(self) -> None:
        """Lower the best levels until no capacity is exceeded."""
        self.levels[:] = self.best_levels
        self.check()
        self.y /= max(1.0, float(np.max(self.load)))

    def answer(self) -> tuple[FloatArray, IntArray]:
        """Rates and limits of all tasks of the problem."""
        for j in range(self.n):
            i = self.task[j]
            self.rates[i] = self.y[j] * self.ub[j]
            seat = self.seat[j]
            self.limits[i] = self.reason[j] if seat < 0 else self.origin[self.used[seat]]
        return self.rates, self.limits


def _damped(core: _Core) -> bool:
    """Damped water filling, then Newton steps."""
    core.levels[:] = 1.0 / np.bincount(core.used, core.a * core.t, minlength=core.m)
    for number, omega in enumerate(DAMPING, 1):
        levels = core.levels.copy()
        core.check()
        core.levels[:] = levels
        for _ in range(30 * number):
            change = damp(
                omega, core.levels, core.y, core.a, core.t, core.row, core.seat, core.used,
                core.first_user, core.user, core.element,
            )  # fmt: skip
            if change < 1e-9:
                break
        levels = core.levels.copy()
        if core.newton(0):
            return True
        core.levels[:] = levels
    return False


def _paths(core: _Core) -> bool:
    """Path following with usual patience."""
    patience = 200 * (core.n + core.m) + 2000
    return any(_path(core, e, s, patience) for s, e in enumerate(PERTURBATIONS))


def _long_paths(core: _Core) -> bool:
    """Path following with the patience for exponential paths."""
    patience = 20_000 * (core.n + core.m)
    return any(_path(core, e, s, patience) for s, e in enumerate(PERTURBATIONS, 100))


def _path(core: _Core, perturbation: float, seed: int, patience: int) -> bool:
    """Follow one path, then solve its seats with the true data."""
    random = np.random.default_rng(seed)

    def disturbed(values: FloatArray) -> FloatArray:
        return values * (1.0 + perturbation * random.random(values.size))

    pivots = follow(
        core.row, core.used, disturbed(core.a), disturbed(core.t), core.first_user, core.user,
        core.element, disturbed(np.ones(core.m)), disturbed(np.ones(core.n)),
        1.0 + random.random(core.n), core.seat, core.levels, patience,
    )  # fmt: skip
    if pivots < 0:
        return False
    levels = core.levels.copy()
    if core.solve_seats():
        return True
    core.levels[:] = levels
    return core.newton(0)


def _exact(core: _Core) -> bool:
    """The path in rational arithmetic."""
    if core.a.size > MAX_EXACT:
        return False
    levels = exact_levels(core.row, core.used, core.a, core.t, core.m)
    if levels is None:
        return False
    core.levels[:] = levels
    return core.check()


@jit
def damp(omega, levels, y, a, t, row, seat, used, first_user, user, element):
    """One sweep of damped water filling; returns the largest relative change of a level."""
    change = 0.0
    for r in range(levels.size):
        old = levels[r]
        fill(r, levels, y, a, t, row, seat, used, first_user, user, element)
        new = levels[r]
        if new == np.inf:
            # Not filled: the level that its users reach, raised by what is left.
            load = 0.0
            new = 0.0
            for h in range(first_user[r], first_user[r + 1]):
                load += a[element[h]] * y[user[h]]
                new = max(new, y[user[h]] / t[element[h]])
            new /= max(load, 0.25)
        new = old ** (1.0 - omega) * new**omega
        change = max(change, abs(new - old) / old)
        levels[r] = new
        for h in range(first_user[r], first_user[r + 1]):
            j = user[h]
            y[j] = 1.0
            seat[j] = -1
            for k in range(row[j], row[j + 1]):
                x = levels[used[k]] * t[k]
                if x < y[j]:
                    y[j] = x
                    seat[j] = k
    return change
