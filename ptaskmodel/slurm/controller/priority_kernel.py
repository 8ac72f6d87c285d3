# mypy: allow-untyped-defs, allow-incomplete-defs
"""Kernel of the multifactor priorities of all waiting jobs at a refresh.

`priority.Multifactor` calls it and says what the terms are. Sums are in double precision, in
Slurm's order of terms, truncated to integers.
"""

from __future__ import annotations

from ptaskmodel.kernels.decorators import entry

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
