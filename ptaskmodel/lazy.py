"""Load things on first use: the public names of a package, and the elements of a sequence.

A package has one table of modules and the names that they provide. `face` makes ``__all__``,
``__getattr__`` and ``__dir__`` (PEP 562) from it. Type checkers and editors read the same from the
package's ``__init__.pyi``, which ``python tests/stubs.py`` writes.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, overload

Table = Mapping[str, Sequence[str]]

T = TypeVar("T")


def face(
    package: str, table: Table, *others: str
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """(``__all__``, ``__getattr__``, ``__dir__``) of a package whose names are in a table.

    table: names by module. others: names that the package defines itself.
    """
    homes = {name: module for module, names in table.items() for name in names}
    names = sorted([*homes, *others])

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return names, get, lambda: list(names)


class OnDemand(Sequence[T]):
    """A sequence of known length; ``make`` makes all of it, once."""

    __slots__ = ("_length", "_made", "_make")

    def __init__(self, length: int, make: Callable[[], Sequence[T]]) -> None:
        self._length = length
        self._make: Callable[[], Sequence[T]] | None = make
        self._made: Sequence[T] = ()

    def _all(self) -> Sequence[T]:
        if self._make is not None:
            self._made, self._make = self._make(), None
        return self._made

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        return iter(self._all())

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._all()[index]
