"""Who gets how much: problems, solvers and certificates; knows neither platforms nor time."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ptaskmodel.sharing.certificate import verify
from ptaskmodel.sharing.problem import (
    BOUND_LIMIT,
    FREE_LIMIT,
    Allocation,
    Certificate,
    SharingProblem,
)

if TYPE_CHECKING:
    from ptaskmodel.sharing.bmf import bmf
    from ptaskmodel.sharing.fairbottleneck import fairbottleneck, fairbottleneck_corrected
    from ptaskmodel.sharing.maxmin import maxmin

__all__ = [
    "BOUND_LIMIT",
    "FREE_LIMIT",
    "Allocation",
    "Certificate",
    "SharingProblem",
    "bmf",
    "fairbottleneck",
    "fairbottleneck_corrected",
    "maxmin",
    "verify",
]

# The solvers are compiled: they are imported when first asked for.
_SOLVERS = {
    "bmf": "bmf",
    "fairbottleneck": "fairbottleneck",
    "fairbottleneck_corrected": "fairbottleneck",
    "maxmin": "maxmin",
}


class _Package(ModuleType):
    """The solvers keep their names when their modules, of the same names, are imported first."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _SOLVERS and isinstance(value, ModuleType):
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name in _SOLVERS:
        module = importlib.import_module(f"ptaskmodel.sharing.{_SOLVERS[name]}")
        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
