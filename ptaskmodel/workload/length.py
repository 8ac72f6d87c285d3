"""Says of a work that simulating it takes very long."""

from __future__ import annotations

from ptaskmodel.remarks import warn
from ptaskmodel.workload.works import Work

# Stages that take the simulator minutes; one takes it some microseconds.
LONG_STAGES = 10_000_000
STAGE_S = 5e-6


def warn_if_long(work: Work, where: str) -> None:
    """Warn, with the place in a file, of a work of more than LONG_STAGES stages, repeated ones."""
    stages = work.summed(lambda part: 1.0)
    if stages > LONG_STAGES:
        warn(
            f"{where}: makes {stages:,.0f} stages, one after the other: simulating them takes some "
            f"{stages * STAGE_S / 60:,.0f} minutes a task; make fewer, larger stages"
        )
