"""Handle the signals that end a command: INT, TERM and HUP all end it after a clean-up.

The command line (`run_as`) installs the handlers. Code that must first reach a safe state defers
signals (`held`) and polls them there (`check`). Without these handlers, as in a library, both do
nothing.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

TAKEN = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Another handler, or none because a signal is ignored (nohup), stays.
REPLACED = (signal.SIG_DFL, signal.default_int_handler)


class Interrupted(KeyboardInterrupt):
    """A signal asked this process to end. number: which."""

    def __init__(self, number: int) -> None:
        super().__init__(f"interrupted by {signal.Signals(number).name}")
        self.number = number


class _Taker:
    """Handles the signals of a command. number: the first that came; held: do not raise yet."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.held = False

    def hear(self, number: int, frame: FrameType | None) -> None:
        """Raise Interrupted, once; only INT, typed again, interrupts what is done because of it."""
        again = self.number is not None
        if again and number != signal.SIGINT:
            return
        self.number = number if self.number is None else self.number
        if again or not self.held:
            raise Interrupted(number)


_takers: list[_Taker] = []


@contextlib.contextmanager
def taken() -> Iterator[None]:
    """Raise Interrupted for each signal while this lasts; for the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    taker = _Taker()
    before = {number: signal.getsignal(number) for number in TAKEN}
    mine = [number for number, handler in before.items() if handler in REPLACED]
    _takers.append(taker)
    try:
        for number in mine:
            signal.signal(number, taker.hear)
        yield
    finally:
        for number in mine:
            signal.signal(number, before[number])
        _takers.remove(taker)


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Let `check` alone raise Interrupted while this lasts."""
    for taker in _takers:
        taker.held = True
    try:
        yield
    finally:
        for taker in _takers:
            taker.held = False


def check() -> None:
    """Raise Interrupted if a signal has come that asks this process to end."""
    for taker in _takers:
        if taker.number is not None:
            raise Interrupted(taker.number)


def arrived() -> bool:
    """Whether such a signal has come."""
    return any(taker.number is not None for taker in _takers)
