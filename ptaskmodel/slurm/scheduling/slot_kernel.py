# mypy: allow-untyped-defs, allow-incomplete-defs
"""The map of a compiled backfill cycle: slots of time, each with the nodes not reserved in it.

`backfill_kernel` and `shared_kernel` use it; results equal `slots.TimeSlots`. Sets of nodes are
rows of 64-bit words. Slots are linked by following; slot 0 is the first.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.slurm.select.bitsets import meet, ones

# What ``numbers`` of a cycle holds, by place.
NOW, STEP, WINDOW, ENTRIES, POSITION, TESTED, MOST, RECORDS, ROOM = range(9)
RUNNING, POSTPONED, PLANS_IDLE, NEW, UNTIL, RULED_OUT, CUTS, LAST_ABLE, UNABLE = range(9, 18)
FULL, SURE, SURE_FROM, SURE_TO = range(18, 22)
# Of preemption: whether there is any; for how long no job is preempted, s; whose victims, on which
# row of nodes, are left out; and how many of those that run are not.
PREEMPTS, EXEMPT_S, OF_PREEMPTOR, OF_WITHIN, STAYING = range(22, 27)
NUMBERS = 27
NOT_PLANNED = -1
# A date after all others.
LAST = 2**62
# What ``ruled_out`` holds of each, by place; so many there are at most.
R_ROW, R_CPUS, R_SECONDS, R_LEAST, R_FIRST, R_LAST = range(6)
RULES, MOST_RULES = 6, 128
# The same of ``unable``, as far as that goes.
MOST_UNABLE = 16


@jit
def begin_map(s):
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
    _note_growth(s.grows, s.reach, s.free, s.following, 0)


@jit
def is_decided(s):
    """Whether what else a cycle of `s` says is known: POSTPONED and PLANS_IDLE."""
    if s.numbers[POSTPONED] == 0:
        return False
    return meet(s.idle, s.planned_nodes) or not meet(s.idle, s.idle)


@jit
def slot_at(slot_end, following, slot, date):
    """The first slot from one on that ends after a date; -1: none."""
    while slot >= 0 and slot_end[slot] <= date:
        slot = following[slot]
    return slot


@jit
def crowded_until(slot_begin, slot_end, following, counts, slot, end, row, wanted):
    """The end of the first slot until a date that has too few nodes for an entry; -1: none."""
    while slot >= 0 and slot_begin[slot] <= end:
        if counts[slot, row] < wanted:
            return slot_end[slot]
        slot = following[slot]
    return np.int64(-1)


@jit
def growth_after(slot_begin, following, grows, slot, end, row):
    """The first slot behind which there is a node that is not in all since a slot.

    -1: there is none, up to the first slot behind end. What is in all, as long as nothing grows, is
    in the last one.
    """
    while slot >= 0:
        if grows[slot, row]:
            return slot
        if slot_begin[slot] > end:
            break
        slot = following[slot]
    return np.int64(-1)


@jit
def find_open(s, some, row, slot, end, wanted):
    """left: those of some nodes of a row that are not reserved from a slot on until end; whether
    they suffice. If not, it holds some more.
    """
    left, mask, free = s.left, s.masks[row], s.free
    found = np.int64(0)
    for w in range(len(left)):
        left[w] = mask[w] & some[w]
        found += ones(left[w])
    # Where any will do, they are counted at the end.
    counts = wanted > 1
    while found >= wanted and slot >= 0 and s.slot_begin[slot] <= end:
        after = s.following[slot]
        # A slot behind which nothing grows has all that the following one has.
        if s.grows[slot, row] or after < 0 or s.slot_begin[after] > end:
            any_left = np.uint64(0)
            for w in range(len(left)):
                left[w] &= free[slot, w]
                any_left |= left[w]
            found = np.int64(any_left != np.uint64(0))
            if counts and found > 0:
                found = np.int64(0)
                for w in range(len(left)):
                    found += ones(left[w])
        slot = after
    return found >= wanted


@jit
def fewest_ended(later_counts, running, row, wanted):
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
def _count_free(counts, masks, free, slot):
    """counts: how many nodes of each mask are free in a slot."""
    for row in range(len(masks)):
        found = np.int64(0)
        for w in range(masks.shape[1]):
            found += ones(masks[row, w] & free[slot, w])
        counts[slot, row] = found


@jit
def _note_growth(grows, masks, free, following, slot):
    """grows: whether nodes of each of masks are free behind a slot that are not in it."""
    after = following[slot]
    for row in range(len(masks)):
        more = np.uint64(0)
        if after >= 0:
            for w in range(masks.shape[1]):
                more |= masks[row, w] & free[after, w] & ~free[slot, w]
        grows[slot, row] = np.int64(more != np.uint64(0))


@jit
def collides(slot_begin, slot_end, following, free, chosen, begin, end):
    """Whether some of chosen is reserved in [begin, end)."""
    slot = np.int64(0)
    low, high = within(chosen)
    while slot >= 0 and slot_begin[slot] < end:
        if slot_end[slot] > begin:
            taken = np.uint64(0)
            for w in range(low, high):
                taken |= chosen[w] & ~free[slot, w]
            if taken:
                return True
        slot = following[slot]
    return False


@jit
def within(chosen):
    """From where until where words of chosen hold any node."""
    low, high = np.int64(0), np.int64(len(chosen))
    while low < high and chosen[low] == np.uint64(0):
        low += 1
    while low < high and chosen[high - 1] == np.uint64(0):
        high -= 1
    return low, high


@jit
def reserve(s, begin, end):
    """Take chosen out of [begin, end); two equal neighbours are joined, as in `TimeSlots`.

    map_version: is counted up for each row of masks for which tests may now find something else.
    """
    begin = max(begin, s.slot_begin[0])
    before, after, slot = np.int64(0), np.int64(-1), np.int64(0)
    low, high = within(s.chosen)
    for row in range(len(s.masks)):
        s.map_version[row] += meet(s.reach[row], s.chosen)
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
            for row in range(len(s.masks)):
                for w in range(low, high):
                    gone = s.masks[row, w] & s.free[slot, w] & s.chosen[w]
                    s.counts[slot, row] -= ones(gone)
            for w in range(low, high):
                s.free[slot, w] &= ~s.chosen[w]
            if end == s.slot_end[slot]:
                after = s.following[slot]
                break
            slot = s.following[slot]
        while changed != after:
            _note_growth(s.grows, s.reach, s.free, s.following, changed)
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
            _note_reach(s, following)
            s.slot_end[slot] = s.slot_end[following]
            s.following[slot] = s.following[following]
            _note_growth(s.grows, s.reach, s.free, s.following, slot)
            return
        slot = following


@jit
def _split(s, slot, date):
    """Make a slot of what is behind a date in another."""
    _note_reach(s, slot)
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


@jit
def _note_reach(s, slot):
    """A slot is joined or split: `growth_after` reaches less or more than before near a growth."""
    after = s.following[slot]
    for row in range(len(s.masks)):
        s.map_version[row] += s.grows[slot, row] or (after >= 0 and s.grows[after, row] > 0)


@jit
def same_until(s, slot, end, lasts):
    """Until when a job of `s` that starts now in `slot` and `lasts` until `end` has its slots."""
    while slot >= 0:
        if s.slot_begin[slot] > end:
            return s.slot_begin[slot] - lasts - 1
        slot = s.following[slot]
    return np.int64(LAST)


@jit
def pass_over(s, row, slot, start, lasts, cpus, least):
    """The last date of those at which an entry is tested, from start on, before which it was ruled
    out, and its slot.

    The map of `s` only fills within a cycle: what did not suffice for an entry does not for a
    larger one, of the same `row`, which `lasts` as long. slot: of start. cpus, least: its needs.
    """
    until, count, again = start, s.numbers[RULED_OUT], True
    while again:
        again = False
        for i in range(count):
            r = s.ruled_out[i]
            if (
                r[R_FIRST] <= until < r[R_LAST]
                and r[R_CPUS] <= cpus
                and r[R_SECONDS] <= lasts
                and r[R_LEAST] <= least
                and r[R_ROW] == row
            ):
                until, again = r[R_LAST], True
    while start < until:
        grown = growth_after(s.slot_begin, s.following, s.grows, slot, start + lasts, row)
        if grown < 0 or s.slot_end[grown] > until:
            break
        start = s.slot_end[grown]
        slot = slot_at(s.slot_end, s.following, grown, start)
    return start, slot


@jit
def rule_out(s, row, first, last, lasts, cpus, least):
    """Note in `s` that from a `first` date on, and before a `last` one, an entry does not fit.

    It is of a `row`, `lasts` so long, and needs so many `cpus` on `least` nodes.
    """
    count = s.numbers[RULED_OUT]
    place = count
    for i in range(count):
        r = s.ruled_out[i]
        if r[R_ROW] == row:
            if (
                r[R_FIRST] <= first
                and last <= r[R_LAST]
                and r[R_CPUS] <= cpus
                and r[R_SECONDS] <= lasts
                and r[R_LEAST] <= least
            ):
                return
            if (
                first <= r[R_FIRST]
                and r[R_LAST] <= last
                and cpus <= r[R_CPUS]
                and lasts <= r[R_SECONDS]
                and least <= r[R_LEAST]
            ):
                place = np.int64(i)
    if first < last and place < len(s.ruled_out):
        r = s.ruled_out[place]
        r[R_ROW], r[R_CPUS], r[R_SECONDS], r[R_LEAST] = row, cpus, lasts, least
        r[R_FIRST], r[R_LAST] = first, last
        s.numbers[RULED_OUT] = max(count, place + 1)


@jit
def is_unable(s, row, lasts, cpus, least):
    """Whether `s` notes an entry that cannot start now, and this one asks for no less: it neither.

    It is of a `row`, `lasts` so long, and needs so many `cpus` on `least` nodes.
    """
    for i in range(s.numbers[UNABLE]):
        r = s.unable[i]
        if r[R_CPUS] <= cpus and r[R_SECONDS] <= lasts and r[R_LEAST] <= least and r[R_ROW] == row:
            return True
    return False


@jit
def note_unable(s, row, lasts, cpus, least):
    """Note in `s` that an entry cannot start now, in place of one that asks for no less.

    It is of a `row`, `lasts` so long, and needs so many `cpus` on `least` nodes.
    """
    count = s.numbers[UNABLE]
    place = count
    for i in range(count):
        r = s.unable[i]
        if cpus <= r[R_CPUS] and lasts <= r[R_SECONDS] and least <= r[R_LEAST] and r[R_ROW] == row:
            place = np.int64(i)
            break
    if place < len(s.unable):
        r = s.unable[place]
        r[R_ROW], r[R_CPUS], r[R_SECONDS], r[R_LEAST] = row, cpus, lasts, least
        s.numbers[UNABLE] = max(count, place + 1)
