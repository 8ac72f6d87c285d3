"""Event loop of a Slurm simulation: events and the controller's threads, in order of time."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Callable, Sequence
from math import copysign, inf

from ptaskmodel import interrupts
from ptaskmodel.batch.jobs.execution import Attempt, Ended, Execution
from ptaskmodel.slurm.conf import phases as phases_of
from ptaskmodel.slurm.conf.phases import (
    AT_ONE_DATE_S,
    CHECK,
    CLEAN,
    COMMAND,
    CYCLE,
    CYCLED,
    END,
    FREE,
    LIMITS_S,
    NODES,
    PASSED,
    PASSED_FULL,
    REFRESH,
    RELEASED,
    SLICE,
    SUBMIT,
    TURN,
    Costs,
    Event,
    Phases,
    Recorded,
    Turn,
    late_cleaning,
    script_of,
)
from ptaskmodel.slurm.controller.controller import Controller, NodeFailures
from ptaskmodel.slurm.controller.job_list import EPILOG_S
from ptaskmodel.slurm.jobs.needs import YEAR_S
from ptaskmodel.slurm.jobs.record import JobRecord
from ptaskmodel.slurm.jobs.request import JobRequest
from ptaskmodel.slurm.scheduling.backfill import Statistics
from ptaskmodel.slurm.scheduling.main import MainScheduler
from ptaskmodel.slurm.scheduling.threads import BackfillThread, Slicer

# How often all who wait are tried before they are given up.
ROUNDS = 3
# How long at most they are waited for who have used what they may, while nobody runs.
LONGEST_S = 7 * 86_400.0
# Between two looks for records to be forgotten; as often as they become too old, if that is less.
PURGE_S, LEAST_PURGE_S = 60, 10
# So long before anything happens to an idle controller, its turns are made one by one.
IDLE_S = 200.0
# Pauses between passes that are not waited for: sched_min_interval is 2 us unless it is given.
SHORT_PAUSE_US = 2
# How often sbatch tries again where there are too many jobs; a try takes a moment, s, as recorded.
MOST_TRIES, TRY_S = 15, 1e-6
# Events between two calls that say how far it is.
PROGRESS_EVERY = 256
Progress = Callable[[float, int, int], None]


class Loop:
    """Advances a controller from event to event.

    recorded: dates of passes, cycles, submissions and ends of a run, which replace the threads'.
    turned: called after each pass or cycle with the controller and what it was.
    compiled: whether a kernel makes cycles where it can. costs: how long backfill's tests take.
    failures: nodes that fail and come back.
    """

    # Python reads slots faster than attributes of which there are more than 30.
    __slots__ = (
        *("_arrivals", "_arrived", "_backfill", "_boot_s", "_commands", "_events", "_execution"),
        *("_full_waits", "_gang", "_ids", "_last_call", "_last_check", "_last_full", "_last_purge"),
        *("_last_turn", "_main", "_next_pass", "_now", "_options", "_pause_s", "_period_s"),
        *("_phases", "_position", "_preempts", "_purge_s", "_recorded", "_refresh_date"),
        *("_relief_s", "_reserved", "_script", "_scripted", "_slicer", "_still_since", "_taken"),
        *("_tried", "_turned", "_turns", "_unreserved", "controller", "failures"),
    )

    def __init__(
        self,
        controller: Controller,
        execution: Execution,
        requests: Sequence[JobRequest],
        phases: Phases,
        recorded: Recorded | None = None,
        turned: Callable[[Controller, Turn], None] | None = None,
        compiled: bool = True,
        costs: Costs = FREE,
        failures: NodeFailures | None = None,
    ) -> None:
        self.controller, self._events = controller, controller.events
        self.failures = failures
        self._execution = execution
        self._phases = phases
        self._recorded = recorded
        self._turned = turned
        self._backfill = BackfillThread(
            controller, phases, turned, compiled, costs, free=recorded is None
        )
        self._main = MainScheduler(controller)
        self._now = phases.boot_s
        self._options = controller.conf.scheduler
        self._still_since: float | None = None
        # When what was used is little enough for somebody, as far as was known.
        self._relief_s = 0.0
        self._arrivals = self._arrivals_of(requests)
        self._position = 0
        # The job or array that was taken last, and how often others were tried in vain.
        self._taken: str | None = None
        self._tried: dict[str, int] = {}
        self._commands: list[tuple[float, str, str]] = []
        self._arrived: dict[str, JobRecord] = {}
        conf = controller.conf
        self._boot_s = boot = self._events.second(phases.main_boot_s)
        self._last_full = self._last_check = self._last_purge = self._last_call = boot
        self._last_turn = phases.main_boot_s
        # The next turn by whether a pass is asked for; one that is past is not known.
        self._turns = {True: -inf, False: -inf}
        # The least time from a pass to the next, the first date of that, and whether it is full.
        least_us = self._options.sched_min_interval_us
        self._pause_s = (least_us + 1) / 1e6
        self._next_pass = -inf
        self._full_waits = False
        self._period_s = controller.rules.priorities.period_s or inf
        self._reserved = controller.rules.reserved
        self._unreserved = self._reserved.empty
        self._refresh_date = phases.main_boot_s + self._period_s
        soon = 0 < conf.min_job_age_s < PURGE_S
        self._purge_s = max(LEAST_PURGE_S, conf.min_job_age_s) if soon else PURGE_S
        self._slicer = Slicer(controller, phases, self._backfill)
        self._gang, self._preempts = conf.gang, controller.preemption.active
        # The recorded events, by jobs' places in `_ids`.
        self._script: list[Event] = []
        self._ids: list[str] = []
        self._scripted = 0
        if recorded is not None:
            self._ids = [request.id for _, request in self._arrivals]
            self._script = script_of(recorded, {job: k for k, job in enumerate(self._ids)})
            controller.allocations.cleaning.follow(
                [d for d, what in recorded.cycles if what == phases_of.DEFAULT_DEPTH],
                late_cleaning(recorded, conf.scheduler.batch_sched_delay_s),
                pauses=least_us > SHORT_PAUSE_US,
            )

    def _arrivals_of(self, requests: Sequence[JobRequest]) -> list[tuple[float, JobRequest]]:
        dates = {} if self._recorded is None else self._recorded.submitted
        lag = self._phases.submit_s
        found = [(dates.get(each.array_id, each.submit_s + lag), each) for each in requests]
        found.sort(key=lambda arrival: arrival[0])
        return found

    # --- from event to event ----------------------------------------------------------------

    @property
    def statistics(self) -> Statistics:
        """Of the backfill cycles so far."""
        return self._backfill.statistics

    @property
    def now(self) -> float:
        """The date, s."""
        return self._now

    def run(self, progress: Progress | None = None) -> None:
        """Go on until every job is over, nothing will ever happen again, or a signal has come.

        progress: called often, with the date (s), how many jobs are over and how many wait.
        """
        steps = 0
        with interrupts.held():
            while self.step():
                steps += 1
                if steps % PROGRESS_EVERY:
                    continue
                if progress is not None:
                    progress(self._now, self.controller.over, len(self.controller.queue.jobs))
                if interrupts.arrived():
                    return

    def step(self) -> bool:
        """Go to the next event, and do what is due then; False: there is none."""
        if (event := self.next_event()) is None:
            return False
        date = event[0]
        now, ended = self._execution.advance(date)
        if ended and self.take_ends(now, ended):
            return True
        if date == inf:
            return False
        self.do(event)
        return True

    def next_event(self) -> Event | None:
        """What happens next if no job ends before (at inf: nothing does); None: all is over."""
        controller, now, arrivals = self.controller, self._now, self._arrivals
        date, what, which = controller.allocations.cleaning.date, CLEAN, 0
        if self._position < len(arrivals):
            if (arrival := arrivals[self._position][0]) < date:
                date, what = arrival, SUBMIT
        elif not controller.unfinished or self._is_hopeless():
            return None
        if self._commands and self._commands[0][0] < date:
            date, what = self._commands[0][0], COMMAND
        failures = self.failures
        if failures is not None and (failures.next_date, NODES) < (date, what):
            date, what = failures.next_date, NODES
        if self._recorded is None:
            date, what = self._next_of_threads(date, what)
        elif self._scripted < len(self._script):
            date, what, which = min((date, what, which), self._script[self._scripted])
        told = self._gang and (self._recorded is None or self._scripted < len(self._script))
        if told and self._slicer.is_due(now, date, what):
            date, what, which = self._slicer.date_s, SLICE, 0
        refresh = self._refresh_date
        if refresh <= date < inf:
            first = self._phases.backfill_first or what > REFRESH
            if first and what in (CYCLE, CYCLED) and self._phases.backfill_first:
                first = not self._backfill.has_slept(date, self._period_s)
            if refresh < date or first:
                date, what, which = refresh, REFRESH, 0
        # A turn that rounding puts a little before now is due now.
        return date if date >= now else now, what, which

    def _next_of_threads(self, date: float, what: int) -> tuple[float, int]:
        """The next event if none of the threads' comes before the one at a date."""
        controller, backfill = self.controller, self._backfill
        if not controller.queue.jobs and not controller.busy:
            self._pass_idle_time(date)
        turn = self._turns[self._events.requested]
        if turn < self._now or turn <= self._last_turn:
            turn = self._turn_date()
        if turn < backfill.held_until:
            turn = backfill.held_until
        if turn < date:
            date, what = turn, TURN
        if backfill.wakes_s <= date:
            look = backfill.look_date(self._now, self._last_turn)
            if look < date or (look == date == turn and self._phases.backfill_first):
                date, what = look, CYCLE
        if self._events.at_once:
            tie_s = copysign(phases_of.TIE_S, self._pause_s - EPILOG_S) if what == CLEAN else 0.0
            if self._pass_date < date + tie_s:
                date, what = self._pass_date, RELEASED
        return date, what

    def take_ends(self, date: float, ended: Ended) -> bool:
        """Some attempts have ended now; whether any is of a job of this controller."""
        mine = self.controller.runs.in_order(ended)
        if not mine:
            return False
        self._now = date
        if self._gang:
            self._slicer.pass_by(date, END)
        for attempt in mine:
            self.controller.runs.ended(attempt, date)
        self._settle()
        return True

    def do(self, event: Event) -> None:
        """What happens next happens."""
        date, what, which = event
        self._now = date
        if self._gang:
            self._slicer.pass_by(date, what)
        if self._recorded is not None:
            self._purge(date)
        if what == TURN:
            self._turn(date)
        elif what == SUBMIT:
            self._submit(date)
        elif what == CYCLE:
            self._backfill.cycle(date)
        elif what == REFRESH:
            self._refresh_date += self._period_s
            self.controller.refresh(date)
        elif what == CLEAN:
            self.controller.runs.clean(date)
        elif what == COMMAND:
            _, job_id, action = heapq.heappop(self._commands)
            self.controller.command(self._arrived[job_id], action, date)
        elif what == NODES:
            assert self.failures is not None
            self.failures.act(date)
        elif what == SLICE:
            self._slicer.end(date)
        elif what != RELEASED:
            self._scripted += 1
            self._follow(what, which, date)
        if self._preempts or self._events.at_once:
            self._settle()

    def _is_hopeless(self) -> bool:
        """Return whether all waiting jobs wait for ever: nothing runs or comes, all were tried."""
        controller, options = self.controller, self._options
        if self._commands or controller.busy:
            self._still_since = None
            return False
        if self._still_since is None:
            self._still_since = self._now
        dates = [job.begin_s for job in controller.queue.jobs]
        self._relief_s = max(self._relief_s, controller.rules.relieved_s(controller.queue.jobs))
        relief_s = min(self._relief_s - self._phases.t0, self._still_since + LONGEST_S)
        last = max(max(*dates, self._reserved.over_s) - self._phases.t0, relief_s)
        if self.failures is not None and self.failures.next_date < inf:
            last = max(last, min(self.failures.next_date, self._still_since + YEAR_S))
        patience = ROUNDS * max(options.sched_interval_s, options.bf_interval_s, LIMITS_S)
        return self._now > max(self._still_since, last) + patience

    def _settle(self) -> None:
        """Kills that the last event asks for, and the passes that follow at once."""
        controller, events = self.controller, self._events
        if self._preempts:
            controller.end_victims(self._now)
        while events.at_once and self._recorded is None and self._now >= self._pass_date:
            events.answer_at_once()
            self._pass(self._now, full=False)
            controller.end_victims(self._now)

    def _submit(self, date: float) -> None:
        """The next job comes, or the next task of an array that is taken."""
        request = self._arrivals[self._position][1]
        array, controller = request.array_id, self.controller
        reason = None
        told = self._recorded is not None and array in self._recorded.submitted
        if array != self._taken and not told:
            arrays = controller.rules.arrays
            if controller.submission.is_full(arrays.size(request)) and not arrays.refuses(request):
                if self._tried.get(array, 0) < MOST_TRIES:
                    self._try_later(array, date + TRY_S)
                    return
                reason = "MaxJobCount"
        if reason is None:
            self._taken = array
        self._position += 1
        job = controller.submission.submit(request, date, reason)
        self._arrived[job.id] = job
        for command in request.commands:
            heapq.heappush(self._commands, (command.date_s, job.id, command.action))

    def _try_later(self, array: str, date: float) -> None:
        """sbatch waits for a second, then for two, and so on, and tries again."""
        tries = self._tried[array] = self._tried.get(array, 0) + 1
        first = last = self._position
        while last < len(self._arrivals) and self._arrivals[last][1].array_id == array:
            last += 1
        later = [(date + tries, request) for _, request in self._arrivals[first:last]]
        del self._arrivals[first:last]
        place = bisect_right(self._arrivals, date + tries, first, key=lambda arrival: arrival[0])
        self._arrivals[place:place] = later

    # --- the main loop of the controller ----------------------------------------------------

    def _turn_date(self) -> float:
        """The next turn of the main loop that has something to do."""
        options = self._options
        due = self._last_check + LIMITS_S
        if due > self._last_purge + self._purge_s:
            due = self._last_purge + self._purge_s
        if options.sched_interval_s > 0:
            if due > self._last_full + options.sched_interval_s:
                due = self._last_full + options.sched_interval_s
            if self._events.requested and due > self._last_call + options.batch_sched_delay_s:
                due = self._last_call + options.batch_sched_delay_s
        if not self._unreserved:
            begin = self._reserved.next_begin_s(self._boot_s)
            if begin < due:
                due = begin
        turn = self._phases.turn_after(max(due - self._phases.t0, self._now))
        if turn <= self._last_turn:
            turn += self._phases.turn_s
        if self._unreserved:
            self._turns[self._events.requested] = turn
        return turn

    def _pass_idle_time(self, until: float) -> None:
        """Leave out turns that find no job, up to some before a date; nobody is told of them."""
        controller, options, phases = self.controller, self._options, self._phases
        before = self._last_check, self._last_purge, self._last_full
        quiet_s = self._reserved.quiet_until_s(phases.t0 + self._now, IDLE_S) - phases.t0
        look = self._backfill.look_date(self._now, self._last_turn)
        end = min(until, quiet_s, look) - IDLE_S
        if (
            end <= self._now
            or end == inf
            or phases.turn_s != 1.0
            or options.sched_interval_s <= 0
            or self._events.requested
            or self._events.at_once
            or controller.jobs.remembers
            or any(self._events.second(phases.turn_after(s - phases.t0)) != s for s in before)
        ):
            return
        periods = LIMITS_S, self._purge_s, options.sched_interval_s
        last = self._events.second(end)
        check, purge, full = (
            s + max(last - s, 0) // each * each for s, each in zip(before, periods, strict=True)
        )
        while self._refresh_date < end:
            controller.refresh(self._refresh_date)
            self._refresh_date += self._period_s
        if full > self._last_full:
            self._last_call = full
        self._last_check, self._last_purge, self._last_full = check, purge, full
        latest = phases.turn_after(max(check, purge, full) - phases.t0)
        self._turns = {True: -inf, False: -inf}
        self._last_turn = max(self._last_turn, latest)

    def _turn(self, date: float) -> None:
        controller, options = self.controller, self._options
        now = self._events.second(date)
        self._last_turn = self._turns[True] = date
        begins = not self._unreserved and now >= self._reserved.next_begin_s(self._boot_s)
        if begins and self._reserved.begin(now):
            self._events.ask_for_pass()
        if now - self._last_check >= LIMITS_S:
            self._last_check = now
            controller.check_limits(date)
            if self._preempts or self._events.at_once:
                self._settle()
        if now - self._last_purge >= self._purge_s:
            self._purge(date)
        if options.sched_interval_s < 0:
            return
        if now - self._last_full >= options.sched_interval_s:
            self._last_full = self._last_call = now
            self._events.answer_request()
            self._pass(date, full=True)
        elif self._events.requested and now - self._last_call >= options.batch_sched_delay_s:
            self._last_call = now
            self._events.answer_request()
            self._pass(date, full=False)

    def _purge(self, date: float) -> None:
        now = self._events.second(date)
        if now - self._last_purge >= self._purge_s:
            self._last_purge = now if self._recorded is None else self._last_purge + self._purge_s
            self.controller.purge(date)

    @property
    def _pass_date(self) -> float:
        """When a pass can be made that is due now."""
        return max(self._backfill.held_until, self._next_pass)

    def _pass(self, date: float, *, full: bool) -> None:
        """Make a pass, or have it made when the last one is long enough ago."""
        if self._recorded is None:
            full |= self._full_waits
            self._full_waits = full and date < self._next_pass
            if date < self._next_pass:
                self._events.ask_for_pass_at_once()
                return
            self._next_pass = date + self._pause_s
        self.controller.submission.miss_deadlines(date)
        self._main.look(date, full=full)
        if self._turned is not None:
            what = phases_of.FULL if full else phases_of.DEFAULT_DEPTH
            self._turned(self.controller, Turn(date, what))

    # --- as recorded ------------------------------------------------------------------------

    def _follow(self, what: int, which: int, date: float) -> None:
        controller = self.controller
        if what == CHECK:
            controller.check_limits(date)
        elif what in (PASSED_FULL, PASSED):
            self._pass(date, full=what == PASSED_FULL)
        elif what == CYCLED:
            self._backfill.cycle(date)
        else:
            attempt = self._first_to_end(which, date)
            if attempt is not None:
                self._execution.stop(attempt, date)
                controller.runs.ended(attempt, date)

    def _first_to_end(self, which: int, date: float) -> Attempt | None:
        """The attempt with the lowest number of those whose ends are due at one date.

        Of those that started at one date, too, it is the one that started in an earlier turn.
        which: the place of the one whose turn it would be; that takes the other's.
        """
        script, found = self._script, []
        for k in range(self._scripted - 1, len(script)):
            due, what, place = script[k]
            if what != END or due >= date + AT_ONE_DATE_S:
                break
            job = self._arrived.get(self._ids[place])
            if job is None or job.attempt is None or not self.controller.runs.may_end(job, date):
                continue
            found.append((job.serial, job.attempt.start_s or 0.0, k, job.attempt))
        if not found:
            return None
        began = min(found)[1] - AT_ONE_DATE_S
        _, _, k, attempt = min((s, number, k, each) for number, s, k, each in found if s > began)
        script[k] = (script[k][0], END, which)
        return attempt
