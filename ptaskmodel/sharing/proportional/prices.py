# mypy: allow-untyped-defs, allow-incomplete-defs
"""Weighted proportional fairness with bounds: prices of resources, from nothing or from known ones.

The rates x maximise sum of w_i log x_i subject to sum of a_ri x_i <= C_r and x_i <= b_i. They are
unique. By the conditions of Karush, Kuhn and Tucker there are prices p_r >= 0, above 0 only where r
is full, with x_i = min(b_i, w_i / P_i), P_i = sum of a_ri p_r: a task pays at each full resource
that it uses (F. Kelly, A. Maulloo and D. Tan, "Rate control for communication networks: shadow
prices, proportional fairness and stability", 1998). Prices need not be unique.

The prices minimise a convex function, whose gradient is C_r - load_r. Two steps take turns:

- a sweep: each price in turn is set so that its resource is just full, or to 0 where it is not.
  This finds out which prices are 0, from anywhere;
- Newton's step for all prices above 0 together (`newton`), its system solved by conjugate
  gradients. It is kept if the residual falls.

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
from ptaskmodel.sharing.proportional.market import (
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
from ptaskmodel.sharing.proportional.newton import newton_step

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
JUST_ABOVE = 1.0 + 1e-9


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
