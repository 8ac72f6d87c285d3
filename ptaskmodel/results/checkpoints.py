"""The checkpoint of a run that writes a directory: beside it, as long as the run lasts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ptaskmodel.errors import SimulationError
from ptaskmodel.files import digest
from ptaskmodel.simulation.checkpoint import load_checkpoint, save_checkpoint

if TYPE_CHECKING:
    from ptaskmodel.simulation.simulation import Simulation

Progress = Callable[[float, int, int], None]


class Wanted(Protocol):
    """The options of a run that matter to its checkpoints."""

    @property
    def solver(self) -> str | None: ...
    @property
    def network_model(self) -> str | None: ...
    @property
    def count(self) -> str: ...
    @property
    def traces(self) -> tuple[str, ...]: ...
    @property
    def attribution(self) -> bool: ...
    @property
    def energy(self) -> bool: ...
    @property
    def checkpoint_every(self) -> float | None: ...
    @property
    def resume(self) -> bool: ...


class Checkpoints:
    """Writes, finds and removes the checkpoint of a run.

    A run that goes on must have the inputs and options of the one that wrote the checkpoint.

    Raises SimulationError where checkpoints make no sense.
    """

    def __init__(
        self, directory: str | Path | None, options: Wanted, inputs: Iterable[str | Path]
    ) -> None:
        self._every_s = options.checkpoint_every
        self._resume = options.resume
        if self._every_s is None and not self._resume:
            return
        if directory is None:
            raise SimulationError("checkpoints are written beside the results; give --output DIR")
        if options.traces or options.attribution or options.energy:
            raise SimulationError(
                "a run that goes on from a checkpoint cannot record what came before; leave out "
                "--trace, --attribution and --energy, or the checkpoints"
            )
        place = Path(directory)
        self.path = place.with_name(place.name + ".checkpoint")
        self._about: dict[str, Any] = {
            "inputs": {str(path): digest(path) for path in inputs},
            "solver": options.solver,
            "network_model": options.network_model,
            "count": options.count,
        }

    def found(self) -> Simulation | None:
        """The simulation to go on with, if that is asked for and there is one.

        Raises SimulationError if it is damaged, or of other inputs or options.
        """
        if not self._resume or not self.path.exists():
            return None
        simulation, about = load_checkpoint(self.path)
        if about != self._about:
            changed = [key for key, value in self._about.items() if about.get(key) != value]
            raise SimulationError(
                f"{self.path}: is of another run (other {', '.join(changed)}); remove it, or run "
                "with what it was written with"
            )
        return simulation

    def watching(self, simulation: Simulation, progress: Progress | None) -> Progress | None:
        """A function to call now and then: it writes checkpoints, and calls ``progress``."""
        every_s = self._every_s
        if every_s is None:
            return progress
        written = time.monotonic()

        def tell(now_s: float, ended: int, tasks: int) -> None:
            nonlocal written
            if time.monotonic() - written >= every_s:
                save_checkpoint(simulation, self.path, self._about)
                written = time.monotonic()
            if progress is not None:
                progress(now_s, ended, tasks)

        return tell

    def remove(self) -> None:
        """The run is over and its results are written."""
        if self._every_s is not None or self._resume:
            self.path.unlink(missing_ok=True)
