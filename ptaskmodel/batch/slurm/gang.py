"""The gang scheduler: which of the jobs that share nodes or cores run, and which are stopped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ptaskmodel.batch.hostset import members
from ptaskmodel.batch.slurm.conf.facts import Partition
from ptaskmodel.batch.slurm.nodes import Nodes
from ptaskmodel.batch.slurm.record import JobRecord


class Gang:
    """Each partition has its jobs in a list, and a row of those that run.

    The jobs that run cast a shadow on the rows of lower tiers; a job conflicts where it overlaps.
    """

    def __init__(self, partitions: Sequence[Partition], nodes: Nodes) -> None:
        self._partitions = sorted(partitions, key=lambda partition: -partition.tier)
        self._jobs: dict[str, list[JobRecord]] = {p.name: [] for p in partitions}
        self._active: dict[str, dict[JobRecord, None]] = {p.name: {} for p in partitions}
        self._width = max(nodes.cores, default=1)
        self._footprints: dict[JobRecord, int] = {}

    def started(self, job: JobRecord) -> list[tuple[JobRecord, bool]]:
        """A job has started: who runs (True) or is stopped from now on, the job itself included."""
        name = job.partition.name
        self._jobs[name].append(job)
        self._footprints[job] = self._footprint(job)
        shadow = self._shadow(job.partition)
        row = shadow | self._sum(self._active[name])
        runs = not self._footprints[job] & row
        if runs:
            self._active[name][job] = None
        return [*([] if runs else [(job, False)]), *self._rebuild()]

    def ended(self, job: JobRecord) -> list[tuple[JobRecord, bool]]:
        """A job has ended: who runs or is stopped from now on."""
        name = job.partition.name
        self._jobs[name].remove(job)
        self._active[name].pop(job, None)
        del self._footprints[job]
        return self._rebuild()

    def slice(self) -> list[tuple[JobRecord, bool]]:
        """A time slice is over: those that ran go to the end of their lists."""
        for name, jobs in self._jobs.items():
            active = self._active[name]
            if len(active) < len(jobs):
                stopped = [job for job in jobs if job not in active]
                jobs[:] = stopped + [job for job in jobs if job in active]
        return self._rebuild(anew=True)

    @property
    def stopped(self) -> bool:
        """Whether anybody waits for a time slice."""
        return any(len(self._active[name]) < len(jobs) for name, jobs in self._jobs.items())

    def _rebuild(self, anew: bool = False) -> list[tuple[JobRecord, bool]]:
        changes: list[tuple[JobRecord, bool]] = []
        for partition in self._partitions:
            jobs, before = self._jobs[partition.name], self._active[partition.name]
            row = self._shadow(partition)
            now: dict[JobRecord, None] = {}
            first = jobs if anew else [job for job in jobs if job in before]
            for job in [*first, *(job for job in jobs if job not in before)]:
                if job not in now and not self._footprints[job] & row:
                    row |= self._footprints[job]
                    now[job] = None
            changes += [(job, False) for job in before if job not in now]
            changes += [(job, True) for job in now if job not in before]
            self._active[partition.name] = now
        return sorted(changes, key=lambda change: change[1])

    def _shadow(self, partition: Partition) -> int:
        """What jobs of higher tiers use."""
        shadow = 0
        for other in self._partitions:
            if other.tier > partition.tier:
                shadow |= self._sum(self._active[other.name])
        return shadow

    def _sum(self, jobs: Iterable[JobRecord]) -> int:
        union = 0
        for job in jobs:
            union |= self._footprints[job]
        return union

    def _footprint(self, job: JobRecord) -> int:
        """The nodes of a job, or its cores where jobs have some, as a mask."""
        allocation = job.allocation
        assert allocation is not None
        if not allocation.cores:
            return allocation.nodes
        held = zip(members(allocation.nodes), allocation.cores, strict=True)
        return sum(cores << node * self._width for node, cores in held)
