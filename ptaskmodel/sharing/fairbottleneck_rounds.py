# mypy: allow-untyped-defs, disable-error-code="assignment"
"""The steps of a round of fair bottleneck (see `fairbottleneck_core`), on what is laid for them."""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.sharing.fairbottleneck_laid import (
    FIXED,
    FOUR,
    LIVE,
    ONE,
    THREE,
    TWO,
    ZERO,
    keep_increments,
)
from ptaskmodel.sharing.limits import LIMIT_BOUND

INFINITY = float("inf")
# Instead of the weight of the live users of a resource that has none.
NO_WEIGHT = 1e-100


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
    """Grow the live tasks; returns how many reach their ceiling: they are first in ``limiting``."""
    bounded = ZERO
    later = v.passed[0] > 1
    for a in range(np.uint64(n_live)):
        i = np.uint64(v.live[a])
        first = np.uint64(v.run_from[i])
        last = np.uint64(v.run_from[i + ONE])
        before = rate[i]
        d = v.ceiling[i] - before
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
        if before + d == v.ceiling[i]:
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
