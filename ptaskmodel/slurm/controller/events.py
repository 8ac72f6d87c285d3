"""Events of the controller: its clock, the last change, and the scheduling cycles that are due.

All parts of the controller, both schedulers and the loop report here what happens.
"""

from __future__ import annotations

from collections.abc import Callable
from math import floor

from ptaskmodel.slurm.conf.phases import AT_ONCE_S, Phases, second_of
from ptaskmodel.slurm.jobs.record import JobRecord

# Called with the date, what happens (a scheduler starts it, "end", "suspend", "resume",
# "cancel" of one that waits) and the job.
Note = Callable[[float, str, JobRecord], None]


class Events:
    """What has happened and what is asked for.

    phases: of the controller's threads. note: called for each event of a job; None: nothing is.
    requested: whether a pass of the main scheduler is asked for. at_once: whether one is due now.
    changed_s: when jobs or nodes last changed, Unix s; backfill looks only after a change. changes:
    how often that was noted.
    """

    def __init__(self, phases: Phases, note: Note | None = None) -> None:
        self._t0 = self._second = phases.t0
        self._date = 0.0
        self._note = note
        self.requested = True
        self.at_once = False
        self.changed_s = second_of(phases, phases.boot_s)
        self.changes = 0

    def second(self, date: float) -> int:
        """Return the clock at a `date`: whole Unix seconds."""
        if date != self._date:  # most ask for the same one
            self._date, self._second = date, self._t0 + floor(date + AT_ONCE_S)
        return self._second

    def change(self, date: float) -> None:
        """Note that jobs or nodes change at a `date`."""
        self.change_at(self.second(date))

    def change_at(self, now: int) -> None:
        """Note that jobs or nodes change at a second, `now`."""
        self.changed_s = now
        self.changes += 1

    def ask_for_pass(self) -> None:
        """Ask for a pass at the next turn that makes one."""
        self.requested = True

    def ask_for_pass_at_once(self) -> None:
        """Ask for a pass now."""
        self.at_once = True

    def answer_request(self) -> None:
        """The pass that was asked for is made."""
        self.requested = False

    def answer_at_once(self) -> None:
        """The pass that was due at once is made."""
        self.at_once = False

    def tell(self, date: float, what: str, job: JobRecord) -> None:
        """Report `what` happens to a `job` at a `date`."""
        if self._note is not None:
            self._note(date, what, job)
