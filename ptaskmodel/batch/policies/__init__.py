"""Scheduling policies of the open loop: they decide which jobs start, and when.

`POLICIES` lists them by name, `ORDERS` the orders of the queue; `user_policy` loads a policy from a
Python file of the user.
`batch.compiled.policies` has kernels for the same decisions of the simplest ones (fcfs, filler,
easy, conservative, redirection); change both together.
"""

from __future__ import annotations

import importlib
import inspect
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ptaskmodel.errors import SimulationError

if TYPE_CHECKING:
    from ptaskmodel.batch.loop.view import Policy
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


# Types of arguments that --policy-option can give.
_KINDS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "float": ((int, float), "NUMBER"),
    "int": ((int,), "NUMBER"),
    "int | None": ((int,), "NUMBER"),
    "str": ((str,), "NAME"),
}


class Entry(NamedTuple):
    """Where a policy is, what it does, and the order that its name fixes, if it does."""

    module: str
    maker: str
    summary: str
    order: str | None = None


POLICIES = {
    "fcfs": Entry("backfilling", "Fcfs", "in order; one that does not fit holds up all behind it"),
    "sjf": Entry("backfilling", "Fcfs", "the same, shortest estimated time first", "sjf"),
    "ljf": Entry("backfilling", "Fcfs", "the same, longest estimated time first", "ljf"),
    "smallest": Entry("backfilling", "Fcfs", "the same, fewest hosts first", "smallest"),
    "largest": Entry("backfilling", "Fcfs", "the same, most hosts first", "largest"),
    "easy": Entry(
        "backfilling", "Easy", "others overtake the first that does not fit, without delay"
    ),
    "conservative": Entry("backfilling", "Conservative", "everybody gets a reservation"),
    "metric-aware": Entry(
        "metric_aware", "MetricAware", "waiting balanced against length, windows, tuning"
    ),
    "filler": Entry("backfilling", "Filler", "whatever fits; large jobs may starve"),
    "preemptive": Entry("preemptive", "Preemptive", "a higher priority pushes a lower one aside"),
    "gang": Entry("preemptive", "Gang", "jobs take turns on the hosts, all hosts of a job at once"),
    "sleep-idle": Entry("power", "SleepIdle", "idle hosts sleep, and are woken for the queue"),
    "power-cap": Entry("power", "PowerCap", "jobs start while hosts stay below a power cap"),
    "redirection": Entry("redirection", "Redirection", "two groups of hosts, long jobs moved"),
}


def policy_by_name(
    name: str,
    estimate: Callable[[Job], float],
    *,
    order: str | None = None,
    backfill_order: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Policy:
    """The policy called ``name`` with the queue in ``order`` (by submission by default).

    The options are arguments of the policy's constructor. ``file.py:Class`` is a user's policy (see
    `user`). Raises SimulationError for anything unknown.
    """
    given = dict(options or {})
    if ".py:" in name:
        if order is not None:
            raise SimulationError(f"policy {name} sets its own order; leave --order out")
        return user_policy(name, given)
    if name not in POLICIES:
        raise SimulationError(
            f"policy '{name}' is unknown; use one of {', '.join(POLICIES)} or FILE.py:CLASS"
        )
    entry = POLICIES[name]
    if entry.order is not None and order is not None:
        raise SimulationError(f"policy '{name}' is an order itself; leave --order out")
    maker = getattr(importlib.import_module(f"{__name__}.{entry.module}"), entry.maker)
    arguments = _checked(name, maker, given)
    arguments["order"] = order_by_name(entry.order or order, estimate)
    if backfill_order is not None:
        if "backfill_order" not in inspect.signature(maker).parameters:
            raise SimulationError(
                f"policy '{name}' has no backfill order: easy and metric-aware have one"
            )
        arguments["backfill_order"] = order_by_name(backfill_order, estimate)
    return cast("Policy", maker(**arguments))


def _checked(name: str, maker: Callable[..., Policy], given: dict[str, Any]) -> dict[str, Any]:
    """The options, if the constructor takes them."""
    parameters = {
        key: parameter
        for key, parameter in inspect.signature(maker).parameters.items()
        if parameter.annotation in _KINDS
    }
    for key, parameter in parameters.items():
        types, kind = _KINDS[parameter.annotation]
        if key not in given and parameter.default is not parameter.empty:
            continue
        if not isinstance(given.get(key), types):
            raise SimulationError(f"{name} needs --policy-option {key}={kind}")
    for key in given:
        if key not in parameters:
            known = f"it has {', '.join(parameters)}" if parameters else "it has none"
            raise SimulationError(f"policy '{name}' has no option '{key}': {known}")
    return given


def user_policy(spec: str, options: Mapping[str, Any]) -> Policy:
    """An object of the class named by ``FILE.py:CLASS``, made with the options.

    The file is run. Raises SimulationError if it fails, or if what it gives is not a policy.
    """
    from ptaskmodel.named_files import load

    file, _, name = spec.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise SimulationError(f"policy {spec}: there is no file {file}")
    try:
        module = load(path, f"policy_{path.stem}")
    except (Exception, SystemExit) as error:
        raise _broken(spec, path, error) from error
    made = getattr(module, name, None)
    if not inspect.isclass(made):
        classes = [key for key, value in vars(module).items() if hasattr(value, "decide")]
        known = f"it has {', '.join(classes)}" if classes else "write one with a method decide"
        raise SimulationError(f"policy {spec}: {file} has no class '{name}': {known}")
    try:
        inspect.signature(made).bind(**options)
    except TypeError as error:
        raise SimulationError(f"policy {spec}: {error}: check --policy-option") from None
    try:
        policy: Any = made(**options)
    except (Exception, SystemExit) as error:
        raise _broken(spec, path, error) from error
    if not callable(getattr(policy, "decide", None)):
        raise SimulationError(f"policy {spec}: it has no method decide(self, view)")
    return cast("Policy", policy)


def _broken(spec: str, path: Path, error: BaseException) -> SimulationError:
    """What to say of an exception in the user's file: what, and where."""
    where = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        if Path(frame.f_code.co_filename) == path.resolve():
            where = f" at {path.name}:{line}"
    if isinstance(error, SyntaxError) and error.lineno is not None:
        where = f" at {path.name}:{error.lineno}"
    text = f": {error}" if str(error) else ""
    return SimulationError(f"policy {spec} raised {type(error).__name__}{where}{text}")
