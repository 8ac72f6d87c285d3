"""Machine code of kernels, linked and called without numba: llvmlite links it, Python calls it.

Code of an entry is one function, `kernel_compiling.add_entry`, with the calling convention of
METH_FASTCALL in Python's C interface: (table, arguments, their number) -> result. It finds its
arguments in Python's objects by itself. The table, made by `bind`, has the addresses of the types
that it is to find there: where it finds others it returns NotImplemented, without having run.
"""

from __future__ import annotations

import ctypes
import functools
import json
import platform
import struct
import sys
import zlib
from typing import Any, NamedTuple

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from ptaskmodel import kernel_identity

# Where things are in CPython's objects and numpy's arrays, bytes (`layout_is_known` tries them).
HEAD = object.__basicsize__
TUPLE_ITEMS = tuple.__basicsize__
BYTES_DATA = bytes.__basicsize__ - 1
ARRAY_DATA, ARRAY_DIMENSIONS, ARRAY_SHAPE, ARRAY_STRIDES = HEAD, HEAD + 8, HEAD + 16, HEAD + 24
ARRAY_TYPE, ARRAY_FLAGS = HEAD + 40, HEAD + 48
C_ORDER, F_ORDER, ALIGNED, WRITEABLE = 0x1, 0x2, 0x100, 0x400

# The first words of each table; those of the arguments follow, in order.
COMMON = (
    NotImplemented, None, False, True, np.False_, np.True_, int, np.int64, float, np.float64,
    np.ndarray, RuntimeError,
)  # fmt: skip
REFUSED, NONE, FALSE, TRUE, FALSE_, TRUE_, INT, INT_, FLOAT, FLOAT_, ARRAY, ERROR = range(12)

METH_FASTCALL = 0x80
_CHECKSUM = 4
# Begins the names of the places in code for the address of a kernel that is compiled on its own.
LATE = "late:"
# What calling such a kernel returns where there is no address.
NOT_THERE = -(2**62)
# Kept for ever: machine code may be called as long as the process lives.
_ALIVE: list[Any] = []


class UnknownArgument(TypeError):
    """An argument that machine code cannot find its way in."""


class Code(NamedTuple):
    """The machine code of an entry.

    name: of its function. needs: names of the functions that it calls and does not have; those of
    the places for addresses of others begin with LATE.
    """

    name: str
    needs: tuple[str, ...]
    content: bytes

    def packed(self) -> bytes:
        """As the content of a file, with a checksum."""
        head = json.dumps([self.name, self.needs]).encode()
        data = struct.pack("<I", len(head)) + head + self.content
        return data + zlib.crc32(data).to_bytes(_CHECKSUM, "little")

    @classmethod
    def unpacked(cls, data: bytes) -> Code:
        """From the content of a file; ValueError if it is damaged."""
        if zlib.crc32(data[:-_CHECKSUM]).to_bytes(_CHECKSUM, "little") != data[-_CHECKSUM:]:
            raise ValueError("damaged")
        (size,) = struct.unpack_from("<I", data)
        name, needs = json.loads(data[4 : 4 + size])
        return cls(name, tuple(needs), data[4 + size : -_CHECKSUM])


