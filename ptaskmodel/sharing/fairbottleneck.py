"""Fair bottleneck, the allocation of SimGrid's parallel-task model, and its corrected variant.

Rounds over the *live* tasks (rate not fixed yet) and the *active* resources (with a live user), with
R_r the remaining capacity of r, a_ri the usage of task i and n_r the number of live uses of r:

1. u_r = R_r / n_r (FATPIPE: u_r = R_r);
2. each live task grows by d_i = min(min_r u_r / a_ri, bound_i - x_i); at its bound exactly, it is
   fixed;
3. each active resource loses a_ri d_i for *every* task, those fixed in earlier rounds included, with
   their last increment; a FATPIPE loses the smallest of these and of u_r. What falls below 1e-5 is 0;
4. a resource with nothing left fixes its live users.

This is what SimGrid 3.32 and 4.2 compute (``host/solver:fairbottleneck``; observed behaviour, not
their text), in their order of operations, so that rates agree to the last digits: uses
are subtracted newest task first, with true divisions and no fused multiply-add. A task that names a
resource twice counts twice. Two defects are part of it: fixed tasks are charged again in each later
round, which wastes capacity, and a FATPIPE user may get more than the capacity when a slower task
shares the FATPIPE (see ``_leap`` for what this costs SimGrid, and how it is summed here).

The corrected variant charges a task once, and treats a FATPIPE as the bound C_r / a_ri of each user.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.jit import jit
from ptaskmodel.sharing.problem import Allocation, SharingProblem

# What is left of a capacity below this is nothing: SimGrid's precision/work-amount, absolute.
NOTHING_LEFT = 1e-5
# Rounds without a newly fixed task before the rest of the series is summed in closed form.
PATIENCE = 200
# Rounds without a newly fixed task before the live tasks are given their FATPIPE's capacity.
GIVE_UP = 1_000_000


def fairbottleneck(problem: SharingProblem) -> Allocation:
    """Rates (1/s) that SimGrid's ``fairbottleneck`` gives."""
    return _solve(problem, False)


def fairbottleneck_corrected(problem: SharingProblem) -> Allocation:
    """Fair bottleneck without the double charge of fixed tasks and without the FATPIPE leak."""
    return _solve(problem, True)


def scratch_sizes(n: int, m: int, elements: int) -> tuple[int, int]:
    """Lengths of the float64 and int64 scratch arrays for n tasks, m resources and that many uses."""
    return 2 * m + 2 * n + elements, 2 * m + 2 * n + 3 * elements


def _solve(problem: SharingProblem, corrected: bool) -> Allocation:
    rates = np.empty(problem.n)
    limits = np.empty(problem.n, np.int64)
    sizes = scratch_sizes(problem.n, problem.m, problem.usage.size)
    solve_fairbottleneck(
        problem.start,
        problem.resource,
        problem.usage,
        problem.capacity,
        problem.fatpipe,
        problem.bound,
        corrected,
        rates,
        limits,
        np.empty(sizes[0]),
        np.empty(sizes[1], np.int64),
    )
    rule = "fairbottleneck-corrected" if corrected else "fairbottleneck"
    return Allocation(problem, rule, rates, limits)


