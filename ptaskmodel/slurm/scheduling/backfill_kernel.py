# mypy: allow-untyped-defs, allow-incomplete-defs
"""Kernel of a backfill cycle in which jobs take whole, equal nodes; results equal `backfill.Cycle`.

`vectorised_backfill` calls it. Sets of nodes are rows of 64-bit words. The kernel tests queue
entries in order and returns when a job can start now. The caller starts it, updates idle nodes and
running jobs, and calls again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.kernels.decorators import entry, jit
from ptaskmodel.slurm.scheduling.slot_kernel import (
    CUTS,
    ENTRIES,
    LAST_ABLE,
    MOST,
    NEW,
    NOW,
    PLANS_IDLE,
    POSITION,
    POSTPONED,
    RECORDS,
    ROOM,
    RUNNING,
    STEP,
    TESTED,
    WINDOW,
    begin_map,
    collides,
    crowded_until,
    fewest_ended,
    find_open,
    growth_after,
    is_decided,
    reserve,
    slot_at,
)
from ptaskmodel.slurm.select.bitsets import choose, ones
from ptaskmodel.slurm.select.offer_kernel import ended_by

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

DONE, STARTS, NOT_PLAIN = range(3)
# What is known of each job, by its number: nodes, seconds, row of masks; whether the size that it
# is found to have was told. In place of nodes:
NODES, SECONDS, ROW, TOLD = range(4)
FACTS = 4
IS_NOT_PLAIN, IS_NOT_TESTED = -1, 0
NOT_TOLD = -1


class CycleState(NamedTuple):
    """numbers: see `slot_kernel`. jobs: of each entry the number of its job; known: what is known
    of these, by number. planned: of each entry its date, tested: whether it was; new: the entries
    that are tested for the first time. masks: nodes of partitions; reach: all nodes of these.
    up: the nodes that are.
    running, ends: of the jobs that run, by end, their slots and that; held: by slot, their nodes.

    Slots are linked by following; slot 0 is the first. free: their nodes; counts: of each row of
    masks, how many of it are; grows: whether some of its reach are free in the following slot that
    are not here.
    map_version: of each row, how often the map has changed.
    idle, planned_nodes, chosen: sets. later_free: the nodes that are free when so many of those
    that run have ended; later_counts: how many of each row of masks. left, usable, runs: scratch.
    """

    numbers: Ints
    jobs: Ints
    known: Ints
    planned: Ints
    tested: Ints
    new: Ints
    masks: Words
    reach: Words
    up: Words
    running: Ints
    ends: Ints
    held: Words
    slot_begin: Ints
    slot_end: Ints
    following: Ints
    free: Words
    counts: Ints
    grows: Ints
    map_version: Ints
    later_free: Words
    later_counts: Ints
    idle: Words
    planned_nodes: Words
    chosen: Words
    left: Words
    usable: Words
    runs: Ints


@entry
def cycle(s):
    """Test entries from POSITION on: DONE, or STARTS where the entry there can start now.

    At first, NOT_PLAIN where some entry is that. CUTS: whether it ends where no other entry can
    start; what is planned and tested then ends there, too.
    """
    numbers = s.numbers
    if numbers[POSITION] == 0:
        for k in range(numbers[ENTRIES]):
            if s.known[s.jobs[k], NODES] == IS_NOT_PLAIN:
                return 2
        begin_map(s)
        numbers[LAST_ABLE] = numbers[ENTRIES] - 1
    _look_ahead(s)
    while numbers[POSITION] < numbers[ENTRIES]:
        if numbers[TESTED] >= numbers[MOST]:
            break
        if numbers[CUTS] and is_decided(s) and not _is_able(s, numbers[POSITION]):
            break
        status = _test(s, numbers[POSITION])
        if status == 1:
            return 1
        if status == 2:
            break
        numbers[POSITION] += 1
    numbers[PLANS_IDLE] = 0
    for w in range(len(s.idle)):
        if s.planned_nodes[w] & s.idle[w]:
            numbers[PLANS_IDLE] = 1
    return 0


@jit
def _is_able(s, k):
    """Whether some entry from one on may start now, or be told its size. LAST_ABLE: the last one.

    Within a cycle the map only fills, and what is idle only shrinks: it is none for good.
    """
    numbers = s.numbers
    while numbers[LAST_ABLE] >= k:
        job = s.jobs[numbers[LAST_ABLE]]
        wanted, lasts, row = s.known[job, NODES], s.known[job, SECONDS], s.known[job, ROW]
        if wanted != IS_NOT_TESTED:
            if s.known[job, TOLD] == NOT_TOLD:
                return True
            if s.later_counts[0, row] >= wanted:
                slot = slot_at(s.slot_end, s.following, np.int64(0), numbers[NOW])
                if find_open(s, s.idle, row, slot, numbers[NOW] + lasts, wanted):
                    return True
        numbers[LAST_ABLE] -= 1
    return False


@jit
def _test(s, k):
    """One entry: 0: on with the next; 1: it can start now, on chosen; 2: the map is full."""
    job = s.jobs[k]
    wanted, lasts, row = s.known[job, NODES], s.known[job, SECONDS], s.known[job, ROW]
    if wanted == IS_NOT_TESTED:
        return 0
    numbers = s.numbers
    now, running = numbers[NOW], numbers[RUNNING]
    # Whatever is reserved, so many of those that run must end before.
    fewest = fewest_ended(s.later_counts, running, row, wanted)
    later, slot, crowded = now, np.int64(0), np.int64(-1)
    while True:
        start = later
        slot = slot_at(s.slot_end, s.following, slot, start)
        end = max(start, now) + lasts
        grown = growth_after(s.slot_begin, s.following, s.grows, slot, end, row)
        later = s.slot_end[grown] if grown >= 0 else np.int64(0)
        most = running if later == 0 else ended_by(s.ends, running, later)
        enough = fewest <= most
        if enough and start >= crowded:
            crowded = crowded_until(
                s.slot_begin, s.slot_end, s.following, s.counts, slot, end, row, wanted
            )
        enough = enough and start >= crowded
        if not (enough and find_open(s, s.later_free[most], row, slot, end, wanted)):
            if later > 0:
                continue
            break
        _note_test(s, k, job)
        ended = _predict(s.usable, s.left, s.later_free, wanted, fewest, most)
        date = now if ended == 0 else max(s.ends[ended - 1], now + 1)
        if date < start:
            date = start
            numbers[POSTPONED] = 1
        if date <= now:
            choose(s.chosen, s.usable, s.runs, wanted)
            return 1
        if date > now + numbers[WINDOW]:
            return 0
        choose(s.chosen, s.usable, s.runs, wanted)
        step = numbers[STEP]
        begin, finish = date // step * step, (date + lasts) // step * step
        if collides(s.slot_begin, s.slot_end, s.following, s.free, s.chosen, begin, finish):
            later = date
            continue
        s.planned[k] = date
        for w in range(len(s.chosen)):
            s.planned_nodes[w] |= s.chosen[w]
        if numbers[RECORDS] >= numbers[ROOM]:
            return 2
        reserve(s, begin, max(finish, begin + step))
        return 0
    if s.tested[k] == 0 and _was_open(s, row, lasts, wanted):
        _note_test(s, k, job)
    return 0


@jit
def _note_test(s, k, job):
    """An entry is tested: it counts, once; its job, if it never was."""
    if s.tested[k] == 0:
        s.tested[k] = 1
        s.numbers[TESTED] += 1
        if s.known[job, TOLD] == NOT_TOLD:
            s.known[job, TOLD] = 1
            s.new[s.numbers[NEW]] = k
            s.numbers[NEW] += 1


@jit
def _was_open(s, row, lasts, wanted):
    """Return whether an entry without a date would have one if no job ran."""
    now = s.numbers[NOW]
    later, slot = now, np.int64(0)
    while True:
        start = later
        slot = slot_at(s.slot_end, s.following, slot, start)
        end = max(start, now) + lasts
        if find_open(s, s.masks[row], row, slot, end, wanted):
            return True
        grown = growth_after(s.slot_begin, s.following, s.grows, slot, end, row)
        later = s.slot_end[grown] if grown >= 0 else np.int64(0)
        if later == 0:
            return False


@jit
def _predict(usable, left, later_free, wanted, fewest, most):
    """After how many ends, at least fewest, so many of left are free, as they are after most.

    usable: which. Jobs only give nodes back, so bisection finds it.
    """
    low, high = fewest - 1, most
    while high - low > 1:
        middle = (low + high) // 2
        if _common(usable, left, later_free, middle) >= wanted:
            high = middle
        else:
            low = middle
    _common(usable, left, later_free, high)
    return high


@jit
def _common(usable, left, later_free, ended):
    """usable: the nodes of left that are free when so many jobs have ended; how many."""
    found = np.int64(0)
    for w in range(len(usable)):
        usable[w] = left[w] & later_free[ended, w]
        found += ones(usable[w])
    return found


@jit
def _look_ahead(s):
    """later_free, later_counts: what is free when so many of those that run have ended."""
    for w in range(len(s.idle)):
        s.later_free[0, w] = s.idle[w]
    for j in range(s.numbers[RUNNING]):
        place = s.running[j]
        for w in range(len(s.idle)):
            s.later_free[j + 1, w] = s.later_free[j, w] | s.held[place, w]
    for j in range(s.numbers[RUNNING] + 1):
        for row in range(len(s.masks)):
            found = np.int64(0)
            for w in range(len(s.idle)):
                found += ones(s.masks[row, w] & s.later_free[j, w])
            s.later_counts[j, row] = found
