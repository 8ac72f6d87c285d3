"""Expand host names and their ranges: ``node-[0-2,5]`` is node-0, node-1, node-2, node-5."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

from ptaskmodel.errors import shown
from ptaskmodel.workload.formats.json import Fields

MAX_TOTAL_HOSTS = 10_000_000
MAX_NAMES = 1_000_000
LONGEST_NAME = 255  # of those that brackets stand for: few letters may stand for many

_PIECE = re.compile(r"([^\[\]]*)(?:\[([^\[\]]*)\])?")
_ITEM = re.compile(r"([0-9]{1,15})(?:-([0-9]{1,15}))?")


def expand(expression: str) -> tuple[str, ...]:
    """The names that an expression stands for, in the order written.

    Each ``[...]`` holds numbers and ranges ``first-last`` (last included) separated by commas.
    Numbers keep their leading zeros: ``[00-15]`` is 00, 01, ... 15. Several brackets are combined,
    the last one varying fastest.

    Raises ValueError with the reason (it begins with the verb, without the expression).
    """
    if not expression.isprintable() or not expression.strip():
        raise ValueError("is not a printable name")
    if "[" not in expression and "]" not in expression:
        return (expression,)
    parts: list[list[str]] = []
    position = 0
    while position < len(expression):
        piece = _PIECE.match(expression, position)
        if piece is None or piece.end() == position:
            raise ValueError("has brackets that do not match; write node-[0-15]")
        parts.append([piece[1]])
        if piece[2] is not None:
            parts.append(_numbers(piece[2]))
        position = piece.end()
    if math.prod(len(part) for part in parts) > MAX_NAMES:
        raise ValueError(f"stands for more than {MAX_NAMES} hosts")
    if sum(max(map(len, part)) for part in parts) > LONGEST_NAME:
        raise ValueError(f"stands for names of more than {LONGEST_NAME} characters")
    return tuple(map("".join, itertools.product(*parts)))


def _numbers(content: str) -> list[str]:
    """The numbers in a bracket, as written."""
    numbers: list[str] = []
    for item in content.split(","):
        match = _ITEM.fullmatch(item)
        if match is None:
            raise ValueError(f"has '{item}' in a bracket; write a number or a range such as 0-15")
        first, last = match[1], match[2] or match[1]
        if int(first) > int(last):
            raise ValueError(f"has the range {item}, which goes down; write {last}-{first}")
        padded = len(first) > 1 and first[0] == "0"
        if (padded or last[0] == "0") and len(first) != len(last):
            raise ValueError(f"has the range {item}; give both ends the same number of digits")
        if int(last) - int(first) >= MAX_NAMES - len(numbers):
            raise ValueError(f"stands for more than {MAX_NAMES} hosts")
        width = len(first) if padded else 0
        numbers += [f"{k:0{width}d}" for k in range(int(first), int(last) + 1)]
    return numbers


class HostLists:
    """Reads the lists of hosts of one file: equal lists are one tuple, equal names one string.

    fields: the checks of the file.
    """

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self._known: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._count = 0
        self._names: dict[str, str] = {}

    @property
    def are_too_many(self) -> bool:
        """Whether the lists have more hosts than a file may have."""
        return self._count > MAX_TOTAL_HOSTS

    def read(self, value: Any, pointer: str) -> tuple[str, ...]:
        """The names and ranges of a list, ``value`` at the JSON ``pointer``, expanded."""
        fields = self._fields
        if type(value) is not list:
            hint = f"; write [{shown(value)}]" if type(value) is str else "; give a list of names"
            fields.fail(pointer, f"is {shown(value)}{hint}")
        for k, name in enumerate(value if set(map(type, value)) - {str} else ()):
            if type(name) is not str:
                fields.fail(f"{pointer}/{k}", f"is {shown(name)}; give the name of a host")
        key = tuple(value)
        if key not in self._known:
            known = tuple(filter(None, map(self._names.get, key)))
            if len(known) == len(key) and self._count + len(known) <= MAX_TOTAL_HOSTS:
                self._count += len(known)
                return self._known.setdefault(key, known)
            names: list[str] = []
            for k, expression in enumerate(key):
                try:
                    names += expand(expression)
                except ValueError as error:
                    fields.fail(f"{pointer}/{k}", f"{shown(expression)} {error}")
                if self._count + len(names) > MAX_TOTAL_HOSTS:
                    self._count += len(names)
                    problem = (
                        f"the host lists of this file contain more than {MAX_TOTAL_HOSTS} hosts"
                    )
                    fields.fail(f"{pointer}/{k}", f"{problem}; give fewer")
            self._count += len(names)
            self._known[key] = tuple(self._names.setdefault(name, name) for name in names)
        return self._known[key]
