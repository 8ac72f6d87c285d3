"""Thread of the backfill scheduler: when it runs, and how long a cycle holds the controller.

The event loop calls it. A cycle runs only if jobs or nodes have changed since the last one.
Where `suits` allows it, `vectorised_backfill` makes the cycle, or `shared_cycles` if jobs share
nodes; otherwise `backfill.Cycle` does.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, inf

from ptaskmodel.slurm.conf import phases as phases_of
from ptaskmodel.slurm.conf.facts import BACKFILL, LINEAR
from ptaskmodel.slurm.conf.phases import BEHIND_S, QUEUE, Costs, Phases, Turn
from ptaskmodel.slurm.controller.controller import Controller
from ptaskmodel.slurm.scheduling.backfill import Cycle, Statistics
from ptaskmodel.slurm.scheduling.shared_cycles import SharedCycles
from ptaskmodel.slurm.scheduling.vectorised_backfill import QuickCycles, suits


class BackfillThread:
    """Says when it next looks, and makes its cycles.

    held_until: until when a cycle holds the controller. turned: called after each cycle. free: its
    dates are its own, not those of a recorded run.
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
        self._controller = controller
        self._phases = phases
        self._turned = turned
        self._costs = costs
        self._free = free
        plain = compiled and not costs.test_s and suits(conf, controller.nodes)
        self._quick: QuickCycles | None = None
        if plain and conf.select_type == LINEAR:
            self._quick = QuickCycles(controller)
        elif plain:
            self._quick = SharedCycles(controller, cuts=not (costs.counts_all or phases.test_s))
        backfills = conf.scheduler_type == BACKFILL and conf.scheduler.bf_interval_s > 0
        self._look = phases.boot_s + conf.scheduler.bf_interval_s if backfills else inf
        self._cycle_end = controller.events.second(phases.boot_s)
        self._plans_idle = False
        # The cycle that pauses.
        self._open: Cycle | None = None

    def look_date(self, now: float, last_turn: float) -> float:
        """When it next looks and finds that something has changed.

        last_turn: when the main loop's last turn was.
        """
        if self._open is not None:
            return self._look
        if self._look == inf:
            return inf
        late_s = now - self._look
        if self._controller.events.changed_s < self._cycle_end:
            reserved, boot_s = self._controller.rules.reserved, self._phases.main_boot_s
            changes = reserved.change_s(self._cycle_end, self._controller.events.second(boot_s))
            if changes == inf:
                return inf
            behind_s = BEHIND_S if self._phases.backfill_first else 0.0
            seen = self._phases.turn_after(changes - self._phases.t0) + behind_s
            late_s = max(late_s, seen - self._look)
        look = self._look + ceil(late_s - 1e-9) if late_s > 0.0 else self._look
        # Where backfill looks first, it has looked in vain before the main loop's turn.
        return look + 1 if self._phases.backfill_first and look <= last_turn else look

    def has_slept(self, date: float, least_s: float) -> bool:
        """Whether it sleeps until `date` for ``least_s`` or longer, and is woken before others.

        It does if it looks for the first time since its last cycle; then it looks every second.
        """
        slept_s = self._controller.conf.scheduler.bf_interval_s
        return slept_s >= least_s and abs(date - self._look) < BEHIND_S

    def cycle(self, date: float) -> None:
        """Make a cycle, or go on with the one that pauses; or look again in a second."""
        controller = self._controller
        now = controller.events.second(date)
        fresh = self._open is None
        if fresh and self._free and controller.allocations.completed_lately(now):
            self._look = date + 1
            return
        if fresh:
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
            self._look = released + controller.conf.scheduler.bf_yield_sleep_us / 1e6

    def _end(
        self,
        cycle: Cycle | QuickCycles,
        date: float,
        tested: int,
        lasted_s: float = 0.0,
        end: str = QUEUE,
    ) -> None:
        controller = self._controller
        now = controller.events.second(date)
        self._plans_idle = cycle.plans_idle_nodes
        if cycle.changed:
            controller.events.change_at(now)
        over = date + self._phases.test_s * tested
        self._cycle_end = controller.events.second(over)
        self._look = over + controller.conf.scheduler.bf_interval_s + self._phases.backfill_s
        self.statistics.add(tested, len(controller.queue), lasted_s, end)
        if self._turned is not None:
            turn = Turn(date, phases_of.BACKFILL_CYCLE, tested, lasted_s, end)
            self._turned(controller, turn)
