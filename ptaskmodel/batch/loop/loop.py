"""The open batch loop: process events in order, and call the policy once at each time."""

from __future__ import annotations

import copy
from bisect import insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from types import GeneratorType
from typing import Any

from ptaskmodel.batch.allocations import Allocation
from ptaskmodel.batch.allocations.rules import FirstFit
from ptaskmodel.batch.jobs.execution import (
    WAITING,
    Attempt,
    DelayExecution,
    Execution,
    walltime_or_inf,
)
from ptaskmodel.batch.loop.decisions import (
    BY_HAND,
    HOST_DOWN,
    HOST_UP,
    LATER,
    LINK_DOWN,
    LINK_UP,
    MAX_DECISIONS_AT_A_DATE,
    MESSAGE,
    Agenda,
    Event,
    PolicyFault,
    misbehaved,
    policy_name,
    raised,
)
from ptaskmodel.batch.loop.executor import Carrier
from ptaskmodel.batch.loop.interruptions import Interruptions
from ptaskmodel.batch.loop.power_states import Pstates
from ptaskmodel.batch.loop.schedule import Schedule
from ptaskmodel.batch.loop.state import Cluster, State
from ptaskmodel.batch.loop.view import Policy, View
from ptaskmodel.batch.machine.capacity import HostCapacity
from ptaskmodel.batch.machine.failures import Changes, Maintenance, Outages, Window
from ptaskmodel.batch.machine.machine import HostPstates
from ptaskmodel.batch.names import ON_FAILURE
from ptaskmodel.errors import PTaskModelError, SimulationError
from ptaskmodel.lazy import with_old_names
from ptaskmodel.memory import collector_seldom
from ptaskmodel.platform.facts import AvailabilityTrace
from ptaskmodel.workload.jobs import Job, sorted_jobs

Observer = Callable[[View, Policy], None]
Progress = Callable[[float, int, int], None]
Respond = Callable[[Attempt, float], Iterable[Job]]
PROGRESS_EVERY = 16
# A policy goes round in circles that is asked at so many dates without deciding anything while
# nothing runs and nobody is to come.
MAX_IDLE_DATES = 1_000_000


