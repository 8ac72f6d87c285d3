"""Free capacity of the hosts: whole hosts, or cores, memory, named resources and licences.

A space computes with immutable *free values*: what is free after a job has taken its placement,
what is free at both of two times, and which hosts could take a job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.batch.machine.host_sets import Mask, members
from ptaskmodel.workload.jobs import Job

Cores = Sequence[int] | None


@dataclass(frozen=True, slots=True)
class HostCapacity:
    """What a host has: cores, bytes of memory (None: it is not counted), named resources."""

    cores: int = 1
    memory_B: float | None = None
    resources: Mapping[str, int] = field(default_factory=dict)


class Space(Protocol):
    """Sums with free values; ``free`` is one, ``everything`` that of the empty machine."""

    everything: Any

    def candidates(self, free: Any, job: Job) -> Mask:
        """The hosts on which the job could be."""
        ...

    def taken(self, free: Any, job: Job, hosts: Mask, cores: Cores = None) -> Any:
        """What is free once the job is on these hosts."""
        ...

    def given(self, free: Any, job: Job, hosts: Mask, cores: Cores = None) -> Any:
        """What is free once the job has left these hosts."""
        ...

    def meet(self, one: Any, other: Any) -> Any:
        """What is free in both."""
        ...

    def kept(self, free: Any, job: Job, hosts: Mask, cores: Cores = None) -> Any:
        """What is free beside a job that is suspended on these hosts."""
        ...

    def resumed(self, free: Any, job: Job, hosts: Mask, cores: Cores = None) -> Any:
        """What is free once a job that is suspended on these hosts goes on."""
        ...

    def closed(self, free: Any, hosts: Mask) -> Any:
        """The same with nothing free on these hosts."""
        ...


class HostSpace:
    """Whole hosts alone: a free value is the mask of the free hosts."""

    def __init__(self, num_hosts: int) -> None:
        self.everything: Mask = (1 << num_hosts) - 1

    def candidates(self, free: Mask, job: Job) -> Mask:
        return free

    def taken(self, free: Mask, job: Job, hosts: Mask, cores: Cores = None) -> Mask:
        return free & ~hosts

    def given(self, free: Mask, job: Job, hosts: Mask, cores: Cores = None) -> Mask:
        return free | hosts

    def meet(self, one: Mask, other: Mask) -> Mask:
        return one & other

    def kept(self, free: Mask, job: Job, hosts: Mask, cores: Cores = None) -> Mask:
        return free

    resumed = taken

    def closed(self, free: Mask, hosts: Mask) -> Mask:
        return free & ~hosts


class Free(NamedTuple):
    """What is free: a row for each host (cores, memory, each named resource), and licences."""

    hosts: NDArray[np.float64]
    licences: NDArray[np.float64]


def asks_for_more_than_hosts(job: Job) -> bool:
    """Whether a job asks for anything but whole hosts."""
    return (
        job.cores is not None
        or job.memory_B is not None
        or bool(job.resources)
        or bool(job.licences)
    )


class CoreSpace:
    """Cores, memory and named resources of each host; licences of the whole machine.

    A job that does not ask for cores takes all those of its hosts. Bytes and resources that a
    machine has no limit to are not counted.
    """

    def __init__(self, hosts: Sequence[HostCapacity], licences: Mapping[str, int]) -> None:
        names = sorted({name for host in hosts for name in host.resources})
        rows = [
            [
                host.cores,
                inf if host.memory_B is None else host.memory_B,
                *(host.resources.get(name, 0) for name in names),
            ]
            for host in hosts
        ]
        self._columns = {name: 2 + k for k, name in enumerate(names)}
        self._licences = {name: k for k, name in enumerate(licences)}
        table = np.array(rows, dtype=np.float64).reshape(len(rows), 2 + len(names))
        self.everything = Free(table, np.array(list(licences.values()), dtype=np.float64))

    def lacks(self, job: Job) -> str | None:
        """What the job asks for and no host, or not the machine, has any of; None: nothing."""
        for name, count in job.resources.items():
            if count > 0 and name not in self._columns:
                return f"'{name}', which no host has"
        for name, count in job.licences.items():
            if name in self._licences and count > self.everything.licences[self._licences[name]]:
                return f"{count} licences '{name}', which the machine does not have"
        return None

    def _needs(self, job: Job) -> NDArray[np.float64]:
        """What a job asks of a host, its cores left out."""
        row = np.zeros(self.everything.hosts.shape[1])
        row[1] = job.memory_B or 0.0
        for name, count in job.resources.items():
            if count:
                row[self._columns[name]] = count
        return row

    def _wanted_licences(self, job: Job) -> NDArray[np.float64]:
        row = np.zeros(len(self._licences))
        for name, count in job.licences.items():
            if name in self._licences:
                row[self._licences[name]] = count
        return row

    def candidates(self, free: Free, job: Job) -> Mask:
        if job.licences and (free.licences < self._wanted_licences(job)).any():
            return 0
        if job.cores is None:
            enough = free.hosts[:, 0] >= self.everything.hosts[:, 0]
        else:
            enough = free.hosts[:, 0] >= job.cores
        if job.memory_B or job.resources:
            enough &= (free.hosts[:, 1:] >= self._needs(job)[1:]).all(axis=1)
        return mask_of(enough)

    def _placement(
        self, job: Job, hosts: Mask, cores: Cores
    ) -> tuple[list[int], NDArray[np.float64]]:
        """The hosts and what the job takes of each."""
        places = members(hosts)
        rows = np.tile(self._needs(job), (len(places), 1))
        if cores is not None:
            rows[:, 0] = cores
        else:
            rows[:, 0] = self.everything.hosts[places, 0] if job.cores is None else job.cores
        return places, rows

    def taken(self, free: Free, job: Job, hosts: Mask, cores: Cores = None) -> Free:
        return self._changed(free, job, hosts, cores, -1.0)

    def given(self, free: Free, job: Job, hosts: Mask, cores: Cores = None) -> Free:
        return self._changed(free, job, hosts, cores, 1.0)

    def _changed(self, free: Free, job: Job, hosts: Mask, cores: Cores, sign: float) -> Free:
        table, licences = free.hosts.copy(), free.licences
        places, rows = self._placement(job, hosts, cores)
        table[places] += sign * rows
        if job.licences:
            licences = licences + sign * self._wanted_licences(job)
        return Free(table, licences)

    def cores_alone(self, free: Free, job: Job, hosts: Mask, cores: Cores, sign: float) -> Free:
        """What is free once a suspended job gives its cores back (sign 1) or takes them (-1)."""
        table = free.hosts.copy()
        places, rows = self._placement(job, hosts, cores)
        table[places, 0] += sign * rows[:, 0]
        return Free(table, free.licences)

    def meet(self, one: Free, other: Free) -> Free:
        return Free(np.minimum(one.hosts, other.hosts), np.minimum(one.licences, other.licences))

    def kept(self, free: Free, job: Job, hosts: Mask, cores: Cores = None) -> Free:
        return self.cores_alone(self.taken(free, job, hosts, cores), job, hosts, cores, 1.0)

    def resumed(self, free: Free, job: Job, hosts: Mask, cores: Cores = None) -> Free:
        return self.cores_alone(free, job, hosts, cores, -1.0)

    def closed(self, free: Free, hosts: Mask) -> Free:
        table = free.hosts.copy()
        table[members(hosts)] = -1.0
        return Free(table, free.licences)


def mask_of(flags: NDArray[np.bool_]) -> Mask:
    """The mask of the hosts whose flag is set."""
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")
