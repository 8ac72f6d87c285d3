"""Who sends how much to whom, and in which step: the messages of an application as flat arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ptaskmodel.errors import WorkloadError
from ptaskmodel.workload.amounts import FloatArray, IntArray
from ptaskmodel.workload.works import ParallelWork, SequenceWork


@dataclass(frozen=True, slots=True, eq=False)
class Communication:
    """Messages between ``ranks`` ranks; the m-th one is sent in step ``step[m]`` (from 0).

    ``source``, ``destination`` (rank numbers) and ``bytes`` have shape (messages,). Messages of
    one step progress together; a step starts when the one before it has ended.
    """

    ranks: int
    step: IntArray
    source: IntArray
    destination: IntArray
    bytes: FloatArray

    @property
    def steps(self) -> int:
        """Number of steps."""
        return int(self.step.max()) + 1 if len(self.step) else 0

    @property
    def total_bytes(self) -> float:
        return float(self.bytes.sum())

    @property
    def sent_bytes(self) -> FloatArray:
        """Bytes sent by each rank, shape (ranks,)."""
        return _sums(self.source, self.bytes, self.ranks)

    @property
    def received_bytes(self) -> FloatArray:
        """Bytes received by each rank, shape (ranks,)."""
        return _sums(self.destination, self.bytes, self.ranks)

    def matrix(self) -> FloatArray:
        """The dense communication matrix in bytes, shape (ranks, ranks), row = sender."""
        dense = np.zeros((self.ranks, self.ranks))
        np.add.at(dense, (self.source, self.destination), self.bytes)
        return dense

    def work(self, flops: ArrayLike = 0.0) -> ParallelWork:
        """All messages bundled into one parallel work.

        flops: flop of each rank, a number for all or shape (ranks,).
        """
        return parallel_work(self.ranks, self.source, self.destination, self.bytes, flops)

    def phases(self) -> SequenceWork:
        """One parallel work for each step, in order."""
        stages = []
        for step in range(self.steps):
            now = self.step == step
            stages.append(
                parallel_work(
                    self.ranks, self.source[now], self.destination[now], self.bytes[now], 0.0
                )
            )
        return SequenceWork(tuple(stages))

    def among(self, members: Sequence[int], ranks: int) -> Communication:
        """The same messages between the ``members`` of a larger set of ``ranks`` ranks."""
        names = np.asarray(members, np.int64)
        if len(names) != self.ranks:
            raise WorkloadError(
                f"communication among {self.ranks} ranks: {len(names)} members given; "
                "name one member for each rank"
            )
        return Communication(
            ranks, self.step, names[self.source], names[self.destination], self.bytes
        )


def join(parts: Iterable[Communication]) -> Communication:
    """Communications that happen side by side: step k of the result is step k of every part."""
    given = list(parts)
    if len({part.ranks for part in given}) != 1:
        raise WorkloadError("communications to join: all must be among the same number of ranks")
    return Communication(
        given[0].ranks,
        np.concatenate([part.step for part in given]),
        np.concatenate([part.source for part in given]),
        np.concatenate([part.destination for part in given]),
        np.concatenate([part.bytes for part in given]),
    )


def parallel_work(
    ranks: int,
    source: IntArray,
    destination: IntArray,
    bytes: FloatArray,
    flops: ArrayLike,
) -> ParallelWork:
    """A parallel work from messages: those of one pair of ranks are merged, empty ones dropped."""
    pairs, place = np.unique(source * ranks + destination, return_inverse=True)
    merged = _sums(place, bytes, len(pairs))
    kept = merged > 0.0
    return ParallelWork(
        np.broadcast_to(np.asarray(flops, np.float64), (ranks,)).copy(),
        pairs[kept] // ranks,
        pairs[kept] % ranks,
        merged[kept],
    )


def bytes_between(work: ParallelWork, group: ArrayLike) -> FloatArray:
    """Bytes that a work sends from each group of ranks to each other one.

    group: the group (a number from 0) of each rank, shape (ranks,). Returns shape (groups, groups),
    row = sending group.
    """
    of_rank = np.asarray(group, np.int64)
    groups = int(of_rank.max()) + 1
    pair = of_rank[work.flow_from] * groups + of_rank[work.flow_to]
    return _sums(pair, work.flow_bytes, groups * groups).reshape(groups, groups)


def _sums(place: IntArray, amounts: FloatArray, places: int) -> FloatArray:
    """The sum of the amounts of each place, shape (places,)."""
    return np.bincount(place, amounts, places).astype(np.float64)