@jit
def solve_fairbottleneck(
    start, resource, usage, capacity, fatpipe, bound, corrected, rate, limit, reals, integers
):
    """Fill ``rate`` and ``limit``; returns 0.

    Tasks come oldest first. ``reals`` and ``integers`` are scratch, of ``scratch_sizes`` at least.
    """
    n = start.size - 1
    m = capacity.size
    z = start[n]
    share = reals[:m]
    left = reals[m : 2 * m]
    increment = reals[2 * m : 2 * m + n]
    ceiling = reals[2 * m + n : 2 * m + 2 * n]
    fixed_usage = reals[2 * m + 2 * n : 2 * m + 2 * n + z]
    users = integers[:m]
    active = integers[m : 2 * m]
    present = integers[2 * m : 2 * m + n]
    fixed_end = integers[2 * m + n : 2 * m + 2 * n]
    fixed_resource = integers[2 * m + 2 * n : 2 * m + 2 * n + z]
    fat_task = integers[2 * m + 2 * n + z : 2 * m + 2 * n + 2 * z]
    fat_element = integers[2 * m + 2 * n + 2 * z : 2 * m + 2 * n + 3 * z]

    for r in range(m):
        users[r] = 0
        left[r] = capacity[r]
    n_fat = 0
    n_present = 0
    # `present` holds the tasks, newest first, that are live (fixed_end < 0) or still charged.
    for i in range(n - 1, -1, -1):
        top = bound[i]
        used = False
        for k in range(start[i], start[i + 1]):
            if usage[k] > 0.0:
                used = True
                r = resource[k]
                users[r] += 1
                if fatpipe[r]:
                    if corrected:
                        top = min(top, capacity[r] / usage[k])
                    else:
                        fat_task[n_fat] = i
                        fat_element[n_fat] = k
                        n_fat += 1
        ceiling[i] = top
        if used:
            rate[i] = 0.0
            limit[i] = -2
            fixed_end[i] = -1
            present[n_present] = i
            n_present += 1
        else:
            rate[i] = 1.0
            limit[i] = -2
            fixed_end[i] = start[i]
    n_active = 0
    for r in range(m):
        if users[r] > 0:
            if not fatpipe[r]:
                share[r] = left[r] / users[r]
                active[n_active] = r
                n_active += 1
            elif corrected:
                share[r] = np.inf
            else:
                share[r] = left[r]
                active[n_active] = r
                n_active += 1

    n_live = n_present
    quiet = 0
    while n_live > 0:
        before = n_live
        # Grow the live tasks and charge everybody.
        for a in range(n_present):
            i = present[a]
            first = start[i]
            if fixed_end[i] < 0:
                last = start[i + 1]
                d = ceiling[i] - rate[i]
                for k in range(first, last):
                    x = share[resource[k]] / usage[k]
                    if x < d:
                        d = x
                increment[i] = d
                rate[i] += d
                for k in range(last - 1, first - 1, -1):
                    left[resource[k]] -= usage[k] * d
                if rate[i] == ceiling[i]:
                    fixed_end[i] = _fix(
                        i, start, resource, usage, users, fixed_resource, fixed_usage
                    )
                    limit[i] = _bounding(i, start, resource, usage, capacity, fatpipe, bound)
                    n_live -= 1
            else:
                d = increment[i]
                q = first
                for k in range(first, fixed_end[i]):
                    r = fixed_resource[k]
                    if users[r] > 0:
                        x = fixed_usage[k]
                        left[r] -= x * d
                        fixed_resource[q] = r
                        fixed_usage[q] = x
                        q += 1
                fixed_end[i] = q
        if n_fat > 0:
            _least_consumed(n_fat, fat_task, fat_element, resource, usage, increment, share, left)
        # A resource with nothing left fixes its users: 0 users marks it until they are told.
        saturated = False
        for a in range(n_active):
            r = active[a]
            if fatpipe[r]:
                left[r] = share[r] - left[r]
            if left[r] < NOTHING_LEFT:
                users[r] = 0
                saturated = True
        if saturated:
            for a in range(n_present):
                i = present[a]
                if fixed_end[i] < 0:
                    for k in range(start[i], start[i + 1]):
                        if users[resource[k]] == 0 and usage[k] > 0.0:
                            limit[i] = resource[k]
                            fixed_end[i] = _fix(
                                i, start, resource, usage, users, fixed_resource, fixed_usage
                            )
                            n_live -= 1
                            break
        # Forget resources without live users and tasks that charge nothing any more.
        q = 0
        for a in range(n_active):
            r = active[a]
            c = users[r]
            if c > 0:
                share[r] = left[r] if fatpipe[r] else left[r] / c
                active[q] = r
                q += 1
        n_active = q
        if n_live < before:
            q = 0
            for a in range(n_present):
                i = present[a]
                if fixed_end[i] < 0 or (fixed_end[i] > start[i] and not corrected):
                    present[q] = i
                    q += 1
            n_present = q
            quiet = 0
        else:
            quiet += 1
            if n_fat > 0 and quiet % PATIENCE == 0:
                endless = _leap(
                    start, resource, usage, capacity, fatpipe, ceiling, rate, fixed_end, increment,
                    users, left,
                )  # fmt: skip
                if endless or quiet >= GIVE_UP:
                    _stop(
                        start, resource, usage, capacity, fatpipe, ceiling, rate, limit, fixed_end,
                        users, left,
                    )  # fmt: skip
                    n_live = 0
                for a in range(n_active):
                    r = active[a]
                    share[r] = left[r] if fatpipe[r] else left[r] / users[r]
    return 0


