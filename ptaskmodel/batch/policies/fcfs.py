"""Policies without reservations: first come, first served, and a filler that starts what fits.

`policy_under` makes the policy, chosen by name, on which sleep-idle and power-cap build.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ptaskmodel.batch.loop.decisions import Decision, Start
from ptaskmodel.batch.policies.easy import Easy
from ptaskmodel.batch.policies.orders import Order
from ptaskmodel.errors import SimulationError

if TYPE_CHECKING:
    from ptaskmodel.batch.loop.view import Policy, View


class Fcfs:
    """Jobs start in the order of the queue; one that does not fit holds up all behind it."""

    def __init__(self, order: Order | None = None) -> None:
        self.order = order

    def decide(self, view: View) -> Iterator[Decision]:
        for job in view.queue:
            if not view.fits(job):
                return
            yield Start(job, within=view.within)


class Filler:
    """Every job that fits starts, in the order of the queue. Large jobs may wait for ever."""

    def __init__(self, order: Order | None = None) -> None:
        self.order = order

    def decide(self, view: View) -> Iterator[Decision]:
        job = view.next_fitting()
        while job is not None:
            yield Start(job, within=view.within)
            job = view.next_fitting(job)


def policy_under(name: str, order: Order | None) -> Policy:
    """The policy that starts jobs: "easy" or "fcfs". Raises SimulationError for another name."""
    if name == "easy":
        return Easy(order)
    if name == "fcfs":
        return Fcfs(order)
    raise SimulationError(f"option under is '{name}'; use easy or fcfs")
