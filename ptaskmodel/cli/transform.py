"""``ptaskmodel workload transform``: workloads made of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ptaskmodel.cli.command import Group
from ptaskmodel.cli.parameters import COUNT, NOT_NEGATIVE, PATH, POSITIVE, SEED, Choice
from ptaskmodel.cli.workload_files import (
    cleaning_options,
    made_option,
    output_options,
    read_clean,
    write_made,
)
from ptaskmodel.errors import WorkloadError


@click.group(cls=Group)
def transform() -> None:
    """Make a workload of another: shuffle, sample, shrink, scale its load, resample.

    Each reads SOURCE, writes another and says in its notes what was done.
    """


def both_ends(command: Any) -> Any:
    """The arguments and options that all of these have."""
    for option in (
        output_options,
        cleaning_options,
        made_option,
        click.argument("source", type=PATH),
    ):
        command = option(command)
    return command


@transform.command()
@both_ends
@click.option("--seed", type=SEED, default=0, show_default=True)
@click.option(
    "--dates",
    type=Choice(["even", "kept"]),
    default="even",
    show_default=True,
    help="All gaps alike, or the dates of SOURCE.",
)
def shuffle(
    source: Path,
    output: Path,
    kind: str | None,
    version: int,
    seed: int,
    dates: str,
    **cleaning: Any,
) -> None:
    """The jobs in a random order of submission, over the same time."""
    from ptaskmodel.workload.transforms.shuffling import shuffled

    write_made(shuffled(read_clean(source, **cleaning), seed, dates), output, kind, version)


@transform.command()
@both_ends
@click.option("--ratio", type=POSITIVE, required=True, help="One job out of so many; 1 or more.")
@click.option(
    "--method", type=Choice(["systematic", "work"]), default="systematic", show_default=True
)
@click.option(
    "--offset",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Which one of them, for --method systematic: 0 and up, below RATIO.",
)
@click.option(
    "--window",
    type=NOT_NEGATIVE,
    default=60.0,
    show_default=True,
    help="Of walltimes that count as alike, s, for --method work.",
)
@click.option("--keep-dates", is_flag=True, help="Do not divide dates by RATIO.")
def sample(
    source: Path,
    output: Path,
    kind: str | None,
    version: int,
    ratio: float,
    method: str,
    offset: int,
    window: float,
    keep_dates: bool,
    **cleaning: Any,
) -> None:
    """One job out of every RATIO, few and many hosts, short and long, in their proportions."""
    from ptaskmodel.workload.transforms.sampling import sampled

    made = sampled(
        read_clean(source, **cleaning),
        ratio,
        method=method,
        offset=offset,
        window_s=window,
        keep_dates=keep_dates,
    )
    write_made(made, output, kind, version)


@transform.command()
@both_ends
@click.option("--factor", type=POSITIVE, required=True, help="Of all times, such as 0.1.")
def shrink(
    source: Path, output: Path, kind: str | None, version: int, factor: float, **cleaning: Any
) -> None:
    """All times multiplied by FACTOR: dates, run times, walltimes, think times."""
    from ptaskmodel.workload.transforms.scaling import shrunk

    write_made(shrunk(read_clean(source, **cleaning), factor), output, kind, version)


@transform.command()
@both_ends
@click.option("--factor", type=POSITIVE, help="So many times the load.")
@click.option("--to", "target", type=POSITIVE, help="The offered load to reach, such as 0.9.")
@click.option("--machine-hosts", type=COUNT, help="For --to  [default: as the workload says]")
@click.option("--by", type=Choice(["arrivals", "run-times"]), default="arrivals", show_default=True)
def load(
    source: Path,
    output: Path,
    kind: str | None,
    version: int,
    factor: float | None,
    target: float | None,
    machine_hosts: int | None,
    by: str,
    **cleaning: Any,
) -> None:
    """The workload at another load: arrivals closer together, or longer run times."""
    from ptaskmodel.workload.transforms.scaling import loaded, offered_load

    if (factor is None) == (target is None):
        raise WorkloadError("give either --factor or --to, the load to reach")
    made = read_clean(source, **cleaning)
    if target is not None:
        factor = target / offered_load(made, machine_hosts)
    assert factor is not None
    write_made(loaded(made, factor, by), output, kind, version)


@transform.command()
@both_ends
@click.option("--weeks", type=COUNT, required=True, help="How long the new workload is.")
@click.option("--seed", type=SEED, default=0, show_default=True)
@click.option("--by", type=Choice(["users", "weeks"]), default="users", show_default=True)
@click.option(
    "--factor", type=POSITIVE, default=1.0, show_default=True, help="As many users, so many times."
)
def resample(
    source: Path,
    output: Path,
    kind: str | None,
    version: int,
    weeks: int,
    seed: int,
    by: str,
    factor: float,
    **cleaning: Any,
) -> None:
    """A new workload that looks like SOURCE: its users drawn again, week by week."""
    from ptaskmodel.workload.transforms.resampling import resampled

    made = resampled(read_clean(source, **cleaning), weeks, seed, by=by, factor=factor)
    write_made(made, output, kind, version)
