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
# Resources are gone through by their number of users, up to this one: loops over their users, of
# one length for long, are predicted well. This halves the time of a round.
MANY_USERS = 32
# Beyond so few resources.
FEW = 16
# Unsigned indices spare the test for negative ones in the innermost loops.
ONE = np.uint64(1)
# States of a task; FIXED ones are still charged.
LIVE, FIXED, GONE = 0, 1, 2
# A literal 0 given to a kernel would be compiled for as a type of its own.
ZERO = np.int64(0)


def scratch_sizes(n: int, m: int, elements: int) -> tuple[int, int]:
    """Lengths of the float64 and int64 scratch arrays of the kernel."""
    return 5 * m + 2 * n, 3 * m + 3 * n + MANY_USERS + 2


class Rounds(NamedTuple):
    """The state of the rounds: of resources, of tasks."""

    share: np.ndarray  # u_r: what each use may take
    left: np.ndarray  # R_r
    users: np.ndarray  # live uses; nothing is left where none is
    total: np.ndarray  # n_r: their weights
    loss: np.ndarray
    increment: np.ndarray  # d_i
    ceiling: np.ndarray  # largest rate of a task
    shared: np.ndarray  # list of SHARED resources with live uses
    fat: np.ndarray  # list of FATPIPEs
    full: np.ndarray  # list of those used up in this round
    live: np.ndarray  # list of live tasks, newest first
    state: np.ndarray
    limiting: np.ndarray
    places: np.ndarray


@jit
def carve_rounds(n, m, reals, integers):
    """The scratch arrays as those of the `Rounds`."""
    share, reals = carve(reals, m)
    left, reals = carve(reals, m)
    users, reals = carve(reals, m)
    total, reals = carve(reals, m)
    loss, reals = carve(reals, m)
    increment, reals = carve(reals, n)
    ceiling, reals = carve(reals, n)
    shared, integers = carve(integers, m)
    fat, integers = carve(integers, m)
    full, integers = carve(integers, m)
    live, integers = carve(integers, n)
    state, integers = carve(integers, n)
    limiting, integers = carve(integers, n)
    places, integers = carve(integers, MANY_USERS + 2)
    return Rounds(
        share, left, users, total, loss, increment, ceiling, shared, fat, full, live, state,
        limiting, places,
    )  # fmt: skip


@entry
def solve_fairbottleneck(system, settings, answer, reals, integers):
    """Fill the rates and limits; returns 0. Scratch: see ``scratch_sizes``. Variant: corrected.

    Tasks come oldest first; the users of each resource are listed.
    """
    v = carve_rounds(system.start.size - 1, system.capacity.size, reals, integers)
    n_shared, n_fat = _begin_resources(system, settings.variant, v)
    n_live, weighted = _begin_tasks(system, settings.variant and n_fat > 0, answer, v)
    if settings.variant:
        n_fat = ZERO
    quiet = 0
    while n_live > 0:
        n_shared = _share(n_shared, n_fat, v)
        fixed = _grow(n_live, weighted, system, answer, v)
        n_full = _charge(n_shared, settings.nothing_left, system, v)
        if n_fat > 0:
            n_full = _charge_fatpipes(n_fat, n_full, settings.nothing_left, system, v)
        fixed += _fix_users_of_full(n_full, weighted, system, answer, v)
        if fixed > 0:
            quiet = 0
            n_live = _still_live(n_live, settings.variant, v)
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
def _begin_resources(system, corrected, v):
    """Nothing charged yet, everybody counted with weight 1; how many are SHARED, and FATPIPE."""
    first = system.first_user
    n_shared = ZERO
    n_fat = ZERO
    for p in range(MANY_USERS + 2):
        v.places[p] = 0
    for r in range(system.capacity.size):
        users = first[r + 1] - first[r]
        v.users[r] = users
        v.total[r] = users
        v.left[r] = system.capacity[r]
        v.share[r] = np.inf  # of a use of 0, or a FATPIPE in the corrected variant
        if system.fatpipe[r]:
            v.fat[n_fat] = r
            n_fat += 1
            if corrected:
                v.left[r] = np.inf
        elif users > 0:
            v.full[n_shared] = r
            n_shared += 1
            v.places[min(users, MANY_USERS) + 1] += 1
    for p in range(MANY_USERS + 1):
        v.places[p + 1] += v.places[p]
    for a in range(n_shared):
        r = v.full[a]
        if n_shared > FEW:
            p = min(first[r + 1] - first[r], MANY_USERS)
            v.shared[v.places[p]] = r
            v.places[p] += 1
        else:
            v.shared[a] = r
    return n_shared, n_fat


