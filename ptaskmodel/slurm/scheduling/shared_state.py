"""State of a compiled backfill cycle in which jobs share nodes; see `shared_kernel`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.slurm.select.offer_kernel import SharedNodes

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

# What is known of each job, by its number: its row of needs, seconds, row of masks; how many CPUs
# it was told to take; its kind: of jobs of one need and so many seconds, that preempt the same;
# its class as one that preempts and the row of masks of its partition, -1: none; from COUNTED on,
# where it is counted for each limit to tested jobs, -1: not. In place of the row of needs:
NEED, SECONDS, ROW, TOLD, KIND, PREEMPTOR, WITHIN, COUNTED = range(8)
LIMITS = 4
FACTS = COUNTED + LIMITS
IS_NOT_PLAIN, IS_NOT_TESTED = -1, -2
NOT_TOLD = -1


class SharedState(NamedTuple):
    """As `CycleState`, but for: nodes, what they have, and the ends of the jobs that run.

    without: the same without the jobs that an entry may preempt, for which it is planned; nodes
    itself where no job preempts others. stays: of the jobs that run and stay, their places among
    all. preempts: whether a class preempts another. of_slot: of each slot of jobs that run the
    class, -1: it is never preempted, and the start; running: their slots, by end.

    needs, musts: of each row of needs its numbers, and the nodes that it must have. late: of the
    ends that are past, when the jobs are expected to be over. sizes: of each entry the CPUs that it
    was last found to take; new: entries for which these are others than those that were told.
    later_cpus: of each row of masks, the CPUs on free cores when so many jobs have ended.
    ruled_out: which entries do not fit, from a first date on and before a last one: those of a row
    of masks with so many CPUs, seconds and nodes, or more; unable: which cannot start now. most:
    how many jobs of a kind are tested, 0: any; counts_of: how many were, of each kind. cleaning:
    nodes on which none starts. notes: what was noted of GPUs in this cycle, 0: nothing. full: FULL
    nodes without a free core, by the first end of a job on them, full_until.

    Of each kind of jobs, of the last for which nothing was planned: failed: see `map_version`;
    was_told, was_tested, had_size: whether it was told its size, counted as tested, and the size;
    had_notes: what it noted. map_version: how often the map, or what runs, has changed for each row
    of masks. reach: of each row all nodes of its partition.
    """

    numbers: Ints
    nodes: SharedNodes
    without: SharedNodes
    stays: Ints
    preempts: Ints
    of_slot: Ints
    running: Ints
    needs: Ints
    musts: Words
    jobs: Ints
    known: Ints
    planned: Ints
    tested: Ints
    ruled_out: Ints
    unable: Ints
    sizes: Ints
    new: Ints
    masks: Words
    reach: Words
    up: Words
    slot_begin: Ints
    slot_end: Ints
    following: Ints
    free: Words
    counts: Ints
    grows: Ints
    late: Ints
    later_cpus: Ints
    most: Ints
    counts_of: Ints
    map_version: Ints
    failed: Ints
    was_told: Ints
    was_tested: Ints
    had_size: Ints
    had_notes: NDArray[np.uint8]
    notes: NDArray[np.uint8]
    full: Ints
    full_until: Ints
    cleaning: Words
    idle: Words
    planned_nodes: Words
    chosen: Words
    left: Words
