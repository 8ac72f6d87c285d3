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
shares the FATPIPE (``_leap`` tells what this costs SimGrid, and sums it).

The corrected variant charges a task once, and treats a FATPIPE as a bound C_r / a_ri of each user.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.jit import entry, jit
from ptaskmodel.sharing.problem import Allocation, SharingProblem

# What is left of a capacity below this is nothing: SimGrid's precision/work-amount, absolute.
NOTHING_LEFT = 1e-5
# Instead of the weight of the live users of a resource that has none.
NO_WEIGHT = 1e-100
# Rounds without a newly fixed task before the rest of the series is summed in closed form.
PATIENCE = 200
# Rounds without a newly fixed task before the live tasks are given their FATPIPE's capacity.
GIVE_UP = 1_000_000
# Unsigned indices spare the test for negative ones in the innermost loops.
ONE = np.uint64(1)
# States of a task; FIXED ones are still charged.
LIVE, FIXED, GONE = 0, 1, 2
# A literal 0 given to a kernel would be compiled for as a type of its own.
ZERO = np.int64(0)


def fairbottleneck(problem: SharingProblem) -> Allocation:
    """Rates (1/s) that SimGrid's ``fairbottleneck`` gives."""
    return _solve(problem, False)


def fairbottleneck_corrected(problem: SharingProblem) -> Allocation:
    """Fair bottleneck without the double charge of fixed tasks and without the FATPIPE leak."""
    return _solve(problem, True)


def scratch_sizes(n: int, m: int, elements: int) -> tuple[int, int]:
    """Lengths of the float64 and int64 scratch arrays of the kernel."""
    return 5 * m + 2 * n, 3 * m + 3 * n + 2 * elements


def _solve(problem: SharingProblem, corrected: bool) -> Allocation:
    rates = np.empty(problem.n)
    limits = np.empty(problem.n, np.int64)
    sizes = scratch_sizes(problem.n, problem.m, problem.usage.size)
    # A use of 0 makes quotients that are never the smallest; without the JIT, numpy warns.
    with np.errstate(divide="ignore", invalid="ignore"):
        solve_fairbottleneck(
            problem.start,
            problem.resource,
            problem.usage,
            problem.capacity,
            problem.fatpipe,
            problem.bound,
            problem.weight,
            corrected,
            rates,
            limits,
            np.empty(sizes[0]),
            np.empty(sizes[1], np.int64),
        )
    rule = "fairbottleneck-corrected" if corrected else "fairbottleneck"
    return Allocation(problem, rule, rates, limits)


