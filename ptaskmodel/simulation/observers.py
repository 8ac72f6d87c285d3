"""Observers: told of tasks that start and end, and of every date."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ptaskmodel.core.state import ENDED, STARTED
from ptaskmodel.simulation.refs import TaskRef

if TYPE_CHECKING:
    from ptaskmodel.simulation.simulation import Simulation


class Observer:
    """Told of what happens; does nothing. Override what you need.

    `stepped` comes after every date at which something happened, with the new rates in force.
    At one date, ends are told before starts.
    """

    def task_started(self, task: TaskRef) -> None:
        """A task has started, at the date of its simulation."""

    def task_ended(self, task: TaskRef) -> None:
        """A task has ended, in whatever state."""

    def stepped(self, simulation: Simulation) -> None:
        """All that happened at a date is done."""


class Watch:
    """The observers of a simulation, and what they have not been told yet."""

    def __init__(self) -> None:
        self.observers: list[Observer] = []
        self._started: list[int] = []
        self._ended: list[int] = []
        self._telling = False

    def take(self, events: np.ndarray) -> None:
        """Note which tasks started and ended."""
        kinds, subjects = events["kind"], events["subject"]
        self._started += subjects[kinds == STARTED].tolist()
        self._ended += subjects[kinds == ENDED].tolist()

    @property
    def has_news(self) -> bool:
        """Whether some task started or ended, of which observers can be told now."""
        return bool(self._started or self._ended) and not self._telling

    def tell(self, simulation: Simulation) -> None:
        """Tell the observers what ended, then what started, since the last time."""
        started, ended = sorted(self._started), self._ended
        self._started, self._ended = [], []
        self._telling = True
        try:
            for observer in tuple(self.observers):
                for k in ended:
                    observer.task_ended(TaskRef(simulation, k))
                for k in started:
                    observer.task_started(TaskRef(simulation, k))
                observer.stepped(simulation)
        finally:
            self._telling = False


def now_and_then(tell: Callable[[], None], every_s: float) -> Callable[[], None]:
    """A function that may be called as often as one likes: it calls ``tell`` every so often."""
    told = time.monotonic()

    def look() -> None:
        nonlocal told
        if time.monotonic() - told > every_s:
            told = time.monotonic()
            tell()

    return look
