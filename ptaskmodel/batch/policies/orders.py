"""Orders of the queue, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ptaskmodel.errors import SimulationError

if TYPE_CHECKING:
    from ptaskmodel.workload.jobs import Job

Order = Callable[["Job"], Any]
Estimate = Callable[["Job"], float]


class Key(NamedTuple):
    """What an order sorts by: of hosts and, if it asks for them, estimates; numbers or arrays."""

    of: Callable[[Any, Any], Any]
    asks_estimates: bool


KEYS = {
    "sjf": Key(lambda hosts, estimate_s: estimate_s, True),
    "ljf": Key(lambda hosts, estimate_s: -estimate_s, True),
    "smallest": Key(lambda hosts, estimate_s: hosts, False),
    "largest": Key(lambda hosts, estimate_s: -hosts, False),
    "smallest-area": Key(lambda hosts, estimate_s: hosts * estimate_s, True),
    "largest-area": Key(lambda hosts, estimate_s: -hosts * estimate_s, True),
}
ORDERS = ("fcfs", *KEYS)


@dataclass(frozen=True, slots=True)
class NamedOrder:
    """The key of a job in a named order; those by time go by the estimate."""

    name: str
    estimate: Estimate

    def __call__(self, job: Job) -> Any:
        key = KEYS[self.name]
        return key.of(job.num_hosts, self.estimate(job) if key.asks_estimates else 0.0)


def orders(estimate: Estimate) -> Mapping[str, Order | None]:
    """The named orders of the queue; None: by submission."""
    return {"fcfs": None, **{name: NamedOrder(name, estimate) for name in KEYS}}


def order_by_name(name: str | None, estimate: Estimate) -> Order | None:
    """The order of the queue called ``name``; SimulationError if there is none."""
    if name is None:
        return None
    if name not in ORDERS:
        raise SimulationError(f"order '{name}' is unknown; use one of {', '.join(ORDERS)}")
    return orders(estimate)[name]
