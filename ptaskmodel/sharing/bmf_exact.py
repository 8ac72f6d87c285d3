"""The path of ``bmf_hard`` in rational arithmetic, for small systems: no rounding."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np

from ptaskmodel.sharing.problem import FloatArray, IntArray

# The data are made generic by relative changes below this, far below the tolerance.
PERTURBATION = Fraction(1, 10**12)
PATIENCE = 2000
HELD, BOUNDED = -1, -2
# The value of something on the path: (now, change with time).
Line = tuple[Fraction, Fraction]


def exact_levels(
    row: IntArray, used: IntArray, a: FloatArray, t: FloatArray, m: int
) -> FloatArray | None:
    """Levels (m, inf where nobody sits) of a scaled core; None if patience runs out.

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
    """A point of the path y_j <= time d_j: who sits where, and when."""

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

    def levels(self) -> dict[int, Line]:
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

    def constraint(self, j: int, where: int, levels: dict[int, Line]) -> Line:
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
        self, way: int, levels: dict[int, Line], rates: list[Line]
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

    def room(self, r: int, rates: list[Line]) -> Line:
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
