"""State of the open batch loop: the queue, the running attempts, the hosts, and events.

`Cluster` knows which hosts are up, on and free, and their free capacity.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

from ptaskmodel.batch.allocations import Allocation
from ptaskmodel.batch.allocations.rules import FirstFit
from ptaskmodel.batch.jobs.execution import RUNNING, SUSPENDED, Attempt
from ptaskmodel.batch.jobs.queue import JobQueue
from ptaskmodel.batch.loop.decisions import Event
from ptaskmodel.batch.loop.power_states import Pstates
from ptaskmodel.batch.machine.capacity import (
    CoreSpace,
    HostCapacity,
    HostSpace,
    Space,
    asks_for_more_than_hosts,
)
from ptaskmodel.batch.machine.failures import Maintenance
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
        """Return whether these numbers of cores of these hosts, candidates of a job, are free."""
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
        """Note that a host has failed or come `up`; return whether that is news."""
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
        """Let hosts drain, or no more; return those for which that is news.

        draining: whether no job starts there any more. occupied: the hosts on which jobs run.
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


class Estimates(dict[Job, float]):
    """How long each job is believed to run, s; `estimate` is called once for each job."""

    def __init__(self, estimate: Callable[[Job], float]) -> None:
        super().__init__()
        self._estimate = estimate

    def __missing__(self, job: Job) -> float:
        self[job] = believed = self._estimate(job)
        return believed


