"""Arrays of records that kernels read and write: types of fields, allocation, growth.

Every package with kernels makes its state of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from ptaskmodel.kernels.decorators import INTERPRETED

INT, REAL, FLAG = "i8", "f8", "?"
SMALL_INT = "i4"  # of what no kernel is given as an argument
TINY_INT = "i1"
CACHE_LINE = 64  # bytes
LARGE_BYTES = 1 << 19  # of arrays that grow fast
# In place of an index: none.
NOTHING = np.int64(-1)


def number_in(array: str, kind: str = INT, least: int = -1) -> np.dtype:
    """The type of a field that is a number in an array; from ``least``, where below 0 is none."""
    return np.dtype(kind, metadata={"of": array, "least": least, "last": -1})


def count_in(array: str, kind: str = INT) -> np.dtype:
    """The type of a field that counts places of an array."""
    return np.dtype(kind, metadata={"of": array, "least": 0, "last": 0})


def below(bound: int, kind: str = INT) -> np.dtype:
    """The type of a field that is one of the numbers from 0 on, below a bound."""
    return np.dtype(kind, metadata={"least": 0, "last": bound - 1})


def numbers(*bounds: int) -> list[int]:
    """The integers of ``range(*bounds)``, as numpy integers."""
    return cast("list[int]", list(np.arange(*bounds)))


def in_lines(fields: Any, also: Mapping[str, str] | None = None) -> np.dtype:
    """Records of these fields, as numpy takes them, each from the start of a cache line on.

    also: further names of fields, each with that of the field in whose place it stands.
    """
    plain: Any = np.dtype(fields, align=True)
    lines = -(-plain.itemsize // CACHE_LINE)
    places = {name: name for name in plain.names} | dict(also or {})
    padded: Any = {
        "names": list(places),
        "formats": [plain[place] for place in places.values()],
        "offsets": [plain.fields[place][1] for place in places.values()],
        "itemsize": lines * CACHE_LINE,
    }
    return np.dtype(padded, align=True)


def records(size: int, dtype: np.dtype) -> np.ndarray:
    """Zeroed records from the start of a cache line on."""
    return _in_lines(np.zeros(size * dtype.itemsize + CACHE_LINE, dtype=np.uint8), size, dtype)


def blank_records(size: int, dtype: np.dtype) -> np.ndarray:
    """The same, holding anything: for what is written before it is read."""
    return _in_lines(np.empty(size * dtype.itemsize + CACHE_LINE, dtype=np.uint8), size, dtype)


def _in_lines(room: np.ndarray, size: int, dtype: np.dtype) -> np.ndarray:
    first = -room.ctypes.data % CACHE_LINE
    return as_records(room[first : first + size * dtype.itemsize].view(dtype))


def as_records(array: np.ndarray) -> np.ndarray:
    """The array; interpreted, kernels can only read the fields of recarrays."""
    return array.view(np.recarray) if INTERPRETED else array


def enlarged(array: np.ndarray, size: int, *, blank: bool = False) -> np.ndarray:
    """``array`` with room for at least ``size``, at least twice as large as before.

    What is large grows faster: copies of it cost, room that is never touched does not.
    blank: what is new is written before it is read; it need not be cleared.
    """
    if len(array) >= size:
        return array
    growth = 4 if array.nbytes >= LARGE_BYTES else 2
    larger = (blank_records if blank else records)(max(size, growth * len(array)), array.dtype)
    whole(larger)[: len(array)] = whole(array)
    return larger


def whole(array: np.ndarray) -> np.ndarray:
    """A view of records without their fields: numpy copies those one by one, these at once."""
    return array.view(np.ndarray).view(f"V{array.dtype.itemsize}")


def as_kernels_take_it(array: np.ndarray) -> np.ndarray:
    """The array, its records from the start of a cache line on."""
    if array.dtype.names is None:
        return array
    kept = records(len(array), array.dtype)
    kept[:] = array
    return kept
