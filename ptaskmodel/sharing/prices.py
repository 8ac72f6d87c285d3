# mypy: allow-untyped-defs
"""Weighted proportional fairness with bounds: prices of resources, from nothing or from known ones.

The rates x maximise sum of w_i log x_i subject to sum of a_ri x_i <= C_r and x_i <= b_i. They are
unique. By the conditions of Karush, Kuhn and Tucker there are prices p_r >= 0, above 0 only where r
is full, with x_i = min(b_i, w_i / P_i), P_i = sum of a_ri p_r: a task pays at each full resource
that it uses (F. Kelly, A. Maulloo and D. Tan, "Rate control for communication networks: shadow
prices, proportional fairness and stability", 1998). Prices need not be unique.

The prices minimise a convex function, whose gradient is C_r - load_r. Two steps take turns:

- a sweep: each price in turn is set so that its resource is just full, or to 0 where it is not.
  This finds out which prices are 0, from anywhere;
- Newton's step for all prices above 0 together, its system solved by conjugate gradients. It is
  kept if the residual falls.

Both work with the uses of resources that are full or have a price: of 9 links that a flow and its
acknowledgements cross in a fat tree, 2. Others are looked at after each Newton step.

From event to event (way "prices"), the same steps begin with the present prices, so that one or two
are enough, and solve the component that changed. A change moves most rates of a component a little:
in 1,000 flows on a fat tree, 50 by 1 %, 500 by 0.001 %. So the whole of it is solved.

Capacities are scaled to 1 here. A FATPIPE limits each use alone: it is a bound C_r / a_ri. A task
that uses a resource of capacity 0 has the rate 0.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import entry, jit
from ptaskmodel.sharing.market import (
    FEW,
    assemble,
    carve_market,
    choose,
    keep_prices,
    look,
    pay,
    pay_known,
    rate_of,
    residual_of,
    scratch_sizes,
)

__all__ = ["scratch_sizes", "solve_proportional"]

SWEEPS = 10_000
# Known prices that have not led there by then are given up: it begins from nothing.
WARM_SWEEPS = 40
# Steps for one price in a sweep, and by how much they reduce what is missing there.
PRICE_STEPS, ENOUGH = 12, 0.1
# Farther off, Newton's step is not tried. It may undo what sweeps do, again and again: after OFTEN
# turns it is tried after 2, 4, 8, ... times as many sweeps, which get there alone.
NEAR = 1.0
OFTEN = 32
GRADIENT_STEPS = 60
# Newton's system is solved up to this part of the residual, times the residual.
EXACT = 0.3
# A Newton step is cut to a quarter so often before it is given up.
CUTS = 3
# Prices fall to 0 so many times in a step, together with those that are 0 soon after.
FALLS, SOON = 12, 2.0
# Rates hardly change in a direction of so little curvature.
FLAT = 1e-10
JUST_ABOVE = 1.0 + 1e-9


@jit
def _assemble_matrix(k, n, chosen):
    """Write Newton's matrix of the prices chosen.

    It is A diag(curvature) A', of the tasks that more payment slows down. Its diagonal is whole.
    Left of it are rows of entries, by tasks with few of the prices; for others, see `_add_many`.
    """
    for j in range(chosen):
        k.diagonal[j] = 0.0
    for i in range(n):
        k.curvature[i] = k.rate[i] / k.paid[i] if k.paid[i] > k.threshold[i] else 0.0
        for e in range(np.uint64(k.row[i]), np.uint64(k.row[i + 1])):
            usage = k.chosen_usage[e]
            k.diagonal[np.uint64(k.column[e])] += k.curvature[i] * usage * usage
    entries = 0
    for j in range(chosen):
        k.lower[j] = entries
        for q in range(np.uint64(k.first[j]), np.uint64(k.last[j])):
            i = k.user[q]
            if k.row[i + 1] - k.row[i] > FEW:
                continue
            value = k.curvature[i] * k.user_usage[q]
            for e in range(np.uint64(k.row[i]), np.uint64(k.row[i + 1])):
                # Without a branch, as above.
                left = k.column[e]
                k.left[np.uint64(entries)] = left
                k.product[np.uint64(entries)] = value * k.chosen_usage[e]
                entries += left < j
        moves = k.diagonal[j] > 0.0 and (k.price[j] > 0.0 or k.load[j] > 1.0)
        k.inverse[j] = 1.0 / k.diagonal[j] if moves else 0.0
    k.lower[chosen] = entries


@jit
def newton_step(system, k, n, m, chosen, many, residual, aim):
    """Newton's step for prices above 0 or to rise, kept if it helps; the residual then.

    system: of a solver. k: the market. n, m, chosen: numbers of tasks, of resources, and of those
    chosen. many: how many tasks use many of these. residual, aim: that of now, and where to stop.
    """
    _assemble_matrix(k, n, chosen)
    relative = EXACT * max(min(residual, 1.0), min(aim / residual, 1.0))
    enough = -1.0
    for j in range(chosen):
        k.step[j] = 0.0
        k.image[j] = 0.0
    # A price that would fall below 0 falls to 0, and the step of all others is found on.
    for fall in range(FALLS):
        if fall > 0:
            _multiply(k, chosen, many)
        for j in range(chosen):
            k.rest[j] = k.load[j] - 1.0 - k.image[j] if k.inverse[j] > 0.0 else 0.0
        enough = _conjugate_gradients(k, chosen, many, relative, enough)
        first = 1.0  # the part of the step at which the first price would be 0
        for j in range(chosen):
            price = k.price[j]
            if k.inverse[j] > 0.0 and price + k.step[j] < 0.0:
                first = min(first, -price / k.step[j])
        if first == 1.0:
            break
        for j in range(chosen):
            price = k.price[j]
            if k.inverse[j] > 0.0 and price + min(SOON * first, 1.0) * k.step[j] <= 0.0:
                k.step[j] = -price
                k.inverse[j] = 0.0
    part = 1.0
    for _ in range(CUTS):
        # ``image`` keeps the prices before the step.
        for j in range(chosen):
            k.image[j] = k.price[j]
            k.price[j] = max(k.price[j] + part * k.step[j], 0.0)
        pay(system, k, n)
        after = look(k, n, m, chosen)
        if after < residual:
            return after
        for j in range(chosen):
            k.price[j] = k.image[j]
        part *= 0.25
    pay(system, k, n)
    return look(k, n, m, chosen)


@jit
def _follow(k, chosen):
    """Go on along a direction in which no rate changes, past where the first price is 0.

    Two resources with the same users have one: the one that is less full will be free.
    """
    length = np.inf
    for j in range(chosen):
        if k.inverse[j] > 0.0 and k.toward[j] < 0.0:
            price = k.price[j]
            length = min(length, max(price + k.step[j], 0.0) / -k.toward[j])
    if length < np.inf:
        for j in range(chosen):
            if k.inverse[j] > 0.0:
                k.step[j] += length * JUST_ABOVE * k.toward[j]


@jit
def _add_many(k, many, x, y):
    """Add to ``y`` the product of ``x`` with what tasks with many prices have off the diagonal."""
    for t in range(many):
        i = k.many[t]
        total = 0.0
        for e in range(np.uint64(k.row[i]), np.uint64(k.row[i + 1])):
            total += k.chosen_usage[e] * x[np.uint64(k.column[e])]
        for e in range(np.uint64(k.row[i]), np.uint64(k.row[i + 1])):
            j = np.uint64(k.column[e])
            usage = k.chosen_usage[e]
            y[j] += k.curvature[i] * usage * (total - usage * x[j])


@jit
def _multiply(k, chosen, many):
    """Let ``image`` be the matrix times ``step``."""
    for at in range(chosen):
        j = np.uint64(at)
        step = k.step[j]
        total = k.diagonal[j] * step
        for e in range(np.uint64(k.lower[j]), np.uint64(k.lower[at + 1])):
            left = np.uint64(k.left[e])
            total += k.product[e] * k.step[left]
            k.image[left] += k.product[e] * step
        k.image[j] = total
    _add_many(k, many, k.step, k.image)


@jit
def _solve_lower(k, chosen, x):
    """Solve with the diagonal and what is left of it, in place; prices that do not move: 0."""
    for at in range(chosen):
        j = np.uint64(at)
        total = x[j]
        for e in range(np.uint64(k.lower[j]), np.uint64(k.lower[at + 1])):
            total -= k.product[e] * x[np.uint64(k.left[e])]
        x[j] = total * k.inverse[j]


@jit
def _solve_upper(k, chosen, x):
    """The same with the diagonal and what is right of it."""
    for at in range(chosen - 1, -1, -1):
        j = np.uint64(at)
        x[j] *= k.inverse[j]
        for e in range(np.uint64(k.lower[j]), np.uint64(k.lower[at + 1])):
            x[np.uint64(k.left[e])] -= k.product[e] * x[j]


@jit
def _conjugate_gradients(k, chosen, many, relative, enough):
    """Improve the step, whose right side is in ``rest``, up to ``enough``; returns that.

    enough: below 0: this part of the right side. The matrix L + D + L' of the prices that move is
    preconditioned by (L + D) D^-1 (D + L'), a sweep forth and back: M = (L + D)^-1 A (D + L')^-1 D
    is iterated with. For entries, A x = (L + D) x + (D + L') x - D x, so M costs no more than A
    (S. Eisenstat, "Efficient implementation of a class of preconditioned conjugate gradient
    methods", 1981).
    """
    _solve_lower(k, chosen, k.rest)
    size = 0.0
    for at in range(chosen):
        j = np.uint64(at)
        k.along[j] = k.rest[j] * k.diagonal[j]
        k.toward[j] = k.along[j]
        size += k.rest[j] * k.along[j]
    if enough < 0.0:
        enough = size * relative * relative
    for _ in range(GRADIENT_STEPS):
        if size <= enough or size == 0.0:
            break
        _solve_upper(k, chosen, k.toward)
        for at in range(chosen):
            j = np.uint64(at)
            k.image[j] = k.along[j] - k.diagonal[j] * k.toward[j]
        _add_many(k, many, k.toward, k.image)
        _solve_lower(k, chosen, k.image)
        bent = 0.0
        for at in range(chosen):
            j = np.uint64(at)
            k.image[j] += k.toward[j]
            bent += k.along[j] * k.image[j]
        if not bent > FLAT * size:
            _follow(k, chosen)
            break
        length = size / bent
        before = size
        size = 0.0
        for at in range(chosen):
            j = np.uint64(at)
            k.step[j] += length * k.toward[j]
            k.rest[j] -= length * k.image[j]
            size += k.rest[j] * k.rest[j] * k.diagonal[j]
        turn = size / before
        for at in range(chosen):
            j = np.uint64(at)
            k.along[j] = k.rest[j] * k.diagonal[j] + turn * k.along[j]
            k.toward[j] = k.along[j]
    return enough


@entry
def solve_proportional(system, settings, answer, reals, integers):
    """Fill rates, limits and, as levels, prices of the system in ``answer``.

    Returns 0, or 1 where the residual stays too large. Scratch (reals, integers): see
    ``scratch_sizes``. settings: if warm, levels that are finite are the first prices.
    """
    n = system.start.size - 1
    m = system.capacity.size
    k = carve_market(n, m, system.start[n], reals, integers)
    assemble(system, answer, k, n, m)
    chosen, many = _begin(system, settings.warm, answer.level, k, n, m)
    residual = residual_of(k, chosen)
    turns = 0  # since it began
    for turn in range(SWEEPS):
        if residual <= settings.aim:
            break
        turns += 1
        if turn == WARM_SWEEPS and settings.warm:
            turns = 0
            chosen, many = _begin(system, False, answer.level, k, n, m)
            residual = residual_of(k, chosen)
        if keep_prices(k, chosen, m):
            chosen, many = choose(system, k, n, m)
        _sweep(system, k, chosen, residual, settings.aim)
        residual = residual_of(k, chosen)
        if residual <= settings.aim or not residual < NEAR:
            # Sweeps add up differences: where prices fell a lot, what is left of them is rounding.
            pay(system, k, n)
            residual = look(k, n, m, chosen)
        is_turn = turns < OFTEN or turns & (turns - 1) == 0
        if is_turn and settings.aim < residual < NEAR:
            residual = newton_step(system, k, n, m, chosen, many, residual, settings.aim)
    if keep_prices(k, chosen, m):
        choose(system, k, n, m)
    _write(system, answer, k, n, m)
    return 0 if residual <= max(settings.aim, settings.accept) else 1


@jit
def _begin(system, warm, level, k, n, m):
    """Begin with prices that are known, else with each weight divided among what its task uses.

    Returns what `choose` does.
    """
    some = False
    for r in range(m):
        known = warm and level[r] < np.inf
        k.known[r] = level[r] * system.capacity[r] if known else 0.0
        some = some or k.known[r] > 0.0
    if not some:
        for i in range(n):
            count = k.begin[i + 1] - k.begin[i]
            for e in range(k.begin[i], k.begin[i + 1]):
                k.known[k.resource[e]] += system.weight[i] / count
    pay_known(system, k, n, m)
    return choose(system, k, n, m)


@jit
def _sweep(system, k, chosen, residual, aim):
    """Set each price in turn so that its resource is about full, or to 0; loads follow."""
    close = ENOUGH * min(residual, 1.0) + 0.5 * aim
    for j in range(chosen):
        load = k.load[j]
        old = k.price[j]
        if abs(load - 1.0) <= close or (old == 0.0 and load <= 1.0):
            continue
        price = _best_price(system, k, j, old, close)
        if price != old:
            k.price[j] = price
            for q in range(k.first[j], k.last[j]):
                i = k.user[q]
                k.paid[i] = max(k.paid[i] + (price - old) * k.user_usage[q], 0.0)
                rate = rate_of(system, k, i, k.paid[i])
                if rate == k.rate[i]:
                    continue
                more = rate - k.rate[i]
                k.rate[i] = rate
                # Loads of a rate that was infinite stay so until all are found anew.
                if more > -np.inf:
                    for e in range(k.row[i], k.row[i + 1]):
                        k.load[k.column[e]] += k.chosen_usage[e] * more


@jit
def _best_price(system, k, j, old, close):
    """The price at which a resource is about full, those of all others fixed.

    1 / load is nearly a straight line in the price (quite one if its users pay nowhere else): so
    Newton's method is applied to that, within bounds that are halved where it leaves them.
    """
    price = old
    lowest = -1.0  # at which the load was above 1; below 0: none was tried
    highest = k.weight_on[j]  # there the load is 1 at most, wherever users pay besides
    for _ in range(PRICE_STEPS):
        load = 0.0
        slope = 0.0
        free_weight = 0.0  # of users that nothing limits
        next_kink = np.inf
        for q in range(k.first[j], k.last[j]):
            i = k.user[q]
            c = k.user_usage[q]
            paid = max(k.paid[i] + (price - old) * c, 0.0)
            weight = system.weight[i]
            if paid <= k.threshold[i]:
                if k.threshold[i] == 0.0:
                    free_weight += weight
                else:
                    load += c * k.largest_rate[i]
                    next_kink = min(next_kink, price + (k.threshold[i] * JUST_ABOVE - paid) / c)
            else:
                x = weight / paid
                load += c * x
                slope += c * c * x * x / weight
        if free_weight > 0.0:
            lowest = price
            price = free_weight
            continue
        if abs(load - 1.0) <= close or (price == 0.0 and load <= 1.0):
            return price
        if load > 1.0:
            lowest = price
            after = next_kink if slope == 0.0 else price + load * (load - 1.0) / slope
        else:
            highest = min(highest, price)
            after = price + load * (load - 1.0) / slope if slope > 0.0 else 0.0
            if lowest < 0.0:
                price = max(after, 0.0)
                continue
        if not (after > lowest and after < highest):
            after = 0.5 * (lowest + highest)
        price = after
    return price


@jit
def _write(system, answer, k, n, m):
    """Write rates that no capacity forbids, what each task pays most for, and prices."""
    for i in range(n):
        if answer.rate[i] >= 0.0:
            continue
        rate = k.rate[i]
        if k.begin[i + 1] == k.begin[i]:
            rate = k.largest_rate[i]
        limited = rate < k.largest_rate[i]
        most = 0.0
        fullest = 1.0
        for e in range(np.uint64(k.row[i]), np.uint64(k.row[i + 1])):
            j = np.uint64(k.column[e])
            fullest = max(fullest, k.load[j])
            asked = k.chosen_usage[e] * k.price[j]
            if limited and asked > most:
                most = asked
                answer.limit[i] = k.chosen[j]
        answer.rate[i] = rate / fullest
    for r in range(m):
        answer.level[r] = k.known[r] / system.capacity[r] if system.capacity[r] > 0.0 else 0.0
