"""Which cores of each node are used: the jobs of a partition in rows that do not overlap."""

from __future__ import annotations

from collections.abc import Sequence

from ptaskmodel.batch.hostset import members
from ptaskmodel.batch.slurm.record import JobRecord

# Used cores of each node, as masks.
Used = Sequence[int]


class Rows:
    """The jobs of a partition: those of a row do not overlap; its used cores by node."""

    def __init__(self, nodes: int) -> None:
        self.used: list[list[int]] = []
        self.jobs: list[dict[JobRecord, None]] = []
        self._nodes = nodes

    def copy(self) -> Rows:
        other = Rows(self._nodes)
        other.used = [used[:] for used in self.used]
        other.jobs = [jobs.copy() for jobs in self.jobs]
        return other

    def add(self, job: JobRecord) -> None:
        allocation = job.allocation
        assert allocation is not None
        while len(self.used) <= allocation.row:
            self.used.append([0] * self._nodes)
            self.jobs.append({})
        used = self.used[allocation.row]
        for node, held in zip(members(allocation.nodes), allocation.cores, strict=True):
            used[node] |= held
        self.jobs[allocation.row][job] = None

    def remove(self, job: JobRecord) -> None:
        allocation = job.allocation
        assert allocation is not None
        used = self.used[allocation.row]
        for node, held in zip(members(allocation.nodes), allocation.cores, strict=True):
            used[node] &= ~held
        del self.jobs[allocation.row][job]
