"""When: simulations of tasks that share a platform."""

from __future__ import annotations


def warmup() -> None:
    """Compile every kernel that a simulation may need; quick if they are compiled and kept."""
    from ptaskmodel.engine.warming import compile_kernels

    compile_kernels()
