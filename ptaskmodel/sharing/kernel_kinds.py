"""Uses the kernels of sharing with all kinds of arguments that they are called with."""

from __future__ import annotations

from ptaskmodel.sharing.bmf_hard import prepare_rungs


def prepare() -> None:
    """All of them."""
    prepare_rungs()
