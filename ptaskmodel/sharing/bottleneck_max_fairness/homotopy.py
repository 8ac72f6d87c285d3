"""Path following for bottleneck max fairness, in floats and, for small problems, in rationals.

`fallbacks` calls it and explains why the path ends at a solution. `follow` is the kernel in floats;
`exact_levels` follows the same path in rational arithmetic, without rounding.
"""

from __future__ import annotations

import random
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np

from ptaskmodel.kernels.decorators import entry, jit
from ptaskmodel.sharing.bottleneck_max_fairness.active_set import eliminate
from ptaskmodel.sharing.problem import FloatArray, IntArray

# mypy: allow-untyped-defs


# What limits a task on the path, where it is not the element of its bottleneck.
HELD, BOUNDED = -1, -2
# Instead of a number of pivots: out of patience or stuck. Instead of a resource or a task: none.
FAILED, NONE = -1, -1

# The data are made generic by relative changes below this, far below the tolerance.
PERTURBATION = Fraction(1, 10**12)
PATIENCE = 2000
# The value of something on the path: (now, change with time).
ExactLine = tuple[Fraction, Fraction]


class PathProblem(NamedTuple):
    """A scaled problem, slightly perturbed; the direction d; the bottleneck of each task."""

    row: np.ndarray
    used: np.ndarray
    a: np.ndarray
    t: np.ndarray
    first_user: np.ndarray
    user: np.ndarray
    element: np.ndarray
    capacity: np.ndarray
    ub: np.ndarray
    direction: np.ndarray
    bottleneck: np.ndarray
    levels: np.ndarray


class Line(NamedTuple):
    """A line of the path, from where it was drawn on."""

    number: np.ndarray  # of a resource among those that limit a task, NONE: not one of them
    filled: np.ndarray  # the resources that limit a task
    system: np.ndarray
    drift: np.ndarray  # change of the levels with time
    y: np.ndarray
    speed: np.ndarray  # change of y with time


@partial(entry, allocates=True)
def follow(p, patience):
    """Follow the path y_i <= time d_i from time 0; fills ``bottleneck`` and ``levels``.

    Returns the number of pivots, or FAILED (data not generic). A pivot is the first event on a
    line: a task meets another constraint of its own and changes bottleneck, a resource fills up (it
    becomes the bottleneck of its largest user), or it limits no task any more and opens. Which way
    to go after it: the slack of the constraint just left must grow.
    """
    row, used, t, bottleneck, levels = p.row, p.used, p.t, p.bottleneck, p.levels
    n = row.size - 1
    m = p.first_user.size - 1
    size = min(n, m) + 1
    line = Line(
        np.full(m, NONE, np.int64), np.empty(size, np.int64), np.empty(size * (size + 2)),
        np.zeros(m), np.empty(n), np.empty(n),
    )  # fmt: skip
    number, filled, y, speed = line.number, line.filled, line.y, line.speed
    n_limited = np.zeros(m, np.int64)
    for j in range(n):
        bottleneck[j] = HELD
    for r in range(m):
        levels[r] = np.inf
    k = 0
    held = n
    time = 0.0
    left_task, left_bottleneck, left_resource = NONE, NONE, NONE
    for pivot in range(patience):
        if held == 0:
            for j in range(n):
                bottleneck[j] = max(bottleneck[j], -1)
            return pivot
        if not draw_line(k, time, p, line):
            return FAILED
        way = 1.0
        if left_task >= 0:
            _, moves = constraint(left_task, left_bottleneck, time, p, line.drift)
            if moves < speed[left_task]:
                way = -1.0
        elif left_resource >= 0:
            grows = 0.0
            for h in range(p.first_user[left_resource], p.first_user[left_resource + 1]):
                grows -= p.a[p.element[h]] * speed[p.user[h]]
            if grows < 0.0:
                way = -1.0
        distance, task, new_bottleneck, resource = first_event(
            way, time, p, line, left_task, left_bottleneck, left_resource
        )
        time += way * distance
        if distance == np.inf or time < 0.0:
            return FAILED
        for c in range(k):
            r = filled[c]
            levels[r] = line.system[c * (k + 2) + k] + time * line.drift[r]
        if resource >= 0:
            reached = -1.0
            for h in range(p.first_user[resource], p.first_user[resource + 1]):
                j = p.user[h]
                x = (y[j] + way * distance * speed[j]) / t[p.element[h]]
                if x > reached:
                    reached = x
                    task = j
                    new_bottleneck = p.element[h]
            if k == size:
                return FAILED
            number[resource] = k
            filled[k] = resource
            levels[resource] = reached
            k += 1
        left_task, left_bottleneck, left_resource = task, bottleneck[task], NONE
        if left_bottleneck == HELD:
            held -= 1
        if new_bottleneck == HELD:
            held += 1
        bottleneck[task] = new_bottleneck
        if new_bottleneck >= 0:
            n_limited[used[new_bottleneck]] += 1
        if left_bottleneck >= 0:
            r = used[left_bottleneck]
            n_limited[r] -= 1
            if n_limited[r] == 0:
                k -= 1
                number[filled[k]] = number[r]
                filled[number[r]] = filled[k]
                number[r] = NONE
                levels[r] = np.inf
                left_task, left_resource = NONE, r
    return FAILED


