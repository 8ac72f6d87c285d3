"""The kind of run that a campaign names: a built-in one, or a function of the user's."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from ptaskmodel.campaign.built_in import KEPT, KINDS
from ptaskmodel.campaign.kind import Kind, Numbers, Parameters, numbers_of
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
    version = digest(source)
    made = _function(str(source.resolve()), function, version)
    return Kind(name, made, tuple(files), lambda _: (), version=version)


@functools.lru_cache(maxsize=KEPT)
def _function(path: str, name: str, version: str) -> Callable[[Parameters], Numbers]:
    """A function of a file of the user's."""
    module_name = f"_campaign_{hashlib.sha256(f'{path}{version}'.encode()).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise CampaignError(f"run: {path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise CampaignError(f"run: {path} has no function '{name}'")

    def run(parameters: Parameters) -> Numbers:
        return numbers_of(function(dict(parameters)))

    return run
