"""Programs outside the package take names that the package has, those that no test runs too."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
OURS = "ptaskmodel"
PROGRAMS = sorted(
    path
    for folder in ("benchmarks", "docs", "experiments")
    for path in (ROOT / folder).rglob("*.py")
)


def taken(path: Path) -> Iterator[tuple[str, str]]:
    """The modules of ours that a program imports, and the names that it takes from them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == OURS:
                    yield alias.name, ""
                    modules[alias.asname or OURS] = alias.name if alias.asname else OURS
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == OURS:
            for alias in node.names:
                yield str(node.module), alias.name
                modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    bound = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    } | {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = node.value.id
            if name in modules and name not in bound and isinstance(node.ctx, ast.Load):
                yield modules[name], node.attr


def found(module: str, name: str) -> bool:
    """Whether a module exists and has a name, or is no module but something in one."""
    try:
        there = importlib.import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name is None or not missing.name.startswith(OURS):
            return True  # a library that is not installed here
        outer, _, last = module.rpartition(".")
        return not isinstance(
            getattr(importlib.import_module(outer), last, None), ModuleType | None
        )
    if not name or hasattr(there, name):
        return True
    try:
        importlib.import_module(f"{module}.{name}")
    except ModuleNotFoundError:
        return False
    return True


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_program_takes_names_that_exist(path):
    assert [each for each in dict.fromkeys(taken(path)) if not found(*each)] == []