@jit
def constraint(j, where, time, p, drift):
    """The value of a constraint on a task, and its change with time."""
    if where == HELD:
        return time * p.direction[j], p.direction[j]
    if where == BOUNDED:
        return p.ub[j], 0.0
    r = p.used[where]
    return p.levels[r] * p.t[where], drift[r] * p.t[where]


@jit
def draw_line(k, time, p, line):
    """Write levels and rates as functions of time for fixed bottlenecks; False: singular."""
    row, used, a, number, system = p.row, p.used, p.a, line.number, line.system
    width = k + 2
    for c in range(k * width):
        system[c] = 0.0
    for c in range(k):
        system[c * width + k] = p.capacity[line.filled[c]]
    for j in range(row.size - 1):
        e = p.bottleneck[j]
        for h in range(row[j], row[j + 1]):
            c = number[used[h]]
            if c >= 0:
                if e == HELD:
                    system[c * width + k + 1] -= a[h] * p.direction[j]
                elif e == BOUNDED:
                    system[c * width + k] -= a[h] * p.ub[j]
                else:
                    system[c * width + number[used[e]]] += a[h] * p.t[e]
    if not eliminate(system, k, width):
        return False
    for c in range(k):
        r = line.filled[c]
        line.drift[r] = system[c * width + k + 1]
        p.levels[r] = system[c * width + k] + time * line.drift[r]
    for j in range(row.size - 1):
        line.y[j], line.speed[j] = constraint(j, p.bottleneck[j], time, p, line.drift)
    return True


@jit
def first_event(way, time, p, line, left_task, left_bottleneck, left_resource):
    """Return (distance, task, new bottleneck, NONE) or (distance, NONE, NONE, resource)."""
    row, used, a, bottleneck = p.row, p.used, p.a, p.bottleneck
    number, y, speed = line.number, line.y, line.speed
    best = np.inf
    task = NONE
    new_bottleneck = NONE
    resource = NONE
    for j in range(row.size - 1):
        # HELD is -1, BOUNDED -2: they come before the elements of the row.
        for q in range(row[j] - 2, row[j + 1]):
            where = q if q >= row[j] else q - row[j]
            if where == bottleneck[j] or (where >= 0 and number[used[where]] < 0):
                continue
            if j == left_task and where == left_bottleneck:
                continue
            at, moves = constraint(j, where, time, p, line.drift)
            closing = way * (speed[j] - moves)
            if closing > 0.0 and max(at - y[j], 0.0) < best * closing:
                best = max(at - y[j], 0.0) / closing
                task = j
                new_bottleneck = where
    for r in range(number.size):
        if number[r] < 0 and r != left_resource:
            room = p.capacity[r]
            closing = 0.0
            for h in range(p.first_user[r], p.first_user[r + 1]):
                room -= a[p.element[h]] * y[p.user[h]]
                closing += way * a[p.element[h]] * speed[p.user[h]]
            if closing > 0.0 and max(room, 0.0) < best * closing:
                best = max(room, 0.0) / closing
                task = NONE
                new_bottleneck = NONE
                resource = r
    return best, task, new_bottleneck, resource


def exact_levels(
    row: IntArray, used: IntArray, a: FloatArray, t: FloatArray, m: int
) -> FloatArray | None:
    """Levels (m, inf: limits no task) of a scaled problem; None after `PATIENCE` steps.

    Task j uses the elements ``row[j]:row[j + 1]``: resource ``used``, usage ``a``, rate ``t`` per
    unit of level; capacities and bounds are 1.
    """
    path = _Path(row, used, a, t, m)
    for _ in range(PATIENCE):
        if HELD not in path.bottleneck:
            levels = np.full(m, np.inf)
            for r, (now, _change) in path.levels().items():
                levels[r] = float(now)
            return levels
        if not path.pivot():
            return None
    return None


