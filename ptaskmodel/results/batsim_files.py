"""The files that Batsim leaves of a run, under a prefix."""

from __future__ import annotations

import csv
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ptaskmodel import __version__
from ptaskmodel.batch.measures import load
from ptaskmodel.batch.output import batsim_summary, write_schedule
from ptaskmodel.batch.power_files import machine_states
from ptaskmodel.batch.pstates import Pstates
from ptaskmodel.errors import PTaskModelError
from ptaskmodel.files import check_file_to_write, whole_path

if TYPE_CHECKING:
    from ptaskmodel.batch.run import BatchResult

SCHEDULE, MACHINES = "schedule.csv", "machine_states.csv"
ENERGY = ("consumed_energy.csv", "pstate_changes.csv")


def check_prefix(prefix: str) -> None:
    """Files may be written under a prefix; PTaskModelError if not."""
    check_file_to_write(f"{prefix}_jobs.csv")


def write_batsim_files(
    prefix: str, result: BatchResult, *, states: bool = True, energy: bool = False
) -> list[str]:
    """Write PREFIX_jobs.csv, PREFIX_schedule.csv and what is asked for; returns their names.

    states: PREFIX_machine_states.csv. energy: PREFIX_pstate_changes.csv, and
    PREFIX_consumed_energy.csv if it was counted. Raises PTaskModelError.
    """
    schedule = result.schedule
    wanted = ["jobs.csv", SCHEDULE, *([MACHINES] if states else []), *(ENERGY if energy else ())]
    found = []
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        there = write_schedule(
            place,
            schedule,
            workload_name=None,
            host_names=result.machine.names,
            version=__version__,
            simulation_s=result.simulation_s,
            energy=result.energy,
            pstates=Pstates(result.machine.pstates()) if energy else None,
            metadata=result.metadata,
        )
        there.append(_write_summary(place, result))
        for each in wanted:
            if each in there or (place / each).exists():
                with whole_path(f"{prefix}_{each}", error=PTaskModelError) as path:
                    path.write_bytes((place / each).read_bytes())
                found.append(f"{prefix}_{each}")
    return found


def _write_summary(place: Path, result: BatchResult) -> str:
    """Write schedule.csv: a line of names, and one of values."""
    schedule = result.schedule
    states = machine_states(schedule, load(schedule))
    values = batsim_summary(schedule, __version__, result.simulation_s, states)
    if result.energy is not None:
        values["consumed_joules"] = result.energy.consumed_J
    values["scheduling_time"] = (result.driven or {}).get("scheduler_wall_time_s", 0.0)
    with (place / SCHEDULE).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, sorted(values), lineterminator=os.linesep)
        writer.writeheader()
        writer.writerow(values)
    return SCHEDULE
