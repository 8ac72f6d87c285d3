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
from ptaskmodel.slurm.select.bitsets import choose, ones

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

# What ``numbers`` holds, by place.
NOW, STEP, WINDOW, ENTRIES, POSITION, TESTED, MOST, RECORDS, ROOM = range(9)
RUNNING, POSTPONED, PLANS_IDLE, NEW = 9, 10, 11, 12
NUMBERS = 13
DONE, STARTS, NOT_PLAIN = range(3)
# What is known of each job, by its number: nodes, seconds, row of masks; whether the size that it
# is found to have was told. In place of nodes:
NODES, SECONDS, ROW, TOLD = range(4)
FACTS = 4
IS_NOT_PLAIN, IS_NOT_TESTED = -1, 0
NOT_TOLD = -1
NOT_PLANNED = -1


class CycleState(NamedTuple):
    """numbers: see above. jobs: of each entry the number of its job; known: what is known of these,
    by number. planned: of each entry its date, tested: whether it was; new: the entries that are
    tested for the first time. masks: the nodes of partitions. up: the nodes that are. order, ends:
    of the jobs that run, by end, their places and that; held: by place, their nodes.

    Slots are linked by following; slot 0 is the first. free: their nodes; counts: of each row of
    masks, how many of it are; grows: whether some are free in the following slot that are not here.
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
    up: Words
    order: Ints
    ends: Ints
    held: Words
    slot_begin: Ints
    slot_end: Ints
    following: Ints
    free: Words
    counts: Ints
    grows: Ints
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

    At first, NOT_PLAIN where some entry is that.
    """
    numbers = s.numbers
    if numbers[POSITION] == 0:
        for k in range(numbers[ENTRIES]):
            if s.known[NODES, s.jobs[k]] == IS_NOT_PLAIN:
                return 2
        _begin(s)
    _look_ahead(s)
    while numbers[POSITION] < numbers[ENTRIES]:
        if numbers[TESTED] >= numbers[MOST]:
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
def _begin(s):
    """An empty map, and nothing planned."""
    numbers = s.numbers
    now, step = numbers[NOW], numbers[STEP]
    numbers[TESTED], numbers[RECORDS], numbers[POSTPONED], numbers[NEW] = 0, 1, 0, 0
    for k in range(numbers[ENTRIES]):
        s.planned[k] = NOT_PLANNED
        s.tested[k] = 0
    s.slot_begin[0] = now // step * step
    s.slot_end[0] = (now + numbers[WINDOW]) // step * step
    s.following[0] = -1
    for w in range(len(s.up)):
        s.free[0, w] = s.up[w]
        s.planned_nodes[w] = 0
    _count_free(s.counts, s.masks, s.free, 0)
    _note_growth(s.grows, s.masks, s.free, s.following, 0)


@jit
def _test(s, k):
    """One entry: 0: on with the next; 1: it can start now, on chosen; 2: the map is full."""
    job = s.jobs[k]
    wanted, lasts, row = s.known[NODES, job], s.known[SECONDS, job], s.known[ROW, job]
    if wanted == IS_NOT_TESTED:
        return 0
    numbers = s.numbers
    now, running = numbers[NOW], numbers[RUNNING]
    # Whatever is reserved, so many of those that run must end before.
    fewest = _fewest_ended(s.later_counts, running, row, wanted)
    later, slot, crowded = now, np.int64(0), np.int64(-1)
    while True:
        start = later
        slot = _slot_at(s.slot_end, s.following, slot, start)
        end = max(start, now) + lasts
        later = _growth_after(s.slot_begin, s.slot_end, s.following, s.grows, slot, end, row)
        most = running if later == 0 else _ended_by(s.ends, running, later)
        enough = fewest <= most
        if enough and start >= crowded:
            crowded = _crowded_until(
                s.slot_begin, s.slot_end, s.following, s.counts, slot, end, row, wanted
            )
        enough = enough and start >= crowded
        if not (enough and _open(s, s.later_free[most], row, slot, end, wanted)):
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
        if _collides(s.slot_begin, s.slot_end, s.following, s.free, s.chosen, begin, finish):
            later = date
            continue
        s.planned[k] = date
        for w in range(len(s.chosen)):
            s.planned_nodes[w] |= s.chosen[w]
        if numbers[RECORDS] >= numbers[ROOM]:
            return 2
        _reserve(s, begin, max(finish, begin + step))
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
        if s.known[TOLD, job] == NOT_TOLD:
            s.known[TOLD, job] = 1
            s.new[s.numbers[NEW]] = k
            s.numbers[NEW] += 1


@jit
def _was_open(s, row, lasts, wanted):
    """Return whether an entry without a date would have one if no job ran."""
    now = s.numbers[NOW]
    later, slot = now, np.int64(0)
    while True:
        start = later
        slot = _slot_at(s.slot_end, s.following, slot, start)
        end = max(start, now) + lasts
        if _open(s, s.masks[row], row, slot, end, wanted):
            return True
        later = _growth_after(s.slot_begin, s.slot_end, s.following, s.grows, slot, end, row)
        if later == 0:
            return False


@jit
def _slot_at(slot_end, following, slot, date):
    """The first slot from one on that ends after a date; -1: none."""
    while slot >= 0 and slot_end[slot] <= date:
        slot = following[slot]
    return slot


@jit
def _crowded_until(slot_begin, slot_end, following, counts, slot, end, row, wanted):
    """The end of the first slot until a date that has too few nodes for an entry; -1: none."""
    while slot >= 0 and slot_begin[slot] <= end:
        if counts[slot, row] < wanted:
            return slot_end[slot]
        slot = following[slot]
    return np.int64(-1)


