"""All that the trace of an MPI application does as one parallel work, without its order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ptaskmodel.replay.tally import Amounts, Tally
from ptaskmodel.workload.amounts import SMALLEST, IntArray
from ptaskmodel.workload.ti_traces import Trace
from ptaskmodel.workload.works import DelayWork, ParallelWork, SequenceWork, Work


def bundle(trace: Trace, algorithms: IntArray | None = None) -> Work:
    """All that a trace does as one parallel work; collectives count as the messages they send.

    Bytes are those of the messages' content; what a rank sends to itself is left out. Where ranks
    sleep, a delay of the longest sleeper comes first. algorithms: of the collectives (see
    `replay.algorithms.algorithms_of`); None: SMPI's.
    """
    return in_turn(
        stages_of(Tally(trace, algorithms).amounts(trace.first[:-1], trace.first[1:])), trace
    )


def stages_of(amounts: Amounts) -> list[Work]:
    """What is to be done as works, one after the other: the longest sleep, and all the rest."""
    stages: list[Work] = []
    longest_s = float(amounts.asleep_s.max())
    if longest_s >= SMALLEST:
        stages.append(DelayWork(longest_s))
    flops = np.where(amounts.flops < SMALLEST, 0.0, amounts.flops)
    if flops.any() or len(amounts.bytes):
        stages.append(ParallelWork(flops, amounts.source, amounts.target, amounts.bytes))
    return stages


def in_turn(stages: Sequence[Work], trace: Trace) -> Work:
    """The stages one after the other; those that are alike become the same object."""
    if not stages:
        return ParallelWork.of(trace.ranks)
    if len(stages) == 1:
        return stages[0]
    known: dict[object, Work] = {}
    return SequenceWork(tuple(known.setdefault(_content(work), work) for work in stages))


def _content(work: Work) -> object:
    if isinstance(work, ParallelWork):
        arrays = work.flops, work.flow_from, work.flow_to, work.flow_bytes
        return tuple(array.tobytes() for array in arrays)
    return work
