# mypy: allow-untyped-defs, disable-error-code="assignment"
"""Fair bottleneck, the allocation of SimGrid's parallel-task model, and its corrected variant.

Rounds over the *live* tasks (rate not fixed yet) and the *active* resources (with a live user);
R_r is the remaining capacity of r, a_ri the usage of task i, p_i its weight, n_r the sum of the
weights of the live uses of r (their number, in SimGrid, which knows no weights here):

1. u_r = R_r / n_r (FATPIPE: u_r = R_r);
2. each live task grows by d_i = min(min_r p_i u_r / a_ri, bound_i - x_i) (FATPIPE: no p_i); at its
   bound exactly, it is fixed;
3. each active resource loses a_ri d_i for *every* task, those fixed in earlier rounds included,
   with their last increment; a FATPIPE loses the smallest of these and of u_r. What falls below
   1e-5 becomes 0;
4. a resource with nothing left fixes its live users.

This is what SimGrid 3.32 and 4.2 compute (``host/solver:fairbottleneck``; from their observed
behaviour), in their order of operations, so that rates agree to the last digits: uses are
subtracted newest task first, with true divisions and no fused multiply-add. A task that names a
resource twice counts twice. Two defects are part of it: fixed tasks are charged again in each later
round, which wastes capacity, and a FATPIPE user may get more than the capacity when a slower task
shares the FATPIPE (`fairbottleneck_leaps` tells what this costs SimGrid, and sums it).

The corrected variant charges a task once, and treats a FATPIPE as a bound C_r / a_ri of each user.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.jit import entry, jit
from ptaskmodel.sharing.fairbottleneck_laid import (
    FIXED,
    LIVE,
    MANY_USES,
    ZERO,
    carve_rounds,
    keep_increments,
    lay_places,
    lay_tasks,
    rounds_sizes,
)
from ptaskmodel.sharing.fairbottleneck_leaps import leap, stop
from ptaskmodel.sharing.limits import LIMIT_BOUND, LIMIT_NOTHING

# Instead of the weight of the live users of a resource that has none.
NO_WEIGHT = 1e-100
# Rounds without a newly fixed task before the rest of the series is summed in closed form.
PATIENCE = 200
# Rounds without a newly fixed task before the live tasks are given their FATPIPE's capacity.
GIVE_UP = 1_000_000
# From so many lanes on, resources are charged side by side.
WIDE = 4
# Unsigned indices spare the test for negative ones in the innermost loops.
ONE, TWO, THREE, FOUR = (np.uint64(k) for k in range(1, 5))


def scratch_sizes(n: int, m: int, elements: int) -> tuple[int, int]:
    """Lengths of the float64 and int64 scratch arrays of the kernel."""
    return rounds_sizes(n, m, elements)


@entry
def solve_fairbottleneck(system, settings, answer, reals, integers):
    """Fill the rates and limits; returns 0. Scratch: see ``scratch_sizes``. Variant: corrected.

    Tasks come oldest first.
    """
    n = system.start.size - 1
    v = carve_rounds(n, system.capacity.size, system.start[n], reals, integers)
    shared, used = lay_places(system, v)
    n_live = lay_tasks(shared, system, answer.rate, v)
    weighted = _bound_tasks(n_live, settings.variant and used > shared, system, answer, v)
    charged = used
    if settings.variant:
        charged = shared
        for p in range(shared, used):
            v.share[p] = np.inf
    quiet = 0
    v.passed[0] = 0
    while n_live > 0:
        _share(shared, charged, v)
        fixed = _grow(n_live, system, answer, v)
        _charge(shared, v)
        n_full = _list_full(shared, settings.nothing_left, v)
        if charged > shared:
            n_full = _charge_fatpipes(shared, charged, n_full, settings.nothing_left, v)
        fixed += _fix_users_of_full(n_full, system, answer, v)
        keep_increments(v)
        if fixed > 0:
            quiet = 0
            n_live = _still_live(n_live, settings.variant, v)
        else:
            quiet += 1
            if charged > shared and quiet % PATIENCE == 0:
                # With weights the series is not summed: its rounds are cut short.
                endless = weighted or leap(
                    shared, used, system, settings.nothing_left, answer.rate, v
                )
                if endless or quiet >= GIVE_UP:
                    stop(shared, system, answer, v)
                    n_live = 0
    return 0


@jit
def _bound_tasks(n_live, folded, system, answer, v):
    """The largest rate of each task, and weights; whether they differ.

    folded: FATPIPEs are ceilings.
    """
    start, resource, usage = system.start, system.resource, system.usage
    weighted = False
    for i in range(start.size - 1):
        weighted = weighted or system.weight[i] != 1.0
        top = system.bound[i]
        if folded:
            for k in range(start[i], start[i + 1]):
                if usage[k] > 0.0 and system.fatpipe[resource[k]]:
                    top = min(top, system.capacity[resource[k]] / usage[k])
        v.ceiling[i] = top
        answer.limit[i] = LIMIT_NOTHING
    if weighted:  # else the number of uses
        v.total[:] = 0.0
        for a in range(n_live):
            i = v.live[a]
            for e in range(v.run_first[v.run_from[i]], v.run_first[v.run_to[i]]):
                v.total[v.element[e]] += system.weight[i]
    return weighted


@jit
def _share(shared, charged, v):
    """What each use of a resource may take this round."""
    share, left, total = v.share, v.left, v.total
    for p in range(shared):
        uses = total[p]
        share[p] = left[p] / (uses if uses > NO_WEIGHT else NO_WEIGHT)
    for p in range(shared, charged):
        share[p] = left[p]


@jit
def _least(share, element, first, last):
    """The smallest share of a row of elements; four at a time, as each minimum takes its while."""
    a = share[np.uint64(element[first])]
    e = first + ONE
    if e + THREE < last:
        b = a
        c = a
        d = a
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
        a = a if a < b else b
        c = c if c < d else d
        a = a if a < c else c
    while e < last:
        x = share[np.uint64(element[e])]
        a = x if x < a else a
        e += ONE
    return a


@jit
def _grow(n_live, system, answer, v):
    """Grow the live tasks; returns how many reach their ceiling."""
    fixed = 0
    for a in range(n_live):
        i = np.uint64(v.live[a])
        rate = answer.rate[i]
        d = v.ceiling[i] - rate
        for q in range(np.uint64(v.run_from[i]), np.uint64(v.run_to[i])):
            first = np.uint64(v.run_first[q])
            last = np.uint64(v.run_first[q + ONE])
            x = _least(v.share, v.element, first, last) / v.run_usage[q] * v.run_weight[q]
            d = x if x < d else d
        for q in range(np.uint64(v.run_from[i]), np.uint64(v.run_to[i])):
            v.value[q] = v.run_usage[q] * d
        v.increment[i] = d
        rate += d
        answer.rate[i] = rate
        if rate == v.ceiling[i]:
            fixed += 1
            answer.limit[i] = _bounding(i, system)
            _fix(i, system.weight[i], v)
    return fixed


@jit
def _charge(shared, v):
    """Charge every use of the SHARED resources, newest first."""
    left, user, value = v.left, v.user, v.value
    for c in range(1, MANY_USES):
        first = v.group[c]
        width = v.group[c + 1] - first
        if width >= WIDE:
            h = v.base[first]
            for _ in range(c):
                for lane in range(width):
                    left[np.uint64(first + lane)] -= value[np.uint64(user[np.uint64(h + lane)])]
                h += width
        else:
            for p in range(first, first + width):
                x = left[p]
                h = v.base[p]
                for _ in range(c):
                    x -= value[np.uint64(user[np.uint64(h)])]
                    h += width
                left[p] = x
    for p in range(v.group[MANY_USES], shared):
        x = left[p]
        for h in range(np.uint64(v.base[p]), np.uint64(v.base[p] + v.count[p])):
            x -= value[np.uint64(user[h])]
        left[p] = x


@jit
def _list_full(shared, nothing_left, v):
    """List the SHARED resources that are used up; returns how many are."""
    n_full = ZERO
    for p in range(np.uint64(shared)):
        if v.left[p] < nothing_left:
            v.full[np.uint64(n_full)] = p
            n_full += 1
    return n_full


@jit
def _charge_fatpipes(shared, charged, n_full, nothing_left, v):
    """Take from each FATPIPE the smallest consumption of its users, instead of the sum.

    Those used up are listed too; returns how many there are now.
    """
    for p in range(shared, charged):
        least = v.share[p]
        for h in range(v.base[p], v.base[p] + v.count[p]):
            least = min(least, v.value[v.user[h]])
        v.left[p] = v.share[p] - least
        if v.left[p] < nothing_left:
            v.full[n_full] = p
            n_full += 1
    return n_full


@jit
def _fix_users_of_full(n_full, system, answer, v):
    """What is used up fixes its live users (how many) and is never looked at again."""
    full, origin = v.full, v.origin
    for a in range(1, n_full):
        p = full[a]
        b = a - 1
        while b >= 0 and origin[full[b]] > origin[p]:
            full[b + 1] = full[b]
            b -= 1
        full[b + 1] = p
    fixed = 0
    for a in range(np.uint64(n_full)):
        p = np.uint64(full[a])
        v.left[p] = np.inf
        h = np.uint64(v.base[p])
        stride = np.uint64(v.stride[p])
        for _ in range(v.count[p]):
            i = np.uint64(v.run_task[np.uint64(v.user[h])])
            h += stride
            if v.state[i] == LIVE:
                fixed += 1
                answer.limit[i] = origin[p]
                _fix(i, system.weight[i], v)
    return fixed


@jit
def _fix(i, weight, v):
    """Count a task out of the live users of its resources."""
    v.state[i] = FIXED
    first = np.uint64(v.run_first[np.uint64(v.run_from[i])])
    for e in range(first, np.uint64(v.run_first[np.uint64(v.run_to[i])])):
        v.total[np.uint64(v.element[e])] -= weight


@jit
def _still_live(n_live, corrected, v):
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
            for q in range(np.uint64(v.run_from[i]), np.uint64(v.run_to[i])):
                v.value[q] = 0.0
    return n


@jit
def _bounding(i, system):
    """What a task at its ceiling is limited by: a FATPIPE tighter than its bound, or that."""
    tightest = system.bound[i]
    name = LIMIT_BOUND
    for k in range(system.start[i], system.start[i + 1]):
        r = system.resource[k]
        a = system.usage[k]
        if system.fatpipe[r] and a > 0.0 and system.capacity[r] / a < tightest:
            tightest = system.capacity[r] / a
            name = r
    return name
