"""Failures and maintenance during a run: hosts and links go down and up, and stop jobs."""

from __future__ import annotations

from ptaskmodel.batch.jobs.execution import (
    FAILED,
    INTERRUPTED,
    KILLED,
    LEFT,
    Attempt,
    Ended,
    Execution,
)
from ptaskmodel.batch.loop.decisions import (
    HOST_DOWN,
    HOST_UP,
    LINK_DOWN,
    LINK_UP,
    MAINTENANCE_BEGINS,
    MAINTENANCE_ENDS,
    SWITCHED,
    Event,
)
from ptaskmodel.batch.loop.executor import Carrier
from ptaskmodel.batch.loop.schedule import HostChange, LinkChange
from ptaskmodel.batch.loop.state import State
from ptaskmodel.batch.machine.failures import Outage, Outages, Window
from ptaskmodel.batch.machine.host_sets import HostSet, Mask
from ptaskmodel.workload.jobs import Job


class Interruptions:
    """Takes resources from jobs when they go; only the simulation calls it.

    requeue: whether interrupted jobs wait again (else they have failed). held: jobs that something
    that is down stopped at the very date of their start, and on no host of theirs: they come back
    to the queue when the next resource comes back, since until then it would happen again.
    """

    def __init__(
        self, state: State, execution: Execution, carrier: Carrier, outages: Outages, requeue: bool
    ) -> None:
        self.held: list[Job] = []
        self._state = state
        self._execution = execution
        self._carrier = carrier
        self._outages = outages
        self._requeue = requeue
        self._ended: Ended = []

    @property
    def next_date(self) -> float:
        """Of the first outage or return to come, s."""
        return self._outages.next_date

    def happen(self, by_hand: list[Event], ended: Ended) -> Ended:
        """Process what is due now; add the attempts that it stops to those that ended.

        An attempt that ended at this very date has ended. by_hand: the agenda's events of this
        date.
        """
        self._ended = ended
        for change in self._outages.take(self._state.now):
            self._apply(change)
        for event in by_hand:
            if event.kind in (HOST_DOWN, HOST_UP, LINK_DOWN, LINK_UP):
                up = event.kind in (HOST_UP, LINK_UP)
                self._apply(Outage(event.date_s, event.subject, up, False))
            else:
                if event.kind == SWITCHED:
                    self._carrier.switcher.finish(event.subject)
                self._state.other_events.append(event)
        self._ended = []
        ended.sort(key=lambda entry: entry[0].number)
        return ended

    def settle(self, attempt: Attempt, final_state: str) -> None:
        """Note that an attempt has ended now in its final_state; its job waits again if it may."""
        interrupted = final_state == INTERRUPTED
        if interrupted:
            attempt.reason = attempt.reason or "a host or link that it uses is down"
        left = final_state == LEFT
        again = left or (interrupted and self._requeue)
        if left:
            final_state = KILLED
        self._carrier.stop(attempt, FAILED if interrupted else final_state, not again)
        if not again:
            return
        state = self._state
        if (
            interrupted
            and attempt.start_s == state.now
            and not attempt.mask & ~state.cluster.available
        ):
            self.held.append(attempt.job)
        else:
            state.submit_again(attempt.job)

    def _apply(self, change: Outage) -> None:
        if isinstance(change.subject, Window):
            self._maintain(change.subject, change.up)
        elif isinstance(change.subject, int):
            self._change_host(change.subject, change)
        else:
            self._change_other(change.subject, change)
        if change.up and self.held:
            for job in self.held:
                self._state.submit_again(job)
            self.held = []

    def _change_host(self, host: int, change: Outage) -> None:
        state, up = self._state, change.up
        if not state.cluster.set_up(host, up):
            return
        self._note(HOST_UP if up else HOST_DOWN, host, 1 << host, "up" if up else "down")
        if not up:
            self._interrupt(1 << host, f"host {host} went down")
        if change.followed:
            return
        if not up:
            self._execution.fail_host(host, state.now)
        elif not state.cluster.off >> host & 1:
            self._execution.restore_host(host, state.now)

    def _change_other(self, name: str, change: Outage) -> None:
        """A link, or a host that runs no jobs."""
        state, up = self._state, change.up
        state.other_events.append(Event(state.now, LINK_UP if up else LINK_DOWN, name))
        self._carrier.link_changes.append(LinkChange(state.now, name, "up" if up else "down"))
        if change.followed:
            return
        if up:
            self._execution.restore_other(name, state.now)
            return
        over = {attempt for attempt, _ in self._ended}
        for attempt in self._execution.fail_other(name, state.now):
            if attempt not in over:
                attempt.reason = f"{name} went down"
                self._ended.append((attempt, INTERRUPTED))

    def _maintain(self, window: Window, over: bool) -> None:
        state = self._state
        assert state.maintenance is not None
        state.maintenance.forget_before(state.now)
        changed = state.cluster.set_maintained(state.maintenance.during(state.now, state.now))
        kind = MAINTENANCE_ENDS if over else MAINTENANCE_BEGINS
        self._note(kind, window, changed, "maintenance over" if over else "maintenance")
        if not over:
            self._interrupt(changed, "maintenance")

    def _note(self, kind: str, subject: int | Window, hosts: Mask, now_they_are: str) -> None:
        state = self._state
        state.machine_changes = True
        state.other_events.append(Event(state.now, kind, subject))
        if hosts:
            change = HostChange(state.now, HostSet(hosts), now_they_are)
            self._carrier.host_changes.append(change)

    def _interrupt(self, hosts: Mask, reason: str) -> None:
        """The attempts on hosts that went are stopped, unless they ended at this very date."""
        state = self._state
        over = dict(self._ended)
        for attempt in (*state.running.values(), *state.suspended.values()):
            if attempt.mask & hosts:
                if attempt not in over:
                    self._execution.stop(attempt, state.now)
                    self._ended.append((attempt, INTERRUPTED))
                if over.get(attempt, INTERRUPTED) == INTERRUPTED:
                    attempt.reason = attempt.reason or reason
