"""Kernels made by numba's compiler, from inside: parts of others, and entries for Python to call.

Nothing here is public in numba. `jit` uses it only where `works` says so; otherwise every kernel
is a dispatcher of numba's, by what is public: the same results, about twice the time to compile,
slower calls, and every process waits for the import of numba.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import binding as llvm_binding
from llvmlite import ir
from numba.core import cgutils as numba_cgutils
from numba.core import codegen
from numba.core import types as numba_types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.registry import cpu_target
from numba.core.typed_passes import NativeLowering
from numba.extending import intrinsic

from ptaskmodel.kernel_bundles import bundled, tell_of_bundles
from ptaskmodel.kernel_calls import WORD, add_entry
from ptaskmodel.kernel_code import (
    LATE,
    NOT_THERE,
    Code,
    UnknownArgument,
    bind,
    layout_is_known,
    link,
    set_place,
)

# Typed in part only.
cgutils: Any = numba_cgutils
types: Any = numba_types
llvm: Any = llvm_binding

OPTIONS: dict[str, Any] = {"error_model": "numpy"}
# Called whenever a kernel has been lowered, for whoever watches.
told: list[Callable[[], None]] = []
NAME = "ptaskmodel_entry"
# Passes for what no kernel does: contexts, closures and comprehensions, literal arguments.
NOT_NEEDED = {
    "WithLifting", "InlineClosureLikes", "RewriteDynamicRaises", "MakeFunctionToJitFunction",
    "InlineInlinables", "FindLiterallyCalls", "LiteralUnroll", "LiteralPropagationSubPipelinePass",
    "InlineOverloads", "NopythonRewrites", "NoPythonSupportedFeatureValidation", "AnnotateTypes",
    "DumpParforDiagnostics",
}  # fmt: skip
# Passes that are enough once.
ONCE = {"DeadBranchPrune"}


class _Library(codegen.JITCodeLibrary):
    def add_ir_module(self, ir_module: Any) -> None:
        tell_of_bundles(ir_module)
        super().add_ir_module(ir_module)


class _EntryLibrary(_Library):
    """The code of an entry, optimised, but left for an engine of ours to make machine code of."""

    # Half as much machine code again, which only loops over numbers gain by.
    unrolls = False

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

        A state of many arrays is hundreds of words, which each call would copy to the stack. One
        round of passes is enough where nobody counts references.
        """
        for function in self._final_module.functions:
            if not function.is_declaration and function.name != NAME:
                function.linkage = "internal"
        if not hasattr(llvm, "create_pipeline_tuning_options"):  # llvmlite before 0.44
            super()._optimize_final_module()
            return
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization, options.slp_vectorization = True, False
        options.loop_unrolling = self.unrolls
        builder = llvm.create_pass_builder(self.codegen._tm, options)
        builder.getModulePassManager().run(self._final_module, builder)

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def code(self) -> Code:
        """Its machine code."""
        module = self._final_module
        needs = [each.name for each in module.functions if each.is_declaration]
        needs = [name for name in needs if not name.startswith("llvm.")]
        needs += [each.name for each in module.global_variables if each.name.startswith(LATE)]
        return Code(NAME, tuple(needs), self.codegen._tm.emit_object(module))


class _LateLibrary(_EntryLibrary):
    """The code of a late kernel: those that solve are."""

    unrolls = True


class _PartLibrary(_Library):
    """The code of a kernel that only ever becomes machine code as a part of others.

    It holds nothing of its own parts: who makes machine code links all of them, once.
    """

    def _optimize_functions(self, ll_module: Any) -> None:
        """Leave that, too, to who makes machine code."""

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
        for tell in told:
            tell()
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


