"""``ptaskmodel workload``: show, convert, generate, cut and transform batch workloads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ptaskmodel.cli.command import Choice, Group
from ptaskmodel.cli.parameters import (
    BANDWIDTH,
    COUNT,
    NOT_NEGATIVE,
    PATH,
    POSITIVE,
    SEED,
    SPEED,
    cleaning_of,
    cleaning_options,
    made_option,
    options_of,
    output_option,
    output_options,
    read_clean,
    write_made,
)
from ptaskmodel.engine.options import PATTERN, RATIO, profiles_row
from ptaskmodel.errors import WorkloadError
from ptaskmodel.style.text import number

LABELS = {
    "machine_hosts": "hosts of the machine",
    "kinds": "kinds of jobs",
    "submitted_over_s": "submitted over (s)",
    "with_walltime": "with a walltime",
    "hosts_per_job": "hosts per job",
    "run_time_s": "run time (s)",
    "offered_load": "offered load",
    "notes": "note",
}


@click.group(cls=Group)
def transform() -> None:
    """Make one workload from another: shuffle, sample, shrink, scale its load, resample.

    Each command reads SOURCE, writes another workload and records in its notes what was done.
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
    help="even: equal gaps; kept: the dates of SOURCE.",
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
    """Submit the jobs in a random order, over the same time."""
    from ptaskmodel.workload.sampling import shuffled

    write_made(shuffled(read_clean(source, **cleaning), seed, dates), output, kind, version)


