"""The policies that others put theirs on."""

from __future__ import annotations

from ptaskmodel.batch.policies.easy import Easy
from ptaskmodel.batch.policies.fcfs import Fcfs
from ptaskmodel.batch.policies.orders import Order
from ptaskmodel.batch.view import Policy
from ptaskmodel.errors import SimulationError


def policy_under(name: str, order: Order | None) -> Policy:
    """The policy that starts jobs: "easy" or "fcfs". Raises SimulationError for another name."""
    if name == "easy":
        return Easy(order)
    if name == "fcfs":
        return Fcfs(order)
    raise SimulationError(f"option under is '{name}': use easy or fcfs")
