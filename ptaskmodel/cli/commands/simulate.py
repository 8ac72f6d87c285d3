"""``ptaskmodel simulate`` and ``tasks``: run the tasks of a file on a platform, or check it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ptaskmodel.cli.command import Command, Group
from ptaskmodel.cli.parameters import (
    PATH,
    directory_option,
    json_option,
    options_of,
    platform_argument,
)
from ptaskmodel.errors import WorkloadError
from ptaskmodel.runs.options import SIMULATE


@click.command(cls=Command)
@platform_argument
@click.argument("tasks_file", metavar="TASKS", type=PATH)
@options_of(SIMULATE)
@directory_option("Write tasks.csv and summary.json there (earlier results are replaced).")
@json_option
def simulate(
    platform_file: Path, tasks_file: Path, output: Path | None, as_json: bool, **options: Any
) -> None:
    """Run the tasks of TASKS (JSON) on PLATFORM (SimGrid XML)."""
    from ptaskmodel.cli.progress import told_progress
    from ptaskmodel.cli.show import run_as_json, run_text
    from ptaskmodel.files import json_text
    from ptaskmodel.runs.simulate import simulate_into, simulation_inputs

    found = simulation_inputs({"platform": platform_file, "tasks": tasks_file, **options})
    with told_progress(len(found.tasks), "tasks") as progress:
        run = simulate_into(output, **found._asdict(), progress=progress)
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
    help="Also check that this platform has the hosts and routes, and estimate times.",
)
def validate(file: Path, platform_file: Path | None) -> None:
    """Check the tasks of FILE; list what is legal but surely wrong, and count the tasks."""
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
