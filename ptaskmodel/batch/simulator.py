"""The batch simulation: events in order of date, and at each date one decision of the policy."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from types import GeneratorType
from typing import Any

from ptaskmodel.batch.allocations import Allocation
from ptaskmodel.batch.allocations.first_fit import FirstFit
from ptaskmodel.batch.attempt import FAILED, WAITING, Attempt
from ptaskmodel.batch.carrying import Carrier
from ptaskmodel.batch.cluster import Cluster
from ptaskmodel.batch.events import (
    BY_HAND,
    HOST_DOWN,
    HOST_UP,
    LATER,
    MESSAGE,
    Agenda,
    Event,
)
from ptaskmodel.batch.execution import DelayExecution, Ended, Execution, walltime_or_inf
from ptaskmodel.batch.faults import PolicyFault, misbehaved, policy_name, raised
from ptaskmodel.batch.hostset import HostSet
from ptaskmodel.batch.names import ON_HOST_FAILURE
from ptaskmodel.batch.outages import Outages
from ptaskmodel.batch.schedule import HostChange, Schedule
from ptaskmodel.batch.spaces import HostCapacity
from ptaskmodel.batch.state import State
from ptaskmodel.batch.view import Policy, View
from ptaskmodel.errors import PTaskModelError, SimulationError
from ptaskmodel.platform.model import AvailabilityTrace
from ptaskmodel.workload.jobs import Job, sorted_jobs

Observer = Callable[[View, Policy], None]
Progress = Callable[[float, int, int], None]
PROGRESS_EVERY = 256
# A policy goes round in circles that is asked so often at one date, or at so many dates without
# deciding anything while nothing runs and nobody is to come.
MAX_DECISIONS_AT_A_DATE = 100_000
MAX_IDLE_DATES = 1_000_000


class BatchSimulation:
    """Jobs on hosts under a policy and an allocation.

    At each date ends come first, then hosts that go down or come up, then submissions, messages and
    wakes; then the policy is asked once. Jobs may be submitted at any time.

    hosts: how many there are, or what each has. estimate: what the policy believes of a job's
    duration (its walltime by default). limited: whether a job ends at its walltime at the latest.
    traces: by host, when it is down (see `Outages`). on_host_failure: the jobs on a host that goes
    down "fail" or are "requeue"d. licences: how many of each name the whole machine has. observe:
    called after each decision; progress: now and then, with the date, how many jobs are over and
    how many wait.

    Raises SimulationError for a job that can never run and a policy that is none.
    """

    def __init__(
        self,
        jobs: Iterable[Job],
        hosts: int | Sequence[HostCapacity],
        policy: Policy,
        *,
        allocation: Allocation | None = None,
        execution: Execution | None = None,
        estimate: Callable[[Job], float] = walltime_or_inf,
        limited: bool = True,
        traces: Mapping[int, AvailabilityTrace] | None = None,
        on_host_failure: str = "fail",
        licences: Mapping[str, int] | None = None,
        observe: Observer | None = None,
        progress: Progress | None = None,
    ) -> None:
        if on_host_failure not in ON_HOST_FAILURE:
            raise SimulationError(
                f"on_host_failure is '{on_host_failure}': use {' or '.join(ON_HOST_FAILURE)}"
            )
        cluster = Cluster(hosts, licences)
        self._jobs = list(sorted_jobs(list(jobs)))
        self._position = 0
        for job in self._jobs:
            cluster.admit(job, ())
        self._ids: set[str] | None = None
        self._policy = policy
        self._order = _order_of(policy)
        self._execution = execution or DelayExecution(limited)
        self._requeue = on_host_failure == "requeue"
        self._observe = observe
        self._progress = progress
        self._state = State(cluster, allocation or FirstFit(), estimate, self._order, limited)
        self.view = View(self._state)
        self._agenda = Agenda()
        self._outages = Outages(traces or {})
        self._carrier = Carrier(self._state, self._execution, self._agenda, self._fault)
        self._answer: Any = None
        self._events = 0
        self._at_this_date = 0
        self._idle_dates = 0

    # --- advancing --------------------------------------------------------------------------

    @property
    def policy(self) -> Policy:
        """Who decides."""
        return self._policy

    @property
    def now(self) -> float:
        """The date, s."""
        return self._state.now

    def run(self) -> Schedule:
        """Simulate until every job is over; raises SimulationError if that never happens."""
        while self.step():
            if self._progress is not None and self._events % PROGRESS_EVERY == 0:
                self._tell_progress()
        state = self._state
        if state.queue:
            raise SimulationError(
                f"policy {policy_name(self._policy)} never starts job '{state.queue[0].id}' and "
                f"{len(state.queue) - 1} more, though {self.view.free} of "
                f"{state.cluster.num_hosts} hosts are free: mend the policy"
            )
        if state.suspended:
            job = next(iter(state.suspended))
            raise SimulationError(
                f"policy {policy_name(self._policy)} never resumes job '{job.id}': mend the policy"
            )
        if self._progress is not None:
            self._tell_progress()
        return self.schedule()

    def step(self) -> bool:
        """Go to the next date at which something happens and let the policy decide.

        False if nothing is left to do: all jobs are over, or nothing will ever happen.
        """
        state = self._state
        left = (
            self._position < len(self._jobs)
            or state.running
            or state.waiting
            or state.suspended
            or self._agenda.urgent
        )
        return bool(left) and self._turn(inf)

    def advance_to(self, date: float) -> None:
        """Go to a date, s, and do all that is due then. Raises SimulationError if it is past."""
        if not self.now <= date < inf:
            raise SimulationError(f"cannot go to date {date}: it is {self.now:g} s now")
        while self._turn(date):
            if self._progress is not None and self._events % PROGRESS_EVERY == 0:
                self._tell_progress()

    def next_event_time(self) -> float | None:
        """A date before which nothing will happen, s; None if nothing ever will by itself.

        With parallel tasks it may be that of something in the simulation with which no job ends.
        """
        jobs, position = self._jobs, self._position
        coming = jobs[position].submit_time_s if position < len(jobs) else inf
        other = min(self._agenda.next_date, self._outages.next_date)
        date = min(coming, other, self._execution.next_date())
        return None if date == inf else max(date, self.now)

    def schedule(self) -> Schedule:
        """What has happened so far."""
        last = self._carrier.last
        final = tuple(
            last.get(job) or Attempt(job, 0, None, inf, -1, WAITING)
            for job in self._jobs[: self._position]
        )
        return Schedule(
            final,
            tuple(self._carrier.attempts),
            self._state.cluster.num_hosts,
            self._events,
            self._state.now,
            tuple(self._carrier.host_changes),
        )

    # --- from outside -----------------------------------------------------------------------

    def submit(self, job: Job) -> None:
        """Submit a job, at its date, which has not passed; after what is submitted then already.

        Raises SimulationError for a date that is past, an id that is taken and a job too large.
        """
        if job.submit_time_s < self.now:
            raise SimulationError(
                f"job '{job.id}' is submitted at {job.submit_time_s:g} s: it is {self.now:g} s now"
            )
        if self._ids is None:
            self._ids = {other.id for other in self._jobs}
        if job.id in self._ids:
            raise SimulationError(f"job '{job.id}': the id is taken; give each job its own")
        under_way = [*self._state.running.values(), *self._state.suspended.values()]
        counted = self._state.cluster.counted
        self._state.cluster.admit(job, under_way)
        self._state.machine_changes |= counted != self._state.cluster.counted
        self._ids.add(job.id)
        insort(self._jobs, job, lo=self._position, key=lambda other: other.submit_time_s)

    def send(self, message: Any) -> None:
        """Deliver a message to the policy, at the date that it is now."""
        self._agenda.add(Event(self.now, MESSAGE, message), LATER)

    def fail(self, host: int) -> None:
        """A host fails now: its jobs fail or are requeued, nothing starts there until `restore`."""
        self._agenda.add(Event(self.now, HOST_DOWN, self._host(host)), BY_HAND)

    def restore(self, host: int) -> None:
        """A host that failed works again, now."""
        self._agenda.add(Event(self.now, HOST_UP, self._host(host)), BY_HAND)

    def _host(self, host: int) -> int:
        if not 0 <= host < self._state.cluster.num_hosts:
            raise SimulationError(
                f"there is no host {host}: hosts are 0 to {self._state.cluster.num_hosts - 1}"
            )
        return host

    # --- one date ---------------------------------------------------------------------------

    def _turn(self, until: float) -> bool:
        """Go to the next event and let the policy decide, or to ``until`` if that is earlier.

        False: nothing happened on the way.
        """
        state, jobs, position = self._state, self._jobs, self._position
        # The next event that is neither an end nor a submission: rare, so the comparisons are bare.
        other = self._agenda.next_date
        if self._outages.next_date < other:
            other = self._outages.next_date
        date = other if other < until else until
        if position < len(jobs) and jobs[position].submit_time_s < date:
            date = jobs[position].submit_time_s
        now, ended = self._execution.advance(date)
        if now == inf:
            return False
        self._at_this_date = 0 if now > state.now else self._at_this_date + 1
        state.now = now
        state.ended, state.other_events = [], []
        if other <= now:
            ended = self._other_events(ended)
        for attempt, final_state in ended:
            again = self._requeue and final_state == FAILED and self._was_failed_by_host(attempt)
            self._carrier.stop(attempt, final_state, not again)
            if again:
                state.submit_again(attempt.job)
        while position < len(jobs) and jobs[position].submit_time_s <= now:
            self._enter(jobs[position])
            position += 1
        self._position = position
        if not (ended or state.submitted or state.other_events):
            return False
        decided = self._carrier.decisions
        self._decide()
        while self._carrier.settle_queue():
            # Jobs came back to the queue: ask again, at this date.
            self._at_this_date += 1
            state.ended, state.other_events = [], []
            self._decide()
        if position == len(jobs) and not state.running:
            self._count_idle_dates(decided)
        return True

    def _other_events(self, ended: Ended) -> Ended:
        """Hosts that go down and come up at this date, messages, wakes; with what ends by them."""
        state = self._state
        told: list[Event] = []
        for date, host, up in self._outages.take(state.now):
            told.append(Event(date, HOST_UP if up else HOST_DOWN, host))
        by_trace = len(told)
        told += self._agenda.take(state.now)
        failed = {attempt for attempt, final_state in ended if final_state == FAILED}
        over = {attempt for attempt, _ in ended}
        for k, event in enumerate(told):
            if event.kind not in (HOST_DOWN, HOST_UP):
                state.other_events.append(event)
                continue
            host, up = event.subject, event.kind == HOST_UP
            if not state.cluster.set_up(host, up):
                continue
            state.other_events.append(event)
            state.machine_changes = True
            self._carrier.host_changes.append(
                HostChange(state.now, HostSet(1 << host), "up" if up else "down")
            )
            if not up:
                self._fail_those_on(host, ended, failed, over)
            if k >= by_trace:
                self._tell_execution(host, up)
        ended.sort(key=lambda entry: entry[0].number)
        return ended

    def _was_failed_by_host(self, attempt: Attempt) -> bool:
        """Whether an attempt that failed was on a host that is down."""
        down = self._state.cluster.down
        return bool(down) and bool(attempt.mask & down)

    def _fail_those_on(
        self, host: int, ended: Ended, failed: set[Attempt], over: set[Attempt]
    ) -> None:
        """The attempts on a host that went down fail, unless they ended at this very date."""
        state = self._state
        reason = f"host {host} went down"
        for attempt in (*state.running.values(), *state.suspended.values()):
            if attempt.is_on(host):
                if attempt not in over:
                    self._execution.stop(attempt)
                    ended.append((attempt, FAILED))
                    over.add(attempt)
                    failed.add(attempt)
                if attempt in failed:
                    attempt.reason = attempt.reason or reason

    def _tell_execution(self, host: int, up: bool) -> None:
        state = self._state
        if up and not state.cluster.off >> host & 1:
            self._execution.restore_host(host, state.now)
        elif not up:
            self._execution.fail_host(host, state.now)

    # --- the policy -------------------------------------------------------------------------

    def _enter(self, job: Job) -> None:
        """A job enters the queue."""
        try:
            self._state.submit(job)
        except PTaskModelError:
            raise
        except (Exception, SystemExit) as error:
            fault = raised(self._policy, error, self.now, job)
            if fault is None and isinstance(error, TypeError) and self._order is not None:
                fault = self._fault(f"has an order whose keys cannot be compared: {error}")
            if fault is None:
                raise
            raise fault from error

    def _count_idle_dates(self, decided: int) -> None:
        """Nothing runs and nobody is to come: a policy that waits all the same has no end.

        decided: how many decisions there had been before this date.
        """
        waiting = self._state.waiting
        self._idle_dates = self._idle_dates + 1 if decided == self._carrier.decisions else 0
        if self._idle_dates > MAX_IDLE_DATES and waiting:
            raise self._fault(
                f"was asked at {MAX_IDLE_DATES} dates and starts none of {len(waiting)} jobs"
            )

    def _decide(self) -> None:
        state = self._state
        self._events += 1
        if self._at_this_date > MAX_DECISIONS_AT_A_DATE:
            raise self._fault(f"was asked {MAX_DECISIONS_AT_A_DATE} times at one date")
        state.machine_changed, state.machine_changes = state.machine_changes, False
        state.extend_outlived()
        carry_out = self._carrier.carry_out
        self._answer = None
        try:
            self._answer = answer = self._policy.decide(self.view)
            if type(answer) is not GeneratorType:
                self._check_answer(answer)
            for decision in answer:
                carry_out(decision)
        except PTaskModelError:
            raise
        except (Exception, SystemExit) as error:
            first = state.queue[0] if state.queue else None
            fault = raised(self._policy, error, state.now, first)
            if fault is None:
                raise
            raise fault from error
        if self._observe is not None:
            self._observe(self.view, self._policy)

    def _check_answer(self, answer: Any) -> None:
        """PolicyFault if an answer does not look like decisions."""
        if not isinstance(answer, Iterable) or hasattr(answer, "_fields"):
            raise self._fault(
                f"answers {str(answer)[:60]}: yield decisions, or return a list of them"
            )

    def _fault(self, what: str) -> PolicyFault:
        return misbehaved(self._policy, what, self.now, self._answer)

    def _tell_progress(self) -> None:
        assert self._progress is not None
        self._progress(self.now, self._carrier.over, len(self._state.waiting))


def _order_of(policy: Policy) -> Callable[[Job], Any] | None:
    """The order of a policy; SimulationError if it is none."""
    order = getattr(policy, "order", None)
    if order is not None and not callable(order):
        raise SimulationError(
            f"policy {policy_name(policy)}: its order is {str(order)[:60]!r}; give a function of a "
            "job, or None"
        )
    return order
