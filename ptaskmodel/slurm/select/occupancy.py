"""What jobs hold on shared nodes, and which nodes admit another job (over-subscription).

`Consumable` has one. It stores cores by partition, as rows of jobs that do not overlap, and memory,
GRES and numbers of jobs by node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Self

from ptaskmodel.batch.machine.host_sets import Mask, first_hosts, of_hosts
from ptaskmodel.slurm.conf.facts import FORCE, OFF, YES, Conf, Nodes, Partition
from ptaskmodel.slurm.jobs.needs import BESIDE_OTHERS, EXCLUSIVELY, OVER_OTHERS, Need
from ptaskmodel.slurm.jobs.record import End, Ends, JobRecord
from ptaskmodel.slurm.select.cores import Rows, Used, joined, nodes_in, without
from ptaskmodel.slurm.select.offers import InUse, has_memory, memory_on_each
from ptaskmodel.slurm.select.plain_fit import PlainFit


class Occupancy:
    """Resources in use on each of the nodes of a configuration, `conf`.

    rows: cores by partition. partitions: by decreasing tier. gres: units in use, by name and type.
    present: number of jobs. suspended: those of them that do not run. nodes: those with a job.
    whole: those that a job has for itself. in_use: cores that any job uses. unshared: number of
    jobs that share nothing beyond the cores of the node.
    """

    def __init__(self, conf: Conf, nodes: Nodes) -> None:
        count = len(nodes)
        shares = {
            p.name: p.max_share if p.over_subscribe in (YES, FORCE) else 1 for p in conf.partitions
        }
        full = tuple(map(first_hosts, nodes.cores))
        self.rows = {p.name: Rows(full, shares[p.name]) for p in conf.partitions}
        self.partitions = sorted(conf.partitions, key=lambda p: -p.tier)
        self._all = nodes
        self._cluster_off = OFF in conf.preempt_mode
        self._memory_MiB = [0] * count
        self.gres: list[dict[tuple[str, str | None], int]] = [{} for _ in range(count)]
        self.present = [0] * count
        self.suspended: set[JobRecord] = set()
        self.nodes: Mask = 0
        self.whole: Mask = 0
        self.in_use = [0] * count
        self._unshared = [0] * count

    def copy(self) -> Occupancy:
        """A copy from which jobs can be removed for a trial."""
        other = object.__new__(Occupancy)
        other.__dict__.update(self.__dict__)
        other.rows = {name: rows.copy() for name, rows in self.rows.items()}
        other._memory_MiB = self._memory_MiB[:]
        if any(self.gres):
            other.gres = [each.copy() for each in self.gres]
        other.present = self.present[:]
        other.suspended = self.suspended.copy()
        other.in_use = self.in_use[:]
        other._unshared = self._unshared[:]
        return other

    def add(self, job: JobRecord) -> None:
        """A job takes its allocation."""
        self._count(job, 1)
        self.rows[job.partition.name].add(job)
        self._update_use(job)

    def remove(self, job: JobRecord) -> None:
        """A job gives its allocation back."""
        self.suspended.discard(job)
        self.rows[job.partition.name].remove(job)
        self._update_use(job)
        self._count(job, -1)

    def lift(self, job: JobRecord) -> None:
        """A job gives back its cores, not its memory."""
        self.rows[job.partition.name].remove(job)
        self._update_use(job)

    def _update_use(self, job: JobRecord) -> None:
        """Recompute the cores in use on a job's nodes."""
        assert job.allocation is not None
        rows = [*self.used_by(self.partitions)]
        for node in nodes_in(job.allocation.nodes):
            used = 0
            for row in rows:
                used |= row[node]
            self.in_use[node] = used

    def _count(self, job: JobRecord, sign: int) -> None:
        allocation = job.allocation
        assert allocation is not None
        held = nodes_in(allocation.nodes)
        need = job.need
        if keeps_nodes(need):
            self.whole ^= allocation.nodes
        sharing = need.sharing
        for node in held:
            self.present[node] += sign
            if self.present[node] == (sign > 0):  # the first comes, or the last leaves
                self.nodes ^= 1 << node
            self._unshared[node] += sign * (sharing != OVER_OTHERS)
        self._count_gres(self.gres, job, sign)
        for node, amount in zip(held, allocation.memory_MiB, strict=False):
            self._memory_MiB[node] += sign * amount

    @staticmethod
    def _count_gres(
        gres: list[dict[tuple[str, str | None], int]], job: JobRecord, sign: int
    ) -> None:
        allocation = job.allocation
        assert allocation is not None
        if not allocation.gres and not job.request.gres:
            return
        every = allocation.gres or repeat(job.request.gres)
        for node, units in zip(nodes_in(allocation.nodes), every, strict=False):
            for one in units:
                key = one.name, one.type
                gres[node][key] = gres[node].get(key, 0) + sign * one.count

    def without(self, gone: Iterable[JobRecord], nodes: Mask) -> tuple[Used, Sequence[InUse]]:
        """Return cores and units in use when some jobs are `gone`, valid for some `nodes` only."""
        gone = [job for job in gone if job.allocation and job.allocation.nodes & nodes]
        if not gone:
            return self.in_use, self.gres
        gres = self.gres
        if any(gres[node] for node in nodes_in(nodes)):
            gres = gres.copy()
            for job in gone:
                for node in nodes_in(nodes_held(job)):
                    gres[node] = gres[node].copy()
                self._count_gres(gres, job, -1)
        return without(self.in_use, (job.allocation for job in gone)), gres

    @property
    def today(self) -> Used:
        """The number of jobs that run on each node: suspended ones leave it idle."""
        counts = self.present[:]
        for job in self.suspended:
            assert job.allocation is not None
            for node in nodes_in(job.allocation.nodes):
                counts[node] -= 1
        return counts

    def spare_MiB(self, node: int) -> int:
        """The free memory of a node, MiB."""
        return self._all.memory_MiB[node] - self._memory_MiB[node]

    # --- cores that a job must leave alone ---------------------------------------------------

    def used_by(self, partitions: Iterable[Partition]) -> Iterator[Used]:
        """The cores that jobs of some partitions use, row by row."""
        for partition in partitions:
            for row in self.rows[partition.name].rows:
                yield row.used

    def of_partition(self, partition: Partition, among: Sequence[int]) -> Used:
        """The cores that jobs of a partition use; valid for the nodes `among` only."""
        return joined([row.used for row in self.rows[partition.name].rows], among)

    def not_preempted(self, partition: Partition, among: Sequence[int]) -> Used:
        """The cores that jobs of a partition cannot take by preemption; valid for `among` only."""
        above = [p for p in self.partitions if p.tier > partition.tier or self._is_kept(p)]
        return joined([*self.used_by(above)] or [[0] * len(self.present)], among)

    def _is_kept(self, partition: Partition) -> bool:
        """Return whether jobs of a partition are never preempted."""
        mode = partition.preempt_mode
        return OFF in mode if mode is not None else self._cluster_off

    # --- nodes that let another job in -------------------------------------------------------

    def letting_in(self, need: Need, nodes: Mask) -> tuple[Sequence[int], Mask]:
        """Those of some nodes that have the memory, and whose jobs share with one of this `need`.

        Returns them as a list, and as a mask.
        """
        others = [
            rows
            for name, rows in self.rows.items()
            if rows.may_share and name != need.partition.name
        ]
        if need.memory is None and not others and need.sharing not in (EXCLUSIVELY, OVER_OTHERS):
            return nodes_in(nodes), nodes
        if need.memory is not None and not others and need.sharing == BESIDE_OTHERS:
            least_MiB = memory_on_each(need)
            if least_MiB is not None:
                found = [k for k in nodes_in(nodes) if self.spare_MiB(k) >= least_MiB]
                return found, of_hosts(found)
        found = [node for node in nodes_in(nodes) if self._lets_in(need, node, others)]
        return found, of_hosts(found)

    def _lets_in(self, need: Need, node: int, others: Sequence[Rows]) -> bool:
        """Return whether one node does; others: rows of partitions whose jobs share cores."""
        if not has_memory(need, self.spare_MiB(node), self._all.memory_MiB[node]):
            return False
        if not self.present[node]:
            return True
        if need.sharing == EXCLUSIVELY:
            return False
        if need.sharing == OVER_OTHERS:
            return not self._unshared[node]
        return not any(row.used[node] for rows in others for row in rows.rows)


