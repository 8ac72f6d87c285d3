"""Preemption: which jobs may preempt which, the victims of a job, and the gang scheduler.

It also sorts a queue in which some jobs may preempt others. When Slurm compares two waiting jobs,
it first tests whether one may preempt the other. That need not be an order: if A preempts C, but B
is between them by priority, the result depends on the sorting algorithm. `Precedence` merges
halves, as glibc's qsort does.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from math import inf
from operator import itemgetter
from typing import NamedTuple

from ptaskmodel.batch.machine.host_sets import Mask, first_hosts, members
from ptaskmodel.slurm.accounts.facts import Accounts, Qos
from ptaskmodel.slurm.conf.facts import (
    BY_QOS,
    BY_TIER,
    CANCEL,
    NEVER,
    OFF,
    REQUEUE,
    SUSPEND,
    WITHIN,
    Conf,
    Nodes,
    Partition,
)
from ptaskmodel.slurm.controller.queue import RESERVED, Entry
from ptaskmodel.slurm.jobs.needs import Need
from ptaskmodel.slurm.jobs.record import RUNNING, SUSPENDED, Allocation, JobRecord
from ptaskmodel.slurm.select.consumable import Consumable
from ptaskmodel.slurm.select.plugin import Select, place_without


class Standing(NamedTuple):
    """A job among those that wait: its QOS and priority, or its partition's tier and nodes."""

    qos: Qos | None
    rank: float
    nodes: frozenset[str]


class Preemptable(NamedTuple):
    """A job that runs, what it has, and how it is preempted. order: the lowest is tried first."""

    order: tuple[int, int]
    job: JobRecord
    allocation: Allocation
    qos_name: str | None
    start_s: int
    mode: str


