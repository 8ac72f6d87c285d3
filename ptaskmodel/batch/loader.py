"""Policies and allocations by name, and a user's own policy from a file."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ptaskmodel.batch.allocation import (
    Allocation,
    Contiguous,
    FewestSwitches,
    FirstFit,
    Random,
    Spread,
)
from ptaskmodel.batch.hostset import HostSet
from ptaskmodel.batch.policies import Conservative, Easy, Estimate, Fcfs, Filler, Order, orders
from ptaskmodel.batch.redirection import Redirection
from ptaskmodel.batch.state import Policy
from ptaskmodel.errors import SimulationError

POLICIES = (
    *("fcfs", "sjf", "ljf", "smallest", "largest"),
    *("easy", "conservative", "filler", "redirection"),
)
ALLOCATIONS = ("first-fit", "contiguous", "contiguous-best-effort", "random", "spread", "topology")


def order_by_name(name: str, estimate: Estimate) -> Order | None:
    """The order of the queue called ``name``; SimulationError if there is none."""
    known = orders(estimate)
    if name not in known:
        raise SimulationError(f"order '{name}' is unknown: use one of {', '.join(known)}")
    return known[name]


def policy_by_name(
    name: str,
    estimate: Estimate,
    *,
    order: str | None = None,
    backfill_order: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Policy:
    """The policy called ``name`` with the queue in ``order`` (by submission by default).

    ``sjf``, ``ljf``, ``smallest`` and ``largest`` are FCFS in that order; ``redirection`` needs
    the options alpha and theta and takes conflict. ``file.py:Class`` is a user's policy; the
    options are the arguments of its constructor. Raises SimulationError for anything unknown.
    """
    given = dict(options or {})
    if ".py:" in name:
        if order is not None:
            raise SimulationError(f"policy {name} sets its own order: leave --order out")
        return user_policy(name, given)
    if name in ("sjf", "ljf", "smallest", "largest"):
        if order is not None:
            raise SimulationError(f"policy '{name}' is an order itself: leave --order out")
        name, order = "fcfs", name
    key = None if order is None else order_by_name(order, estimate)
    backfill = None if backfill_order is None else order_by_name(backfill_order, estimate)
    if backfill_order is not None and name != "easy":
        raise SimulationError(f"policy '{name}' has no backfill order: only 'easy' has one")
    if name == "redirection":
        return _redirection(key, given)
    makers: Mapping[str, Callable[[], Policy]] = {
        "fcfs": lambda: Fcfs(key),
        "easy": lambda: Easy(key, backfill),
        "conservative": lambda: Conservative(key),
        "filler": lambda: Filler(key),
    }
    if name not in makers:
        raise SimulationError(
            f"policy '{name}' is unknown: use one of {', '.join(POLICIES)} or FILE.py:CLASS"
        )
    if given:
        raise SimulationError(f"policy '{name}' has no option '{next(iter(given))}': remove it")
    return makers[name]()


def _redirection(order: Order | None, options: dict[str, Any]) -> Redirection:
    for key in ("alpha", "theta"):
        if not isinstance(options.get(key), int | float):
            raise SimulationError(f"redirection needs --policy-option {key}=NUMBER")
    alpha, theta = options.pop("alpha"), options.pop("theta")
    conflict = options.pop("conflict", "counter")
    if options:
        raise SimulationError(f"redirection has no option '{next(iter(options))}': remove it")
    return Redirection(alpha, theta, conflict=str(conflict), order=order)


def user_policy(spec: str, options: Mapping[str, Any]) -> Policy:
    """An object of the class named by ``FILE.py:CLASS``, made with the options.

    The file is run. Raises SimulationError if it fails, or if what it gives is not a policy.
    """
    file, _, name = spec.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise SimulationError(f"policy {spec}: there is no file {file}")
    loader = importlib.util.spec_from_file_location(f"policy_{path.stem}", path)
    assert loader is not None
    assert loader.loader is not None
    module = importlib.util.module_from_spec(loader)
    sys.modules[loader.name] = module
    try:
        loader.loader.exec_module(module)
    except Exception as error:
        raise SimulationError(f"policy {spec}: {type(error).__name__}: {error}") from error
    made = getattr(module, name, None)
    if not inspect.isclass(made):
        raise SimulationError(f"policy {spec}: {file} has no class '{name}'")
    try:
        policy: Any = made(**options)
    except TypeError as error:
        raise SimulationError(f"policy {spec}: {error}: check --policy-option") from None
    if not callable(getattr(policy, "decide", None)):
        raise SimulationError(f"policy {spec}: it has no method decide(self, view)")
    if not hasattr(policy, "order"):
        policy.order = None
    checked: Policy = policy
    return checked


def allocation_by_name(
    name: str, *, seed: int = 0, switches: list[HostSet] | None = None
) -> Allocation:
    """The allocation called ``name``; ``topology`` needs the hosts of each leaf switch."""
    if name == "topology":
        return FewestSwitches(switches or [])
    makers: Mapping[str, Callable[[], Allocation]] = {
        "first-fit": FirstFit,
        "contiguous": Contiguous,
        "contiguous-best-effort": lambda: Contiguous(strict=False),
        "random": lambda: Random(seed),
        "spread": Spread,
    }
    if name not in makers:
        raise SimulationError(
            f"allocation '{name}' is unknown: use one of {', '.join(ALLOCATIONS)}"
        )
    return makers[name]()
