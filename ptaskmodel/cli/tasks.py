"""``ptaskmodel tasks``: check a tasks file, print its schema."""

from __future__ import annotations

from pathlib import Path

import click

from ptaskmodel.errors import WorkloadError


@click.group()
def tasks() -> None:
    """Check a tasks file, or print its schema."""


@tasks.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--platform",
    "platform_file",
    metavar="PLATFORM",
    type=click.Path(path_type=Path),
    help="Check too that this platform has the hosts.",
)
def validate(file: Path, platform_file: Path | None) -> None:
    """Check the tasks of FILE; say how many there are."""
    from ptaskmodel.workload.tasks_json import load_tasks

    loaded = load_tasks(file)
    names = {name for task in loaded for name in task.hosts}
    if platform_file is not None:
        from ptaskmodel.platform import load_platform

        known = {host.name for host in load_platform(platform_file).hosts}
        for k, task in enumerate(loaded):
            missing = next((name for name in task.hosts if name not in known), None)
            if missing is not None:
                raise WorkloadError(
                    f"{file}: /tasks/{k}/hosts: {missing!r} is not a host of {platform_file}; "
                    "give one of its hosts"
                )
    first, last = min(t.start_s for t in loaded), max(t.start_s for t in loaded)
    dates = f"start at {first:g} s" if first == last else f"start from {first:g} to {last:g} s"
    count = "1 task" if len(loaded) == 1 else f"{len(loaded)} tasks"
    click.echo(f"{file}: {count} on {len(names)} hosts, {dates}")


@tasks.command()
def schema() -> None:
    """Print the JSON Schema of tasks files."""
    from importlib import resources

    text = resources.files("ptaskmodel.workload").joinpath("tasks.schema.json")
    click.echo(text.read_text(encoding="utf-8"), nl=False)
