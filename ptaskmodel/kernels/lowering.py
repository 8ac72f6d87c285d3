"""Type and lower kernels with numba's internals when the package is built.

A kernel that other kernels call is compiled into them: it is typed and lowered once, and optimised
within the exported and late kernels, which have machine code of their own. Nothing used here is
public in numba. A new version of numba may break a build, but never an installed package.
"""

from __future__ import annotations

import functools
import hashlib
import platform
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numba
from llvmlite import binding as llvm_binding
from llvmlite import ir
from numba.core import cgutils as numba_cgutils
from numba.core import codegen, itanium_mangler
from numba.core import types as numba_types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.registry import cpu_target
from numba.core.typed_passes import NativeLowering
from numba.extending import intrinsic

from ptaskmodel.kernels.entries import WORD, add_entry
from ptaskmodel.kernels.module import SYMBOL

# Typed in part only.
cgutils: Any = numba_cgutils
types: Any = numba_types
llvm: Any = llvm_binding

OPTIONS: dict[str, Any] = {"error_model": "numpy"}
# The function of a module that is to be called from outside.
NAME = "ptaskmodel_entry"
# By machine, the levels of processors, the lowest first: their names here and in LLVM.
X86 = {"v2": "x86-64-v2", "v3": "x86-64-v3"}
LEVELS = {"x86_64": X86, "AMD64": X86}.get(platform.machine(), {"v0": "generic"})
OF_V3 = ("avx2", "bmi", "bmi2", "fma")


def _short(name: str, kinds: Any, *, abi_tags: Any = (), uid: Any = None) -> str:
    """The name of a function: with all types written out, modules would be names for the most."""
    digest = hashlib.sha256(repr((kinds, abi_tags, uid)).encode()).hexdigest()[:16]
    return str(itanium_mangler.mangle(f"{name}.{digest}", ()))


cpu_target.target_context.mangler = _short


class _EntryLibrary(codegen.JITCodeLibrary):
    """The code of an entry with all its parts, not yet optimised."""

    def finalize(self) -> None:
        """Link the parts of parts, too."""
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

    def _optimize_functions(self, ll_module: Any) -> None:
        """Leave that to who makes machine code."""

    def _optimize_final_module(self) -> None:
        """Let nobody outside call the parts, and no more.

        Then calls hand over what is read, not every word: a state of many arrays is hundreds.
        """
        for function in self._final_module.functions:
            if not function.is_declaration and function.name != NAME:
                function.linkage = "internal"
        for variable in self._final_module.global_variables:
            if variable.linkage == llvm.Linkage.common:  # what numba itself would fill
                variable.linkage = "internal"

    def _finalize_final_module(self) -> None:
        self._finalized = True

    @property
    def module(self) -> Any:
        return self._final_module


class _PartLibrary(codegen.JITCodeLibrary):
    """The code of a kernel that only ever becomes machine code as a part of others.

    It holds nothing of its own parts: who makes machine code links all of them, once.
    """

    def _optimize_functions(self, ll_module: Any) -> None:
        """Leave that to who makes machine code."""

    def finalize(self) -> None:
        """Have it ready to be linked, as it is."""
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

    _name: Any = "ptaskmodel_part_lowering"
    library = _PartLibrary

    def run_pass(self, state: Any) -> bool:
        super().run_pass(state)
        lowered = state["cr"]
        state.targetctx.insert_user_function(lowered.cfunc, lowered.fndesc, [state.library])
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _EntryLowering(_Lowering):
    """Lowers a kernel into an `_EntryLibrary`, with a function for Python to call."""

    _name: Any = "ptaskmodel_entry_lowering"
    library = _EntryLibrary

    def run_pass(self, state: Any) -> bool:
        super().run_pass(state)
        add_entry(state.targetctx, state.library, state["cr"].fndesc, NAME)
        state.library.finalize()
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _LateLowering(_Lowering):
    """Lowers a kernel into an `_EntryLibrary`, with a function for other kernels to call."""

    _name: Any = "ptaskmodel_late_lowering"
    library = _EntryLibrary

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


class _Compiler(CompilerBase):
    """Numba's own passes, with a lowering of ours."""

    lowering: Any

    def define_pipelines(self) -> list:
        usual = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline = PassManager(usual.pipeline_name)
        for one, about in usual.passes:
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


def part(function: Callable, allocates: bool) -> Any:
    """What numba is to know a kernel by that becomes a part of those that call it."""
    return _dispatcher(function, allocates, _PartCompiler)


def caller(name: str, symbol: str, arguments: tuple) -> Any:
    """What numba is to know a late kernel by, with arguments like these: it calls its symbol."""
    expected = tuple(map(numba.typeof, arguments))

    def typed(given: tuple) -> tuple:
        if tuple(map(types.unliteral, given)) != expected:
            raise TypeError(f"{name} is for other arguments than {given}")

        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            packer = context.get_arg_packer(signature.args)
            kind = ir.FunctionType(WORD, packer.argument_types)
            function = cgutils.get_or_insert_function(builder.module, kind, symbol)
            return builder.call(function, packer.as_arguments(builder, values))

        return types.int64(*expected), code

    names = ", ".join(f"a{k}" for k in range(len(arguments)))
    scope: dict[str, Any] = {"typed": typed}
    exec(f"def call(context, {names}): return typed(({names},))", scope)
    scope["call"] = intrinsic(scope["call"])
    exec(f"def stub({names}): return call({names})", scope)
    cpu_target.typing_context.refresh()  # to know this one
    return part(scope["stub"], False)


def _module_of(function: Callable, allocates: bool, is_late: bool, arguments: tuple) -> Any:
    """The module of a kernel for arguments like these, for LLVM to optimise."""
    kernel = _dispatcher(function, allocates, _LateCompiler if is_late else _EntryCompiler)
    for context in (cpu_target.typing_context, cpu_target.target_context):
        context.refresh()
    kernel.compile(tuple(map(numba.typeof, arguments)))
    (result,) = kernel.overloads.values()
    return result.library.module


# Machine code.


@functools.cache
def _machine(level: str) -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=LEVELS[level], features="", opt=3, reloc="pic", codemodel="default"
    )


def own_level() -> str:
    """The highest level of this processor."""
    features = llvm.get_host_cpu_features()
    known = [level for level in LEVELS if level != "v3" or all(map(features.get, OF_V3))]
    return known[-1]


def compiled(
    function: Callable, allocates: bool, is_late: bool, arguments: tuple,
    symbol: str, levels: Iterable[str],
) -> Iterator[tuple[str, bytes]]:  # fmt: skip
    """The object of a kernel for arguments like these, whose function has a name, by level.

    Nothing is contracted nor summed in another order: bits are equal at all levels.
    """
    content = _module_of(function, allocates, is_late, arguments).as_bitcode()
    for level in levels:
        machine = _machine(level)
        module = llvm.parse_bitcode(content)
        module.data_layout, module.triple = str(machine.target_data), machine.triple
        for each in module.functions:
            if each.name == NAME:
                each.name = f"{symbol}_{level}"
            elif each.name.startswith(SYMBOL):
                each.name = f"{each.name}_{level}"
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization, options.slp_vectorization = True, False
        # Half as much machine code again, which only loops over numbers gain by: those that solve.
        options.loop_unrolling = is_late
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
        if any(each.name.startswith("numba.dynamic.globals") for each in module.global_variables):
            raise TypeError(f"{function.__qualname__} holds an address of this process")
        yield level, machine.emit_object(module)
