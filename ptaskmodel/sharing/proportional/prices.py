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
- Newton's step for all prices above 0 together, its system solved by conjugate gradients: products
  with the matrix need only the elements. It is kept if the residual falls.

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
    carve_market,
    lay,
    look,
    pay,
    rate_of,
    scratch_sizes,
)

__all__ = ["scratch_sizes", "solve_proportional"]

SWEEPS = 10_000
# Known prices that have not led there by then are given up: it begins from nothing.
WARM_SWEEPS = 40
# Steps for one price in a sweep, and by how much they reduce what is missing there.
PRICE_STEPS, ENOUGH = 12, 0.1
GRADIENT_STEPS = 60
# Newton's system is solved up to this part of the residual, times the residual.
EXACT = 0.3
# Farther off, Newton's step is not tried.
NEAR = 1.0
# A Newton step is cut to a quarter so often before it is given up.
CUTS = 3
# Prices fall to 0 so many times in a step, together with those that are 0 soon after.
FALLS, SOON = 12, 2.0
# A task that pays so many of the prices that move has an entry of the matrix for each two of them.
FEW = 3
# Rates hardly change in a direction of so little curvature.
FLAT = 1e-10
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
    lay(system, answer, k, n, m)
    _begin_prices(system, settings.warm, answer.level, k, n, m)
    residual = look(system, k, n, m)
    for turn in range(SWEEPS):
        if residual <= settings.aim:
            break
        if turn == WARM_SWEEPS and settings.warm:
            _begin_prices(system, False, answer.level, k, n, m)
            residual = look(system, k, n, m)
        _sweep(system, k, m, residual, settings.aim)
        residual = look(system, k, n, m)
        if residual <= settings.aim:
            # Sweeps add up differences: where prices fell a lot, what is left of them is rounding.
            pay(system, k, n)
            residual = look(system, k, n, m)
        elif residual < NEAR:
            residual = _newton(system, k, n, m, residual, settings.aim)
    _write(system, answer, k, n, m)
    return 0 if residual <= max(settings.aim, settings.accept) else 1


@jit
def _begin_prices(system, warm, level, k, n, m):
    """Begin with prices that are known, else with each weight divided among what its task uses."""
    some = False
    for r in range(m):
        known = warm and level[r] < np.inf and k.first[r] < k.last[r]
        k.price[r] = level[r] * system.capacity[r] if known else 0.0
        some = some or known
    if not some:
        for i in range(n):
            count = k.begin[i + 1] - k.begin[i]
            for e in range(k.begin[i], k.begin[i + 1]):
                k.price[k.resource[e]] += system.weight[i] / count
    pay(system, k, n)


@jit
def _sweep(system, k, m, residual, aim):
    """Set each price in turn so that its resource is about full, or to 0."""
    close = ENOUGH * min(residual, 1.0) + 0.5 * aim
    for r in range(m):
        if k.first[r] == k.last[r]:
            k.price[r] = 0.0
            continue
        load = 0.0
        for q in range(np.uint64(k.first[r]), np.uint64(k.last[r])):
            load += k.by_resource[q] * k.rate[np.uint64(k.user[q])]
        old = k.price[r]
        if abs(load - 1.0) <= close or (old == 0.0 and load <= 1.0):
            continue
        price = _best_price(system, k, r, old, close)
        if price != old:
            k.price[r] = price
            for q in range(k.first[r], k.last[r]):
                i = k.user[q]
                k.paid[i] = max(k.paid[i] + (price - old) * k.by_resource[q], 0.0)
                k.rate[i] = rate_of(system, k, i, k.paid[i])


