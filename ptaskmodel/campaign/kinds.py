"""The kind of run that a campaign names: a built-in one, or a function of the user's."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ptaskmodel.campaign.built_in import KEPT, KINDS
from ptaskmodel.campaign.kind import Kind, Parameters
from ptaskmodel.errors import CampaignError, shown
from ptaskmodel.files import digest
from ptaskmodel.user_code import load, sources


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
    try:
        files_of_it = sources(source)
    except (SyntaxError, ValueError) as fault:
        raise CampaignError(f"run: {source} is no Python file: {fault}") from None
    version = hashlib.sha256("".join(map(digest, files_of_it)).encode()).hexdigest()
    made = _function(str(source.resolve()), function, version)
    return Kind(name, made, tuple(files), version=version)


@functools.lru_cache(maxsize=KEPT)
def _function(path: str, name: str, version: str) -> Callable[[Parameters], Any]:
    """A function of a file of the user's."""
    mark = hashlib.sha256(f"{path}{version}".encode()).hexdigest()[:16]
    function = getattr(load(Path(path), f"_campaign_{mark}"), name, None)
    if not callable(function):
        raise CampaignError(f"run: {path} has no function '{name}'")

    def run(parameters: Parameters) -> Any:
        return function(dict(parameters))

    return run
