"""Works of batch jobs alone: complete only on a job's hosts (storage, totals, ...).

A profile of a batch job may name a storage ("pfs"), give an amount for the whole job, or replay the
usage of its cores. `Work.bound` turns such a work into plain ones on given hosts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ptaskmodel.platform.facts import HostFacts
from ptaskmodel.workload.amounts import check_number
from ptaskmodel.workload.works import (
    Bound,
    HomogeneousWork,
    ParallelWork,
    SequenceWork,
    Steps,
    Work,
    ranks_beside,
)


@dataclass(frozen=True, slots=True)
class SpreadWork(Work):
    """Amounts for the whole job, spread evenly over its n hosts.

    Each host computes ``flops / n``. Each ordered pair of distinct hosts exchanges
    ``bytes / n`` (Batsim up to version 4) or, with ``by_pair``, ``bytes / (n * (n - 1))``
    (Batsim 5): the total is then ``bytes``.
    """

    is_plain = False

    flops: float
    bytes: float
    by_pair: bool

    def __post_init__(self) -> None:
        for name in ("flops", "bytes"):
            object.__setattr__(self, name, check_number(name, getattr(self, name)))

    def plain(self, hosts: int) -> HomogeneousWork:
        """The amounts of each host and of each pair, for a job on ``hosts`` hosts."""
        parts = hosts * (hosts - 1) if self.by_pair else hosts
        share = self.bytes / parts if hosts > 1 else 0.0
        return HomogeneousWork(self.flops / hosts, share)

    def divided(self, flops: float, bytes: float) -> SpreadWork:
        return SpreadWork(self.flops / flops, self.bytes / bytes, self.by_pair)

    def beside_storages(self, hosts: int, rank: dict[str, int]) -> Work:
        return self.plain(hosts).beside_storages(hosts, rank)

    def bound(self, hosts: tuple[str, ...], facts: HostFacts) -> Steps:
        return [[(hosts, self.plain(len(hosts)))]]


@dataclass(frozen=True, slots=True)
class StorageWork(Work):
    """Each host of the job reads from and writes to a storage; with ``total``, bytes are shared."""

    is_plain = False

    read_bytes: float
    write_bytes: float
    storage: str = "pfs"
    total: bool = False

    def __post_init__(self) -> None:
        for name in ("read_bytes", "write_bytes"):
            object.__setattr__(self, name, check_number(name, getattr(self, name)))

    def divided(self, flops: float, bytes: float) -> StorageWork:
        read, write = self.read_bytes / bytes, self.write_bytes / bytes
        return StorageWork(read, write, self.storage, self.total)

    def storages(self) -> Iterator[str]:
        yield self.storage

    def beside_storages(self, hosts: int, rank: dict[str, int]) -> ParallelWork:
        part = hosts if self.total else 1
        storage = rank[self.storage]
        flows = []
        if self.read_bytes > 0:
            flows += [(storage, k, self.read_bytes / part) for k in range(hosts)]
        if self.write_bytes > 0:
            flows += [(k, storage, self.write_bytes / part) for k in range(hosts)]
        return ParallelWork.of(ranks_beside(hosts, rank), flows=flows)


@dataclass(frozen=True, slots=True)
class StagingWork(Work):
    """``bytes`` from a storage to another; the hosts of the job do nothing."""

    is_plain = False
    only_storages = True

    bytes: float
    source: str
    destination: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "bytes", check_number("bytes", self.bytes))

    def divided(self, flops: float, bytes: float) -> StagingWork:
        return StagingWork(self.bytes / bytes, self.source, self.destination)

    def storages(self) -> Iterator[str]:
        yield self.source
        yield self.destination

    def beside_storages(self, hosts: int, rank: dict[str, int]) -> ParallelWork:
        flow = (rank[self.source], rank[self.destination], self.bytes)
        flows = [flow] if self.bytes > 0 else []
        return ParallelWork.of(ranks_beside(hosts, rank), flows=flows)


@dataclass(frozen=True, slots=True)
class PlacedWork(Work):
    """A work whose ranks have their hosts already, by name, whatever hosts the job has."""

    is_plain = False

    hosts: tuple[str, ...]
    work: Work

    @property
    def duration_s(self) -> float | None:
        return self.work.duration_s

    @property
    def rounds(self) -> int:  # type: ignore[override]
        return self.work.rounds

    def parts(self) -> Iterator[Work]:
        yield from self.work.parts()

    def one_round(self) -> list[Work]:
        return self.work.one_round()

    def bound(self, hosts: tuple[str, ...], facts: HostFacts) -> Steps:
        return self.work.bound(self.hosts, facts)


@dataclass(frozen=True, slots=True)
class EndlessWork(Work):
    """Nothing but time passes, until somebody ends it."""

    @property
    def duration_s(self) -> float:
        return math.inf


@dataclass(frozen=True, slots=True)
class UsageTraceWork(Work):
    """Each rank goes through its own phases (usage, flops), without waiting for the others.

    In a phase, a rank on a host of c cores occupies max(1, round(usage * c)) of them, each with
    ``flops`` flop to compute (Batsim's rule).
    """

    is_plain = False
    splits = True

    traces: tuple[tuple[tuple[float, float], ...], ...]

    @property
    def ranks(self) -> int:
        return len(self.traces)

    def divided(self, flops: float, bytes: float) -> UsageTraceWork:
        traces = tuple(
            tuple((usage, amount / flops) for usage, amount in phases) for phases in self.traces
        )
        return UsageTraceWork(traces)

    def bound(self, hosts: tuple[str, ...], facts: HostFacts) -> Steps:
        pairs = zip(self.traces, hosts, strict=True)
        return [[_on_host(phases, host, facts.cores[host]) for phases, host in pairs]]


def _on_host(phases: tuple[tuple[float, float], ...], host: str, cores: int) -> Bound:
    """The phases of one rank as a sequence on as many entries of its host as it has cores."""
    stages = []
    for usage, flops in phases:
        used = max(1, math.floor(usage * cores + 0.5))
        amounts = np.zeros(cores)
        amounts[:used] = flops
        stages.append(ParallelWork.of(cores, amounts))
    return (host,) * cores, SequenceWork(tuple(stages))
