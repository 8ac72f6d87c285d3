# mypy: allow-untyped-defs
"""Weighted max-min fairness by progressive filling.

All rates rise together, x_i = theta p_i with p_i the weight, until a resource is full or a task is
at its bound; those who touch it stop, the others go on (Bertsekas and Gallager, Data Networks, 2nd
ed., section 6.5.2). What is compared is the rate, whatever the usage. The result is unique.

With R_r what the stopped tasks leave of resource r and W_r = sum of a_ri p_i over the others, r
fills up at theta = R_r / W_r. Both change only when a task stops, and then theta grows: resources
wait in a heap by a lower bound of it, looked at again when it comes out. O(elements + looks log m).

A FATPIPE limits each use alone but stops all its users when its largest use reaches the capacity
(W_r = max a_ri p_i), as in SimGrid's flow models. These also ignore resources of capacity 0, which
otherwise stop their users at 0: ``ignore_zero_capacity``. (SimGrid's penalty is 1 / p.)
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.jit import entry, jit
from ptaskmodel.sharing.problem import Allocation, SharingProblem

# W_r is summed anew once it is this small a part of what it was: subtraction loses digits.
MUCH_LESS = 1e-3
SLIGHTLY_MORE = 1.0 + 1e-15
SLIGHTLY_LESS = 1.0 - 2.0**-53
# A literal 0 given to a kernel would be compiled for as a type of its own.
ZERO = np.int64(0)


def maxmin(problem: SharingProblem, *, ignore_zero_capacity: bool = False) -> Allocation:
    """Weighted max-min fair rates (1/s)."""
    rates = np.empty(problem.n)
    limits = np.empty(problem.n, np.int64)
    sizes = scratch_sizes(problem.n, problem.m, problem.usage.size)
    solve_maxmin(
        problem.start,
        problem.resource,
        problem.usage,
        problem.capacity,
        problem.fatpipe,
        problem.bound,
        1.0 / problem.weight,
        ignore_zero_capacity,
        rates,
        limits,
        np.empty(sizes[0]),
        np.empty(sizes[1], np.int64),
    )
    return Allocation(problem, "maxmin", rates, limits, ignore_zero_capacity)


def scratch_sizes(n: int, m: int, elements: int) -> tuple[int, int]:
    """Lengths of the float64 and int64 scratch arrays of the kernel."""
    return 4 * m + n, 4 * m + n + 2 * elements


@entry
def solve_maxmin(
    start, resource, usage, capacity, fatpipe, bound, penalty, ignore_zero_capacity, rate, limit,
    reals, integers,
):  # fmt: skip
    """Fill ``rate`` and ``limit``; returns 0. Scratch: see ``scratch_sizes``.

    penalty: 1 / weight. A task that reaches its bound, or fills up a SHARED resource, just as its
    FATPIPE is full stops with the FATPIPE: the other users stop too.
    """
    n = start.size - 1
    m = capacity.size
    z = start[n]
    left = reals[:m]
    slope = reals[m : 2 * m]
    summed = reals[2 * m : 3 * m]
    full_at = reals[3 * m : 4 * m]
    bound_at = reals[4 * m : 4 * m + n]
    last_use = integers[:m]
    rising = integers[m : 2 * m]
    heap = integers[2 * m : 3 * m]
    bounded = integers[3 * m : 3 * m + n]
    user = integers[3 * m + n : 3 * m + n + z]
    earlier_use = integers[3 * m + n + z : 3 * m + n + 2 * z]
    full = integers[3 * m + n + 2 * z : 4 * m + n + 2 * z]

    for r in range(m):
        last_use[r] = -1
        rising[r] = 0
        slope[r] = 0.0
        left[r] = capacity[r]
    n_rising = 0
    n_bounded = ZERO
    # The rate of a task that still rises is -1.
    for i in range(n):
        rate[i] = -1.0
        limit[i] = -2
        empty = -1
        idle = True
        for k in range(start[i], start[i + 1]):
            if usage[k] > 0.0:
                r = resource[k]
                if ignore_zero_capacity and capacity[r] == 0.0:
                    empty = r
                    continue
                idle = False
                user[k] = i
                earlier_use[k] = last_use[r]
                last_use[r] = k
                rising[r] += 1
                if fatpipe[r]:
                    slope[r] = max(slope[r], usage[k] / penalty[i])
                else:
                    slope[r] += usage[k] / penalty[i]
        if not idle:
            n_rising += 1
            if bound[i] < np.inf:
                bound_at[i] = bound[i] * penalty[i]
                bounded[n_bounded] = i
                n_bounded += 1
        elif empty >= 0:
            rate[i] = 0.0
            limit[i] = empty
        elif bound[i] < np.inf:
            rate[i] = bound[i]
            limit[i] = -1
        else:
            rate[i] = 1.0
    n_heap = ZERO
    for r in range(m):
        if rising[r] > 0:
            summed[r] = slope[r]
            full_at[r] = _key(left[r] / slope[r], fatpipe[r])
            heap[n_heap] = r
            n_heap += 1
    for a in range(n_heap // 2 - 1, -1, -1):
        sift_down(heap, full_at, a, n_heap)
    for a in range(n_bounded // 2 - 1, -1, -1):
        sift_down(bounded, bound_at, a, n_bounded)

    theta = 0.0
    while n_rising > 0:
        while n_bounded > 0 and rate[bounded[0]] >= 0.0:
            n_bounded -= 1
            bounded[0] = bounded[n_bounded]
            sift_down(bounded, bound_at, ZERO, n_bounded)
        r = heap[0]
        now = np.inf
        if rising[r] > 0:
            if fatpipe[r] or slope[r] < MUCH_LESS * summed[r]:
                slope[r] = _sum(r, last_use, earlier_use, user, usage, penalty, rate, fatpipe)
                summed[r] = slope[r]
            now = left[r] / slope[r]
        if now > full_at[r] * SLIGHTLY_MORE:
            full_at[r] = _key(now, fatpipe[r])
            sift_down(heap, full_at, ZERO, n_heap)
        elif n_bounded > 0 and bound_at[bounded[0]] < now:
            i = bounded[0]
            theta = max(theta, bound_at[i])
            n_rising -= 1
            rate[i] = bound[i]
            limit[i] = -1
            _stop(i, start, resource, usage, fatpipe, penalty, rate, left, slope, rising)
        else:
            theta = max(theta, now)
            full[0] = r
            n_full = 1
            if fatpipe[r]:
                n_full = _full_together(
                    now, full, start, resource, last_use, earlier_use, user, usage, fatpipe,
                    penalty, rate, left, rising,
                )  # fmt: skip
            for a in range(n_full):
                k = last_use[full[a]]
                while k >= 0:
                    i = user[k]
                    if rate[i] < 0.0:
                        n_rising -= 1
                        rate[i] = theta / penalty[i]
                        limit[i] = full[a]
                        if rate[i] >= bound[i]:
                            rate[i] = bound[i]
                            limit[i] = -1
                        _stop(
                            i, start, resource, usage, fatpipe, penalty, rate, left, slope, rising
                        )
                    k = earlier_use[k]
    return 0


@jit
def _key(full_at, fatpipe):
    """Place in the heap: a FATPIPE comes before a SHARED resource that is full at the same time."""
    return full_at * SLIGHTLY_LESS if fatpipe else full_at


@jit
def _full_together(
    now, full, start, resource, last_use, earlier_use, user, usage, fatpipe, penalty, rate, left,
    rising,
):  # fmt: skip
    """List after the FATPIPE ``full[0]`` those that its users, and theirs, fill at the same time.

    They must stop together: the first to stop its users would leave the others with a smaller W_r.
    """
    n_full = 1
    a = 0
    while a < n_full:
        k = last_use[full[a]]
        while k >= 0:
            i = user[k]
            if rate[i] < 0.0:
                for e in range(start[i], start[i + 1]):
                    q = resource[e]
                    if usage[e] > 0.0 and fatpipe[q] and rising[q] > 0:
                        known = False
                        for b in range(n_full):
                            known = known or full[b] == q
                        if not known:
                            w = _sum(q, last_use, earlier_use, user, usage, penalty, rate, fatpipe)
                            if left[q] / w <= now:
                                full[n_full] = q
                                n_full += 1
            k = earlier_use[k]
        a += 1
    return n_full


@jit
def _stop(i, start, resource, usage, fatpipe, penalty, rate, left, slope, rising):
    """Charge a task whose rate is known to its resources."""
    for k in range(start[i], start[i + 1]):
        if usage[k] > 0.0:
            r = resource[k]
            rising[r] -= 1
            if not fatpipe[r]:
                left[r] = max(left[r] - usage[k] * rate[i], 0.0)
                slope[r] -= usage[k] / penalty[i]


@jit
def _sum(r, last_use, earlier_use, user, usage, penalty, rate, fatpipe):
    """W_r of the users that still rise."""
    total = 0.0
    k = last_use[r]
    while k >= 0:
        i = user[k]
        if rate[i] < 0.0:
            x = usage[k] / penalty[i]
            total = max(total, x) if fatpipe[r] else total + x
        k = earlier_use[k]
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
