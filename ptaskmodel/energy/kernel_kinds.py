"""Call the kernels of energy with all kinds of arguments, so that they can be compiled ahead."""

from __future__ import annotations

from ptaskmodel.energy.meter import prepare_meter


def prepare() -> None:
    """All of them."""
    prepare_meter()
