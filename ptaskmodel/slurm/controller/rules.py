"""Rules of a configuration: which jobs are refused, which may start, and in which order.

The controller's parts and the schedulers query them about associations, priorities, limits,
licences and arrays.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain, repeat

from ptaskmodel.batch.machine.host_sets import Mask, members
from ptaskmodel.slurm.accounts.facts import (
    Accounts,
    Amounts,
    billed,
    gres_names,
    plain_accounts,
    requested,
)
from ptaskmodel.slurm.accounts.fair_share import Member, Members, ShareTree
from ptaskmodel.slurm.accounts.limits import Limits
from ptaskmodel.slurm.conf.facts import EXCLUSIVE, LINEAR, Conf, Nodes, Partition
from ptaskmodel.slurm.conf.reservations import Reserved
from ptaskmodel.slurm.controller.limits import (
    CONFIG,
    DOWN,
    MEMORY,
    NODES,
    Licences,
    refused_by,
    rooms_of,
    waits_for,
    with_whole_limit,
)
from ptaskmodel.slurm.jobs.constraints import by_constraint
from ptaskmodel.slurm.jobs.dependencies import Arrays, Dependencies
from ptaskmodel.slurm.jobs.gpus import completed
from ptaskmodel.slurm.jobs.needs import (
    Need,
    first_nodes_of,
    need_of,
    over_memory,
    with_cpus_for_memory,
    with_named_nodes,
)
from ptaskmodel.slurm.jobs.record import Allocation, JobRecord
from ptaskmodel.slurm.jobs.request import OF_USER, UNBOUNDED, JobRequest, asked_of_nodes, parsed
from ptaskmodel.slurm.queue.priority import priorities_of, sizes_of
from ptaskmodel.slurm.queue.queue import ARRAY_LIMIT
from ptaskmodel.slurm.select.offers import asks_gpus
from ptaskmodel.slurm.select.plugin import Answers, Select, select_of

LICENCES, INVALID_FEATURE = "Licenses", "InvalidFeature"


class Rules:
    """The rules of a configuration, with accounts if there are some.

    conf, nodes: the cluster. boot_s: when the controller starts, Unix seconds. reserved: advance
    reservations. requests: all jobs that will come. unreserved: whether neither advance
    reservations nor limits of accounts matter, nor whom partitions let start. owning: whether some
    jobs share their nodes with those of their own user alone.
    """

    def __init__(
        self,
        conf: Conf,
        nodes: Nodes,
        boot_s: int,
        accounts: Accounts | None = None,
        reserved: Reserved | None = None,
        requests: Sequence[JobRequest] = (),
    ) -> None:
        self.accounts = accounts or plain_accounts()
        self.reserved = (reserved or Reserved()).copy()
        tree = ShareTree(self.accounts)
        self.members = Members(conf, self.accounts, tree)
        self.priorities = priorities_of(conf, self.accounts, tree, sizes_of(conf, nodes), boot_s)
        self._conf, self._nodes, self._linear = conf, nodes, conf.select_type == LINEAR
        self._empty = select_of(conf, nodes)
        self._of_empty = Answers(self._empty, conf)
        self._kinds: dict[tuple[object, ...], int] = {}
        self._possible: dict[Hashable, Allocation | None] = {}
        self._needs: dict[tuple[object, ...], Need] = {}
        self._waits: dict[tuple[object, ...], str | None] = {}
        self._refused: dict[tuple[object, ...], str | None] = {}
        self._features = {name for line in conf.nodes for name in line.features}
        self._rooms, self._first_nodes = rooms_of(nodes), first_nodes_of(nodes)
        self.limits = Limits(conf, self.accounts, tree, boot_s)
        enforced = conf.enforce_part_limits != "NO"
        self._picks = not enforced and any(one.selective for one in conf.partitions)
        self.unreserved = not (self.limits.limit or self._picks) and self.reserved.empty
        self.owning = any(partition.exclusive_user for partition in conf.partitions) or any(
            request.exclusive == OF_USER for request in requests
        )
        self.dependencies, self._licences = Dependencies(), Licences(conf.licenses)
        self.arrays = Arrays(conf, requests)
        self._arrays_refused: dict[str, str | None] = {}
        self._first: dict[str, int] = {}

    def place(self, job: JobRecord) -> int:
        """What the queue puts first of equals: the number of a job, or of its array's first."""
        return self._first.setdefault(job.request.array_id, job.number)

    def could_start(self, job: JobRecord, now: int) -> bool:
        """Whether a job fits on an empty machine, or asks for more than its partition takes.

        In a reservation: on its nodes, once it has begun. Of one that is held nobody asks.
        """
        if job.request.hold:
            return True
        if job.reservation is not None:
            within = self._nodes.usable & job.reservation.nodes
            if now < job.reservation.start_s or any(self.fits(n, within) for n in job.needs):
                return True
        elif any(map(self.could_ever, job.needs)):
            return True
        if any(self.never_starts(job, partition) for partition in job.partitions):
            return True
        if len(job.partitions) == 1:
            return self.waits_for(job, job.partitions[0], whole=True) not in (None, DOWN)
        # The one that is tried last says what becomes of the job.
        least, _ = job.request.nodes_asked()
        last = min(reversed(job.partitions), key=lambda partition: partition.tier)
        return last.max_nodes is not None and least > last.max_nodes

    def waits_for(self, job: JobRecord, partition: Partition, *, whole: bool = False) -> str | None:
        """What of a `partition` keeps a `job` waiting; it is the same at any time.

        whole: whether it must take the whole limit of the job, not the least time that it asks for.
        """
        whole = whole and job.request.time_min_min is not None
        qos_name = None if job.account is None else job.account.qos
        account = None if job.account is None else self.members.account(job.account)
        key = job.needs[0], partition.name, qos_name, account, whole
        if key not in self._waits:
            qos = None if job.account is None else self.members.qos(job.account)
            request = with_whole_limit(job.request) if whole else job.request
            reason = waits_for(request, partition, qos, self._rooms[partition.name], job.min_nodes)
            if reason is None and not self._picks and self._refused_in(job, partition):
                reason = CONFIG
            self._waits[key] = reason or self._over_memory(job.request, partition)
        return self._waits[key]

    def never_starts(self, job: JobRecord, partition: Partition) -> str | None:
        """Why a `partition` never starts a `job` it has taken in: its QOS, account or MinNodes.

        Without EnforcePartLimits; with it the job is refused, or waits.
        """
        if job.request.spread and job.needs[0].least > job.needs[0].most:
            return NODES
        if not self._picks or job.account is None:
            return None
        return self.members.qos_refused(job.account, partition) or self._refused_in(job, partition)

    def _refused_in(self, job: JobRecord, partition: Partition) -> str | None:
        return None if job.account is None else self.members.refused(job.account, partition)

    def _over_memory(self, request: JobRequest, partition: Partition) -> str | None:
        first = self._first_nodes.get(partition.name)
        over = first is not None and over_memory(request, partition, self._conf, first)
        return MEMORY if over else None

    def as_taken_in(self, request: JobRequest, partition: Partition) -> JobRequest:
        """What Slurm makes of a request that is submitted to a partition."""
        if request.nodelist:
            request = with_named_nodes(request, self._nodes)
        with suppress(ValueError):
            request = completed(request, self._conf)
        first = self._first_nodes.get(partition.name)
        if first is not None:
            request = with_cpus_for_memory(request, partition, self._conf, first)
        return request

    def could_ever(self, need: Need) -> bool:
        """Whether a job fits on an empty machine."""
        return self._at_best(need) is not None

    def fits(self, need: Need, within: Mask) -> bool:
        """Return whether a job fits on some nodes without other jobs."""
        return self.alone(need, within) is not None

    def alone(self, need: Need, within: Mask) -> Allocation | None:
        """Return what a job with a `need` would get of the nodes `within` without other jobs."""
        need, ask = self._whenever(need), partial(self._of_empty.place, leaves=None)
        return by_constraint(need, within, ask)

    def _whenever(self, need: Need) -> Need:
        """What select/linear looks at when it asks whether a job fits at all: not its memory."""
        if not self._linear or need.memory is None:
            return need
        ways = tuple(replace(way, memory=None) for way in need.ways)
        return replace(need, memory=None, ways=ways)

    def _at_best(self, need: Need) -> Allocation | None:
        """What a job would get of an empty machine."""
        if need.kind not in self._possible:
            self._possible[need.kind] = self.alone(need, self._nodes.usable)
        return self._possible[need.kind]

    def needs(self, job: JobRecord, whole: bool = False) -> list[Need]:
        """What a job needs in each of its partitions.

        It is tried at its submission in that of the highest tier with the nodes it names, or in all
        if EnforcePartLimits is ALL: that may make it exclusive. whole: whether it has become so.
        """
        named, inside = self._nodes.mask(job.request.nodelist), self._nodes.partitions
        tried = [one for one in job.partitions if not named & ~inside[one.name]]
        if self._conf.enforce_part_limits != "ALL":
            tried = sorted(tried, key=lambda partition: -partition.tier)[:1]
        whole = whole or any(one.over_subscribe == EXCLUSIVE for one in tried)
        return [self.need(job.request, each, job.min_nodes, whole) for each in job.partitions]

    def need(
        self, request: JobRequest, partition: Partition, min_nodes: int, exclusive: bool = False
    ) -> Need:
        """Return what a job needs in a partition: one object for all jobs with the same request.

        min_nodes: the least MinNodes of its partitions.
        """
        asks = (partition.name, min_nodes, exclusive, *asked_of_nodes(request))
        kind = self._kinds.setdefault(asks, len(self._kinds))
        key = kind, request.limit_min, request.time_min_min
        if key not in self._needs:
            found = need_of(request, partition, self._conf, self._nodes, min_nodes, exclusive, kind)
            self._needs[key] = found
        return self._needs[key]

    # --- submission -------------------------------------------------------------------------

    def refuses(self, job: JobRecord, now: int) -> str | None:
        """Why a job is refused at its submission, if it is."""
        member = self.members.of(job.request, job.partitions[0])
        if isinstance(member, str):
            return member
        job.set_account(member)
        request = job.request
        if request.nodelist and (request.min_nodes or 0) > (request.max_nodes or UNBOUNDED):
            return "InvalidNodeCount"
        if set(request.nodelist) & set(request.exclude):
            return "InvalidNodeName"
        if self.arrays.refuses(request):
            return "InvalidArray"
        if request.licenses and self._licences.refuses(request):
            return "InvalidLicense"
        if request.reservation is not None:
            reservation = self.reserved.named(request.reservation, now)
            if reservation is None:
                return "InvalidReservation"
            accounts = self.members.accounts(request.account, member)
            job.set_reservation(reservation)
            if not reservation.admits(request.user, accounts):
                return "ReservationNotAllowed"
        key = tuple(job.needs), member, request.account, request.qos
        if key not in self._refused:
            self._refused[key] = self._partitions_refuse(job, member)
        return self._refused[key] or self._refused_by_limits(job)

    def _partitions_refuse(self, job: JobRecord, member: Member) -> str | None:
        """Why no partition takes a job, if that is so: the same for all alike."""
        try:
            asked = parsed(job.request.constraint).names
        except ValueError:
            return INVALID_FEATURE
        if not asked <= self._features:
            return INVALID_FEATURE
        try:
            completed(job.request, self._conf)
        except ValueError:
            return "InvalidGRES"
        qos = self.members.qos(member)
        over = {p.name for p in job.partitions if self._over_memory(job.request, p)}
        required = job.needs[0].required
        outside = {p.name for p in job.partitions if required & ~self._nodes.partitions[p.name]}
        refused = {p.name: self.members.refused(member, p) for p in job.partitions}
        return refused_by(
            self._conf, job.request, job.partitions, qos, self._rooms, over, outside, refused
        )

    def _refused_by_limits(self, job: JobRecord) -> str | None:
        """Why limits to submissions refuse a job; the tasks of an array come together."""
        if job.request.array is None:
            return self.limits.refuses(job)
        name = job.request.array_id
        if name not in self._arrays_refused:
            self._arrays_refused[name] = self.limits.refuses(job, self.arrays.size(job.request))
        return self._arrays_refused[name]

    def submitted(self, job: JobRecord, now: int) -> None:
        """Register a submitted job: its dependencies, and the limits that it counts for."""
        self.limits.submitted(job)
        self.dependencies.add(job)
        self.arrays.submitted(job)

    def waits(self, job: JobRecord, now: int) -> None:
        """A job waits, for the first time or again: its priorities."""
        self.priorities.at_submit(job, now)

    def waits_again(self, job: JobRecord, now: int) -> None:
        """A job waits again."""
        self.priorities.again(job, now)

    # --- waiting ----------------------------------------------------------------------------

    def eligible(self, job: JobRecord, since_s: int) -> None:
        """A job may be looked at since a date: its age grows."""
        self.priorities.accrue(job, since_s)

    def blocks(self, job: JobRecord, partition: Partition) -> str | None:
        """Why a job may not start now whatever nodes are free."""
        reason = self.waits_for(job, partition)
        if reason is not None:
            return reason
        if self.arrays.is_full(job):
            return ARRAY_LIMIT
        if self.lacks_licences(job):
            return LICENCES
        return self.limits.blocks(job, partition) if self.limits.enforced else None

    def limited(self, job: JobRecord) -> str | None:
        """The limit that keeps a job that is submitted from being tried in any partition."""
        found = [
            self.limits.blocks(job, need.partition) or self._needs_too_many(job, need)
            for need in job.needs
        ]
        return found[0] if all(found) else None

    def _needs_too_many(self, job: JobRecord, need: Need) -> str | None:
        """The limit that never lets a job have as many nodes as it needs."""
        most = self.limits.most_nodes(job, need.partition)
        return None if most is None or need.least <= most[0] else most[1]

    def within_limits(self, job: JobRecord) -> list[Need]:
        """What a job needs, with as many nodes at most as its limits allow."""
        return [
            self._bounded(need, self.limits.most_nodes(job, need.partition)) for need in job.needs
        ]

    def _bounded(self, need: Need, limit: tuple[int, str] | None) -> Need:
        if limit is None or not need.least <= limit[0] < need.most:
            return need
        key = need, limit[0]
        if key not in self._needs:
            wanted = min(need.wanted, limit[0])
            kind = need.kind, limit[0]
            self._needs[key] = replace(need, most=limit[0], wanted=wanted, kind=kind)
        return self._needs[key]

    def lacks_licences(self, job: JobRecord) -> bool:
        """Whether a job asks for more licences than are free."""
        return self._licences.missing(job.request)

    def exceeds(
        self,
        job: JobRecord,
        partition: Partition,
        found: Allocation | None,
        *,
        planned: bool = False,
        tried: Mask = 0,
        least_time: bool = False,
    ) -> str | None:
        """The limit that keeps a job from what it would get, or from what it asked for.

        planned: whether that is for later; then nodes that a limit counts already are counted anew.
        tried: nodes on which it does not fit now; what it would get of them alone counts.
        least_time: whether it gets the least time that it asks for, as from backfill.
        """
        if not self.limits.limit:
            return None
        if found is None:
            need = job.needs[job.partitions.index(partition)]
            alone = self.alone(need, tried) or self._at_best(need)
            size = None if alone is None or need.required & ~tried else alone.size
            asked = requested(job.request, partition, self._conf, size, job.tested_cpus or None)
            tres = self._billed(asked, partition)
            return self.limits.exceeds(job, partition, tres, (), least_time=least_time)
        tres = self._tres(job, found, partition)
        nodes = () if planned else tuple(members(found.nodes))
        return self.limits.exceeds(job, partition, tres, nodes, least_time=least_time)

    def tested_at_submit(self, job: JobRecord, select: Select) -> None:
        """A job waits: it was tried on an empty machine.

        select/linear has found how many CPUs it takes, the others which nodes have GPUs for it.
        """
        if select.favours is not None and not job.request.hold:
            select.forget_favours(self._nodes.partitions[job.partitions[0].name])
            self.note_gpus(job.needs[0], select)
        if self._linear:
            found = next(filter(None, map(self._at_best, job.needs)), None)
            if found is not None:
                self.tested(job, found)

    def note_gpus(self, need: Need, select: Select) -> None:
        """A job is tried on an empty machine, which notes the GPUs that it finds."""
        if select.favours is not None and asks_gpus(need):
            self._empty.follow_favours(select.favours)
            self._of_empty.place(need, need.nodes & self._nodes.usable, None)
            self._empty.follow_favours(None)

    def tested(self, job: JobRecord, found: Allocation) -> None:
        """Where a job could run has been found: it is as large as that."""
        self.tested_cpus(job, self.cpus_of(found))

    def tested_cpus(self, job: JobRecord, cpus: int) -> None:
        """A job was found to take so many CPUs, and with it all that waits of its array."""
        if job.tested_cpus != cpus:
            for each in self.arrays.of_one_record(job):
                each.set_tested_cpus(cpus)
                self.priorities.tested(each, cpus)

    def keep_least_limit(self, job: JobRecord) -> None:
        """What is left of an array keeps the limit of its task `job`: none was tested after it."""
        least = job.request.time_min_min
        if least is not None and (job.request.limit_min is None or job.request.limit_min > least):
            for each in self.arrays.of_one_record(job):
                each.change_request(replace(each.request, limit_min=least))
                each.set_needs(self.needs(each))
                each.set_needs(self.within_limits(each))

    # --- lives ------------------------------------------------------------------------------

    def started(self, job: JobRecord, now: int) -> None:
        """A job has started."""
        allocation = job.allocation
        assert allocation is not None
        tres = self._tres(job, allocation, job.partition)
        self.priorities.started(job, now, tres)
        nodes = tuple(members(allocation.nodes)) if self.limits.enforced else ()
        self.limits.started(job, job.partition, tres, nodes, now, job.end_s)
        self._licences.take(job.request)
        self.arrays.started(job)

    def ended(self, job: JobRecord, now: int, *, again: bool) -> None:
        """A job that ran is over, or begins anew later."""
        self.priorities.ended(job, now)
        self.limits.ended(job, now)
        if not again:
            self.limits.gone(job)
        self.arrays.ended(job)

    def clean(self, job: JobRecord) -> None:
        """The nodes of a job that is over are clean: not before are its licences free."""
        self._licences.give_back(job.request)

    def gone(self, job: JobRecord, now: int) -> None:
        """A job that waited is over."""
        self.priorities.gone(job)
        self.limits.gone(job)
        self.arrays.gone(job)

    def refresh(self, now: int, heads: Mapping[str, int]) -> bool:
        """Compute all priorities anew; whether that counts as a change of jobs.

        heads: where what is left of each array is in the list of all jobs, by its id.
        """
        self.limits.refresh(now)
        return self.priorities.refresh(now, heads)

    def must_end(self, job: JobRecord, now: int) -> bool:
        """Whether a job that runs is over a limit to what may be used."""
        allocation = job.allocation
        assert allocation is not None
        tres = self._tres(job, allocation, job.partition)
        return self.limits.must_end(job, tres, job.ran_s + now - job.since_s)

    def may_start_s(self, job: JobRecord) -> float:
        """When usage has decayed enough for a job, if no job runs; 0: now."""
        date = min(self.limits.relieved_s(job, partition) for partition in job.partitions)
        return date + (self.priorities.period_s or 0) if date else date

    def cpus_of(self, allocation: Allocation) -> int:
        """How many CPUs an allocation has."""
        if not self._linear:
            return sum(allocation.cpus)
        if self._nodes.alike:
            return allocation.size * self._nodes.cpus[0]
        return sum(self._nodes.cpus[k] for k in members(allocation.nodes))

    def _tres(self, job: JobRecord, allocation: Allocation, partition: Partition) -> Amounts:
        """What a job has of each resource, or would have in a partition."""
        found: dict[str, float] = {"cpu": self.cpus_of(allocation), "node": allocation.size}
        found["mem"] = sum(allocation.memory_MiB)
        given = allocation.gres or repeat(job.request.gres, allocation.size)
        for one in chain.from_iterable(given):
            for name in gres_names(one.name, one.type):
                found[name] = found.get(name, 0) + one.count
        for name, count in job.request.licenses.items():
            found[f"license/{name}"] = count
        return self._billed(found, partition)

    def _billed(self, tres: Amounts, partition: Partition) -> Amounts:
        """The same, with what it is billed for."""
        more = {"billing": int(billed(tres, partition, self._conf))} if self.limits.enforced else {}
        return {**tres, **more}