@entry
def solve_fairbottleneck(
    start, resource, usage, capacity, fatpipe, bound, weight, corrected, rate, limit, reals,
    integers,
):  # fmt: skip
    """Fill ``rate`` and ``limit``; returns 0.

    Tasks come oldest first. ``reals`` and ``integers`` are scratch, of ``scratch_sizes`` at least.
    """
    n = start.size - 1
    m = capacity.size
    z = start[n]
    share = reals[:m]
    left = reals[m : 2 * m]
    users = reals[2 * m : 3 * m]
    total = reals[3 * m : 4 * m]
    increment = reals[4 * m : 4 * m + n]
    ceiling = reals[4 * m + n : 4 * m + 2 * n]
    loss = reals[4 * m + 2 * n : 5 * m + 2 * n]
    last_use = integers[:m]
    active = integers[m : 2 * m]
    fat = integers[2 * m : 3 * m]
    present = integers[3 * m : 3 * m + n]
    state = integers[3 * m + n : 3 * m + 2 * n]
    user = integers[3 * m + 2 * n : 3 * m + 2 * n + z]
    earlier_use = integers[3 * m + 2 * n + z : 3 * m + 2 * n + 2 * z]
    limiting = integers[3 * m + 2 * n + 2 * z : 3 * m + 3 * n + 2 * z]

    n_fat = ZERO
    for r in range(m):
        users[r] = 0.0
        total[r] = 0.0
        last_use[r] = -1
        active[r] = r
        left[r] = capacity[r]
        if fatpipe[r]:
            if corrected:
                left[r] = np.inf
            else:
                fat[n_fat] = r
                n_fat += 1
    # `present` holds the tasks, newest first, that are live or still charged.
    n_present = ZERO
    weighted = False
    for i in range(n - 1, -1, -1):
        top = bound[i]
        weighted = weighted or weight[i] != 1.0
        idle = True
        for k in range(start[i], start[i + 1]):
            if usage[k] > 0.0:
                idle = False
                r = resource[k]
                users[r] += 1.0
                total[r] += weight[i]
                user[k] = i
                earlier_use[k] = last_use[r]
                last_use[r] = k
                if corrected and fatpipe[r]:
                    top = min(top, capacity[r] / usage[k])
        ceiling[i] = top
        limit[i] = -2
        if idle:
            rate[i] = 1.0
            state[i] = GONE
        else:
            rate[i] = 0.0
            state[i] = LIVE
            present[n_present] = i
            n_present += 1

    n_live = n_present
    n_active = m
    half = n_live // 2
    quiet = 0
    while n_live > 0:
        _share(m, n_active, active, total, left, share, n_fat, fat)
        before = n_live
        # Grow the live tasks and charge everybody.
        for a in range(n_present):
            i = present[a]
            first = np.uint64(start[i])
            last = np.uint64(start[i + 1])
            if state[i] == LIVE:
                d = ceiling[i] - rate[i]
                for k in range(first, last):
                    x = share[np.uint64(resource[k])] / usage[k]
                    if weighted and not fatpipe[np.uint64(resource[k])]:
                        x *= weight[i]
                    if x < d:
                        d = x
                increment[i] = d
                rate[i] += d
                for j in range(first, last):
                    k = last - ONE + first - j
                    left[np.uint64(resource[k])] -= usage[k] * d
                if rate[i] == ceiling[i]:
                    n_live -= 1
                    limit[i] = _bounding(i, start, resource, usage, capacity, fatpipe, bound)
                    _fix(i, start, resource, usage, weight[i], users, total, state)
            else:
                d = increment[i]
                state[i] = GONE
                for j in range(first, last):
                    k = last - ONE + first - j
                    r = np.uint64(resource[k])
                    if users[r] > 0.0:
                        left[r] -= usage[k] * d
                        state[i] = FIXED
        if n_fat > 0:
            _charge_fatpipes(n_fat, fat, last_use, earlier_use, user, usage, increment, share, left)
        # A resource with nothing left fixes its live users, and is never looked at again.
        for a in range(n_active):
            r = active[a]
            if left[r] < NOTHING_LEFT:
                left[r] = np.inf
                users[r] = 0.0
                k = last_use[r]
                while k >= 0:
                    i = user[k]
                    if state[i] == LIVE:
                        n_live -= 1
                        limit[i] = r
                        _fix(i, start, resource, usage, weight[i], users, total, state)
                    k = earlier_use[k]
        if n_live < before:
            quiet = 0
            n_present = _still_present(n_present, present, state, corrected)
            if n_live < half:
                half = n_live // 2
                n_active = _still_active(n_active, active, users)
        else:
            quiet += 1
            if n_fat > 0 and quiet % PATIENCE == 0:
                # With weights the series is not summed: its rounds are cut short.
                endless = weighted or _leap(
                    start, resource, usage, capacity, fatpipe, ceiling, rate, state, increment,
                    users, left, share, loss, limiting,
                )  # fmt: skip
                if endless or quiet >= GIVE_UP:
                    _stop(
                        start, resource, usage, capacity, fatpipe, ceiling, rate, limit, state,
                        users, left,
                    )  # fmt: skip
                    n_live = 0
    return 0


@jit
def _share(m, n_active, active, total, left, share, n_fat, fat):
    """What each use of a resource may take this round (anything if it has no live users)."""
    if n_active == m:
        for r in range(m):
            share[r] = left[r] / max(total[r], NO_WEIGHT)
    else:
        for a in range(n_active):
            r = active[a]
            share[r] = left[r] / max(total[r], NO_WEIGHT)
    for f in range(n_fat):
        share[fat[f]] = left[fat[f]]


@jit
def _fix(i, start, resource, usage, weight, users, total, state):
    """Count a task out of the live users of its resources."""
    state[i] = FIXED
    for k in range(start[i], start[i + 1]):
        r = resource[k]
        if users[r] > 0.0 and usage[k] > 0.0:
            users[r] -= 1.0
            total[r] -= weight


@jit
def _still_present(n_present, present, state, corrected):
    """Forget the tasks that are fixed and charge nothing any more."""
    q = 0
    for a in range(n_present):
        i = present[a]
        if state[i] == LIVE or (state[i] == FIXED and not corrected):
            present[q] = i
            q += 1
    return q


@jit
def _still_active(n_active, active, users):
    """Forget the resources without live users."""
    q = 0
    for a in range(n_active):
        if users[active[a]] > 0.0:
            active[q] = active[a]
            q += 1
    return q


@jit
def _bounding(i, start, resource, usage, capacity, fatpipe, bound):
    """What a task at its ceiling is limited by: a FATPIPE tighter than its bound, or that (-1)."""
    tightest = bound[i]
    name = -1
    for k in range(start[i], start[i + 1]):
        r = resource[k]
        if fatpipe[r] and usage[k] > 0.0 and capacity[r] / usage[k] < tightest:
            tightest = capacity[r] / usage[k]
            name = r
    return name


@jit
def _charge_fatpipes(n_fat, fat, last_use, earlier_use, user, usage, increment, share, left):
    """Take from each FATPIPE the smallest consumption of its users, instead of the sum."""
    for f in range(n_fat):
        r = fat[f]
        least = share[r]
        k = last_use[r]
        while k >= 0:
            least = min(least, usage[k] * increment[user[k]])
            k = earlier_use[k]
        left[r] = share[r] - least


