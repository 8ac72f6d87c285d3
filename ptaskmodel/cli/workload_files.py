"""Options and functions by which workload commands read and write workloads."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptaskmodel.cli.command import COUNT, Choice, output_option
from ptaskmodel.cli.progress import tell
from ptaskmodel.errors import WorkloadError
from ptaskmodel.workload.formats.table import JOBS, Cleaning, Writing, formats_of

if TYPE_CHECKING:
    from ptaskmodel.workload.jobs import Workload

FORMAT_NAMES = Choice(formats_of(JOBS))


def cleaning_options(command: Any) -> Any:
    """The options that say how a log becomes a workload."""
    for option in (
        click.option(
            "--processors-per-host",
            type=COUNT,
            default=1,
            show_default=True,
            help="Processors of a host, for an SWF log.",
        ),
        click.option("--max-hosts", type=COUNT, help="Leave out larger jobs of an SWF log."),
        click.option(
            "--zero-run-time",
            default="1",
            show_default=True,
            metavar="SECONDS",
            help="Run time given to jobs of 0 s, or 'drop'.",
        ),
        click.option("--no-walltimes", is_flag=True, help="Ignore the requested times of a log."),
    ):
        command = option(command)
    return command


def cleaning_of(
    processors_per_host: int, max_hosts: int | None, zero_run_time: str, no_walltimes: bool
) -> Cleaning:
    """What the options of `cleaning_options` mean."""
    return Cleaning(processors_per_host, _zero(zero_run_time), max_hosts, not no_walltimes)


def read_clean(file: Path, **cleaning: Any) -> Workload:
    from ptaskmodel.workload.reading import read_workload

    return read_workload(file, cleaning_of(**cleaning))


def _zero(text: str) -> float | None:
    if text == "drop":
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < math.inf:
        raise WorkloadError(f"--zero-run-time: '{text}' is neither a number of seconds nor 'drop'")
    return seconds


def write_made(made: Workload, output: Path, kind: str | None, version: int) -> None:
    from ptaskmodel.workload.reading import write_workload

    write_workload(made, output, kind, Writing(version))
    for note in made.notes:
        tell(f"note: {note}")
    click.echo(f"{output}: {len(made.jobs)} jobs, {len(made.profiles)} profiles")


def output_options(command: Any) -> Any:
    """``-o``, its format."""
    for option in (
        click.option("--format", "kind", type=FORMAT_NAMES, help="[default: by the name]"),
        click.option(
            "--batsim-version",
            "version",
            type=click.IntRange(2, 5),
            default=5,
            show_default=True,
        ),
    ):
        command = option(command)
    return command


made_option = output_option(
    "The workload to write; the end of its name chooses the format.", required=True
)
