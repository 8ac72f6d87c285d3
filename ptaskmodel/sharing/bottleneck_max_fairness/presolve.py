# mypy: allow-untyped-defs, disable-error-code="assignment"
"""Fix what is certain about a bottleneck max fair allocation; return the reduced problem.

`solver` defines the problem and gives the reasons. All functions work in place on compressed rows:
task j of the reduced problem, number ``task[j]`` of the whole, has the elements ``row[j]:row[j +
1]``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ptaskmodel.kernels.decorators import jit, views
from ptaskmodel.sharing.arrays import LIMIT_BOUND, LIMIT_NOTHING, carve

MAX_PASSES = 12
# The part of the elements that a pass must remove for another one.
WORTH_A_PASS = 0.05


class Core(NamedTuple):
    """The tasks that have a choice; after `scale` every capacity and every bound is 1.

    What belongs to a resource has its number in the problem until `scale` gives it another.
    """

    row: np.ndarray  # elements of a task: resource `used`, usage `a`, share coefficient `t`
    used: np.ndarray
    a: np.ndarray
    t: np.ndarray  # after `scale`: rate for a unit of level
    first_user: np.ndarray  # elements of a resource: task `user`, number `element`
    user: np.ndarray
    element: np.ndarray
    task: np.ndarray  # its number in the problem
    ub: np.ndarray  # largest rate alone, because of `reason`
    reason: np.ndarray
    origin: np.ndarray  # number of a resource in the problem
    place: np.ndarray  # what it is here
    left: np.ndarray  # capacity that tasks with a known rate leave
    levels: np.ndarray  # lambda_r, inf: limits no task
    load: np.ndarray
    slope: np.ndarray  # load per unit of the level
    # How many tasks a resource limits (behind the last one: at their bounds), or its equation.
    n_limited: np.ndarray
    y: np.ndarray  # rate as a part of `ub`
    bottleneck: np.ndarray  # element of its bottleneck, -1: its bound


def core_sizes(n: int, m: int, z: int) -> tuple[int, int]:
    """Lengths of the float64 and int64 arrays that `carve_core` divides."""
    return 4 * m + 2 * n + 2 * z, 4 * m + 4 * n + 3 * z + 3


@views
def carve_core(n, m, z, reals, integers):
    """(a `Core` for n tasks, m resources, z elements, what is left of both arrays)."""
    left, reals = carve(reals, m)
    levels, reals = carve(reals, m)
    load, reals = carve(reals, m)
    slope, reals = carve(reals, m)
    ub, reals = carve(reals, n)
    y, reals = carve(reals, n)
    a, reals = carve(reals, z)
    t, reals = carve(reals, z)
    place, integers = carve(integers, m)
    origin, integers = carve(integers, m)
    n_limited, integers = carve(integers, m + 1)
    first_user, integers = carve(integers, m + 1)
    row, integers = carve(integers, n + 1)
    task, integers = carve(integers, n)
    reason, integers = carve(integers, n)
    bottleneck, integers = carve(integers, n)
    used, integers = carve(integers, z)
    user, integers = carve(integers, z)
    element, integers = carve(integers, z)
    core = Core(
        row, used, a, t, first_user, user, element, task, ub, reason, origin, place, left, levels,
        load, slope, n_limited, y, bottleneck,
    )  # fmt: skip
    return core, reals, integers


@jit
def gather(system, answer, c):
    """Lay out the tasks that have a choice, FATPIPEs folded into bounds, repeated elements merged.

    Answers for the others. Returns the number of tasks.
    """
    start, resource, capacity = system.start, system.resource, system.capacity
    place, used, a, t = c.place, c.used, c.a, c.t
    for r in range(capacity.size):
        place[r] = -1
    live = 0
    q = 0
    for i in range(start.size - 1):
        first = q
        top = system.bound[i]
        why = LIMIT_BOUND
        idle = True
        for k in range(start[i], start[i + 1]):
            x = system.usage[k]
            if x > 0.0:
                idle = False
                r = resource[k]
                s = system.share[k] if system.share[k] > 0.0 else x
                if not system.fatpipe[r]:
                    if place[r] >= first:
                        x += a[place[r]]
                        a[place[r]] = x
                        t[place[r]] += s
                    else:
                        place[r] = q
                        used[q] = r
                        a[q] = x
                        t[q] = s
                        q += 1
                if capacity[r] < top * x:
                    top = capacity[r] / x
                    why = r
        answer.limit[i] = why
        answer.rate[i] = top
        if idle:
            if top == np.inf:
                answer.rate[i] = 1.0
                answer.limit[i] = LIMIT_NOTHING
        elif top > 0.0 and q > first:
            c.row[live] = first
            c.task[live] = i
            c.ub[live] = top
            c.reason[live] = why
            live += 1
        else:
            for k in range(first, q):
                place[used[k]] = -1
            q = first
    c.row[live] = q
    return live


@jit
def presolve(live, system, answer, c):
    """Fix tasks and drop resources whose part is certain; returns how many tasks remain."""
    m = system.capacity.size
    row, used, a, t, task, ub = c.row, c.used, c.a, c.t, c.task, c.ub
    # Before tasks have bottlenecks: the users of a resource, and the level that it reaches in any
    # case, infinite where it limits no task.
    users, fair, load, left = c.n_limited, c.slope, c.load, c.left
    for r in range(m):
        left[r] = system.capacity[r]
    for _ in range(MAX_PASSES):
        if live == 0:
            break
        for r in range(m):
            users[r] = 0
            fair[r] = 0.0
            load[r] = 0.0
        for j in range(live):
            x = ub[j]
            for k in range(row[j], row[j + 1]):
                if left[used[k]] < x * a[k]:
                    x = max(left[used[k]], 0.0) / a[k]
                    c.reason[j] = used[k]
            ub[j] = x
            p = system.weight[task[j]]
            for k in range(row[j], row[j + 1]):
                r = used[k]
                users[r] += 1
                load[r] += a[k] * x
                fair[r] += p if t[k] == a[k] else a[k] * p / t[k]
        for r in range(m):
            if users[r] < 2 or load[r] <= left[r]:
                fair[r] = np.inf
            else:
                fair[r] = left[r] / fair[r]
        before = row[live]
        kept = 0
        q = 0
        for j in range(live):
            i = task[j]
            first = q
            scaled = ub[j] / system.weight[i]
            sure = True
            for k in range(row[j], row[j + 1]):
                r = used[k]
                if fair[r] < np.inf:
                    sure = sure and scaled * t[k] <= fair[r]
                    used[q] = r
                    a[q] = a[k]
                    t[q] = t[k]
                    q += 1
            if sure:
                answer.rate[i] = ub[j]
                answer.limit[i] = c.reason[j]
                for k in range(first, q):
                    left[used[k]] -= a[k] * ub[j]
                q = first
            else:
                task[kept] = i
                ub[kept] = ub[j]
                c.reason[kept] = c.reason[j]
                row[kept] = first
                kept += 1
        row[kept] = q
        live = kept
        if before - q < WORTH_A_PASS * before:
            break
    return live


@jit
def scale(live, weight, c):
    """Scale to C = 1, bound = 1, number the resources left, list their users; returns how many.

    After this y_i = x_i / ub_i = min(1, min_r lambda_r t_ri) and load_r = sum of a_ri y_i <= 1.
    """
    row, used, place, left = c.row, c.used, c.place, c.left
    for k in range(row[live]):
        place[used[k]] = -1
    cores = 0
    for j in range(live):
        x = c.ub[j]
        inverse = weight[c.task[j]] / x
        for k in range(row[j], row[j + 1]):
            r = used[k]
            if place[r] < 0:
                place[r] = cores
                c.origin[cores] = r
                left[r] = 1.0 / left[r]
                cores += 1
            c.a[k] *= x * left[r]
            c.t[k] = inverse / c.t[k]
            used[k] = place[r]
    list_users(live, cores, c)
    return cores


@jit
def list_users(live, cores, c):
    """List the users of each resource, first task first."""
    row, used, first_user = c.row, c.used, c.first_user
    for r in range(cores + 1):
        first_user[r] = 0
    for k in range(row[live]):
        first_user[np.uint64(used[k])] += 1
    total = 0
    for r in range(cores):
        total += first_user[r]
        first_user[r] = total
    first_user[cores] = total
    for j in range(live - 1, -1, -1):
        for k in range(row[j + 1] - 1, row[j] - 1, -1):
            r = np.uint64(used[np.uint64(k)])
            h = first_user[r] - 1
            first_user[r] = h
            c.user[np.uint64(h)] = j
            c.element[np.uint64(h)] = k
