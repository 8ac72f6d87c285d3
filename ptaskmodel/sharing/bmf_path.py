# mypy: allow-untyped-defs
"""Path following for bottleneck max fairness; ``bmf_hard`` tells why it ends at a solution."""

from __future__ import annotations

from functools import partial

import numpy as np

from ptaskmodel.jit import entry, jit
from ptaskmodel.sharing.bmf import eliminate

# What holds a task on the path, where it is not the element of the resource where it sits.
HELD, BOUNDED = -1, -2


@partial(entry, allocates=True)
def follow(
    row, used, a, t, first_user, user, element, capacity, ub, d, seat, levels, patience
):  # fmt: skip
    """Follow the path y_i <= time d_i from time 0; fills ``seat`` and ``levels``.

    Returns the number of pivots, or -1: out of patience or stuck (data not generic). A pivot is the
    first event on a line: a task meets another constraint of its own and changes seat, a resource
    fills up (the user that is the largest on it sits there), or it loses its last sitter and opens.
    Which way to go after it: the slack of the constraint just left must grow.
    """
    n = row.size - 1
    m = first_user.size - 1
    size = min(n, m) + 1
    system = np.empty(size * (size + 2))
    number = np.full(m, -1, np.int64)
    filled = np.empty(size, np.int64)
    sitters = np.zeros(m, np.int64)
    drift = np.zeros(m)
    y = np.empty(n)
    speed = np.empty(n)
    for j in range(n):
        seat[j] = HELD
    for r in range(m):
        levels[r] = np.inf
    k = 0
    held = n
    time = 0.0
    left_task, left_seat, left_resource = -1, -1, -1
    for pivot in range(patience):
        if held == 0:
            for j in range(n):
                seat[j] = max(seat[j], -1)
            return pivot
        if not draw_line(
            k, time, row, used, a, t, capacity, ub, d, seat, number, filled, system, levels, drift,
            y, speed,
        ):  # fmt: skip
            return -1
        way = 1.0
        if left_task >= 0:
            _, moves = constraint(left_task, left_seat, time, used, t, ub, d, levels, drift)
            if moves < speed[left_task]:
                way = -1.0
        elif left_resource >= 0:
            grows = 0.0
            for h in range(first_user[left_resource], first_user[left_resource + 1]):
                grows -= a[element[h]] * speed[user[h]]
            if grows < 0.0:
                way = -1.0
        distance, task, new_seat, resource = first_event(
            way, time, row, used, a, t, first_user, user, element, capacity, ub, d, seat, number,
            levels, drift, y, speed, left_task, left_seat, left_resource,
        )  # fmt: skip
        time += way * distance
        if distance == np.inf or time < 0.0:
            return -1
        for c in range(k):
            r = filled[c]
            levels[r] = system[c * (k + 2) + k] + time * drift[r]
        if resource >= 0:
            reached = -1.0
            for h in range(first_user[resource], first_user[resource + 1]):
                j = user[h]
                x = (y[j] + way * distance * speed[j]) / t[element[h]]
                if x > reached:
                    reached = x
                    task = j
                    new_seat = element[h]
            if k == size:
                return -1
            number[resource] = k
            filled[k] = resource
            levels[resource] = reached
            k += 1
        left_task, left_seat, left_resource = task, seat[task], -1
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
                number[r] = -1
                levels[r] = np.inf
                left_task, left_resource = -1, r
    return -1


@jit
def constraint(j, where, time, used, t, ub, d, levels, drift):
    """The value of a constraint on a task, and its change with time."""
    if where == HELD:
        return time * d[j], d[j]
    if where == BOUNDED:
        return ub[j], 0.0
    return levels[used[where]] * t[where], drift[used[where]] * t[where]


@jit
def draw_line(
    k, time, row, used, a, t, capacity, ub, d, seat, number, filled, system, levels, drift, y, speed
):
    """Levels and rates, and their change with time, while nobody moves; False: not determined."""
    width = k + 2
    for c in range(k * width):
        system[c] = 0.0
    for c in range(k):
        system[c * width + k] = capacity[filled[c]]
    for j in range(row.size - 1):
        e = seat[j]
        for h in range(row[j], row[j + 1]):
            c = number[used[h]]
            if c >= 0:
                if e == HELD:
                    system[c * width + k + 1] -= a[h] * d[j]
                elif e == BOUNDED:
                    system[c * width + k] -= a[h] * ub[j]
                else:
                    system[c * width + number[used[e]]] += a[h] * t[e]
    if not eliminate(system, k, width):
        return False
    for c in range(k):
        r = filled[c]
        drift[r] = system[c * width + k + 1]
        levels[r] = system[c * width + k] + time * drift[r]
    for j in range(row.size - 1):
        y[j], speed[j] = constraint(j, seat[j], time, used, t, ub, d, levels, drift)
    return True


@jit
def first_event(
    way, time, row, used, a, t, first_user, user, element, capacity, ub, d, seat, number, levels,
    drift, y, speed, left_task, left_seat, left_resource,
):  # fmt: skip
    """The first event on the line: (distance, task, its new seat, -1) or (distance, -1, -1, r)."""
    best = np.inf
    task = -1
    new_seat = -1
    resource = -1
    for j in range(row.size - 1):
        # The constraint held is -1, the bound -2: they come before the elements of the row.
        for q in range(row[j] - 2, row[j + 1]):
            where = q if q >= row[j] else q - row[j]
            if where == seat[j] or (where >= 0 and number[used[where]] < 0):
                continue
            if j == left_task and where == left_seat:
                continue
            at, moves = constraint(j, where, time, used, t, ub, d, levels, drift)
            closing = way * (speed[j] - moves)
            if closing > 0.0 and max(at - y[j], 0.0) < best * closing:
                best = max(at - y[j], 0.0) / closing
                task = j
                new_seat = where
    for r in range(number.size):
        if number[r] < 0 and r != left_resource:
            room = capacity[r]
            closing = 0.0
            for h in range(first_user[r], first_user[r + 1]):
                room -= a[element[h]] * y[user[h]]
                closing += way * a[element[h]] * speed[user[h]]
            if closing > 0.0 and max(room, 0.0) < best * closing:
                best = max(room, 0.0) / closing
                task = -1
                new_seat = -1
                resource = r
    return best, task, new_seat, resource