class State:
    """The machine, the queue and the attempts; only the simulation changes it.

    limited: whether a job ends at its walltime at the latest. maintenance: None without any.
    """

    def __init__(
        self,
        cluster: Cluster,
        allocation: Allocation,
        estimate: Callable[[Job], float],
        order: Callable[[Job], Any] | None,
        limited: bool = True,
        maintenance: Maintenance | None = None,
        pstates: Pstates | None = None,
    ) -> None:
        self.now = 0.0
        self.cluster = cluster
        self.pstates = pstates or Pstates()
        self.allocation = allocation
        # Whether the lowest free hosts are always right: nobody need be asked then.
        self.first_fit = type(allocation) is FirstFit
        self.estimates = Estimates(estimate)
        self._estimate = estimate
        self.limited = limited
        self.maintenance = maintenance
        self.line = JobQueue(order, self.estimates)
        self.queue = self.line.jobs
        self.waiting = self.line.waiting
        self.running: dict[Job, Attempt] = {}
        self.suspended: dict[Job, Attempt] = {}
        # Running attempts by expected end, then by start.
        self.by_end: list[tuple[float, int, Attempt]] = []
        # What happened at this date.
        self.submitted: list[Job] = []
        self.ended: list[Attempt] = []
        self.other_events: list[Event] = []
        self.estimates_changed = False
        self.machine_changed = False
        self.machine_changes = False  # since the last decision began

    # --- the queue --------------------------------------------------------------------------

    def submit(self, job: Job) -> None:
        """Put a job in the queue; how long it is believed to run is asked for here, once."""
        self.estimates[job] = self._estimate(job)
        self.line.enter(job)
        self.submitted.append(job)

    def submit_again(self, job: Job) -> None:
        """Put a job that was stopped at its place in the queue."""
        self.line.enter_again(job)
        self.submitted.append(job)

    # --- what fits --------------------------------------------------------------------------

    def by_count(self, job: Job) -> bool:
        """Whether the number of idle hosts says if a job fits now.

        No cores are counted, no host is shared, and by its estimate it ends before any maintenance.
        """
        cluster, maintenance = self.cluster, self.maintenance
        return (
            not cluster.counted
            and not cluster.shared
            and (maintenance is None or self.now + self.estimates[job] <= maintenance.first_s)
        )

    @property
    def occupied(self) -> Mask:
        """The hosts on which jobs run."""
        mask = 0
        for attempt in self.running.values():
            mask |= attempt.mask
        return mask

    def any_will_do(self, job: Job) -> bool:
        """Return whether the lowest idle hosts are right for a job: no allocation need be asked."""
        return self.first_fit and self.by_count(job)

    def candidates(self, job: Job) -> Mask:
        """The hosts on which a job could start now, and end by its estimate before maintenance."""
        free = self.cluster.candidates(job)
        if self.maintenance is not None:
            free &= ~self.maintenance.during(self.now, self.now + self.estimates[job])
        return free

    def can_resume(self, attempt: Attempt) -> bool:
        """Whether the cores of a suspended attempt are free, until its end by its estimate."""
        if not self.cluster.cores_free(attempt):
            return False
        if self.maintenance is None:
            return True
        left_s = attempt.expected_end_s - (attempt.suspensions[-1][0] or 0.0)
        return not attempt.mask & self.maintenance.during(self.now, self.now + left_s)

    # --- attempts ---------------------------------------------------------------------------

    def started(self, attempt: Attempt) -> None:
        """An attempt has begun; its hosts have been taken."""
        self.running[attempt.job] = attempt
        insort(self.by_end, (attempt.expected_end_s, attempt.number, attempt))

    def stopped(self, attempt: Attempt) -> None:
        """An attempt has ended, running or suspended."""
        job = attempt.job
        if job in self.suspended:
            del self.suspended[job]
            attempt.suspensions[-1][1] = self.now
            self.cluster.forget(attempt)
        else:
            del self.running[job]
            self.cluster.give(attempt)
            self._leave_by_end(attempt)

    def suspend(self, attempt: Attempt) -> None:
        del self.running[attempt.job]
        self.suspended[attempt.job] = attempt
        self._leave_by_end(attempt)
        self.cluster.release(attempt)
        attempt.state = SUSPENDED
        attempt.suspensions = [*attempt.suspensions, [self.now, None]]
        self.machine_changes = True

    def resume(self, attempt: Attempt) -> None:
        del self.suspended[attempt.job]
        self.running[attempt.job] = attempt
        attempt.state = RUNNING
        last = attempt.suspensions[-1]
        last[1] = self.now
        attempt.expected_end_s += self.now - (last[0] or 0.0)
        self.cluster.take_again(attempt)
        insort(self.by_end, (attempt.expected_end_s, attempt.number, attempt))
        self.machine_changes = True

    def expect(self, attempt: Attempt, date: float) -> None:
        """A running attempt will end at this date."""
        self._leave_by_end(attempt)
        attempt.expected_end_s = date
        insort(self.by_end, (date, attempt.number, attempt))
        self.machine_changes = True

    def _leave_by_end(self, attempt: Attempt) -> None:
        del self.by_end[bisect_left(self.by_end, (attempt.expected_end_s, attempt.number))]

    def extend_outlived(self) -> None:
        """Double the estimates of the jobs that outlived them, never beyond their walltime."""
        now, by_end, late = self.now, self.by_end, []
        if by_end and by_end[0][0] <= now:
            for entry in by_end:
                if entry[0] > now:
                    break
                if (entry[2].start_s or 0.0) < now:
                    late.append(entry)
        self.estimates_changed = bool(late)
        for attempt in self.ended:
            if attempt.expected_end_s < now:
                self.estimates_changed = True
        for entry in late:
            self._extend(entry)

    def _extend(self, entry: tuple[float, int, Attempt]) -> None:
        _, number, attempt = entry
        # From the start that it would have had without its suspensions.
        start = (attempt.start_s or 0.0) + attempt.suspended_s(self.now)
        expected = attempt.expected_end_s - start or self.now - start
        while start + expected <= self.now:
            expected *= 2
        walltime = attempt.job.walltime_s
        limit = inf if walltime is None or not self.limited else walltime
        self.by_end.remove(entry)
        attempt.expected_end_s = start + min(expected, limit)
        if self.maintenance is not None:
            end = self.maintenance.next_start(attempt.mask, self.now)
            attempt.expected_end_s = min(attempt.expected_end_s, end)
        insort(self.by_end, (attempt.expected_end_s, number, attempt))
