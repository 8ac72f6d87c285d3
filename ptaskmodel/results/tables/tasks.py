"""Write the results of tasks: tasks.csv and summary.json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ptaskmodel import csv_columns
from ptaskmodel.files import write_json
from ptaskmodel.names import join_names
from ptaskmodel.results.directory import FORMAT, SUMMARY, provenance

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ptaskmodel.simulation.records import TaskRecord
    from ptaskmodel.simulation.simulation import Simulation

TASKS = "tasks.csv"

ALONE_COLUMNS = ("time_alone", "slowdown")


def write_tasks_csv(
    stream: IO[str],
    records: Iterable[TaskRecord],
    alone_s: Sequence[float | None] | None = None,
) -> None:
    """One line per task, dates in s to the last digit, empty for None, hosts split by spaces.

    alone_s: the times that the tasks take alone, for two more columns: that time and the contention
    slowdown.
    """
    import numpy

    from ptaskmodel.simulation.records import COLUMNS

    records = list(records)
    columns = COLUMNS if alone_s is None else (*COLUMNS, *ALONE_COLUMNS)
    stream.write(",".join(columns) + "\n")
    for begin in range(0, len(records), csv_columns.PIECE):
        some = records[begin : begin + csv_columns.PIECE]
        rows = [(one.start_s, one.end_s, one.execution_s) for one in some]
        texts = (
            (one.task_id for one in some),
            (one.profile or "" for one in some),
            (one.final_state for one in some),
            (join_names(one.hosts) for one in some),
        )
        ids, profiles, states, hosts = map(csv_columns.quoted, texts)
        dates = _lines(numpy.array(rows, dtype=numpy.float64))
        last: Sequence[str] = [""] * len(some)
        if alone_s is not None:
            found = map(_slowdown, some, alone_s[begin : begin + csv_columns.PIECE])
            last = [f",{line}" for line in _lines(numpy.array(list(found), dtype=numpy.float64))]
        lines = (ids, ",", profiles, ",", dates, ",", states, ",", hosts, last, "\n")
        stream.write(csv_columns.joined(lines, len(some)))


def _lines(rows: NDArray[np.float64]) -> list[str]:
    """Some columns of each line; nan: none."""
    return csv_columns.lines(*rows.T).decode().split("\n")[:-1]


def _slowdown(record: TaskRecord, alone_s: float | None) -> tuple[float | None, float | None]:
    """(time alone, contention slowdown); a task that takes no time either way is not slowed."""
    if alone_s is None or record.execution_s is None:
        return None, None
    if alone_s == 0.0:
        return alone_s, 1.0 if record.execution_s == 0.0 else None
    return alone_s, record.execution_s / alone_s


def record_as_json(record: TaskRecord) -> dict[str, Any]:
    """A record as a JSON object, its keys being the columns of tasks.csv."""
    from ptaskmodel.simulation.records import COLUMNS

    found = {column: getattr(record, name) for column, name in COLUMNS.items()}
    return found | {"hosts": list(record.hosts)}


def summarise(
    simulation: Simulation,
    records: Sequence[TaskRecord],
    wall_time_s: float,
    kernels_s: float,
    inputs: Iterable[str | Path] = (),
) -> dict[str, Any]:
    """What summary.json holds: makespan, counts, choices made, versions, digests of the inputs.

    wall_time_s: how long the simulation took, s; kernels_s: and having its kernels ready (loaded or
    compiled). inputs: the files that it was read from.
    """
    counts = Counter(record.final_state for record in records)
    return {
        "format": FORMAT,
        "makespan": simulation.makespan,
        "tasks": len(records),
        "counts": dict(sorted(counts.items())),
        "events": simulation.events,
        **choices(simulation),
        "end_date": simulation.now,
        "simulation_wall_time_s": wall_time_s,
        "kernels_wall_time_s": kernels_s,
        **provenance(inputs),
    }


def choices(simulation: Simulation) -> dict[str, str]:
    """What a summary says of how the platform was shared."""
    made = {
        "solver": simulation.solver,
        "network_model": simulation.network_model.name,
        "count": simulation.count,
    }
    if simulation.routing is not None:
        made["routing"] = str(simulation.routing)
    return made


def write_results(
    place: Path,
    summary: dict[str, Any],
    records: Iterable[TaskRecord],
    *,
    alone_s: Sequence[float | None] | None = None,
    files: Iterable[str] = (),
) -> tuple[str, ...]:
    """Write tasks.csv and summary.json in an existing directory (see `results.directory`).

    alone_s: as `write_tasks_csv` takes it. files: names of the other files of these results.
    Returns the names of all files.
    """
    with (place / TASKS).open("w", encoding="utf-8", newline="") as stream:
        write_tasks_csv(stream, records, alone_s)
    listed = (SUMMARY, TASKS, *files)
    write_json(place / SUMMARY, {**summary, "files": listed})
    return listed
