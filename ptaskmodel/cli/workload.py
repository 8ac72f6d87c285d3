"""``ptaskmodel workload``: look at, convert, generate and cut batch workloads."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptaskmodel.errors import WorkloadError
from ptaskmodel.workload.formats.table import JOBS, Cleaning, Writing, formats_of

if TYPE_CHECKING:
    from ptaskmodel.workload.jobs import Workload

PATH = click.Path(path_type=Path)
FORMAT_NAMES = click.Choice(formats_of(JOBS))


def cleaning_options(command: Any) -> Any:
    """The options that say how a log becomes a workload."""
    for option in (
        click.option("--processors-per-host", default=1, show_default=True, help="Of an SWF log."),
        click.option("--max-hosts", type=int, help="Leave out larger jobs of an SWF log."),
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

    if processors_per_host < 1:
        raise WorkloadError(f"--processors-per-host: {processors_per_host}: give 1 or more")
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
    facts = _facts(_read(file, **cleaning))
    if as_json:
        click.echo(json.dumps(facts, indent=2))
        return
    for key, value in facts.items():
        values = value if isinstance(value, list) else [value]
        for one in values:
            click.echo(f"{key:<22}{one if one is not None else '-'}")


def _facts(loaded: Workload) -> dict[str, Any]:
    import numpy as np

    jobs = loaded.jobs
    delays = [job.work.duration_s for job in jobs]
    known = np.array([d for d in delays if d is not None])
    sizes = np.array([job.num_hosts for job in jobs])
    dates = np.array([job.submit_time_s for job in jobs])
    span = float(dates.max() - dates.min()) if len(jobs) else 0.0
    kinds: dict[str, int] = {}
    for job in jobs:
        name = type(job.work).__name__.removesuffix("Work").lower()
        kinds[name] = kinds.get(name, 0) + 1
    facts: dict[str, Any] = {
        "origin": loaded.origin,
        "jobs": len(jobs),
        "hosts of the machine": loaded.num_hosts,
        "profiles": len(loaded.profiles),
        "kinds of jobs": ", ".join(f"{count} {name}" for name, count in sorted(kinds.items())),
        "submitted over (s)": span,
        "with a walltime": sum(job.walltime_s is not None for job in jobs),
    }
    if len(jobs):
        facts["hosts per job"] = (
            f"mean {sizes.mean():.4g}, median {np.median(sizes):g}, max {sizes.max()}"
        )
    if len(known):
        facts["run time (s)"] = (
            f"mean {known.mean():.6g}, median {np.median(known):.6g}, max {known.max():.6g}"
        )
    if len(known) == len(jobs) and loaded.num_hosts and span > 0:
        facts["offered load"] = float((known * sizes).sum() / (loaded.num_hosts * span))
    return facts | {"note": list(loaded.notes)}


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
@click.option(
    "--profiles",
    type=click.Choice(["as-given", "ptask"]),
    default="as-given",
    show_default=True,
    help="ptask: delays become parallel tasks.",
)
@click.option("--speed", type=float, help="Of a host, flop/s, for --profiles ptask.")
@click.option("--bandwidth", type=float, help="Of a network card, B/s, for --profiles ptask.")
@click.option("--ratio", default=0.5, show_default=True, help="Communication over computation.")
@click.option("--pattern", default="alltoall", show_default=True, help="Who sends to whom.")
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
@click.option("--seed", default=0, show_default=True)
@click.option(
    "--type", "job_type", type=click.Choice(["all", "batch", "interactive"]), default="all"
)
@click.option("--pace", default=1.0, show_default=True, help="Arrivals come that much faster.")
@click.option("--walltime-factor", type=float, help="Walltimes, in run times  [default: none]")
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
@click.option("--seed", default=0, show_default=True)
@click.option("--shape", default=1.0, show_default=True)
@click.option("--scale", default=60.0, show_default=True, help="s.")
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
@click.option("--days", default=7.0, show_default=True, help="Length of a window.")
@click.option("--step-days", default=1.0, show_default=True, help="From a window to the next.")
@click.option("--min-utilisation", default=0.7, show_default=True)
@click.option("--machine-hosts", type=int, help="[default: as the workload says]")
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
    from ptaskmodel.workload.formats.swf import clean, read_swf
    from ptaskmodel.workload.reading import format_of
    from ptaskmodel.workload.transforms.windows import (
        DAY_S,
        cut_workload,
        swf_windows,
        workload_windows,
    )

    options: dict[str, Any] = {
        "length_s": days * DAY_S,
        "step_s": step_days * DAY_S,
        "min_utilisation": min_utilisation,
        "machine_hosts": machine_hosts,
    }
    made = _read(source, **cleaning)
    if format_of(source) == "swf":
        windows = swf_windows(clean(read_swf(source))[0], **options)
    else:
        windows = workload_windows(made, **options)
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
    _write(cut_workload(made, windows[_picked(pick, windows)]), output, kind, version)


def _picked(pick: str, windows: list[Any]) -> int:
    if pick == "first":
        return 0
    if pick == "busiest":
        return max(range(len(windows)), key=lambda k: (windows[k].utilisation, -k))
    if not pick.isdigit() or int(pick) >= len(windows):
        raise WorkloadError(
            f"--pick: '{pick}' is not first, busiest or a number from 0 to {len(windows) - 1}"
        )
    return int(pick)
