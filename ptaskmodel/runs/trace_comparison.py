"""Compare parallel-task models of an application with its replay: their errors and their costs.

The same application runs on the same hosts, alone and beside endless flows: replayed message by
message, and as parallel tasks that keep less and less of its order.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ptaskmodel.apps.interference import connection_work
from ptaskmodel.apps.trace_works import REPLAY, Pairs, disturbed, tasks_of_trace
from ptaskmodel.errors import SimulationError
from ptaskmodel.files import write_json
from ptaskmodel.mpi.run import Progress, Several
from ptaskmodel.remarks import for_summary, joining, warn
from ptaskmodel.results.directory import FORMAT, SUMMARY, provenance, whole_directory
from ptaskmodel.simulation.simulation import Simulation
from ptaskmodel.style.figures import NoMatplotlib, category, new_figure, save
from ptaskmodel.style.text import unit_of
from ptaskmodel.workload.tasks import Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ptaskmodel.platform import Platform
    from ptaskmodel.workload.traces import Trace

TABLE, PICTURE = "comparison.csv", "comparison.png"
# What takes less is done again, s: a first time is mostly that of a cold processor.
SHORT_S = 0.5
MARKERS = "osDv^<>P"


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How to simulate: the replay by ``network_model``, ``replay_solver`` and ``collectives``, as
    `replay` has them; tasks (and the flows beside them) by L07 with ``solver`` and ``count``, as
    `Simulation`.
    """

    network_model: str | None = None
    replay_solver: str | None = None
    solver: str | None = None
    count: str = "task"
    collectives: Mapping[str, str] = field(default_factory=dict)


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


@dataclass(slots=True, eq=False)
class TraceComparison:
    """Rows of each number of flows, the replay first. what: how large the application is."""

    what: str = ""
    rows: list[Row] = field(default_factory=list)

    def of(self, model: str) -> list[Row]:
        """The rows of a model, in the order of flows."""
        return [row for row in self.rows if row.model == model]

    @property
    def models(self) -> list[str]:
        return list(dict.fromkeys(row.model for row in self.rows))

    def slowdown_error(self, row: Row) -> float:
        """Return the relative error of the slowdown of a `row` against that of the replay."""
        (true,) = (other for other in self.of(REPLAY) if other.flows == row.flows)
        return row.slowdown / true.slowdown - 1.0

    def write(self, stream: IO[str]) -> None:
        """Write the rows to a `stream` as CSV."""
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
    windows: Sequence[int] = (1, 10),
    options: ModelOptions | None = None,
    progress: Progress | None = None,
) -> TraceComparison:
    """Replay a trace, rank k on ``hosts[k]``, and run it as parallel tasks: alone, and disturbed.

    pairs: (source, target) hosts between which endless flows are, as many of each as ``flows`` says
    in turn; alone comes first whatever it says. windows: numbers of windows of the replay alone
    that are tried as phases, besides the bundle and the collectives (see `apps.trace_works`).
    progress: as of `replay`, of the actions of all replays.

    Raises as `replay`, and WorkloadError if a bundle cannot be made.
    """
    options = options or ModelOptions()
    replayed: dict[str, Any] = {
        "model": options.network_model,
        "solver": options.replay_solver,
        "collectives": options.collectives,
    }
    made = TraceComparison()
    beside = sorted({0, *flows} if pairs else {0})
    # Alone, for the windows, and beside each number of flows.
    replays = Several(len(beside) + bool(windows), trace, progress)

    def replay_beside(which: int, disturbers: list[tuple[str, str]]) -> tuple[float, int]:
        replay = disturbed(platform, trace, hosts, disturbers, **replayed)
        result = replay.run(None, replays.replay(which))
        made.what = made.what or f"{trace.ranks} ranks, {result.messages:,} messages"
        return result.makespan_s, result.events

    def add(number: int, name: str, run: Run, true_s: float | None = None) -> float:
        makespan_s, events, cpu_s = _timed(run, [pair for pair in pairs for _ in range(number)])
        error = 0.0 if true_s is None else makespan_s / true_s - 1.0
        before_s = next((row.makespan_s for row in made.rows if row.model == name), makespan_s)
        slowdown = makespan_s / before_s
        made.rows.append(Row(number, name, makespan_s, error, slowdown, cpu_s, events))
        return makespan_s

    alone_s = add(0, REPLAY, partial(replay_beside, 0))
    tasks = tasks_of_trace(
        platform, trace, hosts, alone_s, windows, progress=replays.replay(1), **replayed
    )
    runs = {name: partial(_task_beside, platform, task, options) for name, task in tasks.items()}
    for which, number in enumerate(beside, bool(windows)):
        again = partial(replay_beside, which)
        true_s = add(number, REPLAY, again) if number else alone_s
        for name, run in runs.items():
            add(number, name, run, true_s)
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
    platform: Platform, task: Task, options: ModelOptions, disturbers: list[tuple[str, str]]
) -> tuple[float, int]:
    made = Simulation(platform, solver=options.solver, network_model="L07", count=options.count)
    (own,) = made.add_all([task])
    work = connection_work(1)
    made.add_all([Task(pair, work) for pair in disturbers])
    while own.end_s is None:
        if not made.run_until_change():
            raise SimulationError(
                f"task '{own.id}' never ends (state {own.state}); check that it can run"
            )
    return own.end_s, made.events


