"""Call the kernels of Slurm with all kinds of arguments, so that they can be compiled ahead."""

from __future__ import annotations

from ptaskmodel.slurm.scheduling.vectorised_backfill import prepare_cycle


def prepare() -> None:
    """All of them."""
    prepare_cycle()
