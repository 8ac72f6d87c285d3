# mypy: allow-untyped-defs, allow-incomplete-defs
"""Prices of resources, and what tasks pay: the arrays of `prices`, laid out of a system."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.sharing.arrays import LIMIT_BOUND, LIMIT_NOTHING, carve

LARGEST = 1.7e308


def scratch_sizes(n: int, m: int, elements: int) -> tuple[int, int]:
    """Lengths of the float64 and int64 scratch arrays of the kernel.

    n, m, elements: numbers of tasks, resources and uses.
    """
    return 9 * m + 5 * n + 4 * elements, 5 * m + 2 * n + 5 * elements + 2


class Market(NamedTuple):
    """Prices, and what tasks pay and use; elements by task and by resource, each pair once."""

    price: np.ndarray  # of resources
    load: np.ndarray
    weight_on: np.ndarray  # sum of the weights of users
    step: np.ndarray  # Newton's, of the prices chosen, as all of these:
    rest: np.ndarray
    along: np.ndarray
    image: np.ndarray
    diagonal: np.ndarray
    inverse: np.ndarray  # 1 / the diagonal; 0 for a price that does not move
    paid: np.ndarray  # P of tasks
    rate: np.ndarray
    ceiling: np.ndarray  # the bound, FATPIPEs included
    threshold: np.ndarray  # what a task pays at its ceiling
    kept: np.ndarray  # paid, before a step
    usage: np.ndarray  # of an element, over the capacity
    by_resource: np.ndarray  # the same in order of resources
    scaled: np.ndarray  # the same in rows of Newton's matrix, times the root of the curvature
    product: np.ndarray  # of two of these: an entry of the matrix beside its diagonal
    first: np.ndarray  # of each resource, in order of resources
    last: np.ndarray
    stamp: np.ndarray
    chosen: np.ndarray  # the resources whose prices a step moves
    place: np.ndarray  # of a resource among these; -1: it is none of them
    begin: np.ndarray  # of each task
    row: np.ndarray  # of each task that pays many of the prices chosen
    resource: np.ndarray
    user: np.ndarray  # in order of resources
    column: np.ndarray  # of an element in a row
    one: np.ndarray  # the place of an entry
    other: np.ndarray


@jit
def carve_market(n, m, z, reals, integers):
    """The scratch arrays (reals, integers) as those of a `Market`.

    n, m, z: numbers of tasks, resources and uses.
    """
    price, reals = carve(reals, m)
    load, reals = carve(reals, m)
    weight_on, reals = carve(reals, m)
    step, reals = carve(reals, m)
    rest, reals = carve(reals, m)
    along, reals = carve(reals, m)
    image, reals = carve(reals, m)
    diagonal, reals = carve(reals, m)
    inverse, reals = carve(reals, m)
    paid, reals = carve(reals, n)
    rate, reals = carve(reals, n)
    ceiling, reals = carve(reals, n)
    threshold, reals = carve(reals, n)
    kept, reals = carve(reals, n)
    usage, reals = carve(reals, z)
    by_resource, reals = carve(reals, z)
    scaled, reals = carve(reals, z)
    product, reals = carve(reals, z)
    first, integers = carve(integers, m)
    last, integers = carve(integers, m)
    stamp, integers = carve(integers, m)
    chosen, integers = carve(integers, m)
    place, integers = carve(integers, m)
    begin, integers = carve(integers, n + 1)
    row, integers = carve(integers, n + 1)
    resource, integers = carve(integers, z)
    user, integers = carve(integers, z)
    column, integers = carve(integers, z)
    one, integers = carve(integers, z)
    other, integers = carve(integers, z)
    return Market(
        price, load, weight_on, step, rest, along, image, diagonal, inverse, paid, rate, ceiling,
        threshold, kept, usage, by_resource, scaled, product, first, last, stamp, chosen, place,
        begin, row, resource, user, column, one, other,
    )  # fmt: skip


@jit
def lay(system, answer, k, n, m):
    """Lay out elements by task and by resource, and find ceilings; rates of -1 are to be found.

    system, answer: of a solver. k: the market. n, m: numbers of tasks and resources.
    """
    for r in range(m):
        k.stamp[r] = -1
        k.last[r] = 0
        k.weight_on[r] = 0.0
    z = 0
    for i in range(n):
        k.begin[i] = z
        k.ceiling[i] = system.bound[i]
        answer.rate[i] = -1.0
        answer.limit[i] = LIMIT_BOUND
        stopped = -1
        uses = False
        for e in range(system.start[i], system.start[i + 1]):
            usage = system.usage[e]
            r = system.resource[e]
            if usage <= 0.0:
                continue
            uses = True
            if system.capacity[r] == 0.0:
                stopped = r
            elif system.fatpipe[r]:
                if system.capacity[r] / usage < k.ceiling[i]:
                    k.ceiling[i] = system.capacity[r] / usage
                    answer.limit[i] = r
                k.ceiling[i] = min(k.ceiling[i], LARGEST)
            elif k.stamp[r] >= k.begin[i] and k.stamp[r] < z and k.resource[k.stamp[r]] == r:
                k.usage[k.stamp[r]] += usage / system.capacity[r]
            else:
                k.stamp[r] = z
                k.resource[z] = r
                k.usage[z] = usage / system.capacity[r]
                z += 1
        if stopped >= 0 or not uses:
            z = k.begin[i]
            if stopped >= 0:
                answer.rate[i] = 0.0
                answer.limit[i] = stopped
            else:
                bounded = system.bound[i] < np.inf
                answer.rate[i] = system.bound[i] if bounded else 1.0
                answer.limit[i] = LIMIT_BOUND if bounded else LIMIT_NOTHING
        elif k.ceiling[i] <= 0.0:
            z = k.begin[i]
            answer.rate[i] = 0.0
        k.threshold[i] = system.weight[i] / k.ceiling[i] if k.ceiling[i] > 0.0 else np.inf
        for e in range(k.begin[i], z):
            k.last[k.resource[e]] += 1
            k.weight_on[k.resource[e]] += system.weight[i]
    k.begin[n] = z
    total = 0
    for r in range(m):
        k.first[r] = total
        total += k.last[r]
        k.last[r] = k.first[r]
    for i in range(n):
        for e in range(k.begin[i], k.begin[i + 1]):
            r = k.resource[e]
            k.user[k.last[r]] = i
            k.by_resource[k.last[r]] = k.usage[e]
            k.last[r] += 1


@jit
def pay(system, k, n):
    """What the ``n`` tasks of a ``system`` pay at the prices of a market ``k``, and their rates."""
    for i in range(n):
        total = 0.0
        for e in range(np.uint64(k.begin[i]), np.uint64(k.begin[i + 1])):
            total += k.usage[e] * k.price[np.uint64(k.resource[e])]
        k.paid[i] = total
        k.rate[i] = rate_of(system, k, i, total)


@jit
def rate_of(system, k, i, paid):
    """The rate of task ``i`` of a ``system``, in a market ``k``, that has ``paid`` so much."""
    if paid <= k.threshold[i]:
        return k.ceiling[i]
    return system.weight[i] / paid


@jit
def look(system, k, n, m):
    """Loads at these prices; the residual: the largest excess, or what a price above 0 leaves.

    system: of a solver. k: the market. n, m: numbers of tasks and resources. What
    is left counts by the part that the price has in what its users pay.
    """
    for r in range(m):
        k.load[r] = 0.0
    for i in range(n):
        rate = k.rate[i]
        for e in range(np.uint64(k.begin[i]), np.uint64(k.begin[i + 1])):
            k.load[np.uint64(k.resource[e])] += k.usage[e] * rate
    worst = 0.0
    for r in range(m):
        left = 1.0 - k.load[r]
        if not left >= 0.0:
            worst = np.inf if np.isnan(left) else max(worst, -left)
        elif k.price[r] > 0.0:
            worst = max(worst, left * min(1.0, k.price[r] / k.weight_on[r]))
    return worst
