"""Allocation rules: they choose the hosts of a job among the free ones, under any policy.

`ALLOCATIONS` lists them by name.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
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
    """Where an allocation is, the arguments that its name fixes, and what it does."""

    module: str
    maker: str
    summary: str
    fixed: Mapping[str, Any] = {}


ALLOCATIONS = {
    "first-fit": Entry("free_hosts", "FirstFit", "the free hosts of lowest number"),
    "contiguous": Entry("free_hosts", "Contiguous", "consecutive hosts; the job waits for them"),
    "contiguous-best-effort": Entry(
        "free_hosts", "Contiguous", "as few pieces as possible", {"strict": False}
    ),
    "random": Entry("free_hosts", "Random", "free hosts at random"),
    "spread": Entry("free_hosts", "Spread", "free hosts as far apart as possible"),
    "topology": Entry("free_hosts", "FewestSwitches", "under as few switches as possible"),
    "buddy": Entry("partitions", "buddy", "aligned blocks of a power of two hosts, held whole"),
    "intrepid": Entry("partitions", "intrepid", "partitions of Intrepid: 80 hosts, 5 rows of 16"),
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
        from ptaskmodel.batch.allocations.partitions import from_file

        return from_file(name.removeprefix(FILE_MARK), num_hosts)
    if name not in ALLOCATIONS:
        raise SimulationError(
            f"allocation '{name}' is unknown; use one of {', '.join(ALLOCATIONS)} or "
            f"{FILE_MARK}FILE"
        )
    entry = ALLOCATIONS[name]
    given: dict[str, Any] = dict(entry.fixed)
    if name == "random":
        given["seed"] = seed
    elif name == "topology":
        given["switches"] = switches or ()
    elif entry.module == "partitions":
        given["num_hosts"] = num_hosts
    maker = getattr(importlib.import_module(f"{__name__}.{entry.module}"), entry.maker)
    return cast("Allocation", maker(**given))
