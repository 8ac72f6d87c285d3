"""Write the results of tasks: tasks.csv and summary.json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptaskmodel import csv_columns
from ptaskmodel.files import write_json
from ptaskmodel.names import join_names
from ptaskmodel.results.directory import FORMAT, SUMMARY, provenance

if TYPE_CHECKING:
    from ptaskmodel.packets.tasks import PacketSimulation
    from ptaskmodel.simulation.records import TaskRecord
    from ptaskmodel.simulation.simulation import Simulation

TASKS = "tasks.csv"

# The texts of a column that is no number, by the type of the field.
AS_TEXTS: dict[str, Callable[[Iterable[Any]], Iterable[str]]] = {
    "int": lambda numbers: map(str, numbers),
    "str": iter,
    "str | None": lambda texts: (text or "" for text in texts),
    "tuple[str, ...]": lambda names: map(join_names, names),
}
ALONE_COLUMNS = ("time_alone", "slowdown")


def write_tasks_csv(
    stream: IO[str],
    records: Iterable[TaskRecord],
    alone_s: Sequence[float | None] | None = None,
    beside: Mapping[str, Sequence[float | None]] | None = None,
) -> None:
    """One line per task, dates in s to the last digit, empty for None, hosts split by spaces.

    alone_s: the times that the tasks take alone, for two more columns: that time and the contention
    slowdown. beside: more columns of numbers, the last.
    """
    from ptaskmodel.simulation.records import COLUMNS

    records = list(records)
    beside = beside or {}
    columns = (*COLUMNS, *(() if alone_s is None else ALONE_COLUMNS), *beside)
    stream.write(",".join(columns) + "\n")
    for begin in range(0, len(records), csv_columns.PIECE):
        some = records[begin : begin + csv_columns.PIECE]
        parts: list[csv_columns.Column] = []
        for each in COLUMNS.values():
            values = map(attrgetter(each.name), some)
            if each.type == "float | None":
                parts.append(_numbers(values))
            else:
                texts = csv_columns.quoted(AS_TEXTS[str(each.type)](values))
                parts.append(csv_columns.Texts.of(texts))
        if alone_s is not None:
            alone = alone_s[begin : begin + csv_columns.PIECE]
            parts += map(_numbers, zip(*map(_slowdown, some, alone), strict=True))
        parts += (_numbers(all_[begin : begin + csv_columns.PIECE]) for all_ in beside.values())
        stream.write(csv_columns.lines(*parts).decode())


def _numbers(values: Iterable[float | None]) -> NDArray[np.float64]:
    """A column of numbers; None: nan."""
    return np.array(list(values), dtype=np.float64)


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

    return {column: getattr(record, each.name) for column, each in COLUMNS.items()}


def summarise(
    simulation: Simulation | PacketSimulation,
    records: Sequence[TaskRecord],
    wall_time_s: float,
    processor_s: float,
    kernels_s: float,
    inputs: Iterable[str | Path] = (),
    parameters: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What summary.json holds: makespan, counts, choices made, versions, digests of the inputs.

    wall_time_s: how long the simulation took, s; processor_s: the processor's time of it;
    kernels_s: the wall time of having its kernels ready (loaded or compiled). inputs: the files
    that it was read from. parameters: values of options by name; None: not known.
    """
    counts = Counter(record.final_state for record in records)
    return {
        "format": FORMAT,
        "makespan": simulation.makespan_s,
        "tasks": len(records),
        "counts": dict(sorted(counts.items())),
        "events": simulation.events,
        **choices(simulation),
        "end_date": simulation.now,
        "simulation_wall_time_s": wall_time_s,
        "simulation_processor_time_s": processor_s,
        "kernels_wall_time_s": kernels_s,
        **provenance(inputs, parameters),
    }


def choices(simulation: Simulation | PacketSimulation) -> dict[str, Any]:
    """What a summary says of how the platform was shared."""
    made: dict[str, Any] = {"network_model": simulation.network_model.name}
    if simulation.level == "fluid":
        made = {"solver": simulation.solver, **made, "count": simulation.count}
    else:
        made["network_level"] = simulation.level
    if simulation.network_model.wire is not None:
        made["network_parameters"] = simulation.network_model.wire._asdict()
    if simulation.routing is not None:
        made["routing"] = str(simulation.routing)
    return made


def write_results(
    place: Path,
    summary: dict[str, Any],
    records: Iterable[TaskRecord],
    *,
    alone_s: Sequence[float | None] | None = None,
    beside: Mapping[str, Sequence[float | None]] | None = None,
    files: Iterable[str] = (),
) -> tuple[str, ...]:
    """Write tasks.csv and summary.json in an existing directory (see `results.directory`).

    alone_s, beside: as `write_tasks_csv` takes them. files: names of the other files of these
    results. Returns the names of all files.
    """
    with (place / TASKS).open("w", encoding="utf-8", newline="") as stream:
        write_tasks_csv(stream, records, alone_s, beside)
    listed = (SUMMARY, TASKS, *files)
    write_json(place / SUMMARY, {**summary, "files": listed})
    return listed
