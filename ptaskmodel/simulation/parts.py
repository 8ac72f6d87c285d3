"""Check the parts of a simulation from a file, before the simulation is trusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ptaskmodel.engine.bounds import (
    check_bounds,
    check_chain,
    check_extent,
    check_range,
    check_state_bounds,
)
from ptaskmodel.engine.check import check_lists
from ptaskmodel.engine.state import WAKE, State, arrays_of
from ptaskmodel.errors import SimulationError
from ptaskmodel.mpi.applications import Applications
from ptaskmodel.mpi.protocol import protocol_of
from ptaskmodel.simulation.life import ENDED
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
        network_model=facts["network_model"],
        count=facts["count"],
        routing=facts["routing"],
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
    else:
        check_numbers(simulation, made)
    if simulation.core.options != made.core.options or simulation.core.rule != made.core.rule:
        raise SimulationError("its options are not those of its solver and network model")
    if simulation.core.platform is not simulation.platform:
        raise SimulationError("its core is of another platform")


def check_numbers(simulation: Simulation, made: Simulation) -> None:
    """Every number by which kernels find others of tasks lies where these are.

    made: a simulation of the same parts, just made. Raises SimulationError otherwise.
    """
    core, intake = simulation.core, simulation._intake
    layouts = _layouts(arrays_of(made.core.state))
    check_state_bounds(core.state, layouts)
    for fault in check_lists(core.state):
        raise SimulationError(fault)
    if core.patterns.n_elements != len(core.state.elements):
        raise SimulationError("its elements are miscounted")
    t, s = intake.arrays, core.state
    n, clock = int(t.counts[0]["n_tasks"]), s.clock[0]
    if not n == len(intake.facts) == len(intake.ids) <= len(t.tasks) or len(t.counts) != 1:
        raise SimulationError("its tasks are miscounted")
    sizes = {name: len(a) for name, a in (arrays_of(s) | t._asdict()).items()}
    tasks, programs = t.tasks[:n], t.programs[: len(intake.programs.works)]
    stages = t.stages[: len(intake.programs.stage_work)]
    followers = t.followers[: int(t.counts[0]["n_followers"])]
    used = {"tasks": tasks, "programs": programs, "stages": stages, "followers": followers}
    sizes |= {name: len(records) for name, records in used.items()}
    check_bounds(t._asdict(), _layouts(made._intake.arrays._asdict()), sizes, used)
    if len(programs) < len(intake.programs.works) or (programs["count"] < 1).any():
        raise SimulationError("its programs are miscounted")
    if programs["rounds"].tolist() != [work.rounds for work in intake.programs.works]:
        raise SimulationError("its programs have other rounds than their works")
    check_extent("programs", programs["first"], programs["count"], sizes["stages"])
    check_range("tasks.program", tasks["program"], 0, len(programs) - 1)
    own = programs[tasks["program"]]
    if (tasks["stage"] >= own["count"]).any():
        raise SimulationError("a task is past its last stage")
    if ((tasks["rounds"] < 0) | (tasks["rounds"] >= own["rounds"])).any():
        raise SimulationError("a task is past its last round")
    counts = t.counts[0]
    for first, last, following in (
        ("first_ready", "last_ready", "next_ready"),
        ("first_ended", "last_ended", "next_ended"),
    ):
        listed = check_chain(first, tasks[following], int(counts[first]))
        if (listed[-1] if listed else -1) != counts[last]:
            raise SimulationError(f"{last} is not the last")
    if counts["n_ended"] != (tasks["state"] >= ENDED).sum() or counts["n_told"] > counts["n_ended"]:
        raise SimulationError("the ended tasks are miscounted")
    for task in np.flatnonzero((tasks["followers"] >= 0) & (tasks["released"] == 0)).tolist():
        check_chain("followers", t.followers["next"], int(tasks["followers"][task]))
    _check_owners(s, tasks, int(clock["n_wakes"]))


def _check_owners(s: State, tasks: np.ndarray, n_wakes: int) -> None:
    """Tasks and what runs or wakes for them know each other."""
    runs = np.flatnonzero(tasks["slot"] >= 0)
    slots = tasks["slot"][runs]
    if (s.activities["owner"][slots] != runs).any() or (s.activities["state"][slots] == 0).any():
        raise SimulationError("an activity is of another task")
    active = np.flatnonzero(s.activities["state"] != 0)
    owners = s.activities["owner"][active]
    of_tasks = owners >= 0
    check_range("owners", owners, -(2**40), len(tasks) - 1)
    if (tasks["slot"][owners[of_tasks]] != active[of_tasks]).any():
        raise SimulationError("an activity is of no task")
    waits = np.flatnonzero(tasks["wake"] >= 0)
    check_range("tasks.wake", tasks["wake"][waits], 0, n_wakes - 1)
    entries = s.queue[: s.clock[0]["n_queue"]]
    wakes = entries["number"][entries["kind"] == WAKE]
    tokens = s.wakes["token"][wakes]
    check_range("wake-ups", tokens, -(2**40), len(tasks) - 1)
    if (tasks["wake"][tokens[tokens >= 0]] != wakes[tokens >= 0]).any():
        raise SimulationError("a wake-up is of another task")
    if not np.isin(tasks["wake"][waits], wakes).all():
        raise SimulationError("a task waits for no date")


def _layouts(arrays: Mapping[str, np.ndarray]) -> dict[str, np.dtype]:
    return {name: array.dtype for name, array in arrays.items()}


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
