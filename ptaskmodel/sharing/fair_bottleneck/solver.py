"""Fair bottleneck, the allocation of SimGrid's parallel-task model, and its corrected variant.

Counterpart that updates rates from event to event: `heavy`.

The rounds are over the *live* tasks (rate not fixed yet) and the *active* resources (with a live
user). R_r is the remaining capacity of r, a_ri the usage of task i, p_i its weight, n_r the sum of
the weights of the live uses of r (their number, in SimGrid, which has no weights here):

1. u_r = R_r / n_r (FATPIPE: u_r = R_r);
2. each live task grows by d_i = min(min_r p_i u_r / a_ri, bound_i - x_i) (FATPIPE: no p_i); at its
   bound exactly, it is fixed;
3. each active resource loses a_ri d_i for *every* task, those fixed in earlier rounds included,
   with their last increment; a FATPIPE loses the smallest of these and of u_r. A remainder below
   1e-5 becomes 0;
4. a resource with nothing left fixes its live users.

SimGrid 3.32 and 4.2 compute the same (``host/solver:fairbottleneck``; from their observed
behaviour). The order of operations is theirs too, so that rates agree to the last digits: uses are
subtracted newest task first, with true divisions and no fused multiply-add. A task that names a
resource twice counts twice. The rule has two defects. Fixed tasks are charged again in each later
round, which wastes capacity. And a FATPIPE user may get more than the capacity when a slower task
shares the FATPIPE. The second defect can make rounds endless, or nearly so; `skip_rounds` computes
many such rounds in closed form.

The corrected variant charges a task once, and treats a FATPIPE as a bound C_r / a_ri of each user.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import entry, jit
from ptaskmodel.sharing.arrays import LIMIT_BOUND, LIMIT_NOTHING
from ptaskmodel.sharing.fair_bottleneck.rounds import (
    LIVE,
    assemble_places,
    assemble_tasks,
    carve_rounds,
    charge,
    fix_bounded,
    fix_users_of_full,
    go_through,
    grow,
    keep_increments,
    list_full,
    order_places,
    rounds_sizes,
    share_out,
    still_charged,
    still_live,
)

INFINITY = float("inf")
# Rounds without a newly fixed task before the rest of the series is summed in closed form.
PATIENCE = 200
# Rounds without a newly fixed task before the live tasks are given their FATPIPE's capacity.
GIVE_UP = 1_000_000

# mypy: allow-untyped-defs


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
def skip_rounds(shared, system, nothing_left, rate, v):
    """Do at once as many rounds as go on in the same way; returns True if they go on for ever.

    With every live task i limited by a FATPIPE f whose least consumer is a fixed task, each round
    takes the same c_f from f: after t rounds its remaining capacity is R_f - c_f t, the increment
    of i is (R_f - c_f t) / a, and a SHARED resource has R - (A + B/2) t + (B/2) t^2 left. SimGrid
    goes through these rounds one by one, 10^8 of them on an ordinary loopback, and for ever when
    c_f = 0. Here they are summed up to the first that would differ: another resource limits a task,
    a bound is reached, something is used up. For ever means: those tasks are given C_f / a.

    Resources are told by their places. A is written to ``share``, B to ``loss``, each task's
    limiting element to ``limiting``.
    """
    start, resource, usage = system.start, system.resource, system.usage
    n = start.size - 1
    state, increment, limiting, largest_rate = v.state, v.increment, v.limiting, v.largest_rate
    users, left, a_loss, b_loss = v.total, v.left, v.share, v.loss
    for r in range(system.capacity.size):
        a_loss[r] = 0.0 if r < shared else np.inf
        b_loss[r] = 0.0
    for i in range(n):
        if state[i] != LIVE:
            for k in range(start[i], start[i + 1]):
                if usage[k] > 0.0:
                    r = v.place[resource[k]]
                    if r >= shared:
                        a_loss[r] = min(a_loss[r], usage[k] * increment[i])
                    else:
                        a_loss[r] += usage[k] * increment[i]
    for i in range(n):
        if state[i] == LIVE:
            least = np.inf
            limiting[i] = start[i]
            for k in range(start[i], start[i + 1]):
                if usage[k] > 0.0:
                    r = v.place[resource[k]]
                    x = left[r] / (1 if r >= shared else users[r]) / usage[k]
                    if x < least:
                        least = x
                        limiting[i] = k
            f = v.place[resource[limiting[i]]]
            if f < shared or a_loss[f] == np.inf:
                return False
            for k in range(start[i], start[i + 1]):
                r = v.place[resource[k]]
                if usage[k] > 0.0 and r < shared:
                    ratio = usage[k] / usage[limiting[i]]
                    a_loss[r] += ratio * left[f]
                    b_loss[r] += ratio * a_loss[f]
    rounds = np.inf
    for i in range(n):
        if state[i] == LIVE:
            f = v.place[resource[limiting[i]]]
            a = usage[limiting[i]]
            c = a_loss[f]
            h0 = largest_rate[i] - rate[i] - left[f] / a
            rounds = min(rounds, _first_negative(h0, (0.5 * c - left[f]) / a, 0.5 * c / a))
            for k in range(start[i], start[i + 1]):
                if usage[k] > 0.0:
                    r = v.place[resource[k]]
                    if k != limiting[i]:
                        w = usage[k] * (1 if r >= shared else users[r])
                        h0 = left[r] / w - left[f] / a
                        h1 = c / a - (a_loss[r] + 0.5 * b_loss[r]) / w
                        rounds = min(rounds, _first_negative(h0, h1, 0.5 * b_loss[r] / w))
                    if r >= shared:
                        h0 = usage[k] * left[f] / a - a_loss[r]
                        rounds = min(rounds, _first_negative(h0, -usage[k] * c / a, 0.0))
    for r in range(system.capacity.size):
        if users[r] > 0:
            h1 = -(a_loss[r] + 0.5 * b_loss[r])
            rounds = min(rounds, _first_negative(left[r] - nothing_left, h1, 0.5 * b_loss[r]))
    if rounds == np.inf:
        return True
    t = np.floor(rounds) - 1.0
    if t >= 1.0:
        for i in range(n):
            if state[i] == LIVE:
                f = v.place[resource[limiting[i]]]
                rate[i] += (left[f] * t - a_loss[f] * (0.5 * t * (t - 1.0))) / usage[limiting[i]]
        for r in range(system.capacity.size):
            if users[r] > 0:
                left[r] -= (a_loss[r] + 0.5 * b_loss[r]) * t - 0.5 * b_loss[r] * t * t
    return False


@jit
def stop(shared, system, answer, v):
    """End rounds that would not end: a task limited by a FATPIPE is given its whole capacity."""
    for i in range(system.start.size - 1):
        if v.state[i] == LIVE:
            least = np.inf
            for k in range(system.start[i], system.start[i + 1]):
                r = system.resource[k]
                a = system.usage[k]
                if a > 0.0:
                    p = v.place[r]
                    x = v.left[p] / (1 if p >= shared else v.total[p]) / a
                    if x < least:
                        least = x
                        answer.limit[i] = r
                        if system.fatpipe[r]:
                            answer.rate[i] = min(v.largest_rate[i], system.capacity[r] / a)


# mypy: allow-untyped-defs, disable-error-code="assignment"


def scratch_sizes(n: int, m: int, elements: int) -> tuple[int, int]:
    """Lengths of the float64 and int64 scratch arrays of the kernel."""
    return rounds_sizes(n, m, elements)


@entry
def solve_fairbottleneck(system, settings, answer, reals, integers):
    """Fill the rates and limits; returns 0. Scratch: see ``scratch_sizes``. Variant: corrected.

    Tasks come oldest first.
    """
    n = system.start.size - 1
    m = system.capacity.size
    v = carve_rounds(n, m, system.start[n], reals, integers)
    shared, fats = assemble_places(system, v)
    n_live = assemble_tasks(system, fats, answer.rate, v)
    order_places(shared, fats, v)
    corrected = settings.variant
    weighted = _bound_tasks(n_live, corrected and fats < m, system, answer, v)
    if corrected:
        _bound_idle_tasks(n, system.bound, answer.rate, v)
    if fats == m or corrected:
        for p in range(fats, m):
            v.share[p] = INFINITY
        go_through(
            shared, n_live, corrected, weighted, settings.nothing_left, system.weight, answer.rate,
            answer.limit, v,
        )  # fmt: skip
        if fats < m:
            _name_bounding(system, answer)
    else:
        _go_through_fatpipes(shared, fats, n_live, weighted, system, settings, answer, v)
    return 0


@jit
def _go_through_fatpipes(shared, fats, n_live, weighted, system, settings, answer, v):
    """All rounds of a system with FATPIPEs, of the first rule: they may be very many."""
    m = system.capacity.size
    n_order = shared
    quiet = 0
    v.passed[0] = 0
    while n_live > 0:
        share_out(shared, v)
        for p in range(fats, m):
            v.share[p] = v.left[p]
        fixed = grow(n_live, answer.rate, v)
        fix_bounded(fixed, system.weight, answer.limit, v)
        charge(n_order, v)
        n_full = list_full(shared, settings.nothing_left, v)
        n_full = _charge_fatpipes(fats, m, n_full, settings.nothing_left, v)
        fixed += fix_users_of_full(n_full, system.weight, answer.limit, v)
        keep_increments(v)
        if fixed > 0:
            quiet = 0
            n_live = still_live(n_live, False, v)
            n_order = still_charged(n_order, weighted, v)
        else:
            quiet += 1
            if quiet % PATIENCE == 0:
                # With weights the series is not summed: its rounds are cut short.
                endless = weighted or skip_rounds(
                    shared, system, settings.nothing_left, answer.rate, v
                )
                if endless or quiet >= GIVE_UP:
                    stop(shared, system, answer, v)
                    n_live = 0
    _name_bounding(system, answer)


@jit
def _bound_idle_tasks(n, bound, rate, v):
    """Give the tasks that use nothing their bound, if they have one."""
    for i in range(n):
        if v.run_from[i] == v.run_from[i + 1] and bound[i] < INFINITY:
            rate[i] = bound[i]


@jit
def _bound_tasks(n_live, folded, system, answer, v):
    """The largest rate of each task, and weights; whether they differ.

    folded: FATPIPEs are largest rates.
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
        v.largest_rate[i] = top
        answer.limit[i] = LIMIT_NOTHING
    if weighted:  # else the number of uses
        v.total[:] = 0.0
        for a in range(n_live):
            i = v.live[a]
            for e in range(v.run_first[v.run_from[i]], v.run_first[v.run_from[i + 1]]):
                v.total[v.element[e]] += system.weight[i]
    return weighted


@jit
def _charge_fatpipes(fats, m, n_full, nothing_left, v):
    """Take from each FATPIPE the smallest consumption of its users, instead of the sum.

    Those used up are listed too, in the order of all resources; returns how many there are now.
    """
    full, origin = v.full, v.origin
    for p in range(fats, m):
        least = v.share[p]
        for h in range(v.base[p], v.base[p] + v.count[p]):
            least = min(least, v.value[v.user[h]])
        v.left[p] = v.share[p] - least
        if v.left[p] < nothing_left:
            b = n_full - 1
            while b >= 0 and origin[full[b]] > origin[p]:
                full[b + 1] = full[b]
                b -= 1
            full[b + 1] = p
            n_full += 1
    return n_full


@jit
def _name_bounding(system, answer):
    """Name the FATPIPE tighter than its bound as the limit of a task at its largest rate."""
    for i in range(system.start.size - 1):
        if answer.limit[i] == LIMIT_BOUND:
            tightest = system.bound[i]
            for k in range(system.start[i], system.start[i + 1]):
                r = system.resource[k]
                a = system.usage[k]
                if system.fatpipe[r] and a > 0.0 and system.capacity[r] / a < tightest:
                    tightest = system.capacity[r] / a
                    answer.limit[i] = r
