"""The one way kernels are compiled: cached, IEEE arithmetic, one thread.

An ``entry`` kernel becomes machine code of its own, kept in a cache. A ``jit`` kernel is a part of
those that call it: numba types and lowers it once, but leaves its optimisation and machine code to
them, which halves the time of a first compilation.

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
from numba.core import caching, codegen
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering

PACKAGE = Path(__file__).resolve().parent
KERNEL_SOURCES = (
    "jit.py",
    "sharing/*.py",
    "core/*.py",
    "core/patterns/*.py",
    "simulation/*.py",
    "platform/routing/*.py",
    "platform/topologies/*.py",
)


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


class _PartLibrary(codegen.JITCodeLibrary):
    """The code of a kernel that only ever becomes machine code as a part of others."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(NativeLowering):
    """Lowers a kernel into a `_PartLibrary`, for other kernels to call."""

    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = _PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        state.flags.no_cpython_wrapper = state.flags.no_cfunc_wrapper = True
        super().run_pass(state)
        lowered = state["cr"]
        # What numba keys the calls of other kernels by, instead of a compiled function.
        key = object()
        state.targetctx.insert_user_function(key, lowered.fndesc, [state.library])
        state["cr"] = lowered._replace(cfunc=key)
        return True


class _PartCompiler(CompilerBase):
    """Numba's own passes, with `_PartLowering` as the lowering."""

    def define_pipelines(self) -> list:
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.passes = [
            (_PartLowering, about) if one is NativeLowering else (one, about)
            for one, about in pipeline.passes
        ]
        pipeline._finalized = False
        pipeline.finalize()
        return [pipeline]


def entry(function: Callable, *, allocates: bool = False) -> Any:
    """Compile a kernel for Python to call: cached where a directory is writable, IEEE arithmetic.

    Division by zero gives inf or nan, as in numpy, never an exception: kernels return a status.
    Unless it ``allocates`` arrays or returns some, it counts no references to them: its callers
    hold them, and each count would be an atomic operation.
    """
    return _njit(function, cache=cache_directory() is not None, _nrt=allocates)


def jit(function: Callable, *, allocates: bool = False) -> Any:
    """Compile a kernel as a part of those that call it; called from Python, it becomes an entry."""
    kernel = _njit(function, _nrt=allocates, pipeline_class=_PartCompiler)
    if kernel is not function:
        alone = functools.cache(lambda: entry(function, allocates=allocates))
        # Numba's dispatcher is to find no machine code and to ask for it: it is sent to the entry.
        kernel._insert = lambda *_: None
        kernel._compile_for_args = lambda *_, **__: alone()
    return kernel


def views(function: Callable) -> Any:
    """A part that returns views of its arguments; called from Python it is the plain function."""
    kernel = _njit(function, _nrt=False, pipeline_class=_PartCompiler)
    if kernel is not function:
        kernel._insert = lambda *_: None
        kernel._compile_for_args = lambda *_, **__: function
    return kernel


def _njit(function: Callable, **options: Any) -> Any:
    return numba.njit(error_model="numpy", **options)(function)