@transform.command()
@both_ends
@click.option("--ratio", type=POSITIVE, required=True, help="Keep one job in this many; 1 or more.")
@click.option(
    "--method", type=Choice(["systematic", "work"]), default="systematic", show_default=True
)
@click.option(
    "--offset",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Which job of each RATIO, for --method systematic: from 0 to below RATIO.",
)
@click.option(
    "--window",
    type=NOT_NEGATIVE,
    default=60.0,
    show_default=True,
    help="Walltimes that differ by less than this count as equal, s, for --method work.",
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
    """Keep one of every RATIO jobs, in the proportions of sizes and lengths."""
    from ptaskmodel.workload.sampling import sampled

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
@click.option(
    "--factor", type=POSITIVE, required=True, help="Multiply all times by this, such as 0.1."
)
def shrink(
    source: Path, output: Path, kind: str | None, version: int, factor: float, **cleaning: Any
) -> None:
    """Multiply all times by FACTOR: dates, run times, walltimes, think times."""
    from ptaskmodel.workload.scaling import shrunk

    write_made(shrunk(read_clean(source, **cleaning), factor), output, kind, version)


@transform.command()
@both_ends
@click.option("--factor", type=POSITIVE, help="Multiply the load by this.")
@click.option("--to", "target", type=POSITIVE, help="Reach this offered load, such as 0.9.")
@click.option(
    "--machine-hosts",
    type=COUNT,
    help="Hosts of the machine, for --to  [default: as the workload says]",
)
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
    """Change the load: arrivals closer together, or longer run times."""
    from ptaskmodel.workload.scaling import loaded, offered_load

    if (factor is None) == (target is None):
        raise WorkloadError("give either --factor or --to, the load to reach")
    made = read_clean(source, **cleaning)
    if target is not None:
        factor = target / offered_load(made, machine_hosts)
    assert factor is not None
    write_made(loaded(made, factor, by), output, kind, version)


@transform.command()
@both_ends
@click.option("--weeks", type=COUNT, required=True, help="Length of the new workload.")
@click.option("--seed", type=SEED, default=0, show_default=True)
@click.option("--by", type=Choice(["users", "weeks"]), default="users", show_default=True)
@click.option(
    "--factor",
    type=POSITIVE,
    default=1.0,
    show_default=True,
    help="Multiply the number of users by this.",
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
    """Make a workload that resembles SOURCE: its users drawn again, week by week."""
    from ptaskmodel.workload.sampling import resampled

    made = resampled(read_clean(source, **cleaning), weeks, seed, by=by, factor=factor)
    write_made(made, output, kind, version)


@click.group(cls=Group)
def workload() -> None:
    """Inspect, convert, generate, cut and transform workloads (Batsim JSON, SWF)."""


workload.add_command(transform)


@workload.command()
@click.argument("file", type=PATH)
@cleaning_options
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def info(file: Path, as_json: bool, **cleaning: Any) -> None:
    """Summarise a workload, and what cleaning leaves out of a log."""
    from ptaskmodel.workload.jobs import facts_of

    facts = facts_of(read_clean(file, **cleaning))
    if as_json:
        click.echo(json.dumps(facts, indent=2))
        return
    for key, value in facts.items():
        values = value if isinstance(value, list) else [value]
        for one in values:
            click.echo(f"{LABELS.get(key, key):<22}{_text(one)}")


def _text(value: Any) -> str:
    """A value of the facts for readers, with three digits of a statistic."""
    if isinstance(value, dict) and "mean" not in value:
        return ", ".join(f"{one} {key}" for key, one in value.items())
    if isinstance(value, dict):
        return ", ".join(f"{key} {number(one)}" for key, one in value.items())
    if isinstance(value, float):
        return number(value)
    return "–" if value is None else str(value)


@workload.command()
@click.argument("source", type=PATH)
@made_option
@cleaning_options
@output_options
@options_of((profiles_row("as-given", "ptask"), RATIO, PATTERN))
@click.option("--speed", type=SPEED, help="Speed of a host, such as 25Gf, for --profiles ptask.")
@click.option(
    "--bandwidth",
    type=BANDWIDTH,
    help="Bandwidth of a network card, such as 10Gbps, for --profiles ptask.",
)
@click.option(
    "--platform",
    "platform_file",
    metavar="FILE",
    type=PATH,
    help="SimGrid XML: take both from it, as `batch --profiles ptask` does.",
)
def convert(
    source: Path,
    output: Path,
    kind: str | None,
    version: int,
    profiles: str,
    speed: float | None,
    bandwidth: float | None,
    platform_file: Path | None,
    ratio: float,
    pattern: str,
    **cleaning: Any,
) -> None:
    """Convert SOURCE: SWF to Batsim or back, delays to parallel tasks."""
    made = read_clean(source, **cleaning)
    if profiles == "ptask":
        from ptaskmodel.workload.ptask_rule import ptask_profiles

        if platform_file is not None:
            of_platform = _speed_and_bandwidth(platform_file)
            speed, bandwidth = speed or of_platform[0], bandwidth or of_platform[1]
        if speed is None or bandwidth is None:
            raise WorkloadError(
                "--profiles ptask: give --speed and --bandwidth of a host (such as 25Gf, 10Gbps), "
                "or --platform FILE"
            )
        made = ptask_profiles(
            made, speed_flops=speed, bandwidth_Bps=bandwidth, ratio=ratio, pattern=pattern
        )
    write_made(made, output, kind, version)


def _speed_and_bandwidth(platform_file: Path) -> tuple[float, float]:
    """Of the first host that runs jobs, flop/s, and of its network card, B/s."""
    from ptaskmodel.batch.machine.machine import machine_of
    from ptaskmodel.platform.reader.xml import load_platform

    machine = machine_of(load_platform(platform_file))
    return machine.platform.host(machine.names[0]).speed_flops, machine.card_Bps()


@workload.group()
def generate() -> None:
    """Generate a workload by a model."""


@generate.command()
@made_option
@click.option("--jobs", default=1000, show_default=True)
@click.option("--hosts", default=128, show_default=True, help="Hosts of the machine.")
@click.option("--seed", type=SEED, default=0, show_default=True)
@click.option("--type", "job_type", type=Choice(["all", "batch", "interactive"]), default="all")
@click.option(
    "--pace",
    type=POSITIVE,
    default=1.0,
    show_default=True,
    help="Divide the gaps between arrivals by this.",
)
@click.option(
    "--walltime-factor", type=POSITIVE, help="Walltime over run time  [default: no walltimes]"
)
@output_options
def lublin(
    output: Path,
    jobs: int,
    hosts: int,
    seed: int,
    job_type: str,
    pace: float,
    walltime_factor: float | None,
    kind: str | None,
    version: int,
) -> None:
    """Use the model of Lublin and Feitelson (2003)."""
    from ptaskmodel.workload.models import LUBLIN_TYPES
    from ptaskmodel.workload.models import lublin as model

    made = model(
        jobs,
        hosts,
        seed,
        model=LUBLIN_TYPES[job_type],
        pace=pace,
        walltime_factor=walltime_factor,
    )
    write_made(made, output, kind, version)


@generate.command()
@click.argument("kinds_file", metavar="KINDS", type=PATH)
@made_option
@click.option("--jobs", default=1000, show_default=True)
@click.option("--seed", type=SEED, default=0, show_default=True)
@click.option("--shape", type=POSITIVE, default=1.0, show_default=True)
@click.option("--scale", type=POSITIVE, default=60.0, show_default=True, help="s.")
@output_options
def weibull(
    kinds_file: Path,
    output: Path,
    jobs: int,
    seed: int,
    shape: float,
    scale: float,
    kind: str | None,
    version: int,
) -> None:
    """Draw Weibull arrivals of kinds of jobs: those of KINDS, a Batsim workload.

    Each job of KINDS is a kind; its field "weight" is its relative frequency (1 by default).
    """
    from ptaskmodel.workload.formats.batsim import read_batsim
    from ptaskmodel.workload.models import kinds_of
    from ptaskmodel.workload.models import weibull as model

    source = read_batsim(kinds_file)
    kinds = kinds_of(source)
    made = model(jobs, kinds, seed, shape=shape, scale_s=scale, hosts=source.num_hosts)
    write_made(made, output, kind, version)


@workload.command()
@click.argument("source", type=PATH)
@output_option("Write a window to this file  [default: list all windows]")
@cleaning_options
@output_options
@click.option("--days", type=POSITIVE, default=7.0, show_default=True, help="Length of a window.")
@click.option(
    "--step-days",
    type=POSITIVE,
    default=1.0,
    show_default=True,
    help="Time from one window to the next.",
)
@click.option("--min-utilisation", type=NOT_NEGATIVE, default=0.7, show_default=True)
@click.option(
    "--machine-hosts", type=COUNT, help="Hosts of the machine  [default: as the workload says]"
)
@click.option(
    "--pick", default="first", show_default=True, help="Which window: first, busiest or a number."
)
def extract(
    source: Path,
    output: Path | None,
    kind: str | None,
    version: int,
    days: float,
    step_days: float,
    min_utilisation: float,
    machine_hosts: int | None,
    pick: str,
    **cleaning: Any,
) -> None:
    """Cut a busy window out of SOURCE; without --output, list the windows."""
    from ptaskmodel.workload.scaling import DAY_S, cut_workload, picked, windows_of

    made = read_clean(source, **cleaning)
    windows = windows_of(
        made,
        source,
        cleaning_of(**cleaning),
        length_s=days * DAY_S,
        step_s=step_days * DAY_S,
        min_utilisation=min_utilisation,
        machine_hosts=machine_hosts,
    )
    if not windows:
        raise WorkloadError(
            f"{source}: no window of {days:g} days has a utilisation of {min_utilisation:g}: "
            "lower --min-utilisation or --days"
        )
    if output is None:
        for k, window in enumerate(windows):
            click.echo(
                f"{k:>4}  from {window.start_s:.0f} s  utilisation {window.utilisation:.3f}  "
                f"{window.jobs} jobs"
            )
        return
    write_made(cut_workload(made, picked(windows, pick)), output, kind, version)
