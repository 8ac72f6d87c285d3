"""When: simulations of tasks that share a platform."""

from __future__ import annotations


def warmup(everything: bool = True) -> None:
    """Compile the kernels of a simulation; quick if they are compiled and kept.

    everything: also those that few simulations need: changes by hand, systems hard to solve.
    """
    from ptaskmodel.simulation.warming import compile_kernels

    compile_kernels(everything)
