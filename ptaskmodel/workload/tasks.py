"""What runs: works (how much of what) and tasks (a work on hosts, from a date), as frozen facts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence as Seq
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptaskmodel.errors import WorkloadError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Work:
    """How much is to be done, without saying where or when; shared between tasks."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class ParallelWork(Work):
    """Computations and communications that progress together.

    flops: shape (n,), flop of each rank. The k-th flow carries ``flow_bytes[k]`` > 0 bytes from
    rank ``flow_from[k]`` to rank ``flow_to[k]``, in row-major order of (from, to).
    """

    flops: FloatArray
    flow_from: IntArray
    flow_to: IntArray
    flow_bytes: FloatArray

    @property
    def ranks(self) -> int:
        return len(self.flops)


@dataclass(frozen=True, slots=True)
class HomogeneousWork(Work):
    """Every rank computes ``flops`` and sends ``bytes`` to every other rank (any number of ranks).

    With ``total``, both are amounts for the whole task, spread evenly: over the n ranks, and over
    the n * n entries of the communication matrix, whose diagonal is not sent (Batsim's rule).
    """

    flops: float
    bytes: float
    total: bool = False

    def per_rank(self, ranks: int) -> tuple[float, float]:
        """(flops of each rank, bytes of each ordered pair of distinct ranks) on ``ranks`` ranks."""
        if self.total:
            return self.flops / ranks, self.bytes / (ranks * ranks)
        return self.flops, self.bytes


@dataclass(frozen=True, slots=True)
class DelayWork(Work):
    """Nothing but time passes: ``delay_s`` seconds."""

    delay_s: float


@dataclass(frozen=True, slots=True)
class SequenceWork(Work):
    """The stages one after the other, on the same hosts, ``repeat`` times over."""

    stages: tuple[Work, ...]
    repeat: int = 1
