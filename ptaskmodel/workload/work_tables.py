"""Works as arrays that hold all of them one after the other; objects are made when asked for.

Tables of tasks (see `blocks`) and the programs of a simulation consist of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, overload

import numpy as np

from ptaskmodel.workload.amounts import (
    FieldError,
    FloatArray,
    IntArray,
    check_amounts,
    flows_of_lists,
    own,
)
from ptaskmodel.workload.works import DelayWork, ParallelWork, Work

# So many flows are looked at together: these arrays stay in a processor's cache.
FLOWS_AT_ONCE = 1 << 15


def firsts_of(counts: IntArray) -> IntArray:
    """Where each part of ``counts`` items begins, one after the other; then the end of the last."""
    firsts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=firsts[1:])
    return firsts


def _joined(flows: Sequence[FloatArray]) -> FloatArray:
    return np.concatenate(flows) if flows else np.zeros((0, 3))


class ParallelWorks(NamedTuple):
    """Parallel works, one after the other.

    Ranks of work k are ``first_rank[k]:first_rank[k + 1]`` of ``flops``, its flows
    ``first_flow[k]:first_flow[k + 1]`` of the others, which are as in `ParallelWork`.
    """

    first_rank: IntArray
    flops: FloatArray
    first_flow: IntArray
    flow_from: IntArray
    flow_to: IntArray
    flow_bytes: FloatArray

    @classmethod
    def of(
        cls,
        ranks: IntArray,
        flops: FloatArray,
        counts: IntArray,
        flows: FloatArray | Sequence[FloatArray],
    ) -> ParallelWorks:
        """Those of works of so many ``ranks`` and flows (``counts``), shape (works,).

        flops: of all ranks. flows: (from, to, bytes) of all, shape (flows, 3), or those of each
        work that has some, in any order in each work, each pair once; those of 0 bytes are dropped.
        Raises FieldError.
        """
        check_amounts("flops", flops)
        first_flow = firsts_of(counts)
        with_flows = firsts_of((counts > 0).astype(np.int64))
        total, done = first_flow[-1].item(), 0
        start = np.zeros_like(first_flow)
        columns: tuple[Any, ...] = (*np.empty((2, total), dtype=np.int64), np.empty(total))
        cuts = np.flatnonzero(np.diff(first_flow // FLOWS_AT_ONCE)).tolist()
        for first, last in pairwise([0, *cuts, len(ranks)]):
            begin = first_flow[first].item()
            some = slice(first, last)
            if isinstance(flows, np.ndarray):
                given = flows[begin : first_flow[last]]
            else:
                given = _joined(flows[with_flows[first] : with_flows[last]])
            try:
                starts, *laid = flows_of_lists(ranks[some], counts[some], given)
            except FieldError as error:
                place = (error.place[0] + begin, *error.place[1:]) if error.place else ()
                raise FieldError(error.field, error.problem, place) from None
            start[first + 1 : last + 1] = done + starts[1:]
            begin, done = done, done + len(laid[0])
            for column, part in zip(columns, laid, strict=True):
                column[begin:done] = part
        flow_from, flow_to, flow_bytes = (own(column[:done]) for column in columns)
        return cls(firsts_of(ranks), own(flops), start, flow_from, flow_to, flow_bytes)

    def works(self, numbers: IntArray) -> list[ParallelWork]:
        """Make the works with these ``numbers``; their arrays are parts of these."""
        bounds = (
            f[numbers + k].tolist() for f in (self.first_rank, self.first_flow) for k in (0, 1)
        )
        flops, flow_from, flow_to, flow_bytes = (
            self.flops, self.flow_from, self.flow_to, self.flow_bytes,
        )  # fmt: skip
        made = ParallelWork.of_arrays
        return [
            made(flops[a:b], flow_from[f:g], flow_to[f:g], flow_bytes[f:g])
            for a, b, f, g in zip(*bounds, strict=True)
        ]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WorkTable:
    """Works by number: some that exist as objects, then delays (s), then parallel works."""

    objects: Sequence[Work]
    delays_s: FloatArray
    parallel: ParallelWorks

    def __len__(self) -> int:
        return len(self.objects) + len(self.delays_s) + len(self.parallel.first_rank) - 1

    def take(self, numbers: IntArray) -> list[Work]:
        """The works with these ``numbers``; a delay or a parallel work is made anew."""
        delay = len(self.objects)
        parallel = delay + len(self.delays_s)
        if not parallel:
            return list(self.parallel.works(numbers))
        found: list[Any] = [None] * len(numbers)
        for k, number in enumerate(numbers.tolist()):
            if number < delay:
                found[k] = self.objects[number]
            elif number < parallel:
                found[k] = DelayWork(self.delays_s[number - delay].item())
        others = np.flatnonzero(numbers >= parallel)
        made = self.parallel.works(numbers[others] - parallel)
        for k, work in zip(others.tolist(), made, strict=True):
            found[k] = work
        return found


class PickedWorks(Sequence[Work]):
    """The works of a table with some numbers."""

    __slots__ = ("_numbers", "_table")

    def __init__(self, table: WorkTable, numbers: IntArray) -> None:
        self._table, self._numbers = table, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, k: int) -> Work: ...
    @overload
    def __getitem__(self, k: slice) -> list[Work]: ...
    def __getitem__(self, k: int | slice) -> Work | list[Work]:
        if isinstance(k, slice):
            return self._table.take(self._numbers[k])
        return self.take([k])[0]

    def take(self, places: Sequence[int]) -> list[Work]:
        """Those at these ``places``."""
        return self._table.take(self._numbers[places])

    @property
    def kinds(self) -> set[type[Work]]:
        """The classes of the works of the table."""
        kinds: set[type[Work]] = set(map(type, self._table.objects))
        if len(self._table.delays_s):
            kinds.add(DelayWork)
        return kinds | {ParallelWork}

    @property
    def durations_s(self) -> FloatArray:
        """How long each lasts on any platform, s; nan if that depends on the platform."""
        known = [work.duration_s for work in self._table.objects]
        durations_s = np.full(len(self._table), np.nan)
        durations_s[: len(known)] = known
        durations_s[len(known) : len(known) + len(self._table.delays_s)] = self._table.delays_s
        return durations_s[self._numbers]
