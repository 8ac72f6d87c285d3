"""Free capacity of the hosts, now, and over time in calendars that backfilling policies plan with.

A space computes with immutable *free values*: what is free after a job has taken its placement,
what is free at both of two times, and which hosts could take a job.

`HostCounts` counts hosts; the other calendars record which hosts are free, or how much of each. A
job of no length takes its hosts at one time. A job that runs across that time conflicts with it; a
job that begins or ends at that time does not.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
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
        """Return the hosts on which a job could be, of what is `free`."""
        ...

    def taken(self, free: Any, job: Job, hosts: Mask, cores: Cores = None) -> Any:
        """Return what is free once a job is on these hosts.

        cores: how many it takes of each host; None: as many as it asks for.
        """
        ...

    def given(self, free: Any, job: Job, hosts: Mask, cores: Cores = None) -> Any:
        """Return what is free once a job has left these hosts; cores: as of `taken`."""
        ...

    def meet(self, one: Any, other: Any) -> Any:
        """Return what is free in both `one` and `other`."""
        ...

    def kept(self, free: Any, job: Job, hosts: Mask, cores: Cores = None) -> Any:
        """Return what is free beside a job suspended on these hosts; cores: as of `taken`."""
        ...

    def resumed(self, free: Any, job: Job, hosts: Mask, cores: Cores = None) -> Any:
        """Return what is free once a job suspended on hosts resumes; cores: as of `taken`."""
        ...

    def closed(self, free: Any, hosts: Mask) -> Any:
        """The same with nothing free on these hosts."""
        ...


class HostSpace:
    """Whole hosts alone, ``num_hosts`` of them: a free value is the mask of the free hosts."""

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
        """Return what is free once a suspended job on `hosts` gives its cores back or takes them.

        sign: 1 gives, -1 takes.
        """
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
    """Return the mask of the hosts that are set in `flags`, shape (hosts,)."""
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


Choose = Callable[[int, Mask], Mask | None]


class _Slots:
    """What is free over time: slots in order of date.

    ``free[k]`` is free from ``times[k]`` to ``times[k + 1]``; ``at[k]``, at the very beginning of
    that, beside those alone who neither begin nor end then. instants: the jobs of no length, by
    their date: each is alone with those, one after the other, before the next begin.
    """

    def __init__(self, now: float, free: Any) -> None:
        self.times = [now]
        self.free = [free]
        self.at = [free]
        self.instants: dict[float, tuple[Any, ...]] = {}

    def forget_before(self, now: float) -> None:
        """Drop what is past: the calendar begins at ``now``."""
        first = bisect_right(self.times, now) - 1
        del self.times[:first], self.free[:first], self.at[:first]
        self.times[0] = now
        if self.instants:
            self.instants = {date: jobs for date, jobs in self.instants.items() if date > now}

    def _copied_to(self, other: _Slots) -> None:
        other.times, other.free, other.at = self.times.copy(), self.free.copy(), self.at.copy()
        other.instants = self.instants.copy()

    def _take_instant(self, date: float, job: Any) -> None:
        """A job of no length is there at a date to come."""
        if self.times[0] < date < inf:
            self._cut(date)
            self.instants[date] = (*self.instants.get(date, ()), job)

    def _give_instant(self, date: float, job: Any) -> None:
        jobs = list(self.instants.get(date, ()))
        if job in jobs:
            jobs.remove(job)
            self.instants[date] = tuple(jobs)
            if not jobs:
                del self.instants[date]
                self._join(self._cut(date))

    def _cut(self, date: float) -> int:
        """Position of the slot that begins at ``date``, cutting the slot that spans it."""
        times, free = self.times, self.free
        if date == inf:
            return len(times)
        k = bisect_left(times, date)
        if k == len(times) or times[k] != date:
            times.insert(k, date)
            free.insert(k, free[k - 1])
            self.at.insert(k, free[k - 1])
        return k

    def _join(self, k: int) -> None:
        """Join a slot to the one before if nothing changes at its beginning."""
        times, free = self.times, self.free
        if (
            0 < k < len(times)
            and _equal(free[k], free[k - 1])
            and _equal(free[k], self.at[k])
            and times[k] not in self.instants
        ):
            del times[k], free[k], self.at[k]


class HostCounts(_Slots):
    """Numbers of free hosts over time. A place in it is a number of hosts."""

    def earliest(self, count: int, duration: float) -> tuple[float, int]:
        """The first date from which ``count`` hosts are free for ``duration``, and their place.

        The date is inf if there is none.
        """
        times, free = self.times, self.free
        begin, last = 0, len(times) - 1
        while True:
            while free[begin] < count:
                if begin == last:
                    return inf, count
                begin += 1
            k = self._stops(begin, count, times[begin] + duration)
            if k < 0:
                return times[begin], count
            begin = k

    def fits_now(self, count: int, duration: float) -> bool:
        """Whether ``count`` hosts are free for ``duration`` from the beginning on."""
        return self.free[0] >= count and self._stops(0, count, self.times[0] + duration) < 0

    def _stops(self, begin: int, count: int, end: float) -> int:
        """The slot that stops a job which is on ``count`` hosts from a slot on until a date; -1."""
        times, free, instants = self.times, self.free, self.instants
        k, last = begin + 1, len(times) - 1
        while k <= last and times[k] < end:
            if free[k] < count or (
                instants and self.at[k] - max(instants.get(times[k], (0,))) < count
            ):
                return k
            k += 1
        return -1

    def take(self, begin: float, end: float, place: int) -> None:
        """The place is used from ``begin`` to ``end``."""
        if begin >= end:
            self._take_instant(begin, place)
        else:
            self._add(begin, end, -place)

    def give(self, begin: float, end: float, place: int) -> None:
        """The place is no longer used from ``begin`` to ``end``."""
        if begin >= end:
            self._give_instant(begin, place)
        else:
            self._add(begin, end, place)

    def _add(self, begin: float, end: float, count: int) -> None:
        if begin == inf:
            return
        first, stop = self._cut(begin), self._cut(end)
        free, at = self.free, self.at
        free[first] += count
        for k in range(first + 1, stop):
            free[k] += count
            at[k] += count
        self._join(stop)
        self._join(first)


class PlaceCalendar(_Slots):
    """What is free over time, where numbers of hosts are not enough: choosy allocations, cores.

    now: its first date, s. space: what a free value is. choose: the hosts of a job, of those that
    have room for it. A place in it is a mask of hosts. usable: the hosts that are up and on.
    """

    def __init__(self, now: float, space: Space, usable: Mask, choose: Choose) -> None:
        super().__init__(now, space.everything)
        self._space = space
        self._usable = usable
        self._choose = choose

    def earliest(self, job: Job, duration: float) -> tuple[float, Mask]:
        """Return the first date from which hosts that suit a job are free, and which.

        duration: for how long, s. The date is inf if there is none.
        """
        for begin, date in enumerate(self.times):
            place = self.room(job, begin, duration, self._usable)
            if place is not None:
                return date, place
        return inf, 0

    def room(self, job: Job, begin: int, duration: float, within: Mask) -> Mask | None:
        """Return hosts for a job, of ``within``, from the date ``times[begin]`` on.

        They are free for ``duration`` seconds. None: there are too few.
        """
        times, free, space = self.times, self.free, self._space
        end, common, k = times[begin] + duration, free[begin], begin + 1
        while k < len(times) and times[k] < end and common:
            common = space.meet(common, free[k])
            for other, place in self.instants.get(times[k], ()):
                common = space.meet(common, space.taken(self.at[k], other, place, None))
            k += 1
        hosts = space.candidates(common, job) & within
        if hosts.bit_count() < job.num_hosts:
            return None
        return self._choose(job.num_hosts, hosts)

    def fits_now(self, job: Job, duration: float) -> Mask | None:
        """Return hosts that are free for a job from the beginning on; None: there are too few.

        duration: for how long, s.
        """
        return self.room(job, 0, duration, self._usable)

    def keep(self, job: Job, place: Mask, cores: Cores) -> None:
        """Let a suspended job keep its `place` but not its cores, for an unknown time."""
        self.free = [self._space.kept(free, job, place, cores) for free in self.free]
        self.at = [self._space.kept(free, job, place, cores) for free in self.at]

    def close(self, begin: float, end: float, hosts: Mask) -> None:
        """Give these hosts to no job from ``begin`` to ``end``."""
        self._change(begin, end, self._space.closed, hosts)

    def take(self, begin: float, end: float, job: Job, place: Mask, cores: Cores = None) -> None:
        """Put a job on its place from ``begin`` to ``end`` (s); cores: as of `Space.taken`."""
        if begin >= end:
            self._take_instant(begin, (job, place))
        else:
            self._change(begin, end, self._space.taken, job, place, cores)

    def give(self, begin: float, end: float, job: Job, place: Mask, cores: Cores = None) -> None:
        """Take a job from its place from ``begin`` to ``end`` (s); cores: as of `Space.taken`."""
        if begin >= end:
            self._give_instant(begin, (job, place))
        else:
            self._change(begin, end, self._space.given, job, place, cores)

    def _change(self, begin: float, end: float, how: Callable[..., Any], *what: Any) -> None:
        if begin == inf:
            return
        first, stop = self._cut(begin), self._cut(end)
        for k in range(first, stop):
            self.free[k] = how(self.free[k], *what)
            if k > first:
                self.at[k] = how(self.at[k], *what)
        self._join(stop)
        self._join(first)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, Free):
        return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)
