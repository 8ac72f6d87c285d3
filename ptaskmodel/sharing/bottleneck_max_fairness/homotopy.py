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


# What holds a task on the path, where it is not the element of the resource where it sits.
HELD, BOUNDED = -1, -2
# Instead of a number of pivots: out of patience or stuck. Instead of a resource or a task: none.
FAILED, NONE = -1, -1

# The data are made generic by relative changes below this, far below the tolerance.
PERTURBATION = Fraction(1, 10**12)
PATIENCE = 2000
# The value of something on the path: (now, change with time).
ExactLine = tuple[Fraction, Fraction]


class Road(NamedTuple):
    """A scaled problem with slightly perturbed data, the direction d, and the seat of each task."""

    row: np.ndarray
    used: np.ndarray
    a: np.ndarray
    t: np.ndarray
    first_user: np.ndarray
    user: np.ndarray
    element: np.ndarray
    capacity: np.ndarray
    ub: np.ndarray
    pace: np.ndarray
    seat: np.ndarray
    levels: np.ndarray


class Line(NamedTuple):
    """A line of the path, from where it was drawn on."""

    number: np.ndarray  # of a resource among those with sitters, NONE: not one of them
    filled: np.ndarray  # the resources with sitters
    system: np.ndarray
    drift: np.ndarray  # change of the levels with time
    y: np.ndarray
    speed: np.ndarray  # change of y with time


