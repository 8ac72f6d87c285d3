# mypy: allow-untyped-defs, allow-incomplete-defs
"""Newton's step for the prices chosen: its matrix, and conjugate gradients. `prices` calls it."""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.sharing.proportional.market import FEW, look, pay

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
