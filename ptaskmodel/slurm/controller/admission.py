"""What jobs need in each partition, and which partitions take them, whatever else runs.

`Rules` asks at submissions, the schedulers whenever they look at a job. All of it is the same at
any time, and for all requests that differ in their ids, dates and users alone: it is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields
from math import inf

from ptaskmodel.slurm.accounts.fair_share import Member, Members
from ptaskmodel.slurm.conf.facts import EXCLUSIVE, Conf, Nodes, Partition
from ptaskmodel.slurm.controller.limits import (
    CONFIG,
    MEMORY,
    NODES,
    refused_by,
    rooms_of,
    waits_for,
    with_whole_limit,
)
from ptaskmodel.slurm.jobs.gpus import completed
from ptaskmodel.slurm.jobs.needs import (
    Need,
    first_nodes_of,
    limit_min,
    need_of,
    over_memory,
    with_cpus_for_memory,
    with_named_nodes,
)
from ptaskmodel.slurm.jobs.record import JobRecord
from ptaskmodel.slurm.jobs.request import JobRequest, asked_of_nodes, parsed

INVALID_FEATURE = "InvalidFeature"
# Limit and least time of a request, minutes.
Times = tuple[int | None, int | None]


_SLOTS = [Need.__dict__[each.name] for each in fields(Need)]
_LIMIT, _LEAST_LIMIT = Need.__dict__["limit_s"], Need.__dict__["least_limit_s"]


class Admission:
    """What jobs need, and which partitions take them.

    conf, nodes: the cluster. members: whose jobs are. picks: whether some partition takes not all
    accounts and QOSs, which only shows when a job is to start.
    """

    def __init__(self, conf: Conf, nodes: Nodes, members: Members) -> None:
        self._conf, self._nodes, self._members = conf, nodes, members
        self._rooms, self._first_nodes = rooms_of(nodes), first_nodes_of(nodes)
        self._features = {name for line in conf.nodes for name in line.features}
        self._selective = {partition.name for partition in conf.partitions if partition.selective}
        self._strict = conf.enforce_part_limits != "NO"
        self.picks = bool(self._selective) and not self._strict
        self._kinds: dict[tuple[object, ...], int] = {}
        self._needs: dict[tuple[object, ...], Need] = {}
        # The first need of each kind.
        self._first: dict[int, Need] = {}
        # Of requests alike in what they ask of nodes: their needs, by limits; those that are not
        # taken as they are have none here.
        self._alike: dict[tuple[object, ...], dict[Times, tuple[Need, ...]]] = {}
        self._waits: dict[tuple[object, ...], str | None] = {}
        self._refused: dict[tuple[object, ...], str | None] = {}

    # --- needs ------------------------------------------------------------------------------

    def taken_in(
        self, request: JobRequest, partitions: Sequence[Partition]
    ) -> tuple[JobRequest, tuple[Need, ...]]:
        """Return what Slurm makes of a `request` for `partitions`, and its needs there."""
        key = (request.partitions, *asked_of_nodes(request))
        times = request.limit_min, request.time_min_min
        alike = self._alike.get(key)
        if alike is None:
            taken = self._as_taken_in(request, partitions[0])
            if taken is not request:
                return taken, self.needs(taken, partitions)
            alike = self._alike[key] = {}
        if times not in alike:
            alike[times] = self.needs(request, partitions)
        return request, alike[times]

    def _as_taken_in(self, request: JobRequest, partition: Partition) -> JobRequest:
        """What Slurm makes of a request that is submitted to a partition."""
        if request.nodelist:
            request = with_named_nodes(request, self._nodes)
        with suppress(ValueError):
            request = completed(request, self._conf)
        first = self._first_nodes.get(partition.name)
        if first is not None:
            request = with_cpus_for_memory(request, partition, self._conf, first)
        return request

    def needs(
        self, request: JobRequest, partitions: Sequence[Partition], *, whole: bool = False
    ) -> tuple[Need, ...]:
        """Return what a `request` needs in each of its `partitions`.

        It is tried at its submission in that of the highest tier with the nodes it names, or in all
        if EnforcePartLimits is ALL: that may make it exclusive. whole: whether it has become so.
        """
        named, inside = self._nodes.mask(request.nodelist), self._nodes.partitions
        tried = [one for one in partitions if not named & ~inside[one.name]]
        if self._conf.enforce_part_limits != "ALL":
            tried = sorted(tried, key=lambda partition: -partition.tier)[:1]
        whole = whole or any(one.over_subscribe == EXCLUSIVE for one in tried)
        least = min(partition.min_nodes for partition in partitions)
        return tuple([self.need(request, each, least, whole) for each in partitions])

    def need(
        self, request: JobRequest, partition: Partition, min_nodes: int, exclusive: bool = False
    ) -> Need:
        """Return what a `request` needs in a `partition`: one object for all that ask the same.

        min_nodes: the least MinNodes of its partitions. exclusive: whether one of them has made it
        take whole nodes.
        """
        asks = (partition.name, min_nodes, exclusive, *asked_of_nodes(request))
        kind = self._kinds.setdefault(asks, len(self._kinds))
        key = kind, request.limit_min, request.time_min_min
        found = self._needs.get(key)
        if found is None:
            first = self._first.get(kind)
            if first is not None and not first.ways:
                found = _with_limits(first, request)
            else:
                conf, nodes = self._conf, self._nodes
                found = need_of(request, partition, conf, nodes, min_nodes, exclusive, kind)
                self._first[kind] = found
            self._needs[key] = found
        return found

    # --- partitions -------------------------------------------------------------------------

    def waits_for(self, job: JobRecord, partition: Partition, *, whole: bool = False) -> str | None:
        """What of a `partition` keeps a `job` waiting; it is the same at any time.

        whole: whether it must take the whole limit of the job, not the least time that it asks for.
        """
        request, member, name = job.request, job.account, partition.name
        least_min, longest_min = request.time_min_min, partition.max_time_min
        whole = whole and least_min is not None
        asked_min = request.limit_min if whole or least_min is None else least_min
        # Of its time nothing else matters.
        is_long = asked_min is not None and longest_min is not None and asked_min > longest_min
        qos_name, account = None if member is None else member.qos, None
        if name in self._selective and member is not None:
            account = self._members.account(member)
        raised = request.cpus_raised
        key = job.needs[0].kind, name, qos_name, account, whole, is_long, raised
        if key not in self._waits:
            qos = None if member is None else self._members.qos(member)
            asked = with_whole_limit(request) if whole else request
            reason = waits_for(asked, partition, qos, self._rooms[name], job.min_nodes)
            if reason is None and not self.picks and self._refused_in(job, partition):
                reason = CONFIG
            self._waits[key] = reason or self._over_memory(request, partition)
        return self._waits[key]

    def never_starts(self, job: JobRecord, partition: Partition) -> str | None:
        """Why a `partition` never starts a `job` it has taken in: its QOS, account or MinNodes.

        Without EnforcePartLimits; with it the job is refused, or waits.
        """
        if job.request.spread and job.needs[0].least > job.needs[0].most:
            return NODES
        if not self.picks or job.account is None:
            return None
        refused = self._members.qos_refused(job.account, partition)
        return refused or self._refused_in(job, partition)

    def _refused_in(self, job: JobRecord, partition: Partition) -> str | None:
        return None if job.account is None else self._members.refused(job.account, partition)

    def _over_memory(self, request: JobRequest, partition: Partition) -> str | None:
        first = self._first_nodes.get(partition.name)
        over = first is not None and over_memory(request, partition, self._conf, first)
        return MEMORY if over else None

    def refuses(self, job: JobRecord, member: Member) -> str | None:
        """Why no partition takes a `job` of a `member` in, if that is so."""
        needs: Sequence[Need] = job.needs
        key: tuple[object, ...] = tuple([need.kind for need in needs])
        if self._strict or job.request.time_min_min is not None:
            key = (*needs, member)
        if key not in self._refused:
            self._refused[key] = self._refuses(job, member)
        return self._refused[key]

    def _refuses(self, job: JobRecord, member: Member) -> str | None:
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
        qos = self._members.qos(member)
        over = {p.name for p in job.partitions if self._over_memory(job.request, p)}
        required = job.needs[0].required
        outside = {p.name for p in job.partitions if required & ~self._nodes.partitions[p.name]}
        refused = {p.name: self._members.refused(member, p) for p in job.partitions}
        return refused_by(
            self._conf, job.request, job.partitions, qos, self._rooms, over, outside, refused
        )


def _with_limits(need: Need, request: JobRequest) -> Need:
    """The need of a `request` that differs in its limits alone from that of a `need`, without ways.

    Its fields are copied one by one: so it takes a tenth of the time of `replace`.
    """
    other = object.__new__(Need)
    for slot in _SLOTS:
        slot.__set__(other, slot.__get__(need))
    limit, least = limit_min(request, need.partition), request.time_min_min
    _LIMIT.__set__(other, None if limit == inf else int(limit) * 60)
    _LEAST_LIMIT.__set__(other, None if least is None else least * 60)
    return other
