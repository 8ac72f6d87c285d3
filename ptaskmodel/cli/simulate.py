"""``ptaskmodel simulate``: run the tasks of a file on a platform, show and write the results."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptaskmodel.cli.kernels import ready_kernels
from ptaskmodel.cli.table import text_table
from ptaskmodel.errors import PTaskModelError

if TYPE_CHECKING:
    from ptaskmodel.simulation.refs import TaskRecord
    from ptaskmodel.simulation.simulation import Simulation

SHOWN_ALL = 12
SHOWN_EACH = 5

SOLVERS = ("bmf", "fairbottleneck", "fairbottleneck-corrected", "maxmin")
NETWORK_MODELS = ("L07", "CM02", "LV08")
COUNTS = ("task", "flow", "pair")
TRACES = ("csv", "parquet", "paje", "perfetto")


@click.command()
@click.argument("platform_file", metavar="PLATFORM", type=click.Path(path_type=Path))
@click.argument("tasks_file", metavar="TASKS", type=click.Path(path_type=Path))
@click.option("--solver", type=click.Choice(SOLVERS), help="Who gets how much  [default: bmf]")
@click.option(
    "--network-model",
    type=click.Choice(NETWORK_MODELS),
    help="L07: parallel tasks; the others: flows  [default: as the platform says, else L07]",
)
@click.option(
    "--count",
    type=click.Choice(COUNTS),
    default="task",
    show_default=True,
    help="Who counts as one competitor on a shared link.",
)
@click.option(
    "--calibration",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Calibrated parameters (of `calibrate --model ptask`) for the tasks without competitors.",
)
@click.option(
    "--group",
    metavar="LABEL=VALUE,...",
    help="The group of the calibration, if it has several.",
)
@click.option("--until", type=float, metavar="T", help="Stop at this date, s.")
@click.option(
    "--output",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Write tasks.csv and summary.json there (earlier results are replaced).",
)
@click.option(
    "--trace",
    "traces",
    multiple=True,
    type=click.Choice(TRACES),
    help="Also write who used what and when (may be given several times; needs --output).",
)
@click.option(
    "--attribution",
    is_flag=True,
    help="Also write what limited each task, its slowdown, and the utilisation (needs --output).",
)
@click.option("--json", "as_json", is_flag=True, help="Print summary and records as JSON.")
def simulate(
    platform_file: Path,
    tasks_file: Path,
    solver: str | None,
    network_model: str | None,
    count: str,
    calibration: Path | None,
    group: str | None,
    until: float | None,
    output: Path | None,
    traces: tuple[str, ...],
    attribution: bool,
    as_json: bool,
) -> None:
    """Run the tasks of TASKS (JSON) on PLATFORM (SimGrid XML)."""
    from ptaskmodel.results.output import check_output_directory
    from ptaskmodel.workload.tasks_json import read_tasks_file

    if until is not None and not 0 <= until < float("inf"):
        raise PTaskModelError(f"--until: {until!r} is not a date; give a number of seconds from 0")
    if output is not None:
        check_output_directory(output)
    elif traces or attribution:
        option = "--trace" if traces else "--attribution"
        raise PTaskModelError(f"{option} writes files; give --output DIR")
    tasks, read_files = read_tasks_file(tasks_file)

    from ptaskmodel.platform import load_platform

    platform = load_platform(platform_file)
    if calibration is not None:
        from ptaskmodel.calibration import apply, parse_labels

        platform, tasks = apply(calibration, platform, tasks, parse_labels(group or ""))
        read_files = [*read_files, calibration]
    elif group is not None:
        raise PTaskModelError("--group chooses a group of a calibration; give --calibration FILE")
    ready_kernels()

    from ptaskmodel.results.records import record_as_json, summarise
    from ptaskmodel.simulation.simulation import Simulation

    simulation = Simulation(platform, solver=solver, network_model=network_model, count=count)
    simulation.add_all(tasks)

    def run() -> tuple[dict[str, Any], list[TaskRecord]]:
        began = time.perf_counter()
        _run(simulation, len(tasks), until, show_progress=not as_json)
        took_s = time.perf_counter() - began
        records = simulation.records()
        return summarise(simulation, records, took_s, [platform_file, *read_files]), records

    if output is None:
        summary, records = run()
    else:
        summary, records = _run_and_write(simulation, run, output, traces, attribution)
    if as_json:
        whole = {"summary": summary, "records": [record_as_json(r) for r in records]}
        click.echo(json.dumps(whole, indent=2, allow_nan=False))
    else:
        click.echo(describe(summary, records, output))


def _run_and_write(
    simulation: Simulation,
    run: Callable[[], tuple[dict[str, Any], list[TaskRecord]]],
    output: Path,
    traces: Sequence[str],
    attribution: bool,
) -> tuple[dict[str, Any], list[TaskRecord]]:
    """Run, recording what is asked for, and write the results; returns summary and records."""
    from ptaskmodel.recording.alone import times_alone
    from ptaskmodel.results.observing import Observation
    from ptaskmodel.results.output import whole_directory
    from ptaskmodel.results.records import write_results

    with whole_directory(output) as place:
        with Observation(simulation, place, traces, attribution) as observation:
            summary, records = run()
        alone_s = times_alone(simulation) if attribution else None
        write_results(place, summary, records, alone_s=alone_s, files=observation.files)
    return summary, records


def _run(simulation: Simulation, total: int, until: float | None, *, show_progress: bool) -> None:
    """Run, with a bar on stderr where that is a terminal."""
    if not (show_progress and sys.stderr.isatty()):
        simulation.run(until)
        return
    with click.progressbar(
        length=total, label="simulating", file=sys.stderr, show_eta=False, show_percent=True
    ) as bar:
        simulation.run(until, progress=_advance(bar))
        bar.update(total - bar.pos)


def _advance(bar: Any) -> Callable[[float, int, int], None]:
    def progress(now_s: float, ended: int, total: int) -> None:
        bar.label = f"{now_s:.6g} s"
        bar.update(ended - bar.pos)

    return progress


def describe(summary: dict[str, Any], records: Sequence[TaskRecord], output: Path | None) -> str:
    """The results for a reader: tables of the slowest and the latest tasks, and the summary."""
    if len(records) <= SHOWN_ALL:
        parts = [_task_table(records)]
    else:
        slowest = _largest(records, "execution_time")
        latest = _largest(records, "finish_time")
        parts = [
            f"The {len(slowest)} slowest tasks\n{_task_table(slowest)}",
            f"The {len(latest)} latest tasks\n{_task_table(latest)}",
        ]
    counts = ", ".join(f"{number} {state}" for state, number in summary["counts"].items())
    lines = [
        ("makespan", f"{summary['makespan']:.9g} s"),
        ("tasks", f"{summary['tasks']}: {counts}"),
        ("model", f"{summary['network_model']}, solver {summary['solver']}"),
        ("events", f"{summary['events']} in {summary['simulation_wall_time_s']:.3g} s"),
    ]
    if output is not None:
        lines.append(("written", f"{output}/tasks.csv and {output}/summary.json"))
    parts.append("\n".join(f"{name:<10}{value}" for name, value in lines))
    return "\n\n".join(parts)


def _largest(records: Sequence[TaskRecord], field: str) -> list[TaskRecord]:
    """The records with the largest values of a field, largest first, ties in order."""
    known = [record for record in records if getattr(record, field) is not None]
    return sorted(known, key=lambda record: -getattr(record, field))[:SHOWN_EACH]


def _task_table(records: Sequence[TaskRecord]) -> str:
    header = ("task", "profile", "start (s)", "finish (s)", "execution (s)", "state", "hosts")
    rows = [
        (
            record.task_id,
            record.profile or "",
            _date(record.start_time),
            _date(record.finish_time),
            _date(record.execution_time),
            record.final_state,
            _hosts(record.hosts),
        )
        for record in records
    ]
    return text_table(header, rows, right=(2, 3, 4))


def _date(value: float | None) -> str:
    return "" if value is None else f"{value:.9g}"


def _hosts(names: tuple[str, ...]) -> str:
    return " ".join(names) if len(names) <= 3 else f"{names[0]} ... {names[-1]} ({len(names)})"
