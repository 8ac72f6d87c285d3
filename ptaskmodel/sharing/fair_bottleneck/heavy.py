# mypy: allow-untyped-defs, allow-incomplete-defs
"""Fair bottleneck from event to event: rounds on candidate bottlenecks only.

Counterpart that computes rates from nothing: `solver`.
Many resources change no round: each live task could take more of them, in every round, than its
increment, and something is left of them in the end. Rounds without these resources are
bit-identical. So rounds run only on the other resources, the candidate bottlenecks, called *heavy*
in the code; they stay nearly the same from event to event (``heavy`` marks them). The others are
called *light*. For each task the state keeps the most that it took:

* ``took``: in all rounds, including charges after it was fixed;
* ``took_first``: in the first round; ``took_second``: in the second, or was charged then;
* ``took_later``: in any later round in which it was live.

These values are slightly above the computed ones. They change only when a task takes more, or much
less. For each light resource the state keeps what its users take of it: in the first round
(``taken_first``) and in all (``taken``), and the largest use in the first (``largest_first``), the
second (``largest_second``) and any later round (``largest_later``). With n users and the capacity C
it changes nothing if

    n largest_first < C,   n largest_second < C - taken_first   and   n largest_later < C - taken.

If the computed rates leave this in doubt, the rounds are repeated for that resource alone. If they
change something, it becomes heavy and all rounds are repeated.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit, late
from ptaskmodel.sharing.arrays import LIMIT_NOTHING
from ptaskmodel.sharing.components import assemble_subproblem, rebuild_kept, swap_kept
from ptaskmodel.sharing.fair_bottleneck.rounds import (
    KEPT_ROUNDS,
    ONE,
    ZERO,
    begin_task,
    carve_rounds,
    close_run,
    go_through,
    order_places,
    put_user,
)
from ptaskmodel.sharing.rates import NOTHING_LEFT, code, solve
from ptaskmodel.sharing.state import PLACED, SUB, TOUCHED, UNLAID, USED, Graph, bare_graph
from ptaskmodel.sharing.subproblem import subproblem_of

INFINITY = float("inf")


@jit
def take_place(s, resource):
    """A resource is heavy from now on; it has the place that it was given the first time."""
    counts = s.counts[0]
    place = s.worklists[PLACED, resource]
    if place >= counts.n_places or s.places[place].resource != resource:
        place = counts.n_places
        counts.n_places += 1
        s.worklists[PLACED, resource] = place
        s.places[place].resource = resource
    s.constraints[resource].heavy = 1


@jit
def write_row(s, slot):
    """Of each heavy element of an activity its place, times 2, and 1 if its use is another one."""
    t = s.variables[slot]
    before = 0.0
    run = np.uint64(t.nodes)
    for k in range(np.uint64(t.nodes), np.uint64(t.nodes + t.n_heavy)):
        element = s.kept[k]
        row = 2 * s.worklists[PLACED, element.resource]
        if element.usage != before:
            before = element.usage
            s.row_usage[run] = before
            run += ONE
            row += 1
        s.rows[k] = row


@jit
def assemble_heavy(s, n, sub, v):
    """Lay the heavy elements of the first ``n`` activities chosen, of weight 1.

    Returns (resources, live activities); as the first -1 if there is a FATPIPE, or a user too many.
    """
    counts = s.counts[0]
    counts.mark += 1
    mark = counts.mark
    nowhere = v.left.size
    m = ZERO
    z = ZERO
    n_live = ZERO
    q = np.uint64(0)
    e = np.uint64(0)
    for i in range(np.uint64(n)):
        slot = np.uint64(s.worklists[SUB, i])
        t = s.variables[slot]
        v.run_from[i] = q
        v.largest_rate[i] = t.bound
        sub.weight[i] = 1.0
        sub.limit[i] = LIMIT_NOTHING
        if t.n_heavy > 0 and s.rows[np.uint64(t.nodes)] == UNLAID:
            write_row(s, slot)
        run = np.uint64(t.nodes)
        for k in range(np.uint64(t.nodes), np.uint64(t.nodes + t.n_heavy)):
            row = np.uint64(s.rows[k])
            place = s.places[row >> ONE]
            if place.mark != mark:
                r = s.constraints[np.uint64(place.resource)]
                z += r.enabled
                if r.fatpipe or z > v.user.size:
                    return np.int64(-1), n_live
                place.mark = mark
                place.local = m
                p = np.uint64(m)
                s.worklists[USED, p] = place.resource
                v.origin[p] = m
                v.base[p] = z
                v.count[p] = z
                v.left[p] = r.capacity
                m += 1
            if row & ONE != 0:
                e = close_run(q, e, nowhere, v)
                v.run_usage[q] = s.row_usage[run]
                run += ONE
                v.run_weight[q] = 1.0
                v.value[q] = 0.0
                v.run_task[q] = i
                q += ONE
            v.element[e] = place.local
            e += ONE
            put_user(np.uint64(place.local), q - ONE, v)
        n_live = begin_task(i, q > np.uint64(v.run_from[i]), n_live, sub.rate, v)
    close_run(q, e, nowhere, v)
    v.run_from[np.uint64(n)] = q
    order_places(m, nowhere, v)
    v.share[nowhere] = INFINITY
    return m, n_live


@jit
def solve_rounds(s, n, sub, corrected, v):
    """Rates and limits (places) by the heavy elements alone; how many resources, -1: a FATPIPE."""
    m, n_live = assemble_heavy(s, n, sub, v)
    if m >= 0:
        go_through(m, n_live, corrected, False, NOTHING_LEFT, sub.weight, sub.rate, sub.limit, v)
    return m


# Systems with fewer activities, or elements, are solved as they are.
MANY, MANY_ELEMENTS = 32, 300
# The part of the capacity, and of an amount, that is left aside: far beyond all rounding.
MARGIN, SPARE = 1e-6, 1e-4
# What is kept of a task is by that part more than what it took; anew if it takes so little of it.
LOAD_TOLERANCE, MUCH_LESS = 0.05, 0.85
# Times that the rounds begin again; solves between two searches for what is heavy no more.
ATTEMPTS, LIGHTENED_EVERY = 8, 32
# What a new activity is expected to take in all rounds, and in a later one, at most, of what it
# takes in the first.
TOTAL, SECOND, LATER = 1.3, 0.5, 0.3
DONE, LEFT = np.arange(2)
CORRECTED = code("fairbottleneck-corrected")


@jit
def put_heavy_first(s, slot):
    """Order the kept elements of an activity: heavy ones in the order of its nodes, then others."""
    t = s.variables[slot]
    t.n_heavy = 0
    for k in range(t.nodes, t.nodes + t.n_kept):
        r = s.constraints[s.kept[k].resource]
        if r.fatpipe and r.heavy == 0:
            take_place(s, s.kept[k].resource)
        if r.heavy == 1:
            put_heavy(s, slot, k)


@jit
def put_heavy(s, slot, place):
    """Let the element at a place be one of the heavy ones, in their order."""
    t = s.variables[slot]
    swap_kept(s, place, t.nodes + t.n_heavy)
    place = t.nodes + t.n_heavy
    while place > t.nodes and s.kept[place - 1].node > s.kept[place].node:
        swap_kept(s, place - 1, place)
        place -= 1
    t.n_heavy += 1
    s.rows[t.nodes] = UNLAID


@jit
def make_heavy(s, resource):
    """A resource takes part in the rounds from now on, if it did not."""
    r = s.constraints[resource]
    if r.heavy == 1:
        return
    take_place(s, resource)
    for k in range(np.uint64(r.first), np.uint64(r.first + r.users)):
        user = s.users[k]
        t = s.variables[np.uint64(user.slot)]
        if user.usage > 0.0 and t.enabled == 1:
            put_heavy(s, user.slot, np.int64(s.nodes[np.uint64(user.node)].kept))


@jit
def make_light(s, resource):
    """A resource takes no part in the rounds any more."""
    r = s.constraints[resource]
    r.heavy = 0
    for k in range(r.first, r.first + r.users):
        t = s.variables[s.users[k].slot]
        if s.users[k].usage > 0.0 and t.enabled == 1:
            t.n_heavy -= 1
            s.rows[t.nodes] = UNLAID
            for place in range(np.int64(s.nodes[s.users[k].node].kept), t.nodes + t.n_heavy):
                swap_kept(s, place, place + 1)


@jit
def is_light(r):
    """Whether a resource surely changes nothing, as far as what is kept of it tells."""
    capacity = r.capacity * (1.0 - MARGIN) - SPARE
    left = capacity - r.taken
    return (
        r.largest_first * r.enabled < capacity
        and r.largest_second * r.enabled < capacity - r.taken_first
        and left > 0.0
        and r.largest_later * r.enabled < left
    )


@jit
def sum_up(s, resource):
    """Sum what is kept of the users of a resource; whether it surely changes nothing."""
    r = s.constraints[np.uint64(resource)]
    begun = 0.0
    load = 0.0
    level = 0.0
    second = 0.0
    later = 0.0
    for k in range(np.uint64(r.first), np.uint64(r.first + r.users)):
        user = s.users[k]
        t = s.variables[np.uint64(user.slot)]
        if user.usage > 0.0 and t.enabled == 1:
            load += user.usage * t.took
            x = user.usage * t.took_first
            begun += x
            level = x if x > level else level
            x = user.usage * t.took_second
            second = x if x > second else second
            x = user.usage * t.took_later
            later = x if x > later else later
    r.taken_first = begun
    r.taken = load
    r.largest_first = level
    r.largest_second = second
    r.largest_later = later
    return is_light(r)


@jit
def offers_enough(s, resource, rounds, n, v):
    """Whether a resource that took no part in the rounds would have changed nothing."""
    r = s.constraints[resource]
    left = r.capacity * (1.0 - MARGIN) - SPARE
    for q in range(rounds):
        live = 0
        most = 0.0
        taken = 0.0
        for k in range(r.first, r.first + r.users):
            user = s.users[k]
            t = s.variables[user.slot]
            if user.usage > 0.0 and t.enabled == 1:
                x = user.usage * v.grown[q * n + t.local]
                taken += x
                if v.rounds[t.local] > q:
                    live += 1
                    most = max(most, x)
        if live == 0:
            return True
        if not most * live < left:
            return False
        left -= taken
    return left > 0.0


@jit
def expect(s, slot):
    """Let those resources be heavy that an activity of which nothing is kept may make so, and one.

    What it grows by in the first round is known; of the others it is guessed.
    """
    t = s.variables[slot]
    tightest = s.kept[t.nodes].resource
    least = INFINITY
    for k in range(t.nodes, t.nodes + t.n_kept):
        r = s.constraints[s.kept[k].resource]
        x = r.capacity / r.enabled / s.kept[k].usage
        if x < least:
            least = x
            tightest = s.kept[k].resource
    if t.n_heavy == 0:
        make_heavy(s, tightest)
    first = min(least, t.bound)
    for k in range(t.nodes + t.n_heavy, t.nodes + t.n_kept):
        element = s.kept[k]
        r = s.constraints[element.resource]
        use = element.usage * first
        left = r.capacity - r.taken - use * TOTAL
        soon = r.capacity - r.taken_first - use
        if (
            max(r.largest_later, use * LATER) * r.enabled > left
            or max(r.largest_second, use * SECOND) * r.enabled > soon
        ):
            make_heavy(s, element.resource)


@jit
def begin(s, n):
    """Order the elements of all activities, each with a heavy one; how many elements there are.

    0: they are few, or weights differ, and nothing is kept of these activities any more.
    """
    z = 0
    weighted = False
    for i in range(n):
        t = s.variables[np.uint64(s.worklists[SUB, i])]
        z += t.n_kept
        weighted = weighted or t.penalty != 1.0
    if n < MANY or z < MANY_ELEMENTS or weighted:
        forget(s, n)
        return 0
    for i in range(n):
        slot = s.worklists[SUB, i]
        if s.variables[np.uint64(slot)].took == 0.0:
            put_heavy_first(s, slot)
    for i in range(n):
        t = s.variables[np.uint64(s.worklists[SUB, i])]
        if t.n_kept > 0 and (t.rate == 0.0 or t.n_heavy == 0):
            expect(s, s.worklists[SUB, i])
    return z


@jit
def count_heavy(s, n):
    """The heavy elements of the activities chosen."""
    z = 0
    for i in range(n):
        z += s.variables[np.uint64(s.worklists[SUB, i])].n_heavy
    return z


@jit
def forget(s, n):
    """Nothing is known of the activities chosen, and their elements are in order."""
    for i in range(n):
        slot = s.worklists[SUB, i]
        t = s.variables[np.uint64(slot)]
        t.took = 0.0
        if t.n_heavy > 0:
            t.n_heavy = 0
            rebuild_kept(s, slot, True)


@jit
def doubt(s, resource, stamp, doubts):
    """List a light resource to be looked at; returns how many are."""
    r = s.constraints[np.uint64(resource)]
    if r.stamp != stamp and r.heavy != 1:
        r.stamp = stamp
        s.worklists[USED, np.uint64(doubts)] = resource
        doubts += 1
    return doubts


@jit
def kept_of(taken, before):
    """What is kept of what a task took: anew where that is more than before, or much less."""
    if taken > before or taken < MUCH_LESS * before:
        return taken * (1.0 + LOAD_TOLERANCE)
    return before


@jit
def keep(s, n, rounds, stamp, doubts, rate, v):
    """Keep what each activity took, and charge light resources; those in doubt are listed.

    Returns the end of their list, -1: some rate has no limit.
    """
    for i in range(n):
        t = s.variables[np.uint64(s.worklists[SUB, i])]
        t.local = i
        if t.n_kept == 0:
            continue
        first = v.grown[i]
        second = v.grown[n + i] if rounds > 1 else 0.0
        later = v.later[i]
        total = rate[i] + (rounds - v.rounds[i]) * v.increment[i]
        if not total < INFINITY:
            return -1
        light = np.uint64(t.nodes + t.n_heavy)
        end = np.uint64(t.nodes + t.n_kept)
        if t.took == 0.0:
            t.took = total * (1.0 + LOAD_TOLERANCE)
            t.took_first = first * (1.0 + LOAD_TOLERANCE)
            t.took_second = second * (1.0 + LOAD_TOLERANCE)
            t.took_later = later * (1.0 + LOAD_TOLERANCE)
            for k in range(light, end):
                doubts = doubt(s, s.kept[k].resource, stamp, doubts)
            continue
        more = second > t.took_second or later > t.took_later
        t.took_second = kept_of(second, t.took_second)
        t.took_later = kept_of(later, t.took_later)
        kept_first = kept_of(first, t.took_first)
        sooner = kept_first - t.took_first
        t.took_first = kept_first
        kept_total = kept_of(total, t.took)
        change = kept_total - t.took
        t.took = kept_total
        if more or sooner != 0.0 or change != 0.0:
            for k in range(light, end):
                element = s.kept[k]
                r = s.constraints[np.uint64(element.resource)]
                r.taken_first += element.usage * sooner
                r.taken += element.usage * change
                x = element.usage * t.took_first
                r.largest_first = x if x > r.largest_first else r.largest_first
                x = element.usage * t.took_second
                r.largest_second = x if x > r.largest_second else r.largest_second
                x = element.usage * t.took_later
                r.largest_later = x if x > r.largest_later else r.largest_later
                if not is_light(r):
                    doubts = doubt(s, element.resource, stamp, doubts)
    return doubts


@jit
def lighten(s, m):
    """Let those of the heavy resources be light that surely change nothing."""
    for j in range(m):
        resource = s.worklists[USED, j]
        r = s.constraints[resource]
        if sum_up(s, resource) and not r.fatpipe:
            needed = False
            for k in range(r.first, r.first + r.users):
                needed = needed or s.variables[s.users[k].slot].n_heavy < 2
            if not needed:
                make_light(s, resource)


def example() -> tuple[Graph, int, int, int]:
    """Arguments like those of `solve_heavy`."""
    return bare_graph(), 0, 0, 0


@late("ptaskmodel.sharing.fair_bottleneck.heavy:example")
def solve_heavy(s, n, touched, solver):
    """Rates of the first ``n`` activities chosen, by rounds among heavy resources: DONE, or LEFT.

    touched: resources, listed as such, that lost a user.
    """
    counts = s.counts[0]
    if begin(s, n) == 0:
        return LEFT
    sub = subproblem_of(s)
    for _ in range(ATTEMPTS):
        z = count_heavy(s, n)
        v = carve_rounds(n, min(z, s.constraints.size), z, sub.reals, sub.integers)
        m = solve_rounds(s, n, sub, solver == CORRECTED, v)
        if m < 0:
            m = assemble_subproblem(s, sub, n, True)
            solve(s, n, m, solver)
            v = carve_rounds(n, m, z, sub.reals, sub.integers)
        counts.m_sub = m
        rounds = v.passed[0]
        counts.mark += 1
        stamp = counts.mark
        last = -1
        if rounds <= KEPT_ROUNDS:
            last = keep(s, n, rounds, stamp, m, sub.rate, v)
        if last < 0:
            break
        for k in range(touched):
            r = s.constraints[s.worklists[TOUCHED, k]]
            if r.enabled > 1 and r.violations > 0:  # else its users were listed, or it is not kept
                last = doubt(s, s.worklists[TOUCHED, k], stamp, last)
        again = False
        for k in range(m, last):
            resource = s.worklists[USED, k]
            if not sum_up(s, resource):
                again = not offers_enough(s, resource, rounds, n, v) or again
                make_heavy(s, resource)
        if not again:
            if counts.solves % LIGHTENED_EVERY == 0:
                lighten(s, m)
            return DONE
    forget(s, n)
    return LEFT
