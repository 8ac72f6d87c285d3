# mypy: allow-untyped-defs
"""What is certain about a bottleneck max fair allocation, and the scaled core that is left.

See ``bmf`` for the problem and the reasons. Everything works in place on compressed rows: task j of
the core, number ``task[j]`` of the problem, has the elements ``row[j]:row[j + 1]``.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.jit import jit

MAX_PASSES = 12
# The part of the elements that a pass must remove for another one.
WORTH_A_PASS = 0.05


@jit
def gather(
    start, resource, usage, share, capacity, fatpipe, bound, rate, limit, place, row, task, ub,
    reason, used, a, t,
):  # fmt: skip
    """Lay out the tasks that have a choice, FATPIPEs folded into bounds, repeated elements merged.

    ``a`` is the usage and ``t`` the share coefficient of an element; ``ub`` the largest rate that a
    task can have alone, because of ``reason``. Returns the number of tasks.
    """
    for r in range(capacity.size):
        place[r] = -1
    live = 0
    q = 0
    for i in range(start.size - 1):
        first = q
        top = bound[i]
        why = -1
        idle = True
        for k in range(start[i], start[i + 1]):
            x = usage[k]
            if x > 0.0:
                idle = False
                r = resource[k]
                s = share[k] if share[k] > 0.0 else x
                if not fatpipe[r]:
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
        limit[i] = why
        rate[i] = top
        if idle:
            if top == np.inf:
                rate[i] = 1.0
                limit[i] = -2
        elif top > 0.0 and q > first:
            row[live] = first
            task[live] = i
            ub[live] = top
            reason[live] = why
            live += 1
        else:
            for k in range(first, q):
                place[used[k]] = -1
            q = first
    row[live] = q
    return live


@jit
def presolve(
    live, capacity, weight, rate, limit, left, fair, load, users, row, task, ub, reason, used, a, t
):
    """Fix tasks and drop resources whose part is certain; returns how many tasks remain."""
    for r in range(capacity.size):
        left[r] = capacity[r]
    for _ in range(MAX_PASSES):
        if live == 0:
            break
        for r in range(capacity.size):
            users[r] = 0
            fair[r] = 0.0
            load[r] = 0.0
        for j in range(live):
            x = ub[j]
            for k in range(row[j], row[j + 1]):
                if left[used[k]] < x * a[k]:
                    x = max(left[used[k]], 0.0) / a[k]
                    reason[j] = used[k]
            ub[j] = x
            p = weight[task[j]]
            for k in range(row[j], row[j + 1]):
                r = used[k]
                users[r] += 1
                load[r] += a[k] * x
                fair[r] += p if t[k] == a[k] else a[k] * p / t[k]
        # The level that a resource reaches in any case; infinite where it limits nobody.
        for r in range(capacity.size):
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
            scaled = ub[j] / weight[i]
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
                rate[i] = ub[j]
                limit[i] = reason[j]
                for k in range(first, q):
                    left[used[k]] -= a[k] * ub[j]
                q = first
            else:
                task[kept] = i
                ub[kept] = ub[j]
                reason[kept] = reason[j]
                row[kept] = first
                kept += 1
        row[kept] = q
        live = kept
        if before - q < WORTH_A_PASS * before:
            break
    return live


@jit
def scale(live, weight, left, place, origin, first_user, row, task, ub, used, a, t, user, element):
    """Scale to C = 1, bound = 1, number the resources left, list their users; returns how many.

    After this y_i = x_i / ub_i = min(1, min_r lambda_r t_ri) and load_r = sum of a_ri y_i <= 1.
    """
    for k in range(row[live]):
        place[used[k]] = -1
    cores = 0
    for j in range(live):
        for k in range(row[j], row[j + 1]):
            r = used[k]
            if place[r] < 0:
                place[r] = cores
                origin[cores] = r
                first_user[cores] = 0
                left[r] = 1.0 / left[r]
                cores += 1
            first_user[place[r]] += 1
    total = 0
    for r in range(cores):
        total += first_user[r]
        first_user[r] = total
    first_user[cores] = total
    for j in range(live - 1, -1, -1):
        x = ub[j]
        inverse = weight[task[j]] / x
        for k in range(row[j + 1] - 1, row[j] - 1, -1):
            a[k] *= x * left[used[k]]
            t[k] = inverse / t[k]
            r = place[used[k]]
            used[k] = r
            first_user[r] -= 1
            user[first_user[r]] = j
            element[first_user[r]] = k
    return cores
