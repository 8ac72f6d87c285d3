"""Where machine code finds its arguments in Python's objects, and how Python calls it.

The code of an exported kernel is one function (`entries.add_entry`) with the calling convention of
METH_FASTCALL in Python's C interface: (table, arguments, their number) -> result. The function
reads its arguments from Python's objects itself. `bind` makes the table, which has the addresses of
the expected types. For other types the function returns NotImplemented and does nothing.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from typing import Any

import numpy as np

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
# Kept for ever: machine code may be called as long as the process lives.
_ALIVE: list[Any] = []


class UnknownArgument(TypeError):
    """An argument that machine code cannot find its way in."""


class _Method(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("call", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


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
    """The kind of an argument that machine code is made for; UnknownArgument if there is none.

    Whether an array may be written is not part of it: code that only reads takes both.
    """
    kind = type(argument)
    if kind is np.ndarray:
        flags = argument.flags
        order = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        if not flags.aligned or argument.dtype.hasobject:
            raise UnknownArgument("an array that is not aligned, or holds objects")
        return f"{argument.dtype!r}{argument.ndim}{order}"
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


def kind_of(arguments: tuple) -> str:
    """The kind of all arguments of a call."""
    return ", ".join(map(layout, arguments))


def _expected(argument: Any) -> list[Any]:
    """The words of an argument in the table, first its own, then those of its items."""
    if isinstance(argument, np.ndarray):
        return [argument.dtype]
    if isinstance(argument, tuple):
        return [type(argument), *(word for item in argument for word in _expected(item))]
    return []


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