@jit
def _first_negative(h0, h1, h2):
    """The first t >= 0 beyond which h0 + h1 t + h2 t^2 (h2 >= 0) is negative, or inf."""
    if h0 < 0.0 or h1 == -np.inf:
        return 0.0
    if h1 >= 0.0:
        return np.inf
    discriminant = h1 * h1 - 4.0 * h2 * h0
    if discriminant < 0.0:
        return np.inf
    return 2.0 * h0 / (-h1 + np.sqrt(discriminant))


@jit
def _leap(
    start, resource, usage, capacity, fatpipe, ceiling, rate, state, increment, users, left, a_loss,
    b_loss, limiting,
):  # fmt: skip
    """Do at once as many rounds as go on in the same way; returns True if they go on for ever.

    With every live task i limited by a FATPIPE f whose least consumer is a fixed task, each round
    takes the same c_f from f: after t rounds its remaining capacity is R_f - c_f t, the increment
    of i is (R_f - c_f t) / a, and a SHARED resource has R - (A + B/2) t + (B/2) t^2 left. SimGrid
    goes through these rounds one by one, 10^8 of them on an ordinary loopback, and for ever when
    c_f = 0. Here they are summed up to the first that would differ: another resource limits a task,
    a bound is reached, something is used up. For ever means: those tasks are given C_f / a.

    A and B are written to ``a_loss`` and ``b_loss`` (m), each task's limiting element to
    ``limiting`` (n).
    """
    n = start.size - 1
    m = capacity.size
    for r in range(m):
        a_loss[r] = np.inf if fatpipe[r] else 0.0
        b_loss[r] = 0.0
    for i in range(n):
        if state[i] != LIVE:
            for k in range(start[i], start[i + 1]):
                if usage[k] > 0.0:
                    r = resource[k]
                    if fatpipe[r]:
                        a_loss[r] = min(a_loss[r], usage[k] * increment[i])
                    else:
                        a_loss[r] += usage[k] * increment[i]
    for i in range(n):
        if state[i] == LIVE:
            least = np.inf
            limiting[i] = start[i]
            for k in range(start[i], start[i + 1]):
                r = resource[k]
                if usage[k] > 0.0:
                    x = left[r] / (1 if fatpipe[r] else users[r]) / usage[k]
                    if x < least:
                        least = x
                        limiting[i] = k
            f = resource[limiting[i]]
            if not fatpipe[f] or a_loss[f] == np.inf:
                return False
            for k in range(start[i], start[i + 1]):
                r = resource[k]
                if not fatpipe[r]:
                    ratio = usage[k] / usage[limiting[i]]
                    a_loss[r] += ratio * left[f]
                    b_loss[r] += ratio * a_loss[f]
    rounds = np.inf
    for i in range(n):
        if state[i] == LIVE:
            f = resource[limiting[i]]
            a = usage[limiting[i]]
            c = a_loss[f]
            h0 = ceiling[i] - rate[i] - left[f] / a
            rounds = min(rounds, _first_negative(h0, (0.5 * c - left[f]) / a, 0.5 * c / a))
            for k in range(start[i], start[i + 1]):
                if usage[k] > 0.0:
                    r = resource[k]
                    if k != limiting[i]:
                        w = usage[k] * (1 if fatpipe[r] else users[r])
                        h0 = left[r] / w - left[f] / a
                        h1 = c / a - (a_loss[r] + 0.5 * b_loss[r]) / w
                        rounds = min(rounds, _first_negative(h0, h1, 0.5 * b_loss[r] / w))
                    if fatpipe[r]:
                        h0 = usage[k] * left[f] / a - a_loss[r]
                        rounds = min(rounds, _first_negative(h0, -usage[k] * c / a, 0.0))
    for r in range(m):
        if users[r] > 0:
            h1 = -(a_loss[r] + 0.5 * b_loss[r])
            rounds = min(rounds, _first_negative(left[r] - NOTHING_LEFT, h1, 0.5 * b_loss[r]))
    if rounds == np.inf:
        return True
    t = np.floor(rounds) - 1.0
    if t >= 1.0:
        for i in range(n):
            if state[i] == LIVE:
                f = resource[limiting[i]]
                rate[i] += (left[f] * t - a_loss[f] * (0.5 * t * (t - 1.0))) / usage[limiting[i]]
        for r in range(m):
            if users[r] > 0:
                left[r] -= (a_loss[r] + 0.5 * b_loss[r]) * t - 0.5 * b_loss[r] * t * t
    return False


@jit
def _stop(start, resource, usage, capacity, fatpipe, ceiling, rate, limit, state, users, left):
    """End rounds that would not end: a task limited by a FATPIPE is given its whole capacity."""
    for i in range(start.size - 1):
        if state[i] == LIVE:
            least = np.inf
            for k in range(start[i], start[i + 1]):
                r = resource[k]
                if usage[k] > 0.0:
                    x = left[r] / (1 if fatpipe[r] else users[r]) / usage[k]
                    if x < least:
                        least = x
                        limit[i] = r
                        if fatpipe[r]:
                            rate[i] = min(ceiling[i], capacity[r] / usage[k])
