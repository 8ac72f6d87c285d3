"""The event loop of a simulation: run compiled loops, and handle in Python what they return for.

`Simulation` derives from it, and adds tasks, changes and readings.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ptaskmodel.engine.driver import Core
from ptaskmodel.engine.state import (
    ENDED,
    EVENTS_FULL,
    IDLE,
    SETTLE,
    STEP,
    STEPPED,
    UNROUTED,
    Options,
)
from ptaskmodel.kernels.decorators import as_compiled
from ptaskmodel.simulation.intake import Intake
from ptaskmodel.simulation.life import run
from ptaskmodel.simulation.records import Watch

if TYPE_CHECKING:
    from ptaskmodel.mpi.applications import Applications

# Between two pauses: at most so many events, fewer where each looks at many activities.
EVENTS_PER_SLICE, LOOKS_PER_SLICE = 20_000, 4_000_000

AnObserver = TypeVar("AnObserver")


class Advancing(Generic[AnObserver]):
    """A state that compiled loops advance: the engine, the tasks and, with traces, their ranks."""

    core: Core
    _intake: Intake
    _replays: Applications | None
    _watch: Watch[AnObserver]
    _idle: bool
    _ended: list[int]
    _settled: Any

    def _settle(self) -> None:
        """Let what is due now begin and share anew, so that rates are those in force."""
        self._go(self.core.options._replace(mode=SETTLE))

    @property
    def _is_settled(self) -> bool:
        """Whether all that is due has begun, and rates are those in force."""
        return self._intake.is_settled and self.core.is_settled

    def _advance(self, options: Options, look: Callable[[], None] | None = None) -> int:
        """Run the event loop, telling the observers; returns why it stopped."""
        if self._watch.observers:
            return self._advance_observed(options, look)
        if look is not None:
            # Each event may make one more active.
            active = int(self.core.state.clock[0]["n_active"]) + math.isqrt(LOOKS_PER_SLICE)
            events = min(EVENTS_PER_SLICE, LOOKS_PER_SLICE // active)
            options = options._replace(pause_at=self.core.events + events)
        return self._go(options)

    def _go(self, options: Options) -> int:
        """Run the event loop, doing what it asks for; returns why it stopped."""
        core, intake = self.core, self._intake
        self._settled = None
        while True:
            replays = self._replays
            loop, arguments = self._loop(options)
            with as_compiled():
                status = loop(*arguments)
            if replays is not None and self._serve_ranks(replays, int(status)):
                continue
            if status == UNROUTED:
                self._hand_over()
                intake.route(int(core.state.clock[0]["argument"]), core)
                continue
            if status == EVENTS_FULL:
                self._hand_over()
            if not core.serve(status):
                self._hand_over()
                self._idle = bool(status == IDLE)
                return int(status)

    def _loop(self, options: Options) -> tuple[Callable, tuple]:
        """The event loop that the tasks need, and what it takes."""
        core, arrays = self.core.state, self._intake.arrays
        if self._replays is None:
            return run, (core, arrays, options)
        from ptaskmodel.simulation.beside import run as run_beside

        return run_beside, (core, arrays, self._replays.state, options)

    def _serve_ranks(self, replays: Applications, status: int) -> bool:
        """Do what the loop asks for ranks; False if it does not."""
        from ptaskmodel.mpi.state import NEEDS_RANKS

        if status == NEEDS_RANKS:
            self._hand_over()
            self._intake.begin_ranks(replays)
            return True
        return status != IDLE and replays.serve(status)

    def _hand_over(self) -> None:
        """Take note of what ended and started, and let listeners know all that was told."""
        events = self.core.hand_over()
        self._ended += events["subject"][events["kind"] == ENDED].tolist()
        if self._watch.observers:
            self._watch.take(events)

    def _advance_observed(self, options: Options, look: Callable[[], None] | None) -> int:
        """The same, one date after the other, telling the observers."""
        while (status := self._step_observed(options)) == STEPPED:
            if look is not None:
                look()
        return status

    def _step_observed(self, options: Options) -> int:
        """Go to the next date, telling the observers; returns why it stopped."""
        status = self._settle_observed(options)
        if status == STEPPED:
            status = self._go(options._replace(mode=STEP))
            if status == STEPPED or self._watch.has_news:
                self._watch.tell(self._tell_observer)
        self.core.state.clock[0]["stepping"] = 0  # also where an end stopped it
        return status

    def _settle_observed(self, options: Options) -> int:
        """Let what is due now begin, and what observers then add; STEPPED, or why it stopped."""
        status = STEPPED
        while status == STEPPED and (self._watch.has_news or not self._is_settled):
            status = self._go(options._replace(mode=SETTLE))
            if self._watch.has_news:
                self._watch.tell(self._tell_observer)
        return int(status)

    def _tell_observer(self, observer: AnObserver, ended: list[int], started: list[int]) -> None:
        """Tell an observer what ended, then what started, and that this time is done."""
        raise NotImplementedError
