"""Orders of the queue by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ptaskmodel.errors import SimulationError

if TYPE_CHECKING:
    from ptaskmodel.workload.jobs import Job

Order = Callable[["Job"], Any]
Estimate = Callable[["Job"], float]

ORDERS = ("fcfs", "sjf", "ljf", "smallest", "largest", "smallest-area", "largest-area")


def orders(estimate: Estimate) -> Mapping[str, Order | None]:
    """The named orders of the queue; those by time go by the estimate."""
    return {
        "fcfs": None,
        "sjf": estimate,
        "ljf": lambda job: -estimate(job),
        "smallest": lambda job: job.num_hosts,
        "largest": lambda job: -job.num_hosts,
        "smallest-area": lambda job: job.num_hosts * estimate(job),
        "largest-area": lambda job: -job.num_hosts * estimate(job),
    }


def order_by_name(name: str | None, estimate: Estimate) -> Order | None:
    """The order of the queue called ``name``; SimulationError if there is none."""
    if name is None:
        return None
    if name not in ORDERS:
        raise SimulationError(f"order '{name}' is unknown: use one of {', '.join(ORDERS)}")
    return orders(estimate)[name]
