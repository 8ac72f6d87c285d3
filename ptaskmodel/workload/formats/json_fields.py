"""Checks of the fields of a JSON document, each failing with the JSON pointer and a remedy."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import chain, islice
from typing import Any, NoReturn

import numpy as np

from ptaskmodel.errors import SHOWN, WorkloadError, shown
from ptaskmodel.workload.amounts import FieldError, FloatArray
from ptaskmodel.workload.formats.json_document import token

_NUMBERS = {int, float}


class Fields:
    """The checks, for one file."""

    def __init__(self, name: str) -> None:
        self._name = name

    def fail(self, pointer: str, problem: str) -> NoReturn:
        """Raise the WorkloadError of a place in the file."""
        raise WorkloadError(f"{self.place(pointer)}: {problem}")

    def place(self, pointer: str) -> str:
        """A place in the file, for a message."""
        return f"{self._name}: {pointer or 'top level'}"

    def fail_in(self, pointer: str, error: FieldError, names: dict[str, str]) -> NoReturn:
        """Raise a FieldError again, its field being ``names[field]`` below ``pointer``."""
        field = names.get(error.field, error.field)
        self.fail("/".join([pointer, field, *map(str, error.place)]), error.problem)

    def object_of(self, value: Any, pointer: str, fields: Collection[str], what: str) -> None:
        """``value`` is an object with no other fields than these."""
        if type(value) is not dict:
            self.fail(pointer, f"is {shown(value)}; give an object ({what})")
        if not value.keys() <= set(fields):
            key = next(key for key in value if key not in fields)
            close = close_match(key, fields)
            hint = f"did you mean {close!r}?" if close else f"it may have {', '.join(fields)}"
            self.fail(f"{pointer}/{token(key)[:100]}", f"is not a field of {what}; {hint}")

    def text(self, value: Any, pointer: str, what: str) -> str:
        """A non-empty printable string."""
        if type(value) is not str:
            self.fail(pointer, f"is {shown(value)}; give {what}")
        if not value or not value.isprintable():
            self.fail(pointer, f"is {shown(value)}; give {what}, not empty and printable")
        return value

    def number(self, value: Any, pointer: str) -> int | float:
        """A JSON number (its size is checked where its meaning is known)."""
        if type(value) not in _NUMBERS:
            self.fail(pointer, f"is {shown(value)}; give a number")
        return value

    def whole(self, value: Any, pointer: str) -> int:
        """A whole number from 0; 2.0 is one, as in JSON Schema."""
        if type(value) is float and value.is_integer():
            value = int(value)
        if type(value) is not int or not 0 <= value < 2**63:
            self.fail(pointer, f"is {shown(value)}; give a whole number")
        return value

    def numbers(self, value: list | FloatArray, pointer: str) -> FloatArray:
        """A list of numbers, or of lists of numbers of the same length, as an array."""
        if isinstance(value, np.ndarray):
            return value
        nested = bool(value) and all(type(row) is list for row in value)
        if nested:
            self._check_lengths(value, pointer)
        flat = list(chain.from_iterable(value)) if nested else value
        try:
            if not set(map(type, flat)) <= _NUMBERS:
                raise TypeError
            array = np.array(flat, dtype=np.float64)
        except (TypeError, OverflowError):
            place, problem = _first_bad(flat)
            where = divmod(place, len(value[0])) if nested else (place,)
            self.fail("/".join([pointer, *map(str, where)]), problem)
        return array.reshape(len(value), -1) if nested else array

    def _check_lengths(self, rows: list[list], pointer: str) -> None:
        if len(set(map(len, rows))) > 1 or not rows[0]:
            k = next((k for k, row in enumerate(rows) if len(row) != len(rows[0])), 0)
            problem = f"has {len(rows[k])} values, the first row {len(rows[0])}; give equal rows"
            self.fail(f"{pointer}/{k}", problem if k else "is empty; give numbers")


def close_match(name: str, known: Iterable[str]) -> str | None:
    """The known name closest to a misspelt one (not looked for very far), None if none is."""
    import difflib

    close = difflib.get_close_matches(name[:SHOWN], list(islice(known, 10_000)), 1)
    return close[0] if close else None


def _first_bad(values: Iterable[Any]) -> tuple[int, str]:
    """Place of the first value that is not a number or too large for one, and what is wrong."""
    for place, value in enumerate(values):
        if type(value) not in _NUMBERS:
            return place, f"is {shown(value)}; give a number"
        try:
            float(value)
        except OverflowError:
            return place, f"is {shown(value)}; give a smaller number"
    raise AssertionError("every value is a number")