class _Method(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("call", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


@functools.cache
def versions() -> str:
    """Of Python, of numpy and of what compiles kernels."""
    python = f"py{platform.python_version()}{sys.abiflags}"
    return f"{python}-numpy{np.__version__}-llvmlite{llvmlite.__version__}"


@functools.cache
def compiler() -> str:
    """What machine code is made by, as the name of a file."""
    return f"{kernel_identity.compiler()}-{versions()}"


@functools.cache
def processor() -> str:
    """What machine code is made by and for."""
    return f"{compiler()} {llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"


@functools.cache
def layout_is_known() -> bool:
    """Whether objects of this Python and this numpy lie as written above."""
    array = np.zeros((2, 3), dtype=np.int16)[::2]
    pair, number = (1, array), np.float64(1.5)  # alive while they are looked at
    at = id(array)

    def word(place: int) -> int:
        return ctypes.c_int64.from_address(place).value

    return (
        ctypes.sizeof(ctypes.c_void_p) == 8
        and HEAD == 16
        and word(at + ARRAY_DATA) == array.ctypes.data
        and ctypes.c_int32.from_address(at + ARRAY_DIMENSIONS).value == 2
        and [word(word(at + ARRAY_SHAPE) + 8 * k) for k in (0, 1)] == [1, 3]
        and [word(word(at + ARRAY_STRIDES) + 8 * k) for k in (0, 1)] == [12, 2]
        and word(at + ARRAY_TYPE) == id(array.dtype)
        and ctypes.c_int32.from_address(at + ARRAY_FLAGS).value == array.flags.num
        and word(id(pair) + TUPLE_ITEMS + 8) == id(array)
        and ctypes.string_at(id(b"data") + BYTES_DATA, 5) == b"data\0"
        and ctypes.c_double.from_address(id(number) + HEAD).value == 1.5
        and word(id(array) + HEAD - 8) == id(np.ndarray)
    )


def layout(argument: Any) -> str:
    """What code must be compiled for to take an argument; UnknownArgument if none can."""
    kind = type(argument)
    if kind is np.ndarray:
        flags = argument.flags
        order = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        if not flags.aligned or argument.dtype.hasobject:
            raise UnknownArgument("an array that is not aligned, or holds objects")
        return f"{argument.dtype!r}{argument.ndim}{order}{'w' if flags.writeable else 'r'}"
    if isinstance(argument, tuple):
        if len(argument) != len(getattr(kind, "_fields", argument)):
            raise UnknownArgument("a named tuple without all its fields")
        names = " ".join(getattr(kind, "_fields", ()))
        items = ", ".join(map(layout, argument))
        return f"{kind.__module__}.{kind.__qualname__}({names}: {items})"
    known = _SCALARS.get(kind)
    if known is None:
        raise UnknownArgument(f"a {kind.__qualname__}")
    return known


_SCALARS = {
    bool: "?", np.bool_: "?", int: "i8", np.int64: "i8", float: "f8", np.float64: "f8",
    type(None): "none",
}  # fmt: skip


def _expected(argument: Any) -> list[Any]:
    """The words of an argument in the table, first its own, then those of its items."""
    if isinstance(argument, np.ndarray):
        return [argument.dtype]
    if isinstance(argument, tuple):
        return [type(argument), *(word for item in argument for word in _expected(item))]
    return []


class Linked(NamedTuple):
    """Code in memory: the address of its function, and of its places for those of others, by name.

    As long as such a place holds 0, there is no such function.
    """

    address: int
    places: dict[str, int]


def link(content: bytes) -> Linked | None:
    """Packed code, linked; None if it is damaged or lacks something."""
    try:
        code = Code.unpacked(content)
    except (ValueError, struct.error):
        return None
    _prepare()
    late = [name for name in code.needs if name.startswith(LATE)]
    if not all(_find(name) for name in code.needs if name not in late):
        return None
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(opt=3, jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code.content))
    engine.finalize_object()
    _ALIVE.append(engine)
    address = engine.get_function_address(code.name)
    places = {name: engine.get_global_value_address(name) for name in late}
    return Linked(address, places) if address else None


def set_place(place: int, address: int) -> None:
    """Write an address in a place for one."""
    ctypes.c_size_t.from_address(place).value = address


def bind(name: str, address: int, arguments: tuple) -> Any:
    """A function for Python to call code with arguments that lie as these do."""
    words = [*COMMON, *(word for argument in arguments for word in _expected(argument))]
    table = struct.pack(f"{len(words)}q", *map(id, words))
    method = _Method(name.encode(), address, METH_FASTCALL, None)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.argtypes = [ctypes.POINTER(_Method), ctypes.py_object, ctypes.py_object]
    new.restype = ctypes.py_object
    _ALIVE.append(words)
    # The function reads its method when it is freed, which may be the last thing Python does.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(method))
    return new(ctypes.byref(method), table, None)


@functools.cache
def _prepare() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def _find(name: str) -> bool:
    """Whether a function that code needs is known to the linker, perhaps from now on."""
    if llvm.address_of_symbol(name):
        return True
    found: Any = None
    if name in _ALLOCATION:
        found = _ALLOCATION[name](functools.partial(_numba_runtime, name))
    else:  # of Python or of the mathematical library that it brings
        found = getattr(ctypes.pythonapi, name, None)
    if found is None:
        return False
    _ALIVE.append(found)
    llvm.add_symbol(name, ctypes.cast(found, ctypes.c_void_p).value)
    return True


# What kernels that allocate call, in numba's runtime: it is loaded when that happens.
_ALLOCATION: dict[str, Any] = {
    "NRT_MemInfo_alloc_aligned": ctypes.PYFUNCTYPE(
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32
    ),
    "NRT_MemInfo_alloc_safe_aligned": ctypes.PYFUNCTYPE(
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32
    ),
    "NRT_MemInfo_call_dtor": ctypes.PYFUNCTYPE(None, ctypes.c_void_p),
}


def _numba_runtime(name: str, *arguments: Any) -> Any:
    from numba.core import runtime as numba_runtime

    runtime: Any = numba_runtime
    address = runtime._nrt_python.c_helpers[name.removeprefix("NRT_")]
    return _ALLOCATION[name](address)(*arguments)
