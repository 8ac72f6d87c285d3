"""Sum what ranks compute and send, without times; make one parallel work of the sums.

A collective counts as the messages that a replay sends for it: the same steps, not executed.
`bundle` is the whole trace of an MPI application as one parallel work, without its order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ptaskmodel.kernels.decorators import want
from ptaskmodel.mpi.collectives.dispatch import packed_step
from ptaskmodel.mpi.collectives.names import CHOICES, default_algorithms
from ptaskmodel.mpi.collectives.steps import UNWANTED
from ptaskmodel.mpi.traffic_sums import Program, Sums, add_up
from ptaskmodel.workload.actions import DATATYPE_BYTES
from ptaskmodel.workload.amounts import SMALLEST, IntArray
from ptaskmodel.workload.works import DelayWork, ParallelWork, SequenceWork, Work

if TYPE_CHECKING:
    from ptaskmodel.workload.traces import Trace

FIRST_ROOM = 1 << 12


class Amounts(NamedTuple):
    """What ranks do in all: flop and seconds asleep of each, and bytes from rank to rank.

    flops, asleep_s: shape (ranks,). source, target, bytes: of each pair of different ranks that
    exchanges any, in row-major order.
    """

    flops: np.ndarray
    asleep_s: np.ndarray
    source: np.ndarray
    target: np.ndarray
    bytes: np.ndarray


class Tally:
    """Adds up actions of a trace, any part of it."""

    def __init__(self, trace: Trace, algorithms: np.ndarray | None = None) -> None:
        """algorithms: those of `names.algorithms_of`, None: SMPI's."""
        self._ranks = trace.ranks
        self._program = Program(
            trace.actions,
            trace.start,
            trace.values,
            trace.type_bytes,
            DATATYPE_BYTES,
            default_algorithms() if algorithms is None else algorithms,
            CHOICES,
        )
        n = trace.ranks
        self._sent, self._reached = np.zeros(n), np.zeros(n, dtype=np.int64)
        self._size = np.zeros(1)
        want(packed_step)
        self._make_room(max(FIRST_ROOM, n))

    def _make_room(self, flows: int) -> None:
        self._room = (
            np.zeros(flows, dtype=np.int64),
            np.zeros(flows, dtype=np.int64),
            np.zeros(flows),
        )

    def amounts(self, first: np.ndarray, last: np.ndarray) -> Amounts:
        """Of the actions ``first[r]:last[r]`` of each rank r, as they are numbered in the trace."""
        n = self._ranks
        flops, asleep_s = np.zeros(n), np.zeros(n)
        parts = []
        rank = 0
        while rank < n:
            sums = Sums(flops, asleep_s, *self._room, self._sent, self._reached, self._size)
            rank, flows = map(int, add_up(self._program, first, last, rank, sums))
            if rank == UNWANTED:
                raise AssertionError("the steps of collectives are not there")
            parts.append(tuple(array[:flows].copy() for array in self._room))
            if rank < n:
                self._make_room(2 * len(self._room[0]))
        source, target, size = map(np.concatenate, zip(*parts, strict=True))
        order = np.argsort(source * n + target, kind="stable")
        return Amounts(flops, asleep_s, source[order], target[order], size[order])


def bundle(trace: Trace, algorithms: IntArray | None = None) -> Work:
    """All that a trace does as one parallel work; collectives count as the messages they send.

    Bytes are those of the messages' content; what a rank sends to itself is left out. Where ranks
    sleep, a delay of the longest sleeper comes first. algorithms: of the collectives (see
    `mpi.collectives`); None: SMPI's.
    """
    return in_turn(
        stages_of(Tally(trace, algorithms).amounts(trace.first[:-1], trace.first[1:])), trace
    )


def stages_of(amounts: Amounts) -> list[Work]:
    """Return the `amounts` as works to run in turn: the longest sleep, then all the rest."""
    stages: list[Work] = []
    longest_s = float(amounts.asleep_s.max())
    if longest_s >= SMALLEST:
        stages.append(DelayWork(longest_s))
    flops = np.where(amounts.flops < SMALLEST, 0.0, amounts.flops)
    if flops.any() or len(amounts.bytes):
        stages.append(ParallelWork(flops, amounts.source, amounts.target, amounts.bytes))
    return stages


def in_turn(stages: Sequence[Work], trace: Trace) -> Work:
    """Return the sequence of `stages` that stands for a `trace`; equal stages share one object."""
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
