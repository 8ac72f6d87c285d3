# mypy: allow-untyped-defs, allow-incomplete-defs
"""Fair bottleneck from event to event: rounds on candidate bottlenecks only.

Many resources change no round: each live task could take more of them, in every round, than its
increment, and something is left of them in the end. Rounds without these resources are
bit-identical. So rounds run only on the other resources, the candidate bottlenecks, called *heavy*
in the code; they stay nearly the same from event to event (``active`` marks them). The others are
called *light*. For each task the state keeps the most that it took:

* ``charged``: in all rounds, including charges after it was fixed;
* ``ceiling``: in the first round; ``next_rate``: in the second, or was charged then;
* ``even``: in any later round in which it was live.

These values are slightly above the computed ones. They change only when a task takes more, or much
less. For each light resource the state keeps what its users take of it: in the first round
(``begun``) and in all (``load``), and the largest use in the first (``level``), the second
(``second``) and any later round (``later``). With n users and the capacity C it changes nothing if

    n level < C,   n second < C - begun   and   n later < C - load.

If the computed rates leave this in doubt, the rounds are repeated for that resource alone. If they
change something, it becomes heavy and all rounds are repeated.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.engine.incremental.components import lay_sub_system, rebuild_kept, sub_system
from ptaskmodel.engine.incremental.fair_bottleneck_rounds import solve_rounds, take_place
from ptaskmodel.engine.incremental.rates import code, solve
from ptaskmodel.engine.incremental.slack_loads import swap_kept
from ptaskmodel.engine.state import RUNNING, SUB, TOUCHED, UNLAID, USED, State, bare_state
from ptaskmodel.kernels.decorators import jit, late
from ptaskmodel.sharing.fair_bottleneck.rounds import KEPT_ROUNDS, carve_rounds

INFINITY = float("inf")
# Systems with fewer activities, or elements, are solved as they are.
MANY, MANY_ELEMENTS = 32, 300
# The part of the capacity, and of an amount, that is left aside: far beyond all rounding.
MARGIN, SPARE = 1e-6, 1e-4
# What is kept of a task is by that part more than what it took; anew if it takes so little of it.
CREEP, MUCH_LESS = 0.05, 0.85
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
    t = s.activities[slot]
    t.n_active = 0
    for k in range(t.nodes, t.nodes + t.n_kept):
        r = s.resources[s.kept[k].resource]
        if r.fatpipe and r.active == 0:
            take_place(s, s.kept[k].resource)
        if r.active == 1:
            put_heavy(s, slot, k)


@jit
def put_heavy(s, slot, place):
    """Let the element at a place be one of the heavy ones, in their order."""
    t = s.activities[slot]
    swap_kept(s, place, t.nodes + t.n_active)
    place = t.nodes + t.n_active
    while place > t.nodes and s.kept[place - 1].node > s.kept[place].node:
        swap_kept(s, place - 1, place)
        place -= 1
    t.n_active += 1
    s.rows[t.nodes] = UNLAID


@jit
def make_heavy(s, resource):
    """A resource takes part in the rounds from now on, if it did not."""
    r = s.resources[resource]
    if r.active == 1:
        return
    take_place(s, resource)
    for k in range(np.uint64(r.first), np.uint64(r.first + r.users)):
        user = s.users[k]
        t = s.activities[np.uint64(user.slot)]
        if user.usage > 0.0 and t.state == RUNNING:
            put_heavy(s, user.slot, np.int64(s.nodes[np.uint64(user.node)].kept))


@jit
def make_light(s, resource):
    """A resource takes no part in the rounds any more."""
    r = s.resources[resource]
    r.active = 0
    for k in range(r.first, r.first + r.users):
        t = s.activities[s.users[k].slot]
        if s.users[k].usage > 0.0 and t.state == RUNNING:
            t.n_active -= 1
            s.rows[t.nodes] = UNLAID
            for place in range(np.int64(s.nodes[s.users[k].node].kept), t.nodes + t.n_active):
                swap_kept(s, place, place + 1)


@jit
def is_light(r):
    """Whether a resource surely changes nothing, as far as what is kept of it tells."""
    capacity = r.capacity * (1.0 - MARGIN) - SPARE
    left = capacity - r.load
    return (
        r.level * r.enabled < capacity
        and r.second * r.enabled < capacity - r.begun
        and left > 0.0
        and r.later * r.enabled < left
    )


@jit
def sum_up(s, resource):
    """Sum what is kept of the users of a resource; whether it surely changes nothing."""
    r = s.resources[np.uint64(resource)]
    begun = 0.0
    load = 0.0
    level = 0.0
    second = 0.0
    later = 0.0
    for k in range(np.uint64(r.first), np.uint64(r.first + r.users)):
        user = s.users[k]
        t = s.activities[np.uint64(user.slot)]
        if user.usage > 0.0 and t.state == RUNNING:
            load += user.usage * t.charged
            x = user.usage * t.ceiling
            begun += x
            level = x if x > level else level
            x = user.usage * t.next_rate
            second = x if x > second else second
            x = user.usage * t.even
            later = x if x > later else later
    r.begun = begun
    r.load = load
    r.level = level
    r.second = second
    r.later = later
    return is_light(r)


@jit
def offers_enough(s, resource, rounds, n, v):
    """Whether a resource that took no part in the rounds would have changed nothing."""
    r = s.resources[resource]
    left = r.capacity * (1.0 - MARGIN) - SPARE
    for q in range(rounds):
        live = 0
        most = 0.0
        taken = 0.0
        for k in range(r.first, r.first + r.users):
            user = s.users[k]
            t = s.activities[user.slot]
            if user.usage > 0.0 and t.state == RUNNING:
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
    t = s.activities[slot]
    tightest = s.kept[t.nodes].resource
    least = INFINITY
    for k in range(t.nodes, t.nodes + t.n_kept):
        r = s.resources[s.kept[k].resource]
        x = r.capacity / r.enabled / s.kept[k].usage
        if x < least:
            least = x
            tightest = s.kept[k].resource
    if t.n_active == 0:
        make_heavy(s, tightest)
    first = min(least, t.bound)
    for k in range(t.nodes + t.n_active, t.nodes + t.n_kept):
        element = s.kept[k]
        r = s.resources[element.resource]
        use = element.usage * first
        left = r.capacity - r.load - use * TOTAL
        soon = r.capacity - r.begun - use
        if (
            max(r.later, use * LATER) * r.enabled > left
            or max(r.second, use * SECOND) * r.enabled > soon
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
        t = s.activities[np.uint64(s.lists[SUB, i])]
        z += t.n_kept
        weighted = weighted or t.penalty != 1.0
    if n < MANY or z < MANY_ELEMENTS or weighted:
        forget(s, n)
        return 0
    for i in range(n):
        slot = s.lists[SUB, i]
        if s.activities[np.uint64(slot)].charged == 0.0:
            put_heavy_first(s, slot)
    for i in range(n):
        t = s.activities[np.uint64(s.lists[SUB, i])]
        if t.n_kept > 0 and (t.rate == 0.0 or t.n_active == 0):
            expect(s, s.lists[SUB, i])
    return z


@jit
def count_heavy(s, n):
    """The heavy elements of the activities chosen."""
    z = 0
    for i in range(n):
        z += s.activities[np.uint64(s.lists[SUB, i])].n_active
    return z


@jit
def forget(s, n):
    """Nothing is known of the activities chosen, and their elements are in order."""
    for i in range(n):
        slot = s.lists[SUB, i]
        t = s.activities[np.uint64(slot)]
        t.charged = 0.0
        if t.n_active > 0:
            t.n_active = 0
            rebuild_kept(s, slot, True)


@jit
def doubt(s, resource, stamp, doubts):
    """List a light resource to be looked at; returns how many are."""
    r = s.resources[np.uint64(resource)]
    if r.stamp != stamp and r.active != 1:
        r.stamp = stamp
        s.lists[USED, np.uint64(doubts)] = resource
        doubts += 1
    return doubts


@jit
def kept_of(taken, before):
    """What is kept of what a task took: anew where that is more than before, or much less."""
    if taken > before or taken < MUCH_LESS * before:
        return taken * (1.0 + CREEP)
    return before


@jit
def keep(s, n, rounds, stamp, doubts, rate, v):
    """Keep what each activity took, and charge light resources; those in doubt are listed.

    Returns the end of their list, -1: some rate has no limit.
    """
    for i in range(n):
        t = s.activities[np.uint64(s.lists[SUB, i])]
        t.local = i
        if t.n_kept == 0:
            continue
        first = v.grown[i]
        second = v.grown[n + i] if rounds > 1 else 0.0
        later = v.later[i]
        total = rate[i] + (rounds - v.rounds[i]) * v.increment[i]
        if not total < INFINITY:
            return -1
        light = np.uint64(t.nodes + t.n_active)
        end = np.uint64(t.nodes + t.n_kept)
        if t.charged == 0.0:
            t.charged = total * (1.0 + CREEP)
            t.ceiling = first * (1.0 + CREEP)
            t.next_rate = second * (1.0 + CREEP)
            t.even = later * (1.0 + CREEP)
            for k in range(light, end):
                doubts = doubt(s, s.kept[k].resource, stamp, doubts)
            continue
        more = second > t.next_rate or later > t.even
        t.next_rate = kept_of(second, t.next_rate)
        t.even = kept_of(later, t.even)
        ceiling = kept_of(first, t.ceiling)
        sooner = ceiling - t.ceiling
        t.ceiling = ceiling
        charged = kept_of(total, t.charged)
        change = charged - t.charged
        t.charged = charged
        if more or sooner != 0.0 or change != 0.0:
            for k in range(light, end):
                element = s.kept[k]
                r = s.resources[np.uint64(element.resource)]
                r.begun += element.usage * sooner
                r.load += element.usage * change
                x = element.usage * t.ceiling
                r.level = x if x > r.level else r.level
                x = element.usage * t.next_rate
                r.second = x if x > r.second else r.second
                x = element.usage * t.even
                r.later = x if x > r.later else r.later
                if not is_light(r):
                    doubts = doubt(s, element.resource, stamp, doubts)
    return doubts


@jit
def lighten(s, m):
    """Let those of the heavy resources be light that surely change nothing."""
    for j in range(m):
        resource = s.lists[USED, j]
        r = s.resources[resource]
        if sum_up(s, resource) and not r.fatpipe:
            needed = False
            for k in range(r.first, r.first + r.users):
                needed = needed or s.activities[s.users[k].slot].n_active < 2
            if not needed:
                make_light(s, resource)


def example() -> tuple[State, int, int, int]:
    """Arguments like those of `solve_heavy`."""
    return bare_state(), 0, 0, 0


@late("ptaskmodel.engine.incremental.fair_bottleneck:example")
def solve_heavy(s, n, touched, solver):
    """Rates of the first ``n`` activities chosen, by rounds among heavy resources: DONE, or LEFT.

    touched: resources, listed as such, that lost a user.
    """
    clock = s.clock[0]
    if begin(s, n) == 0:
        return LEFT
    sub = sub_system(s)
    for _ in range(ATTEMPTS):
        z = count_heavy(s, n)
        v = carve_rounds(n, min(z, s.resources.size), z, sub.reals, sub.integers)
        m = solve_rounds(s, n, sub, solver == CORRECTED, v)
        if m < 0:
            m = lay_sub_system(s, sub, n, True)
            solve(s, n, m, solver)
            v = carve_rounds(n, m, z, sub.reals, sub.integers)
        clock.m_sub = m
        rounds = v.passed[0]
        clock.mark += 1
        stamp = clock.mark
        last = -1
        if rounds <= KEPT_ROUNDS:
            last = keep(s, n, rounds, stamp, m, sub.rate, v)
        if last < 0:
            break
        for k in range(touched):
            r = s.resources[s.lists[TOUCHED, k]]
            if r.enabled > 1 and r.violations > 0:  # else its users were listed, or it is not kept
                last = doubt(s, s.lists[TOUCHED, k], stamp, last)
        again = False
        for k in range(m, last):
            resource = s.lists[USED, k]
            if not sum_up(s, resource):
                again = not offers_enough(s, resource, rounds, n, v) or again
                make_heavy(s, resource)
        if not again:
            if clock.solves % LIGHTENED_EVERY == 0:
                lighten(s, m)
            return DONE
    forget(s, n)
    return LEFT
