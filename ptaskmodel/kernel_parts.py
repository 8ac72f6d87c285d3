"""Kernels compiled as parts of others, without counts of references: numba's compiler from inside.

Nothing here is public in numba. `jit` uses it only where `works` says so; otherwise every kernel
becomes machine code of its own, by what is public: the same results, about twice the time to
compile, somewhat slower calls.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.core import codegen
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering


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


def without_counts(allocates: bool) -> dict[str, bool]:
    """The options of a kernel that counts no references to arrays, unless it ``allocates`` some.

    Its callers hold them, and each count would be an atomic operation.
    """
    return {"_nrt": allocates}


def part(
    function: Callable, options: dict[str, Any], allocates: bool, alone: Callable[[], Callable]
) -> Any:
    """A kernel compiled into those that call it; Python's calls go to what ``alone`` returns."""
    options = {**options, **without_counts(allocates), "pipeline_class": _PartCompiler}
    kernel = numba.njit(**options)(function)
    called = functools.cache(alone)
    # Numba's dispatcher is to find no machine code and to ask for it: it is sent there.
    kernel._insert = lambda *_: None
    kernel._compile_for_args = lambda *_, **__: called()
    return kernel


def works() -> bool:
    """Whether a kernel with parts, compiled now, does what it should."""

    def halves(values: Any) -> Any:
        return values[: values.size // 2], values[values.size // 2 :]

    def largest(values: Any) -> Any:
        best = values[0]
        for x in values:
            best = max(best, x)
        return best

    options: dict[str, Any] = {"error_model": "numpy"}
    plain = {**options, **without_counts(False)}
    halves = part(halves, options, False, lambda: halves)
    largest = part(largest, options, False, lambda: largest)

    def both(values: Any) -> Any:
        first, second = halves(values)
        return largest(first), largest(second) / (values[0] - values[0])

    values = np.array([3.0, 4.0, 5.0, 9.0])
    before = sys.getrefcount(values)
    kernel = numba.njit(**plain)(both)
    right = all(kernel(values) == (4.0, np.inf) for _ in range(3))
    return right and sys.getrefcount(values) == before
