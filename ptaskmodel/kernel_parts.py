"""Kernels made by numba's compiler, from inside: parts of others, and entries for Python to call.

Nothing here is public in numba. `jit` uses it only where `works` says so; otherwise every kernel
is a dispatcher of numba's, by what is public: the same results, about twice the time to compile,
slower calls, and every process waits for the import of numba.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.core import codegen
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering

from ptaskmodel.kernel_calls import add_entry
from ptaskmodel.kernel_code import Code, UnknownArgument, bind, layout_is_known, link

OPTIONS: dict[str, Any] = {"error_model": "numpy"}
NAME = "ptaskmodel_entry"


class _EntryLibrary(codegen.JITCodeLibrary):
    """The code of an entry, optimised, but left for an engine of ours to make machine code of."""

    def finalize(self) -> None:
        """Link the parts of parts, too, and optimise the whole."""
        met: set[int] = set()

        def visit(library: Any) -> None:
            if id(library) in met:
                return
            met.add(id(library))
            for inner in library._linking_libraries if isinstance(library, _PartLibrary) else ():
                visit(inner)
            ordered.append(library)

        ordered: list[Any] = []
        for library in self._linking_libraries:
            visit(library)
        # Those who call first: the linker takes of each only what is called by what it has.
        self._linking_libraries = ordered[::-1]
        super().finalize()

    def _optimize_final_module(self) -> None:
        """Optimise what nobody outside can call: calls hand over what is read, not every word.

        A state of many arrays is hundreds of words, which each call would copy to the stack.
        """
        for function in self._final_module.functions:
            if not function.is_declaration and function.name != NAME:
                function.linkage = "internal"
        super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def code(self) -> Code:
        """Its machine code."""
        module = self._final_module
        needs = [each.name for each in module.functions if each.is_declaration]
        needs = [name for name in needs if not name.startswith("llvm.")]
        return Code(NAME, tuple(needs), self.codegen._tm.emit_object(module))


class _PartLibrary(codegen.JITCodeLibrary):
    """The code of a kernel that only ever becomes machine code as a part of others.

    It holds nothing of its own parts: who makes machine code links all of them, once.
    """

    def finalize(self) -> None:
        """Have it ready to be linked, as it is."""
        self._finalize_dynamic_globals()
        self._finalized = True


class _Lowering(NativeLowering):
    """Lowers a kernel without numba's own ways to call it."""

    library: Any

    def run_pass(self, state: Any) -> bool:
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        state.flags.no_cpython_wrapper = state.flags.no_cfunc_wrapper = True
        super().run_pass(state)
        # What numba keys the calls of other kernels by, instead of a compiled function.
        state["cr"] = state["cr"]._replace(cfunc=object())
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(_Lowering):
    """Lowers a kernel into a `_PartLibrary`, for other kernels to call."""

    _name: Any = "part_lowering"
    library = _PartLibrary

    def run_pass(self, state: Any) -> bool:
        super().run_pass(state)
        lowered = state["cr"]
        state.targetctx.insert_user_function(lowered.cfunc, lowered.fndesc, [state.library])
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _EntryLowering(_Lowering):
    """Lowers a kernel into an `_EntryLibrary`, with a function for Python to call."""

    _name: Any = "entry_lowering"
    library = _EntryLibrary

    def run_pass(self, state: Any) -> bool:
        super().run_pass(state)
        add_entry(state.targetctx, state.library, state["cr"].fndesc, NAME)
        state.library.finalize()
        return True


class _Compiler(CompilerBase):
    """Numba's own passes, with a lowering of ours."""

    lowering: Any

    def define_pipelines(self) -> list:
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.passes = [
            (self.lowering, about) if one is NativeLowering else (one, about)
            for one, about in pipeline.passes
        ]
        pipeline._finalized = False
        pipeline.finalize()
        return [pipeline]


class _PartCompiler(_Compiler):
    lowering = _PartLowering


class _EntryCompiler(_Compiler):
    lowering = _EntryLowering


def _dispatcher(function: Callable, allocates: bool, compiler: Any) -> Any:
    """What numba knows a kernel by; it has no machine code for it to find."""
    # Callers hold arrays: each count of references to them would be an atomic operation.
    options = {**OPTIONS, "_nrt": allocates, "pipeline_class": compiler}
    kernel = numba.njit(**options)(function)
    kernel._insert = lambda *_: None
    return kernel


def part(function: Callable, allocates: bool) -> Any:
    """What numba is to know a kernel by that becomes a part of those that call it."""
    return _dispatcher(function, allocates, _PartCompiler)


def compiled(function: Callable, allocates: bool, arguments: tuple) -> bytes:
    """The machine code of a kernel for arguments like these.

    Raises UnknownArgument where there is no way from Python's objects to its arguments and back,
    or where the code is of use in this process alone.
    """
    kernel = _dispatcher(function, allocates, _EntryCompiler)
    kernel.compile(tuple(numba.typeof(argument) for argument in arguments))
    (result,) = kernel.overloads.values()
    if result.library._dynamic_globals:
        raise UnknownArgument("a kernel with an address in it")
    return result.library.code().packed()


def works() -> bool:
    """Whether an entry with parts, compiled now, does what it should."""
    if not layout_is_known():
        return False

    def halves(values: Any) -> Any:
        return values[: values.size // 2], values[values.size // 2 :]

    def largest(values: Any) -> Any:
        best = values[0]
        for x in values:
            best = max(best, x)
        return best

    halves, largest = part(halves, False), part(largest, False)

    def both(values: Any, more: Any) -> Any:
        first, second = halves(values)
        return largest(first), largest(second) / (values[0] - values[0]), more[0] + 1

    values = np.array([3.0, 4.0, 5.0, 9.0])
    arguments = values, (2, True)
    before = sys.getrefcount(values)
    address = link(compiled(both, False, arguments))
    if address is None:
        return False
    kernel = bind("both", address, arguments)
    right = all(kernel(*arguments) == (4.0, np.inf, 3) for _ in range(3))
    refused = kernel(values[::2], (2, True)) is kernel(values, (2.0, True)) is NotImplemented
    return right and refused and sys.getrefcount(values) == before
