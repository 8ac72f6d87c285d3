"""What a parallel task makes of an application, against its replay: how near, and at what cost.

The same application on the same hosts, alone and beside endless flows: replayed message by message,
and as parallel tasks that know less and less of its order.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ptaskmodel.apps.disturbance import Pairs, disturbed
from ptaskmodel.apps.interference import connection_work
from ptaskmodel.apps.trace_works import WindowSums, bundle, phases_at_collectives
from ptaskmodel.errors import SimulationError
from ptaskmodel.files import write_json
from ptaskmodel.replay import Replay
from ptaskmodel.results.drawing import save
from ptaskmodel.results.output import FORMAT, SUMMARY, whole_directory
from ptaskmodel.results.records import provenance
from ptaskmodel.results.trace_comparison_plot import comparison_figure
from ptaskmodel.simulation.simulation import Simulation
from ptaskmodel.workload.tasks import Task
from ptaskmodel.workload.works import SequenceWork

if TYPE_CHECKING:
    from ptaskmodel.platform import Platform
    from ptaskmodel.workload.ti_traces import Trace

TABLE, PICTURE = "comparison.csv", "comparison.png"
REPLAY, BUNDLE, COLLECTIVES = "replay", "bundle", "collectives"
# What takes less is done again, s: a first time is mostly that of a cold processor.
SHORT_S = 0.5


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How to simulate: the replay by ``network_model`` and ``replay_solver``, as `replay` has
    them; tasks (and the flows beside them) by L07 with ``solver`` and ``count``, as `Simulation`.
    """

    network_model: str | None = None
    replay_solver: str | None = None
    solver: str | None = None
    count: str = "task"


@dataclass(frozen=True, slots=True)
class Row:
    """A model beside ``flows`` endless flows of each pair: when the application ends.

    error: relative, against the replay beside as many. slowdown: against the same model alone.
    cpu_s: processor time of the simulation, without preparation. events: dates at which something
    happened.
    """

    flows: int
    model: str
    makespan_s: float
    error: float
    slowdown: float
    cpu_s: float
    events: int


COLUMNS = ("flows", "model", "makespan_s", "error", "slowdown", "slowdown_error", "cpu_s", "events")


@dataclass(frozen=True, slots=True, eq=False)
class TraceComparison:
    """Rows of each number of flows, the replay first. what: of a title."""

    what: str
    rows: list[Row] = field(default_factory=list)

    def of(self, model: str) -> list[Row]:
        """The rows of a model, in the order of flows."""
        return [row for row in self.rows if row.model == model]

    @property
    def models(self) -> list[str]:
        return list(dict.fromkeys(row.model for row in self.rows))

    def slowdown_error(self, row: Row) -> float:
        """By how much, relatively, the slowdown differs from that of the replay."""
        (true,) = (other for other in self.of(REPLAY) if other.flows == row.flows)
        return row.slowdown / true.slowdown - 1.0

    def write(self, stream: IO[str]) -> None:
        """Write a CSV file, a line a row."""
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in self.rows:
            values: dict[str, Any] = {name: getattr(row, name, None) for name in COLUMNS}
            values["slowdown_error"] = self.slowdown_error(row)
            writer.writerow(values.values())


# Simulates an application beside some flows: when it ends, and how many events there were.
Run = Callable[[list[tuple[str, str]]], tuple[float, int]]


