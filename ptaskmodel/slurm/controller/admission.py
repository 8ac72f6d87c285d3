"""Which partitions take a job: what it needs there, and limits of partitions, licences and dates.

`Rules` asks for needs at submissions, the schedulers whenever they look at a job. They are the same
at any time, and for all requests that differ in their ids, dates and users alone: they are kept.
`Rules` also tests partitions and licences; `Submission` has deadlines, `JobList` old records.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from math import inf
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple

from ptaskmodel.batch.machine.host_sets import members
from ptaskmodel.slurm.accounts.facts import Qos
from ptaskmodel.slurm.accounts.fair_share import Member, Members
from ptaskmodel.slurm.conf.facts import EXCLUSIVE, Conf, Nodes, Partition
from ptaskmodel.slurm.jobs import record
from ptaskmodel.slurm.jobs.gpus import completed
from ptaskmodel.slurm.jobs.memory_limits import first_nodes_of, over_memory, with_cpus_for_memory
from ptaskmodel.slurm.jobs.needs import (
    Need,
    limit_min,
    need_of,
    with_named_nodes,
)
from ptaskmodel.slurm.jobs.record import JobRecord
from ptaskmodel.slurm.jobs.request import JobRequest, all_asked, asked_of_nodes, parsed, preferring

TIME, NODES, CONFIG = "PartitionTimeLimit", "PartitionNodeLimit", "PartitionConfig"
MEMORY = "MaxMemPerLimit"
# A node that is asked for is not in the partition.
OUTSIDE = "RequestedNodesNotInPartition"
# The flag of a QOS that lifts the time limit of partitions.
TIME_FLAG = "PARTITIONTIMELIMIT"
DOWN, INACTIVE = "PartitionDown", "PartitionInactive"


class Room(NamedTuple):
    """How large a partition is: nodes and CPUs."""

    nodes: float = math.inf
    cpus: float = math.inf


ANY_ROOM = Room()


def rooms_of(nodes: Nodes) -> dict[str, Room]:
    """How large each partition is, by its name; `nodes` are those of the cluster."""
    return {
        name: Room(mask.bit_count(), sum(nodes.cpus[k] for k in members(mask)))
        for name, mask in nodes.partitions.items()
    }


def waits_for(
    request: JobRequest,
    partition: Partition,
    qos: Qos | None = None,
    room: Room = ANY_ROOM,
    min_nodes: int = 1,
) -> str | None:
    """Why a job may not start in a partition for the time being; None: it may.

    Flags of its QOS (PartitionTimeLimit, PartitionMaxNodes, PartitionMinNodes) lift limits.
    min_nodes: the least MinNodes of its partitions, which it asks for at least.
    """
    if partition.state in ("DOWN", "INACTIVE"):
        return DOWN if partition.state == "DOWN" else INACTIVE
    flags = qos.flags if qos is not None else frozenset()
    least, most = request.nodes_asked(min_nodes)
    # The limit is to the CPUs that it asked for itself.
    cpus = (request.cpus or 1) // request.cpus_raised if request.tasks is not None else least
    most_cpus = math.inf if partition.max_cpus_per_node is None else partition.max_cpus_per_node
    if cpus > min(room.cpus, most_cpus * room.nodes):
        return CONFIG
    allowed = math.inf if partition.max_nodes is None else partition.max_nodes
    if least > room.nodes:
        return NODES
    if min(least, most) < partition.min_nodes and "PARTITIONMINNODES" not in flags:
        return NODES
    bounded = request.min_nodes is not None or request.max_nodes is not None
    if request.spread and request.max_nodes is None and request.tasks is not None:
        bounded, most = True, max(least, request.tasks)
    if bounded and most > allowed and "PARTITIONMAXNODES" not in flags:
        return NODES
    asked = request.limit_min if request.time_min_min is None else request.time_min_min
    if asked is not None and asked > _longest_min(partition) and TIME_FLAG not in flags:
        return TIME
    return None


def is_found_late(job: JobRecord, reason: str | None) -> bool:
    """Return whether the `reason` to refuse a `job` is found when nodes are looked for.

    MinNodes of several partitions is, if it gives no nodes; so is memory that it does not ask for.
    """
    several = len(job.partitions) > 1 and job.request.min_nodes is None
    return (reason == NODES and several) or (reason == MEMORY and not job.request.gives_memory)


def is_tried(need: Need) -> bool:
    """Whether nodes are looked for with a `need`: some would do, and it has all that it names."""
    return bool(need.nodes) and not need.required & ~need.nodes


def with_whole_limit(request: JobRequest) -> JobRequest:
    """Return the `request` as one of a job that takes no less time than its limit."""
    return request if request.time_min_min is None else replace(request, time_min_min=None)


def _longest_min(partition: Partition) -> float:
    return math.inf if partition.max_time_min is None else partition.max_time_min


def refused_by(
    conf: Conf,
    request: JobRequest,
    partitions: tuple[Partition, ...],
    qos: Qos | None = None,
    rooms: Mapping[str, Room] = MappingProxyType({}),
    over_memory: Collection[str] = (),
    outside: Collection[str] = (),
    not_admitted: Mapping[str, str | None] = MappingProxyType({}),
) -> str | None:
    """Why partitions refuse a job at its submission, as EnforcePartLimits says; None: they do not.

    ANY: if all of them would make it wait; ALL: if any of them would. Then the whole limit counts,
    whatever --time-min says, and the nodes of --nodelist. Whatever it says, a partition that takes
    no jobs refuses the job, and so does a --time-min that is longer than all partitions allow, or
    than the limit of the job. Of a partition that is down the limits count where none is larger.
    over_memory: names of those whose MaxMemPerNode would make it wait.
    outside: names of those that lack a node of its --nodelist. not_admitted: why they do not take
    its account or QOS, or the nodes that its tasks are spread over, by name.
    """
    closed = next((one for one in partitions if not one.accepts), None)
    if closed is not None:
        return DOWN if closed.state == "DRAIN" else INACTIVE
    whole = with_whole_limit(request)
    least = min((one.min_nodes for one in partitions), default=1)
    # The least it asks for, or as many nodes as it names: MinNodes raises that later.
    asked = len(set(request.nodelist)) if request.min_nodes is None else request.min_nodes
    lifted = qos is not None and "PARTITIONMINNODES" in qos.flags
    why: list[str | None] = []
    for one in partitions if conf.enforce_part_limits != "NO" else ():
        reason = waits_for(whole, one, qos, rooms.get(one.name, ANY_ROOM), least)
        if one.name in outside:
            why.append(OUTSIDE)
        elif reason in (TIME, NODES, CONFIG):
            why.append(reason)
        elif reason != DOWN and 0 < asked < one.min_nodes and not lifted:
            why.append(NODES)
        else:
            memory = MEMORY if one.name in over_memory else None
            why.append(not_admitted.get(one.name) or memory)
    if conf.enforce_part_limits == "ALL" and any(why):
        return min(filter(None, why), key=MEMORY.__eq__)  # which may be found later than others
    if conf.enforce_part_limits == "ANY" and all(why):
        return why[0]
    if _asks_too_long(request, partitions, qos):
        return TIME
    return None if conf.enforce_part_limits == "NO" else _over_all(request, partitions, qos)


def _over_all(
    request: JobRequest, partitions: tuple[Partition, ...], qos: Qos | None
) -> str | None:
    """Which limit of partitions that enforce them a job is over, up or down."""
    flags = qos.flags if qos is not None else frozenset()
    if request.min_nodes is not None:
        least, most = request.nodes_asked()
        if "PARTITIONMAXNODES" not in flags and least > max(
            one.max_nodes or inf for one in partitions
        ):
            return NODES
        if "PARTITIONMINNODES" not in flags and most < min(one.min_nodes for one in partitions):
            return NODES
    limit = request.limit_min if request.time_min_min is None else None
    is_long = limit is not None and limit > max(map(_longest_min, partitions))
    return TIME if is_long and TIME_FLAG not in flags else None


def _asks_too_long(request: JobRequest, partitions: tuple[Partition, ...], qos: Qos | None) -> bool:
    """Whether the least time that a job asks for is more than it may get."""
    least = request.time_min_min
    if least is None or (qos is not None and TIME_FLAG in qos.flags):
        return False
    limit = partitions[0].default_time_min if request.limit_min is None else request.limit_min
    return least > max(map(_longest_min, partitions)) or (limit is not None and least > limit)


class Licences:
    """The licences of the machine that are free."""

    def __init__(self, total: Mapping[str, int]) -> None:
        self.total = dict(total)
        self.free = dict(total)

    def refuses(self, request: JobRequest) -> bool:
        """Whether there never are as many as a job asks for."""
        return any(self.total.get(name, 0) < count for name, count in request.licenses.items())

    def missing(self, request: JobRequest) -> bool:
        """Whether there are not enough now."""
        return any(self.free.get(name, 0) < count for name, count in request.licenses.items())

    def take(self, request: JobRequest) -> None:
        for name, count in request.licenses.items():
            self.free[name] -= count

    def give_back(self, request: JobRequest) -> None:
        for name, count in request.licenses.items():
            self.free[name] += count


class Deadlines:
    """The jobs that must be over at a date. second: the clock, Unix seconds, at a date."""

    def __init__(self, second: Callable[[float], int]) -> None:
        self._second = second
        self._jobs: list[JobRecord] = []

    def add(self, job: JobRecord) -> None:
        """A job waits, for the first time or again."""
        if job.request.deadline_s is not None and job not in self._jobs:
            self._jobs.append(job)

    def missed(self, date: float) -> Sequence[JobRecord]:
        """Return waiting jobs that would miss their deadline if they started at a `date`."""
        if not self._jobs:
            return ()
        now = self._second(date)
        waiting = [job for job in self._jobs if job.state == record.PENDING]
        self._jobs = [job for job in self._jobs if job.state in record.OPEN]
        return [job for job in waiting if now + _least_s(job) > self._deadline(job)]

    def _deadline(self, job: JobRecord) -> int:
        deadline_s = job.request.deadline_s
        assert deadline_s is not None
        return self._second(deadline_s)


def _least_s(job: JobRecord) -> float:
    """How long a job may run at least, s."""
    need = job.needs[0]
    return (need.limit_s if need.least_limit_s is None else need.least_limit_s) or 0


class EndedJobs:
    """The records of jobs that are over, which are forgotten after a while."""

    def __init__(self) -> None:
        self._jobs: deque[tuple[int, JobRecord]] = deque()

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __len__(self) -> int:
        return len(self._jobs)

    def add(self, now: int, job: JobRecord) -> None:
        """A job is over now."""
        self._jobs.append((now, job))

    def forget(self, until_s: int) -> list[JobRecord]:
        """The jobs that are over since a date or longer, once each."""
        gone = []
        while self._jobs and self._jobs[0][0] <= until_s:
            date_s, job = self._jobs.popleft()
            if job.state not in record.OPEN and job.end_s == date_s:
                gone.append(job)
        return gone


# Limit and least time of a request, minutes.
Times = tuple[int | None, int | None]


_NAMES = [each.name for each in fields(Need)]
_fields_of = attrgetter(*_NAMES)
_LIMIT, _LEAST_LIMIT = _NAMES.index("limit_s"), _NAMES.index("least_limit_s")


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
        key = all_asked(request)
        times = request.limit_min, request.time_min_min
        alike = self._alike.get(key)
        if alike is None:
            taken = self._as_taken_in(request, partitions[0])
            if taken is not request:
                return taken, self.needs(preferring(taken), partitions)
            alike = self._alike[key] = {}
        needs = alike.get(times)
        if needs is None:
            first = next(iter(alike.values()), None)
            if first is None or len(first) > 1 or first[0].ways:
                needs = self.needs(preferring(request), partitions)
            else:
                needs = (_with_limits(first[0], request),)
            alike[times] = needs
        return request, needs

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

        It is tried at its submission in that of the highest tier with nodes for it, or in all if
        EnforcePartLimits is ALL: that may make it exclusive. It is not tried in one that keeps it
        waiting if that is ANY, nor in one for other numbers of nodes. whole: whether it is so.
        """
        least = min(partition.min_nodes for partition in partitions)
        needs = tuple([self.need(request, each, least) for each in partitions])
        tried = [need.partition for need in needs if is_tried(need)]
        if self._conf.enforce_part_limits != "ALL":
            tried = [one for one in tried if not self._passes_over(one, request, least)]
            tried = sorted(tried, key=lambda partition: -partition.tier)[:1]
        if not whole and all(one.over_subscribe != EXCLUSIVE for one in tried):
            return needs
        return tuple([self.need(request, each, least, exclusive=True) for each in partitions])

    def _passes_over(self, partition: Partition, request: JobRequest, min_nodes: int) -> bool:
        """Whether a `partition` does not try a job when it is submitted, but for ALL."""
        if self._conf.enforce_part_limits == "ANY":
            asked, room = with_whole_limit(request), self._rooms[partition.name]
            return waits_for(asked, partition, room=room, min_nodes=min_nodes) is not None
        least, most = request.nodes_asked(min_nodes)
        allowed = inf if partition.max_nodes is None else partition.max_nodes
        if request.max_nodes is not None:
            allowed = min(allowed, most)
        return max(least, partition.min_nodes) > allowed

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
        if _too_spread(job, job.needs[0]):
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

    def lacks_features(self, request: JobRequest) -> bool:
        """Return whether a `request` is for features that are misspelt or that no node has."""
        if request.constraint is None and request.prefer is None:
            return False
        with suppress(ValueError):
            asked = parsed(request.constraint).names | parsed(request.prefer).names
            return not asked <= self._features
        return True

    def _refuses(self, job: JobRecord, member: Member) -> str | None:
        try:
            completed(job.request, self._conf, min(p.min_nodes for p in job.partitions))
        except ValueError:
            return "InvalidGRES"
        qos = self._members.qos(member)
        over = {p.name for p in job.partitions if self._over_memory(job.request, p)}
        required = job.needs[0].required
        outside = {p.name for p in job.partitions if required & ~self._nodes.partitions[p.name]}
        refused = {
            p.name: NODES if _too_spread(job, need) else self._members.refused(member, p)
            for p, need in zip(job.partitions, job.needs, strict=True)
        }
        return refused_by(
            self._conf, job.request, job.partitions, qos, self._rooms, over, outside, refused
        )


def _too_spread(job: JobRecord, need: Need) -> bool:
    """Whether a job that is spread has a `need` of more nodes than it has tasks for."""
    return job.request.spread and need.least > need.most


def _with_limits(need: Need, request: JobRequest) -> Need:
    """Return a `need` without ways with the limits of a `request` that differs in these alone."""
    found = list(_fields_of(need))
    limit, least = limit_min(request, need.partition), request.time_min_min
    found[_LIMIT] = None if limit == inf else int(limit) * 60
    found[_LEAST_LIMIT] = None if least is None else least * 60
    return Need(*found)
