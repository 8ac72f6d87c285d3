"""Write the results of tasks: tasks.csv, summary.json, and what draws, routes and packets leave."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptaskmodel import csv_tables
from ptaskmodel.files import join_names, write_json
from ptaskmodel.results.directory import FORMAT, SUMMARY, provenance
from ptaskmodel.workload.tasks import NUMBER
from ptaskmodel.workload.works import ParallelWork, Work

if TYPE_CHECKING:
    from ptaskmodel.packets.tasks import PacketSimulation
    from ptaskmodel.simulation.records import TaskRecord
    from ptaskmodel.simulation.simulation import Simulation
    from ptaskmodel.workload.tasks import Task

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
    for begin in range(0, len(records), csv_tables.PIECE):
        some = records[begin : begin + csv_tables.PIECE]
        parts: list[csv_tables.Column] = []
        for each in COLUMNS.values():
            values = map(attrgetter(each.name), some)
            if each.type == "float | None":
                parts.append(_numbers(values))
            else:
                texts = csv_tables.quoted(AS_TEXTS[str(each.type)](values))
                parts.append(csv_tables.Texts.of(texts))
        if alone_s is not None:
            alone = alone_s[begin : begin + csv_tables.PIECE]
            parts += map(_numbers, zip(*map(_slowdown, some, alone), strict=True))
        parts += (_numbers(all_[begin : begin + csv_tables.PIECE]) for all_ in beside.values())
        stream.write(csv_tables.lines(*parts).decode())


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


def times_of_loops(
    tasks: Sequence[Task], records: Sequence[TaskRecord]
) -> dict[str, dict[str, float | int]]:
    """How long the requests of each loop took, from first to last: a value for each loop.

    tasks: of a simulation. records: theirs, in the same order. Of each loop: the number of
    ``requests`` and of those ``completed``; of these the mean and quantiles of their times, s
    (``mean_s``, ``p50_s``, ``p90_s``, ``p99_s``), and of the whole what was done between the first
    start and the last end: ``requests_per_s``, ``bytes_per_s``.
    """
    import numpy as np

    found: dict[str, list[int]] = {}
    for k, task in enumerate(tasks):
        if task.profile and task.id and task.id.startswith(task.profile + NUMBER):
            found.setdefault(task.profile, []).append(k)
    summary: dict[str, dict[str, float | int]] = {}
    for name, places in found.items():
        over = [k for k in places if records[k].final_state == "completed"]
        facts: dict[str, float | int] = {"requests": len(places), "completed": len(over)}
        if over:
            times = np.array([records[k].execution_s for k in over])
            facts |= {"mean_s": float(times.mean())}
            facts |= {f"p{part}_s": float(np.percentile(times, part)) for part in (50, 90, 99)}
            began = min(records[k].start_s or 0.0 for k in over)
            took_s = max(records[k].end_s or 0.0 for k in over) - began
            if took_s > 0.0:
                sent = sum(_bytes(tasks[k].work) for k in over)
                facts |= {"requests_per_s": len(over) / took_s, "bytes_per_s": sent / took_s}
        summary[name] = facts
    return summary


def _bytes(work: Work) -> float:
    return float(work.flow_bytes.sum()) if isinstance(work, ParallelWork) else 0.0


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


DRAWS = "draws.csv"
COLUMNS = ("task_id", "draw", "execution_time")
RANGE_COLUMNS = ("execution_low", "execution_high")


def write_draws(place: Path, ids: Sequence[str], durations: NDArray[np.float64]) -> str:
    """Write draws.csv in a directory; returns its name.

    place: the directory. ids: of tasks. durations: shape (draws, tasks), s; nan: it did not end.
    """
    with (place / DRAWS).open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        for draw, row in enumerate(durations.tolist()):
            lines = zip(ids, row, strict=True)
            writer.writerows((name, draw, "" if one != one else one) for name, one in lines)
    return DRAWS


def range_columns(ranges: Iterable[tuple[float, float]]) -> dict[str, list[float | None]]:
    """The columns of tasks.csv that ``ranges``, (low, high) of each task, make; nan: none."""
    pairs = [[None if one != one else one for one in pair] for pair in ranges]
    return {name: [pair[k] for pair in pairs] for k, name in enumerate(RANGE_COLUMNS)}


ROUTES = "routes.csv"
ROUTE_COLUMNS = ("task", "flow", "path")


def write_flow_routes(place: Path, simulation: Simulation) -> str:
    """Write routes.csv, a line for each flow between two hosts; returns its name.

    place: an existing directory. simulation: what has the flows. A path names the links
    crossed; limiters of clusters, which come with their nodes, are left out.
    """
    with (place / ROUTES).open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(ROUTE_COLUMNS)
        writer.writerows(_lines(simulation))
    return ROUTES


def _lines(simulation: Simulation) -> Iterator[tuple[str, int, str]]:
    platform = simulation.platform
    routes = simulation.core.router.flow_routes
    limiters = set(platform.fabric.limiter.values())
    for ref in simulation.tasks():
        name = routes.name(ref.id, ref.task.connection)
        for number, source, target in simulation.flows_of(ref):
            if source != target:
                way = routes.way(name, number, source, target)
                names = (platform.all_links[k].name for k in way.there if k not in limiters)
                yield ref.id, number, join_names(names)


QUEUES, PAUSES = "queues.csv", "pauses.csv"
QUEUE_COLUMNS = ("link", "begin_s", "end_s", "largest_queue_B", "joined_B")
PAUSE_COLUMNS = ("link", "toward", "begin_s", "end_s")


def write_packet_tables(place: Path, simulation: PacketSimulation) -> tuple[str, ...]:
    """Write queues.csv and, if links may be paused, pauses.csv; returns their names.

    place: an existing directory. simulation: what has run, recorded.
    """
    _write(place / QUEUES, QUEUE_COLUMNS, simulation.queues())
    if simulation.network.protocol.by_windows:
        return (QUEUES,)
    _write(place / PAUSES, PAUSE_COLUMNS, simulation.pauses())
    return QUEUES, PAUSES


def _write(path: Path, columns: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
