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

from typing import NamedTuple

import numpy as np

from ptaskmodel.jit import entry, jit
from ptaskmodel.sharing.arrays import carve
from ptaskmodel.sharing.limits import LIMIT_BOUND, LIMIT_NOTHING

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


def scratch_sizes(n: int, m: int, elements: int) -> tuple[int, int]:
    """Lengths of the float64 and int64 scratch arrays of the kernel."""
    return 5 * m + 2 * n, 3 * m + 3 * n + 2 * elements


class Rounds(NamedTuple):
    """The state of the rounds: of resources, tasks, elements."""

    share: np.ndarray  # u_r: what each use may take
    left: np.ndarray  # R_r
    users: np.ndarray  # live uses
    total: np.ndarray  # n_r: their weights
    loss: np.ndarray
    increment: np.ndarray  # d_i
    ceiling: np.ndarray  # largest rate of a task
    last_use: np.ndarray  # the oldest task's element on a resource
    active: np.ndarray  # list of resources with live uses
    fat: np.ndarray  # list of FATPIPEs
    present: np.ndarray  # list of the tasks, newest first, that are live or still charged
    state: np.ndarray
    limiting: np.ndarray
    user: np.ndarray
    earlier_use: np.ndarray


@jit
def carve_rounds(n, m, z, reals, integers):
    """The scratch arrays as those of the `Rounds`."""
    share, reals = carve(reals, m)
    left, reals = carve(reals, m)
    users, reals = carve(reals, m)
    total, reals = carve(reals, m)
    loss, reals = carve(reals, m)
    increment, reals = carve(reals, n)
    ceiling, reals = carve(reals, n)
    last_use, integers = carve(integers, m)
    active, integers = carve(integers, m)
    fat, integers = carve(integers, m)
    present, integers = carve(integers, n)
    state, integers = carve(integers, n)
    limiting, integers = carve(integers, n)
    user, integers = carve(integers, z)
    earlier_use, integers = carve(integers, z)
    return Rounds(
        share, left, users, total, loss, increment, ceiling, last_use, active, fat, present, state,
        limiting, user, earlier_use,
    )  # fmt: skip


@entry
def solve_fairbottleneck(system, settings, answer, reals, integers):
    """Fill the rates and limits; returns 0. Scratch: see ``scratch_sizes``. Variant: corrected.

    Tasks come oldest first.
    """
    n = system.start.size - 1
    m = system.capacity.size
    v = carve_rounds(n, m, system.start[n], reals, integers)
    n_present, n_fat, weighted = _begin(system, settings.variant, answer, v)
    n_live = n_present
    n_active = m
    half = n_live // 2
    quiet = 0
    while n_live > 0:
        _share(m, n_active, n_fat, v)
        before = n_live
        n_live -= _grow_and_charge(n_present, weighted, system, answer, v)
        if n_fat > 0:
            _charge_fatpipes(n_fat, system.usage, v)
        n_live -= _fix_users_of_full(n_active, settings.nothing_left, system, answer, v)
        if n_live < before:
            quiet = 0
            n_present = _still_present(n_present, v, settings.variant)
            if n_live < half:
                half = n_live // 2
                n_active = _still_active(n_active, v)
        else:
            quiet += 1
            if n_fat > 0 and quiet % PATIENCE == 0:
                # With weights the series is not summed: its rounds are cut short.
                endless = weighted or _leap(system, settings.nothing_left, answer.rate, v)
                if endless or quiet >= GIVE_UP:
                    _stop(system, answer, v)
                    n_live = 0
    return 0


@jit
def _begin(system, corrected, answer, v):
    """Everybody at rate 0, nothing charged: (tasks present, FATPIPEs, whether weights differ)."""
    start, resource, usage = system.start, system.resource, system.usage
    n_fat = ZERO
    for r in range(system.capacity.size):
        v.users[r] = 0.0
        v.total[r] = 0.0
        v.last_use[r] = -1
        v.active[r] = r
        v.left[r] = system.capacity[r]
        if system.fatpipe[r]:
            if corrected:
                v.left[r] = np.inf
            else:
                v.fat[n_fat] = r
                n_fat += 1
    n_present = ZERO
    weighted = False
    for i in range(start.size - 2, -1, -1):
        top = system.bound[i]
        weight = system.weight[i]
        weighted = weighted or weight != 1.0
        idle = True
        for k in range(start[i], start[i + 1]):
            if usage[k] > 0.0:
                idle = False
                r = resource[k]
                v.users[r] += 1.0
                v.total[r] += weight
                v.user[k] = i
                v.earlier_use[k] = v.last_use[r]
                v.last_use[r] = k
                if corrected and system.fatpipe[r]:
                    top = min(top, system.capacity[r] / usage[k])
        v.ceiling[i] = top
        answer.limit[i] = LIMIT_NOTHING
        if idle:
            answer.rate[i] = 1.0
            v.state[i] = GONE
        else:
            answer.rate[i] = 0.0
            v.state[i] = LIVE
            v.present[n_present] = i
            n_present += 1
    return n_present, n_fat, weighted