@jit
def _best_price(system, k, r, old, close):
    """The price at which a resource is about full, those of all others fixed.

    1 / load is nearly a straight line in the price (quite one if its users pay nowhere else): so
    Newton's method is applied to that, within bounds that are halved where it leaves them.
    """
    price = old
    lowest = -1.0  # at which the load was above 1; below 0: none was tried
    highest = k.weight_on[r]  # there the load is 1 at most, wherever users pay besides
    for _ in range(PRICE_STEPS):
        load = 0.0
        slope = 0.0
        free_weight = 0.0  # of users that nothing limits
        next_kink = np.inf
        for q in range(k.first[r], k.last[r]):
            i = k.user[q]
            c = k.by_resource[q]
            paid = max(k.paid[i] + (price - old) * c, 0.0)
            weight = system.weight[i]
            if paid <= k.threshold[i]:
                if k.threshold[i] == 0.0:
                    free_weight += weight
                else:
                    load += c * k.ceiling[i]
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
def _choose(system, k, n, m):
    """Choose prices above 0 or to rise, and write their matrix; (how many, entries, rows).

    The matrix is A diag(curvature) A', of the tasks that more payment slows down. It is the sum of
    a diagonal, of entries beside it by tasks with few of the prices, and of rows by the others.
    """
    chosen = 0
    for r in range(m):
        k.place[r] = -1
        if k.first[r] < k.last[r] and (k.price[r] > 0.0 or k.load[r] > 1.0):
            k.place[r] = chosen
            k.chosen[chosen] = r
            k.step[chosen] = 0.0
            k.diagonal[chosen] = 0.0
            chosen += 1
    entries = 0
    rows = 0
    k.row[0] = 0
    for i in range(n):
        if k.begin[i + 1] == k.begin[i] or k.paid[i] <= k.threshold[i]:
            continue
        root = k.rate[i] / np.sqrt(system.weight[i])
        begin = k.row[rows]
        q = begin
        for e in range(k.begin[i], k.begin[i + 1]):
            j = k.place[np.uint64(k.resource[np.uint64(e)])]
            if j >= 0:
                value = k.usage[np.uint64(e)] * root
                k.column[np.uint64(q)] = j
                k.scaled[np.uint64(q)] = value
                k.diagonal[np.uint64(j)] += value * value
                q += 1
        if q - begin > FEW:
            rows += 1
            k.row[rows] = q
            continue
        for a in range(begin + 1, q):
            for b in range(begin, a):
                k.one[entries] = k.column[a]
                k.other[entries] = k.column[b]
                k.product[entries] = k.scaled[a] * k.scaled[b]
                entries += 1
    for j in range(chosen):
        k.inverse[j] = 1.0 / k.diagonal[j] if k.diagonal[j] > 0.0 else 0.0
    return chosen, entries, rows


@jit
def _newton(system, k, n, m, residual, aim):
    """Newton's step for prices above 0 or to rise, kept if it helps; the residual then."""
    for i in range(n):
        k.kept[i] = k.paid[i]
    chosen, entries, rows = _choose(system, k, n, m)
    relative = EXACT * max(min(residual, 1.0), min(aim / residual, 1.0))
    enough = -1.0
    # A price that would fall below 0 falls to 0, and the step of all others is found on.
    for _ in range(FALLS):
        for j in range(chosen):
            k.along[j] = k.step[j]
        _multiply(k, chosen, entries, rows)
        for j in range(chosen):
            k.rest[j] = k.load[k.chosen[j]] - 1.0 - k.image[j] if k.inverse[j] > 0.0 else 0.0
        enough = _conjugate_gradients(k, chosen, entries, rows, relative, enough)
        first = 1.0  # the part of the step at which the first price would be 0
        for j in range(chosen):
            price = k.price[k.chosen[j]]
            if k.inverse[j] > 0.0 and price + k.step[j] < 0.0:
                first = min(first, -price / k.step[j])
        if first == 1.0:
            break
        for j in range(chosen):
            price = k.price[k.chosen[j]]
            if k.inverse[j] > 0.0 and price + min(SOON * first, 1.0) * k.step[j] <= 0.0:
                k.step[j] = -price
                k.inverse[j] = 0.0
    part = 1.0
    for _ in range(CUTS):
        # ``image`` keeps the prices before the step.
        for j in range(chosen):
            r = k.chosen[j]
            k.image[j] = k.price[r]
            k.price[r] = max(k.price[r] + part * k.step[j], 0.0)
        pay(system, k, n)
        after = look(system, k, n, m)
        if after < residual:
            return after
        for j in range(chosen):
            k.price[k.chosen[j]] = k.image[j]
        part *= 0.25
    for i in range(n):
        k.paid[i] = k.kept[i]
        k.rate[i] = rate_of(system, k, i, k.paid[i])
    return look(system, k, n, m)