@jit
def _fix(i, start, resource, usage, users, fixed_resource, fixed_usage):
    """Count a task out of its resources; copy its uses, last first, and return where they end."""
    q = start[i]
    for k in range(start[i + 1] - 1, start[i] - 1, -1):
        r = resource[k]
        if users[r] > 0 and usage[k] > 0.0:
            users[r] -= 1
            fixed_resource[q] = r
            fixed_usage[q] = usage[k]
            q += 1
    return q


@jit
def _bounding(i, start, resource, usage, capacity, fatpipe, bound):
    """What a task at its ceiling is limited by: a FATPIPE tighter than its bound, or its bound (-1)."""
    tightest = bound[i]
    name = -1
    for k in range(start[i], start[i + 1]):
        r = resource[k]
        if fatpipe[r] and usage[k] > 0.0 and capacity[r] / usage[k] < tightest:
            tightest = capacity[r] / usage[k]
            name = r
    return name


@jit
def _least_consumed(n_fat, fat_task, fat_element, resource, usage, increment, share, left):
    """Put the smallest consumption of its users, at most its share, in ``left`` of each FATPIPE."""
    for f in range(n_fat):
        r = resource[fat_element[f]]
        left[r] = share[r]
    for f in range(n_fat):
        k = fat_element[f]
        consumed = usage[k] * increment[fat_task[f]]
        if consumed < left[resource[k]]:
            left[resource[k]] = consumed


@jit
def _first_negative(h0, h1, h2):
    """The first t >= 0 beyond which h0 + h1 t + h2 t^2 (h2 >= 0) is negative, or inf."""
    if h0 < 0.0:
        return 0.0
    if h1 >= 0.0:
        return np.inf
    discriminant = h1 * h1 - 4.0 * h2 * h0
    if discriminant < 0.0:
        return np.inf
    return 2.0 * h0 / (-h1 + np.sqrt(discriminant))


@jit
def _leap(
    start, resource, usage, capacity, fatpipe, ceiling, rate, fixed_end, increment, users, left
):
    """Do at once as many rounds as go on in the same way; returns True if they go on for ever.

    With every live task i limited by a FATPIPE f whose least consumer is a fixed task, each round
    takes the same c_f from f: its remaining capacity after t rounds is R_f - c_f t, the increment of
    i is (R_f - c_f t) / a, and that of a SHARED resource is R - (A + B/2) t + (B/2) t^2. SimGrid goes
    through these rounds one by one, 10^8 of them on an ordinary loopback, and for ever when c_f = 0.
    Here they are summed up to the first that would differ: another resource limits a task, a bound
    is reached, something is used up. For ever means: those tasks are given C_f / a.
    """
    n = start.size - 1
    m = capacity.size
    a_loss = np.zeros(m)
    b_loss = np.zeros(m)
    limiting = np.full(n, -1, np.int64)
    for r in range(m):
        if fatpipe[r]:
            a_loss[r] = np.inf
    for i in range(n):
        if fixed_end[i] >= start[i]:
            for k in range(start[i], start[i + 1]):
                if usage[k] > 0.0:
                    r = resource[k]
                    if fatpipe[r]:
                        a_loss[r] = min(a_loss[r], usage[k] * increment[i])
                    else:
                        a_loss[r] += usage[k] * increment[i]
    for i in range(n):
        if fixed_end[i] < 0:
            least = np.inf
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
        if fixed_end[i] < 0:
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
            if fixed_end[i] < 0:
                f = resource[limiting[i]]
                rate[i] += (left[f] * t - a_loss[f] * (0.5 * t * (t - 1.0))) / usage[limiting[i]]
        for r in range(m):
            if users[r] > 0:
                left[r] -= (a_loss[r] + 0.5 * b_loss[r]) * t - 0.5 * b_loss[r] * t * t
    return False


@jit
def _stop(start, resource, usage, capacity, fatpipe, ceiling, rate, limit, fixed_end, users, left):
    """End rounds that would not end: a task limited by a FATPIPE is given its whole capacity."""
    for i in range(start.size - 1):
        if fixed_end[i] < 0:
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