@register_pass(mutates_CFG=True, analysis_only=False)
class _LateLowering(_Lowering):
    """Lowers a kernel into an `_EntryLibrary`, with a function for other kernels to call."""

    _name: Any = "late_lowering"
    library = _LateLibrary

    def run_pass(self, state: Any) -> bool:
        super().run_pass(state)
        kernel = state["cr"].fndesc
        if types.unliteral(kernel.restype) != types.int64:
            raise TypeError(f"{kernel.qualname} returns {kernel.restype}, not an integer")
        _add_late(state.targetctx, state.library, kernel)
        state.library.finalize()
        return True


def _add_late(context: Any, library: Any, kernel: Any) -> None:
    """Add to a library the function by which other kernels call its kernel."""
    module = context.create_module("late")
    conventions = context.call_conv
    inner = ir.Function(
        module,
        conventions.get_function_type(kernel.restype, kernel.argtypes),
        kernel.llvm_func_name,
    )
    packer = context.get_arg_packer(kernel.argtypes)
    function = ir.Function(module, ir.FunctionType(WORD, packer.argument_types), NAME)
    builder = ir.IRBuilder(function.append_basic_block())
    values = packer.from_arguments(builder, function.args)
    _, result = conventions.call_function(builder, inner, kernel.restype, kernel.argtypes, values)
    builder.ret(result)
    library.add_ir_module(module)


_sizes: dict[str, int] = {}


def _size(name: str, kind: Any, target: Any) -> int:
    """The bytes of a type, which LLVM is asked for once."""
    if name not in _sizes:
        _sizes[name] = kind.get_abi_size(target)
    return _sizes[name]


class _Passes(PassManager):
    """Passes one after the other, without the checks and the analyses of the whole between them."""

    def _runPass(self, index: int, one: Any, state: Any) -> None:
        one.analysis = self._analysis
        one.run_initialization(state)
        one.run_pass(state)
        one.run_finalizer(state)


class _Compiler(CompilerBase):
    """Numba's own passes, as far as kernels need them, with a lowering of ours."""

    lowering: Any

    def __init__(self, typing: Any, target: Any, *others: Any) -> None:
        """Without a look at all that numba knows, which it takes anew where something is amiss."""
        typing.refresh = target.refresh = lambda: None
        try:
            super().__init__(typing, target, *others)
        finally:
            del typing.refresh, target.refresh
        target = self.state.targetctx
        target.get_abi_sizeof = lambda kind: _size(str(kind), kind, target.target_data)

    def define_pipelines(self) -> list:
        usual = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline = _Passes(usual.pipeline_name)
        for one, about in usual.passes:
            if one.__name__ in ONCE and one in dict(pipeline.passes):
                continue
            if one.__name__ not in NOT_NEEDED:
                pipeline.add_pass(self.lowering if one is NativeLowering else one, about)
        pipeline.finalize()
        return [pipeline]


class _PartCompiler(_Compiler):
    lowering = _PartLowering


class _EntryCompiler(_Compiler):
    lowering = _EntryLowering


class _LateCompiler(_Compiler):
    lowering = _LateLowering


def _dispatcher(function: Callable, allocates: bool, compiler: Any) -> Any:
    """What numba knows a kernel by; it has no machine code for it to find."""
    # Callers hold arrays: each count of references to them would be an atomic operation.
    options = {**OPTIONS, "_nrt": allocates, "pipeline_class": compiler}
    kernel = numba.njit(**options)(function)
    kernel._insert = lambda *_: None
    return kernel


def _types(arguments: tuple) -> tuple:
    """What numba knows arguments of an entry by."""
    return tuple(bundled(numba.typeof(argument)) for argument in arguments)


def part(function: Callable, allocates: bool) -> Any:
    """What numba is to know a kernel by that becomes a part of those that call it."""
    return _dispatcher(function, allocates, _PartCompiler)


