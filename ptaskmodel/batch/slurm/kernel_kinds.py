"""Uses the kernels of Slurm with all kinds of arguments that they are called with."""

from __future__ import annotations

from ptaskmodel.batch.slurm.quick_cycle import prepare_cycle


def prepare() -> None:
    """All of them."""
    prepare_cycle()
