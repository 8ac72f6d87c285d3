"""No file outside engine/ and simulation/ touches a private field of an object of another file."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "ptaskmodel"

# Rooms whose files know each other's insides.
ROOMS = {"engine", "simulation"}

# Names of other libraries: public whatever they look like, or without a public way to the same.
FOREIGN = {
    "_replace": "of NamedTuples, documented",
    "_asdict": "of NamedTuples, documented",
    "_exit": "of os, documented",
    "_fields": "of NamedTuples, documented",
    "_Element": "the only name of lxml's elements, for types",
    "_numba_type_": "how numba asks an object for its type, documented",
}
FOREIGN_IN = {
    "connect/simpy.py": {"_ok", "_value"},  # how SimPy's own events are made to succeed
    # the parts of numba's compiler and runtime that have no public door
    "kernels/entries.py": {"_getvalue"},
    "kernels/lowering.py": {
        "_finalized",
        "_final_module",
        "_insert",
        "_linking_libraries",
        "_nrt",
    },
}


def modules():
    return sorted(PACKAGE.rglob("*.py"))


def is_private(name: str) -> bool:
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def defined(tree: ast.AST) -> set[str]:
    """The private names that a file gives: to classes, their fields, functions and variables."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and of_own(node):
            names.add(node.attr)
    return {name for name in names if is_private(name)}


def of_own(node: ast.Attribute) -> bool:
    """Whether it is a field of the object or class whose method this is."""
    value = node.value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        return value.func.id == "super"
    return isinstance(value, ast.Name) and value.id in ("self", "cls")


def trespasses(path: str, tree: ast.AST, known: frozenset[str] = frozenset()) -> list[str]:
    """The private fields of objects of other files that a file touches, with their lines.

    known: private names that it may use besides its own.
    """
    allowed = defined(tree) | known | FOREIGN.keys() | FOREIGN_IN.get(path, set())
    found = [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and is_private(node.attr)
        and not of_own(node)
        and node.attr not in allowed
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "setattr"):
            name = ast.literal_eval(node.args[1]) if isinstance(node.args[1], ast.Constant) else ""
            if is_private(name) and name not in allowed and ast.unparse(node.args[0]) != "self":
                found.append(f"line {node.lineno}: {ast.unparse(node)}")
        if isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names if is_private(alias.name)]
            found += [f"line {node.lineno}: import {name}" for name in names]
    return found


def parsed(path: Path) -> ast.AST:
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def known_in(room: str) -> frozenset[str]:
    """The private names that files of a room may use of each other."""
    if room not in ROOMS:
        return frozenset()
    files = [path for one in sorted(ROOMS) for path in (PACKAGE / one).rglob("*.py")]
    return frozenset().union(*(defined(parsed(path)) for path in files))


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_file_touches_no_private_field_of_others(path):
    inside = path.relative_to(PACKAGE)
    assert not trespasses(inside.as_posix(), parsed(path), known_in(inside.parts[0]))


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("other._field", 1),
        ("other._field = 1", 1),
        ("from x import _name", 1),
        ('getattr(other, "_field")', 1),
        ("self._field = 1; other._field", 0),
        ("other.__class__", 0),
        ("super()._method()", 0),
        ("pair._replace(a=1)", 0),
    ],
)
def test_what_a_trespass_is(line, count):
    assert len(trespasses("x.py", ast.parse(line))) == count