@jit
def _growth_after(slot_begin, slot_end, following, grows, slot, end, row):
    """The end of the first slot behind which there is a node that is not in all since a slot.

    0: there is none, up to the first slot behind end. What is in all, as long as nothing grows, is
    in the last one.
    """
    while slot >= 0:
        if grows[slot, row]:
            return slot_end[slot]
        if slot_begin[slot] > end:
            break
        slot = following[slot]
    return np.int64(0)


@jit
def _open(s, some, row, slot, end, wanted):
    """left: those of some nodes of a row that are not reserved from a slot on until end; whether
    they suffice. If not, it holds some more.
    """
    left, mask, free = s.left, s.masks[row], s.free
    found = np.int64(0)
    for w in range(len(left)):
        left[w] = mask[w] & some[w]
        found += ones(left[w])
    while found >= wanted and slot >= 0 and s.slot_begin[slot] <= end:
        after = s.following[slot]
        # A slot behind which nothing grows has all that the following one has.
        if s.grows[slot, row] or after < 0 or s.slot_begin[after] > end:
            found = np.int64(0)
            for w in range(len(left)):
                left[w] &= free[slot, w]
                found += ones(left[w])
        slot = after
    return found >= wanted


@jit
def _fewest_ended(later_counts, running, row, wanted):
    """After how many ends a row has so many nodes; more than those that run: it never has."""
    low, high = np.int64(-1), running + 1
    while high - low > 1:
        middle = (low + high) // 2
        if later_counts[middle, row] >= wanted:
            high = middle
        else:
            low = middle
    return high


@jit
def _ended_by(ends, running, date):
    """How many of those that run end at a date at the latest."""
    low, high = np.int64(0), running
    while low < high:
        middle = (low + high) // 2
        if ends[middle] <= date:
            low = middle + 1
        else:
            high = middle
    return low


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
        place = s.order[j]
        for w in range(len(s.idle)):
            s.later_free[j + 1, w] = s.later_free[j, w] | s.held[place, w]
    for j in range(s.numbers[RUNNING] + 1):
        for row in range(len(s.masks)):
            found = np.int64(0)
            for w in range(len(s.idle)):
                found += ones(s.masks[row, w] & s.later_free[j, w])
            s.later_counts[j, row] = found


@jit
def _count_free(counts, masks, free, slot):
    """counts: how many nodes of each mask are free in a slot."""
    for row in range(len(masks)):
        found = np.int64(0)
        for w in range(masks.shape[1]):
            found += ones(masks[row, w] & free[slot, w])
        counts[slot, row] = found


@jit
def _note_growth(grows, masks, free, following, slot):
    """grows: whether nodes of each mask are free behind a slot that are not in it."""
    after = following[slot]
    for row in range(len(masks)):
        grows[slot, row] = 0
        if after >= 0:
            for w in range(masks.shape[1]):
                if masks[row, w] & free[after, w] & ~free[slot, w]:
                    grows[slot, row] = 1
                    break


@jit
def _collides(slot_begin, slot_end, following, free, chosen, begin, end):
    """Whether some of chosen is reserved in [begin, end)."""
    slot = np.int64(0)
    while slot >= 0 and slot_begin[slot] < end:
        if slot_end[slot] > begin:
            for w in range(len(chosen)):
                if chosen[w] & ~free[slot, w]:
                    return True
        slot = following[slot]
    return False


@jit
def _reserve(s, begin, end):
    """Take chosen out of [begin, end); two equal neighbours are joined, as in `TimeSlots`."""
    begin = max(begin, s.slot_begin[0])
    before, after, slot = np.int64(0), np.int64(-1), np.int64(0)
    while slot >= 0 and s.slot_end[slot] < begin:
        before = slot
        slot = s.following[slot]
    if slot >= 0:
        if s.slot_end[slot] > begin:
            _split(s, slot, begin)
        changed = slot
        slot = s.following[slot]
        while slot >= 0:
            if end < s.slot_end[slot]:
                _split(s, slot, end)
            for w in range(len(s.chosen)):
                s.free[slot, w] &= ~s.chosen[w]
            _count_free(s.counts, s.masks, s.free, slot)
            if end == s.slot_end[slot]:
                after = s.following[slot]
                break
            slot = s.following[slot]
        while changed != after:
            _note_growth(s.grows, s.masks, s.free, s.following, changed)
            changed = s.following[changed]
    _join(s, before, after)


@jit
def _join(s, slot, after):
    """Make one of the first two equal neighbours from a slot on and before another."""
    while slot != after:
        following = s.following[slot]
        if following < 0:
            return
        equal = True
        for w in range(len(s.chosen)):
            if s.free[slot, w] != s.free[following, w]:
                equal = False
                break
        if equal:
            s.slot_end[slot] = s.slot_end[following]
            s.following[slot] = s.following[following]
            _note_growth(s.grows, s.masks, s.free, s.following, slot)
            return
        slot = following


@jit
def _split(s, slot, date):
    """Make a slot of what is behind a date in another."""
    new = s.numbers[RECORDS]
    s.numbers[RECORDS] += 1
    s.slot_begin[new], s.slot_end[new] = date, s.slot_end[slot]
    s.following[new] = s.following[slot]
    s.slot_end[slot], s.following[slot] = date, new
    for w in range(len(s.chosen)):
        s.free[new, w] = s.free[slot, w]
    for row in range(len(s.masks)):
        s.counts[new, row] = s.counts[slot, row]
        s.grows[new, row], s.grows[slot, row] = s.grows[slot, row], 0