@jit
def _begin_tasks(system, folded, answer, v):
    """Everybody at rate 0: (how many are live, whether weights differ).

    folded: FATPIPEs are ceilings.
    """
    start, resource, usage = system.start, system.resource, system.usage
    n_live = ZERO
    weighted = False
    for i in range(start.size - 2, -1, -1):
        weighted = weighted or system.weight[i] != 1.0
        idle = True
        for k in range(start[i], start[i + 1]):
            if usage[k] > 0.0:
                idle = False
                break
        top = system.bound[i]
        if folded:
            for k in range(start[i], start[i + 1]):
                if usage[k] > 0.0 and system.fatpipe[resource[k]]:
                    top = min(top, system.capacity[resource[k]] / usage[k])
        v.ceiling[i] = top
        answer.limit[i] = LIMIT_NOTHING
        if idle:
            answer.rate[i] = 1.0
            v.state[i] = GONE
            v.increment[i] = 0.0
        else:
            answer.rate[i] = 0.0
            v.state[i] = LIVE
            v.live[n_live] = i
            n_live += 1
    if weighted:
        v.total[:] = 0.0
        for a in range(n_live):
            i = v.live[a]
            for k in range(start[i], start[i + 1]):
                if usage[k] > 0.0:
                    v.total[resource[k]] += system.weight[i]
    return n_live, weighted


@jit
def _share(n_shared, n_fat, v):
    """What each use of a resource may take this round; forgets resources without live users."""
    q = ZERO
    for a in range(n_shared):
        r = np.uint64(v.shared[a])
        v.share[r] = v.left[r] / max(v.total[r], NO_WEIGHT)
        v.shared[q] = r
        q += 1 if v.users[r] > 0.0 else 0
    for f in range(n_fat):
        v.share[v.fat[f]] = v.left[v.fat[f]]
    return q


@jit
def _grow(n_live, weighted, system, answer, v):
    """Grow the live tasks; returns how many reach their ceiling."""
    resource, usage, share = system.resource, system.usage, v.share
    fixed = 0
    for a in range(n_live):
        i = np.uint64(v.live[a])
        first = np.uint64(system.start[i])
        last = np.uint64(system.start[i + ONE])
        rate = answer.rate[i]
        d = v.ceiling[i] - rate
        if weighted:
            for k in range(first, last):
                x = share[np.uint64(resource[k])] / usage[k]
                if not system.fatpipe[np.uint64(resource[k])]:
                    x *= system.weight[i]
                if x < d:
                    d = x
        else:
            for k in range(first, last):
                x = share[np.uint64(resource[k])] / usage[k]
                if x < d:
                    d = x
        v.increment[i] = d
        rate += d
        answer.rate[i] = rate
        if rate == v.ceiling[i]:
            fixed += 1
            answer.limit[i] = _bounding(i, system)
            _fix(i, weighted, system, v)
    return fixed


@jit
def _charge(n_shared, nothing_left, system, v):
    """Charge every user of the SHARED resources; lists those used up, returns how many."""
    usage, user, first_user, increment = (
        system.user_usage, system.user, system.first_user, v.increment,
    )  # fmt: skip
    n_full = ZERO
    for a in range(n_shared):
        r = np.uint64(v.shared[a])
        left = v.left[r]
        for h in range(np.uint64(first_user[r]), np.uint64(first_user[r + ONE])):
            left -= usage[h] * increment[np.uint64(user[h])]
        v.left[r] = left
        if left < nothing_left:
            v.full[n_full] = r
            n_full += 1
    return n_full


@jit
def _charge_fatpipes(n_fat, n_full, nothing_left, system, v):
    """Take from each FATPIPE the smallest consumption of its users, instead of the sum.

    Those used up are listed too; returns how many there are now.
    """
    for f in range(n_fat):
        r = v.fat[f]
        least = v.share[r]
        for h in range(system.first_user[r], system.first_user[r + 1]):
            least = min(least, system.user_usage[h] * v.increment[system.user[h]])
        v.left[r] = v.share[r] - least
        if v.left[r] < nothing_left:
            v.full[n_full] = r
            n_full += 1
    return n_full


@jit
def _fix_users_of_full(n_full, weighted, system, answer, v):
    """What is used up fixes its live users (how many) and is never looked at again."""
    full = v.full
    for a in range(1, n_full):
        r = full[a]
        b = a - 1
        while b >= 0 and full[b] > r:
            full[b + 1] = full[b]
            b -= 1
        full[b + 1] = r
    fixed = 0
    for a in range(n_full):
        r = full[a]
        v.left[r] = np.inf
        v.users[r] = 0.0
        for h in range(system.first_user[r], system.first_user[r + 1]):
            i = system.user[h]
            if v.state[i] == LIVE:
                fixed += 1
                answer.limit[i] = r
                _fix(i, weighted, system, v)
    return fixed


@jit
def _fix(i, weighted, system, v):
    """Count a task out of the live users of its resources."""
    v.state[i] = FIXED
    for k in range(np.uint64(system.start[i]), np.uint64(system.start[i + 1])):
        if system.usage[k] > 0.0:
            r = np.uint64(system.resource[k])
            v.users[r] -= 1.0
            if weighted:
                v.total[r] -= system.weight[i]
            else:
                v.total[r] = v.users[r]


@jit
def _still_live(n_live, corrected, v):
    """Forget the tasks that are fixed; the corrected variant charges them no more."""
    q = ZERO
    for a in range(n_live):
        i = v.live[a]
        v.live[q] = i
        if v.state[i] == LIVE:
            q += 1
        elif corrected:
            v.increment[i] = 0.0
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
