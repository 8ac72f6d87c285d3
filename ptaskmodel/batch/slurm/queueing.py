"""The jobs that wait, in the order in which both schedulers look at them."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ptaskmodel.batch.slurm.record import PENDING, JobRecord

READY, WAITING, NEVER = "ready", "waiting", "never"


class Entry(NamedTuple):
    """A job in one of its partitions. key: the place in the queue."""

    key: tuple[Any, ...]
    which: int
    job: JobRecord


class Queue:
    """Entries of jobs that could be looked at; apart from them those that are not eligible yet.

    dependencies: says whether those of a job are "ready", "waiting" or "never" fulfilled;
    eligible: told since when a job may be looked at.
    """

    def __init__(
        self,
        dependencies: Callable[[JobRecord, int], str] = lambda job, now: READY,
        eligible: Callable[[JobRecord, int], None] = lambda job, since: None,
    ) -> None:
        self.entries: list[Entry] = []
        self.jobs: dict[JobRecord, None] = {}
        self._apart: dict[JobRecord, None] = {}
        self._dependencies = dependencies
        self._tell_eligible = eligible
        self._keys: dict[JobRecord, list[tuple[Any, ...]]] = {}
        self._partitions: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.jobs)

    def add(self, job: JobRecord) -> None:
        """A job waits; it is looked at when it is eligible."""
        self.jobs[job] = None
        self._apart[job] = None

    def remove(self, job: JobRecord) -> None:
        """A job waits no more."""
        del self.jobs[job]
        if job in self._apart:
            del self._apart[job]
        else:
            self._take_out(job)

    def sort(self) -> None:
        """Put everybody in the place that new priorities give."""
        for job in self._keys:
            self._keys[job] = _keys(job)
        self.entries = sorted(
            Entry(key, which, job)
            for job, keys in self._keys.items()
            for which, key in enumerate(keys)
        )

    def hold(self, job: JobRecord, held: bool) -> None:
        """A job is held or released."""
        job.held = held
        if job in self.jobs and job not in self._apart:
            self._take_out(job)
            self._apart[job] = None

    def build(self, now: int) -> list[Entry]:
        """The queue as it is looked at now: who has become eligible is in it."""
        if self._apart:
            for job in [job for job in self._apart if self._eligible(job, now)]:
                del self._apart[job]
                self._put_in(job)
        return self.entries

    def in_partition(self, name: str) -> int:
        """How many entries a partition has."""
        return self._partitions.get(name, 0)

    @property
    def waiting_partitions(self) -> Iterator[str]:
        """The partitions that have entries."""
        return (name for name, count in self._partitions.items() if count)

    def _put_in(self, job: JobRecord) -> None:
        self._keys[job] = keys = _keys(job)
        for which, key in enumerate(keys):
            insort(self.entries, Entry(key, which, job))
            name = job.partitions[which].name
            self._partitions[name] = self._partitions.get(name, 0) + 1

    def _take_out(self, job: JobRecord) -> None:
        for which, key in enumerate(self._keys.pop(job)):
            del self.entries[bisect_left(self.entries, (key,))]
            self._partitions[job.partitions[which].name] -= 1

    def _eligible(self, job: JobRecord, now: int) -> bool:
        """Whether a job may be looked at; its reason is set if not."""
        if job.state != PENDING:
            return False
        if job.held:
            job.reason = "JobHeldUser"
        elif job.begin_s > now:
            job.reason = "BeginTime"
        else:
            state = self._dependencies(job, now)
            if state == READY:
                if job.eligible_s is None:
                    waited = job.request.dependency is not None
                    job.eligible_s = now if waited else job.begin_s
                    self._tell_eligible(job, job.eligible_s)
                if job.reason in ("JobHeldUser", "BeginTime", "Dependency"):
                    job.reason = "None"
                return True
            job.reason = "Dependency" if state == WAITING else "DependencyNeverSatisfied"
        return False


def _keys(job: JobRecord) -> list[tuple[Any, ...]]:
    """The places of a job: reservation, tier, priority, submission, array, task, partition."""
    array = job.request.array
    return [
        (
            job.request.reservation is None,
            -partition.tier,
            -int(priority),
            job.submit_s,
            job.place,
            0 if array is None else array.index,
            job.number,
            which,
        )
        for which, (partition, priority) in enumerate(
            zip(job.partitions, job.priorities, strict=True)
        )
    ]
