"""Faces of packages: public names that are loaded from their modules on first use (PEP 562).

A package has one table of modules and the names that they give; `face` makes ``__all__``,
``__getattr__`` and ``__dir__`` of it. Type checkers and editors read the same from the package's
``__init__.pyi``, which ``python tests/stubs.py`` writes.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Table = Mapping[str, Sequence[str]]


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
