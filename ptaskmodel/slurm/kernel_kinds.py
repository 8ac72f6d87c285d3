"""Uses the kernels of Slurm with all kinds of arguments that they are called with."""

from __future__ import annotations

from ptaskmodel.slurm.scheduling.vectorised_backfill import prepare_cycle


def prepare() -> None:
    """All of them."""
    prepare_cycle()
