"""Allocations choose the hosts of a job among the free ones; any goes with any policy.

`ALLOCATIONS` is the one table of their names.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast

from ptaskmodel.errors import SimulationError


class Allocation(Protocol):
    """Chooses hosts. ``constrained``: that enough hosts are free may not be enough for a job."""

    constrained: bool

    def choose(self, count: int, free: int) -> int | None:
        """``count`` hosts of ``free``, which has at least as many; None if no choice will do.

        Both are masks; see `hostset`.
        """
        ...


class Entry(NamedTuple):
    """Where an allocation is, the arguments that its name fixes, and what it does."""

    module: str
    maker: str
    summary: str
    fixed: Mapping[str, Any] = {}


ALLOCATIONS = {
    "first-fit": Entry("first_fit", "FirstFit", "the free hosts of lowest number"),
    "contiguous": Entry("contiguous", "Contiguous", "consecutive hosts; the job waits for them"),
    "contiguous-best-effort": Entry(
        "contiguous", "Contiguous", "as few pieces as possible", {"strict": False}
    ),
    "random": Entry("random_hosts", "Random", "free hosts at random"),
    "spread": Entry("spread", "Spread", "free hosts as far apart as possible"),
    "topology": Entry("fewest_switches", "FewestSwitches", "under as few switches as possible"),
}


def allocation_by_name(
    name: str, *, seed: int = 0, switches: Sequence[int] | None = None
) -> Allocation:
    """The allocation called ``name``.

    ``random`` takes the seed, ``topology`` the hosts below each leaf switch (masks). Raises
    SimulationError for an unknown name.
    """
    if name not in ALLOCATIONS:
        raise SimulationError(
            f"allocation '{name}' is unknown: use one of {', '.join(ALLOCATIONS)}"
        )
    entry = ALLOCATIONS[name]
    given: dict[str, Any] = dict(entry.fixed)
    if name == "random":
        given["seed"] = seed
    elif name == "topology":
        given["switches"] = switches or ()
    maker = getattr(importlib.import_module(f"{__name__}.{entry.module}"), entry.maker)
    return cast("Allocation", maker(**given))
