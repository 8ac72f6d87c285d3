"""The virtual clock: a memory page that all processes of a run share, and its driver."""

from __future__ import annotations

import ctypes
import os
import resource
import time
from math import ceil
from pathlib import Path

from ptaskmodel.slurm.live.programs import LiveFault

REACHED, HAPPENED, PAUSED, NOBODY = range(4)
NS = 1_000_000_000
NEVER = 2**63 - 1
# The driver comes back so often, real seconds, that an interruption is heard.
TURN_S = 0.1
# For how long something may run without a pause, real seconds, before the run is given up.
PATIENCE_S = 120.0
FILES = 65_536
_STATISTICS = ("wake_ups", "express", "of_one_process", "walks")


class Clock:
    """Dates of it are ns since 1970. Everything sleeps whenever a method that moves it returns.

    watched: a descriptor that can be read when something has happened. express: whether what can
    be known without looking at all tasks is not looked at; dates are the same.
    """

    def __init__(
        self,
        driver: Path,
        supervisor: int,
        first: int,
        watched: int,
        *,
        slack_us: float,
        express: bool,
    ) -> None:
        self._library = library = ctypes.CDLL(str(driver))
        # The driver keeps four files of each task open.
        self._limits = soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
        library.driver_open.restype = ctypes.c_void_p
        library.driver_now.restype = ctypes.c_int64
        self._page = os.memfd_create("ptaskmodel-clock")
        self._driver = ctypes.c_void_p(
            library.driver_open(
                self._page,
                ctypes.c_int64(first),
                ctypes.c_int64(round(slack_us * 1000)),
                supervisor,
                watched,
                max(soft, wanted) // 2,
                int(express),
            )
        )
        if not self._driver:
            raise LiveFault("there is no memory for the clock")
        self._busy_since: float | None = None

    @property
    def place(self) -> str:
        """Where processes find the page."""
        return f"/proc/{os.getpid()}/fd/{self._page}"

    @property
    def now(self) -> int:
        return int(self._library.driver_now(self._driver))

    @property
    def statistics(self) -> dict[str, int]:
        """How often a thread was woken, and what was looked at then."""
        found = (ctypes.c_uint64 * len(_STATISTICS))()
        self._library.driver_statistics(self._driver, found)
        return dict(zip(_STATISTICS, found, strict=True))

    def touched(self) -> None:
        """Note that something outside may have woken a process."""
        self._library.driver_touched(self._driver)

    def watch_file(self, descriptor: int) -> None:
        """Something has happened too when this file grows beyond what was `seen`."""
        self._library.driver_grows(self._driver, descriptor)

    def seen(self, size: int) -> None:
        self._library.driver_seen(self._driver, ctypes.c_int64(size))

    def run(self, until: int | None) -> int:
        """Move to a date (None: without end), or to when something has happened; tell which.

        Raises LiveFault if something does not come to rest.
        """
        what = int(
            self._library.driver_run(
                self._driver,
                ctypes.c_int64(NEVER if until is None else until),
                ctypes.c_int64(int(TURN_S * NS)),
            )
        )
        busy = int(self._library.driver_busy(self._driver)) if what == PAUSED else 0
        if not busy:
            self._busy_since = None
            return what
        now = time.monotonic()
        if self._busy_since is None:
            self._busy_since = now
        if now - self._busy_since > PATIENCE_S:
            raise LiveFault(
                f"{_name_of(busy)} has not come to rest for {PATIENCE_S:g} s; run it again"
            )
        return what

    def close(self) -> None:
        if self._driver:
            self._library.driver_close(self._driver)
            self._driver = ctypes.c_void_p()
            resource.setrlimit(resource.RLIMIT_NOFILE, self._limits)
            os.close(self._page)


def ns_of(seconds: float) -> int:
    """A length of time in ns, rounded up: what is due at a date is due when it is reached."""
    return ceil(seconds * NS - 1e-3)


def _name_of(task: int) -> str:
    try:
        return Path(f"/proc/{task}/comm").read_text(encoding="utf-8").strip()
    except OSError:
        return f"task {task}"
