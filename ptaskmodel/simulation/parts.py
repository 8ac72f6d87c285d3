"""What a simulation from a file is made of, before anything trusts it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ptaskmodel.errors import SimulationError
from ptaskmodel.replay.applications import Applications
from ptaskmodel.replay.smpi import protocol_of
from ptaskmodel.simulation.simulation import Simulation


def check_parts(simulation: Simulation) -> None:
    """Every part of a simulation is there and of the class that it has in one just made.

    So are its options and the types of its arrays. Raises SimulationError otherwise, or whatever
    making a simulation of its parts raises.
    """
    facts = vars(simulation)
    made = Simulation(
        facts["platform"],
        solver=facts["solver"],
        network_model=facts["network_model"].name,
        count=facts["count"],
        optimise=bool(facts["core"].options.incremental),
    )
    _check_attributes("simulation", facts, vars(made), optional=("_replays",))
    _check_attributes("core", vars(simulation.core), vars(made.core))
    _check_attributes("intake", vars(simulation._intake), vars(made._intake))
    if simulation._replays is not None:
        protocol = protocol_of(made.network_model.name, made.platform.config)
        ranks = Applications(made.core, protocol)
        _check_attributes("replays", vars(simulation._replays), vars(ranks))
        if simulation._replays.core is not simulation.core:
            raise SimulationError("its replays are on another core")
    if simulation.core.options != made.core.options or simulation.core.rule != made.core.rule:
        raise SimulationError("its options are not those of its solver and network model")
    if simulation.core.platform is not simulation.platform:
        raise SimulationError("its core is of another platform")


def _check_attributes(
    where: str, given: dict[str, Any], made: dict[str, Any], optional: tuple[str, ...] = ()
) -> None:
    if given.keys() != made.keys():
        raise SimulationError(f"its {where} has other parts than one of this version")
    for name, value in made.items():
        if name not in optional and type(given[name]) is not type(value):
            raise SimulationError(f"{name} of its {where} is a {type(given[name]).__name__}")
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            _check_arrays(name, given[name], value)


def _check_arrays(where: str, given: Any, made: Any) -> None:
    """Arrays are of the types and dimensions that kernels take them for."""
    for name, one, other in zip(made._fields, given, made, strict=True):
        if not isinstance(other, np.ndarray):
            continue
        right = type(one) is type(other) and one.dtype == other.dtype and one.ndim == other.ndim
        if not (right and one.flags.c_contiguous and one.flags.aligned and one.flags.writeable):
            raise SimulationError(f"{name} of its {where} is no array of the right type")
