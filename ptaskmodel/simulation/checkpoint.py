"""Checkpoints: save a simulation to a file; a restored run is bit-identical.

A checkpoint is a line of JSON (version, digest, the caller's notes) and a pickle. Whatever the file
contains, reading it creates only data classes and states of this package, numpy's arrays and paths.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import ptaskmodel
from ptaskmodel.engine.check import (
    check_bounds,
    check_chain,
    check_extent,
    check_lists,
    check_range,
    check_state_bounds,
)
from ptaskmodel.engine.state import WAKE, State, arrays_of
from ptaskmodel.errors import SimulationError
from ptaskmodel.files import AnyPath, read_bytes, write_bytes
from ptaskmodel.remarks import Account, reader
from ptaskmodel.simulation.life import ENDED
from ptaskmodel.simulation.simulation import Simulation

FORMAT = "ptaskmodel checkpoint"
MOST_BYTES = 1 << 36
# Rooms whose classes may be made: to make one opens and writes nothing.
_ROOMS = {"engine", "mpi", "platform", "sharing", "simulation", "workload"}
_HARMLESS = {
    ("ptaskmodel.lazy", "Chained"),
    ("ptaskmodel.platform.facts", "NO_PROPERTIES"),
    ("ptaskmodel.remarks", "Remark"),
    ("ptaskmodel.workload.works", "_restored"),
    ("pathlib", "PosixPath"),
    ("pathlib", "WindowsPath"),
    ("pathlib._local", "PosixPath"),
    ("pathlib._local", "WindowsPath"),
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy._core.numeric", "_frombuffer"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "scalar"),
    ("numpy.core.numeric", "_frombuffer"),
}

_log = logging.getLogger(__name__)


def save_checkpoint(
    simulation: Simulation, path: str | Path, about: dict[str, Any] | None = None
) -> None:
    """Write a simulation to the file `path`, atomically; observers and listeners are left out.

    about: notes for the checkpoint, as JSON; `load_checkpoint` returns them. Raises SimulationError
    if the file cannot be written.
    """
    data = pickle.dumps(simulation, protocol=5)
    header = {
        "format": FORMAT,
        "version": ptaskmodel.__version__,
        "sha256": hashlib.sha256(data).hexdigest(),
        "about": about or {},
    }
    write_bytes(path, json.dumps(header).encode() + b"\n" + data, error=SimulationError)
    _log.info("wrote checkpoint %s at %g s", path, simulation.now)


@reader(SimulationError)
def load_checkpoint(path: AnyPath, account: Account) -> tuple[Simulation, dict[str, Any]]:
    """Return the simulation in the file `path`, and the notes that were saved with it.

    account: of the file. Raises SimulationError if it is no checkpoint, is damaged, or is of
    another version.
    """
    name = account.file
    whole = read_bytes(path, most=MOST_BYTES, error=SimulationError)
    line, _, data = whole.partition(b"\n")
    header = _header(line)
    if header is None:
        raise SimulationError(f"{name}: is not a checkpoint; give a file that simulate wrote")
    if header.get("version") != ptaskmodel.__version__:
        raise SimulationError(
            f"{name}: was written by version {header.get('version')}, but this is "
            f"{ptaskmodel.__version__}; "
            "run from the beginning"
        )
    if hashlib.sha256(data).hexdigest() != header.get("sha256"):
        raise SimulationError(f"{name}: is damaged; run from the beginning")
    try:
        simulation = _Unpickler(io.BytesIO(data)).load()
        if not isinstance(simulation, Simulation):
            raise pickle.UnpicklingError("contains no simulation")
        check_parts(simulation)
    except Exception as error:  # a pickle can have anything raised
        reason = " ".join(f"{type(error).__name__} {error}".split())
        if isinstance(error, pickle.UnpicklingError | SimulationError):
            reason = str(error)
        raise SimulationError(f"{name}: cannot be used: {reason}; run from the beginning") from None
    return simulation, header["about"]


def _header(line: bytes) -> dict[str, Any] | None:
    """What the first line of a checkpoint says; None if it is of no checkpoint."""
    try:
        header = json.loads(line)
    except (ValueError, RecursionError):
        return None
    known = isinstance(header, dict) and header.get("format") == FORMAT
    return header if known and isinstance(header.get("about"), dict) else None


class _Unpickler(pickle.Unpickler):
    """Makes nothing but facts and states of this package, numpy's arrays and paths."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _HARMLESS:
            return super().find_class(module, name)
        package, _, rest = module.partition(".")
        if package == "ptaskmodel" and rest.partition(".")[0] in _ROOMS and "." not in name:
            found = super().find_class(module, name)
            if isinstance(found, type) and found.__module__ == module:
                return found
        raise pickle.UnpicklingError(f"requests {module}.{name}, which checkpoints do not need")


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
        from ptaskmodel.mpi.applications import Applications
        from ptaskmodel.mpi.protocol import protocol_of

        protocol = protocol_of(made.network_model.name, made.platform.config)
        ranks = Applications(made.core, protocol)
        _check_attributes("replays", vars(simulation._replays), vars(ranks))
        if simulation._replays.core is not simulation.core:
            raise SimulationError("its replays belong to another engine")
    else:
        check_numbers(simulation, made)
    if simulation.core.options != made.core.options or simulation.core.rule != made.core.rule:
        raise SimulationError("its options do not match its solver and network model")
    if simulation.core.platform is not simulation.platform:
        raise SimulationError("its engine belongs to another platform")


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
        raise SimulationError("the number of its elements is wrong")
    t, s = intake.arrays, core.state
    n, clock = int(t.counts[0]["n_tasks"]), s.clock[0]
    if not n == len(intake.facts) == len(intake.ids) <= len(t.tasks) or len(t.counts) != 1:
        raise SimulationError("the number of its tasks is wrong")
    sizes = {name: len(a) for name, a in (arrays_of(s) | t._asdict()).items()}
    tasks, programs = t.tasks[:n], t.programs[: len(intake.programs.works)]
    stages = t.stages[: len(intake.programs.stage_work)]
    followers = t.followers[: int(t.counts[0]["n_followers"])]
    used = {"tasks": tasks, "programs": programs, "stages": stages, "followers": followers}
    sizes |= {name: len(records) for name, records in used.items()}
    check_bounds(t._asdict(), _layouts(made._intake.arrays._asdict()), sizes, used)
    if len(programs) < len(intake.programs.works) or (programs["count"] < 1).any():
        raise SimulationError("the number of its programs is wrong")
    if programs["rounds"].tolist() != [work.rounds for work in intake.programs.works]:
        raise SimulationError("the rounds of its programs differ from those of their works")
    check_extent("programs", programs["first"], programs["count"], sizes["stages"])
    check_range("tasks.program", tasks["program"], 0, len(programs) - 1)
    own = programs[tasks["program"]]
    if (tasks["stage"] >= own["count"]).any():
        raise SimulationError("a task is after its last stage")
    if ((tasks["rounds"] < 0) | (tasks["rounds"] >= own["rounds"])).any():
        raise SimulationError("a task is after its last round")
    counts = t.counts[0]
    for name in ("ready", "ended"):
        listed = check_chain(name, tasks[f"next_{name}"], int(counts[name]["first"]))
        if (listed[-1] if listed else -1) != counts[name]["last"]:
            raise SimulationError(f"the last of the list {name} is not its last")
    if counts["n_ended"] != (tasks["state"] >= ENDED).sum() or counts["n_told"] > counts["n_ended"]:
        raise SimulationError("the number of ended tasks is wrong")
    for task in np.flatnonzero((tasks["followers"] >= 0) & (tasks["released"] == 0)).tolist():
        check_chain("followers", t.followers["next"], int(tasks["followers"][task]))
    _check_owners(s, tasks, int(clock["n_wakes"]))


