"""Priorities of waiting jobs: what each priority plugin provides, and priority/basic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from ptaskmodel.slurm.accounts.facts import Amounts
from ptaskmodel.slurm.accounts.members import Member
from ptaskmodel.slurm.conf.facts import Partition
from ptaskmodel.slurm.jobs.request import JobRequest

TOP = 0xFFFF0000


class Waiting(Protocol):
    """What priorities are made of: the record of a job.

    number: Slurm's id. listed: its place in the list of all jobs. priorities: set here, one for
    each partition; it may change at any time. account: whose it is. Dates are whole Unix seconds.
    """

    request: JobRequest
    number: int
    listed: int
    submit_s: int
    restarts: int
    partitions: tuple[Partition, ...]
    partition: Partition
    priorities: Any
    held: bool
    account: Member | None

    def set_priorities(self, priorities: Any) -> None:
        """Set `priorities`, one for each partition."""


class Sizes(NamedTuple):
    """How large the cluster is, and what each partition has of each TRES, by its name."""

    nodes: int
    cpus: int
    tres: Mapping[str, Amounts]


class Basic:
    """priority/basic: first come, first served. Source: Slurm's manual of PriorityType."""

    period_s: int | None = None  # of refreshes: none

    def __init__(self) -> None:
        self._lowest = TOP
        self._arrays: dict[str, int] = {}

    def at_submit(self, job: Waiting, now: int) -> None:
        """Give a job its priority, behind all others; the tasks of an array have one."""
        given, nice = job.request.priority, job.request.nice
        if job.held or given is not None:
            job.set_priorities([0 if job.held else given] * len(job.partitions))
            return
        array = job.request.array
        if array is not None and array.job in self._arrays:
            job.set_priorities([self._arrays[array.job]] * len(job.partitions))
            return
        value = max(1, self._lowest - 1)
        if nice <= 0 or value > nice + 1:
            value -= nice
        value = max(1, value)
        job.set_priorities([value] * len(job.partitions))
        self._lowest = min(self._lowest, value + nice)
        if array is not None:
            self._arrays[array.job] = value

    def again(self, job: Waiting, now: int) -> None:
        """A job that is requeued keeps its priority."""

    def accrue(self, job: Waiting, since_s: int) -> None:
        """Nothing grows with age."""

    def tested(self, job: Waiting, cpus: int) -> None:
        """Nothing depends on the size."""

    def started(self, job: Waiting, now: int, tres: Amounts) -> None:
        """No usage is kept."""

    def ended(self, job: Waiting, now: int) -> None:
        """No usage is kept."""

    def gone(self, job: Waiting) -> None:
        """Nothing is kept of it."""

    def refresh(self, now: int, heads: Mapping[str, int]) -> bool:
        return False

    def table(self) -> Mapping[str, NDArray]:
        """Nothing to show: see `Multifactor.table`."""
        return {}
