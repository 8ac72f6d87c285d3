"""Limits of partitions, licences, deadlines, and the age of records.

`Rules` tests partitions and licences; `Submission` has the deadlines, `JobList` the old records.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from ptaskmodel.batch.machine.host_sets import members
from ptaskmodel.slurm.accounts.facts import Qos
from ptaskmodel.slurm.conf.facts import Conf, Nodes, Partition
from ptaskmodel.slurm.jobs import record
from ptaskmodel.slurm.jobs.record import JobRecord
from ptaskmodel.slurm.jobs.request import JobRequest

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
    than the limit of the job. over_memory: names of those whose MaxMemPerNode would make it wait.
    outside: names of those that lack a node of its --nodelist. not_admitted: why they do not take
    its account or QOS, by name.
    """
    closed = next((one for one in partitions if not one.accepts), None)
    if closed is not None:
        return DOWN if closed.state == "DRAIN" else INACTIVE
    whole = with_whole_limit(request)
    least = min((one.min_nodes for one in partitions), default=1)
    why: list[str | None] = []
    for one in partitions if conf.enforce_part_limits != "NO" else ():
        reason = waits_for(whole, one, qos, rooms.get(one.name, ANY_ROOM), least)
        if one.name in outside:
            why.append(OUTSIDE)
        elif reason in (TIME, NODES, CONFIG):
            why.append(reason)
        else:
            memory = MEMORY if one.name in over_memory else None
            why.append(not_admitted.get(one.name) or memory)
    if conf.enforce_part_limits == "ALL" and any(why):
        return min(filter(None, why), key=MEMORY.__eq__)  # which may be found later than others
    if conf.enforce_part_limits == "ANY" and all(why):
        return why[0]
    return TIME if _asks_too_long(request, partitions, qos) else None


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

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def add(self, job: JobRecord) -> None:
        """A job waits, for the first time or again."""
        if job.request.deadline_s is not None and job not in self._jobs:
            self._jobs.append(job)

    def missed(self, now: int) -> list[JobRecord]:
        """Return waiting jobs that would miss their deadline if they started now."""
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


class Ended:
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
