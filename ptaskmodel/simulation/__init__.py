"""When: simulations of tasks that share a platform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def warmup(everything: bool = True, told: Callable[[Any], None] | None = None) -> None:
    """Compile the kernels of simulations that are not kept yet, in a process for each core.

    everything: also those that few need: changes by hand, sharing problems alone, batches of
    delays. told: hears now and then how far it is (see `kernel_sets.Stand`).
    """
    from ptaskmodel import kernel_sets

    kernel_sets.compile_sets(kernel_sets.SETS if everything else kernel_sets.SIMULATION, told)
