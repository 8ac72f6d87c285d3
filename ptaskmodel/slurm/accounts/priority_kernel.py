# mypy: allow-untyped-defs, allow-incomplete-defs
"""Kernels of a refresh of priorities: factors of users by Fair Tree, then priorities of all jobs.

`fair_share.ShareTree` calls `rank`; `controller.priority.Multifactor` calls `evaluate` and says
what its terms are. Sums are in double precision, in Slurm's order of terms, truncated to integers.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import entry, jit

MOST = 0xFFFFFFFF
# Columns of waiting jobs, a row for each of their partitions. AGE to TRES: weighted factors; NICE:
# what is taken off. NUMBER: of the job. ENTRY: which of its partitions. ACCRUE: since when its age
# counts, Unix s; 0: it does not yet. ACCOUNT: its association; -1: none. VALUE: its priority.
# PLACE: in the list of all jobs. ARRAY: which; -1: none. FROZEN: held, or set by hand. SEVERAL: of
# a job that is in several partitions.
COLUMNS = 17
AGE, ASSOC, FAIRSHARE, JOB_SIZE, PARTITION, QOS, TRES, NICE = range(8)
NUMBER, ENTRY, ACCRUE, ACCOUNT, VALUE, PLACE, ARRAY, FROZEN, SEVERAL = range(8, COLUMNS)


@entry
def evaluate(terms, rows, factors, now, max_age_s, weight_age, weight_fairshare, only_grows):
    """Compute ages, fair shares and priorities of some rows; 1: some priority was set, or grew.

    terms: the columns of each row. factors: of associations; empty: there are no shares. now: Unix
    s. max_age_s: from when on age counts in full, s. weight_age, weight_fairshare: what these
    factors are multiplied by. only_grows: as INCR_ONLY, priorities of jobs in one partition do not
    fall, and only those that grow count as set.
    """
    changed = 0
    for i in range(len(rows)):
        job = terms[rows[i]]
        if len(factors) > 0:
            account = int(job[ACCOUNT])
            job[FAIRSHARE] = (factors[account] if account >= 0 else 0.0) * weight_fairshare
        age, accrue = 0.0, job[ACCRUE]
        if accrue != 0.0:
            waited = max(now - accrue, 0.0)
            age = waited / max(max_age_s, 1) if waited < max_age_s else 1.0
        job[AGE] = age * weight_age
        several, frozen = job[SEVERAL] != 0.0, job[FROZEN] != 0.0
        if frozen:
            value = job[VALUE]
        else:
            total = job[AGE] + job[ASSOC] + job[FAIRSHARE] + job[JOB_SIZE]
            if several:
                total = job[PARTITION] + (total + job[QOS] + job[TRES] - job[NICE])
            else:
                total = total + job[PARTITION] + job[QOS] + job[TRES] - job[NICE]
            value = float(int(min(max(total, 1.0), 4294967295.0)))
        if only_grows != 0 and not several and not frozen:
            value = max(value, job[VALUE])
        if value > (job[VALUE] if only_grows != 0 else 0.0):
            changed = 1
        job[VALUE] = value
    return changed


@jit
def _comes_before(k, other, high, low, ties):
    """Whether an association has a higher level than another, or an equal one and comes first."""
    if high[k] != high[other]:
        return high[k] > high[other]
    if low[k] != low[other]:
        return low[k] > low[other]
    return ties[k] < ties[other]


@entry
def rank(high, low, fixed, ties, order, begins, is_user, users, stack, factors):
    """Set the factors of all users, by depth first from root.

    high, low: the level of each association is their sum; nan: it has used nothing. fixed: levels
    that do not depend on usage; nan: it does. ties: the place of each among equals. order:
    associations but root, family by family, each as it was before; it is sorted by level. begins:
    of each association where its family begins in that, and at last where all end. is_user: of
    each. users: how many. stack: scratch, for two of each.
    """
    for k in range(len(high)):
        if fixed[k] == fixed[k]:
            high[k] = fixed[k]
        if not high[k] < np.inf:
            high[k] = np.inf
        if fixed[k] == fixed[k] or high[k] == np.inf:
            low[k] = 0.0
    for family in range(len(begins) - 1):
        for place in range(begins[family] + 1, begins[family + 1]):
            k, to = order[place], place
            while to > begins[family] and _comes_before(k, order[to - 1], high, low, ties):
                order[to] = order[to - 1]
                to -= 1
            order[to] = k
    depth, ranked, last = 1, 0, 0
    # Where the next of a family is; whether the first of it shares the rank of the one before.
    stack[0, 0], stack[0, 1] = begins[0], 0
    stack[0, 2] = begins[1]
    while depth > 0:
        place = stack[depth - 1, 0]
        if place >= stack[depth - 1, 2]:
            depth -= 1
            continue
        tied = stack[depth - 1, 1]
        stack[depth - 1, 0] = place + 1
        k = order[place]
        if place + 1 < stack[depth - 1, 2]:
            following = order[place + 1]
            equal = high[k] == high[following] and low[k] == low[following]
            stack[depth - 1, 1] = np.int64(equal)
        if is_user[k]:
            if tied == 0:
                last = ranked
            factors[k] = (users - last) / users
            ranked += 1
        elif begins[k] < begins[k + 1]:
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = begins[k], tied, begins[k + 1]
            depth += 1
