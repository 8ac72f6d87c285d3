"""Progress and log messages on standard error while a command runs.

On a terminal, progress is shown once a second; elsewhere as a line every 30 s, as logs of batch
jobs want it, and with -v every 10 s. Log messages below the chosen level are hidden.
"""

from __future__ import annotations

import contextlib
import logging
import math
import time
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from ptaskmodel import remarks
from ptaskmodel.cli.command import CLEAR_LINE, on_terminal, tell
from ptaskmodel.style.text import duration
from ptaskmodel.units import format_date

LOGGER = logging.getLogger("ptaskmodel")
# Seconds of real time between two reports.
TERMINAL_S = 1.0
ELSEWHERE_S = 30.0
VERBOSE_S = 10.0
# Below this part of all, what is left is not guessed.
KNOWN_PART = 0.005
# So many dates are kept at most, from which the time to go is guessed.
MOST_REACHED = 1000
# What goes on once all is over that is counted.
AFTER = "the results are written"
# Below this size a file is read at once.
LARGE_BYTES = 16 << 20


class Teller(logging.Handler):
    """Writes each record as one line on standard error, over a line of progress."""

    def emit(self, record: logging.LogRecord) -> None:
        level = "" if record.levelno < logging.WARNING else f"{record.levelname.lower()}: "
        tell(f"{level}{record.getMessage()}")


def is_verbose() -> bool:
    """Whether more than warnings is asked for."""
    return LOGGER.isEnabledFor(logging.INFO)


def is_quiet() -> bool:
    """Whether nothing but errors is asked for."""
    return not LOGGER.isEnabledFor(logging.WARNING)


@contextlib.contextmanager
def talking() -> Iterator[None]:
    """What `logging` and `warnings` are told goes to standard error as long as a command runs."""
    teller, level = Teller(), LOGGER.level
    LOGGER.addHandler(teller)
    LOGGER.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            yield
    finally:
        LOGGER.removeHandler(teller)
        LOGGER.setLevel(level)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: object = None,
    line: str | None = None,
) -> None:
    remarks.keep(remarks.Remark(str(message), remarks.WARNING))
    LOGGER.warning("%s", message)


class Progress:
    """Takes what a run reports, as often as it does, and tells it now and then."""

    def __init__(
        self,
        total: int,
        what: str,
        *,
        every_s: float,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        after: str = AFTER,
    ) -> None:
        self._total, self._what, self._after = total, what, after
        self._every_s, self._say, self._clock = every_s, say, clock
        self._began = self._told = clock()
        self.said = False
        # How many were over, and after how many seconds, now and then.
        self._reached: list[tuple[int, float]] = [(0, 0.0)]

    def __call__(self, now_s: float | None, ended: int, waiting: int | None = None) -> None:
        """now_s: the date reached, s; ended: how many are over; waiting: how many queue."""
        clock = self._clock()
        if ended > self._reached[-1][0]:
            self._reached.append((ended, clock - self._began))
            if len(self._reached) > MOST_REACHED:
                del self._reached[1::2]
        # The last is always told where others were: the line stays while results are written.
        last = self.said and now_s is not None and ended >= self._total
        if clock - self._told < self._every_s and not last:
            return
        self._told = clock
        self.said = True
        self._say(self.text(now_s, ended, waiting, clock - self._began))

    def of(self, total: int) -> None:
        """So many there are in all."""
        self._total = total

    def _left_s(self, ended: int, passed_s: float) -> float:
        """Seconds to go when so many are over: what each costs goes on growing as it has.

        A queue that deepens makes each job dearer. Costs that fall stay as they are of late.
        """
        half, left = ended / 2, self._total - ended
        k = bisect_right(self._reached, (half, math.inf))
        (before, early_s), (after, late_s) = self._reached[k - 1], (ended, passed_s)
        if k < len(self._reached):
            after, late_s = self._reached[k]
        early_s += (late_s - early_s) * (half - before) / max(after - before, 1)
        late_s = passed_s - early_s
        growth_s = max((late_s - early_s) / half**2, 0.0)
        return left * (late_s / half + growth_s * (half / 2 + left / 2))

    def text(self, now_s: float | None, ended: int, waiting: int | None, passed_s: float) -> str:
        """The line: date, how many of all are over, the queue, time to go, how many a second."""
        parts = [f"{ended:,} of {self._total:,} {self._what}"]
        if waiting is not None:
            parts.append(f"{waiting:,} wait")
        if ended and passed_s > 0.0:
            if ended >= KNOWN_PART * self._total:
                left_s = self._left_s(ended, passed_s)
                parts.append(f"{duration(round(left_s))} to go")
            if ended >= passed_s:
                parts.append(f"{ended / passed_s:,.0f}/s")
        if now_s is None:
            return ", ".join(parts)
        if ended >= self._total:
            return f"{format_date(now_s)}: {parts[0]}; {self._after}"
        return f"{format_date(now_s)}: {', '.join(parts)}"


@contextlib.contextmanager
def told_progress(
    total: int, what: str, *, queues: bool = False, after: str = AFTER
) -> Iterator[Callable | None]:
    """A function to call with the date (s) and how many of ``total`` are over; None: with -q.

    queues: its third number is how many wait; otherwise it is the total, if there is one. after:
    what goes on once all are over.
    """
    with _told(total, what, after) as progress:
        if progress is None:
            yield None
            return

        def tell(now_s: float, ended: int, third: int = 0, *_: object) -> None:
            if third and not queues:
                progress.of(third)
            progress(now_s, ended, third if queues else None)

        yield tell


@contextlib.contextmanager
def told_steps(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A function to call with how many steps are done, and of how many; None: with -q."""
    with _told(0, what) as progress:
        if progress is None:
            yield None
            return

        def tell(done: int, total: int) -> None:
            progress.of(total)
            progress(None, done)

        yield tell


def manner() -> tuple[float, Callable[[str], None]]:
    """Return the seconds between two reports of progress, inf with -q, and what says one."""
    every_s = TERMINAL_S if on_terminal() else VERBOSE_S if is_verbose() else ELSEWHERE_S
    return math.inf if is_quiet() else every_s, write_over if on_terminal() else tell


@contextlib.contextmanager
def _told(total: int, what: str, after: str = AFTER) -> Iterator[Progress | None]:
    every_s, say = manner()
    if every_s == math.inf:
        yield None
        return
    progress = Progress(total, what, every_s=every_s, say=say, after=after)
    try:
        yield progress
    finally:
        if progress.said and on_terminal():
            click.echo(CLEAR_LINE, err=True, nl=False)


@contextlib.contextmanager
def told_reading(path: Path, doing: str = "reading") -> Iterator[None]:
    """Say on a terminal that a large file, or directory of files, is read, as long as it is."""
    files = path.iterdir() if path.is_dir() else (path,)
    size = sum(file.stat().st_size for file in files if file.is_file())
    if size < LARGE_BYTES or is_quiet() or not on_terminal():
        yield
        return
    write_over(f"{doing} {path.name}, {size / 1e6:,.0f} MB")
    try:
        yield
    finally:
        click.echo(CLEAR_LINE, err=True, nl=False)


def write_over(text: str) -> None:
    """Write ``text`` as one line over the last, no longer than the terminal is wide."""
    import shutil

    width = max(shutil.get_terminal_size().columns - 1, 20)
    click.echo(f"{CLEAR_LINE}{text[:width]}", err=True, nl=False)
