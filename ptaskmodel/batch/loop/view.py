"""The view that a policy gets: read-only access to the machine, the queue and the latest events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Any, Protocol

from ptaskmodel.batch.allocations import Allocation
from ptaskmodel.batch.jobs.execution import Attempt
from ptaskmodel.batch.loop.decisions import ENDED, MACHINE, MESSAGE, SUBMITTED, Decision, Event
from ptaskmodel.batch.loop.power_states import Pstates
from ptaskmodel.batch.loop.state import State
from ptaskmodel.batch.machine.capacity import Space
from ptaskmodel.batch.machine.failures import Window
from ptaskmodel.batch.machine.host_sets import HostSet, Mask, as_mask
from ptaskmodel.workload.jobs import Job


class Policy(Protocol):
    """Decides what starts. A plain job in the answer stands for ``Start(job)``.

    `decide` is called once for each date at which something happens, after all of it. It yields
    decisions; each is carried out at once, so that what the view says after a yield already takes
    it into account. A policy may have an attribute ``order``: the key by which the queue is sorted
    (jobs of one key by submission); without it, or if it is None, by submission.
    """

    def decide(self, view: View) -> Iterable[Decision]: ...


class View:
    """What a policy may look at. A view of part of the machine shows only the hosts ``within``.

    ``within`` is their mask; None: the whole machine. state: of the batch. queue: the waiting jobs
    that it shows, in their order (None: all).
    ``estimate_s(job)`` is how long a job is believed to run, s; inf if there is no belief.
    """

    __slots__ = ("_chosen", "_queue", "_state", "estimate_s", "within")

    estimate_s: Callable[[Job], float]

    def __init__(
        self, state: State, within: Mask | None = None, queue: Sequence[Job] | None = None
    ) -> None:
        self._state = state
        self._queue = queue
        self._chosen: frozenset[Job] | None = None  # the only jobs of the queue that it shows
        self.within: Mask | None = None if within is None else int(within)
        self.estimate_s = state.estimates.__getitem__

    # --- hosts ------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """The date, s."""
        return self._state.now

    @property
    def num_hosts(self) -> int:
        """How many hosts there are, busy and unavailable ones included."""
        return self._state.cluster.num_hosts if self.within is None else self.within.bit_count()

    @property
    def num_available(self) -> int:
        """How many hosts are available."""
        if self.within is None:
            return self._state.cluster.num_available
        return self.available_mask.bit_count()

    @property
    def free(self) -> int:
        """How many hosts are free: available, and no running job has any of them."""
        return (
            self._state.cluster.idle_hosts.count
            if self.within is None
            else self.free_mask.bit_count()
        )

    @property
    def free_hosts(self) -> HostSet:
        """The free hosts."""
        return HostSet(self.free_mask)

    @property
    def free_mask(self) -> Mask:
        """The free hosts as a mask (quicker than a `HostSet`)."""
        return self._part(self._state.cluster.idle)

    @property
    def available_hosts(self) -> HostSet:
        """The hosts that are up and on and not in maintenance."""
        return HostSet(self.available_mask)

    @property
    def available_mask(self) -> Mask:
        """The hosts that are up and on and not in maintenance, as a mask."""
        return self._part(self._state.cluster.available)

    @property
    def working_mask(self) -> Mask:
        """The hosts that are up and on, those in maintenance included, as a mask."""
        return self._part(self._state.cluster.working)

    def usable(self, begin_s: float, end_s: float) -> Mask:
        """Return the hosts that are up, on and not in maintenance from `begin_s` to `end_s` (s)."""
        maintenance = self._state.maintenance
        taken = 0 if maintenance is None else maintenance.during(begin_s, end_s)
        return self.working_mask & ~taken

    @property
    def maintenance(self) -> Sequence[Window]:
        """The windows of maintenance that are not over, by start."""
        maintenance = self._state.maintenance
        return () if maintenance is None else maintenance.windows

    @property
    def down_hosts(self) -> HostSet:
        """The hosts that have failed."""
        return HostSet(self._part(self._state.cluster.down))

    @property
    def off_hosts(self) -> HostSet:
        """The hosts that are turned off."""
        return HostSet(self._part(self._state.cluster.off))

    def _part(self, hosts: Mask) -> Mask:
        """Those of the hosts that the view shows."""
        return hosts if self.within is None else hosts & self.within

    @property
    def pstates(self) -> Pstates:
        """The pstate of each host, which hosts sleep or switch, and the power of hosts."""
        return self._state.pstates

    # --- jobs -------------------------------------------------------------------------------

    @property
    def queue(self) -> Sequence[Job]:
        """The jobs that waited when the decision began, in the order of the policy."""
        return self._state.queue if self._queue is None else self._queue

    @property
    def running(self) -> Sequence[Attempt]:
        """The attempts that run, in order of their starts."""
        return self._seen(self._state.running.values())

    @property
    def suspended(self) -> Sequence[Attempt]:
        """The suspended attempts, in order of their suspension."""
        return self._seen(self._state.suspended.values())

    @property
    def by_expected_end(self) -> Sequence[Attempt]:
        """The attempts that run by expected end, then by start."""
        return self._seen(entry[2] for entry in self._state.by_end)

    def attempt(self, job: Job) -> Attempt | None:
        """The attempt of a job that runs or is suspended; None of any other."""
        return self._state.running.get(job) or self._state.suspended.get(job)

    def _seen(self, attempts: Iterable[Attempt]) -> list[Attempt]:
        if self.within is None:
            return list(attempts)
        return [attempt for attempt in attempts if attempt.mask & self.within]

    def is_waiting(self, job: Job) -> bool:
        """Whether the job is (still) in the queue that the view shows."""
        return job in self._state.waiting and (self._chosen is None or job in self._chosen)

    # --- what happened ----------------------------------------------------------------------

    @property
    def submitted(self) -> Sequence[Job]:
        """The jobs submitted or requeued since the last decision, in that order."""
        return self._state.submitted

    @property
    def ended(self) -> Sequence[Attempt]:
        """The attempts that ended at this date or were stopped in this decision.

        A policy that is asked again because it killed attempts sees those.
        """
        ended = self._state.ended
        return ended if self.within is None else self._seen(ended)

    @property
    def messages(self) -> Sequence[Any]:
        """The messages delivered since the last decision."""
        return [event.subject for event in self._state.other_events if event.kind == MESSAGE]

    @property
    def events(self) -> Sequence[Event]:
        """All that happened since the last decision.

        Ends, the machine, submissions, messages, wakes.
        """
        state = self._state
        ends = [Event(state.now, ENDED, attempt) for attempt in state.ended]
        hosts = [event for event in state.other_events if event.kind in MACHINE]
        jobs = [Event(state.now, SUBMITTED, job) for job in state.submitted]
        rest = [event for event in state.other_events if event.kind not in MACHINE]
        return [*ends, *hosts, *jobs, *rest]

    @property
    def estimates_changed(self) -> bool:
        """Whether, at this date, a job was seen to have outlived its estimate."""
        return self._state.estimates_changed

    @property
    def machine_changed(self) -> bool:
        """Whether hosts came or went or jobs were suspended or resumed since the last decision."""
        return self._state.machine_changed

    # --- what fits --------------------------------------------------------------------------

    @property
    def allocation(self) -> Allocation:
        return self._state.allocation

    @property
    def counted(self) -> bool:
        """Whether more than whole hosts is counted: numbers of hosts do not say what fits then."""
        return self._state.cluster.counted

    @property
    def by_place(self) -> bool:
        """Whether numbers of free hosts do not say what fits.

        More than whole hosts is counted, the allocation is choosy, or maintenance is to come.
        """
        return self.allocation.constrained or self.counted or bool(self.maintenance)

    @property
    def space(self) -> Space:
        """Sums with what is free, for policies that plan ahead; see `batch.machine.capacity`."""
        return self._state.cluster.space

    @property
    def free_value(self) -> Any:
        """What is free now, a value of the space."""
        return self._state.cluster.free

    def candidates(self, job: Job) -> Mask:
        """The hosts on which the job could start now (it needs ``job.num_hosts`` of them)."""
        return self._part(self._state.candidates(job))

    def fits(self, job: Job) -> bool:
        """Whether the job could start now."""
        state = self._state
        if self.within is None and state.by_count(job):
            if state.cluster.idle_hosts.count < job.num_hosts:
                return False
        elif self.candidates(job).bit_count() < job.num_hosts:
            return False
        allocation = state.allocation
        if not allocation.constrained:
            return True
        return allocation.choose(job.num_hosts, self.candidates(job)) is not None

    def next_fitting(
        self,
        after: Job | None = None,
        *,
        hosts: int | None = None,
        beyond: int | None = None,
        end_by: float = inf,
    ) -> Job | None:
        """Return the next waiting job of the queue that could start now; None if there is none.

        after: only jobs behind this one. hosts: it needs at most this many (None: the free ones).
        beyond, end_by: it also needs at most ``beyond`` hosts, or is estimated to end by the date
        ``end_by``, s (inf: no job is); this is the rule for jobs that may overtake a reservation.
        It is fast in long queues, since it does not look at each job. Raises SimulationError for an
        ``after`` that was never submitted.
        """
        state = self._state
        if not state.waiting:
            return None
        cluster = state.cluster
        if hosts is None:
            hosts = self.num_hosts if cluster.counted else self.free
        if beyond is None:
            beyond = hosts
        job = state.line.next_fitting(after, hosts, beyond, state.now, end_by)
        chosen = self._chosen
        if chosen is not None or self.by_place:
            # Numbers of hosts are not enough to say that it fits.
            while job is not None and not ((chosen is None or job in chosen) and self.fits(job)):
                job = state.line.next_fitting(job, hosts, beyond, state.now, end_by)
        return job

    def can_resume(self, attempt: Attempt) -> bool:
        """Whether the cores of a suspended attempt are free."""
        return self._state.can_resume(attempt)

    def first_room(self, count: int) -> tuple[float, int]:
        """Return (time, free hosts then): when `count` hosts will be free by the estimates.

        Only running attempts count; the time is inf if it cannot be foreseen.
        """
        free, date = self.free, inf
        if self.within is None:
            for end, _, attempt in self._state.by_end:
                if end > date:
                    break
                free += attempt.job.num_hosts
                if date == inf and free >= count:
                    date = end
            return date, free
        for attempt in self.by_expected_end:
            if attempt.expected_end_s > date:
                break
            free += self._part(attempt.mask).bit_count()
            if date == inf and free >= count:
                date = attempt.expected_end_s
        return date, free

    def part(
        self,
        within: HostSet | Mask | Iterable[int] | None = None,
        *,
        still_waiting: bool = False,
        queue: Sequence[Job] | None = None,
    ) -> View:
        """The view of the hosts ``within`` alone (None: the same hosts); the queue is the same.

        still_waiting: the queue without the jobs that were decided on already at this date. queue:
        these jobs alone, in the order of the queue.
        """
        if still_waiting:
            jobs: Sequence[Job] | None = [job for job in self.queue if self.is_waiting(job)]
        else:
            jobs = queue
        part = View(
            self._state, self.within if within is None else self._part(as_mask(within)), jobs
        )
        part._chosen = self._chosen if queue is None else frozenset(queue)
        return part
