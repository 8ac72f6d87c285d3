"""Works that only make sense once a job has its hosts: storage, staging, totals, usage traces.

A profile of a batch job may name a storage ("pfs"), say how much there is for the whole job, or
replay the use of its cores. `bind` turns such a work into the plain works of `tasks`, on given
hosts; plain works pass through it unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ptaskmodel.errors import WorkloadError
from ptaskmodel.workload.tasks import (
    DelayWork,
    HomogeneousWork,
    ParallelWork,
    SequenceWork,
    Work,
)


@dataclass(frozen=True, slots=True)
class SpreadWork(Work):
    """Amounts for the whole job, spread evenly over its n hosts.

    Each host computes ``flops / n``. Each ordered pair of distinct hosts exchanges
    ``bytes / n`` (Batsim up to version 4) or, with ``by_pair``, ``bytes / (n * (n - 1))``
    (Batsim 5): the total is then ``bytes``.
    """

    flops: float
    bytes: float
    by_pair: bool

    def plain(self, hosts: int) -> HomogeneousWork:
        """The amounts of each host and of each pair, for a job on ``hosts`` hosts."""
        parts = hosts * (hosts - 1) if self.by_pair else hosts
        share = self.bytes / parts if hosts > 1 else 0.0
        return HomogeneousWork(self.flops / hosts, share)


@dataclass(frozen=True, slots=True)
class StorageWork(Work):
    """Each host of the job reads from and writes to a storage; with ``total``, bytes are shared."""

    read_bytes: float
    write_bytes: float
    storage: str = "pfs"
    total: bool = False


@dataclass(frozen=True, slots=True)
class StagingWork(Work):
    """``bytes`` from a storage to another; the hosts of the job do nothing."""

    bytes: float
    source: str
    destination: str


@dataclass(frozen=True, slots=True)
class UsageTraceWork(Work):
    """Each rank goes through its own phases (usage, flops), without waiting for the others.

    In a phase, a rank on a host of c cores occupies max(1, round(usage * c)) of them, each with
    ``flops`` flop to compute (Batsim's rule).
    """

    traces: tuple[tuple[tuple[float, float], ...], ...]

    @property
    def ranks(self) -> int:
        return len(self.traces)


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What binding needs of the hosts: cores by host name, and the host of each storage."""

    cores: Mapping[str, int]
    storages: Mapping[str, str]

    def storage_host(self, storage: str) -> str:
        if storage not in self.storages:
            raise WorkloadError(
                f"the platform has no storage '{storage}': give one host the property "
                f"role=storage, or say --storage {storage}=HOST"
            )
        return self.storages[storage]


Bound = tuple[tuple[str, ...], Work]


def work_delay_s(work: Work) -> float | None:
    """How long a work lasts whatever the platform; None if that depends on the platform."""
    if isinstance(work, DelayWork):
        return work.delay_s
    if isinstance(work, SequenceWork):
        total = 0.0
        for stage in work.stages:
            delay = work_delay_s(stage)
            if delay is None:
                return None
            total += delay
        return total * work.repeat
    return None


def bind(work: Work, hosts: Sequence[str], facts: HostFacts) -> list[list[Bound]]:
    """The steps of a work on ``hosts``: one after the other, each a set of works side by side.

    Each (hosts, work) is ready to be a task. All is one step, unless a usage trace, whose ranks
    are independent works, stands inside a sequence. Raises WorkloadError for an unknown storage.
    """
    if not _holds(work, UsageTraceWork):
        return [[_bind_one(work, tuple(hosts), facts)]]
    if isinstance(work, UsageTraceWork):
        return [[_bind_rank(p, h, facts) for p, h in zip(work.traces, hosts, strict=True)]]
    assert isinstance(work, SequenceWork)
    steps = [step for stage in work.stages for step in bind(stage, hosts, facts)]
    return steps * work.repeat


def _holds(work: Work, kind: type | tuple[type, ...]) -> bool:
    if isinstance(work, SequenceWork):
        return any(_holds(stage, kind) for stage in work.stages)
    return isinstance(work, kind)


def _bind_rank(phases: tuple[tuple[float, float], ...], host: str, facts: HostFacts) -> Bound:
    """The phases of one rank as a sequence on as many entries of its host as it has cores."""
    cores = facts.cores[host]
    stages = []
    for usage, flops in phases:
        used = max(1, math.floor(usage * cores + 0.5))
        amounts = np.zeros(cores)
        amounts[:used] = flops
        stages.append(ParallelWork.of(cores, amounts))
    return (host,) * cores, SequenceWork(tuple(stages))


def _bind_one(work: Work, hosts: tuple[str, ...], facts: HostFacts) -> Bound:
    """A work without usage traces as one plain work on the hosts and the storages it uses."""
    if isinstance(work, SpreadWork):
        return hosts, work.plain(len(hosts))
    if not _holds(work, (StorageWork, StagingWork, SpreadWork)):
        return hosts, work
    storages = tuple(dict.fromkeys(facts.storage_host(name) for name in _storages(work)))
    rank_of = {host: len(hosts) + k for k, host in enumerate(storages)}
    return hosts + storages, _plain(work, len(hosts), len(storages), rank_of, facts)


def _storages(work: Work) -> list[str]:
    if isinstance(work, SequenceWork):
        return [name for stage in work.stages for name in _storages(stage)]
    if isinstance(work, StorageWork):
        return [work.storage]
    return [work.source, work.destination] if isinstance(work, StagingWork) else []


def _plain(
    work: Work, hosts: int, storages: int, rank_of: Mapping[str, int], facts: HostFacts
) -> Work:
    """A work in terms of ranks: the hosts first, then the storages."""
    if isinstance(work, SequenceWork):
        stages = tuple(_plain(s, hosts, storages, rank_of, facts) for s in work.stages)
        return SequenceWork(stages, work.repeat)
    if isinstance(work, StorageWork):
        part = hosts if work.total else 1
        storage = rank_of[facts.storage_host(work.storage)]
        flows = []
        if work.read_bytes > 0:
            flows += [(storage, rank, work.read_bytes / part) for rank in range(hosts)]
        if work.write_bytes > 0:
            flows += [(rank, storage, work.write_bytes / part) for rank in range(hosts)]
        return ParallelWork.of(hosts + storages, flows=flows)
    if isinstance(work, StagingWork):
        source = rank_of[facts.storage_host(work.source)]
        destination = rank_of[facts.storage_host(work.destination)]
        flows = [(source, destination, work.bytes)] if work.bytes > 0 else []
        return ParallelWork.of(hosts + storages, flows=flows)
    if isinstance(work, SpreadWork):
        return _plain(work.plain(hosts), hosts, storages, rank_of, facts)
    if isinstance(work, HomogeneousWork):
        flops, volume = work.per_rank(hosts)
        pairs = [(i, j) for i in range(hosts) for j in range(hosts) if i != j and volume > 0]
        amounts = np.concatenate((np.full(hosts, flops), np.zeros(storages)))
        return ParallelWork.of(hosts + storages, amounts, flows=[(i, j, volume) for i, j in pairs])
    if isinstance(work, ParallelWork):
        amounts = np.concatenate((work.flops, np.zeros(storages)))
        return ParallelWork(amounts, work.flow_from, work.flow_to, work.flow_bytes)
    return work
