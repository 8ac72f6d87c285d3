# mypy: allow-untyped-defs, allow-incomplete-defs
"""Kernel of a backfill cycle in which jobs share nodes; results equal `backfill.Cycle`.

`shared_cycles` calls it as `vectorised_backfill` calls `backfill_kernel`. Jobs fit by numbers of
cores and memory, as `fit_kernel` has them.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import entry, jit
from ptaskmodel.slurm.scheduling.cut_kernel import is_able
from ptaskmodel.slurm.scheduling.shared_state import (
    COUNTED,
    IS_NOT_PLAIN,
    IS_NOT_TESTED,
    KIND,
    LIMITS,
    NEED,
    ROW,
    SECONDS,
    TOLD,
)
from ptaskmodel.slurm.scheduling.slot_kernel import (
    CUTS,
    ENTRIES,
    FULL,
    LAST,
    LAST_ABLE,
    MOST,
    NEW,
    NOW,
    OF_PREEMPTOR,
    PLANS_IDLE,
    POSITION,
    POSTPONED,
    PREEMPTS,
    RECORDS,
    ROOM,
    RULED_OUT,
    RUNNING,
    STAYING,
    STEP,
    TESTED,
    UNABLE,
    UNTIL,
    WINDOW,
    begin_map,
    collides,
    crowded_until,
    fewest_ended,
    find_open,
    growth_after,
    is_decided,
    pass_over,
    reserve,
    rule_out,
    same_until,
    slot_at,
)
from ptaskmodel.slurm.scheduling.victim_kernel import (
    UNKNOWN,
    count_later_cpus,
    plan_without_victims,
)
from ptaskmodel.slurm.select.bitsets import is_within, meet
from ptaskmodel.slurm.select.fit_kernel import end_of, fit_now
from ptaskmodel.slurm.select.offer_kernel import (
    CPUS,
    GPUS,
    LEAST,
    NOTES_GPUS,
    READS_NOTES,
    SIZE,
    VARIES,
    cpus_after,
    ended_by,
    enough_after,
    size_of,
)
from ptaskmodel.slurm.select.room_kernel import gpus_after

# What `cycle` returns; what it is told of the entry at POSITION, in place of 0.
DONE, STARTS, NOT_PLAIN = range(3)
# So many dates are looked at together at first.
MANY = 16
HAS_STARTED, CANNOT_START = 1, 2


@entry
def cycle(s, outcome, until):
    """Test entries from POSITION on: DONE, or STARTS where the entry there can start now, on left.

    UNTIL: up to that date a cycle would do the same, if nothing else changes. CUTS: whether it ends
    where no other entry can start; what is planned and tested then ends there, too.

    outcome: what became of that; the job keeps the chosen nodes in the map until a date, if it has
    them whole, else 0. At first, NOT_PLAIN where some entry is that.
    """
    numbers = s.numbers
    if outcome == 0:
        for k in range(numbers[ENTRIES]):
            if s.known[s.jobs[k], NEED] == IS_NOT_PLAIN:
                return 2
        begin_map(s)
        numbers[UNTIL], numbers[RULED_OUT], numbers[UNABLE] = LAST, 0, 0
        numbers[LAST_ABLE], numbers[FULL] = numbers[ENTRIES] - 1, -1
        s.counts_of[:] = 0
        s.notes[:] = 0
        s.nodes.facts[READS_NOTES] = 0
        _change_all(s)
        for k in range(numbers[ENTRIES]):
            s.sizes[k] = 0
    else:
        full = _after_start(s, outcome, until)
        numbers[UNTIL] = numbers[NOW]
        numbers[POSITION] += 1
        if full:
            numbers[POSITION] = numbers[ENTRIES]
    numbers[OF_PREEMPTOR], numbers[STAYING] = UNKNOWN, numbers[RUNNING]
    if numbers[POSITION] < numbers[ENTRIES] and not numbers[PREEMPTS]:
        count_later_cpus(s)
    while numbers[POSITION] < numbers[ENTRIES]:
        if numbers[TESTED] >= numbers[MOST]:
            break
        k = numbers[POSITION]
        if numbers[CUTS] and is_decided(s) and not is_able(s, k):
            _last_until(numbers, min(s.slot_end[0] - 1, numbers[NOW] + numbers[STEP]))
            break
        status = _test_or_repeat(s, k)
        if status == 1:
            for w in range(len(s.left)):
                s.left[w] &= ~s.cleaning[w]
            numbers[UNTIL] = numbers[NOW]
            return 1
        _note_size(s, k)
        if status == 2:
            break
        numbers[POSITION] += 1
    numbers[PLANS_IDLE] = 0
    for w in range(len(s.idle)):
        if s.planned_nodes[w] & s.idle[w]:
            numbers[PLANS_IDLE] = 1
    return 0


@jit
def _after_start(s, outcome, until):
    """Note an entry that has started, or could not; whether the map is full."""
    numbers = s.numbers
    k, step = numbers[POSITION], numbers[STEP]
    _change_all(s)
    if outcome == HAS_STARTED:
        if until > 0 and numbers[RECORDS] < numbers[ROOM]:
            begin, finish = s.slot_begin[0], until // step * step
            reserve(s, begin, max(finish, begin + step))
        return False
    _note_size(s, k)
    return _plan(s, k, numbers[NOW], s.known[s.jobs[k], SECONDS])


@jit
def _change_all(s):
    """What runs, or the whole map, changes."""
    for row in range(len(s.map_version)):
        s.map_version[row] += 1


@jit
def _plan(s, k, date, lasts):
    """Reserve the chosen nodes from a date on; whether the map is full."""
    numbers = s.numbers
    step = numbers[STEP]
    begin, finish = date // step * step, (date + lasts) // step * step
    map_end = (numbers[NOW] + numbers[WINDOW]) // step * step
    if begin >= map_end:
        _last_until(numbers, numbers[NOW])
    elif finish >= map_end:
        _last_until(numbers, finish + step - numbers[WINDOW] - 1)
    s.planned[k] = date
    for w in range(len(s.chosen)):
        s.planned_nodes[w] |= s.chosen[w]
    if numbers[RECORDS] >= numbers[ROOM]:
        return True
    reserve(s, begin, max(finish, begin + step))
    return False


@jit
def _test_or_repeat(s, k):
    """One entry, as `_test`; of a kind for which nothing was planned, as long as all is the same.

    Jobs that may look at notes of others are tested anew.
    """
    job, nodes, left = s.jobs[k], s.nodes, s.without
    which, kind, row = s.known[job, NEED], s.known[job, KIND], s.known[job, ROW]
    if which == IS_NOT_TESTED or _is_one_too_many(s, job):
        return 0
    need = s.needs[which]
    told = np.int64(need[SIZE] != VARIES and s.known[job, TOLD] == need[SIZE])
    notes = need[GPUS] and nodes.facts[NOTES_GPUS]
    if s.failed[kind] == s.map_version[row] and s.was_told[kind] == told:
        s.tested[k], s.sizes[k] = s.was_tested[kind], s.had_size[kind]
        s.numbers[TESTED] += s.tested[k]
        if notes:
            _note(nodes.favours, s.had_notes[kind])
            _note(s.notes, s.had_notes[kind])
        return 0
    plan_without_victims(s, job)
    if notes:
        nodes.noted[:] = 0
    read = nodes.facts[READS_NOTES]
    nodes.facts[READS_NOTES] = left.facts[READS_NOTES] = 0
    version = s.map_version[row]
    status = _test(s, k)
    nodes.facts[READS_NOTES] |= left.facts[READS_NOTES]
    if status == 0 and s.map_version[row] == version and not nodes.facts[READS_NOTES]:
        s.failed[kind], s.was_told[kind] = version, told
        s.was_tested[kind], s.had_size[kind] = s.tested[k], s.sizes[k]
        if notes:
            for node in range(len(nodes.noted)):
                s.had_notes[kind, node] = nodes.noted[node]
    nodes.facts[READS_NOTES] |= read
    if notes:
        _note(s.notes, nodes.noted)
    return status


@jit
def _note(notes, more):
    """Note what was noted of nodes, but nothing of the others."""
    for k in range(len(notes)):
        if more[k]:
            notes[k] = more[k]


@jit
def _test(s, k):
    """One entry: 0: on with the next; 1: it can start now, on left; 2: the map is full."""
    job = s.jobs[k]
    which, lasts, row = s.known[job, NEED], s.known[job, SECONDS], s.known[job, ROW]
    numbers, need, must = s.numbers, s.needs[which], s.musts[which]
    now, running, step = numbers[NOW], numbers[STAYING], numbers[STEP]
    least = need[LEAST]
    # Whatever is reserved, so many of those that run must end before.
    fewest = fewest_ended(s.later_cpus, running, row, need[CPUS])
    if need[GPUS] and s.without.facts[NOTES_GPUS]:
        fewest = np.int64(0)  # it notes what it finds whenever it is asked
    later, slot, crowded = now, np.int64(0), np.int64(-1)
    # Whether it counts as tested whatever the date, and until when it does else.
    counts, open_until = False, np.int64(LAST)
    # What is found for a date that is too late to count says how large the job is.
    is_told = need[SIZE] != VARIES and s.known[job, TOLD] == need[SIZE]
    while True:
        start = later
        slot = slot_at(s.slot_end, s.following, slot, start)
        is_open = False
        if counts and is_told:
            start, slot, is_open = _not_before(s, row, slot, start, lasts, need, fewest)
        end = start + lasts
        grown = growth_after(s.slot_begin, s.following, s.grows, slot, end, row)
        later = s.slot_end[grown] if grown >= 0 else np.int64(0)
        early = later > 0 and is_told
        # The slots until end stay the same until then.
        same = same_until(s, slot, end, lasts) if start == now else np.int64(LAST)
        if slot < 0:
            _last_until(numbers, now)
        elif start == now:
            _last_until(numbers, s.slot_end[slot] - 1)
            if later == 0:
                _last_until(numbers, same)
        enough = fewest <= (ended_by(s.without.ends, running, later) if early else running)
        if enough or not counts:
            if start >= crowded and not is_open:
                crowded = crowded_until(
                    s.slot_begin, s.slot_end, s.following, s.counts, slot, end, row, least
                )
                is_open = start >= crowded and find_open(s, s.up, row, slot, end, least)
            is_open = is_open and is_within(must, s.left)
            if is_open and s.tested[k] == 0:
                s.tested[k] = 1
                numbers[TESTED] += 1
            if start > now:
                counts = counts or is_open
            elif is_open:
                open_until = same
            enough = enough and is_open
            if enough:
                _last_until(numbers, same)
        date = np.int64(-1)
        if enough:
            date = _date_of(s, k, need, must, fewest, later if early else 0)
        if date < 0:
            if later > 0:
                continue
            if not counts:
                _last_until(numbers, open_until)
            return 0
        if date < start:
            date = start
            numbers[POSTPONED] = 1
        if date <= now:
            if not meet(s.chosen, s.cleaning):
                return 1
            date, later = now + 1, np.int64(0)
        if later > 0 and date > later:
            continue
        if not counts:
            _last_until(numbers, open_until)
        if date > now + numbers[WINDOW]:
            _last_until(numbers, date - numbers[WINDOW] - 1)
            return 0
        begin, finish = date // step * step, (date + lasts) // step * step
        if collides(s.slot_begin, s.slot_end, s.following, s.free, s.chosen, begin, finish):
            later = date
            continue
        return 2 if _plan(s, k, date, lasts) else 0


@jit
def _is_one_too_many(s, job):
    """Whether enough jobs of a user, say, were there already; if not, it is counted."""
    known = s.known
    for c in range(LIMITS):
        kind = known[job, COUNTED + c]
        if s.most[c] > 0 and kind >= 0 and s.counts_of[kind] >= s.most[c]:
            return True
    for c in range(LIMITS):
        kind = known[job, COUNTED + c]
        if s.most[c] > 0 and kind >= 0:
            s.counts_of[kind] += 1
    return False


@jit
def _not_before(s, row, slot, start, lasts, need, fewest):
    """The first date at which an entry is to be tested, its slot, and whether left is known then.

    At the dates before, it would not fit. It would be tested at start, which is in slot, and then
    whenever something has grown. What is free from the last of some of these dates until the entry
    ended that began at the first, is more than is free from any of them on.
    """
    nodes, running, many = s.without, s.numbers[STAYING], np.int64(MANY)
    first = start
    start, slot = pass_over(s, row, slot, start, lasts, need[CPUS], need[LEAST])
    while True:
        end, last, later, count = start + lasts, slot, start, np.int64(0)
        while count < many and later <= end:
            after = slot_at(s.slot_end, s.following, last, later)
            grown = growth_after(s.slot_begin, s.following, s.grows, after, later + lasts, row)
            if grown < 0:
                break
            last, later = after, s.slot_end[grown]
            count += 1
        if count == 0:
            rule_out(s, row, first, start, lasts, need[CPUS], need[LEAST])
            return start, slot, False
        ended = ended_by(nodes.ends, running, later)
        if (
            ended < fewest
            or not find_open(s, s.up, row, last, end, need[LEAST])
            or cpus_after(nodes, s.left, ended) < need[CPUS]
        ):
            start, slot = later, slot_at(s.slot_end, s.following, last, later)
            many = 2 * count
        elif count == 1:
            rule_out(s, row, first, start, lasts, need[CPUS], need[LEAST])
            return start, slot, True
        else:
            many = (count + 3) // 4


@jit
def _last_until(numbers, date):
    """After a date, a cycle may do something else."""
    numbers[UNTIL] = min(numbers[UNTIL], date)


@jit
def _date_of(s, k, need, must, fewest, latest):
    """When an entry fits on left; chosen: what it takes. -1: never, or after the latest date."""
    numbers, nodes = s.numbers, s.without
    count, date, running = np.int64(0), numbers[NOW], numbers[STAYING]
    most = running if latest == 0 else ended_by(nodes.ends, running, latest)
    enough = max(fewest, enough_after(nodes, s.left, need[CPUS], most))
    notes = need[GPUS] and nodes.facts[NOTES_GPUS]
    if enough > most and not notes:
        return np.int64(-1)
    gpus = gpus_after(nodes, need, s.left, running) if notes else np.int64(0)
    if enough == 0 or notes:
        if running < numbers[RUNNING] and gpus == 0:  # first beside its victims
            count = fit_now(s.nodes, need, s.left, must)
        if count == 0 and gpus == 0:
            count = fit_now(nodes, need, s.left, must)
    if count == 0:
        unseen = np.int64(0 if gpus else -1)
        ended, count = end_of(nodes, need, s.left, must, running, enough, most, gpus, unseen)
        if count == 0:
            return np.int64(-1)
        end = nodes.ends[ended - 1]
        _last_until(numbers, max(date, end - 1))
        date = end if end > date else s.late[s.stays[ended - 1]]
    for w in range(len(s.chosen)):
        s.chosen[w] = 0
    for i in range(count):
        if nodes.taken[i]:
            node = nodes.node[i]
            s.chosen[node >> 6] |= np.uint64(1) << np.uint64(node & 63)
    s.sizes[k] = size_of(nodes, need, count)
    return date


@jit
def _note_size(s, k):
    """Note the size of an entry if it is new."""
    job, size = s.jobs[k], s.sizes[k]
    if size > 0 and s.known[job, TOLD] != size:
        s.known[job, TOLD] = size
        s.new[s.numbers[NEW]] = k
        s.numbers[NEW] += 1
