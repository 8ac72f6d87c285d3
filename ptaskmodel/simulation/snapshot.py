"""A simulation held still, to start from again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptaskmodel.simulation.simulation import Simulation


class Snapshot:
    """A simulation held still; see `Simulation.snapshot`."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    def restart(self) -> Simulation:
        """A new simulation in the state of the snapshot."""
        return self._simulation.fork()
