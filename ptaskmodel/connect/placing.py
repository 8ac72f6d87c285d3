"""Map a job to the resources that a scheduler chose: mappings, storages, additional profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ptaskmodel.batch.machine.machine import Machine
from ptaskmodel.connect.events import Storages
from ptaskmodel.errors import WorkloadError, shown
from ptaskmodel.workload.batch_works import PlacedWork, SpreadWork, StagingWork, StorageWork
from ptaskmodel.workload.jobs import Job
from ptaskmodel.workload.works import DelayWork, HomogeneousWork, ParallelWork, SequenceWork, Work

Placed = tuple[tuple[str, ...], Work]


def spreads(work: Work) -> bool:
    """Whether a work is made of amounts for all hosts together: any number of hosts will do."""
    return all(isinstance(part, SpreadWork) for part in work.parts())


def work_on(
    job: Job,
    hosts: Sequence[int],
    machine: Machine,
    storages: Storages,
    mapping: Mapping[str, int | str] | None,
    storage_mapping: Mapping[str, int] | None,
) -> Work | None:
    """What a job runs on these hosts, ascending; None if that is its own work, a rank a host.

    Raises WorkloadError, beginning with the field at fault.
    """
    asked = job.num_hosts
    ranks: Sequence[int]
    if mapping is not None:
        ranks = _executors(mapping, hosts, asked)
    elif len(hosts) == asked or spreads(job.work):
        ranks = hosts
    elif asked == 0 and hosts:
        ranks = []
    else:
        raise WorkloadError(
            f"/data/alloc: {len(hosts)} resources for a job that requests {asked}; give {asked}"
        )
    work = job.work
    labels = list(dict.fromkeys(work.storages()))
    if labels:
        work = _with_storages(work, labels, machine, storages, storage_mapping or {})
    elif storage_mapping:
        raise WorkloadError(
            "/data/storage_mapping: the profile of the job uses no storage; leave this out"
        )
    if work is job.work and ranks is hosts and len(hosts) == asked:
        return None
    return PlacedWork(tuple(machine.names[k] for k in ranks), work)


def _executors(mapping: Mapping[str, int | str], hosts: Sequence[int], asked: int) -> list[int]:
    """The host of each executor."""
    if len(mapping) != asked:
        raise WorkloadError(
            f"/data/mapping: {len(mapping)} executors for a job that requests {asked}; give {asked}"
        )
    found = []
    for k in range(len(mapping)):
        if str(k) not in mapping:
            raise WorkloadError(f"/data/mapping: executor {k} is missing; name 0 to {asked - 1}")
        value = str(mapping[str(k)])
        if not value.isdecimal() or not value.isascii() or int(value[:9]) >= len(hosts):
            raise WorkloadError(
                f"/data/mapping/{k}: {shown(mapping[str(k)])} is not a position in an "
                "allocation of "
                f"{len(hosts)} resources"
            )
        found.append(hosts[int(value)])
    return found


def _with_storages(
    work: Work,
    labels: Sequence[str],
    machine: Machine,
    storages: Storages,
    mapping: Mapping[str, int],
) -> Work:
    """The work with the host of each storage instead of its label."""
    if unknown := sorted(mapping.keys() - set(labels)):
        raise WorkloadError(
            f"/data/storage_mapping: the profile has no storage {shown(unknown[0])}; remove it"
        )
    where: dict[str, str] = {}
    for label in labels:
        if label in mapping:
            name = storages.name(mapping[label])
            if name is None:
                raise WorkloadError(
                    f"/data/storage_mapping/{label}: there is no storage {mapping[label]}; "
                    "give the number of one"
                )
            where[label] = name
        elif label in machine.facts.storages:
            where[label] = machine.facts.storages[label]
        elif len(labels) == 1 and len(storages.names) == 1:
            where[label] = storages.names[0]
        else:
            raise WorkloadError(
                f"/data/storage_mapping: is incomplete; name the storage that {shown(label)} "
                "of the profile stands for"
            )

    def renamed(part: Work) -> Work:
        if isinstance(part, StorageWork):
            return replace(part, storage=where[part.storage])
        if isinstance(part, StagingWork):
            return replace(part, source=where[part.source], destination=where[part.destination])
        return part

    return work.mapped(renamed)


# --- a parallel task beside another ---------------------------------------------------------------


def together(one: Work, other: Work, hosts: tuple[str, ...], more: tuple[str, ...]) -> Placed:
    """Two works done as one, step by step, on the hosts of both. Raises WorkloadError."""
    stages, others = one.one_round() * one.rounds, other.one_round() * other.rounds
    if len(stages) != len(others):
        raise WorkloadError(
            f"/data/additional_io_job: {len(others)} steps, but the job has {len(stages)}; "
            "give as many"
        )
    union = tuple(dict.fromkeys((*hosts, *more)))
    rank = {name: k for k, name in enumerate(union)}
    merged = [
        _sum(_laid(first, hosts, rank), _laid(second, more, rank))
        for first, second in zip(stages, others, strict=True)
    ]
    return union, merged[0] if len(merged) == 1 else SequenceWork(tuple(merged))


def _laid(work: Work, hosts: tuple[str, ...], rank: Mapping[str, int]) -> ParallelWork:
    """A parallel task on its hosts, as one on all hosts."""
    if isinstance(work, SpreadWork):
        work = work.plain(len(hosts))
    if isinstance(work, HomogeneousWork):
        work = work.expanded(len(hosts))
    if isinstance(work, DelayWork) or not isinstance(work, ParallelWork):
        raise WorkloadError(
            "/data/additional_io_job: I/O of parallel tasks must be parallel tasks; convert it"
        )
    if len(work.flops) != len(hosts):
        raise WorkloadError(
            f"/data/additional_io_job: a profile for {len(work.flops)} resources, but the "
            f"job has {len(hosts)}; make them agree"
        )
    flops = np.zeros(len(rank))
    places = np.array([rank[name] for name in hosts])
    np.add.at(flops, places, work.flops)
    volumes: dict[tuple[int, int], float] = {}
    for source, target, size in zip(
        places[work.flow_from].tolist(),
        places[work.flow_to].tolist(),
        work.flow_bytes.tolist(),
        strict=True,
    ):
        volumes[source, target] = volumes.get((source, target), 0.0) + size
    return ParallelWork.of(len(rank), flops, flows=[(*pair, v) for pair, v in volumes.items()])


def _sum(one: ParallelWork, other: ParallelWork) -> ParallelWork:
    volumes: dict[tuple[int, int], float] = {}
    for work in (one, other):
        flows = zip(
            work.flow_from.tolist(), work.flow_to.tolist(), work.flow_bytes.tolist(), strict=True
        )
        for source, target, size in flows:
            volumes[source, target] = volumes.get((source, target), 0.0) + size
    flows_of_both = [(*pair, size) for pair, size in volumes.items()]
    return ParallelWork.of(len(one.flops), one.flops + other.flops, flows=flows_of_both)