@jit
def _grow_and_charge(n_present, weighted, system, answer, v):
    """Grow the live tasks and charge everybody; returns how many reach their ceiling."""
    start, resource, usage = system.start, system.resource, system.usage
    rate = answer.rate
    fixed = 0
    for a in range(n_present):
        i = v.present[a]
        first = np.uint64(start[i])
        last = np.uint64(start[i + 1])
        if v.state[i] == LIVE:
            d = v.ceiling[i] - rate[i]
            for k in range(first, last):
                x = v.share[np.uint64(resource[k])] / usage[k]
                if weighted and not system.fatpipe[np.uint64(resource[k])]:
                    x *= system.weight[i]
                if x < d:
                    d = x
            v.increment[i] = d
            rate[i] += d
            for j in range(first, last):
                k = last - ONE + first - j
                v.left[np.uint64(resource[k])] -= usage[k] * d
            if rate[i] == v.ceiling[i]:
                fixed += 1
                answer.limit[i] = _bounding(i, system)
                _fix(i, system, v)
        else:
            d = v.increment[i]
            v.state[i] = GONE
            for j in range(first, last):
                k = last - ONE + first - j
                r = np.uint64(resource[k])
                if v.users[r] > 0.0:
                    v.left[r] -= usage[k] * d
                    v.state[i] = FIXED
    return fixed


@jit
def _fix_users_of_full(n_active, nothing_left, system, answer, v):
    """A resource with nothing left fixes its live users (how many) and is never looked at again."""
    fixed = 0
    for a in range(n_active):
        r = v.active[a]
        if v.left[r] < nothing_left:
            v.left[r] = np.inf
            v.users[r] = 0.0
            k = v.last_use[r]
            while k >= 0:
                i = v.user[k]
                if v.state[i] == LIVE:
                    fixed += 1
                    answer.limit[i] = r
                    _fix(i, system, v)
                k = v.earlier_use[k]
    return fixed


@jit
def _share(m, n_active, n_fat, v):
    """What each use of a resource may take this round (anything if it has no live users)."""
    if n_active == m:
        for r in range(m):
            v.share[r] = v.left[r] / max(v.total[r], NO_WEIGHT)
    else:
        for a in range(n_active):
            r = v.active[a]
            v.share[r] = v.left[r] / max(v.total[r], NO_WEIGHT)
    for f in range(n_fat):
        v.share[v.fat[f]] = v.left[v.fat[f]]


@jit
def _fix(i, system, v):
    """Count a task out of the live users of its resources."""
    v.state[i] = FIXED
    for k in range(system.start[i], system.start[i + 1]):
        r = system.resource[k]
        if v.users[r] > 0.0 and system.usage[k] > 0.0:
            v.users[r] -= 1.0
            v.total[r] -= system.weight[i]


@jit
def _still_present(n_present, v, corrected):
    """Forget the tasks that are fixed and charge nothing any more."""
    q = 0
    for a in range(n_present):
        i = v.present[a]
        if v.state[i] == LIVE or (v.state[i] == FIXED and not corrected):
            v.present[q] = i
            q += 1
    return q


@jit
def _still_active(n_active, v):
    """Forget the resources without live users."""
    q = 0
    for a in range(n_active):
        if v.users[v.active[a]] > 0.0:
            v.active[q] = v.active[a]
            q += 1
    return q


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


@jit
def _charge_fatpipes(n_fat, usage, v):
    """Take from each FATPIPE the smallest consumption of its users, instead of the sum."""
    for f in range(n_fat):
        r = v.fat[f]
        least = v.share[r]
        k = v.last_use[r]
        while k >= 0:
            least = min(least, usage[k] * v.increment[v.user[k]])
            k = v.earlier_use[k]
        v.left[r] = v.share[r] - least


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
def _leap(system, nothing_left, rate, v):
    """Do at once as many rounds as go on in the same way; returns True if they go on for ever.

    With every live task i limited by a FATPIPE f whose least consumer is a fixed task, each round
    takes the same c_f from f: after t rounds its remaining capacity is R_f - c_f t, the increment
    of i is (R_f - c_f t) / a, and a SHARED resource has R - (A + B/2) t + (B/2) t^2 left. SimGrid
    goes through these rounds one by one, 10^8 of them on an ordinary loopback, and for ever when
    c_f = 0. Here they are summed up to the first that would differ: another resource limits a task,
    a bound is reached, something is used up. For ever means: those tasks are given C_f / a.

    A is written to ``share``, B to ``loss``, each task's limiting element to ``limiting``.
    """
    start, resource, usage, fatpipe = system.start, system.resource, system.usage, system.fatpipe
    n = start.size - 1
    m = system.capacity.size
    state, increment, limiting, ceiling = v.state, v.increment, v.limiting, v.ceiling
    users, left, a_loss, b_loss = v.users, v.left, v.share, v.loss
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
            rounds = min(rounds, _first_negative(left[r] - nothing_left, h1, 0.5 * b_loss[r]))
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
def _stop(system, answer, v):
    """End rounds that would not end: a task limited by a FATPIPE is given its whole capacity."""
    for i in range(system.start.size - 1):
        if v.state[i] == LIVE:
            least = np.inf
            for k in range(system.start[i], system.start[i + 1]):
                r = system.resource[k]
                a = system.usage[k]
                if a > 0.0:
                    x = v.left[r] / (1 if system.fatpipe[r] else v.users[r]) / a
                    if x < least:
                        least = x
                        answer.limit[i] = r
                        if system.fatpipe[r]:
                            answer.rate[i] = min(v.ceiling[i], system.capacity[r] / a)
