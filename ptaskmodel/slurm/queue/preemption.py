"""Preemption: which jobs may preempt which, and which victims a job preempts.

It also sorts a queue in which some jobs may preempt others. When Slurm compares two waiting jobs,
it first tests whether one may preempt the other. That need not be an order: if A preempts C, but B
is between them by priority, the result depends on the sorting algorithm. `Precedence` merges
halves, as glibc's qsort does.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from itertools import groupby
from typing import NamedTuple

from ptaskmodel.batch.machine.host_sets import Mask
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
)
from ptaskmodel.slurm.jobs.needs import Need
from ptaskmodel.slurm.jobs.record import RUNNING, SUSPENDED, Allocation, JobRecord
from ptaskmodel.slurm.queue.queue import RESERVED, Entry
from ptaskmodel.slurm.select.consumable import Consumable
from ptaskmodel.slurm.select.plugin import Select


class Standing(NamedTuple):
    """A job among those that wait: its QOS and priority, or its partition's tier and nodes."""

    qos: Qos | None
    rank: float
    nodes: frozenset[str]


class Preemption:
    """The rules of a configuration."""

    def __init__(self, conf: Conf, accounts: Accounts | None = None) -> None:
        self._conf = conf
        self._accounts = accounts
        self.active = conf.preempt_type != NEVER
        self._nodes = {p.name: frozenset(p.nodes) for p in conf.partitions}
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
        self, job: JobRecord, need: Need, nodes: Mask, live: Iterable[JobRecord], now: int
    ) -> list[JobRecord]:
        """The jobs that a job may preempt, in the order in which they are considered."""
        if self._conf.preempt_type == BY_TIER and need.partition.tier <= self._lowest_tier:
            return []
        exempt = self._conf.preempt_exempt_time_min * 60
        found = []
        for other in live:
            if other.state not in (RUNNING, SUSPENDED) or other.allocation is None:
                continue
            if not other.allocation.nodes & nodes or not self._may(job, need, other):
                continue
            mode = self.mode_of(other)
            if mode == OFF or (mode != SUSPEND and now - other.start_s < exempt):
                continue
            found.append(other)
        if self._conf.scheduler.preempt_youngest_first:
            found.sort(key=lambda other: (-other.start_s, other.listed))
        else:
            found.sort(key=lambda other: (self._rank(other), other.listed))
        return found

    def _rank(self, job: JobRecord) -> int:
        assert job.allocation is not None
        if self._conf.preempt_type == BY_TIER:
            weight = job.partition.tier
        else:
            qos = self._qos(job)
            weight = 0 if qos is None else qos.priority
        return weight * 65536 + job.allocation.size

    def _may(self, job: JobRecord, need: Need, other: JobRecord) -> bool:
        if self._conf.preempt_type == BY_TIER:
            return need.partition.tier > other.partition.tier
        return self.may(self.standing(Entry((), 0, job)), self.standing(Entry((), 0, other)))

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
            gone = order[: removed[1]]
            last, others, rest = gone[-1:], gone[:-1], order[removed[1] :]
            if not options.preempt_strict_order:
                others = sorted(others, key=lambda job: -_usable(job, need, within))
            order = [*last, *others, *rest]
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

        Whoever made the job fit comes first the next time, then those with most of its nodes.
        """
        kills = {job for job in candidates if self.mode_of(job) in (REQUEUE, CANCEL)}
        order = [job for job in candidates if job in kills and _nodes(job) & within]
        options, tries = self._conf.scheduler, 0
        while True:
            trial, found, gone = select.copy(), None, 0
            while found is None and gone < len(order):
                trial.remove(order[gone])
                found = trial.place(need, within)
                gone += 1
            if found is None:
                return None
            tries += 1
            if tries > options.preempt_reorder_count + 1 or len(candidates) <= tries:
                nodes = found.nodes
                return found, [job for job in order[:gone] if _nodes(job) & nodes]
            last, before, rest = order[gone - 1], order[: gone - 1], order[gone:]
            if options.preempt_strict_order:
                order = [last, *before, *rest]
                continue
            weights = {job: (_nodes(job) & found.nodes).bit_count() for job in before}
            order = [last, *sorted([*before, *rest], key=lambda job: -weights.get(job, 0))]

    def _until_it_fits(
        self, select: Select, need: Need, within: Mask, order: list[JobRecord]
    ) -> tuple[Allocation, int] | None:
        """Where a job fits when the first so many are gone, and how many that are."""
        trial = select.copy()
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
        def record(entry: Entry) -> tuple[int, int]:
            return self._listed(entry.job), entry.which

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