@with_old_names
class BatchSimulation:
    """Jobs on hosts under a policy and an allocation.

    At each date ends come first, then hosts that go down or come up, then submissions, messages and
    wakes; then the policy is asked once. Jobs may be submitted at any time.

    hosts: how many there are, or what each has. estimate: what the policy believes of a job's
    duration (its walltime by default). limited: whether a job ends at its walltime at the latest.
    traces: by host (its number) or link (its name), when it is down by the platform; failures: the
    same by (date, whether it is up), of which the execution is told. on_failure: the jobs that this
    stops "fail" or are "requeue"d. maintenance: when which hosts are set apart; who would run into
    that, by the estimate, does not start. licences: how many of each name the whole machine has.
    respond: the jobs to submit, now or later, in answer to a job that is over, however it ended.
    pstates: what each host can be switched to (nothing: anything, at once); told_of_switches:
    called with the date before a change of pstates begins and when it is done. shared: hosts may
    have several jobs at once, if the policy says so. admit_larger: jobs may come that are larger
    than the machine, for the policy to reject. observe: called after each decision; progress: now
    and then, with the date, how many jobs are over and how many wait.

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
        traces: Mapping[int | str, AvailabilityTrace] | None = None,
        failures: Mapping[int | str, Changes] | None = None,
        maintenance: Iterable[Window] = (),
        on_failure: str = "fail",
        licences: Mapping[str, int] | None = None,
        respond: Respond | None = None,
        pstates: Sequence[HostPstates] = (),
        told_of_switches: Callable[[float], None] | None = None,
        shared: bool = False,
        admit_larger: bool = False,
        observe: Observer | None = None,
        progress: Progress | None = None,
    ) -> None:
        if on_failure not in ON_FAILURE:
            raise SimulationError(f"on_failure is '{on_failure}'; use {' or '.join(ON_FAILURE)}")
        cluster = Cluster(hosts, licences, shared, admit_larger)
        self._jobs = list(sorted_jobs(list(jobs)))
        self._position = 0
        for job in self._jobs:
            cluster.admit(job, ())
        self._ids: set[str] | None = None
        self._policy = policy
        self._order = _order_of(policy)
        self._execution = execution or DelayExecution(limited)
        self._observe = observe
        self._progress = progress
        windows = tuple(maintenance)
        self._state = State(
            cluster,
            allocation or FirstFit(),
            estimate,
            self._order,
            limited,
            Maintenance(windows, cluster.num_hosts) if windows else None,
            Pstates(pstates),
        )
        self.view = View(self._state)
        self._agenda = Agenda()
        self._carrier = Carrier(
            self._state, self._execution, self._agenda, self._fault, told_of_switches
        )
        self._respond = respond
        if respond is not None:
            self._carrier.tell_over = self._submit_in_answer
        self._interruptions = Interruptions(
            self._state,
            self._execution,
            self._carrier,
            Outages(traces or {}, (failures or {}).items(), windows),
            on_failure == "requeue",
        )
        self._answer: Any = None
        self._events = 0
        self._at_this_date = 0
        self._idle_dates = 0

    # --- advancing --------------------------------------------------------------------------

    @property
    def policy(self) -> Policy:
        """The policy that decides."""
        return self._policy

    @property
    def now(self) -> float:
        """The date, s."""
        return self._state.now

    def run(self) -> Schedule:
        """Simulate until every job is over; raises SimulationError if that never happens."""
        with collector_seldom():
            while self.step():
                if self._progress is not None and self._events % PROGRESS_EVERY == 0:
                    self._tell_progress()
        state = self._state
        if state.queue:
            raise SimulationError(
                f"policy {policy_name(self._policy)} never starts job '{state.queue[0].id}' and "
                f"{len(state.queue) - 1} more, though {self.view.free} of "
                f"{state.cluster.num_hosts} hosts are free; correct the policy"
            )
        if state.suspended:
            job = next(iter(state.suspended))
            raise SimulationError(
                f"policy {policy_name(self._policy)} never resumes job '{job.id}'; correct the "
                "policy"
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
            or self._interruptions.held
        )
        return bool(left) and self._turn(inf)

    @with_old_names
    def advance_to(self, until_s: float) -> None:
        """Go to date ``until_s``, and do all that is due then.

        Raises SimulationError if it is past.
        """
        if not self.now <= until_s < inf:
            raise SimulationError(f"cannot go to date {until_s}: it is {self.now:g} s now")
        while self._turn(until_s):
            if self._progress is not None and self._events % PROGRESS_EVERY == 0:
                self._tell_progress()

    def next_event_s(self) -> float | None:
        """A date before which nothing will happen, s; None if nothing ever will by itself.

        With parallel tasks it may be that of something in the simulation with which no job ends.
        """
        jobs, position = self._jobs, self._position
        coming = jobs[position].submit_time_s if position < len(jobs) else inf
        other = min(self._agenda.next_date, self._interruptions.next_date)
        date = min(coming, other, self._execution.next_date())
        return None if date == inf else max(date, self.now)

    def forget_past(self) -> None:
        """Forget what is over, so that copies are cheap; `schedule` does not know it any more."""
        state = self._state
        self._carrier.forget_past()
        state.line.forget_but((*state.queue, *state.running, *state.suspended))

    def fork(self, jobs: Iterable[Job] = ()) -> BatchSimulation:
        """Return an independent copy that continues from this date, with these jobs to come, not
        its own.

        Policy, allocation and execution are copied too; the copy has no observers. Raises
        SimulationError if the policy cannot be copied.
        """
        self._answer = None
        state = self._state
        shared = (state.cluster.capacities, state.estimates, self._jobs)
        memo: dict[int, Any] = {id(each): each for each in shared}
        memo |= {id(self._observe): None, id(self._progress): None}
        try:
            other = copy.deepcopy(self, memo)
        except (TypeError, AttributeError, RecursionError) as error:
            raise SimulationError(
                f"policy {policy_name(self._policy)} cannot be copied ({error}); give it a method "
                "__deepcopy__"
            ) from error
        other._jobs, other._position, other._ids = list(sorted_jobs(list(jobs))), 0, None
        return other

    def assume_estimates(self) -> None:
        """From now on every job lasts exactly what it is believed to (in a run of delays alone)."""
        state = self._state
        if not isinstance(self._execution, DelayExecution):
            raise SimulationError("only runs of delays can last what is believed: fork such a one")
        self._execution.assume(
            list(state.running.values()),
            list(state.suspended.values()),
            state.estimates.__getitem__,
        )

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
            tuple(self._carrier.link_changes),
            tuple(self._carrier.switcher.switches),
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

    def _submit_in_answer(self, attempt: Attempt) -> None:
        assert self._respond is not None
        for job in self._respond(attempt, self.now):
            self.submit(job)

    def send(self, message: Any, date_s: float | None = None) -> None:
        """Deliver a `message` to the policy at time `date_s` (s); None: now.

        Raises SimulationError for a time in the past.
        """
        date = self.now if date_s is None else date_s
        if not self.now <= date < inf:
            raise SimulationError(f"a message for {date:g} s: it is {self.now:g} s now")
        self._agenda.add(Event(date, MESSAGE, message), LATER)

    def fail(self, resource: int | str) -> None:
        """Let a `resource` fail now: a host (its number) or a link (its name).

        Jobs that use it fail or are requeued; nothing starts on the host until `restore`.
        """
        self._agenda.add(self._change(resource, HOST_DOWN, LINK_DOWN), BY_HAND)

    def restore(self, resource: int | str) -> None:
        """Let a failed `resource` work again now: a host (its number) or a link (its name)."""
        self._agenda.add(self._change(resource, HOST_UP, LINK_UP), BY_HAND)

    def _change(self, resource: int | str, of_host: str, of_link: str) -> Event:
        if isinstance(resource, str):
            return Event(self.now, of_link, resource)
        return Event(self.now, of_host, self._host(resource))

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
        if self._interruptions.next_date < other:
            other = self._interruptions.next_date
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
            ended = self._interruptions.happen(self._agenda.take(now), ended)
        for attempt, final_state in ended:
            self._interruptions.settle(attempt, final_state)
        while position < len(jobs) and jobs[position].submit_time_s <= now:
            self._enter(jobs[position])
            position += 1
        self._position = position
        if not (ended or state.submitted or state.other_events):
            return False
        decided = self._carrier.decisions
        self._decide()
        while self._carrier.settle_queue():
            self._at_this_date += 1
            self._decide()
        if position == len(jobs) and not state.running:
            self._count_idle_dates(decided)
        return True

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
                f"was called at {MAX_IDLE_DATES} dates and starts none of {len(waiting)} jobs"
            )

    def _decide(self) -> None:
        state = self._state
        self._events += 1
        if self._at_this_date > MAX_DECISIONS_AT_A_DATE:
            raise self._fault(f"was called {MAX_DECISIONS_AT_A_DATE} times at one date")
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
