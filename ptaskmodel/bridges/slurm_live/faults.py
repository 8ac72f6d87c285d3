"""What stops a run of a real Slurm."""

from __future__ import annotations

from ptaskmodel.errors import SimulationError


class LiveFault(SimulationError):
    """Slurm cannot run here, does not start, or ended before its time."""
