"""What partitions and licences allow."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple

from ptaskmodel.batch.slurm.accounts.facts import Qos
from ptaskmodel.batch.slurm.conf.facts import Conf, Partition
from ptaskmodel.batch.slurm.requests.request import JobRequest

TIME, NODES, CONFIG = "PartitionTimeLimit", "PartitionNodeLimit", "PartitionConfig"
MEMORY = "MaxMemPerLimit"
DOWN, INACTIVE = "PartitionDown", "PartitionInactive"


class Room(NamedTuple):
    """How large a partition is: nodes and CPUs."""

    nodes: float = math.inf
    cpus: float = math.inf


ANY_ROOM = Room()


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
    cpus = (request.cpus or 1) if request.tasks is not None else least
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
    longest = math.inf if partition.max_time_min is None else partition.max_time_min
    asked = request.limit_min if request.time_min_min is None else request.time_min_min
    if asked is not None and asked > longest and "PARTITIONTIMELIMIT" not in flags:
        return TIME
    return None


def refused_by(
    conf: Conf,
    request: JobRequest,
    partitions: tuple[Partition, ...],
    qos: Qos | None = None,
    rooms: Mapping[str, Room] = MappingProxyType({}),
    over_memory: Collection[str] = (),
) -> str | None:
    """Why partitions refuse a job at its submission, as EnforcePartLimits says; None: they do not.

    ANY: if all of them would make it wait; ALL: if any of them would. A partition that takes no
    jobs refuses it anyhow. over_memory: names of those whose MaxMemPerNode would make it wait.
    """
    closed = next((one for one in partitions if not one.accepts), None)
    if closed is not None:
        return DOWN if closed.state == "DRAIN" else INACTIVE
    if conf.enforce_part_limits == "NO":
        return None
    least = min((one.min_nodes for one in partitions), default=1)
    found = [waits_for(request, p, qos, rooms.get(p.name, ANY_ROOM), least) for p in partitions]
    why = [reason if reason in (TIME, NODES, CONFIG) else None for reason in found]
    why = [
        MEMORY if one.name in over_memory else reason
        for one, reason in zip(partitions, why, strict=True)
    ]
    if conf.enforce_part_limits == "ALL" and any(why):
        return next(filter(None, why))
    if conf.enforce_part_limits == "ANY" and all(why):
        return why[0]
    return None


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