class Preemption:
    """The rules of a configuration."""

    def __init__(self, conf: Conf, accounts: Accounts | None = None) -> None:
        self._conf = conf
        self._accounts = accounts
        self.active = conf.preempt_type != NEVER
        self._nodes = {p.name: frozenset(p.nodes) for p in conf.partitions}
        self._known: dict[JobRecord, Preemptable] = {}
        self._lowest_tier = min((p.tier for p in conf.partitions), default=0)

    def mode_of(self, job: JobRecord) -> str:
        """What happens to a job that is preempted: SUSPEND, REQUEUE, CANCEL or OFF."""
        words = self._conf.preempt_mode
        if self._conf.preempt_type == BY_TIER and job.partition.preempt_mode is not None:
            words = job.partition.preempt_mode
        qos = self._qos(job)
        if self._conf.preempt_type == BY_QOS and qos is not None and qos.preempt_mode is not None:
            words = qos.preempt_mode
        if SUSPEND in words:
            return SUSPEND
        if REQUEUE in words:
            may = job.request.requeue
            return REQUEUE if (self._conf.job_requeue if may is None else may) else CANCEL
        return CANCEL if CANCEL in words else OFF

    def grace_s(self, job: JobRecord) -> int:
        """How long a victim goes on before it is killed."""
        qos = self._qos(job)
        if self._conf.preempt_type == BY_QOS and qos is not None:
            return qos.grace_time_s
        return job.partition.grace_time_s

    def _qos(self, job: JobRecord) -> Qos | None:
        if self._accounts is None or job.account is None:
            return None
        return self._accounts.qos.get(job.account.qos or "")

    @property
    def kind(self) -> str:
        """What decides which jobs may preempt which: BY_TIER, BY_QOS or NEVER."""
        return self._conf.preempt_type

    def kind_of(self, job: JobRecord) -> Hashable:
        """What jobs have in common that may preempt the same ones of a partition."""
        if self._conf.preempt_type == BY_TIER:
            return None
        qos = self._qos(job)
        return job if qos is not None and self._within(qos) else self.qos_name(job)

    def qos_name(self, job: JobRecord) -> str | None:
        """The QOS of a job, if it has one."""
        qos = self._qos(job)
        return None if qos is None else qos.name

    def levels(self, present: Iterable[str | None]) -> dict[str | None, int] | None:
        """How many of some QOSs stand one below the other, from each down.

        None: that says not whose jobs may preempt whose.
        """
        known = {} if self._accounts is None else self._accounts.qos
        may = {
            name: {other for other in present if other in known[name].preempt and other != name}
            if name is not None
            else set()
            for name in present
        }
        levels: dict[str | None, int] = {}
        while len(levels) < len(may):
            lowest = [name for name in may if name not in levels and may[name] <= levels.keys()]
            if not lowest:
                return None  # they may preempt each other
            levels.update({n: max((1 + levels[o] for o in may[n]), default=0) for n in lowest})
        layered = all((o in may[n]) == (levels[n] > levels[o]) for n in may for o in may)
        within = any(name is not None and self._within(known[name]) for name in may)
        return levels if layered and not within else None

    def standing(self, entry: Entry) -> Standing:
        """What decides, in a partition, which jobs a waiting job could preempt, and which could
        preempt it.
        """
        job = entry.job
        partition = job.partitions[entry.which]
        if self._conf.preempt_type == BY_QOS:
            return Standing(self._qos(job), max(job.priorities), frozenset())
        return Standing(None, partition.tier, self._nodes[partition.name])

    def may(self, mine: Standing, its: Standing) -> bool:
        """Return whether one waiting job could preempt the other, if that ran."""
        if self._conf.preempt_type == BY_TIER:
            return mine.rank > its.rank and not mine.nodes.isdisjoint(its.nodes)
        qos, other = mine.qos, its.qos
        if qos is None or other is None:
            return False
        if qos is other:
            return self._within(qos) and mine.rank > its.rank
        return other.name in qos.preempt

    def candidates(
        self, job: JobRecord, need: Need, nodes: Mask, live: Iterable[Preemptable], now: int
    ) -> tuple[list[JobRecord], float]:
        """The jobs that a job may preempt, of all that can be, `live`, in their order.

        Also until when these are all, Unix s, if no other job starts or ends.
        """
        if self._conf.preempt_type == BY_TIER and need.partition.tier <= self._lowest_tier:
            return [], inf
        exempt = self._conf.preempt_exempt_time_min * 60
        # Jobs of one QOS stand behind others by priorities, which change.
        by_rank = any(map(self._within, self._accounts.qos.values() if self._accounts else ()))
        mine, until_s = self.standing(Entry([], 0, job)), now + 1 if by_rank else inf
        if self._conf.preempt_type == BY_TIER or by_rank:
            found = [each for each in live if self._may(mine, need, each)]
        else:
            below = () if mine.qos is None else mine.qos.preempt - {mine.qos.name}
            found = [each for each in live if each.qos_name in below]
        found = [each for each in found if each.allocation.nodes & nodes]
        young = [e for e in found if now - e.start_s < exempt and e.mode != SUSPEND]
        if young:
            until_s = min(until_s, exempt + min(each.start_s for each in young))
            gone = {each.job for each in young}
            found = [each for each in found if each.job not in gone]
        return [each.job for each in found], until_s

    def in_order(self, live: Iterable[JobRecord]) -> list[Preemptable]:
        """Those of some jobs that can be preempted at all, in the order in which they are tried."""
        found = []
        for job in live:
            if job.state in (RUNNING, SUSPENDED) and job.allocation is not None:
                known = self._known.get(job)
                if known is None or known.allocation is not job.allocation:
                    known = self._known[job] = self._preemptable(job, job.allocation)
                if known.mode != OFF:
                    found.append(known)
        return sorted(found, key=itemgetter(0))

    def _preemptable(self, job: JobRecord, allocation: Allocation) -> Preemptable:
        youngest, mode = self._conf.scheduler.preempt_youngest_first, self.mode_of(job)
        order = -job.start_s if youngest else self._rank(job), job.listed
        return Preemptable(order, job, allocation, self.qos_name(job), job.start_s, mode)

    def _rank(self, job: JobRecord) -> int:
        assert job.allocation is not None
        if self._conf.preempt_type == BY_TIER:
            weight = job.partition.tier
        else:
            qos = self._qos(job)
            weight = 0 if qos is None else qos.priority
        return weight * 65536 + job.allocation.size

    def _may(self, mine: Standing, need: Need, other: Preemptable) -> bool:
        if self._conf.preempt_type == BY_TIER:
            return need.partition.tier > other.job.partition.tier
        return self.may(mine, self.standing(Entry([], 0, other.job)))

    def _within(self, qos: Qos) -> bool:
        return WITHIN in self._conf.preempt_mode or WITHIN in (qos.preempt_mode or ())

    def victims(
        self, select: Select, need: Need, within: Mask, candidates: list[JobRecord]
    ) -> tuple[Allocation, list[JobRecord]] | None:
        """Where a job fits without some of the candidates, and which of them stand there."""
        if isinstance(select, Consumable):
            return self._killed(select, need, within, candidates)
        removed = self._until_it_fits(select, need, within, candidates)
        if removed is None:
            return None
        options = self._conf.scheduler
        tries = 1 if options.preempt_strict_order else max(1, options.preempt_reorder_count)
        order = candidates
        for _ in range(tries):
            *others, last = order[: removed[1]]
            if not options.preempt_strict_order:
                others = sorted(others, key=lambda job: -_usable(job, need, within))
            order = [last, *others, *order[removed[1] :]]
            again = self._until_it_fits(select, need, within, order)
            if again is None:
                break
            removed = again
        found = removed[0]
        hit = [job for job in order[: removed[1]] if _nodes(job) & found.nodes]
        return found, hit

    def _killed(
        self, select: Consumable, need: Need, within: Mask, candidates: list[JobRecord]
    ) -> tuple[Allocation, list[JobRecord]] | None:
        """The same on shared nodes, where room over suspended jobs needs no victims.

        Whoever made the job fit comes first the next time, then those with most of its nodes. What
        it would get has no cores while victims have them.
        """
        kills = {job for job in candidates if self.mode_of(job) in (REQUEUE, CANCEL)}
        order = [job for job in candidates if job in kills and _nodes(job) & within]
        options, tries = self._conf.scheduler, 0
        while True:
            found, gone = place_without(select, need, within, order)
            if found is None:
                return None
            tries += 1
            if tries > options.preempt_reorder_count + 1 or len(candidates) <= tries:
                victims = [job for job in order[:gone] if _nodes(job) & found.nodes]
                return (found._replace(cores=()) if victims else found), victims
            last, before, rest = order[gone - 1], order[: gone - 1], order[gone:]
            others = [*before, *rest]
            if not options.preempt_strict_order:
                weights = {job: (_nodes(job) & found.nodes).bit_count() for job in before}
                others.sort(key=lambda job: -weights.get(job, 0))
            order = [last, *others]

    def _until_it_fits(
        self, select: Select, need: Need, within: Mask, order: list[JobRecord]
    ) -> tuple[Allocation, int] | None:
        """Where a job fits when the first so many are gone, and how many that are."""
        trial, need = select.copy(), replace(need, hoped=need.share)  # it is to start now
        for count, job in enumerate(order, 1):
            suspends = self.mode_of(job) == SUSPEND
            if not suspends:
                trial.remove(job, running=job.state == RUNNING)
            else:
                trial.lift(job)
            found = trial.place(need, within)
            if found is not None:
                return found, count
        return None


