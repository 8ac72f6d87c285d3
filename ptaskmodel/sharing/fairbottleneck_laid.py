# mypy: allow-untyped-defs, disable-error-code="assignment"
"""How the rounds of fair bottleneck see a system: laid out for one pass after the other.

Used resources have new numbers, their *places*: SHARED ones in order of their number of uses, then
FATPIPEs. The uses of those with equally many lie in lanes, first the newest use of each, then the
one before of each: a processor charges several at once, each in its order. A *run* is a row of
equal uses of a task, of one kind: since dividing by one number keeps the order, its smallest
quotient is that of its smallest numerator, to the bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ptaskmodel.jit import jit, views
from ptaskmodel.sharing.arrays import carve

# Resources with so many uses or more lie one after the other.
MANY_USES = 32
# Rounds of which is kept what tasks grew by.
KEPT_ROUNDS = 16
# States of a task; FIXED ones are still charged.
LIVE, FIXED, GONE = 0, 1, 2
# A literal 0 given to a kernel would be compiled for as a type of its own.
ZERO = np.int64(0)
# Unsigned indices spare the test for negative ones in the innermost loops.
ONE = np.uint64(1)


class Rounds(NamedTuple):
    """The state of the rounds: of places, tasks, runs and uses."""

    share: np.ndarray  # u_r: what each use may take
    left: np.ndarray  # R_r; inf: used up, nobody looks at it again
    total: np.ndarray  # n_r: the weights of the live uses
    loss: np.ndarray
    increment: np.ndarray  # d_i
    ceiling: np.ndarray  # largest rate of a task
    run_usage: np.ndarray
    run_weight: np.ndarray  # of its task; of a FATPIPE 1
    value: np.ndarray  # what each use of a run is charged
    grown: np.ndarray  # d_i of each round and task, the last one of those fixed
    place: np.ndarray  # of a resource, if it is used
    origin: np.ndarray  # the resource at a place
    count: np.ndarray  # of its uses
    base: np.ndarray  # where its newest use is in `user`
    stride: np.ndarray  # from there to the one before
    full: np.ndarray  # list of those used up in this round
    live: np.ndarray  # list of live tasks, newest first
    state: np.ndarray
    limiting: np.ndarray
    rounds: np.ndarray  # in how many a task was live
    run_from: np.ndarray  # first run of a task
    run_to: np.ndarray  # the one after its last
    run_task: np.ndarray
    run_first: np.ndarray  # its first element
    element: np.ndarray  # a place
    user: np.ndarray  # a run
    group: np.ndarray  # first place of those with so many uses
    passed: np.ndarray  # how many rounds there were


def rounds_sizes(n: int, m: int, z: int) -> tuple[int, int]:
    """Lengths of the float64 and int64 arrays that `carve_rounds` divides."""
    return 4 * m + (2 + KEPT_ROUNDS) * n + 3 * z, 6 * m + 6 * n + 4 * z + MANY_USES + 4


@views
def carve_rounds(n, m, z, reals, integers):
    """The scratch arrays as those of the `Rounds`."""
    share, reals = carve(reals, m)
    left, reals = carve(reals, m)
    total, reals = carve(reals, m)
    loss, reals = carve(reals, m)
    increment, reals = carve(reals, n)
    ceiling, reals = carve(reals, n)
    run_usage, reals = carve(reals, z)
    run_weight, reals = carve(reals, z)
    value, reals = carve(reals, z)
    grown, reals = carve(reals, KEPT_ROUNDS * n)
    place, integers = carve(integers, m)
    origin, integers = carve(integers, m)
    count, integers = carve(integers, m)
    base, integers = carve(integers, m)
    stride, integers = carve(integers, m)
    full, integers = carve(integers, m)
    live, integers = carve(integers, n)
    state, integers = carve(integers, n)
    limiting, integers = carve(integers, n)
    rounds, integers = carve(integers, n)
    run_from, integers = carve(integers, n)
    run_to, integers = carve(integers, n)
    run_task, integers = carve(integers, z)
    run_first, integers = carve(integers, z + 1)
    element, integers = carve(integers, z)
    user, integers = carve(integers, z)
    group, integers = carve(integers, MANY_USES + 2)
    passed, integers = carve(integers, 1)
    return Rounds(
        share, left, total, loss, increment, ceiling, run_usage, run_weight, value, grown, place,
        origin, count, base, stride, full, live, state, limiting, rounds, run_from, run_to,
        run_task, run_first, element, user, group, passed,
    )  # fmt: skip


@jit
def lay_places(system, v):
    """Give the used resources their places; (places of SHARED ones, places)."""
    m = np.uint64(system.capacity.size)
    group = v.group
    for r in range(m):
        v.full[r] = 0
    for k in range(np.uint64(system.start[system.start.size - 1])):
        v.full[np.uint64(system.resource[k])] += 1 if system.usage[k] > 0.0 else 0
    for c in range(MANY_USES + 2):
        group[c] = 0
    for r in range(m):
        if v.full[r] > 0 and not system.fatpipe[r]:
            group[np.uint64(min(v.full[r], MANY_USES)) + ONE] += 1
    for c in range(MANY_USES + 1):
        group[c + 1] += group[c]
    shared = group[MANY_USES + 1]
    used = shared
    for r in range(m):
        uses = v.full[r]
        if uses > 0:
            p = np.uint64(used)
            if system.fatpipe[r]:
                used += 1
            else:
                c = np.uint64(min(uses, MANY_USES))
                p = np.uint64(group[c])
                group[c] += 1
            v.place[r] = p
            v.origin[p] = r
            v.count[p] = uses
            v.total[p] = uses
            v.left[p] = system.capacity[r]
    for c in range(MANY_USES, 0, -1):
        group[c] = group[c - 1]
    group[0] = 0
    _lay_lanes(shared, used, v)
    return shared, used


@jit
def _lay_lanes(shared, used, v):
    """Room for the uses of each place; ``full`` says where the next one goes."""
    z = ZERO
    for c in range(1, MANY_USES):
        first = v.group[c]
        width = v.group[c + 1] - first
        for p in range(first, first + width):
            v.base[p] = v.full[p] = z + p - first
            v.stride[p] = width
        z += c * width
    for p in range(v.group[MANY_USES], used):
        v.base[p] = v.full[p] = z
        v.stride[p] = 1
        z += v.count[p]


@jit
def lay_tasks(shared, system, rate, v):
    """Lay the uses of all tasks, who begin at rate 0, in runs; how many are live."""
    start, resource, usage = system.start, system.resource, system.usage
    fats = np.uint64(shared)
    n_live = ZERO
    q = np.uint64(0)
    e = np.uint64(0)
    k = np.uint64(start[start.size - 1])
    for younger in range(start.size - 1):
        i = np.uint64(start.size - 2 - younger)
        v.run_from[i] = q
        before = 0.0
        kind = False
        for _ in range(k - np.uint64(start[i])):
            k -= ONE
            a = usage[k]
            if a > 0.0:
                p = np.uint64(v.place[np.uint64(resource[k])])
                fat = p >= fats
                if a != before or kind != fat:
                    before = a
                    kind = fat
                    v.run_usage[q] = a
                    v.run_weight[q] = 1.0 if kind else system.weight[i]
                    v.value[q] = 0.0
                    v.run_task[q] = i
                    v.run_first[q] = e
                    q += ONE
                v.element[e] = p
                e += ONE
                h = np.uint64(v.full[p])
                v.user[h] = q - ONE
                v.full[p] = h + np.uint64(v.stride[p])
        v.run_to[i] = q
        rate[i] = 1.0
        v.increment[i] = 0.0
        v.state[i] = GONE
        if q > np.uint64(v.run_from[i]):
            rate[i] = 0.0
            v.state[i] = LIVE
            v.live[np.uint64(n_live)] = i
            n_live += 1
    v.run_first[q] = e
    return n_live


@jit
def keep_increments(v):
    """Count a round, and keep what each task grew by in it, or is charged again."""
    n = v.increment.size
    if v.passed[0] < KEPT_ROUNDS:
        first = np.uint64(v.passed[0] * n)
        for i in range(np.uint64(n)):
            v.grown[first + i] = v.increment[i]
    v.passed[0] += 1
