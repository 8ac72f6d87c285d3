"""Hosts of a batch during a run: which are up, on and free, and their free capacity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ptaskmodel.batch.jobs.attempt import SUSPENDED, Attempt
from ptaskmodel.batch.machine.capacity import (
    CoreSpace,
    HostCapacity,
    HostSpace,
    Space,
    asks_for_more_than_hosts,
)
from ptaskmodel.batch.machine.host_sets import FreeHosts, Mask, Placement, mask_of, members
from ptaskmodel.errors import SimulationError
from ptaskmodel.workload.jobs import Job


class Cluster:
    """The state of the hosts; only the simulation changes it.

    A host is *available* while it is up (it has not failed), on (not turned off) and not in
    maintenance. It is *idle* if it is available and no running job has any of it. While all jobs
    ask for whole hosts, this is the whole state; from the first job that asks for more, cores and
    other resources are counted. Hosts may also be *draining*: no job starts there, and running jobs
    continue.

    shared: whole hosts may have several jobs at once. admit_larger: jobs larger than the machine
    are admitted, to be rejected.
    """

    def __init__(
        self,
        hosts: Sequence[HostCapacity] | int,
        licences: Mapping[str, int] | None = None,
        shared: bool = False,
        admit_larger: bool = False,
    ) -> None:
        self.capacities = (HostCapacity(),) * hosts if isinstance(hosts, int) else tuple(hosts)
        self.num_hosts = len(self.capacities)
        self.everything: Mask = (1 << self.num_hosts) - 1
        self.available: Mask = self.everything
        self.num_available = self.num_hosts
        self.down: Mask = 0
        self.off: Mask = 0
        self.maintained: Mask = 0
        self.draining: Mask = 0
        self.shared = shared
        self._admit_larger = admit_larger
        self._jobs_on = [0] * self.num_hosts if shared else []
        self.idle_hosts = FreeHosts(self.num_hosts)
        self.counted = False
        self.space: Space = HostSpace(self.num_hosts)
        self.licences = dict(licences or {})
        self._free: Any = None  # a value of the `CoreSpace`

    # --- what fits --------------------------------------------------------------------------

    @property
    def idle(self) -> Mask:
        """The idle hosts as a mask."""
        return self.idle_hosts.mask

    @property
    def free(self) -> Any:
        """What is free now, as a value of the space; hosts that are not available included."""
        return self._free if self.counted else self.idle | (self.everything & ~self.available)

    def candidates(self, job: Job) -> Mask:
        """The hosts on which a job could start now."""
        if self.counted:
            return self.space.candidates(self._free, job) & self.available
        return self.available if self.shared else self.idle

    def admit(self, job: Job, running: Sequence[Attempt]) -> None:
        """Take note that this job will come; SimulationError if it can never run.

        running: the attempts under way, suspended ones too.
        """
        if job.num_hosts > self.num_hosts and not self._admit_larger:
            raise SimulationError(
                f"job '{job.id}' asks for {job.num_hosts} hosts and the platform has "
                f"{self.num_hosts}; use a larger platform or leave the job out "
                "(--leave-out-larger)"
            )
        if not asks_for_more_than_hosts(job):
            return
        if not self.counted:
            self._count(running)
        assert isinstance(self.space, CoreSpace)
        lacking = self.space.lacks(job)
        if lacking is not None:
            raise SimulationError(f"job '{job.id}' asks for {lacking}")
        fitting = self.space.candidates(self.space.everything, job).bit_count()
        if fitting < job.num_hosts:
            raise SimulationError(
                f"job '{job.id}' asks for {job.num_hosts} hosts with {_wanted(job)}, and "
                f"{fitting} of the {self.num_hosts} hosts have that; ask for less"
            )

    def _count(self, running: Sequence[Attempt]) -> None:
        """Count cores and the rest from now on."""
        self.counted = True
        self.space = space = CoreSpace(self.capacities, self.licences)
        self._free = space.everything
        for attempt in running:
            # Only jobs of whole hosts so far: what a suspended one keeps is nothing.
            if attempt.state != SUSPENDED:
                self._free = space.taken(self._free, attempt.job, attempt.mask)

    # --- what jobs take ---------------------------------------------------------------------

    def take(self, attempt: Attempt) -> None:
        """The attempt begins on its placement."""
        if self.counted:
            job = attempt.job
            self._free = self.space.taken(self._free, job, attempt.mask, attempt.cores)
            attempt.use = self._use(attempt)
            self.idle_hosts.mask = self.idle & ~attempt.mask
        elif self.shared:
            self.idle_hosts.mask = self.idle & ~attempt.mask
        else:
            self.idle_hosts.take(attempt.placement)
        self._count_jobs(attempt.placement, 1)

    def _count_jobs(self, hosts: Placement, change: int) -> None:
        if self.shared:
            for host in members(hosts):
                self._jobs_on[host] += change

    def give(self, attempt: Attempt) -> None:
        """The attempt, which ran, has ended."""
        self._count_jobs(attempt.placement, -1)
        if not self.counted and not self.shared and self.num_available == self.num_hosts:
            self.idle_hosts.give(attempt.placement)
            return
        if self.counted:
            job = attempt.job
            self._free = self.space.given(self._free, job, attempt.mask, attempt.cores)
        self._rest(attempt.placement)

    def release(self, attempt: Attempt) -> None:
        """The attempt is suspended: its cores are free, the rest is not."""
        self._give_cores(attempt, 1.0)
        self._count_jobs(attempt.placement, -1)
        self._rest(attempt.placement)

    def take_again(self, attempt: Attempt) -> None:
        """The attempt has its cores again."""
        self._give_cores(attempt, -1.0)
        self._count_jobs(attempt.placement, 1)
        self.idle_hosts.mask = self.idle & ~attempt.mask

    def _give_cores(self, attempt: Attempt, sign: float) -> None:
        if self.counted:
            assert isinstance(self.space, CoreSpace)
            self._free = self.space.cores_alone(
                self._free, attempt.job, attempt.mask, attempt.cores, sign
            )

    def forget(self, attempt: Attempt) -> None:
        """The attempt ended while it was suspended: what it kept is free too."""
        if self.counted:
            self.take_again(attempt)
            self.give(attempt)

    def cores_free(self, attempt: Attempt) -> bool:
        """Whether the cores of a suspended attempt are free, on hosts that are available."""
        if attempt.mask & ~self.available:
            return False
        if not self.counted:
            return self.shared or attempt.mask & ~self.idle == 0
        return all(
            self._free.hosts[host, 0] >= cores
            for host, cores in zip(members(attempt.placement), self._cores(attempt), strict=True)
        )

    def check_cores(self, job: Job, hosts: Mask, cores: Sequence[int]) -> bool:
        """Whether these numbers of cores of these hosts, which are candidates, are free."""
        places = members(hosts)
        if not self.counted or len(places) != len(cores):
            return False
        return all(
            1 <= count <= self._free.hosts[host, 0]
            for host, count in zip(places, cores, strict=True)
        )

    def _rest(self, hosts: Placement) -> None:
        """These hosts are idle if nothing is left on them and they are available."""
        left = mask_of(hosts)
        if self.counted:
            for host in members(hosts):
                if self._free.hosts[host, 0] < self.capacities[host].cores:
                    left &= ~(1 << host)
        elif self.shared:
            for host in members(hosts):
                if self._jobs_on[host]:
                    left &= ~(1 << host)
        self.idle_hosts.mask = self.idle | (left & self.available)

    def _cores(self, attempt: Attempt) -> Sequence[int]:
        if attempt.cores is not None:
            return attempt.cores
        return [self.capacities[host].cores for host in members(attempt.placement)]

    def _use(self, attempt: Attempt) -> float:
        """Of how many whole hosts the placement of an attempt is worth."""
        if attempt.cores is None:
            return attempt.job.num_hosts
        places = zip(members(attempt.placement), attempt.cores, strict=True)
        return sum(count / self.capacities[host].cores for host, count in places)

    # --- hosts that come and go -------------------------------------------------------------

    def set_up(self, host: int, up: bool) -> bool:
        """A host has failed or come back; whether that is news."""
        bit = 1 << host
        if bool(self.down & bit) != up:
            return False
        self.down = self.down & ~bit if up else self.down | bit
        self._see_what_is_available()
        return True

    def set_on(self, hosts: Mask, on: bool) -> Mask:
        """Turn hosts on or off; those for which that is news."""
        changed = hosts & (self.off if on else ~self.off)
        self.off = self.off & ~hosts if on else self.off | hosts
        self._see_what_is_available()
        return changed

    def set_maintained(self, hosts: Mask) -> Mask:
        """These hosts and no others are in maintenance; those for which that is news."""
        changed = hosts ^ self.maintained
        self.maintained = hosts
        self._see_what_is_available()
        return changed

    def set_draining(self, hosts: Mask, draining: bool, occupied: Mask) -> Mask:
        """Nothing starts on these hosts, or again; those for which that is news.

        occupied: the hosts on which jobs run.
        """
        changed = hosts & (~self.draining if draining else self.draining)
        self.draining ^= changed
        self._see_what_is_available(occupied)
        return changed

    @property
    def working(self) -> Mask:
        """The hosts that are up and on and do not drain, those in maintenance included."""
        return self.everything & ~self.down & ~self.off & ~self.draining

    def _see_what_is_available(self, occupied: Mask = 0) -> None:
        before = self.available
        self.available = self.working & ~self.maintained
        self.num_available = self.available.bit_count()
        self.idle_hosts.mask = self.idle & self.available
        self._rest(self.available & ~before & ~occupied)


def _wanted(job: Job) -> str:
    """What a job asks of each host, for messages."""
    found = [] if job.cores is None else [f"{job.cores} cores"]
    if job.memory_B:
        found.append(f"{job.memory_B:g} B of memory")
    found += [f"{count} '{name}'" for name, count in job.resources.items()]
    return ", ".join(found)
