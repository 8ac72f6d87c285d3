"""Generate the function that Python calls for an exported kernel: it unpacks Python's objects.

`layout` says where values are in these objects, and what the table is.
"""

from __future__ import annotations

import functools
from typing import Any

from llvmlite import ir
from numba.core import cgutils as numba_cgutils
from numba.core import types as numba_types

from ptaskmodel.kernels.layout import (
    ALIGNED,
    ARRAY,
    ARRAY_DATA,
    ARRAY_DIMENSIONS,
    ARRAY_FLAGS,
    ARRAY_SHAPE,
    ARRAY_STRIDES,
    ARRAY_TYPE,
    BYTES_DATA,
    C_ORDER,
    COMMON,
    ERROR,
    F_ORDER,
    FALSE,
    FALSE_,
    FLOAT,
    FLOAT_,
    HEAD,
    INT,
    INT_,
    NONE,
    REFUSED,
    TRUE,
    TRUE_,
    TUPLE_ITEMS,
    WRITEABLE,
    UnknownArgument,
)  # fmt: skip

# Typed in part only.
cgutils: Any = numba_cgutils
types: Any = numba_types

WORD, INT32, BIT, DOUBLE = ir.IntType(64), ir.IntType(32), ir.IntType(1), ir.DoubleType()
POINTER = ir.IntType(8).as_pointer()
NULL = ir.Constant(POINTER, None)


def add_entry(context: Any, library: Any, kernel: Any, name: str) -> None:
    """Add to a library the function by which Python calls its kernel (numba's descriptor of it).

    Raises UnknownArgument for arguments or results that have no place in it.
    """
    module = context.create_module("entry")
    inner = ir.Function(
        module,
        context.call_conv.get_function_type(kernel.restype, kernel.argtypes),
        kernel.llvm_func_name,
    )
    kind = ir.FunctionType(POINTER, [POINTER, POINTER.as_pointer(), WORD])
    function = ir.Function(module, kind, name)
    table, arguments, count = function.args
    builder = ir.IRBuilder(function.append_basic_block())
    writer = _Writer(context, builder, table)
    writer.check(builder.icmp_signed("==", count, WORD(len(kernel.argtypes))))
    values = [
        writer.value(each, builder.load(builder.gep(arguments, [WORD(k)])))
        for k, each in enumerate(kernel.argtypes)
    ]
    status, result = context.call_conv.call_function(
        builder, inner, kernel.restype, kernel.argtypes, values
    )
    with builder.if_then(status.is_error, likely=False):
        writer.call("PyErr_SetNone", ir.VoidType(), writer.object(ERROR))
        builder.ret(NULL)
    builder.ret(writer.boxed(kernel.restype, result))
    library.add_ir_module(module)