def compare_trace(
    platform: Platform,
    trace: Trace,
    hosts: Sequence[str],
    *,
    pairs: Pairs = (),
    flows: Iterable[int] = (0,),
    windows: Iterable[int] = (1, 10),
    options: ModelOptions | None = None,
) -> TraceComparison:
    """Replay a trace, rank k on ``hosts[k]``, and run it as parallel tasks: alone, and disturbed.

    pairs: (source, target) hosts between which endless flows are, as many of each as ``flows`` says
    in turn; alone comes first whatever it says. windows: numbers of windows of the replay alone
    that are tried as phases, besides the bundle and the collectives (see `apps.trace_works`).

    Raises as `replay`, and WorkloadError if a bundle cannot be made.
    """
    options = options or ModelOptions()
    replayed = {"model": options.network_model, "solver": options.replay_solver}
    alone = Replay(platform, trace, hosts, **replayed).run()
    tasks = {BUNDLE: Task(tuple(hosts), bundle(trace), "application")}
    phases = phases_at_collectives(trace)
    if isinstance(phases, SequenceWork):
        tasks[COLLECTIVES] = Task(tuple(hosts), phases, "application")
    for count in windows:
        sums = WindowSums(trace, alone.makespan_s, count)
        Replay(platform, trace, hosts, **replayed).run(sums)
        found = sums.windows()
        name = f"{count} window{'s' * (count != 1)}"
        held = 1.0 / found.window_s
        tasks[name] = Task(tuple(hosts), found.work, "application", rate_bound=held)

    def replay_beside(disturbers: list[tuple[str, str]]) -> tuple[float, int]:
        result = disturbed(platform, trace, hosts, disturbers, **replayed).run()
        return result.makespan_s, result.events

    def task_beside(task: Task) -> Run:
        def run(disturbers: list[tuple[str, str]]) -> tuple[float, int]:
            return _task_beside(platform, task, disturbers, options)

        return run

    runs: dict[str, Run] = {REPLAY: replay_beside}
    runs |= {name: task_beside(task) for name, task in tasks.items()}
    made = TraceComparison(f"{trace.ranks} ranks, {alone.messages:,} messages")
    before: dict[str, float] = {}
    for number in sorted({0, *flows} if pairs else {0}):
        true_s = 0.0
        for name, run in runs.items():
            makespan_s, events, cpu_s = _timed(run, [pair for pair in pairs for _ in range(number)])
            true_s = makespan_s if name == REPLAY else true_s
            before.setdefault(name, makespan_s)
            error, slowdown = makespan_s / true_s - 1.0, makespan_s / before[name]
            made.rows.append(Row(number, name, makespan_s, error, slowdown, cpu_s, events))
    return made


def _timed(run: Run, disturbers: list[tuple[str, str]]) -> tuple[float, int, float]:
    """(makespan, events, processor time) of a run; a short one is done twice, the better counts."""
    best_s = float("inf")
    for _ in range(2):
        began = time.process_time()
        makespan_s, events = run(disturbers)
        took_s = time.process_time() - began
        best_s = min(best_s, took_s)
        if took_s > SHORT_S:
            break
    return makespan_s, events, best_s


def _task_beside(
    platform: Platform, task: Task, disturbers: Iterable[tuple[str, str]], options: ModelOptions
) -> tuple[float, int]:
    made = Simulation(platform, solver=options.solver, network_model="L07", count=options.count)
    (own,) = made.add_all([task])
    work = connection_work(1)
    made.add_all([Task(pair, work) for pair in disturbers])
    while own.finish_time is None:
        if not made.run_until_change():
            raise SimulationError(f"task '{own.id}' never ends: it is {own.state}")
    return own.finish_time, made.events


def compare_into(
    directory: str | Path | None,
    platform: Platform,
    trace: Trace,
    hosts: Sequence[str],
    *,
    inputs: Iterable[str | Path] = (),
    **choices: Any,
) -> TraceComparison:
    """`compare_trace`, written in a directory of results: comparison.csv, a picture, summary.json.

    The directory appears once all is written. inputs: the files that platform and trace come from.
    Raises as `compare_trace`, and PTaskModelError if the directory holds anything else.
    """
    if directory is None:
        return compare_trace(platform, trace, hosts, **choices)
    with whole_directory(directory) as place:
        made = compare_trace(platform, trace, hosts, **choices)
        with (place / TABLE).open("w", encoding="utf-8", newline="") as stream:
            made.write(stream)
        save(comparison_figure([made]), place / PICTURE)
        files = [SUMMARY, TABLE, PICTURE]
        summary = {"format": FORMAT, "what": made.what, "files": files, **provenance(list(inputs))}
        write_json(place / SUMMARY, summary)
    return made
