# mypy: allow-untyped-defs, allow-incomplete-defs
"""Prices of resources, and what tasks pay: the arrays of `prices`, made of a system.

Most resources are not full and have the price 0. Those that may have another one are *chosen*:
steps work with these alone, and only `look` visits all uses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.sharing.arrays import LIMIT_BOUND, LIMIT_NOTHING, carve

LARGEST = 1.7e308
# A task with so many of the prices chosen has an entry of the matrix for each two of them.
FEW = 5


def scratch_sizes(n: int, m: int, elements: int) -> tuple[int, int]:
    """Lengths of the float64 and int64 scratch arrays of the kernel.

    n, m, elements: numbers of tasks, resources and uses.
    """
    return 12 * m + 5 * n + 5 * elements + 1, 6 * m + 3 * n + 5 * elements + 4


class Market(NamedTuple):
    """Prices, and what tasks pay and use."""

    known: np.ndarray  # prices of resources, when they were chosen
    total: np.ndarray  # loads of resources
    price: np.ndarray  # of the resources chosen, as all of these:
    load: np.ndarray
    weight_on: np.ndarray  # sum of the weights of users
    step: np.ndarray  # Newton's
    rest: np.ndarray
    along: np.ndarray
    toward: np.ndarray  # `along` in prices
    image: np.ndarray
    diagonal: np.ndarray
    inverse: np.ndarray  # 1 / the diagonal; 0 for a price that does not move
    paid: np.ndarray  # P of tasks
    rate: np.ndarray
    largest_rate: np.ndarray  # the bound, FATPIPEs included
    threshold: np.ndarray  # what a task pays at its largest rate
    curvature: np.ndarray  # by how much a rate falls when its task pays more
    usage: np.ndarray  # of an element, over the capacity; each pair once
    chosen_usage: np.ndarray  # the same in rows of tasks, of the resources chosen
    user_usage: np.ndarray  # the same in order of the resources chosen
    product: np.ndarray  # an entry of Newton's matrix left of its diagonal
    stamp: np.ndarray
    place: np.ndarray  # of a resource among those chosen; -1: it is none of them
    chosen: np.ndarray  # the resources chosen
    first: np.ndarray  # of the users of each
    last: np.ndarray
    lower: np.ndarray  # the first entry of each row of the matrix
    begin: np.ndarray  # of the elements of each task
    row: np.ndarray  # of each task, of the resources chosen
    many: np.ndarray  # the tasks with many of these
    resource: np.ndarray
    column: np.ndarray  # of an element in a row of a task: the place of its resource
    user: np.ndarray  # in order of the resources chosen
    left: np.ndarray  # of an entry of the matrix: its column


@jit
def carve_market(n, m, z, reals, integers):
    """The scratch arrays (reals, integers) as those of a `Market`.

    n, m, z: numbers of tasks, resources and uses.
    """
    known, reals = carve(reals, m)
    total, reals = carve(reals, m)
    price, reals = carve(reals, m)
    load, reals = carve(reals, m)
    weight_on, reals = carve(reals, m)
    step, reals = carve(reals, m)
    rest, reals = carve(reals, m)
    along, reals = carve(reals, m)
    toward, reals = carve(reals, m)
    image, reals = carve(reals, m)
    diagonal, reals = carve(reals, m)
    inverse, reals = carve(reals, m)
    paid, reals = carve(reals, n)
    rate, reals = carve(reals, n)
    largest_rate, reals = carve(reals, n)
    threshold, reals = carve(reals, n)
    curvature, reals = carve(reals, n)
    usage, reals = carve(reals, z)
    chosen_usage, reals = carve(reals, z)
    user_usage, reals = carve(reals, z)
    product, reals = carve(reals, 2 * z + 1)
    stamp, integers = carve(integers, m)
    place, integers = carve(integers, m)
    chosen, integers = carve(integers, m)
    first, integers = carve(integers, m)
    last, integers = carve(integers, m)
    lower, integers = carve(integers, m + 1)
    begin, integers = carve(integers, n + 1)
    row, integers = carve(integers, n + 1)
    many, integers = carve(integers, n)
    resource, integers = carve(integers, z)
    column, integers = carve(integers, z)
    user, integers = carve(integers, z)
    left, integers = carve(integers, 2 * z + 1)
    return Market(
        known, total, price, load, weight_on, step, rest, along, toward, image, diagonal, inverse,
        paid, rate, largest_rate, threshold, curvature, usage, chosen_usage, user_usage, product,
        stamp, place, chosen, first, last, lower, begin, row, many, resource, column, user, left,
    )  # fmt: skip


@jit
def assemble(system, answer, k, n, m):
    """Lay out elements by task, and find largest rates; rates of -1 are to be found.

    system, answer: of a solver. k: the market. n, m: numbers of tasks and resources.
    """
    for r in range(m):
        k.stamp[r] = -1
    z = 0
    for i in range(n):
        k.begin[i] = z
        k.largest_rate[i] = system.bound[i]
        answer.rate[i] = -1.0
        answer.limit[i] = LIMIT_BOUND
        stopped = -1
        uses = False
        for e in range(np.uint64(system.start[i]), np.uint64(system.start[i + 1])):
            usage = system.usage[e]
            r = system.resource[e]
            at = np.uint64(r)
            capacity = system.capacity[at]
            if usage <= 0.0:
                continue
            uses = True
            if capacity == 0.0:
                stopped = r
            elif system.fatpipe[at]:
                if capacity / usage < k.largest_rate[i]:
                    k.largest_rate[i] = capacity / usage
                    answer.limit[i] = r
                k.largest_rate[i] = min(k.largest_rate[i], LARGEST)
            elif k.stamp[at] >= k.begin[i] and k.stamp[at] < z and k.resource[k.stamp[at]] == r:
                k.usage[k.stamp[at]] += usage / capacity
            else:
                k.stamp[at] = z
                k.resource[np.uint64(z)] = r
                k.usage[np.uint64(z)] = usage / capacity
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
        elif k.largest_rate[i] <= 0.0:
            z = k.begin[i]
            answer.rate[i] = 0.0
        k.threshold[i] = system.weight[i] / k.largest_rate[i] if k.largest_rate[i] > 0.0 else np.inf
    k.begin[n] = z


@jit
def choose(system, k, n, m):
    """Choose prices that are known and above 0, or are to rise, and list the uses of these.

    system: of a solver. k: the market. n, m: numbers of tasks and resources. Returns how many are
    chosen, and how many tasks use many of them.
    """
    chosen = 0
    for r in range(m):
        k.place[r] = -1
        if k.known[r] > 0.0 or k.total[r] > 1.0:
            k.place[r] = chosen
            k.chosen[chosen] = r
            k.price[chosen] = k.known[r]
            k.load[chosen] = k.total[r]
            k.weight_on[chosen] = 0.0
            k.last[chosen] = 0
            chosen += 1
    many = 0
    z = 0
    for i in range(n):
        k.row[i] = z
        for e in range(np.uint64(k.begin[i]), np.uint64(k.begin[i + 1])):
            # Without a branch, which would be hard to predict.
            place = k.place[np.uint64(k.resource[e])]
            k.column[np.uint64(z)] = place
            k.chosen_usage[np.uint64(z)] = k.usage[e]
            z += place >= 0
        for e in range(np.uint64(k.row[i]), np.uint64(z)):
            at = np.uint64(k.column[e])
            k.last[at] += 1
            k.weight_on[at] += system.weight[i]
        if z - k.row[i] > FEW:
            k.many[many] = i
            many += 1
    k.row[n] = z
    z = 0
    for j in range(chosen):
        k.first[j] = z
        z += k.last[j]
        k.last[j] = k.first[j]
    for i in range(n):
        for e in range(np.uint64(k.row[i]), np.uint64(k.row[i + 1])):
            at = np.uint64(k.column[e])
            k.user[np.uint64(k.last[at])] = i
            k.user_usage[np.uint64(k.last[at])] = k.chosen_usage[e]
            k.last[at] += 1
    return chosen, many


@jit
def pay_known(system, k, n, m):
    """What tasks pay at known prices, their rates, and the loads of all resources.

    system: of a solver. k: the market. n, m: numbers of tasks and resources.
    """
    for r in range(m):
        k.total[r] = 0.0
    for i in range(n):
        paid = 0.0
        for e in range(np.uint64(k.begin[i]), np.uint64(k.begin[i + 1])):
            paid += k.usage[e] * k.known[np.uint64(k.resource[e])]
        rate = rate_of(system, k, i, paid)
        for e in range(np.uint64(k.begin[i]), np.uint64(k.begin[i + 1])):
            k.total[np.uint64(k.resource[e])] += k.usage[e] * rate
        k.paid[i] = paid
        k.rate[i] = rate


@jit
def keep_prices(k, chosen, m):
    """Let the prices of the resources chosen be known; return whether others are to rise.

    k: the market. chosen, m: numbers of resources chosen and of all.
    """
    for j in range(chosen):
        k.known[k.chosen[j]] = k.price[j]
    for r in range(m):  # noqa: SIM110
        if k.total[r] > 1.0 and k.place[r] < 0:
            return True
    return False


@jit
def pay(system, k, n):
    """What the ``n`` tasks of a ``system`` pay at the prices of a market ``k``, and their rates."""
    for i in range(n):
        paid = 0.0
        for e in range(np.uint64(k.row[i]), np.uint64(k.row[i + 1])):
            paid += k.chosen_usage[e] * k.price[np.uint64(k.column[e])]
        k.paid[i] = paid
        k.rate[i] = rate_of(system, k, i, paid)


@jit
def rate_of(system, k, i, paid):
    """The rate of task ``i`` of a ``system``, in a market ``k``, that has ``paid`` so much."""
    if paid <= k.threshold[i]:
        return k.largest_rate[i]
    return system.weight[i] / paid


@jit
def look(k, n, m, chosen):
    """Loads of all resources at the rates of a market ``k``; the residual.

    n, m, chosen: numbers of tasks, of resources, and of those chosen.
    """
    for r in range(m):
        k.total[r] = 0.0
    for i in range(n):
        rate = k.rate[i]
        for e in range(np.uint64(k.begin[i]), np.uint64(k.begin[i + 1])):
            k.total[np.uint64(k.resource[e])] += k.usage[e] * rate
    for j in range(chosen):
        k.load[j] = k.total[k.chosen[j]]
    worst = residual_of(k, chosen)
    for r in range(m):
        worst = max(worst, k.total[r] - 1.0)
    return worst


@jit
def residual_of(k, chosen):
    """The largest excess of a load in a market ``k``, or what a price above 0 leaves.

    chosen: how many resources are; others are not looked at. What is left counts by the part that
    the price has in what its users pay.
    """
    worst = 0.0
    for j in range(chosen):
        left = 1.0 - k.load[j]
        if not left >= 0.0:
            worst = np.inf if np.isnan(left) else max(worst, -left)
        elif k.price[j] > 0.0:
            part = k.price[j] / k.weight_on[j] if k.price[j] < k.weight_on[j] else 1.0
            worst = max(worst, left * part)
    return worst
