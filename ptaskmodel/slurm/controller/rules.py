"""Rules of a configuration: which jobs are refused, which may start, and in which order.

The controller's parts and the schedulers query them about associations, priorities, limits,
licences and arrays.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, repeat
from math import inf

from ptaskmodel.batch.machine.host_sets import Mask, members
from ptaskmodel.slurm.accounts.facts import (
    NO_RESERVE,
    Accounts,
    Amounts,
    billed,
    gres_names,
    plain_accounts,
    requested,
)
from ptaskmodel.slurm.accounts.fair_share import Member, Members, ShareTree
from ptaskmodel.slurm.accounts.limits import Limits
from ptaskmodel.slurm.conf.facts import LINEAR, NEVER, TREE, Conf, Gres, Nodes, Partition
from ptaskmodel.slurm.conf.reservations import Reserved
from ptaskmodel.slurm.controller.admission import DOWN, Admission, Licences, is_found_late
from ptaskmodel.slurm.controller.priority import priorities_of, sizes_of
from ptaskmodel.slurm.controller.queue import ARRAY_LIMIT
from ptaskmodel.slurm.jobs.constraints import by_constraint
from ptaskmodel.slurm.jobs.dependencies import Arrays, Dependencies
from ptaskmodel.slurm.jobs.needs import Need, nodes_fitting
from ptaskmodel.slurm.jobs.record import Allocation, JobRecord
from ptaskmodel.slurm.jobs.request import OF_USER, UNBOUNDED, JobRequest, preferring
from ptaskmodel.slurm.select.offers import asks_gpus
from ptaskmodel.slurm.select.plugin import Answers, Select, select_of

LICENCES = "Licenses"
INVALID_FEATURE, INVALID_RESERVATION = "InvalidFeature", "InvalidReservation"
NOT_ADMITTED = "ReservationNotAllowed"
# Why jobs are refused of which Slurm has made a record.
WITH_RECORD = frozenset((INVALID_FEATURE, INVALID_RESERVATION, NOT_ADMITTED))


class Rules:
    """The rules of a configuration, with accounts if there are some.

    conf, nodes: the cluster. boot_s: when the controller starts, Unix seconds. reserved: advance
    reservations. requests: all jobs that will come. unreserved: whether neither advance
    reservations nor limits of accounts matter, nor whom partitions let start. owning: whether some
    jobs share their nodes with those of their own user alone. frees_alone: whether nothing but
    which nodes are free matters to where jobs start.
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
        self.waits, self.waits_again = self.priorities.at_submit, self.priorities.again
        self._conf, self._nodes, self._linear = conf, nodes, conf.select_type == LINEAR
        # Empty machines: one without notes of GPUs, and one on which they are made.
        self._of_empty = Answers(select_of(conf, nodes), conf)
        self._noting = select_of(conf, nodes)
        self._notes_of_empty = Answers(self._noting, conf)
        self._possible: dict[Hashable, Allocation | None] = {}
        self._bounded_needs: dict[tuple[Need, int], Need] = {}
        self._askers: dict[tuple[str | None, ...], Member | str] = {}
        self.limits = Limits(conf, self.accounts, tree, boot_s)
        self._admission = admission = Admission(conf, nodes, self.members)
        self.taken_in, self.need = admission.taken_in, admission.need
        self.waits_for, self.never_starts = admission.waits_for, admission.never_starts
        lax = (name for name, qos in self.accounts.qos.items() if NO_RESERVE in qos.flags)
        self._lax = frozenset(lax)
        plain = not (self.limits.limit or admission.picks or self._lax)
        self.unreserved = plain and self.reserved.empty
        self.owning = any(partition.exclusive_user for partition in conf.partitions) or any(
            request.exclusive == OF_USER for request in requests
        )
        self.frees_alone = self._linear and not (
            conf.gang
            or conf.topology_plugin == TREE
            or conf.preempt_type != NEVER
            or self.owning
            or self.limits.enforced
        )
        self._has_gres = any(line.gres for line in nodes.lines)
        linked = any(request.dependency is not None for request in requests)
        self.dependencies, self._licences = Dependencies(linked), Licences(conf.licenses)
        self.arrays = Arrays(conf, requests)
        self._arrays_refused: dict[str, str | None] = {}
        self._first: dict[str, int] = {}

    def first_of_array(self, job: JobRecord) -> int:
        """The number of the first job of the array of a `job`."""
        return self._first.setdefault(job.request.array_id, job.number)

    def takes_whole(self, job: JobRecord, partition: Partition) -> bool:
        """Return whether a `partition` takes a `job` with its whole limit."""
        return self.waits_for(job, partition, whole=True) is None

    def reserves_none(self, job: JobRecord) -> bool:
        """Return whether the QOS of a `job` keeps backfill from planning it for later."""
        return bool(self._lax) and job.account is not None and job.account.qos in self._lax

    def could_start(self, job: JobRecord, now: int) -> bool:
        """Whether a job fits on an empty machine, or asks for more than its partition takes.

        In a reservation: on its nodes, once it has begun. Of one that is held nobody asks.
        """
        if job.request.hold:
            return True
        enforced, several = self._conf.enforce_part_limits, len(job.request.partitions) > 1
        alone = job.reservation is None and not several
        if alone and self._at_best(job.needs[0]) is not None:
            return True
        # Of its nodes: without room for its tasks on any it is refused.
        barred = not job.request.is_overfull and any(n.least > n.most for n in job.needs)
        downs = [one for one in job.partitions if one.state == "DOWN"] if several else []
        if downs and barred and enforced == "ALL":
            return False
        if job.reservation is not None:
            within = self._nodes.usable & job.reservation.nodes
            if now < job.reservation.start_s or any(self.fits(n, within) for n in job.needs):
                return True
        elif self._at_best(job.needs[0]) is not None or any(map(self.could_ever, job.needs)):
            return True
        if any(self.never_starts(job, partition) for partition in job.partitions):
            return True
        if not several:
            return barred or self.waits_for(job, job.partitions[0], whole=True) not in (None, DOWN)
        # The one that is tried last says what becomes of the job.
        least, _ = job.request.nodes_asked()
        last = min(reversed(job.partitions), key=lambda partition: partition.tier)
        if last in downs or (downs and enforced == "ALL"):
            return True
        return last.max_nodes is not None and least > last.max_nodes

    def needs(self, job: JobRecord, whole: bool = False) -> tuple[Need, ...]:
        """What a job needs in each of its partitions. whole: whether it has become exclusive."""
        request = preferring(job.request) if job.prefers else job.request
        return self._admission.needs(request, job.partitions, whole=whole)

    def use_features(self, job: JobRecord, *, prefers: bool) -> None:
        """Let a job be tried with the features that it prefers, or with those that it must have."""
        if job.prefers != prefers:
            job.prefer(prefers)
            job.set_needs(self.needs(job, whole=all(need.whole for need in job.needs)))
            if self.limits.enforced:
                job.set_needs(self.within_limits(job))

    def looked_at(self, job: JobRecord, need: Need) -> Mask:
        """Return the nodes where a `job` with a `need` is tried: some lack generic resources."""
        if not job.request.gres:
            return need.nodes
        request = replace(preferring(job.request) if job.prefers else job.request, gres=())
        return nodes_fitting(request, need.partition, self._nodes, self._conf)

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
        kind = need.kind
        if kind not in self._possible:
            self._possible[kind] = self.alone(need, self._nodes.usable)
        return self._possible[kind]

    # --- submission -------------------------------------------------------------------------

    def refuses(self, job: JobRecord, now: int) -> str | None:
        """Why a job is refused at its submission, if it is."""
        request, partition = job.request, job.partitions[0]
        asker = request.user, request.account, request.qos, partition.name
        member = self._askers.get(asker)
        if member is None:
            member = self._askers[asker] = self.members.of(request, partition)
        if isinstance(member, str):
            return member
        job.set_account(member)
        if request.nodelist:
            if (request.min_nodes or 0) > (request.max_nodes or UNBOUNDED):
                return "InvalidNodeCount"
            if set(request.nodelist) & set(request.exclude):
                return "InvalidNodeName"
        if request.array is not None and self.arrays.refuses(request):
            return "InvalidArray"
        if request.licenses and self._licences.refuses(request):
            return "InvalidLicense"
        refused = self._admission.refuses(job, member)
        if refused is None and self.limits.enforced:
            refused = self._refused_by_limits(job)
        if refused is None or is_found_late(job, refused):
            refused = self._refused_with_record(job, member, now) or refused
        return refused

    def _refused_with_record(self, job: JobRecord, member: Member, now: int) -> str | None:
        """Why a job is refused after Slurm made a record of it, which it removes again."""
        request = job.request
        if self._admission.lacks_features(request):
            return INVALID_FEATURE
        if request.reservation is None:
            return None
        reservation = self.reserved.named(request.reservation, now)
        if reservation is None:
            return INVALID_RESERVATION
        job.set_reservation(reservation)
        accounts = self.members.accounts(request.account, member)
        return None if reservation.admits(request.user, accounts) else NOT_ADMITTED

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
        if self.limits.enforced:
            self.limits.submitted(job)
        self.dependencies.add(job)
        if job.request.array is not None:
            self.arrays.submitted(job)

    # --- waiting ----------------------------------------------------------------------------

    def blocks(self, job: JobRecord, partition: Partition) -> str | None:
        """Why a job may not start now whatever nodes are free."""
        reason = self.waits_for(job, partition)
        if reason is not None:
            return reason
        request = job.request
        if request.array is not None and self.arrays.is_full(job):
            return ARRAY_LIMIT
        if request.licenses and self._licences.missing(request):
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

    def within_limits(self, job: JobRecord) -> tuple[Need, ...]:
        """What a job needs, with as many nodes at most as its limits allow."""
        most = self.limits.most_nodes
        return tuple([self._bounded(need, most(job, need.partition)) for need in job.needs])

    def _bounded(self, need: Need, limit: tuple[int, str] | None) -> Need:
        if limit is None or not need.least <= limit[0] < need.most:
            return need
        key = need, limit[0]
        if key not in self._bounded_needs:
            wanted = min(need.wanted, limit[0])
            kind = need.kind, limit[0]
            self._bounded_needs[key] = replace(need, most=limit[0], wanted=wanted, kind=kind)
        return self._bounded_needs[key]

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

        planned: whether that is for later; then nodes that a limit counts already are counted anew,
        unless the job names them. So are those of victims that are to be killed, where cores count:
        found has none then.
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
            if size is not None and alone is not None:
                asked |= self._gres(alone.gres) | self._whole_gres(need, alone)
            tres = self._billed(asked, partition)
            return self.limits.exceeds(job, partition, tres, (), least_time=least_time)
        tres = self._tres(job, found, partition, planned=planned)
        later = planned or not (found.cores or self._linear)
        nodes = () if later else tuple(members(found.nodes))
        named = job.needs[job.partitions.index(partition)].required
        return self.limits.exceeds(job, partition, tres, nodes, named=named, least_time=least_time)

    def tested_at_submit(self, job: JobRecord, select: Select) -> None:
        """A job waits: it was tried on an empty machine.

        select/linear has found how many CPUs it takes, the others which nodes have GPUs for it.
        """
        if select.favours is not None and not job.request.hold:
            select.forget_favours(self._nodes.partitions[job.partitions[0].name])
            self.note_gpus(job.needs[0], select)
        if self._linear:
            for need in job.needs:
                if (found := self._at_best(need)) is not None:
                    self.tested(job, found)
                    break

    def note_gpus(self, need: Need, select: Select) -> None:
        """A job is tried on an empty machine, which notes the GPUs that it finds."""
        if select.favours is not None and asks_gpus(need):
            if self._noting.favours is not select.favours:
                self._noting.follow_favours(select.favours)
            self._notes_of_empty.place(need, need.nodes & self._nodes.usable, None)

    def tested(self, job: JobRecord, found: Allocation) -> None:
        """Where a job could run has been found: it is as large as that."""
        self.tested_cpus(job, self.cpus_of(found))

    def tested_cpus(self, job: JobRecord, cpus: int) -> None:
        """A job was found to take so many CPUs, and with it all that waits of its array."""
        if job.tested_cpus != cpus:
            alike = (job,) if job.request.array is None else self.arrays.of_one_record(job)
            for each in alike:
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
        if self.limits.enforced or job.partition.billing_weights:
            tres = self._tres(job, allocation, job.partition)
        else:
            tres = {"cpu": self.cpus_of(allocation)}  # nobody asks for more
        self.priorities.started(job, now, tres)
        if self.limits.enforced:
            nodes = tuple(members(allocation.nodes))
            self.limits.started(job, job.partition, tres, nodes, now, job.end_s)
        if job.request.licenses:
            self._licences.take(job.request)
        if job.request.array is not None:
            self.arrays.started(job)

    def ended(self, job: JobRecord, now: int, *, again: bool) -> None:
        """A job that ran is over, or begins anew later."""
        self.priorities.ended(job, now, again=again)
        if self.limits.enforced:
            self.limits.ended(job, now)
            if not again:
                self.limits.gone(job)
        if job.request.array is not None:
            self.arrays.ended(job)

    def clean(self, job: JobRecord) -> None:
        """The nodes of a job that is over are clean: not before are its licences free."""
        if job.request.licenses:
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

    def relieved_s(self, jobs: Iterable[JobRecord]) -> float:
        """When usage has decayed enough for the first of some `jobs`, if no job runs; 0: now."""
        if not self.limits.spends:
            return 0.0
        relieved_s = self.limits.relieved_s
        dates = [min(relieved_s(job, each) for each in job.partitions) for job in jobs]
        date = min((date for date in dates if 0 < date < inf), default=0.0)
        return date + (self.priorities.period_s or 0) if date else date

    def cpus_of(self, allocation: Allocation) -> int:
        """How many CPUs an allocation has."""
        if not self._linear:
            return sum(allocation.cpus)
        if self._nodes.alike:
            return allocation.size * self._nodes.cpus[0]
        return sum(self._nodes.cpus[k] for k in members(allocation.nodes))

    def _tres(
        self, job: JobRecord, allocation: Allocation, partition: Partition, *, planned: bool = False
    ) -> Amounts:
        """What a job has of each resource, or would have in a partition. planned: later."""
        found: dict[str, float] = {"cpu": self.cpus_of(allocation), "node": allocation.size}
        found["mem"] = sum(allocation.memory_MiB)
        found |= self._gres(allocation.gres or repeat(job.request.gres, allocation.size))
        if not planned:
            found |= self._whole_gres(job.needs[job.partitions.index(partition)], allocation)
        for name, count in job.request.licenses.items():
            found[f"license/{name}"] = count
        return self._billed(found, partition)

    def _whole_gres(self, need: Need, allocation: Allocation) -> dict[str, int]:
        """All generic resources of the nodes of a job that shares them with none."""
        if not (need.whole and need.share == 1 and self._has_gres):
            return {}
        return self._gres(self._nodes.lines[node].gres for node in members(allocation.nodes))

    @staticmethod
    def _gres(given: Iterable[Sequence[Gres]]) -> dict[str, int]:
        """How many generic resources of each name are `given` on some nodes."""
        found: dict[str, int] = {}
        for one in chain.from_iterable(given):
            for name in gres_names(one.name, one.type):
                found[name] = found.get(name, 0) + one.count
        return found

    def _billed(self, tres: Amounts, partition: Partition) -> Amounts:
        """The same, with what it is billed for."""
        more = {"billing": int(billed(tres, partition, self._conf))} if self.limits.enforced else {}
        return {**tres, **more}
