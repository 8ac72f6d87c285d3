"""When the threads of backfill and of the gang scheduler run, among the events of a loop.

Backfill: a cycle holds the controller for some time, and runs only if jobs or nodes have changed
since the last one. Where `suits` allows it, `vectorised_backfill` makes the cycle, or
`shared_cycles` if jobs share nodes; otherwise `backfill.Cycle` does.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, inf

from ptaskmodel.slurm.conf import phases as phases_of
from ptaskmodel.slurm.conf.facts import BACKFILL, LINEAR
from ptaskmodel.slurm.conf.phases import (
    BEHIND_S,
    CYCLE,
    CYCLED,
    QUEUE,
    SLICE,
    TURN,
    Costs,
    Phases,
    Turn,
)
from ptaskmodel.slurm.controller.controller import Controller
from ptaskmodel.slurm.scheduling.backfill import Cycle, Statistics
from ptaskmodel.slurm.scheduling.shared_cycles import SharedCycles
from ptaskmodel.slurm.scheduling.vectorised_backfill import QuickCycles, suits
from ptaskmodel.slurm.scheduling.victim_classes import ends_all_victims


class BackfillThread:
    """Says when it next looks, and makes its cycles.

    held_until: until when a cycle holds the controller. wakes_s: no look comes before. in_step:
    whether each cycle since it came up began as soon as it woke. turned: called after each cycle.
    free: its dates are its own, not those of a recorded run.
    """

    def __init__(
        self,
        controller: Controller,
        phases: Phases,
        turned: Callable[[Controller, Turn], None] | None,
        compiled: bool,
        costs: Costs,
        *,
        free: bool,
    ) -> None:
        conf = controller.conf
        self.statistics = Statistics()
        self.held_until = -inf
        self.in_step = True
        self._controller = controller
        self._phases = phases
        self._turned = turned
        self._costs = costs
        self._free = free
        plain = compiled and not costs.test_s and suits(conf, controller.nodes)
        plain = plain and ends_all_victims(controller)
        self._quick: QuickCycles | None = None
        if plain:
            kind = QuickCycles if conf.select_type == LINEAR else SharedCycles
            self._quick = kind(controller, cuts=not (costs.counts_all or phases.test_s))
        backfills = conf.scheduler_type == BACKFILL and conf.scheduler.bf_interval_s > 0
        self.wakes_s = phases.boot_s + conf.scheduler.bf_interval_s if backfills else inf
        self._cycle_end = controller.events.second(phases.boot_s)
        self._plans_idle = False
        # The cycle that pauses.
        self._open: Cycle | None = None

    def look_date(self, now: float, last_turn: float) -> float:
        """When it next looks and finds that something has changed.

        last_turn: when the main loop's last turn was.
        """
        if self._open is not None:
            return self.wakes_s
        if self.wakes_s == inf:
            return inf
        late_s = now - self.wakes_s
        if self._controller.events.changed_s < self._cycle_end:
            reserved, boot_s = self._controller.rules.reserved, self._phases.main_boot_s
            changes = reserved.change_s(self._cycle_end, self._controller.events.second(boot_s))
            if changes == inf:
                return inf
            behind_s = BEHIND_S if self._phases.backfill_first else 0.0
            seen = self._phases.turn_after(changes - self._phases.t0) + behind_s
            late_s = max(late_s, seen - self.wakes_s)
        look = self.wakes_s + ceil(late_s - 1e-9) if late_s > 0.0 else self.wakes_s
        # Where backfill looks first, it has looked in vain before the main loop's turn.
        return look + 1 if self._phases.backfill_first and look <= last_turn else look

    def has_slept(self, date: float, least_s: float) -> bool:
        """Whether it sleeps until `date` for ``least_s`` or longer, and is woken before others.

        It does if it looks for the first time since its last cycle; then it looks every second.
        """
        slept_s = self._controller.conf.scheduler.bf_interval_s
        return slept_s >= least_s and abs(date - self.wakes_s) < BEHIND_S

    def cycle(self, date: float) -> None:
        """Make a cycle, or go on with the one that pauses; or look again in a second."""
        controller = self._controller
        now = controller.events.second(date)
        fresh = self._open is None
        if fresh and self._free and controller.allocations.completed_lately(now):
            self.wakes_s = date + 1
            return
        if fresh:
            self.in_step &= abs(date - self.wakes_s) < BEHIND_S
            controller.submission.miss_deadlines(date)
        if fresh and self._plans_idle:
            controller.events.change_at(now)
        quick = None if self._quick is None else self._quick.run(date)
        if self._quick is not None and quick is not None:
            self._end(self._quick, date, quick)
            return
        cycle = self._open
        if cycle is None:
            cycle = Cycle(controller, date, self._costs)
            over = cycle.run()
        else:
            over = cycle.go_on(date)
        released = self.held_until = date + cycle.slice_s
        if over:
            self._open = None
            self._end(cycle, released, cycle.tested, cycle.lasted_s, cycle.end)
        else:
            self._open = cycle
            self.wakes_s = released + controller.conf.scheduler.bf_yield_sleep_us / 1e6

    def _end(
        self,
        cycle: Cycle | QuickCycles,
        date: float,
        tested: int,
        lasted_s: float = 0.0,
        end: str = QUEUE,
    ) -> None:
        controller = self._controller
        self._plans_idle = cycle.plans_idle_nodes
        if cycle.changed:
            controller.events.change(date)
        over = date + self._phases.test_s * tested
        self._cycle_end = controller.events.second(over)
        self.wakes_s = over + controller.conf.scheduler.bf_interval_s + self._phases.backfill_s
        self.statistics.add(tested, len(controller.queue.jobs), lasted_s, end)
        if self._turned is not None:
            turn = Turn(date, phases_of.BACKFILL_CYCLE, tested, lasted_s, end)
            self._turned(controller, turn)


class Slicer:
    """Says when a slice is over, and ends it.

    controller, phases: of the loop. backfill: its thread, which may be woken at the same date.
    """

    def __init__(self, controller: Controller, phases: Phases, backfill: BackfillThread) -> None:
        self._suspension = controller.suspension
        self._every_s = controller.conf.scheduler_time_slice_s
        self._longest_first = phases.backfill_first
        self._backfill = backfill
        self._active = controller.conf.gang
        self.date_s = phases.boot_s + self._every_s

    def is_due(self, now: float, date: float, what: int) -> bool:
        """Whether a slice ends, at `date_s`, that a job waits for.

        now: the date of the loop. date, what: of the event that comes next otherwise.
        """
        if not self._suspension.waits_for_slice:
            return False
        self.date_s += max(0, ceil((now - self.date_s) / self._every_s)) * self._every_s
        return self.date_s < date or (self.date_s == date and self._is_first(date, what))

    def _is_first(self, date: float, what: int) -> bool:
        """Whether a slice ends before another event of that `date`."""
        # The longest sleep is first; of two that are as long that of backfill, unless it once
        # woke after a second, behind the slicer.
        if self._longest_first and what in (TURN, CYCLE, CYCLED):
            least_s = self._every_s + (not self._backfill.in_step)
            return what == TURN or not self._backfill.has_slept(date, least_s)
        return what > SLICE

    def pass_by(self, date: float, what: int) -> None:
        """Slices that ended before an event, at a `date`, are over, if no job waited for them.

        what: the event.
        """
        if not self._active or self._suspension.waits_for_slice or self.date_s > date:
            return
        self.date_s += ceil((date - self.date_s) / self._every_s) * self._every_s
        if self.date_s == date and self._is_first(date, what):
            self.date_s += self._every_s

    def end(self, date: float) -> None:
        """A slice is over at a `date`."""
        self.date_s += self._every_s
        self._suspension.slice(date)
