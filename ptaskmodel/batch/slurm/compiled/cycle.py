"""A backfill cycle of jobs that take whole, equal nodes: the same as `backfill.Cycle`, on words.

Sets of nodes are rows of 64-bit words. The kernel tests entries in order and comes back where a job
can start now; the caller starts it, brings what is idle and who runs up to date, and calls again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.jit import entry, jit

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

# What ``numbers`` holds, by place.
NOW, STEP, WINDOW, ENTRIES, POSITION, TESTED, MOST, RECORDS, ROOM, POSTPONED, CHOSEN = range(11)
NUMBERS = 11
DONE, STARTS = 0, 1
NOT_PLANNED = -1


class CycleState(NamedTuple):
    """numbers: see above. Of each entry: nodes wanted, how long it is planned for, its partition's
    row in masks; planned: its date, and whether it was tested. order: the places of the jobs that
    run, by end; ends, held: by place, that and its nodes. Slots are linked by following; slot 0 is
    the first; counts: of each slot and row of masks, how many nodes are free. idle, planned_nodes,
    chosen: sets. later_free (a row more than jobs that run), left, usable, runs: scratch.
    """

    numbers: Ints
    wanted: Ints
    lasts: Ints
    partition: Ints
    planned: Ints
    tested: Ints
    masks: Words
    order: Ints
    ends: Ints
    held: Words
    slot_begin: Ints
    slot_end: Ints
    following: Ints
    free: Words
    counts: Ints
    later_free: Words
    idle: Words
    planned_nodes: Words
    chosen: Words
    left: Words
    usable: Words
    runs: Ints


@entry
def cycle(s):
    """Test entries from POSITION on: DONE, or STARTS where the entry there can start now."""
    numbers = s.numbers
    _look_ahead(s)
    if numbers[POSITION] == 0:
        _count_free(s, 0)
    while numbers[POSITION] < numbers[ENTRIES]:
        if numbers[TESTED] >= numbers[MOST]:
            return 0
        status = _test(s, numbers[POSITION])
        if status == 1:
            return 1
        if status == 2:
            return 0
        numbers[POSITION] += 1
    return 0


@jit
def _test(s, k):
    """One entry: 0: on with the next; 1: it can start now, on chosen; 2: the map is full."""
    numbers = s.numbers
    now, wanted, lasts = numbers[NOW], s.wanted[k], s.lasts[k]
    later, slot, crowded = now, np.int64(0), np.int64(-1)
    while True:
        start = later
        slot = _slot_at(s, slot, start)
        end = max(start, now) + lasts
        if start >= crowded:
            crowded = _crowded_until(s, slot, end, s.partition[k], wanted)
        later, enough = _open(s, k, slot, end, wanted, start >= crowded)
        date = np.int64(-1)
        if enough:
            if s.tested[k] == 0:
                s.tested[k] = 1
                numbers[TESTED] += 1
            date = _predict(s, wanted)
        if date < 0:
            if later > 0:
                continue
            return 0
        if date < start:
            date = start
            numbers[POSTPONED] = 1
        if date <= now:
            _choose(s, wanted)
            return 1
        if later > 0 and date > later:
            continue
        if date > now + numbers[WINDOW]:
            return 0
        _choose(s, wanted)
        step = numbers[STEP]
        begin, finish = date // step * step, (date + lasts) // step * step
        if _collides(s, begin, finish):
            later = date
            continue
        s.planned[k] = date
        for w in range(len(s.chosen)):
            s.planned_nodes[w] |= s.chosen[w]
        if numbers[RECORDS] >= numbers[ROOM]:
            return 2
        _reserve(s, begin, max(finish, begin + step))
        return 0


@jit
def _slot_at(s, slot, date):
    """The first slot from one on that ends after a date; -1: none."""
    while slot >= 0 and s.slot_end[slot] <= date:
        slot = s.following[slot]
    return slot


@jit
def _crowded_until(s, slot, end, row, wanted):
    """The end of the first slot until a date that has too few nodes for an entry; -1: none."""
    while slot >= 0 and s.slot_begin[slot] <= end:
        if s.counts[slot, row] < wanted:
            return s.slot_end[slot]
        slot = s.following[slot]
    return np.int64(-1)


@jit
def _open(s, k, slot, end, wanted, enough):
    """When to look again, or 0; and whether left has enough: the nodes of an entry that are
    reserved nowhere from a slot on until end. Without enough, left holds some more.
    """
    row, left = s.partition[k], s.left
    mask = s.masks[row]
    for w in range(len(left)):
        left[w] = mask[w]
    later, enough = np.int64(0), enough and _count(left) >= wanted
    while slot >= 0:
        after = s.following[slot]
        if later == 0 and after >= 0:
            for w in range(len(left)):
                if mask[w] & s.free[after, w] & ~(left[w] & s.free[slot, w]):
                    later = s.slot_end[slot]
                    break
        if s.slot_begin[slot] > end:
            break
        for w in range(len(left)):
            left[w] &= s.free[slot, w]
        enough = enough and _count(left) >= wanted
        if later > 0 and not enough:
            break
        slot = after
    return later, enough


@jit
def _predict(s, wanted):
    """The first date at which so many nodes of left are free, and usable: which; -1: never.

    Jobs only give nodes back, so the first end that suffices is found by bisection.
    """
    now = s.numbers[NOW]
    if _common(s, 0) >= wanted:
        return now
    low, high = np.int64(0), np.int64(len(s.order))
    if _common(s, high) < wanted:
        return np.int64(-1)
    while high - low > 1:
        middle = (low + high) // 2
        if _common(s, middle) >= wanted:
            high = middle
        else:
            low = middle
    _common(s, high)
    return max(s.ends[s.order[high - 1]], now + 1)


@jit
def _common(s, ended):
    """usable: the nodes of left that are free when so many jobs have ended; how many."""
    for w in range(len(s.usable)):
        s.usable[w] = s.left[w] & s.later_free[ended, w]
    return _count(s.usable)


@jit
def _look_ahead(s):
    """later_free: the nodes that are free when so many of those that run have ended."""
    for w in range(len(s.idle)):
        s.later_free[0, w] = s.idle[w]
    for j in range(len(s.order)):
        place = s.order[j]
        for w in range(len(s.idle)):
            s.later_free[j + 1, w] = s.later_free[j, w] | s.held[place, w]


@jit
def _count_free(s, slot):
    """counts: how many nodes of each mask are free in a slot."""
    for row in range(len(s.masks)):
        for w in range(len(s.usable)):
            s.usable[w] = s.masks[row, w] & s.free[slot, w]
        s.counts[slot, row] = _count(s.usable)


@jit
def _choose(s, wanted):
    """chosen: the tightest run of usable that suffices, or the largest ones, from the lowest on."""
    runs, chosen = s.runs, s.chosen
    for w in range(len(chosen)):
        chosen[w] = 0
    number = _runs(s.usable, runs)
    while wanted > 0:
        best = np.int64(-1)
        for r in range(number):
            length = runs[2 * r + 1]
            if length == 0:
                continue
            if best < 0:
                best = np.int64(r)
                continue
            most = runs[2 * best + 1]
            if length >= wanted:
                if most < wanted or length < most:
                    best = np.int64(r)
            elif most < wanted and length > most:
                best = np.int64(r)
        if best < 0:
            return
        first, length = runs[2 * best], min(runs[2 * best + 1], wanted)
        _fill(chosen, first, first + length)
        wanted -= length
        runs[2 * best + 1] = 0


@jit
def _runs(words, runs):
    """(first, length) of each run of a set, in runs; how many there are."""
    number, length = 0, 0
    for w in range(len(words)):
        word = words[w]
        if word == np.uint64(0xFFFFFFFFFFFFFFFF):
            if length == 0:
                runs[2 * number] = w * 64
            length += 64
            continue
        if word == np.uint64(0):
            if length > 0:
                runs[2 * number + 1] = length
                number, length = number + 1, 0
            continue
        place = np.int64(0)
        while place < 64:
            rest = word >> np.uint64(place)
            if rest & np.uint64(1):
                more = min(_trailing_zeros(~rest), 64 - place)
                if length == 0:
                    runs[2 * number] = w * 64 + place
                length += more
            else:
                more = min(_trailing_zeros(rest), 64 - place)
                if length > 0:
                    runs[2 * number + 1] = length
                    number, length = number + 1, 0
            place += more
    if length > 0:
        runs[2 * number + 1] = length
        number += 1
    return number


@jit
def _fill(words, first, end):
    """Put the nodes from first to end into a set."""
    full = np.uint64(0xFFFFFFFFFFFFFFFF)
    for w in range(first >> 6, (end + 63) >> 6):
        word = full
        if w * 64 < first:
            word &= full << np.uint64(first - w * 64)
        if (w + 1) * 64 > end:
            word &= full >> np.uint64((w + 1) * 64 - end)
        words[w] |= word


@jit
def _trailing_zeros(word):
    """How many zeros a word ends in; 64 if it is 0."""
    if word == np.uint64(0):
        return np.int64(64)
    return _ones(~word & (word - np.uint64(1)))


@jit
def _collides(s, begin, end):
    """Whether some of chosen is reserved in [begin, end)."""
    slot = np.int64(0)
    while slot >= 0 and s.slot_begin[slot] < end:
        if s.slot_end[slot] > begin:
            for w in range(len(s.chosen)):
                if s.chosen[w] & ~s.free[slot, w]:
                    return True
        slot = s.following[slot]
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
        slot = s.following[slot]
        while slot >= 0:
            if end < s.slot_end[slot]:
                _split(s, slot, end)
            for w in range(len(s.chosen)):
                s.free[slot, w] &= ~s.chosen[w]
            _count_free(s, slot)
            if end == s.slot_end[slot]:
                after = s.following[slot]
                break
            slot = s.following[slot]
    slot = before
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


@jit
def _count(words):
    """How many nodes a set has."""
    count = np.int64(0)
    for w in range(len(words)):
        count += _ones(words[w])
    return count


@jit
def _ones(x):
    """How many ones a word has."""
    x = x - (x >> np.uint64(1) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + (x >> np.uint64(2) & np.uint64(0x3333333333333333))
    x = x + (x >> np.uint64(4)) & np.uint64(0x0F0F0F0F0F0F0F0F)
    # Compilers know this product for the one instruction that counts.
    return np.int64(x * np.uint64(0x0101010101010101) >> np.uint64(56))
