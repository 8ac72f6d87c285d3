"""The one way kernels are compiled: cached, IEEE arithmetic, one thread.

An ``entry`` kernel becomes machine code of its own, kept in a cache. A ``jit`` kernel is a part of
those that call it: numba types and lowers it once, but leaves its optimisation and machine code to
them, which halves the time of a first compilation. ``views`` are parts that return views of their
arguments.

What is public in numba is enough (``PTASKMODEL_PLAIN_NUMBA=1`` uses nothing else); parts, and doing
without counts of references, need `kernel_parts`, which is tried once for each version of numba.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import numba

from ptaskmodel.kernel_cache import cache_directory, keep, plain, versions

OPTIONS: dict[str, Any] = {"error_model": "numpy"}


@functools.cache
def _parts() -> Any:
    """The module `kernel_parts` where it works with this numba, else None."""
    if plain() or numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return None
    try:
        from ptaskmodel import kernel_parts
    except (ImportError, AttributeError):
        return None
    place = cache_directory()
    known = None if place is None else place / f"parts-{versions()}"
    with contextlib.suppress(OSError):
        if known is not None and known.exists():
            return kernel_parts if known.read_text() == "work" else None
    try:
        works = kernel_parts.works()
    except Exception:  # whatever a numba whose inside has changed makes of it
        works = False
    with contextlib.suppress(OSError):
        if known is not None:
            known.write_text("work" if works else "do not work")
    return kernel_parts if works else None


def entry(function: Callable, *, allocates: bool = False) -> Any:
    """Compile a kernel for Python to call: cached where a directory is writable, IEEE arithmetic.

    Division by zero gives inf or nan, as in numpy, never an exception: kernels return a status.
    Unless it ``allocates`` arrays or returns some, it counts no references to them.
    """
    parts = _parts()
    inner = {} if parts is None else parts.without_counts(allocates)
    kernel = numba.njit(**OPTIONS, **inner)(function)
    if kernel is not function:
        keep(kernel)
    return kernel


def jit(function: Callable, *, allocates: bool = False) -> Any:
    """Compile a kernel as a part of those that call it; called from Python, it becomes an entry."""
    parts = _parts()
    if parts is None:
        return numba.njit(**OPTIONS)(function)
    return parts.part(function, OPTIONS, allocates, lambda: entry(function, allocates=allocates))


def views(function: Callable) -> Any:
    """A part that returns views of its arguments; called from Python it is the plain function."""
    parts = _parts()
    if parts is None:
        return numba.njit(**OPTIONS)(function)
    return parts.part(function, OPTIONS, False, lambda: function)
