# mypy: allow-untyped-defs
"""Weighted max-min fairness by progressive filling.

Counterpart that updates rates from event to event: `levels.levels` for tasks, `affected` for flows.

All rates rise together, x_i = theta p_i with p_i the weight, until a resource is full or a task is
at its bound. The tasks concerned keep their rates; all others still rise (Bertsekas and Gallager,
Data Networks, 2nd ed., section 6.5.2). The rule compares rates, whatever the usage. The result is
unique.

R_r is what the stopped tasks leave of resource r, and W_r the sum of a_ri p_i over the others: r
fills up at theta = R_r / W_r. Both change only when a task stops, and then theta grows. So
resources wait in a heap by a lower bound of theta, recomputed when one is popped. The cost is
O(elements + pops log m).

A FATPIPE limits each use alone: it is a bound C_r / a_ri of each user.

The variant is the rule of SimGrid's flow models. There a FATPIPE stops all its users when its
largest use reaches the capacity (W_r = max a_ri p_i). Tasks that also use other resources ignore
resources of capacity 0, which otherwise stop their users at 0. (SimGrid's penalty is 1 / p.)

`sharing.levels.component_levels` has a second filling, on the records of the graph.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ptaskmodel.kernels.decorators import entry, jit
from ptaskmodel.sharing.arrays import LIMIT_BOUND, LIMIT_NOTHING, carve

# W_r is summed anew once it is this small a part of what it was: subtraction loses digits.
MUCH_LESS = 1e-3
SLIGHTLY_MORE = 1.0 + 1e-15
SLIGHTLY_LESS = 1.0 - 2.0**-53
LARGEST = 1.7e308
# A literal 0 given to a kernel would be compiled for as a type of its own.
ZERO = np.int64(0)


def scratch_sizes(n: int, m: int, elements: int) -> tuple[int, int]:
    """Lengths of the float64 and int64 scratch arrays of the kernel."""
    return 4 * m + 2 * n, 4 * m + 2 * n + 2 * elements


class Filling(NamedTuple):
    """The state of the filling: of resources, tasks, elements."""

    left: np.ndarray  # R_r
    slope: np.ndarray  # W_r
    summed: np.ndarray  # W_r when it was last summed
    full_at: np.ndarray  # key of the heap
    largest_rate: np.ndarray  # largest rate of a task, its FATPIPEs included (not in the variant)
    bound_at: np.ndarray  # theta at which it reaches that
    last_use: np.ndarray  # the newest element on a resource
    rising: np.ndarray  # users that still rise
    heap: np.ndarray
    full: np.ndarray
    bounded: np.ndarray  # heap of tasks with a largest rate
    reason: np.ndarray  # of the largest rate
    user: np.ndarray
    earlier_use: np.ndarray


@jit
def carve_filling(n, m, z, reals, integers):
    """The scratch arrays as those of a `Filling`."""
    left, reals = carve(reals, m)
    slope, reals = carve(reals, m)
    summed, reals = carve(reals, m)
    full_at, reals = carve(reals, m)
    largest_rate, reals = carve(reals, n)
    bound_at, reals = carve(reals, n)
    last_use, integers = carve(integers, m)
    rising, integers = carve(integers, m)
    heap, integers = carve(integers, m)
    full, integers = carve(integers, m)
    bounded, integers = carve(integers, n)
    reason, integers = carve(integers, n)
    user, integers = carve(integers, z)
    earlier_use, integers = carve(integers, z)
    return Filling(
        left, slope, summed, full_at, largest_rate, bound_at, last_use, rising, heap, full, bounded,
        reason, user, earlier_use,
    )  # fmt: skip


@entry
def solve_maxmin(system, settings, answer, reals, integers):
    """Fill the rates and limits; returns 0. Scratch: see ``scratch_sizes``.

    In the variant, a task that reaches its bound, or fills up a SHARED resource, just as its
    FATPIPE is full stops with the FATPIPE: the other users stop too.
    """
    start, penalty = system.start, system.penalty
    n = start.size - 1
    m = system.capacity.size
    f = carve_filling(n, m, start[n], reals, integers)
    rate, limit = answer.rate, answer.limit
    n_rising, n_bounded, n_heap = _begin(system, settings.variant, answer, f)
    theta = 0.0
    while n_rising > 0:
        while n_bounded > 0 and rate[f.bounded[0]] >= 0.0:
            n_bounded -= 1
            f.bounded[0] = f.bounded[n_bounded]
            sift_down(f.bounded, f.bound_at, ZERO, n_bounded)
        r = f.heap[0] if n_heap > 0 else ZERO
        now = np.inf
        if n_heap > 0 and f.rising[r] > 0:
            if system.fatpipe[r] or f.slope[r] < MUCH_LESS * f.summed[r]:
                f.slope[r] = _sum(r, system, rate, f)
                f.summed[r] = f.slope[r]
            now = f.left[r] / f.slope[r]
        if n_heap > 0 and now > f.full_at[r] * SLIGHTLY_MORE:
            f.full_at[r] = _key(now, system.fatpipe[r])
            sift_down(f.heap, f.full_at, ZERO, n_heap)
        elif n_bounded > 0 and f.bound_at[f.bounded[0]] < now:
            i = f.bounded[0]
            theta = max(theta, f.bound_at[i])
            n_rising -= 1
            rate[i] = f.largest_rate[i]
            limit[i] = f.reason[i]
            _stop(i, system, rate, f)
        else:
            theta = max(theta, now)
            f.full[0] = r
            n_full = 1
            if system.fatpipe[r]:
                n_full = _full_together(now, system, rate, f)
            for a in range(n_full):
                k = f.last_use[f.full[a]]
                while k >= 0:
                    i = f.user[k]
                    if rate[i] < 0.0:
                        n_rising -= 1
                        rate[i] = theta / penalty[i]
                        limit[i] = f.full[a]
                        if rate[i] >= f.largest_rate[i]:
                            rate[i] = f.largest_rate[i]
                            limit[i] = f.reason[i]
                        _stop(i, system, rate, f)
                    k = f.earlier_use[k]
    return 0


@jit
def _begin(system, flows, answer, f):
    """Start all tasks that use something at 0; (how many rise, have a largest rate, heap)."""
    start, resource, usage = system.start, system.resource, system.usage
    capacity, fatpipe, penalty = system.capacity, system.fatpipe, system.penalty
    rate, limit = answer.rate, answer.limit
    for r in range(capacity.size):
        f.last_use[r] = -1
        f.rising[r] = 0
        f.slope[r] = 0.0
        f.left[r] = capacity[r]
    n_rising = ZERO
    n_bounded = ZERO
    # The rate of a task that still rises is -1.
    for i in range(start.size - 1):
        rate[i] = -1.0
        limit[i] = LIMIT_NOTHING
        f.largest_rate[i] = system.bound[i]
        f.reason[i] = LIMIT_BOUND
        empty = -1
        idle = True
        for k in range(start[i], start[i + 1]):
            if usage[k] > 0.0:
                r = resource[k]
                if flows and capacity[r] == 0.0:
                    empty = r
                    continue
                idle = False
                if fatpipe[r] and not flows:
                    if capacity[r] / usage[k] < f.largest_rate[i]:
                        f.largest_rate[i] = capacity[r] / usage[k]
                        f.reason[i] = r
                    # Whoever uses nothing else must stop at some rate.
                    f.largest_rate[i] = min(f.largest_rate[i], LARGEST)
                    continue
                f.user[k] = i
                f.earlier_use[k] = f.last_use[r]
                f.last_use[r] = k
                f.rising[r] += 1
                if fatpipe[r]:
                    f.slope[r] = max(f.slope[r], usage[k] / penalty[i])
                else:
                    f.slope[r] += usage[k] / penalty[i]
        if not idle:
            n_rising += 1
            if f.largest_rate[i] < np.inf:
                f.bound_at[i] = min(f.largest_rate[i] * penalty[i], LARGEST)
                f.bounded[n_bounded] = i
                n_bounded += 1
        elif empty >= 0:
            rate[i] = 0.0
            limit[i] = empty
        elif f.largest_rate[i] < np.inf:
            rate[i] = f.largest_rate[i]
            limit[i] = LIMIT_BOUND
        else:
            rate[i] = 1.0
    n_heap = ZERO
    for r in range(capacity.size):
        if f.rising[r] > 0:
            f.summed[r] = f.slope[r]
            f.full_at[r] = _key(f.left[r] / f.slope[r], fatpipe[r])
            f.heap[n_heap] = r
            n_heap += 1
    for a in range(n_heap // 2 - 1, -1, -1):
        sift_down(f.heap, f.full_at, a, n_heap)
    for a in range(n_bounded // 2 - 1, -1, -1):
        sift_down(f.bounded, f.bound_at, a, n_bounded)
    return n_rising, n_bounded, n_heap


@jit
def _key(full_at, fatpipe):
    """Place in the heap: a FATPIPE comes before a SHARED resource that is full at the same time."""
    return full_at * SLIGHTLY_LESS if fatpipe else full_at


@jit
def _full_together(now, system, rate, f):
    """List after the FATPIPE ``full[0]`` those that its users, and theirs, fill at the same time.

    They must stop together: the first to stop its users would leave the others with a smaller W_r.
    Returns how many there are.
    """
    n_full = 1
    a = 0
    while a < n_full:
        k = f.last_use[f.full[a]]
        while k >= 0:
            i = f.user[k]
            if rate[i] < 0.0:
                for e in range(system.start[i], system.start[i + 1]):
                    q = system.resource[e]
                    if system.usage[e] > 0.0 and system.fatpipe[q] and f.rising[q] > 0:
                        known = False
                        for b in range(n_full):
                            known = known or f.full[b] == q
                        if not known and f.left[q] / _sum(q, system, rate, f) <= now:
                            f.full[n_full] = q
                            n_full += 1
            k = f.earlier_use[k]
        a += 1
    return n_full


@jit
def _stop(i, system, rate, f):
    """Charge a task whose rate is known to its resources."""
    for k in range(system.start[i], system.start[i + 1]):
        a = system.usage[k]
        if a > 0.0:
            r = system.resource[k]
            f.rising[r] -= 1
            if not system.fatpipe[r]:
                f.left[r] = max(f.left[r] - a * rate[i], 0.0)
                f.slope[r] -= a / system.penalty[i]


@jit
def _sum(r, system, rate, f):
    """W_r of the users that still rise."""
    total = 0.0
    k = f.last_use[r]
    while k >= 0:
        i = f.user[k]
        if rate[i] < 0.0:
            x = system.usage[k] / system.penalty[i]
            total = max(total, x) if system.fatpipe[r] else total + x
        k = f.earlier_use[k]
    return total


@jit
def sift_down(heap, key, position, size):
    """Restore a binary heap of numbers, smallest ``key`` first, below a position."""
    while True:
        child = 2 * position + 1
        if child >= size:
            break
        if child + 1 < size and key[heap[child + 1]] < key[heap[child]]:
            child += 1
        if not key[heap[child]] < key[heap[position]]:
            break
        heap[child], heap[position] = heap[position], heap[child]
        position = child
