# mypy: allow-untyped-defs, disable-error-code="assignment"
"""How the rounds of fair bottleneck see a system: laid out for one pass after the other.

Used resources have new numbers, their *places*: SHARED ones from 0 on, in their order, FATPIPEs
from the last place down. The uses of a place lie side by side, the newest first. A *run* is a row
of equal uses of a task, of one kind: since dividing by one number keeps the order, its smallest
quotient is that of its smallest numerator, to the bit. Where rows of runs are long, they may be
filled up to a multiple of `STEP` with a place of which anybody may take all (`close_run`):
then they are gone through without a rest, whose length a processor cannot foresee.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ptaskmodel.kernels.decorators import jit, views
from ptaskmodel.sharing.arrays import carve

# Elements of a run that are looked at together.
STEP = 4
# Resources with so many uses or more are put in order as if they had as many.
MANY_USES = 32
# Rounds of which is kept what tasks grew by.
KEPT_ROUNDS = 16
# States of a task; FIXED ones are still charged.
LIVE, FIXED, GONE = 0, 1, 2
# A literal 0 given to a kernel would be compiled for as a type of its own.
ZERO = np.int64(0)
# Unsigned indices spare the test for negative ones in the innermost loops.
ONE, TWO, THREE, FOUR = (np.uint64(k) for k in range(1, 5))


class Rounds(NamedTuple):
    """The state of the rounds: of places, tasks, runs and uses."""

    share: np.ndarray  # u_r: what each use may take; one place more, without end
    left: np.ndarray  # R_r; inf: used up, nobody looks at it again
    total: np.ndarray  # n_r: the weights of the live uses; one place more, of no meaning
    loss: np.ndarray
    increment: np.ndarray  # d_i
    later: np.ndarray  # the largest d_i after the second round, while it was live
    ceiling: np.ndarray  # largest rate of a task
    run_usage: np.ndarray
    run_weight: np.ndarray  # of its task; of a FATPIPE 1
    value: np.ndarray  # what each use of a run is charged
    grown: np.ndarray  # d_i of each round and task, the last one of those fixed
    place: np.ndarray  # of a resource, if it is used
    origin: np.ndarray  # the resource at a place
    base: np.ndarray  # where its newest use is in `user`
    count: np.ndarray  # of its uses
    order: np.ndarray  # SHARED places that are charged, in order of their counts
    full: np.ndarray  # list of those used up in this round
    live: np.ndarray  # list of live tasks
    state: np.ndarray
    limiting: np.ndarray
    rounds: np.ndarray  # in how many a task was live
    run_from: np.ndarray  # first run of a task; the next task's is the one after its last
    group: np.ndarray
    passed: np.ndarray  # how many rounds there were
    run_task: np.ndarray
    run_first: np.ndarray  # its first element
    element: np.ndarray  # a place
    user: np.ndarray  # a run


def rounds_sizes(n: int, m: int, z: int) -> tuple[int, int]:
    """Lengths of the float64 and int64 arrays that `carve_rounds` divides."""
    small = 2 + (3 + STEP) * (z + 2) // 2
    return 4 * m + 2 + (3 + KEPT_ROUNDS) * n + 3 * z, 6 * m + 5 * n + MANY_USES + 4 + small


@views
def carve_rounds(n, m, z, reals, integers):
    """The scratch arrays as those of the `Rounds`."""
    share, reals = carve(reals, m + 1)
    left, reals = carve(reals, m)
    total, reals = carve(reals, m + 1)
    loss, reals = carve(reals, m)
    increment, reals = carve(reals, n)
    later, reals = carve(reals, n)
    ceiling, reals = carve(reals, n)
    run_usage, reals = carve(reals, z)
    run_weight, reals = carve(reals, z)
    value, reals = carve(reals, z)
    grown, reals = carve(reals, KEPT_ROUNDS * n)
    place, integers = carve(integers, m)
    origin, integers = carve(integers, m)
    base, integers = carve(integers, m)
    count, integers = carve(integers, m)
    order, integers = carve(integers, m)
    full, integers = carve(integers, m)
    live, integers = carve(integers, n)
    state, integers = carve(integers, n)
    limiting, integers = carve(integers, n)
    rounds, integers = carve(integers, n)
    run_from, integers = carve(integers, n + 1)
    group, integers = carve(integers, MANY_USES + 2)
    passed, integers = carve(integers, 1)
    small = integers.view(np.uint32)
    run_task, small = carve(small, z)
    run_first, small = carve(small, z + 1)
    user, small = carve(small, z)
    element, small = carve(small, STEP * (z + 1))
    return Rounds(
        share, left, total, loss, increment, later, ceiling, run_usage, run_weight, value, grown,
        place, origin, base, count, order, full, live, state, limiting, rounds, run_from, group,
        passed, run_task, run_first, element, user,
    )  # fmt: skip


@jit
def lay_places(system, v):
    """Give the used resources their places; (SHARED ones, the first of the FATPIPEs).

    ``base`` says where the uses of each end.
    """
    m = np.uint64(system.capacity.size)
    uses = v.full
    for r in range(m):
        uses[r] = 0
    for k in range(np.uint64(system.start[system.start.size - 1])):
        uses[np.uint64(system.resource[k])] += 1 if system.usage[k] > 0.0 else 0
    shared = ZERO
    fats = system.capacity.size
    z = ZERO
    for r in range(system.capacity.size):
        if uses[r] > 0:
            if system.fatpipe[r]:
                fats -= 1
                p = fats
            else:
                p = shared
                shared += 1
            v.place[r] = p
            v.origin[p] = r
            z += uses[r]
            v.base[p] = z
            v.count[p] = z
            v.left[p] = system.capacity[r]
    for p in range(shared, fats):  # nobody is there
        v.total[p] = 0.0
    return shared, fats


@jit
def lay_tasks(system, fats, rate, v):
    """Lay the uses of all tasks, who begin at rate 0, in runs; how many are live."""
    start, resource, usage = system.start, system.resource, system.usage
    n_live = ZERO
    q = np.uint64(0)
    e = np.uint64(0)
    for i in range(np.uint64(start.size - 1)):
        v.run_from[i] = q
        before = 0.0
        kind = False
        for k in range(np.uint64(start[i]), np.uint64(start[i + ONE])):
            a = usage[k]
            if a > 0.0:
                p = v.place[np.uint64(resource[k])]
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
                put_user(np.uint64(p), q - ONE, v)
        n_live = begin_task(i, q > np.uint64(v.run_from[i]), n_live, rate, v)
    v.run_first[q] = e
    v.run_from[start.size - 1] = q
    return n_live


@jit
def close_run(q, e, nowhere, v):
    """Fill up the row of the last run, if there is one; returns where the next one begins."""
    v.element[e] = nowhere
    v.element[e + ONE] = nowhere
    v.element[e + TWO] = nowhere
    e = (e + THREE) & ~THREE
    v.run_first[q] = e
    return e


@jit
def put_user(p, q, v):
    """A run uses a place, as its newest user."""
    h = np.uint64(v.base[p]) - ONE
    v.base[p] = h
    v.user[h] = q


@jit
def begin_task(i, uses_some, n_live, rate, v):
    """A task begins at rate 0, if it uses something; how many are live."""
    rate[i] = 1.0
    v.increment[i] = 0.0
    v.later[i] = 0.0
    v.state[i] = GONE
    if uses_some:
        rate[i] = 0.0
        v.state[i] = LIVE
        v.live[np.uint64(n_live)] = i
        n_live += 1
    return n_live


@jit
def order_places(shared, fats, v):
    """Count the uses of each place, and put the SHARED ones in order of that."""
    group = v.group
    for c in range(MANY_USES + 2):
        group[c] = 0
    for p in range(np.uint64(shared)):
        uses = v.count[p] - v.base[p]
        v.count[p] = uses
        v.total[p] = uses
        group[np.uint64(min(uses, MANY_USES)) + ONE] += 1
    for c in range(MANY_USES + 1):
        group[c + 1] += group[c]
    for p in range(np.uint64(shared)):
        c = np.uint64(min(v.count[p], MANY_USES))
        v.order[np.uint64(group[c])] = p
        group[c] += 1
    for p in range(fats, v.count.size):
        v.count[p] -= v.base[p]
        v.total[p] = v.count[p]


@jit
def keep_increments(v):
    """Count a round, and keep what each task grew by in it, or is charged again."""
    n = v.increment.size
    if v.passed[0] < KEPT_ROUNDS:
        first = np.uint64(v.passed[0] * n)
        for i in range(np.uint64(n)):
            v.grown[first + i] = v.increment[i]
    v.passed[0] += 1
