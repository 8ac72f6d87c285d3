"""Attempt: one execution of a job on its placement, with its times and its outcome."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from math import nan

from ptaskmodel.batch.machine.host_sets import (
    HostSet,
    Mask,
    Placement,
    holds,
    mask_of,
    members,
    runs,
    text,
)
from ptaskmodel.workload.jobs import Job
from ptaskmodel.workload.works import Work

SUCCESS = "COMPLETED_SUCCESSFULLY"
FAILED = "COMPLETED_FAILED"
WALLTIME = "COMPLETED_WALLTIME_REACHED"
KILLED = "COMPLETED_KILLED"
REJECTED = "REJECTED"
WAITING = "WAITING"
RUNNING = "RUNNING"
SUSPENDED = "SUSPENDED"
LEAVING = "LEAVING"
NOT_OVER = frozenset((WAITING, RUNNING, SUSPENDED, LEAVING))


class Attempt:
    """One execution of a job; a job that is requeued has several.

    job: the `Job`. work: what it runs, that of the job unless its start said otherwise. ordinal: 0
    for the first attempt of the job. number: among all attempts of the simulation, in order of
    their starts (-1: it never started). placement: the hosts that it holds, as they were chosen
    (with partitions more than it asked for; the work is on the lowest of them);
    ``hosts``, ``mask`` and ``runs`` are made of it when somebody asks. cores: how many of each,
    hosts ascending (None: whole hosts). use: of how many whole hosts that is worth. start_s,
    end_s: dates, None until then. expected_end_s: what the scheduler believes.
    state: one of the names above; reason: why it was rejected or stopped. suspensions: [from, to]
    for each time that it was suspended, ``to`` None while it lasts. kept_s: the seconds of its work
    that a checkpoint kept when it was stopped; overhead_s: that it read and wrote checkpoints.
    done: the part of the job's work that it did, 0 to 1, by what parts take alone; None: not noted.
    """

    __slots__ = (
        "cores",
        "done",
        "end_s",
        "expected_end_s",
        "job",
        "kept_s",
        "number",
        "ordinal",
        "overhead_s",
        "placement",
        "reason",
        "start_s",
        "state",
        "suspensions",
        "use",
        "work",
    )

    def __init__(
        self,
        job: Job,
        placement: Placement,
        start_s: float | None,
        expected_end_s: float,
        number: int,
        state: str = RUNNING,
        *,
        ordinal: int = 0,
        cores: tuple[int, ...] | None = None,
    ) -> None:
        self.job = job
        self.work: Work = job.work
        self.placement = placement
        self.cores = cores
        self.use: float = job.num_hosts
        self.start_s = start_s
        self.end_s: float | None = None
        self.expected_end_s = expected_end_s
        self.number = number
        self.ordinal = ordinal
        self.state = state
        self.reason = ""
        self.suspensions: Sequence[list[float | None]] = ()
        self.kept_s = 0.0
        self.overhead_s = 0.0
        self.done: float | None = None

    def __deepcopy__(self, memo: dict[int, object]) -> Attempt:
        """One that goes on by itself; an attempt that has ended is a fact."""
        if self.end_s is not None:
            return self
        other = copy.copy(self)
        memo[id(self)] = other
        other.suspensions = [list(stretch) for stretch in self.suspensions]
        return other

    def end(self, date: float, state: str, suspensions: Sequence[Sequence[float]]) -> None:
        """End at a `date` in a `state`, after `suspensions`, which are copied."""
        self.end_s, self.state = date, state
        self.suspensions = [list(stretch) for stretch in suspensions]

    @property
    def hosts(self) -> HostSet:
        """The hosts of its placement."""
        return HostSet(self.mask)

    @property
    def mask(self) -> Mask:
        """The hosts of its placement as bits."""
        return mask_of(self.placement)

    @property
    def runs(self) -> list[tuple[int, int]]:
        """(first, length) of each run of consecutive hosts of its placement, lowest first."""
        return list(runs(self.placement))

    @property
    def hosts_text(self) -> str:
        """The hosts of its placement as Batsim writes them, such as "0-2 5"."""
        return text(self.placement)

    def is_on(self, host: int) -> bool:
        """Whether a host, by its number, belongs to its placement."""
        return holds(self.placement, host)

    @property
    def ranks(self) -> list[int]:
        """The host of each rank of its work: one rank a host, or one on each core that it has."""
        hosts = members(self.placement)
        if self.cores is None:
            return hosts[: self.job.num_hosts]
        return [k for k, count in zip(hosts, self.cores, strict=True) for _ in range(count)]

    @property
    def was_cut(self) -> bool:
        """Whether something ended it before it was through, or at its walltime."""
        return self.state in (WALLTIME, KILLED) or (self.state == FAILED and bool(self.reason))

    @property
    def part_done(self) -> float:
        """The part of the job's work that it did, 1 if it ended by itself; nan: unknown."""
        if self.done is not None:
            return self.done
        return nan if self.was_cut else 1.0

    def suspended_s(self, now: float) -> float:
        """Return how long this attempt has been suspended in total, s, at time `now` (s)."""
        return sum(((now if to is None else to) - (since or 0.0)) for since, to in self.suspensions)

    def __repr__(self) -> str:
        return f"<attempt {self.ordinal} of job '{self.job.id}' on {self.hosts_text}: {self.state}>"
