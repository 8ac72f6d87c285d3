"""The ``__init__.pyi`` of the packages with a lazy face; run it to write them again."""

from __future__ import annotations

import importlib
from pathlib import Path

PACKAGES = (
    "ptaskmodel",
    "ptaskmodel.apps",
    "ptaskmodel.batch",
    "ptaskmodel.calibration",
    "ptaskmodel.campaign",
    "ptaskmodel.platform",
    "ptaskmodel.mpi",
    "ptaskmodel.sharing",
    "ptaskmodel.workload",
)


def path_of(package: str) -> Path:
    return Path(str(importlib.import_module(package).__file__)).with_suffix(".pyi")


def _place(name: str) -> tuple[int, str]:
    """Constants, classes, functions."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name.lower()


def stub(package: str) -> str:
    """What type checkers and editors are told of a package: its table `NAMES`, spelt out."""
    module = importlib.import_module(package)
    lines = [
        f"from {home} import {name} as {name}"
        for home, names in sorted(module.NAMES.items())
        for name in sorted(names, key=_place)
    ]
    others = set(module.__all__) - {name for names in module.NAMES.values() for name in names}
    lines += ["", *(f"{name}: {type(getattr(module, name)).__name__}" for name in sorted(others))]
    head = "# Written by `python tests/stubs.py`, of the table in __init__.py."
    return "\n".join([head, *lines]).rstrip() + "\n"


if __name__ == "__main__":
    for package in PACKAGES:
        path_of(package).write_text(stub(package), encoding="utf-8")
