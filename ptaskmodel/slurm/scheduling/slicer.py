"""When time slices of the gang scheduler are over, among the events of a loop."""

from __future__ import annotations

from math import ceil

from ptaskmodel.slurm.conf.phases import CYCLE, SLICE, TURN, Phases
from ptaskmodel.slurm.controller.controller import Controller
from ptaskmodel.slurm.scheduling.backfill_thread import BackfillThread


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
        if self._longest_first and what in (TURN, CYCLE):  # the longest sleep is first
            return what == TURN or not self._backfill.has_slept(date, self._every_s)
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
