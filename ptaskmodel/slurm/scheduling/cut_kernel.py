# mypy: allow-untyped-defs, allow-incomplete-defs
"""Where a compiled backfill cycle in which jobs share nodes may end before the queue does.

`shared_kernel` asks. The results of jobs that start stay those of `backfill.Cycle`.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.slurm.scheduling.shared_state import (
    IS_NOT_TESTED,
    LIMITS,
    NEED,
    ROW,
    SECONDS,
    TOLD,
)
from ptaskmodel.slurm.scheduling.slot_kernel import (
    FULL,
    LAST_ABLE,
    MOST,
    NOW,
    RUNNING,
    STEP,
    SURE,
    SURE_FROM,
    SURE_TO,
    TESTED,
    find_open,
    is_unable,
    note_unable,
    slot_at,
)
from ptaskmodel.slurm.select.bitsets import meet
from ptaskmodel.slurm.select.offer_kernel import CPUS, LEAST, SIZE, VARIES, cpus_after


@jit
def is_able(s, k):
    """Whether some entry of `s` from `k` on may start now, or be told its size.

    LAST_ABLE: the last one. Within a cycle the map only fills, and what is free only shrinks: it is
    none for good.
    """
    numbers = s.numbers
    if numbers[LAST_ABLE] - k >= numbers[MOST] - numbers[TESTED]:
        _pass_out_of_reach(s, k)
    while numbers[LAST_ABLE] >= k:
        job = s.jobs[numbers[LAST_ABLE]]
        which, row = s.known[job, NEED], s.known[job, ROW]
        if which != IS_NOT_TESTED:
            need, lasts = s.needs[which], s.known[job, SECONDS]
            if need[SIZE] == VARIES or s.known[job, TOLD] != need[SIZE]:
                return True
            if not is_unable(s, row, lasts, need[CPUS], need[LEAST]):
                slot = slot_at(s.slot_end, s.following, np.int64(0), numbers[NOW])
                if (
                    find_open(s, s.up, row, slot, numbers[NOW] + lasts, need[LEAST])
                    and cpus_after(s.nodes, s.left, np.int64(0)) >= need[CPUS]
                ):
                    return True
                note_unable(s, row, lasts, need[CPUS], need[LEAST])
        numbers[LAST_ABLE] -= 1
    return False


@jit
def _pass_out_of_reach(s, k):
    """Lower LAST_ABLE to what may be tested, from entry k on, before MOST have been for certain.

    SURE: how many of those from SURE_FROM on and before SURE_TO will count as tested.
    """
    numbers = s.numbers
    for c in range(LIMITS):
        if s.most[c] > 0:
            return
    if numbers[FULL] < 0:
        _note_full(s)
        numbers[SURE], numbers[SURE_FROM], numbers[SURE_TO] = 0, k, k
    while numbers[SURE_FROM] < k:
        numbers[SURE] -= _is_sure(s, numbers[SURE_FROM])
        numbers[SURE_FROM] += 1
    while numbers[SURE_TO] <= numbers[LAST_ABLE]:
        if numbers[TESTED] + numbers[SURE] >= numbers[MOST]:
            break
        numbers[SURE] += _is_sure(s, numbers[SURE_TO])
        numbers[SURE_TO] += 1
    left = numbers[TESTED] + numbers[SURE] - numbers[MOST]
    while left >= 0:
        numbers[LAST_ABLE] = min(numbers[LAST_ABLE], numbers[SURE_TO] - 1)
        last = _is_sure(s, numbers[SURE_TO] - 1)
        if last > left:
            return
        left -= last
        numbers[SURE] -= last
        numbers[SURE_TO] -= 1


@jit
def _note_full(s):
    """full, full_until: nodes without a free core, by when a job on them ends."""
    numbers, nodes, left, count = s.numbers, s.nodes, s.left, np.int64(0)
    for w in range(len(left)):
        left[w] = s.up[w] & ~nodes.has_free[w]
    for j in range(numbers[RUNNING]):
        for h in range(nodes.first[j], nodes.last[j]):
            k = nodes.held[0, h]
            bit = np.uint64(1) << np.uint64(k & 63)
            if left[k >> 6] & bit:
                left[k >> 6] &= ~bit
                s.full[count], s.full_until[count] = k, nodes.ends[j]
                count += 1
    numbers[FULL] = count


@jit
def _is_sure(s, k):
    """1 if an entry will count as tested for certain, else 0.

    It counts if enough nodes are not reserved until it would end. No node without a free core is,
    before a job on it ends.
    """
    numbers, job = s.numbers, s.jobs[k]
    which, row = s.known[job, NEED], s.known[job, ROW]
    if which == IS_NOT_TESTED or meet(s.musts[which], s.musts[which]):
        return 0
    # Reservations begin up to a step before, and it holds for another one.
    until = numbers[NOW] + s.known[job, SECONDS] + 2 * numbers[STEP]
    i, wanted = numbers[FULL] - 1, s.needs[which, LEAST]
    while wanted > 0:
        if i < 0 or s.full_until[i] <= until:
            return 0
        node = s.full[i]
        wanted -= np.int64(s.masks[row, node >> 6] >> np.uint64(node & 63) & np.uint64(1))
        i -= 1
    return 1
