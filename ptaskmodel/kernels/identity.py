"""Compute a kernel's identity: a digest of everything that determines its machine code.

The digest covers its instructions, the constants and kernels that they name, and recursively
theirs. Late kernels, which have machine code of their own, count by name and kind of arguments. So
a kernel is compiled again only when something in it changes. Comments, docstrings, other functions
of its file and the location of the package do not matter.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np


class UnknownConstant(TypeError):
    """A kernel names what its machine code may depend on in unknown ways."""


def identity(function: Callable) -> str:
    """The digest of a kernel, a plain function here.

    Raises UnknownConstant if it names anything but kernels, numbers, types and modules.
    """
    met = {function: 0}
    waiting = [function]
    digest = hashlib.sha256()
    while waiting:
        facts, named = _facts(waiting.pop())
        digest.update(facts)
        for each in named:
            if each not in met:
                met[each] = len(met)
                waiting.append(each)
            digest.update(b"%d," % met[each])
    return digest.hexdigest()[:16]


@functools.lru_cache(maxsize=4096)
def _facts(function: Any) -> tuple[bytes, tuple[Callable, ...]]:
    """What a function alone says, and the kernels that it names."""
    if not isinstance(function, FunctionType):
        raise UnknownConstant(repr(function))
    code = function.__code__
    named: list[Callable] = []
    facts = [repr(tuple(_written(code))), repr(function.__defaults__)]
    names = sorted({name for part in _parts(code) for name in part.co_names})
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    values = [(name, function.__globals__[name]) for name in names if name in function.__globals__]
    for name, value in [*values, *((name, cell.cell_contents) for name, cell in cells)]:
        inner = getattr(value, "py_func", None)
        if getattr(value, "is_late", False):
            facts.append(f"{name} late {value.name} {value.kind}")
        elif inner is not None:
            named.append(inner)
            facts.append(f"{name} {type(value).__name__} {getattr(value, 'allocates', None)}")
        else:
            facts.append(f"{name} {_constant(value)}")
    return "\n".join(facts).encode(), tuple(named)


def _parts(code: CodeType) -> Iterator[CodeType]:
    """A code object and those of the functions within."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _parts(constant)


def _written(code: CodeType) -> Iterator[Any]:
    """What code says, but for where it stands."""
    for part in _parts(code):
        yield part.co_code
        yield part.co_names, part.co_varnames, part.co_freevars, part.co_cellvars
        yield part.co_argcount, part.co_posonlyargcount, part.co_kwonlyargcount, part.co_flags
        # The first constant of a function is its docstring, or None.
        constants = part.co_consts if part.co_name == "<lambda>" else (None, *part.co_consts[1:])
        yield [None if isinstance(each, CodeType) else each for each in constants]


def _constant(value: Any) -> str:
    """A constant as text that tells it from any other."""
    if isinstance(value, (bool, int, float, str, type(None), np.generic)):
        return f"{type(value).__name__} {value!r}"
    if type(value) is tuple:
        return f"({', '.join(map(_constant, value))})"
    if isinstance(value, ModuleType) and not value.__name__.startswith("ptaskmodel"):
        return f"module {value.__name__}"
    if isinstance(value, type):
        fields = getattr(value, "_fields", ()), getattr(value.__new__, "__defaults__", None)
        return f"{value.__module__}.{value.__qualname__} {fields}"
    raise UnknownConstant(repr(value))
