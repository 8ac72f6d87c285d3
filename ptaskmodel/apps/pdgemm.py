"""PDGEMM, the dense matrix product of ScaLAPACK, as parallel works at any time scale.

C = A B, with matrices n x n of doubles on a q x q grid of ranks (rank r is row r // q, column r %
q). In iteration k, the ranks of column k broadcast their block of A along their row, and the ranks
of row k their block of B along their column. Then every rank multiplies. With S sub-blocks, the
panel of an iteration is cut into S parts: there are S q iterations with the same totals.
Source: van de Geijn and Watts, "SUMMA: scalable universal matrix multiplication algorithm", 1997.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from ptaskmodel.apps.collectives import Communication, broadcast, join, parallel_work
from ptaskmodel.errors import WorkloadError
from ptaskmodel.workload.amounts import FloatArray
from ptaskmodel.workload.tasks import Common, Task
from ptaskmodel.workload.works import ParallelWork, SequenceWork, Work

DOUBLE_BYTES = 8


@dataclass(frozen=True, slots=True)
class Pdgemm:
    """A run of PDGEMM: matrices of order ``n`` on ``processes`` = q q ranks.

    ``sub_blocks`` (S) iterations for each of the q panels; ``blocking`` broadcasts wait for the
    product of the iteration before, the others overlap it; ``tree`` is one of
    ``collectives.BROADCAST_TREES``.

    Raises WorkloadError for a number of processes that is not a square, or sizes below 1.
    """

    n: int
    processes: int
    sub_blocks: int = 1
    blocking: bool = False
    tree: str = "binary"

    def __post_init__(self) -> None:
        if self.n < 1 or self.sub_blocks < 1 or self.processes < 1:
            raise WorkloadError(
                f"pdgemm: n = {self.n}, processes = {self.processes}, sub_blocks = "
                f"{self.sub_blocks}: all must be at least 1"
            )
        if math.isqrt(self.processes) ** 2 != self.processes:
            near = math.isqrt(self.processes) ** 2
            raise WorkloadError(
                f"pdgemm: {self.processes} processes do not make a square grid; use e.g. {near}"
            )

    @property
    def grid(self) -> int:
        """q, the number of rows and of columns of the grid."""
        return math.isqrt(self.processes)

    @property
    def iterations(self) -> int:
        return self.sub_blocks * self.grid

    @property
    def message_bytes(self) -> float:
        """Size of one message: the (sub-)block of A or B that a rank broadcasts in an iteration."""
        return (self.n / self.grid) ** 2 * DOUBLE_BYTES / self.sub_blocks

    @property
    def flops_per_rank(self) -> float:
        """flop of a rank in the whole run (a multiply-add is two)."""
        return 2.0 * self.n**3 / self.processes

    @property
    def total_bytes(self) -> float:
        """Bytes sent by all ranks in the whole run."""
        messages = 2 * self.grid * (self.grid - 1)
        return self.iterations * messages * self.message_bytes

    def panel(self, k: int) -> Communication:
        """The broadcasts of one iteration whose panel is k (0 <= k < q): along rows and columns."""
        if not 0 <= k < self.grid:
            raise WorkloadError(f"pdgemm: panel {k} is not in 0 .. {self.grid - 1}")
        q = self.grid
        tree = broadcast(q, self.message_bytes, root=k, tree=self.tree)
        parts = []
        for line in range(q):
            parts.append(tree.among(range(line * q, line * q + q), self.processes))
            parts.append(tree.among(range(line, self.processes, q), self.processes))
        return join(parts)

    def bundle(self) -> ParallelWork:
        """The whole run as one parallel work: all flops and all messages progress together."""
        every = np.full(self.grid, float(self.sub_blocks))
        return self._panels_work(every, self.flops_per_rank)

    def work(self, phases: int | None = None) -> Work:
        """The run as a work: one bundle (None), or ``phases`` phases in time.

        The iterations are dealt evenly over 1 <= ``phases`` <= ``iterations`` phases. Blocking:
        each phase is its broadcasts, then its products. Non-blocking: the broadcasts of the first
        iteration come first; then each phase is its products together with the broadcasts that
        overlap them, those of one iteration later.
        """
        if phases is None:
            return self.bundle()
        if not 1 <= phases <= self.iterations:
            raise WorkloadError(
                f"pdgemm: {phases} phases for {self.iterations} iterations; use 1 .. "
                f"{self.iterations}"
            )
        edges = [round(i * self.iterations / phases) for i in range(phases + 1)]
        spans = list(itertools.pairwise(edges))
        if self.blocking:
            stages = [stage for span in spans for stage in self._alternating(*span)]
        else:
            stages = [self._iterations_work(0, 1, 0)]
            stages += [self._iterations_work(a + 1, b + 1, b - a) for a, b in spans]
        return SequenceWork(tuple(stages))

    def task(
        self, hosts: Sequence[str], phases: int | None = None, **common: Unpack[Common]
    ) -> Task:
        """Return the run as a task on ``hosts``, one name for each rank (see ``place``).

        phases: as of `work`. common: further fields of the task (``id``, ``start_s``,
        ``competitors`` ...).
        """
        return Task(tuple(hosts), self.work(phases), **common)  # type: ignore[arg-type]

    def _alternating(self, first: int, last: int) -> list[ParallelWork]:
        sending = self._iterations_work(first, last, 0)
        silent = np.zeros(self.grid)
        flops = self.flops_per_rank * (last - first) / self.iterations
        return [sending, self._panels_work(silent, flops)]

    def _iterations_work(self, first: int, last: int, products: int) -> ParallelWork:
        """Broadcasts of the iterations first <= k < last (those that exist), and some products."""
        panel = np.arange(first, min(last, self.iterations)) // self.sub_blocks
        count = np.bincount(panel, minlength=self.grid).astype(np.float64)
        return self._panels_work(count, self.flops_per_rank * products / self.iterations)

    def _panels_work(self, count: FloatArray, flops: float) -> ParallelWork:
        """``count[k]`` iterations of each panel k, and ``flops`` flop a rank."""
        used = np.flatnonzero(count)
        if not len(used):
            nothing = np.zeros(0, np.int64)
            return parallel_work(self.processes, nothing, nothing, np.zeros(0), flops)
        panels = [self.panel(int(k)) for k in used]
        every = join(panels)
        times = np.repeat(count[used], [len(panel.bytes) for panel in panels])
        return parallel_work(
            self.processes, every.source, every.destination, every.bytes * times, flops
        )


def place(
    hosts: Sequence[str],
    processes: int,
    how: str | Sequence[str] = "linear",
    seed: int | None = None,
) -> tuple[str, ...]:
    """Return the host of each of so many `processes` (ranks).

    hosts: names. how: ``"linear"`` (the first ranks on the first host, and so on, evenly),
    ``"random"`` (equal numbers a host, shuffled with ``seed``), or the host of each rank.

    Raises WorkloadError if the ranks cannot be spread evenly, the seed is missing, or the given
    placement has the wrong length or names another host.
    """
    if not isinstance(how, str):
        return _given(hosts, processes, how)
    if processes % len(hosts):
        raise WorkloadError(
            f"placement: {processes} ranks do not spread evenly over {len(hosts)} hosts"
        )
    slots = np.repeat(np.arange(len(hosts)), processes // len(hosts))
    if how == "random":
        if seed is None:
            raise WorkloadError("placement 'random'; give a seed, so that it can be repeated")
        slots = np.random.default_rng(seed).permutation(slots)
    elif how != "linear":
        raise WorkloadError(f"unknown placement {how!r}; use linear, random, or name the hosts")
    return tuple(hosts[slot] for slot in slots.tolist())


def _given(hosts: Sequence[str], processes: int, names: Sequence[str]) -> tuple[str, ...]:
    if len(names) != processes:
        raise WorkloadError(f"placement: {len(names)} hosts named for {processes} ranks")
    strangers = sorted(set(names) - set(hosts))
    if strangers:
        raise WorkloadError(f"placement: {strangers[0]!r} is not one of the hosts given")
    return tuple(names)
