"""The one way kernels are compiled: cached, IEEE arithmetic, one thread.

Numba's own cache notices an edit in the file of a kernel but not in the kernels that it calls from
other files. Kernels here call each other across files, so the cache is keyed by a digest of every
source file that holds one (``KERNEL_SOURCES``): change any and all are compiled anew.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import caching

PACKAGE = Path(__file__).resolve().parent
KERNEL_SOURCES = ("jit.py", "sharing/*.py", "engine/*.py", "platform/routing/*.py")


@functools.cache
def kernel_digest() -> str:
    """Digest of every file that holds kernels; the identity of the compiled code."""
    digest = hashlib.sha256()
    for pattern in KERNEL_SOURCES:
        for path in sorted(PACKAGE.glob(pattern)):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def cache_directory() -> Path | None:
    """The first writable of: $NUMBA_CACHE_DIR, the package, the user's cache; None if none is."""
    user = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    places = [PACKAGE / "__pycache__", Path(user) / "ptaskmodel"]
    if os.environ.get("NUMBA_CACHE_DIR"):
        places.insert(0, Path(os.environ["NUMBA_CACHE_DIR"]) / "ptaskmodel")
    for place in places:
        try:
            place.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=place).close()
        except OSError:
            continue
        return place
    return None


def _compiled_mark() -> Path | None:
    """A file that is there when the kernels of these very sources are compiled and kept."""
    place = cache_directory()
    if place is None:
        return None
    versions = f"{platform.machine()}-py{platform.python_version()}-numba{numba.__version__}"
    return place / f"compiled-{kernel_digest()}-{versions}"


def cached() -> bool:
    """Whether the kernels have been compiled and kept (see `mark_cached`)."""
    mark = _compiled_mark()
    return mark is not None and mark.exists()


def mark_cached() -> None:
    """Note that all kernels have been compiled, if they are kept at all."""
    mark = _compiled_mark()
    if mark is not None:
        mark.touch()


class _KernelCacheLocator(caching._CacheLocator):
    """Tells numba where our kernels are cached and when the cache is stale."""

    def __init__(self, py_func: Callable, py_file: str) -> None:
        stem = Path(py_file).resolve().relative_to(PACKAGE).with_suffix("").as_posix()
        self._name = f"{stem.replace('/', '-')}-{py_func.__code__.co_firstlineno}"

    def get_cache_path(self) -> str:
        return str(cache_directory())

    def get_source_stamp(self) -> str:
        return kernel_digest()

    def get_disambiguator(self) -> str:
        return self._name

    @classmethod
    def from_function(cls, py_func: Callable, py_file: str) -> _KernelCacheLocator | None:
        ours = PACKAGE in Path(py_file).resolve().parents
        return cls(py_func, py_file) if ours and cache_directory() is not None else None


if _KernelCacheLocator not in caching.CacheImpl._locator_classes:
    caching.CacheImpl._locator_classes.insert(0, _KernelCacheLocator)


def jit(function: Callable) -> Any:
    """Compile a kernel: cached where a directory is writable, no fastmath, no parallelism.

    Division by zero gives inf or nan, as in numpy, never an exception: kernels return a status.
    """
    return numba.njit(cache=cache_directory() is not None, error_model="numpy")(function)
