"""Priorities of waiting jobs: priority/basic, and priority/multifactor with its terms in arrays.

Source: Slurm 22.05's documentation of the plugin, and its behaviour: sums in double precision, in
its order of terms, truncated to integers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.batch.machine.host_sets import Mask, members
from ptaskmodel.slurm.accounts.facts import (
    Accounts,
    Amounts,
    billed,
    gres_names,
    requested_by,
)
from ptaskmodel.slurm.accounts.fair_share import Member, ShareTree
from ptaskmodel.slurm.accounts.priority_kernel import (
    ACCOUNT,
    ACCRUE,
    ARRAY,
    COLUMNS,
    ENTRY,
    FROZEN,
    JOB_SIZE,
    MOST,
    NUMBER,
    PLACE,
    VALUE,
    evaluate,
)
from ptaskmodel.slurm.accounts.usage import Usage
from ptaskmodel.slurm.conf.facts import MULTIFACTOR, Conf, Nodes, Partition
from ptaskmodel.slurm.controller.rows import Rows
from ptaskmodel.slurm.jobs.request import JobRequest

TOP = 0xFFFF0000


class Waiting(Protocol):
    """What priorities are made of: the record of a job.

    number: Slurm's id. listed: its place in the list of all jobs. priorities: set here, one for
    each partition; it may change at any time. account: whose it is. least_nodes: the least that
    it asks for, raised to MinNodes if that may be. Dates are whole Unix seconds.
    """

    request: JobRequest
    number: int
    listed: int
    submit_s: int
    restarts: int
    partitions: tuple[Partition, ...]
    partition: Partition
    priorities: Any
    held: bool
    account: Member | None
    least_nodes: int

    def set_priorities(self, priorities: Any) -> None:
        """Set `priorities`, one for each partition."""


class Sizes(NamedTuple):
    """How large the cluster is, and what each partition has of each TRES, by its name.

    first_MiB: the memory of each partition's first node, by its name.
    """

    nodes: int
    cpus: int
    tres: Mapping[str, Amounts]
    first_MiB: Mapping[str, int]


def sizes_of(conf: Conf, nodes: Nodes) -> Sizes:
    """Return how large the cluster of a `conf` and its partitions are, and their ``nodes``."""
    return Sizes(
        len(nodes),
        sum(nodes.cpus),
        {p.name: _tres(nodes, nodes.partitions[p.name]) for p in conf.partitions},
        {
            name: nodes.memory_MiB[members(mask)[0]]
            for name, mask in nodes.partitions.items()
            if mask
        },
    )


def _tres(nodes: Nodes, mask: Mask) -> dict[str, float]:
    inside = members(mask)
    found: dict[str, float] = {
        "cpu": sum(nodes.cpus[k] for k in inside),
        "mem": sum(nodes.memory_MiB[k] for k in inside),
        "node": len(inside),
    }
    for k in inside:
        for one in nodes.lines[k].gres:
            for name in {f"gres/{one.name}", *gres_names(one.name, one.type)}:
                found[name] = found.get(name, 0) + one.count
    return found


class Basic:
    """priority/basic: first come, first served. Source: Slurm's manual of PriorityType."""

    period_s: int | None = None  # of refreshes: none

    def __init__(self) -> None:
        self._lowest = TOP
        self._arrays: dict[str, int] = {}

    def at_submit(self, job: Waiting, now: int) -> None:
        """Give a job its priority, behind all others; the tasks of an array have one."""
        given, nice = job.request.priority, job.request.nice
        if job.held or given is not None:
            job.set_priorities([0 if job.held else given] * len(job.partitions))
            return
        array = job.request.array
        if array is not None and array.job in self._arrays:
            job.set_priorities([self._arrays[array.job]] * len(job.partitions))
            return
        value = max(1, self._lowest - 1)
        if nice <= 0 or value > nice + 1:
            value -= nice
        value = max(1, value)
        job.set_priorities([value] * len(job.partitions))
        self._lowest = min(self._lowest, value + nice)
        if array is not None:
            self._arrays[array.job] = value

    def again(self, job: Waiting, now: int) -> None:
        """A job that is requeued keeps its priority."""

    def accrue(self, job: Waiting, since_s: int) -> None:
        """Nothing grows with age."""

    def tested(self, job: Waiting, cpus: int) -> None:
        """Nothing depends on the size."""

    def started(self, job: Waiting, now: int, tres: Amounts) -> None:
        """No usage is kept."""

    def ended(self, job: Waiting, now: int, *, again: bool = False) -> None:
        """No usage is kept, whether it waits `again` or not."""

    def gone(self, job: Waiting) -> None:
        """Nothing is kept of it."""

    def refresh(self, now: int, heads: Mapping[str, int]) -> bool:
        return False

    def table(self) -> Mapping[str, NDArray]:
        """Nothing to show: see `Multifactor.table`."""
        return {}


