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
from pathlib import Path
from typing import Any

import ptaskmodel
from ptaskmodel.errors import SimulationError
from ptaskmodel.files import read_bytes, shown_path, write_bytes
from ptaskmodel.simulation.simulation import Simulation

FORMAT = "ptaskmodel checkpoint"
MOST_BYTES = 1 << 36
# Rooms whose classes may be made: to make one opens and writes nothing.
_ROOMS = {"engine", "mpi", "platform", "sharing", "simulation", "workload"}
_HARMLESS = {
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


def load_checkpoint(path: str | Path) -> tuple[Simulation, dict[str, Any]]:
    """Return the simulation in the file `path`, and the notes that were saved with it.

    Raises SimulationError if it is no checkpoint, is damaged, or is of another version.
    """
    path = shown_path(path)
    whole = read_bytes(path, most=MOST_BYTES, error=SimulationError)
    line, _, data = whole.partition(b"\n")
    header = _header(line)
    if header is None:
        raise SimulationError(f"{path}: is not a checkpoint; give a file that simulate wrote")
    if header.get("version") != ptaskmodel.__version__:
        raise SimulationError(
            f"{path}: is of version {header.get('version')}, this is {ptaskmodel.__version__}; "
            "run from the beginning"
        )
    if hashlib.sha256(data).hexdigest() != header.get("sha256"):
        raise SimulationError(f"{path}: is damaged; run from the beginning")
    try:
        simulation = _Unpickler(io.BytesIO(data)).load()
        if not isinstance(simulation, Simulation):
            raise pickle.UnpicklingError("holds no simulation")
        from ptaskmodel.simulation.parts import check_parts

        check_parts(simulation)
    except Exception as error:  # a pickle can have anything raised
        reason = " ".join(f"{type(error).__name__} {error}".split())
        if isinstance(error, pickle.UnpicklingError | SimulationError):
            reason = str(error)
        raise SimulationError(f"{path}: cannot be used: {reason}; run from the beginning") from None
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
        raise pickle.UnpicklingError(f"asks for {module}.{name}, which no checkpoint needs")