@joining()
def compare_into(
    directory: str | Path | None,
    platform: Platform,
    trace: Trace,
    hosts: Sequence[str],
    *,
    inputs: Iterable[str | Path] = (),
    **choices: Any,
) -> TraceComparison:
    """Run `compare_trace` and write comparison.csv, a picture and summary.json into a directory.

    Without matplotlib the picture is omitted, with a warning. The directory appears when complete.
    platform, trace, hosts, choices: as of `compare_trace`. inputs: files that were read. Raises as
    `compare_trace`, and PTaskModelError if the directory holds anything else.
    """
    if directory is None:
        return compare_trace(platform, trace, hosts, **choices)
    with whole_directory(directory) as place:
        made = compare_trace(platform, trace, hosts, **choices)
        with (place / TABLE).open("w", encoding="utf-8", newline="") as stream:
            made.write(stream)
        files = [SUMMARY, TABLE]
        try:
            save(comparison_figure([made]), place / PICTURE)
            files.append(PICTURE)
        except NoMatplotlib as lacking:
            warn(f"{PICTURE} is not drawn: {lacking}")
        summary = {
            "format": FORMAT,
            "what": made.what,
            "files": files,
            "remarks": for_summary(platform.remarks, trace.remarks),
            **provenance(list(inputs)),
        }
        write_json(place / SUMMARY, summary)
    return made


# --- the picture ----------------------------------------------------------------------------------


def comparison_figure(comparisons: Sequence[TraceComparison]) -> Figure:
    """A row for each comparison: when the application ends by each model, and what that costs."""
    figure = new_figure(10.0, 0.6 + 2.9 * len(comparisons))
    for row, made in enumerate(figure.subplots(len(comparisons), 2, squeeze=False)):
        times, costs = made
        _times(times, comparisons[row])
        _costs(costs, comparisons[row])
    return figure


def _times(axes: Any, made: TraceComparison) -> None:
    """Makespan over the number of flows, a line a model; the replay is black and thick."""
    numbers = [row.flows for row in made.rows if row.model == made.rows[0].model]
    span_s = max(row.makespan_s for row in made.rows)
    unit, unit_name = unit_of(span_s, "time")
    for k, model in enumerate(made.models):
        dates = [row.makespan_s / unit for row in made.of(model)]
        axes.plot(range(len(numbers)), dates, label=model, **_style(k))
    axes.set_xticks(range(len(numbers)), [str(number) for number in numbers])
    axes.set_xlabel("endless background flows per pair of hosts")
    axes.set_ylabel(f"ends at ({unit_name})")
    axes.set_ylim(0.0, 1.08 * span_s / unit)
    axes.set_title(made.what, fontsize=10, loc="left")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=8)


def _style(k: int) -> dict[str, Any]:
    if k == 0:
        return {"color": "black", "linewidth": 2.5, "marker": "o", "markersize": 4, "zorder": 1}
    marker = MARKERS[k % len(MARKERS)]
    return {"color": category(k - 1), "linewidth": 1.2, "marker": marker, "markersize": 6,
            "fillstyle": "none", "zorder": 2}  # fmt: skip


def _costs(axes: Any, made: TraceComparison) -> None:
    """Processor time of each model, the mean over the numbers of flows, on a logarithmic axis."""
    means = []
    for model in made.models:
        rows = made.of(model)
        means.append(sum(row.cpu_s for row in rows) / len(rows))
    for k, mean in enumerate(means):
        axes.barh(k, mean, color=_style(k)["color"], height=0.6)
        times = means[0] / mean if mean > 0 else float("inf")
        told = f"{mean:.2g} s" if k == 0 else f"{mean:.2g} s, replay / {times:.2g}"
        axes.annotate(told, (mean, k), xytext=(4, 0), textcoords="offset points", va="center",
                      fontsize=8)  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlim(min(means) / 3, max(means) * 30)
    axes.set_yticks(range(len(means)), made.models)
    axes.invert_yaxis()
    axes.set_xlabel("processor time of the simulation (s)")
