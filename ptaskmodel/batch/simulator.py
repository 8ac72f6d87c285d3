"""The batch simulation: submissions and ends in order of date, one decision at each date."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

from ptaskmodel.batch.allocation import Allocation, FirstFit
from ptaskmodel.batch.execution import DelayExecution, Execution, walltime_or_inf
from ptaskmodel.batch.hostset import HostSet
from ptaskmodel.batch.state import (
    KILLED,
    REJECTED,
    Decision,
    Policy,
    Reject,
    Restart,
    Run,
    Start,
    State,
    View,
)
from ptaskmodel.errors import SimulationError
from ptaskmodel.workload.jobs import Job, sorted_jobs

Observer = Callable[[View, Policy], None]
Progress = Callable[[float, int], None]
PROGRESS_EVERY = 256


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """What happened: for each job in order of submission its last run, and all runs by start.

    The last run of a rejected job has no dates and no hosts.
    """

    final: tuple[Run, ...]
    runs: tuple[Run, ...]
    num_hosts: int
    events: int


class BatchSimulation:
    """Jobs on ``num_hosts`` hosts under a policy and an allocation.

    At each date ends come first, then submissions, then one decision of the policy. ``estimate``
    is what the policy believes of a job's duration (its walltime by default). ``observe`` is
    called after each decision, ``progress`` now and then with the date and how many jobs are done.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        num_hosts: int,
        policy: Policy,
        *,
        allocation: Allocation | None = None,
        execution: Execution | None = None,
        estimate: Callable[[Job], float] = walltime_or_inf,
        observe: Observer | None = None,
        progress: Progress | None = None,
    ) -> None:
        for job in jobs:
            if job.num_hosts > num_hosts:
                raise SimulationError(
                    f"job '{job.id}' asks for {job.num_hosts} hosts and the platform has "
                    f"{num_hosts}: use a larger platform or leave the job out"
                )
        self._jobs = sorted_jobs(list(jobs))
        self._policy = policy
        self._execution = execution or DelayExecution()
        self._observe = observe
        self._progress = progress
        self._state = State(num_hosts, allocation or FirstFit(), estimate, policy.order)
        self._final: dict[Job, Run] = {}
        self._runs: list[Run] = []
        self._done = 0
        self._gone: list[Job] = []

    def run(self) -> Schedule:
        """Simulate until every job has ended; raises SimulationError if that never happens."""
        state, jobs = self._state, self._jobs
        position, events = 0, 0
        while position < len(jobs) or state.running:
            until = jobs[position].submit_time_s if position < len(jobs) else inf
            state.now, ended = self._execution.advance(until)
            state.ended, state.submitted = [], []
            for run, final_state in ended:
                self._stop(run, final_state)
            while position < len(jobs) and jobs[position].submit_time_s <= state.now:
                state.submit(jobs[position])
                position += 1
            if state.ended or state.submitted:
                self._decide()
                events += 1
            if self._progress is not None and events % PROGRESS_EVERY == 0:
                self._progress(state.now, self._done)
        if state.queue:
            raise SimulationError(
                f"policy {type(self._policy).__name__} never starts job '{state.queue[0].id}' and "
                f"{len(state.queue) - 1} more, though all hosts are free: mend the policy"
            )
        if self._progress is not None:
            self._progress(state.now, self._done)
        final = tuple(self._final[job] for job in jobs)
        return Schedule(final, tuple(self._runs), state.num_hosts, events)

    def _decide(self) -> None:
        state = self._state
        state.extend_outlived()
        view = View(state)
        for decision in self._policy.decide(view):
            self._apply(decision)
        if self._gone:
            state.leave_queue(self._gone)
            self._gone.clear()
        if self._observe is not None:
            self._observe(view, self._policy)

    def _apply(self, decision: Decision) -> None:
        """Carry out one decision; SimulationError if it cannot be."""
        state = self._state
        if isinstance(decision, Job):
            decision = Start(decision)
        if isinstance(decision, Restart):
            running = state.running.get(decision.job)
            if running is None:
                raise self._misbehaved(f"restarts job '{decision.job.id}', which is not running")
            self._execution.kill(running)
            self._stop(running, KILLED)
            self._start(decision.job, decision.hosts, decision.within, running.attempt + 1)
            return
        if decision.job not in state.waiting:
            raise self._misbehaved(f"decides on job '{decision.job.id}', which is not waiting")
        state.waiting.discard(decision.job)
        self._gone.append(decision.job)
        if isinstance(decision, Reject):
            self._reject(decision)
        else:
            self._start(decision.job, decision.hosts, decision.within, 0)

    def _start(self, job: Job, hosts: HostSet | None, within: HostSet | None, attempt: int) -> None:
        state = self._state
        free = state.free_hosts if within is None else state.free_hosts & within
        if hosts is None:
            enough = free.bit_count() >= job.num_hosts
            hosts = state.allocation.choose(job.num_hosts, free) if enough else None
            if hosts is None:
                raise self._misbehaved(f"starts job '{job.id}', for which there is no room")
        if hosts & ~free or hosts.bit_count() != job.num_hosts:
            raise self._misbehaved(
                f"starts job '{job.id}' on hosts that are not {job.num_hosts} free ones"
            )
        run = Run(job, hosts, state.now, state.now + state.estimate(job), len(self._runs))
        run.attempt = attempt
        self._runs.append(run)
        self._final[job] = run
        state.started(run)
        self._execution.start(run, state.now)

    def _stop(self, run: Run, final_state: str) -> None:
        run.finish_time_s = self._state.now
        run.state = final_state
        self._state.stopped(run)
        self._state.ended.append(run)
        self._done += final_state != KILLED

    def _reject(self, decision: Reject) -> None:
        run = Run(decision.job, 0, self._state.now, inf, -1)
        run.start_time_s = None
        run.state, run.reason = REJECTED, decision.reason
        self._final[decision.job] = run
        self._done += 1

    def _misbehaved(self, what: str) -> SimulationError:
        name = type(self._policy).__name__
        return SimulationError(f"policy {name} {what} (at {self._state.now:g} s): mend the policy")