@jit
def _follow(k, chosen):
    """Go on along a direction in which no rate changes, past where the first price is 0.

    Two resources with the same users have one: the one that is less full will be free.
    """
    length = np.inf
    for j in range(chosen):
        if k.inverse[j] > 0.0 and k.along[j] < 0.0:
            price = k.price[k.chosen[j]]
            length = min(length, max(price + k.step[j], 0.0) / -k.along[j])
    if length < np.inf:
        for j in range(chosen):
            if k.inverse[j] > 0.0:
                k.step[j] += length * JUST_ABOVE * k.along[j]


@jit
def _multiply(k, chosen, entries, rows):
    """Let ``image`` be the matrix times ``along``."""
    for j in range(chosen):
        k.image[np.uint64(j)] = k.diagonal[np.uint64(j)] * k.along[np.uint64(j)]
    for e in range(entries):
        a = np.uint64(k.one[np.uint64(e)])
        b = np.uint64(k.other[np.uint64(e)])
        value = k.product[np.uint64(e)]
        k.image[a] += value * k.along[b]
        k.image[b] += value * k.along[a]
    for t in range(rows):
        total = 0.0
        for e in range(k.row[t], k.row[t + 1]):
            total += k.scaled[e] * k.along[k.column[e]]
        for e in range(k.row[t], k.row[t + 1]):
            k.image[k.column[e]] += k.scaled[e] * (total - k.scaled[e] * k.along[k.column[e]])


@jit
def _conjugate_gradients(k, chosen, entries, rows, relative, enough):
    """Improve the step, whose right side is in ``rest``, up to ``enough``; returns that.

    enough: below 0: this part of the right side. The matrix is that of `_multiply`, of the prices
    that move; its diagonal preconditions it.
    """
    size = 0.0
    for at in range(chosen):
        j = np.uint64(at)
        k.along[j] = k.rest[j] * k.inverse[j]
        size += k.rest[j] * k.along[j]
    if enough < 0.0:
        enough = size * relative * relative
    for _ in range(GRADIENT_STEPS):
        if size <= enough or size == 0.0:
            break
        _multiply(k, chosen, entries, rows)
        bent = 0.0
        for at in range(chosen):
            j = np.uint64(at)
            bent += k.along[j] * k.image[j]
        if not bent > FLAT * size:
            _follow(k, chosen)
            break
        length = size / bent
        before = size
        size = 0.0
        for at in range(chosen):
            j = np.uint64(at)
            k.step[j] += length * k.along[j]
            k.rest[j] -= length * k.image[j]
            size += k.rest[j] * k.rest[j] * k.inverse[j]
        turn = size / before
        for at in range(chosen):
            j = np.uint64(at)
            k.along[j] = k.rest[j] * k.inverse[j] + turn * k.along[j]
    return enough


@jit
def _write(system, answer, k, n, m):
    """Write rates that no capacity forbids, what each task pays most for, and prices."""
    for i in range(n):
        if answer.rate[i] >= 0.0:
            continue
        rate = k.rate[i]
        if k.begin[i + 1] == k.begin[i]:
            rate = k.ceiling[i]
        elif rate < k.ceiling[i]:
            most = 0.0
            for e in range(k.begin[i], k.begin[i + 1]):
                asked = k.usage[e] * k.price[k.resource[e]]
                if asked > most:
                    most = asked
                    answer.limit[i] = k.resource[e]
        fullest = 1.0
        for e in range(k.begin[i], k.begin[i + 1]):
            fullest = max(fullest, k.load[k.resource[e]])
        answer.rate[i] = rate / fullest
    for r in range(m):
        answer.level[r] = k.price[r] / system.capacity[r] if system.capacity[r] > 0.0 else 0.0
