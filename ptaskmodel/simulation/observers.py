"""What the observers of a simulation have not been told yet, and what is said now and then."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np

from ptaskmodel.core.state import ENDED, STARTED

AnObserver = TypeVar("AnObserver")


class Watch(Generic[AnObserver]):
    """The observers of a simulation, and what they have not been told yet."""

    def __init__(self) -> None:
        self.observers: list[AnObserver] = []
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

    def tell(self, tell: Callable[[AnObserver, list[int], list[int]], None]) -> None:
        """Tell each observer the numbers of tasks that ended, then started, since the last time."""
        started, ended = sorted(self._started), self._ended
        self._started, self._ended = [], []
        self._telling = True
        try:
            for observer in tuple(self.observers):
                tell(observer, ended, started)
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