_NO_FACTORS, _NOBODY = np.empty(0), Member()
FOREVER_min = 0xFFFFFFFF
FACTORS = ("age", "assoc", "fairshare", "jobsize", "partition", "qos", "tres")


class Multifactor:
    """priority/multifactor. Without a database age and fair share count for nothing.

    began_s: when the controller started, Unix seconds; refreshes are ``period_s`` apart.
    """

    def __init__(
        self, conf: Conf, accounts: Accounts, tree: ShareTree, sizes: Sizes, began_s: int
    ) -> None:
        self._conf, self._of, self._sizes = conf, conf.priority, sizes
        self._accounts = accounts
        self.period_s: int | None = self._of.calc_period_s if conf.database else None
        rests = "LIMITS" in conf.enforce
        self.usage = Usage(tree, self._of, began_s, rests) if conf.database else None
        # Whether a job's size counts with its limit, which may change before a refresh.
        self._sized_at_once = "SMALL_RELATIVE_TO_TIME" in self._of.flags
        # Whether jobs that run have their priorities refreshed, which they keep when requeued.
        self._follows_running = "CALCULATE_RUNNING" in self._of.flags
        self._accrues_always = "ACCRUE_ALWAYS" in self._of.flags
        self._weight_age = float(self._of.weight_age if conf.database else 0)
        self._weight_fairshare = float(self._of.weight_fairshare if conf.database else 0)
        self._max_factor = max([1, *(p.job_factor for p in conf.partitions)])
        self._max_qos = max(qos.priority for qos in accounts.qos.values())
        self._max_assoc = max(one.priority for one in accounts.associations)
        self._rows = Rows()
        # Jobs that came since the last refresh, and what their rows are to hold: most start before.
        self._fresh: dict[int, tuple[Waiting, list[list[float]]]] = {}
        self._waiting: dict[int, tuple[Waiting, list[int]]] = {}
        self._several: dict[int, tuple[Waiting, list[int]]] = {}
        # Jobs that run and use shares.
        self._running: set[int] = set()
        self._of_members: dict[tuple[str, int, str | None], tuple[float, float, float]] = {}
        # The arrays that have come, in order.
        self._arrays: dict[str, int] = {}
        # How many CPUs each job that waits was last found to take.
        self._tested: dict[int, int] = {}
        # The weighted factors of sizes that have come, by nodes, CPUs and, if it counts, the limit.
        self._of_sizes: dict[tuple[int, int, int], float] = {}

    # The life of a job

    def at_submit(self, job: Waiting, now: int) -> None:
        """Give a job its priorities (age 0); they are refreshed until it starts or is gone."""
        if job.number in self._waiting:
            self.gone(job)
        fresh, priorities = [], []
        for entry in range(len(job.partitions)):
            fresh.append(values := self._fixed(job, entry))
            priorities.append(values[VALUE])
        self._fresh[job.number] = job, fresh
        self._tested.pop(job.number, None)
        job.set_priorities(priorities)

    def _take_rows(self) -> None:
        """Those that came since the last refresh get rows."""
        for number, (job, fresh) in self._fresh.items():
            if number in self._tested and not self._sized_at_once:
                size = self._weighted_size(job, self._tested[number])
                for values in fresh:
                    values[JOB_SIZE] = size
            rows = [self._rows.take(values) for values in fresh]
            self._waiting[number] = job, rows
            if len(rows) == 1:
                job.set_priorities(self._rows.view(rows[0], VALUE))
            else:
                self._several[number] = job, rows
        self._fresh.clear()

    def again(self, job: Waiting, now: int) -> None:
        """A job that is requeued keeps its priorities until they are refreshed."""
        before = [int(value) for value in job.priorities]
        self.at_submit(job, now)
        for values, value in zip(self._fresh[job.number][1], before, strict=True):
            values[VALUE] = value
        job.set_priorities(before)

    def accrue(self, job: Waiting, since_s: int) -> None:
        """The job's age counts from a date on, as of the next refresh; told once is enough.

        With ACCRUE_ALWAYS it counts from the submission on, whatever the job waits for.
        """
        if job.number in self._fresh:
            for values in self._fresh[job.number][1]:
                values[ACCRUE] = values[ACCRUE] or since_s
        elif job.number in self._waiting:
            for row in self._waiting[job.number][1]:
                if not self._rows.get(row, ACCRUE):
                    self._rows.set(row, ACCRUE, since_s)

    def tested(self, job: Waiting, cpus: int) -> None:
        """The CPUs that the job would get are known: they count from the next refresh on."""
        if self._tested.get(job.number) == cpus:
            return
        self._tested[job.number] = cpus
        if job.number in self._fresh:
            if self._sized_at_once:
                for values in self._fresh[job.number][1]:
                    values[JOB_SIZE] = self._weighted_size(job, cpus)
            return
        for row in self._waiting[job.number][1]:
            self._rows.set(row, JOB_SIZE, self._weighted_size(job, cpus))

    def started(self, job: Waiting, now: int, tres: Amounts) -> None:
        """The job runs from now on, with these resources."""
        if not self._follows_running:
            self.gone(job)
        if self.usage is not None and job.account and job.account.association is not None:
            qos = self._accounts.qos.get(job.account.qos or "")
            rate = billed(tres, job.partition, self._conf)
            rate *= 1.0 if qos is None else qos.usage_factor
            self.usage.started(job.listed, job.account.association, now, rate)
            self._running.add(job.number)

    def ended(self, job: Waiting, now: int, *, again: bool = False) -> None:
        """The job runs no longer: its usage counts at once. again: whether it begins anew."""
        if self._follows_running and not again:
            self.gone(job)
        if self.usage is not None and job.number in self._running:
            self._running.remove(job.number)
            self.usage.ended(job.listed, now)

    def gone(self, job: Waiting) -> None:
        """The job waits no longer, or is over."""
        self._tested.pop(job.number, None)
        if self._fresh.pop(job.number, None) is not None:
            return
        _, rows = self._waiting.pop(job.number, (job, ()))
        if not rows:
            return
        if len(rows) > 1:
            del self._several[job.number]
        job.set_priorities([int(self._rows.get(row, VALUE)) for row in rows])
        for row in rows:
            self._rows.give_back(row)

    def refresh(self, now: int, heads: Mapping[str, int]) -> bool:
        """Bring usage and priorities up to date; whether that counts as a change of jobs.

        It does if the priority of some job that waits was set: of one that is not held, and with
        INCR_ONLY of one that grows.

        heads: where what is left of each array is in the list of all jobs, by its id.
        """
        self._take_rows()
        if self.usage is not None:
            self.usage.refresh(now, self._first_waiting(heads))
        factors = _NO_FACTORS if self.usage is None else self.usage.factors
        weights = self._weight_age, self._weight_fairshare
        only_grows = int("INCR_ONLY" in self._of.flags)
        changed = 0
        for block, places in self._rows.taken():
            changed |= evaluate(
                block, places, factors, now, self._of.max_age_s, *weights, only_grows
            )
        for number in self._several:
            self._copy_several(number)
        return bool(changed)

    def table(self) -> Mapping[str, NDArray]:
        """The weighted factors of all jobs that wait, as of the last refresh, by number.

        Columns: number, entry (which of its partitions), priority, FACTORS, nice.
        """
        self._take_rows()
        factors = {name: self._rows.column(k) for k, name in enumerate((*FACTORS, "nice"))}
        whole = {"number": NUMBER, "entry": ENTRY, "priority": VALUE}
        columns = {name: self._rows.column(k) for name, k in whole.items()} | factors
        shown = self._rows.column(FROZEN) == 0
        order = np.lexsort((columns["entry"], columns["number"]))
        order = order[shown[order]]
        return {name: column[order] for name, column in columns.items()}

    # Terms

    def _fixed(self, job: Waiting, entry: int) -> list[float]:
        """What of a row does not change with time: the values of all columns, in their order."""
        of, part, member = self._of, job.partitions[entry], job.account or _NOBODY
        request = job.request
        account = -1 if member.association is None else member.association
        fairshare = 0.0
        if account >= 0 and self.usage is not None:
            fairshare = self.usage.factor(account) * self._weight_fairshare
        key = part.name, account, member.qos
        terms = self._of_members.get(key)
        if terms is None:
            terms = self._of_members[key] = self._of_member(part, account, member.qos)
        association, partition, qos = terms
        cpus = request.cpus_on(request.least_nodes)
        size = first_size = self._weighted_size(job, cpus)
        if request.cpus_raised > 1 and self._conf.enforce_part_limits == "NO":
            # MaxMemPerCPU raises them when the job is first tried, which is after this.
            first_size = self._weighted_size(job, cpus // request.cpus_raised)
        tres = 0.0
        if of.weight_tres:
            tres = self._tres_term(requested_by(job, part, self._conf), part)
        several, nice = len(job.partitions) > 1, request.nice
        accrues_s = job.submit_s if self._accrues_always else 0
        value: float | None = 0 if job.held else request.priority
        is_frozen = value is not None
        if value is None:
            total: float = 0.0 + association + fairshare + first_size  # in the order of `evaluate`
            if several:
                total = partition + (total + qos + tres - nice)
            else:
                total = total + partition + qos + tres - nice
            value = int(total) if 1 <= total <= MOST else 1 if total < 1 else MOST
        return [
            *(0.0, association, fairshare, size, partition, qos, tres, nice),
            *(job.number, entry, accrues_s, account, value, job.listed),
            -1 if request.array is None else self._array_of(job),
            *(is_frozen, several),
        ]

    def _of_member(
        self, part: Partition, account: int, qos: str | None
    ) -> tuple[float, float, float]:
        """The terms of an association (-1: none), of a partition and of a QOS."""
        of, flags = self._of, self._of.flags
        raw = "NO_NORMAL_PART" in flags
        partition = part.job_factor if raw else part.job_factor / self._max_factor
        of_account = of_qos = 0.0
        if account >= 0 and self.usage is not None:
            given = self.usage.tree.associations[account].priority
            plain = "NO_NORMAL_ASSOC" in flags or not self._max_assoc
            of_account = given if plain else given / self._max_assoc
        found = self._accounts.qos.get(qos or "")
        if found is not None and found.priority:
            plain = "NO_NORMAL_QOS" in flags
            of_qos = found.priority if plain else found.priority / self._max_qos
        return (
            of_account * float(of.weight_assoc),
            partition * float(of.weight_partition),
            of_qos * float(of.weight_qos),
        )

    def _weighted_size(self, job: Waiting, cpus: int) -> float:
        """The factor of a job's size, 0 to 1, times its weight."""
        least, limit = job.least_nodes, 0
        if self._sized_at_once:
            limit = job.request.limit_min or job.partition.max_time_min or FOREVER_min
        key = least, cpus, limit
        found = self._of_sizes.get(key)
        if found is None:
            weight = float(self._of.weight_job_size)
            found = self._of_sizes[key] = self._size(least, cpus, limit) * weight
        return found

    def _size(self, least: int, cpus: int, limit: int) -> float:
        nodes, of_all = self._sizes.nodes, self._sizes.cpus
        if self._sized_at_once:
            size = max(least * float(of_all) / nodes, cpus) / limit / of_all
            size = 1.0 - size if self._of.favor_small else size
        elif self._of.favor_small:
            size = ((nodes - least) / nodes + (of_all - cpus) / of_all) / 2
        else:
            size = (least / nodes + cpus / of_all) / 2
        return min(max(size, 0.0), 1.0)

    def _tres_term(self, tres: Amounts, partition: Partition) -> float:
        raw, term = "NO_NORMAL_TRES" in self._of.flags, 0.0
        has = self._sizes.tres.get(partition.name, {})
        # Who asks for no memory is taken to ask for as much as the partition's first node has.
        memory = tres["mem"] or self._sizes.first_MiB.get(partition.name, 0) * tres["node"]
        for name, weight in self._of.weight_tres.items():
            amount = memory if name == "mem" else tres.get(name, 0)
            if raw:
                term += amount * weight
            elif amount and has.get(name):
                term += amount / has[name] * weight
        return term

    # All rows at once

    def _copy_several(self, number: int) -> None:
        if number in self._several:
            job, rows = self._several[number]
            job.priorities[:] = [int(self._rows.get(row, VALUE)) for row in rows]

    def _array_of(self, job: Waiting) -> int:
        """Which array a job is a task of that has never started; -1: none."""
        if job.restarts:
            return -1
        return self._arrays.setdefault(job.request.array_id, len(self._arrays))

    def _first_waiting(self, heads: Mapping[str, int]) -> list[tuple[int, int]]:
        """Where the first job that waits of each association is in the list, by place.

        Who is held, or whose priority was set by hand, does not count.
        """
        if self.usage is None or self.usage.fair_tree:
            return []
        places, arrays = self._rows.column(PLACE), self._rows.column(ARRAY)
        of_arrays = np.array([heads.get(name, 0) for name in self._arrays] or [0], dtype=np.int64)
        places = np.where(arrays >= 0, of_arrays[arrays], places)
        accounts = self._rows.column(ACCOUNT)
        counted = (self._rows.column(FROZEN) == 0) & (accounts >= 0)
        places, accounts = places[counted], accounts[counted]
        order = np.argsort(places, kind="stable")
        known, first = np.unique(accounts[order], return_index=True)
        return sorted(zip(places[order][first].tolist(), known.tolist(), strict=True))


Priorities = Basic | Multifactor


def priorities_of(
    conf: Conf, accounts: Accounts, tree: ShareTree, sizes: Sizes, began_s: int
) -> Priorities:
    """PriorityType's; began_s: when the controller starts, Unix seconds."""
    if conf.priority_type == MULTIFACTOR:
        return Multifactor(conf, accounts, tree, sizes, began_s)
    return Basic()


def prepare_kernels() -> None:
    """Use the kernel as it is used (see `kernels.building`)."""
    evaluate(np.zeros((1, COLUMNS)), np.zeros(0, np.intp), np.zeros(0), 0, 0, 0.0, 0.0, 0)
