"""Allocation rules: they choose the hosts of a job among the free ones, under any policy.

`ALLOCATIONS` lists them by name.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple, Protocol, cast

from ptaskmodel.errors import SimulationError

# The partitions of a file: partitions:FILE.
FILE_MARK = "partitions:"


class Allocation(Protocol):
    """Chooses hosts. ``constrained``: that enough hosts are free may not be enough for a job.

    An allocation with a true attribute ``rounds_up`` may give a job more hosts than it asks for.
    """

    constrained: bool

    def choose(self, count: int, free: int) -> int | None:
        """Hosts of ``free``, which has at least ``count``: so many; None if no choice will do.

        Both are masks; see `batch.machine.host_sets`.
        """
        ...


class Entry(NamedTuple):
    """What makes an allocation, what it does, what it needs, and the arguments that its name fixes.

    needs: the parameter of `allocation_by_name` that the rule takes; "": none.
    """

    maker: str
    summary: str
    needs: str = ""
    fixed: Mapping[str, Any] = {}


ALLOCATIONS = {
    "first-fit": Entry("FirstFit", "the free hosts of lowest number"),
    "contiguous": Entry("Contiguous", "consecutive hosts; the job waits for them"),
    "contiguous-best-effort": Entry(
        "Contiguous", "as few pieces as possible", fixed={"strict": False}
    ),
    "random": Entry("Random", "free hosts at random", "seed"),
    "spread": Entry("Spread", "free hosts as far apart as possible"),
    "topology": Entry("FewestSwitches", "under as few switches as possible", "switches"),
    "buddy": Entry("buddy", "aligned blocks of a power of two hosts, held whole", "num_hosts"),
    "intrepid": Entry("intrepid", "partitions of Intrepid: 80 hosts, 5 rows of 16", "num_hosts"),
}


def allocation_by_name(
    name: str, *, num_hosts: int, seed: int = 0, switches: Sequence[int] | None = None
) -> Allocation:
    """The allocation called ``name``, for a machine of so many hosts.

    ``random`` takes the seed, ``topology`` the hosts below each leaf switch (masks);
    ``partitions:FILE`` are the partitions of a file. Raises SimulationError for an unknown name, a
    machine that the allocation is not for, and a file that is none of partitions.
    """
    if name.startswith(FILE_MARK):
        return cast("Allocation", _rules().from_file(name.removeprefix(FILE_MARK), num_hosts))
    if name not in ALLOCATIONS:
        raise SimulationError(
            f"allocation '{name}' is unknown; use one of {', '.join(ALLOCATIONS)} or "
            f"{FILE_MARK}FILE"
        )
    entry = ALLOCATIONS[name]
    offered = {"seed": seed, "switches": switches or (), "num_hosts": num_hosts}
    given = {key: value for key, value in offered.items() if key == entry.needs}
    return cast("Allocation", getattr(_rules(), entry.maker)(**given, **entry.fixed))


def _rules() -> ModuleType:
    """The rules, which import more than the help needs."""
    return importlib.import_module(f"{__name__}.rules")