class Trials:
    """What is in use, and trials on which some jobs are gone; `Consumable` is one.

    plain: the same in numbers; None: numbers do not suffice.
    """

    plain: PlainFit | None
    # What jobs use; on a trial what is left of it, None: what all but those `_gone` use.
    _today: Occupancy
    _left: Occupancy | None
    _gone: Sequence[JobRecord] = ()

    @property
    def _taken(self) -> Occupancy:
        """What is in use; on a trial, by jobs that are not gone."""
        if self._left is None:
            self._left = self._today.copy()
            for job in self._gone:
                self._left.remove(job)
        return self._left

    def copy(self) -> Self:
        """One on which jobs can be removed for a trial."""
        return self._trial(self._taken.copy(), None)

    def without(self, jobs: Sequence[JobRecord], ends: Ends) -> Self:
        """Return a trial on which `jobs` are gone; ends: of all that run, earliest first."""
        plain = None if self.plain is None else self.plain.without(jobs, ends)
        other = self._trial(None, plain)
        other._gone = jobs
        return other

    def _trial(self, left: Occupancy | None, plain: PlainFit | None) -> Self:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._left, other.plain = left, plain
        return other


def nodes_held(job: JobRecord) -> Mask:
    """Return the nodes of a `job` that runs."""
    assert job.allocation is not None
    return job.allocation.nodes


def keeps_nodes(need: Need) -> bool:
    """Return whether a job with a `need` has whole nodes for itself: FORCE:2 shares even those."""
    return need.whole and not (need.force and need.share > 1)


# As many jobs are removed at once in a prediction, and two more.
MOST_REMOVED = 200


def in_groups(ends: Ends, among: Mask, grows_s: int) -> Iterator[tuple[End, list[JobRecord]]]:
    """The jobs that hold nodes `among` some in groups as predictions remove them, and their end.

    ends: of the jobs, earliest first. grows_s: how much later each group ends; 0: it doubles.
    """
    position, window = 0, 30
    horizon: float | None = None
    gone: list[JobRecord] = []
    while position < len(ends):
        last: End | None = None
        removed = 0
        while position < len(ends):
            end, _, job = ends[position]
            position += 1
            assert job.allocation is not None
            if not job.allocation.nodes & among:
                continue
            if horizon is None:
                horizon = end + 30 - end % 30
            gone.append(job)
            last = ends[position - 1]
            if position == len(ends) or ends[position][0] > horizon + window:
                break
            if removed > MOST_REMOVED:
                break
            removed += 1
        if last is None or horizon is None:
            return
        if position < len(ends) and ends[position][0] <= horizon + window:
            continue  # there were too many: the rest of them first
        while True:
            window += grows_s or window
            if position == len(ends) or ends[position][0] <= horizon + window:
                break
        yield last, gone
        gone = []
