"""``ptaskmodel workload``: look at, convert, generate and cut batch workloads."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptaskmodel.cli.parameters import (
    COUNT,
    NOT_NEGATIVE,
    PATH,
    POSITIVE,
    SEED,
    Choice,
    profile_options,
)
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
            help="Of an SWF log.",
        ),
        click.option("--max-hosts", type=COUNT, help="Leave out larger jobs of an SWF log."),
        click.option(
            "--zero-run-time",
            default="1",
            show_default=True,
            metavar="SECONDS",
            help="How long jobs of 0 s last, or 'drop'.",
        ),
        click.option("--no-walltimes", is_flag=True, help="Forget the requested times of a log."),
    ):
        command = option(command)
    return command


def _read(
    file: Path,
    processors_per_host: int,
    max_hosts: int | None,
    zero_run_time: str,
    no_walltimes: bool,
) -> Workload:
    from ptaskmodel.workload.reading import read_workload

    cleaning = Cleaning(processors_per_host, _zero(zero_run_time), max_hosts, not no_walltimes)
    return read_workload(file, cleaning)


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


@click.group()
def workload() -> None:
    """Look at, convert, generate and cut workloads (Batsim JSON, SWF)."""


@workload.command()
@click.argument("file", type=PATH)
@cleaning_options
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def info(file: Path, as_json: bool, **cleaning: Any) -> None:
    """Say what is in a workload, and what cleaning leaves out of a log."""
    from ptaskmodel.workload.facts import facts_of

    facts = facts_of(_read(file, **cleaning))
    if as_json:
        click.echo(json.dumps(facts, indent=2))
        return
    for key, value in facts.items():
        values = value if isinstance(value, list) else [value]
        for one in values:
            click.echo(f"{key:<22}{_text(one)}")


def _text(value: Any) -> str:
    """A value of the facts for readers, who need no more than 6 digits of a statistic."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {number:.6g}" for key, number in value.items())
    return "-" if value is None else str(value)


def _write(made: Workload, output: Path, kind: str | None, version: int) -> None:
    from ptaskmodel.workload.reading import write_workload

    write_workload(made, output, kind, Writing(version))
    for note in made.notes:
        click.echo(f"note: {note}", err=True)
    click.echo(f"{output}: {len(made.jobs)} jobs, {len(made.profiles)} profiles")


def output_options(command: Any) -> Any:
    for option in (
        click.option("--format", "kind", type=FORMAT_NAMES, help="[default: by the name]"),
        click.option("--batsim-version", "version", default=5, show_default=True, help="2 to 5."),
    ):
        command = option(command)
    return command


@workload.command()
@click.argument("source", type=PATH)
@click.argument("output", type=PATH)
@cleaning_options
@output_options
@profile_options("as-given", "ptask")
@click.option("--speed", type=POSITIVE, help="Of a host, flop/s, for --profiles ptask.")
@click.option("--bandwidth", type=POSITIVE, help="Of a network card, B/s, for --profiles ptask.")
def convert(
    source: Path,
    output: Path,
    kind: str | None,
    version: int,
    profiles: str,
    speed: float | None,
    bandwidth: float | None,
    ratio: float,
    pattern: str,
    **cleaning: Any,
) -> None:
    """Convert SOURCE to OUTPUT: SWF to Batsim or back, delays to parallel tasks."""
    made = _read(source, **cleaning)
    if profiles == "ptask":
        from ptaskmodel.workload.transforms.ptask_rule import ptask_profiles

        if speed is None or bandwidth is None:
            raise WorkloadError("--profiles ptask: give --speed and --bandwidth of a host")
        made = ptask_profiles(
            made, speed_flops=speed, bandwidth_Bps=bandwidth, ratio=ratio, pattern=pattern
        )
    _write(made, output, kind, version)


@workload.group()
def generate() -> None:
    """Make a workload by a model."""


@generate.command()
@click.argument("output", type=PATH)
@click.option("--jobs", default=1000, show_default=True)
@click.option("--hosts", default=128, show_default=True, help="Of the machine.")
@click.option("--seed", type=SEED, default=0, show_default=True)
@click.option("--type", "job_type", type=Choice(["all", "batch", "interactive"]), default="all")
@click.option(
    "--pace",
    type=POSITIVE,
    default=1.0,
    show_default=True,
    help="Arrivals come that much faster.",
)
@click.option("--walltime-factor", type=POSITIVE, help="Walltimes, in run times  [default: none]")
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
    """The model of Lublin and Feitelson (2003)."""
    from ptaskmodel.workload.models.lublin import LUBLIN_TYPES
    from ptaskmodel.workload.models.lublin import lublin as model

    made = model(
        jobs,
        hosts,
        seed,
        model=LUBLIN_TYPES[job_type],
        pace=pace,
        walltime_factor=walltime_factor,
    )
    _write(made, output, kind, version)


@generate.command()
@click.argument("kinds_file", metavar="KINDS", type=PATH)
@click.argument("output", type=PATH)
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
    """Weibull arrivals of kinds of jobs: those of KINDS, a Batsim workload.

    Each job of KINDS is a kind; a field "weight" says how often it comes (1 by default).
    """
    from ptaskmodel.workload.formats.batsim import read_batsim
    from ptaskmodel.workload.models.weibull import kinds_of
    from ptaskmodel.workload.models.weibull import weibull as model

    source = read_batsim(kinds_file)
    kinds = kinds_of(source)
    made = model(jobs, kinds, seed, shape=shape, scale_s=scale, hosts=source.num_hosts)
    _write(made, output, kind, version)


@workload.command()
@click.argument("source", type=PATH)
@click.argument("output", type=PATH, required=False)
@cleaning_options
@output_options
@click.option("--days", type=POSITIVE, default=7.0, show_default=True, help="Length of a window.")
@click.option(
    "--step-days",
    type=POSITIVE,
    default=1.0,
    show_default=True,
    help="From a window to the next.",
)
@click.option("--min-utilisation", type=NOT_NEGATIVE, default=0.7, show_default=True)
@click.option("--machine-hosts", type=COUNT, help="[default: as the workload says]")
@click.option("--pick", default="first", show_default=True, help="first, busiest or a number.")
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
    """Cut a busy window out of SOURCE; without OUTPUT, list the windows."""
    from ptaskmodel.workload.transforms.windows import DAY_S, cut_workload, picked, windows_of

    made = _read(source, **cleaning)
    windows = windows_of(
        made,
        source,
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
    _write(cut_workload(made, picked(windows, pick)), output, kind, version)