def caller(name: str, arguments: tuple) -> Any:
    """What numba is to know a kernel by that others call by its address, with arguments like these.

    It looks for the address in a place of that name, and returns `NOT_THERE` if there is none.
    """
    expected = _types(arguments)

    def typed(given: tuple) -> tuple:
        if tuple(map(types.unliteral, given)) != expected:
            raise TypeError(f"{name} is for other arguments than {given}")

        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            packer = context.get_arg_packer(signature.args)
            kind = ir.FunctionType(WORD, packer.argument_types)
            place = ir.GlobalVariable(builder.module, WORD, name=LATE + name)
            place.initializer, place.linkage = WORD(0), "weak"  # it may be met several times
            address = builder.load(place)
            found = cgutils.alloca_once_value(builder, WORD(NOT_THERE))
            with builder.if_then(builder.icmp_unsigned("!=", address, WORD(0))):
                function = builder.inttoptr(address, kind.as_pointer())
                given = packer.as_arguments(builder, values)
                builder.store(builder.call(function, given), found)
            return builder.load(found)

        return types.int64(*expected), code

    names = ", ".join(f"a{k}" for k in range(len(arguments)))
    scope: dict[str, Any] = {"typed": typed}
    exec(f"def call(context, {names}): return typed(({names},))", scope)
    scope["call"] = intrinsic(scope["call"])
    exec(f"def stub({names}): return call({names})", scope)
    cpu_target.typing_context.refresh()  # to know this one
    return part(scope["stub"], False)


def compiled_late(function: Callable, arguments: tuple) -> bytes:
    """The machine code of a kernel for others to call by its address."""
    return _compiled(_dispatcher(function, False, _LateCompiler), arguments)


def compiled(function: Callable, allocates: bool, arguments: tuple) -> bytes:
    """The machine code of a kernel for arguments like these.

    Raises UnknownArgument where there is no way from Python's objects to its arguments and back,
    or where the code is of use in this process alone.
    """
    return _compiled(_dispatcher(function, allocates, _EntryCompiler), arguments)


def _compiled(kernel: Any, arguments: tuple) -> bytes:
    for context in (cpu_target.typing_context, cpu_target.target_context):
        context.refresh()
    kernel.compile(_types(arguments))
    (result,) = kernel.overloads.values()
    if result.library._dynamic_globals:
        raise UnknownArgument("a kernel with an address in it")
    return result.library.code().packed()


class _Two(NamedTuple):
    reals: Any
    rows: Any


def works() -> bool:
    """Whether an entry with parts and a late kernel, compiled now, does what it should."""
    if not layout_is_known():
        return False

    def halves(values: Any) -> Any:
        return values[: values.size // 2], values[values.size // 2 :]

    def largest(values: Any) -> Any:
        best = values[0]
        for x in values:
            best = max(best, x)
        return best

    def size_and(values: Any, more: Any) -> Any:
        return values.size + more

    def place(two: Any) -> Any:
        return two.reals[1] + two.rows[1, 2] + two.rows.shape[0]

    values = np.array([3.0, 4.0, 5.0, 9.0])
    two = _Two(values, np.arange(6).reshape(2, 3))
    size_and_late = caller("size_and", (values, 1))
    halves, largest, place = (part(each, False) for each in (halves, largest, place))

    def both(values: Any, more: Any, two: Any) -> Any:
        first, second = halves(values)
        last = largest(second) / (values[0] - values[0])
        return largest(first), last, more[0] + 1, size_and_late(values, 3), place(two)

    arguments = values, (2, True), two
    before = sys.getrefcount(values)
    linked, late = (
        link(compiled(both, False, arguments)),
        link(compiled_late(size_and, (values, 1))),
    )
    if linked is None or late is None:
        return False
    kernel = bind("both", linked.address, arguments)
    right = kernel(*arguments) == (4.0, np.inf, 3, NOT_THERE, 11.0)
    set_place(linked.places[LATE + "size_and"], late.address)
    right = right and all(kernel(*arguments) == (4.0, np.inf, 3, 7, 11.0) for _ in range(3))
    refused = (
        kernel(values[::2], (2, True), two) is kernel(values, (2.0, True), two) is NotImplemented
    )
    return right and refused and sys.getrefcount(values) == before
