"""The gang scheduler: it decides which jobs on shared nodes or cores run and which wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ptaskmodel.batch.machine.host_sets import members
from ptaskmodel.slurm.conf.facts import Nodes, Partition
from ptaskmodel.slurm.jobs.record import JobRecord

# What a job uses of each node (by index), and the row of those that run: cores as masks, or CPUs.
Use = Mapping[int, int]


class Gang:
    """Each partition has its jobs in a list, and a row of those that run.

    The jobs that run cast a shadow on the rows of lower tiers; a job conflicts where it overlaps.
    counted: whether it does so only where there are too few CPUs, whatever cores they have.
    """

    def __init__(
        self, partitions: Sequence[Partition], nodes: Nodes, counted: bool = False
    ) -> None:
        self._cpus = nodes.cpus if counted else None
        self._partitions = sorted(partitions, key=lambda partition: -partition.tier)
        self._jobs: dict[str, list[JobRecord]] = {p.name: [] for p in partitions}
        # Who runs, and whether since a time slice began: others fill room that was left.
        self._active: dict[str, dict[JobRecord, bool]] = {p.name: {} for p in partitions}
        # How many ran when a row was last built, shadows included.
        self._ran = {p.name: 0 for p in partitions}
        self._uses: dict[JobRecord, Use] = {}

    def started(self, job: JobRecord) -> list[tuple[JobRecord, bool]]:
        """Process the start of a job; return which jobs run (True) or stop from now on, itself
        included.
        """
        name = job.partition.name
        self._jobs[name].append(job)
        self._uses[job] = _use(job, counted=self._cpus is not None)
        row = self._shadow(job.partition)
        for other in self._active[name]:
            self._add(row, other)
        runs = self._fits(row, job)
        if runs:
            self._active[name][job] = False
        return [*([] if runs else [(job, False)]), *self._rebuild()]

    def ended(self, job: JobRecord) -> list[tuple[JobRecord, bool]]:
        """Process the end of a job; return which jobs run or stop from now on."""
        name = job.partition.name
        self._jobs[name].remove(job)
        self._active[name].pop(job, None)
        del self._uses[job]
        return self._rebuild()

    def slice(self) -> list[tuple[JobRecord, bool]]:
        """A time slice is over: those that ran since it began go to the end of their lists.

        Who filled room that was left keeps his place, and so goes on where he comes first.
        """
        changes: list[tuple[JobRecord, bool]] = []
        for partition in self._partitions:
            name, jobs = partition.name, self._jobs[partition.name]
            if self._ran[name] >= len(jobs) + self._shadows(partition):
                continue
            before = self._active[name]
            jobs.sort(key=lambda job: before.get(job, False))
            changes += self._build(partition, [(job, True) for job in jobs])
        return sorted(changes, key=lambda change: change[1])

    @property
    def stopped(self) -> bool:
        """Return whether any job waits for a time slice."""
        return any(len(self._active[name]) < len(jobs) for name, jobs in self._jobs.items())

    def _rebuild(self) -> list[tuple[JobRecord, bool]]:
        """Build all rows again: who ran first, then who fills what is left."""
        changes: list[tuple[JobRecord, bool]] = []
        for partition in self._partitions:
            jobs, before = self._jobs[partition.name], self._active[partition.name]
            order = sorted(jobs, key=lambda job: -1 - before[job] if job in before else 0)
            changes += self._build(partition, [(job, before.get(job, False)) for job in order])
        return sorted(changes, key=lambda change: change[1])

    def _build(
        self, partition: Partition, order: Sequence[tuple[JobRecord, bool]]
    ) -> list[tuple[JobRecord, bool]]:
        """Build a row of those that fit, in order, each with whether it ran when a slice began."""
        before, row = self._active[partition.name], self._shadow(partition)
        now: dict[JobRecord, bool] = {}
        for job, sliced in order:
            if self._fits(row, job):
                self._add(row, job)
                now[job] = sliced
        self._active[partition.name] = now
        self._ran[partition.name] = len(now) + self._shadows(partition)
        stopped = [(job, False) for job in before if job not in now]
        return stopped + [(job, True) for job in now if job not in before]

    def _shadows(self, partition: Partition) -> int:
        """How many jobs of higher tiers run."""
        above = (p.name for p in self._partitions if p.tier > partition.tier)
        return sum(len(self._active[name]) for name in above)

    def _shadow(self, partition: Partition) -> dict[int, int]:
        """What jobs of higher tiers use."""
        row: dict[int, int] = {}
        for other in self._partitions:
            if other.tier > partition.tier:
                for job in self._active[other.name]:
                    self._add(row, job)
        return row

    def _fits(self, row: Use, job: JobRecord) -> bool:
        """Whether a job runs beside those of a row."""
        uses = self._uses[job].items()
        if self._cpus is None:
            return not any(used & row.get(node, 0) for node, used in uses)
        return all(used + row.get(node, 0) <= self._cpus[node] for node, used in uses)

    def _add(self, row: dict[int, int], job: JobRecord) -> None:
        """A job is one of a row; its nodes may have fewer CPUs than all ask for."""
        for node, used in self._uses[job].items():
            if self._cpus is None:
                row[node] = row.get(node, 0) | used
            else:
                row[node] = min(row.get(node, 0) + used, self._cpus[node])


def _use(job: JobRecord, *, counted: bool) -> Use:
    """Of each node of a job its CPUs, its cores as a mask, or 1 where it has the node."""
    allocation = job.allocation
    assert allocation is not None
    nodes = members(allocation.nodes)
    if not allocation.cores:
        return dict.fromkeys(nodes, 1)
    return dict(zip(nodes, allocation.cpus if counted else allocation.cores, strict=True))