def _check_owners(s: State, tasks: np.ndarray, n_wakes: int) -> None:
    """Tasks and what runs or wakes for them know each other."""
    runs = np.flatnonzero(tasks["slot"] >= 0)
    slots = tasks["slot"][runs]
    if (s.activities["owner"][slots] != runs).any() or (s.activities["state"][slots] == 0).any():
        raise SimulationError("an activity belongs to another task")
    active = np.flatnonzero(s.activities["state"] != 0)
    owners = s.activities["owner"][active]
    of_tasks = owners >= 0
    check_range("owners", owners, -(2**40), len(tasks) - 1)
    if (tasks["slot"][owners[of_tasks]] != active[of_tasks]).any():
        raise SimulationError("an activity belongs to no task")
    waits = np.flatnonzero(tasks["wake"] >= 0)
    check_range("tasks.wake", tasks["wake"][waits], 0, n_wakes - 1)
    entries = s.queue[: s.clock[0]["n_queue"]]
    wakes = entries["number"][entries["kind"] == WAKE]
    tokens = s.wakes["token"][wakes]
    check_range("wake-ups", tokens, -(2**40), len(tasks) - 1)
    if (tasks["wake"][tokens[tokens >= 0]] != wakes[tokens >= 0]).any():
        raise SimulationError("a wake-up belongs to another task")
    if not np.isin(tasks["wake"][waits], wakes).all():
        raise SimulationError("a task waits without an event")


def _layouts(arrays: Mapping[str, np.ndarray]) -> dict[str, np.dtype]:
    return {name: array.dtype for name, array in arrays.items()}


def _check_attributes(
    where: str, given: dict[str, Any], made: dict[str, Any], optional: tuple[str, ...] = ()
) -> None:
    if given.keys() != made.keys():
        raise SimulationError(f"its {where} has other fields than in this version")
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
            raise SimulationError(f"{name} of its {where} is not an array of the right type")