class _Writer:
    """Writes the instructions that find arguments in Python's objects, and make objects."""

    def __init__(self, context: Any, builder: Any, table: Any) -> None:
        self.context = context
        self.builder = builder
        self.words = builder.bitcast(self.at(table, BYTES_DATA), WORD.as_pointer())
        self.used = len(COMMON)
        self.refused = builder.append_basic_block("refused")
        with builder.goto_block(self.refused):
            builder.ret(self.taken(self.object(REFUSED)))

    def at(self, pointer: Any, offset: int) -> Any:
        return self.builder.gep(pointer, [WORD(offset)])

    def read(self, pointer: Any, offset: int, kind: Any = WORD) -> Any:
        return self.builder.load(self.builder.bitcast(self.at(pointer, offset), kind.as_pointer()))

    def word(self, number: int) -> Any:
        return self.builder.load(self.builder.gep(self.words, [WORD(number)]))

    def object(self, number: int) -> Any:
        return self.builder.inttoptr(self.word(number), POINTER)

    def next_word(self) -> int:
        self.used += 1
        return self.used - 1

    def call(self, name: str, result: Any, *arguments: Any) -> Any:
        """Call a function of Python's C interface."""
        kind = ir.FunctionType(result, [each.type for each in arguments])
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(function, arguments)

    def taken(self, pointer: Any) -> Any:
        """An object with one more reference to it."""
        self.call("Py_IncRef", ir.VoidType(), pointer)
        return pointer

    def check(self, *alternatives: Any) -> None:
        """Go on if one of these holds, else refuse the arguments."""
        holds = functools.reduce(self.builder.or_, alternatives)
        unrefused = self.builder.append_basic_block()
        self.builder.cbranch(holds, unrefused, self.refused)
        self.builder.position_at_end(unrefused)

    def same(self, value: Any, *numbers: int) -> list:
        """Whether a word is that of the table, for each of these."""
        return [self.builder.icmp_signed("==", value, self.word(number)) for number in numbers]

    # Arguments.

    def value(self, kind: Any, pointer: Any) -> Any:
        """The argument of a type that numba knows, in the object at an address."""
        builder = self.builder
        address, its_type = builder.ptrtoint(pointer, WORD), self.read(pointer, HEAD - 8)
        if isinstance(kind, types.BaseTuple):
            return self.context.make_tuple(builder, kind, self.items(kind, pointer, its_type))
        if isinstance(kind, types.Array):
            return self.array(kind, pointer, its_type)
        if isinstance(kind, types.Boolean):
            true = functools.reduce(builder.or_, self.same(address, TRUE, TRUE_))
            self.check(true, *self.same(address, FALSE, FALSE_))
            return true
        if kind == types.int64:
            self.check(*self.same(its_type, INT, INT_))
            value = self.call("PyLong_AsLongLong", WORD, pointer)
            with builder.if_then(builder.icmp_signed("==", value, WORD(-1)), likely=False):
                failed = self.call("PyErr_Occurred", POINTER)
                with builder.if_then(builder.icmp_unsigned("!=", failed, NULL), likely=False):
                    builder.ret(NULL)
            return value
        if kind == types.float64:
            self.check(*self.same(its_type, FLOAT, FLOAT_))
            return self.read(pointer, HEAD, DOUBLE)
        if isinstance(kind, types.NoneType):
            self.check(*self.same(address, NONE))
            return self.context.get_dummy_value()
        raise UnknownArgument(str(kind))

    def items(self, kind: Any, pointer: Any, its_type: Any) -> list:
        self.check(*self.same(its_type, self.next_word()))
        count = self.read(pointer, HEAD)
        self.check(self.builder.icmp_signed("==", count, WORD(len(kind.types))))
        return [
            self.value(each, self.read(pointer, TUPLE_ITEMS + 8 * k, POINTER))
            for k, each in enumerate(kind.types)
        ]

    def array(self, kind: Any, pointer: Any, its_type: Any) -> Any:
        builder, context = self.builder, self.context
        self.check(*self.same(its_type, ARRAY))
        self.check(*self.same(self.read(pointer, ARRAY_TYPE), self.next_word()))
        dimensions = self.read(pointer, ARRAY_DIMENSIONS, INT32)
        self.check(builder.icmp_signed("==", dimensions, INT32(kind.ndim)))
        order = {"C": C_ORDER, "F": F_ORDER, "A": 0}[kind.layout]
        wanted = order | ALIGNED | (WRITEABLE if kind.mutable else 0)
        flags = builder.and_(self.read(pointer, ARRAY_FLAGS, INT32), INT32(wanted))
        self.check(builder.icmp_signed("==", flags, INT32(wanted)))
        lengths, steps = (
            [
                self.read(self.read(pointer, place, POINTER), 8 * k)
                for k in range(kind.ndim)
            ]
            for place in (ARRAY_SHAPE, ARRAY_STRIDES)
        )  # fmt: skip
        array = context.make_array(kind)(context, builder)
        array.meminfo = array.meminfo.type(None)
        array.parent = array.parent.type(None)
        array.nitems = functools.reduce(builder.mul, lengths, WORD(1))
        array.itemsize = WORD(context.get_abi_sizeof(context.get_data_type(kind.dtype)))
        array.data = self.builder.bitcast(self.read(pointer, ARRAY_DATA, POINTER), array.data.type)
        array.shape = cgutils.pack_array(builder, lengths, WORD)
        array.strides = cgutils.pack_array(builder, steps, WORD)
        return array._getvalue()

    # Results.

    def boxed(self, kind: Any, value: Any) -> Any:
        """An object for what a kernel returns."""
        builder = self.builder
        if isinstance(kind, types.Boolean):
            bit = builder.trunc(value, BIT) if value.type != BIT else value
            return self.taken(builder.select(bit, self.object(TRUE), self.object(FALSE)))
        if isinstance(kind, types.Integer):
            wide = value
            if kind.bitwidth < WORD.width:
                wide = (builder.sext if kind.signed else builder.zext)(value, WORD)
            return self.call(
                f"PyLong_From{'' if kind.signed else 'Unsigned'}LongLong", POINTER, wide
            )
        if kind == types.float64:
            return self.call("PyFloat_FromDouble", POINTER, value)
        if isinstance(kind, types.NoneType):
            return self.taken(self.object(NONE))
        if isinstance(kind, (types.Tuple, types.UniTuple)):
            made = self.call("PyTuple_New", POINTER, WORD(len(kind.types)))
            for k, each in enumerate(kind.types):
                item = self.boxed(each, builder.extract_value(value, k))
                self.call("PyTuple_SetItem", INT32, made, WORD(k), item)
            return made
        raise UnknownArgument(f"a kernel that returns {kind}")
