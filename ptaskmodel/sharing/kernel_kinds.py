"""Call the kernels of sharing with all kinds of arguments, so that they can be compiled ahead."""

from __future__ import annotations

from ptaskmodel.sharing.bottleneck_max_fairness.fallbacks import prepare_fallbacks


def prepare() -> None:
    """All of them."""
    prepare_fallbacks()