@partial(entry, allocates=True)
def follow(p, patience):
    """Follow the path y_i <= time d_i from time 0; fills ``seat`` and ``levels``.

    Returns the number of pivots, or FAILED (data not generic). A pivot is the first event on a
    line: a task meets another constraint of its own and changes seat, a resource fills up (the user
    that is the largest on it sits there), or it loses its last sitter and opens. Which way to go
    after it: the slack of the constraint just left must grow.
    """
    row, used, t, seat, levels = p.row, p.used, p.t, p.seat, p.levels
    n = row.size - 1
    m = p.first_user.size - 1
    size = min(n, m) + 1
    line = Line(
        np.full(m, NONE, np.int64), np.empty(size, np.int64), np.empty(size * (size + 2)),
        np.zeros(m), np.empty(n), np.empty(n),
    )  # fmt: skip
    number, filled, y, speed = line.number, line.filled, line.y, line.speed
    sitters = np.zeros(m, np.int64)
    for j in range(n):
        seat[j] = HELD
    for r in range(m):
        levels[r] = np.inf
    k = 0
    held = n
    time = 0.0
    left_task, left_seat, left_resource = NONE, NONE, NONE
    for pivot in range(patience):
        if held == 0:
            for j in range(n):
                seat[j] = max(seat[j], -1)
            return pivot
        if not draw_line(k, time, p, line):
            return FAILED
        way = 1.0
        if left_task >= 0:
            _, moves = constraint(left_task, left_seat, time, p, line.drift)
            if moves < speed[left_task]:
                way = -1.0
        elif left_resource >= 0:
            grows = 0.0
            for h in range(p.first_user[left_resource], p.first_user[left_resource + 1]):
                grows -= p.a[p.element[h]] * speed[p.user[h]]
            if grows < 0.0:
                way = -1.0
        distance, task, new_seat, resource = first_event(
            way, time, p, line, left_task, left_seat, left_resource
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
                    new_seat = p.element[h]
            if k == size:
                return FAILED
            number[resource] = k
            filled[k] = resource
            levels[resource] = reached
            k += 1
        left_task, left_seat, left_resource = task, seat[task], NONE
        if left_seat == HELD:
            held -= 1
        if new_seat == HELD:
            held += 1
        seat[task] = new_seat
        if new_seat >= 0:
            sitters[used[new_seat]] += 1
        if left_seat >= 0:
            r = used[left_seat]
            sitters[r] -= 1
            if sitters[r] == 0:
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
        return time * p.pace[j], p.pace[j]
    if where == BOUNDED:
        return p.ub[j], 0.0
    r = p.used[where]
    return p.levels[r] * p.t[where], drift[r] * p.t[where]


@jit
def draw_line(k, time, p, line):
    """Levels and rates as functions of time while seats stay fixed; False if it is singular."""
    row, used, a, number, system = p.row, p.used, p.a, line.number, line.system
    width = k + 2
    for c in range(k * width):
        system[c] = 0.0
    for c in range(k):
        system[c * width + k] = p.capacity[line.filled[c]]
    for j in range(row.size - 1):
        e = p.seat[j]
        for h in range(row[j], row[j + 1]):
            c = number[used[h]]
            if c >= 0:
                if e == HELD:
                    system[c * width + k + 1] -= a[h] * p.pace[j]
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
        line.y[j], line.speed[j] = constraint(j, p.seat[j], time, p, line.drift)
    return True


@jit
def first_event(way, time, p, line, left_task, left_seat, left_resource):
    """The first event: (distance, task, its new seat, NONE) or (distance, NONE, NONE, resource)."""
    row, used, a, seat = p.row, p.used, p.a, p.seat
    number, y, speed = line.number, line.y, line.speed
    best = np.inf
    task = NONE
    new_seat = NONE
    resource = NONE
    for j in range(row.size - 1):
        # HELD is -1, BOUNDED -2: they come before the elements of the row.
        for q in range(row[j] - 2, row[j + 1]):
            where = q if q >= row[j] else q - row[j]
            if where == seat[j] or (where >= 0 and number[used[where]] < 0):
                continue
            if j == left_task and where == left_seat:
                continue
            at, moves = constraint(j, where, time, p, line.drift)
            closing = way * (speed[j] - moves)
            if closing > 0.0 and max(at - y[j], 0.0) < best * closing:
                best = max(at - y[j], 0.0) / closing
                task = j
                new_seat = where
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
                new_seat = NONE
                resource = r
    return best, task, new_seat, resource


def exact_levels(
    row: IntArray, used: IntArray, a: FloatArray, t: FloatArray, m: int
) -> FloatArray | None:
    """Levels (m, inf where no task sits) of a scaled problem; None after `PATIENCE` steps.

    Task j uses the elements ``row[j]:row[j + 1]``: resource ``used``, usage ``a``, rate ``t`` per
    unit of level; capacities and bounds are 1.
    """
    path = _Path(row, used, a, t, m)
    for _ in range(PATIENCE):
        if HELD not in path.seat:
            levels = np.full(m, np.inf)
            for r, (now, _change) in path.levels().items():
                levels[r] = float(now)
            return levels
        if not path.pivot():
            return None
    return None


class _Path:
    """A point of the path y_j <= time d_j: the seat of each task, and the time."""

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
        self.pace = [1 + fraction() for _ in self.tasks]
        self.users = [
            [(j, k) for j, elements in enumerate(self.tasks) for k in elements if used[k] == r]
            for r in range(m)
        ]
        self.seat = [HELD for _ in self.tasks]
        self.filled: list[int] = []
        self.time = Fraction(0)
        self.left: tuple[int, int] | None = None
        self.opened: int | None = None

    def levels(self) -> dict[int, ExactLine]:
        """The level of each resource with sitters; raises ZeroDivisionError if undetermined."""
        place = {r: c for c, r in enumerate(self.filled)}
        size = len(place)
        system = [[Fraction(0)] * size + [self.capacity[r], Fraction(0)] for r in self.filled]
        for j, elements in enumerate(self.tasks):
            seat = self.seat[j]
            for k in elements:
                if self.used[k] in place:
                    equation = system[place[self.used[k]]]
                    if seat == HELD:
                        equation[size + 1] -= self.a[k] * self.pace[j]
                    elif seat == BOUNDED:
                        equation[size] -= self.a[k] * self.bound[j]
                    else:
                        equation[place[self.used[seat]]] += self.a[k] * self.t[seat]
        _eliminate(system)
        return {
            r: (system[c][size] + self.time * system[c][size + 1], system[c][size + 1])
            for r, c in place.items()
        }

    def constraint(self, j: int, where: int, levels: dict[int, ExactLine]) -> ExactLine:
        """The value of one of the constraints on a task."""
        if where == HELD:
            return self.time * self.pace[j], self.pace[j]
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
        rates = [self.constraint(j, seat, levels) for j, seat in enumerate(self.seat)]
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
            # Resource `where` fills up: its largest user sits there.
            def reached(use: tuple[int, int]) -> Fraction:
                now, change = rates[use[0]]
                return (now + way * distance * change) / self.t[use[1]]

            self.filled.append(where)
            task, where = max(self.users[where], key=reached)
        old = self.seat[task]
        self.seat[task] = where
        self.left, self.opened = (task, old), None
        if old >= 0 and all(k not in self.seat for _, k in self.users[self.used[old]]):
            self.filled.remove(self.used[old])
            self.left, self.opened = None, self.used[old]
        return True

    def next_event(
        self, way: int, levels: dict[int, ExactLine], rates: list[ExactLine]
    ) -> tuple[Fraction, int, int] | None:
        """(distance, task, its new seat), or (distance, -1, resource that fills up)."""
        best: tuple[Fraction, int, int] | None = None
        for j, elements in enumerate(self.tasks):
            seats = [k for k in elements if self.used[k] in levels]
            for where in (HELD, BOUNDED, *seats):
                if where != self.seat[j] and (j, where) != self.left:
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
