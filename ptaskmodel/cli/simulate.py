"""``ptaskmodel simulate``: run the tasks of a file on a platform, show and write the results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ptaskmodel.cli.command import Command
from ptaskmodel.cli.parameters import (
    NOT_NEGATIVE,
    PATH,
    calibration_options,
    check_group,
    directory_option,
    model_options,
    platform_argument,
    recording_options,
)


@click.command(cls=Command)
@platform_argument
@click.argument("tasks_file", metavar="TASKS", type=PATH)
@model_options
@calibration_options("the tasks without competitors")
@click.option("--until", type=NOT_NEGATIVE, metavar="T", help="Stop at this date, s.")
@directory_option("Write tasks.csv and summary.json there (earlier results are replaced).")
@recording_options("task")
@click.option(
    "--neighbours",
    is_flag=True,
    help="Also write who slowed whom, and on which host or link: interference.csv.",
)
@click.option(
    "--checkpoint-every",
    type=NOT_NEGATIVE,
    metavar="SECONDS",
    help="Write a checkpoint this often (wall time), beside the results: OUTPUT.checkpoint.",
)
@click.option(
    "--resume", is_flag=True, help="Go on from the checkpoint, if there is one, to the same bits."
)
@click.option("--json", "as_json", is_flag=True, help="Print summary and records as JSON.")
def simulate(
    platform_file: Path,
    tasks_file: Path,
    calibration: Path | None,
    group: str | None,
    output: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Run the tasks of TASKS (JSON) on PLATFORM (SimGrid XML)."""
    check_group(calibration, group)
    from ptaskmodel.workload.formats.tasks_json import read_tasks_file

    tasks, files = read_tasks_file(tasks_file)

    from ptaskmodel.platform import load_platform

    platform = load_platform(platform_file)
    if calibration is not None:
        from ptaskmodel.calibration import apply, parse_labels

        platform, tasks = apply(calibration, platform, tasks, parse_labels(group or ""))
        files = [*files, calibration]

    from ptaskmodel.cli.progress import told_progress
    from ptaskmodel.cli.show import run_as_json, run_text
    from ptaskmodel.files import json_text
    from ptaskmodel.results.runs import SimulationOptions, simulate_into

    if options["energy"]:
        from ptaskmodel.energy.tables import power_tables

        power_tables(platform)  # what is wrong with it is said before anything is compiled
    with told_progress(len(tasks), "tasks") as progress:
        run = simulate_into(
            output,
            platform,
            tasks,
            SimulationOptions(**options),
            inputs=[platform_file, *files],
            progress=progress,
        )
    if as_json:
        click.echo(json_text(run_as_json(run)))
    else:
        click.echo(run_text(run))
