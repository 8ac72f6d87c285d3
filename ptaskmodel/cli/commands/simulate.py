"""``ptaskmodel simulate``: run the tasks of a file on a platform, show and write the results.

``ptaskmodel tasks``: check a tasks file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ptaskmodel.cli.command import Command, Group
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
from ptaskmodel.errors import WorkloadError


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
    from ptaskmodel.runs.simulate import SimulationOptions, simulate_into

    if options["energy"]:
        from ptaskmodel.energy.meter import power_tables

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


@click.group(cls=Group)
def tasks() -> None:
    """Check a tasks file."""


@tasks.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--platform",
    "platform_file",
    metavar="PLATFORM",
    type=click.Path(path_type=Path),
    help="Check too that this platform has the hosts and routes, and how long it takes.",
)
def validate(file: Path, platform_file: Path | None) -> None:
    """Check the tasks of FILE; list what is legal but surely not meant, say how many there are."""
    from ptaskmodel.files import shown_path
    from ptaskmodel.simulation.checks import check_tasks
    from ptaskmodel.workload.formats.json import read_json
    from ptaskmodel.workload.formats.tasks_json import load_tasks

    loaded = load_tasks(file)
    names = {name for task in loaded for name in task.hosts}
    platform = None
    if platform_file is not None:
        from ptaskmodel.platform import load_platform

        platform = load_platform(platform_file)
        known = {host.name for host in platform.hosts}
        for k, task in enumerate(loaded):
            missing = next((name for name in task.hosts if name not in known), None)
            if missing is not None:
                raise WorkloadError(
                    f"{shown_path(file)}: /tasks/{k}/hosts: {missing!r} is not a host of "
                    f"{shown_path(platform_file)}; give one of its hosts"
                )
    findings = check_tasks(read_json(file), loaded, platform)
    name = shown_path(file)
    for finding in findings:
        click.echo(f"{name}: {finding.pointer}: {finding.kind}: {finding.text}")
    first, last = min(t.start_s for t in loaded), max(t.start_s for t in loaded)
    dates = f"start at {first:g} s" if first == last else f"start from {first:g} to {last:g} s"
    count = "1 task" if len(loaded) == 1 else f"{len(loaded)} tasks"
    warnings = f", {len(findings)} warning{'s' * (len(findings) != 1)}" if findings else ""
    click.echo(f"{name}: {count} on {len(names)} hosts, {dates}{warnings}")
