"""Apply the decisions of a policy, and record all attempts."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from ptaskmodel.batch.jobs.execution import KILLED, LEAVING, REJECTED, Attempt, Execution
from ptaskmodel.batch.loop.decisions import (
    LATER,
    OFF,
    ON,
    WAKE,
    Agenda,
    Decision,
    Drain,
    Event,
    Kill,
    PolicyFault,
    Reject,
    Requeue,
    Resume,
    SetPower,
    Start,
    Suspend,
    Wake,
)
from ptaskmodel.batch.loop.power_states import Switcher
from ptaskmodel.batch.loop.schedule import HostChange, LinkChange
from ptaskmodel.batch.loop.state import State
from ptaskmodel.batch.machine.host_sets import HostSet, Mask, Placement, as_mask, members
from ptaskmodel.errors import WorkloadError
from ptaskmodel.workload.jobs import Job

Fault = Callable[[str], PolicyFault]


class Carrier:
    """Changes the state as decisions ask for; a decision that cannot be carried out is a fault.

    attempts: all so far, in order of their starts. last: of each job. over: how many jobs are done
    with. decisions: how many were carried out.
    tell_over: told of the last attempt of each job.
    """

    def __init__(
        self,
        state: State,
        execution: Execution,
        agenda: Agenda,
        fault: Fault,
        told_of_switches: Callable[[float], None] | None = None,
    ) -> None:
        self.attempts: list[Attempt] = []
        self.last: dict[Job, Attempt] = {}
        self.over = 0
        self.decisions = 0
        self.tell_over: Callable[[Attempt], None] | None = None
        self._forgotten = 0  # attempts
        self.host_changes: list[HostChange] = []
        self.link_changes: list[LinkChange] = []
        self.switcher = Switcher(
            state.pstates, execution, agenda, self._set_available, fault, told_of_switches
        )
        self._state = state
        self._execution = execution
        self._agenda = agenda
        self._fault = fault
        self._rounds_up = getattr(state.allocation, "rounds_up", False)
        self._gone: list[Job] = []
        self._requeued: list[Job] = []
        self._killed: list[Attempt] = []
        self._ways: dict[type, Callable[[Any], None]] = {
            Job: self._start_plainly,
            Start: self._start,
            Reject: self._reject,
            Kill: self._kill,
            Requeue: self._requeue,
            Suspend: self._suspend,
            Resume: self._resume,
            Wake: self._wake,
            SetPower: self._set_power,
            Drain: self._drain,
        }

    def carry_out(self, decision: Decision) -> None:
        """Carry out one decision; PolicyFault if it cannot be."""
        way = self._ways.get(type(decision))
        if way is None:
            raise self._fault(
                f"yields {str(decision)[:60]!r}, which is not a decision (a job, Start, Reject ...)"
            )
        self.decisions += 1
        way(decision)

    def settle_queue(self) -> bool:
        """After a decision: the queue as it is now; whether to ask again, at this date.

        It is so if jobs came back to the queue or were killed, which the policy sees in ``ended``.
        """
        state = self._state
        state.ended, self._killed = self._killed, []
        state.other_events = []
        if self._gone:
            state.line.leave(self._gone)
            self._gone = []
        state.submitted = []
        again = self._requeued
        if again:
            self._requeued = []
            for job in again:
                state.submit_again(job)
        return bool(again or state.ended)

    def stop(self, attempt: Attempt, final_state: str, over: bool = True) -> None:
        """Note that an attempt has ended now in its final_state; over: so has its job."""
        attempt.end_s = self._state.now
        attempt.state = final_state
        state = self._state
        state.stopped(attempt)
        state.ended.append(attempt)
        if state.cluster.draining:
            self._note_drained(attempt.mask)
        self.over += over
        if over and self.tell_over is not None:
            self.tell_over(attempt)

    def forget_past(self) -> None:
        """Forget the attempts that are over, and the jobs that are done with."""
        state = self._state
        self._forgotten += len(self.attempts)
        self.attempts.clear()
        self.host_changes.clear()
        live = (state.waiting, state.running, state.suspended)
        last = self.last
        self.last = {job: last[job] for jobs in live for job in jobs if job in last}

    # --- jobs -------------------------------------------------------------------------------

    def _start_plainly(self, job: Job) -> None:
        self._start(Start(job))

    def _start(self, decision: Start) -> None:
        state = self._state
        job, hosts, within, _, work = decision
        if job not in state.waiting:
            self._check_waiting(job)
        cluster = state.cluster
        at_once = hosts is None and within is None and state.any_will_do(job)
        if at_once:
            if job.num_hosts > cluster.idle_hosts.count:
                raise self._fault(f"starts job '{job.id}', which does not fit")
            placement: Placement = cluster.idle_hosts.take_lowest(job.num_hosts)
        else:
            placement = self._placement(decision)
        number = self._forgotten + len(self.attempts)
        attempt = Attempt(job, placement, state.now, state.now + state.estimates[job], number)
        if self._rounds_up or work is not None:
            attempt.use = attempt.mask.bit_count()
        if work is not None:
            attempt.work = work
        if job.cores is not None:
            attempt.cores = self._cores(job, attempt.mask, decision.cores)
        self._leave_queue(job)
        before = self.last.get(job)
        if before is not None:
            attempt.ordinal = before.ordinal + 1
        self.attempts.append(attempt)
        self.last[job] = attempt
        if not at_once:
            cluster.take(attempt)
        state.started(attempt)
        self._execution.start(attempt, state.now)

    def _placement(self, decision: Start) -> Mask:
        """The hosts on which a job starts: those named, or those that the allocation chooses."""
        job, hosts, within, cores, work = decision
        free = self._state.candidates(job)
        if within is not None:
            free &= within
        if hosts is None:
            enough = free.bit_count() >= job.num_hosts
            mask = self._state.allocation.choose(job.num_hosts, free) if enough else None
            if mask is None:
                raise self._fault(f"starts job '{job.id}', which does not fit")
        else:
            mask = self._mask(hosts, f"starts job '{job.id}' on")
        whole = work is None and (cores is None or job.cores is None)
        if mask & ~free or (whole and not self._right_number(job, mask)):
            raise self._fault(
                f"starts job '{job.id}' on hosts that are not {job.num_hosts} free ones"
            )
        return mask

    def _right_number(self, job: Job, mask: Mask) -> bool:
        count = mask.bit_count()
        return count == job.num_hosts or (self._rounds_up and count > job.num_hosts)

    def _cores(self, job: Job, mask: Mask, cores: Any) -> tuple[int, ...]:
        """How many cores of each host a job gets that asks for cores."""
        assert job.cores is not None
        if cores is None:
            return (job.cores,) * job.num_hosts
        given, total = tuple(cores), job.cores * job.num_hosts
        if sum(given) != total or not self._state.cluster.check_cores(job, mask, given):
            raise self._fault(
                f"starts job '{job.id}' on cores that are not {total} free ones of its hosts"
            )
        return given

    def _leave_queue(self, job: Job) -> None:
        self._state.waiting.discard(job)
        if self._requeued and job in self._requeued:
            self._requeued.remove(job)
        else:
            self._gone.append(job)

    def _reject(self, decision: Reject) -> None:
        job = decision.job
        self._check_waiting(job)
        self._leave_queue(job)
        attempt = Attempt(job, 0, None, inf, -1, REJECTED)
        attempt.reason = decision.reason
        self.last[job] = attempt
        self.over += 1
        if self.tell_over is not None:
            self.tell_over(attempt)

    def _kill(self, decision: Kill) -> None:
        attempt = self._under_way(decision.job, "kills")
        attempt.reason = decision.reason
        self._execution.stop(attempt, self._state.now)
        self.stop(attempt, decision.state)
        self._killed.append(attempt)

    def _requeue(self, decision: Requeue) -> None:
        attempt = self._under_way(decision.job, "requeues")
        attempt.reason = decision.reason
        if decision.checkpoint and attempt.job in self._state.running:
            self._let_leave(attempt)
            return
        self._execution.stop(attempt, self._state.now)
        self.stop(attempt, KILLED, over=False)
        self._state.waiting.add(decision.job)
        self._requeued.append(decision.job)

    def _let_leave(self, attempt: Attempt) -> None:
        """The attempt writes a checkpoint, then waits again."""
        if attempt.state == LEAVING:
            raise self._fault(f"asks job '{attempt.job.id}' for a checkpoint that it is writing")
        date = self._execution.leave(attempt, self._state.now)
        if date is None:
            raise self._fault(
                f"asks job '{attempt.job.id}' for a checkpoint; say what one costs (--checkpoint)"
            )
        attempt.state = LEAVING
        self._state.expect(attempt, date)

    def _suspend(self, decision: Suspend) -> None:
        attempt = self._under_way(decision.job, "suspends")
        if decision.job in self._state.suspended:
            raise self._fault(f"suspends job '{decision.job.id}', which is suspended")
        if attempt.state == LEAVING:
            raise self._fault(f"suspends job '{decision.job.id}', which writes its checkpoint")
        self._state.suspend(attempt)
        self._execution.suspend(attempt, self._state.now)

    def _resume(self, decision: Resume) -> None:
        attempt = self._state.suspended.get(decision.job)
        if attempt is None:
            raise self._fault(f"resumes job '{self._id(decision.job)}', which is not suspended")
        if not self._state.can_resume(attempt):
            raise self._fault(f"resumes job '{decision.job.id}', whose hosts are not free")
        self._state.resume(attempt)
        self._execution.resume(attempt, self._state.now)

    def _check_waiting(self, job: Job) -> None:
        if job not in self._state.waiting:
            raise self._fault(f"decides on job '{self._id(job)}', which is not waiting")

    def _under_way(self, job: Job, does: str) -> Attempt:
        attempt = self._state.running.get(job) or self._state.suspended.get(job)
        if attempt is None:
            raise self._fault(f"{does} job '{self._id(job)}', which does not run")
        return attempt

    @staticmethod
    def _id(job: object) -> str:
        return str(getattr(job, "id", job))[:60]

    # --- dates and hosts --------------------------------------------------------------------

    def _wake(self, decision: Wake) -> None:
        date = decision.date_s
        if not isinstance(date, int | float) or not self._state.now <= date < inf:
            raise self._fault(f"asks to be woken at {date!r}, which is not in the future")
        self._agenda.add(Event(float(date), WAKE), LATER)

    def _set_power(self, decision: SetPower) -> None:
        mask, power = self._mask(decision.hosts, "switches"), decision.state
        state, execution = self._state, self._execution
        if isinstance(power, str) and power not in (ON, OFF):
            raise self._fault(f"switches hosts to {power!r}; use 'on', 'off' or a pstate")
        if power == OFF:
            for attempt in state.running.values():
                if attempt.mask & mask:
                    raise self._fault(f"turns off a host on which job '{attempt.job.id}' runs")
        if isinstance(power, str):
            self.switcher.check_steady(mask)
            changed = state.cluster.set_on(mask, power == ON)
            state.machine_changes = True
            for host in members(changed & ~state.cluster.down):
                if power == ON:
                    execution.restore_host(host, state.now)
                else:
                    execution.fail_host(host, state.now)
        else:
            self.switcher.switch(mask, power, state.occupied, state.now)
        self.host_changes.append(HostChange(state.now, HostSet(mask), power))

    def _drain(self, decision: Drain) -> None:
        mask = self._mask(decision.hosts, "drains")
        state = self._state
        changed = state.cluster.set_draining(mask, not decision.over, state.occupied)
        state.machine_changes = True
        if decision.over:
            self.host_changes.append(HostChange(state.now, HostSet(changed), "drained no more"))
        else:
            self._note_drained(changed)

    def _note_drained(self, hosts: Mask) -> None:
        """Of these hosts, those that drain and on which nothing runs any more are drained."""
        drained = hosts & self._state.cluster.draining
        drained = drained and drained & ~self._state.occupied
        if drained:
            change = HostChange(self._state.now, HostSet(drained), "drained")
            self.host_changes.append(change)

    def _set_available(self, hosts: Mask, on: bool) -> None:
        """Hosts fall asleep, or have come back."""
        self._state.cluster.set_on(hosts, on)
        self._state.machine_changes = True

    def _mask(self, hosts: Any, does: str) -> Mask:
        """The mask of hosts that a policy names."""
        try:
            mask = as_mask(hosts)
        except WorkloadError as error:
            raise self._fault(f"{does} {error}") from None
        beyond = mask & ~self._state.cluster.everything
        if beyond or mask < 0:
            raise self._fault(
                f"{does} host {beyond.bit_length() - 1}, and there are hosts 0 to "
                f"{self._state.cluster.num_hosts - 1}"
            )
        return mask
