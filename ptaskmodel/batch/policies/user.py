"""User-defined policies: load a class from a Python file."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from ptaskmodel.batch.loop.view import Policy
from ptaskmodel.errors import SimulationError
from ptaskmodel.named_files import load


def user_policy(spec: str, options: Mapping[str, Any]) -> Policy:
    """An object of the class named by ``FILE.py:CLASS``, made with the options.

    The file is run. Raises SimulationError if it fails, or if what it gives is not a policy.
    """
    file, _, name = spec.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise SimulationError(f"policy {spec}: there is no file {file}")
    try:
        module = load(path, f"policy_{path.stem}")
    except (Exception, SystemExit) as error:
        raise _broken(spec, path, error) from error
    made = getattr(module, name, None)
    if not inspect.isclass(made):
        classes = [key for key, value in vars(module).items() if hasattr(value, "decide")]
        known = f"it has {', '.join(classes)}" if classes else "write one with a method decide"
        raise SimulationError(f"policy {spec}: {file} has no class '{name}': {known}")
    try:
        inspect.signature(made).bind(**options)
    except TypeError as error:
        raise SimulationError(f"policy {spec}: {error}: check --policy-option") from None
    try:
        policy: Any = made(**options)
    except (Exception, SystemExit) as error:
        raise _broken(spec, path, error) from error
    if not callable(getattr(policy, "decide", None)):
        raise SimulationError(f"policy {spec}: it has no method decide(self, view)")
    return cast("Policy", policy)


def _broken(spec: str, path: Path, error: BaseException) -> SimulationError:
    """What to say of an exception in the user's file: what, and where."""
    where = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        if Path(frame.f_code.co_filename) == path.resolve():
            where = f" at {path.name}:{line}"
    if isinstance(error, SyntaxError) and error.lineno is not None:
        where = f" at {path.name}:{error.lineno}"
    text = f": {error}" if str(error) else ""
    return SimulationError(f"policy {spec} raised {type(error).__name__}{where}{text}")