def _nodes(job: JobRecord) -> Mask:
    assert job.allocation is not None
    return job.allocation.nodes


def _usable(job: JobRecord, need: Need, within: Mask) -> int:
    return (_nodes(job) & need.nodes & within).bit_count()


# Who waits, and the entries of a job or of what waits of an array.
Record = tuple[Standing, list[Entry]]


class Precedence:
    """Puts entries into the order of Slurm's sort_job_queue2 (src/slurmctld/job_scheduler.c).

    listed: the place in the list of all jobs of the record that a waiting job belongs to; what
    waits of an array is one record.
    """

    def __init__(self, preemption: Preemption, listed: Callable[[JobRecord], int]) -> None:
        self._preemption = preemption
        self._listed = listed
        self._known: dict[frozenset[str | None], dict[str | None, int] | None] = {}

    def order(self, entries: list[Entry]) -> list[Entry]:
        """The entries, which come in the order of their keys, in the order of the queue."""
        kind = self._preemption.kind
        if kind == BY_TIER:
            plain = not entries or entries[0].key[RESERVED] == entries[-1].key[RESERVED]
            return entries if plain else self._merged(entries)
        if kind != BY_QOS:
            return entries
        qos_of = self._preemption.qos_name
        present = frozenset(qos_of(entry.job) for entry in entries)
        if present not in self._known:
            self._known[present] = self._preemption.levels(present)
        levels = self._known[present]
        if levels is None:
            return self._merged(entries)
        return sorted(entries, key=lambda entry: -levels[qos_of(entry.job)])

    def _merged(self, entries: list[Entry]) -> list[Entry]:
        def record(entry: Entry) -> tuple[int, int, bool]:
            return self._listed(entry.job), entry.which, not entry.prefers

        ordered = sorted(entries, key=record)  # stable: the tasks of an array stay in their order
        records = []
        for _, tasks in groupby(ordered, record):
            entries = list(tasks)
            records.append((self._preemption.standing(entries[0]), entries))
        return [entry for _, entries in self._sorted(records) for entry in entries]

    def _sorted(self, records: list[Record]) -> list[Record]:
        if len(records) < 2:
            return records
        half = len(records) // 2
        first, second = self._sorted(records[:half]), self._sorted(records[half:])
        merged = []
        left, right = 0, 0
        while left < len(first) and right < len(second):
            if self._is_before(first[left], second[right]):
                merged.append(first[left])
                left += 1
            else:
                merged.append(second[right])
                right += 1
        return merged + first[left:] + second[right:]

    def _is_before(self, record: Record, other: Record) -> bool:
        may, mine, its = self._preemption.may, record[0], other[0]
        if may(mine, its):
            return True
        return not may(its, mine) and record[1][0].key < other[1][0].key


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
        self._cpus, self._cores = nodes.cpus if counted else None, nodes.cores
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
        self._uses[job] = _use(job, self._cores, counted=self._cpus is not None)
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


def _use(job: JobRecord, cores: Sequence[int], *, counted: bool) -> Use:
    """Of each node of a job its CPUs, its cores as a mask, or 1 where it has the node.

    cores: how many each node has. A job on whole nodes runs beside no other, whatever higher tiers
    left it there; but where CPUs are counted it has what they left.
    """
    allocation = job.allocation
    assert allocation is not None
    nodes = members(allocation.nodes)
    if not allocation.cores:
        return dict.fromkeys(nodes, 1)
    if not counted and job.need.whole:
        return {node: first_hosts(cores[node]) for node in nodes}
    if not counted:
        return dict(zip(nodes, allocation.cores, strict=True))
    counts = allocation.cpus
    if job.need.whole:
        fewer = zip(counts, allocation.cores, nodes, strict=True)
        counts = tuple(n * mask.bit_count() // cores[node] for n, mask, node in fewer)
    return dict(zip(nodes, counts, strict=True))
