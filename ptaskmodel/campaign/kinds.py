"""The kind of run that a campaign names: a built-in one, or a function of the user's."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ptaskmodel.campaign.built_in import KEPT, KINDS
from ptaskmodel.campaign.kind import Kind, Parameters
from ptaskmodel.errors import CampaignError, shown
from ptaskmodel.files import digest


def kind_of(name: str, files: Iterable[str], folder: Path) -> Kind:
    """The kind called so: a built-in one or ``FILE.py:FUNCTION``, relative to a folder.

    files: of a function, which of its parameters are files. Raises CampaignError.
    """
    if name in KINDS:
        return KINDS[name]
    path, mark, function = name.rpartition(":")
    if not mark or not path.endswith(".py") or not function.isidentifier():
        raise CampaignError(
            f"run: {shown(name)} is unknown: use one of {', '.join(KINDS)} or FILE.py:FUNCTION"
        )
    source = folder / path
    if not source.is_file():
        raise CampaignError(f"run: {source}: no such file")
    version = hashlib.sha256("".join(digest(one) for one in sources(source)).encode()).hexdigest()
    made = _function(str(source.resolve()), function, version)
    return Kind(name, made, tuple(files), lambda _: (), version=version)


def sources(path: Path) -> list[Path]:
    """A Python file, and what lies beside it that it imports, or that these do; in some order.

    Raises CampaignError for what is not Python.
    """
    found, waiting = {path: None}, [path]
    while waiting:
        one = waiting.pop()
        try:
            tree = ast.parse(one.read_bytes())
        except (SyntaxError, ValueError) as fault:
            raise CampaignError(f"run: {one} is no Python file: {fault}") from None
        names = {
            name
            for node in ast.walk(tree)
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


def _module_of(file: Path) -> tuple[str, ...]:
    """The parts of the name under which a file, by its place in a folder, is imported."""
    return file.parent.parts if file.name == "__init__.py" else file.with_suffix("").parts


@functools.lru_cache(maxsize=KEPT)
def _function(path: str, name: str, version: str) -> Callable[[Parameters], Any]:
    """A function of a file of the user's, which finds what is beside it.

    What is beside it is loaded anew: it may have changed, or be called as a module of elsewhere.
    """
    module_name = f"_campaign_{hashlib.sha256(f'{path}{version}'.encode()).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise CampaignError(f"run: {path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    folder = Path(path).parent
    sys.path[:] = [str(folder), *(place for place in sys.path if place != str(folder))]
    for file in sources(Path(path)):
        sys.modules.pop(".".join(_module_of(file.relative_to(folder))), None)
    importlib.invalidate_caches()
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise CampaignError(f"run: {path} has no function '{name}'")

    def run(parameters: Parameters) -> Any:
        return function(dict(parameters))

    return run
