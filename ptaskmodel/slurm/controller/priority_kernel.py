# mypy: allow-untyped-defs, allow-incomplete-defs
"""Kernel of the multifactor priorities of all waiting jobs at a refresh.

`priority.Multifactor` calls it and says what the terms are. Sums are in double precision, in
Slurm's order of terms, truncated to integers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.kernels.decorators import entry

MOST = 0xFFFFFFFF
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Terms(NamedTuple):
    """Columns of waiting jobs, a row for each of their partitions.

    age to tres: weighted factors; nice: what is taken off. number: of the job. entry: which of its
    partitions. accrue: since when its age counts, Unix s; 0: it does not yet. account: its
    association; -1: none. value: its priority. place: in the list of all jobs. array: which; -1:
    none. frozen: held, or set by hand. several: of a job that is in several partitions.
    """

    age: Floats
    assoc: Floats
    fairshare: Floats
    jobsize: Floats
    partition: Floats
    qos: Floats
    tres: Floats
    nice: Floats
    number: Ints
    entry: Ints
    accrue: Ints
    account: Ints
    value: Ints
    place: Ints
    array: Ints
    frozen: Flags
    several: Flags


@entry
def evaluate(terms, rows, factors, now, max_age_s, weight_age, weight_fairshare, only_grows):
    """Compute ages, fair shares and priorities of some rows; 1: some priority was set, or grew.

    terms: the columns. factors: of associations; empty: there are no shares. now: Unix s.
    max_age_s: from when on age counts in full, s. weight_age, weight_fairshare: what these factors
    are multiplied by. only_grows: as INCR_ONLY, priorities of jobs in one partition do not fall,
    and only those that grow count as set.
    """
    changed = 0
    for i in range(len(rows)):
        k = rows[i]
        if len(factors) > 0:
            account = terms.account[k]
            terms.fairshare[k] = (factors[account] if account >= 0 else 0.0) * weight_fairshare
        age, accrue = 0.0, terms.accrue[k]
        if accrue != 0:
            waited = max(now - accrue, 0)
            age = waited / max(max_age_s, 1) if waited < max_age_s else 1.0
        terms.age[k] = age * weight_age
        if terms.frozen[k]:
            value = terms.value[k]
        else:
            total = terms.age[k] + terms.assoc[k] + terms.fairshare[k] + terms.jobsize[k]
            if terms.several[k]:
                total = terms.partition[k] + (total + terms.qos[k] + terms.tres[k] - terms.nice[k])
            else:
                total = total + terms.partition[k] + terms.qos[k] + terms.tres[k] - terms.nice[k]
            value = np.int64(min(max(total, 1.0), 4294967295.0))
        if only_grows != 0 and not terms.several[k] and not terms.frozen[k]:
            value = max(value, terms.value[k])
        if value > (terms.value[k] if only_grows != 0 else 0):
            changed = 1
        terms.value[k] = value
    return changed