class _Path:
    """A point of the path y_j <= time d_j: the bottleneck of each task, and the time."""

    def __init__(self, row: IntArray, used: IntArray, a: FloatArray, t: FloatArray, m: int) -> None:
        source = random.Random(0)

        def fraction() -> Fraction:
            return Fraction(source.randrange(1, 1 << 20), 1 << 20)

        def disturbed(value: float) -> Fraction:
            return Fraction(value) * (1 + PERTURBATION * fraction())

        self.tasks = [range(row[j], row[j + 1]) for j in range(row.size - 1)]
        self.used = used.tolist()
        self.a = [disturbed(x) for x in a.tolist()]
        self.t = [disturbed(x) for x in t.tolist()]
        self.capacity = [disturbed(1.0) for _ in range(m)]
        self.bound = [disturbed(1.0) for _ in self.tasks]
        self.direction = [1 + fraction() for _ in self.tasks]
        self.users = [
            [(j, k) for j, elements in enumerate(self.tasks) for k in elements if used[k] == r]
            for r in range(m)
        ]
        self.bottleneck = [HELD for _ in self.tasks]
        self.filled: list[int] = []
        self.time = Fraction(0)
        self.left: tuple[int, int] | None = None
        self.opened: int | None = None

    def levels(self) -> dict[int, ExactLine]:
        """The levels of resources that limit a task. ZeroDivisionError: undetermined."""
        place = {r: c for c, r in enumerate(self.filled)}
        size = len(place)
        system = [[Fraction(0)] * size + [self.capacity[r], Fraction(0)] for r in self.filled]
        for j, elements in enumerate(self.tasks):
            bottleneck = self.bottleneck[j]
            for k in elements:
                if self.used[k] in place:
                    equation = system[place[self.used[k]]]
                    if bottleneck == HELD:
                        equation[size + 1] -= self.a[k] * self.direction[j]
                    elif bottleneck == BOUNDED:
                        equation[size] -= self.a[k] * self.bound[j]
                    else:
                        equation[place[self.used[bottleneck]]] += self.a[k] * self.t[bottleneck]
        _eliminate(system)
        return {
            r: (system[c][size] + self.time * system[c][size + 1], system[c][size + 1])
            for r, c in place.items()
        }

    def constraint(self, j: int, where: int, levels: dict[int, ExactLine]) -> ExactLine:
        """The value of one of the constraints on a task."""
        if where == HELD:
            return self.time * self.direction[j], self.direction[j]
        if where == BOUNDED:
            return self.bound[j], Fraction(0)
        now, change = levels[self.used[where]]
        return now * self.t[where], change * self.t[where]

    def pivot(self) -> bool:
        """Go on to the next event and take it; False if there is none."""
        try:
            levels = self.levels()
        except ZeroDivisionError:
            return False
        rates = [
            self.constraint(j, bottleneck, levels) for j, bottleneck in enumerate(self.bottleneck)
        ]
        grows = Fraction(1)
        if self.left is not None:
            j, where = self.left
            grows = self.constraint(j, where, levels)[1] - rates[j][1]
        elif self.opened is not None:
            grows = self.room(self.opened, rates)[1]
        way = -1 if grows < 0 else 1
        event = self.next_event(way, levels, rates)
        if event is None:
            return False
        distance, task, where = event
        self.time += way * distance
        if self.time < 0:
            return False
        if task < 0:
            # Resource `where` fills up: it becomes the bottleneck of its largest user.
            def reached(use: tuple[int, int]) -> Fraction:
                now, change = rates[use[0]]
                return (now + way * distance * change) / self.t[use[1]]

            self.filled.append(where)
            task, where = max(self.users[where], key=reached)
        old = self.bottleneck[task]
        self.bottleneck[task] = where
        self.left, self.opened = (task, old), None
        if old >= 0 and all(k not in self.bottleneck for _, k in self.users[self.used[old]]):
            self.filled.remove(self.used[old])
            self.left, self.opened = None, self.used[old]
        return True

    def next_event(
        self, way: int, levels: dict[int, ExactLine], rates: list[ExactLine]
    ) -> tuple[Fraction, int, int] | None:
        """(distance, task, its new bottleneck), or (distance, -1, resource that fills up)."""
        best: tuple[Fraction, int, int] | None = None
        for j, elements in enumerate(self.tasks):
            bottlenecks = [k for k in elements if self.used[k] in levels]
            for where in (HELD, BOUNDED, *bottlenecks):
                if where != self.bottleneck[j] and (j, where) != self.left:
                    at, moves = self.constraint(j, where, levels)
                    closing = way * (rates[j][1] - moves)
                    if closing > 0 and (best is None or at - rates[j][0] < best[0] * closing):
                        best = (at - rates[j][0]) / closing, j, where
        for r in range(len(self.capacity)):
            if r not in levels and r != self.opened:
                room, grows = self.room(r, rates)
                closing = -way * grows
                if closing > 0 and (best is None or room < best[0] * closing):
                    best = room / closing, -1, r
        return best

    def room(self, r: int, rates: list[ExactLine]) -> ExactLine:
        """What is left of the capacity of a resource."""
        load = sum((self.a[k] * rates[j][0] for j, k in self.users[r]), Fraction(0))
        change = sum((self.a[k] * rates[j][1] for j, k in self.users[r]), Fraction(0))
        return self.capacity[r] - load, -change


def _eliminate(system: list[list[Fraction]]) -> None:
    """Solve in place; the right-hand sides are the columns after the square."""
    for c in range(len(system)):
        pivot = next((r for r in range(c, len(system)) if system[r][c] != 0), c)
        system[c], system[pivot] = system[pivot], system[c]
        inverse = 1 / system[c][c]
        system[c] = [inverse * x for x in system[c]]
        for r, line in enumerate(system):
            if r != c and line[c] != 0:
                system[r] = [x - line[c] * y for x, y in zip(line, system[c], strict=True)]
