"""Load Python files of the user, and find the files that belong to them."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def sources(path: Path) -> list[Path]:
    """Return the Python file at `path` and the files beside it that it imports, also indirectly.

    Their order is arbitrary. Raises SyntaxError or ValueError for what is not Python.
    """
    found, waiting = {path: None}, [path]
    while waiting:
        one = waiting.pop()
        names = {
            name
            for node in ast.walk(ast.parse(one.read_bytes(), str(one)))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in _imported(node, one.relative_to(path.parent))
        }
        beside = [file for name in sorted(names) for file in _files_of(name, path.parent)]
        new = [file for file in dict.fromkeys(beside) if file not in found and file.is_file()]
        found |= dict.fromkeys(new)
        waiting += new
    return list(found)


def _imported(node: ast.Import | ast.ImportFrom, where: Path) -> list[tuple[str, ...]]:
    """What may be modules or packages, by the parts of their names; where: the importing file."""
    if isinstance(node, ast.Import):
        return [tuple(alias.name.split(".")) for alias in node.names]
    above = where.parts[: -node.level] if node.level else ()
    module = (*above, *(node.module.split(".") if node.module else ()))
    return [module, *((*module, alias.name) for alias in node.names)]


def _files_of(name: tuple[str, ...], folder: Path) -> list[Path]:
    """Where a module may be, and the packages that it is in."""
    places = [folder.joinpath(*name[: k + 1]) for k in range(len(name))]
    return [file for one in places for file in (one.with_suffix(".py"), one / "__init__.py")]


def load(path: Path, name: str) -> ModuleType:
    """Run the file at `path` as a module called ``name`` and return it.

    It can import files beside it.

    These are loaded anew: they may have changed, or share the name of a module elsewhere. Raises
    whatever the file raises, SyntaxError if it is not Python.
    """
    path = path.resolve()
    folder = path.parent
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    sys.path[:] = [str(folder), *(place for place in sys.path if place != str(folder))]
    for file in sources(path):
        inside = file.relative_to(folder)
        parts = inside.parent.parts if file.name == "__init__.py" else inside.with_suffix("").parts
        sys.modules.pop(".".join(parts), None)
    importlib.invalidate_caches()
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
