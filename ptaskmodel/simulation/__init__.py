"""Simulate tasks that share a platform: the public `Simulation` and its records."""

from __future__ import annotations

from typing import Any


def warmup(everything: bool = True, told: Any = None) -> None:
    """Do nothing: kernels are compiled when the package is built. It goes with 0.3."""
    from ptaskmodel.remarks import warn

    warn(
        "warmup() does nothing: kernels are compiled when the package is built",
        category=DeprecationWarning,
    )
