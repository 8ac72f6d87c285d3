"""Return how much memory is free; run the garbage collector less while lasting objects are made."""

from __future__ import annotations

import contextlib
import gc
import os
import resource
from collections.abc import Iterator

PLENTY = 2**40
# Objects made, and searches among the young, before those that stay are looked through.
SELDOM = (100_000, 20, 20)
USUAL = (700, 10, 10)
# The largest piece that is kept (no more is allowed), and numbers of mallopt(3).
KEPT_BYTES = 2**25
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3


def available_bytes() -> int:
    """The memory that can be had without swapping; `PLENTY` where the system does not say.

    No more than what a limit of the process (``ulimit -v``) leaves.
    """
    return max(0, min(_free_bytes(), _bytes_below_limit()))


def _bytes_below_limit() -> int:
    """What the process may still take of its address space."""
    try:
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        with open("/proc/self/statm", encoding="ascii") as stream:
            taken = int(stream.read().split()[0])
        size = limit - taken * os.sysconf("SC_PAGE_SIZE")
        return PLENTY if limit == resource.RLIM_INFINITY else size
    except (OSError, ValueError, IndexError):
        return PLENTY


def _free_bytes() -> int:
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return PLENTY


def keep_freed() -> None:
    """Keep memory that is freed for what comes next, where the C library is glibc.

    By default glibc returns large pieces to the system at once, which clears each page once more.
    """
    import ctypes

    with contextlib.suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, KEPT_BYTES)
        mallopt(_TRIM_THRESHOLD, 8 * KEPT_BYTES)


@contextlib.contextmanager
def collector_at_rest() -> Iterator[None]:
    """No search for cycles meanwhile: looking through what stays again and again costs most."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextlib.contextmanager
def collector_seldom() -> Iterator[None]:
    """Cycles are searched for seldom meanwhile: much stays, but others may leave cycles behind."""
    before = gc.get_threshold()
    if before[0] > 0:  # else it rests
        gc.set_threshold(*map(max, before, SELDOM))
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextlib.contextmanager
def collector_as_usual() -> Iterator[None]:
    """Cycles are searched for as often as Python does by itself: numba leaves many as it compiles.

    Else compiling the kernels of a simulation takes 1.2 GB instead of 0.8.
    """
    enabled, before = gc.isenabled(), gc.get_threshold()
    gc.enable()
    gc.set_threshold(*USUAL)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        if not enabled:
            gc.disable()
