"""The rounds of fair bottleneck: the layout of a problem for them, and their steps.

`solver` calls them and defines the steps. Used resources get new numbers, their *places*: SHARED
ones from 0 on, in their order, FATPIPEs from the last place down. The uses of a place are
contiguous, the newest first. A *run* is a row of equal uses of a task, all on SHARED or all on
FATPIPE places. Since division by one number preserves order, the smallest quotient of a run is that
of its smallest numerator, bit-identical. If rows of runs are long, they may be padded to a multiple
of `STEP` with a place that limits no task (`close_run`). Loops over them then have no remainder,
whose length a processor cannot predict.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ptaskmodel.kernels.decorators import jit, views
from ptaskmodel.sharing.arrays import LIMIT_BOUND, carve

# mypy: allow-untyped-defs, disable-error-code="assignment"


# Elements of a run that are looked at together.
STEP = 4
# Resources with so many uses or more are put in order as if they had as many.
MANY_USES = 32
# Rounds of which is kept what tasks grew by.
KEPT_ROUNDS = 16
# States of a task; FIXED ones are still charged.
LIVE, FIXED, GONE = 0, 1, 2
# A literal 0 given to a kernel would be compiled for as a type of its own.
ZERO = np.int64(0)
# Unsigned indices spare the test for negative ones in the innermost loops.
ONE, TWO, THREE, FOUR = (np.uint64(k) for k in range(1, 5))

INFINITY = float("inf")
# Instead of the weight of the live users of a resource that has none.
NO_WEIGHT = 1e-100


class Rounds(NamedTuple):
    """The state of the rounds: of places, tasks, runs and uses."""

    share: np.ndarray  # u_r: what each use may take; one place more, without end
    left: np.ndarray  # R_r; inf: used up, no longer read
    total: np.ndarray  # n_r: the weights of the live uses; one place more, of no meaning
    loss: np.ndarray
    increment: np.ndarray  # d_i
    later: np.ndarray  # the largest d_i after the second round, while it was live
    largest_rate: np.ndarray  # largest rate of a task
    run_usage: np.ndarray
    run_weight: np.ndarray  # of its task; of a FATPIPE 1
    value: np.ndarray  # what each use of a run is charged
    grown: np.ndarray  # d_i of each round and task, the last one of those fixed
    place: np.ndarray  # of a resource, if it is used
    origin: np.ndarray  # the resource at a place
    base: np.ndarray  # where its newest use is in `user`
    count: np.ndarray  # of its uses
    order: np.ndarray  # SHARED places that are charged, in order of their counts
    full: np.ndarray  # list of those used up in this round
    live: np.ndarray  # list of live tasks
    state: np.ndarray
    limiting: np.ndarray
    rounds: np.ndarray  # in how many a task was live
    run_from: np.ndarray  # first run of a task; the next task's is the one after its last
    group: np.ndarray
    passed: np.ndarray  # how many rounds there were
    run_task: np.ndarray
    run_first: np.ndarray  # its first element
    element: np.ndarray  # a place
    user: np.ndarray  # a run


def rounds_sizes(n: int, m: int, z: int) -> tuple[int, int]:
    """Lengths of the float64 and int64 arrays that `carve_rounds` divides."""
    small = 2 + (3 + STEP) * (z + 2) // 2
    return 4 * m + 2 + (3 + KEPT_ROUNDS) * n + 3 * z, 6 * m + 5 * n + MANY_USES + 4 + small


@views
def carve_rounds(n, m, z, reals, integers):
    """The scratch arrays as those of the `Rounds`."""
    share, reals = carve(reals, m + 1)
    left, reals = carve(reals, m)
    total, reals = carve(reals, m + 1)
    loss, reals = carve(reals, m)
    increment, reals = carve(reals, n)
    later, reals = carve(reals, n)
    largest_rate, reals = carve(reals, n)
    run_usage, reals = carve(reals, z)
    run_weight, reals = carve(reals, z)
    value, reals = carve(reals, z)
    grown, reals = carve(reals, KEPT_ROUNDS * n)
    place, integers = carve(integers, m)
    origin, integers = carve(integers, m)
    base, integers = carve(integers, m)
    count, integers = carve(integers, m)
    order, integers = carve(integers, m)
    full, integers = carve(integers, m)
    live, integers = carve(integers, n)
    state, integers = carve(integers, n)
    limiting, integers = carve(integers, n)
    rounds, integers = carve(integers, n)
    run_from, integers = carve(integers, n + 1)
    group, integers = carve(integers, MANY_USES + 2)
    passed, integers = carve(integers, 1)
    small = integers.view(np.uint32)
    run_task, small = carve(small, z)
    run_first, small = carve(small, z + 1)
    user, small = carve(small, z)
    element, small = carve(small, STEP * (z + 1))
    return Rounds(
        share, left, total, loss, increment, later, largest_rate, run_usage, run_weight, value,
        grown, place, origin, base, count, order, full, live, state, limiting, rounds, run_from,
        group, passed, run_task, run_first, element, user,
    )  # fmt: skip


@jit
def assemble_places(system, v):
    """Give the used resources their places; (SHARED ones, the first of the FATPIPEs).

    ``base`` says where the uses of each end.
    """
    m = np.uint64(system.capacity.size)
    uses = v.full
    for r in range(m):
        uses[r] = 0
    for k in range(np.uint64(system.start[system.start.size - 1])):
        uses[np.uint64(system.resource[k])] += 1 if system.usage[k] > 0.0 else 0
    shared = ZERO
    fats = system.capacity.size
    z = ZERO
    for r in range(system.capacity.size):
        if uses[r] > 0:
            if system.fatpipe[r]:
                fats -= 1
                p = fats
            else:
                p = shared
                shared += 1
            v.place[r] = p
            v.origin[p] = r
            z += uses[r]
            v.base[p] = z
            v.count[p] = z
            v.left[p] = system.capacity[r]
    for p in range(shared, fats):  # no users
        v.total[p] = 0.0
    return shared, fats


@jit
def assemble_tasks(system, fats, rate, v):
    """Write the uses of all tasks, which begin at rate 0, in runs; return how many are live."""
    start, resource, usage = system.start, system.resource, system.usage
    n_live = ZERO
    q = np.uint64(0)
    e = np.uint64(0)
    for i in range(np.uint64(start.size - 1)):
        v.run_from[i] = q
        before = 0.0
        kind = False
        for k in range(np.uint64(start[i]), np.uint64(start[i + ONE])):
            a = usage[k]
            if a > 0.0:
                p = v.place[np.uint64(resource[k])]
                fat = p >= fats
                if a != before or kind != fat:
                    before = a
                    kind = fat
                    v.run_usage[q] = a
                    v.run_weight[q] = 1.0 if kind else system.weight[i]
                    v.value[q] = 0.0
                    v.run_task[q] = i
                    v.run_first[q] = e
                    q += ONE
                v.element[e] = p
                e += ONE
                put_user(np.uint64(p), q - ONE, v)
        n_live = begin_task(i, q > np.uint64(v.run_from[i]), n_live, rate, v)
    v.run_first[q] = e
    v.run_from[start.size - 1] = q
    return n_live


@jit
def close_run(q, e, nowhere, v):
    """Fill up the row of the last run, if there is one; returns where the next one begins."""
    v.element[e] = nowhere
    v.element[e + ONE] = nowhere
    v.element[e + TWO] = nowhere
    e = (e + THREE) & ~THREE
    v.run_first[q] = e
    return e


@jit
def put_user(p, q, v):
    """A run uses a place, as its newest user."""
    h = np.uint64(v.base[p]) - ONE
    v.base[p] = h
    v.user[h] = q


@jit
def begin_task(i, uses_some, n_live, rate, v):
    """A task begins at rate 0, if it uses something; how many are live."""
    rate[i] = 1.0
    v.increment[i] = 0.0
    v.later[i] = 0.0
    v.state[i] = GONE
    if uses_some:
        rate[i] = 0.0
        v.state[i] = LIVE
        v.live[np.uint64(n_live)] = i
        n_live += 1
    return n_live


@jit
def order_places(shared, fats, v):
    """Count the uses of each place, and put the SHARED ones in order of that."""
    group = v.group
    for c in range(MANY_USES + 2):
        group[c] = 0
    for p in range(np.uint64(shared)):
        uses = v.count[p] - v.base[p]
        v.count[p] = uses
        v.total[p] = uses
        group[np.uint64(min(uses, MANY_USES)) + ONE] += 1
    for c in range(MANY_USES + 1):
        group[c + 1] += group[c]
    for p in range(np.uint64(shared)):
        c = np.uint64(min(v.count[p], MANY_USES))
        v.order[np.uint64(group[c])] = p
        group[c] += 1
    for p in range(fats, v.count.size):
        v.count[p] -= v.base[p]
        v.total[p] = v.count[p]


@jit
def keep_increments(v):
    """Count a round, and keep what each task grew by in it, or is charged again."""
    n = v.increment.size
    if v.passed[0] < KEPT_ROUNDS:
        first = np.uint64(v.passed[0] * n)
        for i in range(np.uint64(n)):
            v.grown[first + i] = v.increment[i]
    v.passed[0] += 1


# mypy: allow-untyped-defs, disable-error-code="assignment"


@jit
def share_out(shared, v):
    """What each use of a SHARED resource may take this round."""
    share, left, total = v.share, v.left, v.total
    for p in range(shared):
        uses = total[p]
        share[p] = left[p] / (uses if uses > NO_WEIGHT else NO_WEIGHT)


@jit
def least_share(share, element, e, last):
    """The smallest share of a row of elements; four at a time, as each minimum takes its while."""
    a = share[np.uint64(element[e])]
    if e + THREE < last:
        b = share[np.uint64(element[e + ONE])]
        c = share[np.uint64(element[e + TWO])]
        d = share[np.uint64(element[e + THREE])]
        e += FOUR
        while e + THREE < last:
            x = share[np.uint64(element[e])]
            a = x if x < a else a
            x = share[np.uint64(element[e + ONE])]
            b = x if x < b else b
            x = share[np.uint64(element[e + TWO])]
            c = x if x < c else c
            x = share[np.uint64(element[e + THREE])]
            d = x if x < d else d
            e += FOUR
        a = b if b < a else a
        c = d if d < c else c
        a = c if c < a else a
    while e < last:
        x = share[np.uint64(element[e])]
        a = x if x < a else a
        e += ONE
    return a


@jit
def grow(n_live, rate, v):
    """Grow the live tasks; return how many reach their largest rate, first in ``limiting``."""
    bounded = ZERO
    later = v.passed[0] > 1
    for a in range(np.uint64(n_live)):
        i = np.uint64(v.live[a])
        first = np.uint64(v.run_from[i])
        last = np.uint64(v.run_from[i + ONE])
        before = rate[i]
        d = v.largest_rate[i] - before
        for q in range(first, last):
            x = least_share(
                v.share, v.element, np.uint64(v.run_first[q]), np.uint64(v.run_first[q + ONE])
            )
            x = x / v.run_usage[q] * v.run_weight[q]
            d = x if x < d else d
        for q in range(first, last):
            v.value[q] = v.run_usage[q] * d
        v.increment[i] = d
        if later:
            v.later[i] = max(v.later[i], d)
        rate[i] = before + d
        if before + d == v.largest_rate[i]:
            v.limiting[np.uint64(bounded)] = i
            bounded += 1
    return bounded


@jit
def fix_bounded(bounded, weight, limit, v):
    """Fix those tasks that have just reached their bounds."""
    for a in range(bounded):
        i = np.uint64(v.limiting[a])
        limit[i] = LIMIT_BOUND
        fix(i, weight[i], v)


@jit
def charge_rest(x, h, last, v):
    """Charge uses one after the other."""
    while h < last:
        x -= v.value[np.uint64(v.user[h])]
        h += ONE
    return x


@jit
def charge(n_order, v):
    """Charge every use of the SHARED resources, newest first, those of four side by side."""
    order, base, count, left, user, value = v.order, v.base, v.count, v.left, v.user, v.value
    k = np.uint64(0)
    end = np.uint64(n_order)
    while k + THREE < end:
        p = np.uint64(order[k])
        q = np.uint64(order[k + ONE])
        r = np.uint64(order[k + TWO])
        t = np.uint64(order[k + THREE])
        k += FOUR
        uses = np.uint64(min(min(count[p], count[q]), min(count[r], count[t])))
        g = np.uint64(base[p])
        h = np.uint64(base[q])
        i = np.uint64(base[r])
        j = np.uint64(base[t])
        w = left[p]
        x = left[q]
        y = left[r]
        z = left[t]
        for u in range(uses):
            w -= value[np.uint64(user[g + u])]
            x -= value[np.uint64(user[h + u])]
            y -= value[np.uint64(user[i + u])]
            z -= value[np.uint64(user[j + u])]
        left[p] = charge_rest(w, g + uses, g + np.uint64(count[p]), v)
        left[q] = charge_rest(x, h + uses, h + np.uint64(count[q]), v)
        left[r] = charge_rest(y, i + uses, i + np.uint64(count[r]), v)
        left[t] = charge_rest(z, j + uses, j + np.uint64(count[t]), v)
    while k < end:
        p = np.uint64(order[k])
        k += ONE
        h = np.uint64(base[p])
        left[p] = charge_rest(left[p], h, h + np.uint64(count[p]), v)


@jit
def list_full(shared, nothing_left, v):
    """List the SHARED resources that are used up; returns how many are."""
    n_full = ZERO
    for p in range(np.uint64(shared)):
        v.full[np.uint64(n_full)] = p
        n_full += 1 if v.left[p] < nothing_left else 0
    return n_full


@jit
def fix_users_of_full(n_full, weight, limit, v):
    """What is used up fixes its live users (how many) and is never looked at again."""
    fixed = ZERO
    for a in range(np.uint64(n_full)):
        p = np.uint64(v.full[a])
        v.left[p] = INFINITY
        first = np.uint64(v.base[p])
        for h in range(first, first + np.uint64(v.count[p])):
            i = np.uint64(v.run_task[np.uint64(v.user[h])])
            if v.state[i] == LIVE:
                fixed += 1
                limit[i] = v.origin[p]
                fix(i, weight[i], v)
    return fixed


@jit
def fix(i, weight, v):
    """Count a task out of the live users of its resources."""
    v.state[i] = FIXED
    first = np.uint64(v.run_first[np.uint64(v.run_from[i])])
    for e in range(first, np.uint64(v.run_first[np.uint64(v.run_from[i + ONE])])):
        v.total[np.uint64(v.element[e])] -= weight


@jit
def still_live(n_live, corrected, v):
    """Forget the tasks that are fixed; the corrected variant charges them no more."""
    n = ZERO
    for a in range(np.uint64(n_live)):
        i = np.uint64(v.live[a])
        v.live[np.uint64(n)] = i
        if v.state[i] == LIVE:
            n += 1
            continue
        v.rounds[i] = v.passed[0]
        if corrected:
            for q in range(np.uint64(v.run_from[i]), np.uint64(v.run_from[i + ONE])):
                v.value[q] = 0.0
    return n


@jit
def still_charged(n_order, weighted, v):
    """Forget the SHARED resources that are used up, or that no live task uses.

    What is left of a sum of weights does not tell that surely.
    """
    n = ZERO
    least = -INFINITY if weighted else 0.5
    for k in range(np.uint64(n_order)):
        p = np.uint64(v.order[k])
        v.order[np.uint64(n)] = p
        n += 1 if v.total[p] > least and v.left[p] < INFINITY else 0
    return n


@jit
def go_through(shared, n_live, corrected, weighted, nothing_left, weight, rate, limit, v):
    """All rounds of a system without FATPIPEs."""
    n_order = shared
    v.passed[0] = 0
    while n_live > 0:
        share_out(shared, v)
        fix_bounded(grow(n_live, rate, v), weight, limit, v)
        charge(n_order, v)
        fix_users_of_full(list_full(shared, nothing_left, v), weight, limit, v)
        keep_increments(v)
        n_live = still_live(n_live, corrected, v)
        if n_live > 0 and v.passed[0] > 1:  # before, there are few to forget
            n_order = still_charged(n_order, weighted, v)
