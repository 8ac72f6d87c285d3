"""Who gets how much: problems, solvers and certificates; knows neither platforms nor time."""

import sys
from types import ModuleType
from typing import Any

from ptaskmodel.faces import face

NAMES = {
    "ptaskmodel.sharing.bmf": ("bmf",),
    "ptaskmodel.sharing.certificate": ("verify",),
    "ptaskmodel.sharing.fairbottleneck": ("fairbottleneck", "fairbottleneck_corrected"),
    "ptaskmodel.sharing.maxmin": ("maxmin",),
    "ptaskmodel.sharing.problem": (
        "BOUND_LIMIT",
        "FREE_LIMIT",
        "Allocation",
        "Certificate",
        "SharingProblem",
    ),
}

__all__, __getattr__, __dir__ = face(__name__, NAMES)

_SOLVERS = ("bmf", "fairbottleneck", "maxmin")


class _Package(ModuleType):
    """The solvers keep their names when their modules, of the same names, are imported first."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _SOLVERS and isinstance(value, ModuleType):
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
