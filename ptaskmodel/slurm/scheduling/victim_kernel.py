# mypy: allow-untyped-defs, allow-incomplete-defs
"""What compiled backfill cycles plan with: nodes without the jobs that an entry may preempt.

`shared_kernel` calls it. Results equal those of `Preemption.candidates` and `Victims.without`.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.slurm.scheduling.shared_state import PREEMPTOR, WITHIN
from ptaskmodel.slurm.scheduling.slot_kernel import (
    EXEMPT_S,
    NOW,
    OF_PREEMPTOR,
    OF_WITHIN,
    PREEMPTS,
    RULED_OUT,
    RUNNING,
    STAYING,
    UNTIL,
)
from ptaskmodel.slurm.select.offer_kernel import give_back, look_ahead

# OF_PREEMPTOR where nothing is known.
UNKNOWN = -2


@jit
def plan_without_victims(s, job):
    """Let ``without`` of `s` be what is left when the victims of a waiting `job` are gone."""
    numbers = s.numbers
    mine, row = s.known[job, PREEMPTOR], s.known[job, WITHIN]
    if not numbers[PREEMPTS] or (numbers[OF_PREEMPTOR] == mine and numbers[OF_WITHIN] == row):
        return
    numbers[OF_PREEMPTOR], numbers[OF_WITHIN] = mine, row
    numbers[RULED_OUT] = 0  # they were beside other jobs
    _remove_victims(s, mine, row)
    look_ahead(s.without, numbers[STAYING])
    count_later_cpus(s)


@jit
def _remove_victims(s, mine, row):
    """Copy what nodes have, and which jobs run, but for the victims of a class on some nodes."""
    nodes, left, numbers, count = s.nodes, s.without, s.numbers, np.int64(0)
    for k in range(len(nodes.free)):
        left.free[k], left.spare[k] = nodes.free[k], nodes.spare[k]
        left.present[k], left.spare_gpus[k] = nodes.present[k], nodes.spare_gpus[k]
    for j in range(numbers[RUNNING]):
        if _is_victim(s, mine, row, j):
            give_back(left, nodes.first[j], nodes.last[j])
        else:
            left.ends[count], left.first[count] = nodes.ends[j], nodes.first[j]
            left.last[count], s.stays[count] = nodes.last[j], j
            count += 1
    numbers[STAYING] = count


@jit
def _is_victim(s, mine, row, j):
    """Whether a class preempts a job that runs on nodes of a row, for which it is old enough."""
    numbers, slot = s.numbers, s.running[j]
    its, start = s.of_slot[slot, 0], s.of_slot[slot, 1]
    if mine < 0 or its < 0 or not s.preempts[mine, its] or not _has_some(s, j, row):
        return False
    if numbers[NOW] - start < numbers[EXEMPT_S]:
        numbers[UNTIL] = min(numbers[UNTIL], start + numbers[EXEMPT_S] - 1)
        return False
    return True


@jit
def _has_some(s, j, row):
    """Whether a job that runs has some nodes of a row."""
    for h in range(s.nodes.first[j], s.nodes.last[j]):
        k = s.nodes.held[0, h]
        if s.masks[row, k >> 6] >> np.uint64(k & 63) & np.uint64(1):
            return True
    return False


@jit
def count_later_cpus(s):
    """later_cpus of `s`: what is free when so many of those that stay have ended."""
    nodes = s.without
    for row in range(len(s.masks)):
        found = np.int64(0)
        for k in range(len(nodes.free)):
            if s.masks[row, k >> 6] >> np.uint64(k & 63) & np.uint64(1):
                found += nodes.free[k] * nodes.threads[k]
        s.later_cpus[0, row] = found
    for j in range(s.numbers[STAYING]):
        for row in range(len(s.masks)):
            s.later_cpus[j + 1, row] = s.later_cpus[j, row]
        for h in range(nodes.first[j], nodes.last[j]):
            k = nodes.held[0, h]
            cpus = nodes.held[1, h] * nodes.threads[k]
            for row in range(len(s.masks)):
                if s.masks[row, k >> 6] >> np.uint64(k & 63) & np.uint64(1):
                    s.later_cpus[j + 1, row] += cpus
