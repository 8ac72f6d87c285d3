"""``ptaskmodel batch``: schedule a workload on a platform and measure what happened."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptaskmodel import __version__
from ptaskmodel.cli.simulate import TRACES
from ptaskmodel.cli.table import text_table
from ptaskmodel.errors import SimulationError, WorkloadError

if TYPE_CHECKING:
    from ptaskmodel.batch.run import BatchOptions, BatchResult
    from ptaskmodel.platform.platform import Platform
    from ptaskmodel.simulation.simulation import Simulation
    from ptaskmodel.workload.jobs import Workload

SHOWN = (
    ("waiting (s)", "waiting_s"),
    ("turnaround (s)", "turnaround_s"),
    ("execution (s)", "execution_s"),
    ("slowdown", "slowdown"),
    ("bounded slowdown", "bounded_slowdown"),
    ("per processor", "per_processor_bounded_slowdown"),
    ("contention slowdown", "contention_slowdown"),
)


@click.command()
@click.argument("platform_file", metavar="PLATFORM", type=click.Path(path_type=Path))
@click.argument("workload_file", metavar="WORKLOAD", type=click.Path(path_type=Path))
@click.option(
    "--policy",
    default="easy",
    show_default=True,
    metavar="NAME",
    help="fcfs, sjf, ljf, smallest, largest, easy, conservative, filler, redirection, or "
    "FILE.py:CLASS.",
)
@click.option("--order", metavar="NAME", help="Order of the queue  [default: fcfs]")
@click.option("--backfill-order", metavar="NAME", help="Order of candidates of easy.")
@click.option(
    "--policy-option", "policy_options", multiple=True, metavar="KEY=VALUE", help="Repeatable."
)
@click.option(
    "--allocation",
    default="first-fit",
    show_default=True,
    metavar="NAME",
    help="first-fit, contiguous, contiguous-best-effort, random, spread or topology.",
)
@click.option("--seed", default=0, show_default=True, help="Of the random allocation.")
@click.option(
    "--estimates",
    metavar="KIND",
    help="exact, walltime or factor:F  [default: walltime if every job has one, else exact]",
)
@click.option(
    "--profiles",
    type=click.Choice(["as-given", "delay", "ptask"]),
    default="as-given",
    show_default=True,
    help="delay: each job lasts its time alone; ptask: delays become parallel tasks.",
)
@click.option("--ratio", default=0.5, show_default=True, help="Communication, for --profiles ptask")
@click.option("--pattern", default="alltoall", show_default=True, help="For --profiles ptask.")
@click.option("--storage", "storages", multiple=True, metavar="NAME=HOST", help="Repeatable.")
@click.option("--solver", metavar="NAME", help="bmf, fairbottleneck ...  [default: bmf]")
@click.option("--network-model", metavar="NAME", help="L07, CM02, LV08.")
@click.option("--count", default="task", show_default=True, help="task, flow or pair.")
@click.option("--tau", default=60.0, show_default=True, help="Of the bounded slowdown, s.")
@click.option("--processors-per-host", default=1, show_default=True, help="Of an SWF log.")
@click.option("--leave-out-larger", is_flag=True, help="Drop jobs larger than the platform.")
@click.option(
    "--verify",
    type=click.Choice(["none", "head", "all"]),
    help="Check at every date: no host shared; head: EASY's promise; all: conservative's.",
)
@click.option("--no-contention", is_flag=True, help="Do not compute times alone.")
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Write jobs.csv, schedule.json, ... there (earlier results are replaced).",
)
@click.option("--neighbours", is_flag=True, help="Write there who slowed whom: neighbours.csv.")
@click.option(
    "--trace",
    "traces",
    multiple=True,
    type=click.Choice(TRACES),
    help="Write there who used what and when (may be given several times).",
)
@click.option(
    "--attribution",
    is_flag=True,
    help="Write there what limited each job, and the utilisation of every host and link.",
)
@click.option("--plots", is_flag=True, help="Write gantt.png and load.png there too.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def batch(
    platform_file: Path,
    workload_file: Path,
    policy_options: tuple[str, ...],
    storages: tuple[str, ...],
    tau: float,
    processors_per_host: int,
    leave_out_larger: bool,
    no_contention: bool,
    output: Path | None,
    traces: tuple[str, ...],
    attribution: bool,
    plots: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Schedule the jobs of WORKLOAD (Batsim JSON or SWF) on PLATFORM (SimGrid XML)."""
    from ptaskmodel.batch.metrics import metrics
    from ptaskmodel.batch.run import BatchOptions, only_delays, run_batch
    from ptaskmodel.cli.kernels import ready_kernels
    from ptaskmodel.platform import load_platform
    from ptaskmodel.results.output import check_output_directory
    from ptaskmodel.results.records import choices, provenance
    from ptaskmodel.workload.reading import Cleaning, read_workload

    wanted = {
        "--plots": plots,
        "--neighbours": options["neighbours"],
        "--trace": traces,
        "--attribution": attribution,
    }
    if output is not None:
        check_output_directory(output)
    for option in (name for name, given in wanted.items() if given and output is None):
        raise SimulationError(f"{option}: say where to, with --output DIR")
    if processors_per_host < 1:
        raise WorkloadError(f"--processors-per-host: {processors_per_host}: give 1 or more")
    chosen = BatchOptions(
        policy_options=_pairs(policy_options, "--policy-option", _value),
        storages=_pairs(storages, "--storage", str),
        contention=not no_contention,
        **options,
    )
    workload = read_workload(workload_file, Cleaning(processors_per_host))
    platform = load_platform(platform_file)
    if leave_out_larger:
        workload = _without_larger(workload, platform, chosen)
    delays = chosen.profiles == "delay" or (chosen.profiles == "as-given" and only_delays(workload))
    if delays and (traces or attribution):
        raise SimulationError(
            f"{'--trace' if traces else '--attribution'}: every job is a delay, which uses no host "
            "and no link; --profiles ptask makes parallel tasks of delays"
        )
    if chosen.profiles == "ptask" or not only_delays(workload):
        ready_kernels()

    def run(observation: Callable[[Any], Any] | None = None) -> tuple[BatchResult, dict[str, Any]]:
        result = _run(run_batch, platform, workload, chosen, observation, not as_json)
        return result, {
            "command": "batch",
            "platform": str(platform_file),
            "workload": str(workload_file),
            "hosts": result.machine.num_hosts,
            "policy": chosen.policy,
            "allocation": chosen.allocation,
            "notes": list(result.notes),
            "simulation_wall_time_s": result.simulation_s,
            **({} if result.simulation is None else choices(result.simulation)),
            **metrics(result.schedule, tau_s=tau, alone_s=result.alone_s),
            **provenance([platform_file, workload_file]),
        }

    if output is None:
        _, summary = run()
    else:
        summary = _run_and_write(output, run, traces, attribution, plots)
    click.echo(json.dumps(summary, indent=2) if as_json else describe(summary, output))


def _pairs(given: tuple[str, ...], option: str, convert: Callable[[str], Any]) -> dict[str, Any]:
    """KEY=VALUE arguments as a dictionary."""
    found = {}
    for text in given:
        key, sign, value = text.partition("=")
        if not sign or not key or not value:
            raise SimulationError(f"{option}: '{text}' is not KEY=VALUE")
        found[key] = convert(value)
    return found


def _value(text: str) -> int | float | str:
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text


def _without_larger(workload: Workload, platform: Platform, options: BatchOptions) -> Workload:
    from ptaskmodel.batch.machine import machine_of

    limit = machine_of(platform, options.storages).num_hosts
    kept = tuple(job for job in workload.jobs if job.num_hosts <= limit)
    gone = len(workload.jobs) - len(kept)
    note = f"left out {gone} jobs of more than {limit} hosts"
    return workload.with_jobs(kept, note) if gone else workload


def _run(
    run_batch: Callable[..., BatchResult],
    platform: Platform,
    workload: Workload,
    options: BatchOptions,
    observation: Callable[[Any], Any] | None,
    show_progress: bool,
) -> BatchResult:
    """Run, with a bar on stderr where that is a terminal."""
    if not (show_progress and sys.stderr.isatty()):
        return run_batch(platform, workload, options, observation=observation)
    with click.progressbar(
        length=len(workload.jobs), label="simulating", file=sys.stderr, show_eta=False
    ) as bar:

        def progress(now_s: float, done: int) -> None:
            bar.label = f"{now_s:.6g} s"
            bar.update(done - bar.pos)

        return run_batch(platform, workload, options, progress, observation)


def _run_and_write(
    output: Path,
    run: Callable[..., tuple[BatchResult, dict[str, Any]]],
    traces: Sequence[str],
    attribution: bool,
    plots: bool,
) -> dict[str, Any]:
    """Run, recording what is asked for, and write the results; returns the summary."""
    from ptaskmodel.batch.output import write_neighbours, write_schedule
    from ptaskmodel.batch.plots import draw_schedule
    from ptaskmodel.files import write_json
    from ptaskmodel.results.observing import Observation
    from ptaskmodel.results.output import FORMAT, SUMMARY, whole_directory

    with whole_directory(output) as directory:
        observed: list[str] = []

        def observation(simulation: Simulation) -> Observation:
            made = Observation(simulation, directory, traces, attribution)
            observed.extend(made.files)
            return made

        result, summary = run(observation)
        files = write_schedule(
            directory,
            result.schedule,
            workload_name=result.workload.name,
            host_names=result.machine.names,
            version=__version__,
            simulation_s=result.simulation_s,
            alone_s=result.alone_s,
        )
        if result.neighbours is not None:
            files.append(write_neighbours(directory, result.neighbours))
        if plots:
            files += draw_schedule(result.schedule, directory)
        listed = {"format": FORMAT, "files": [*files, *observed, SUMMARY]}
        write_json(directory / SUMMARY, listed | summary)
    return summary


def describe(summary: dict[str, Any], output: Path | None) -> str:
    """The summary for a reader: a table of distributions, then the rest line by line."""
    header = ("", "mean", "p50", "p95", "max")
    rows = [
        (label, *(_number(summary[name][key]) for key in header[1:]))
        for label, name in SHOWN
        if name in summary
    ]
    jobs = summary["jobs"]
    counts = ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in jobs.items())
    lines = [
        ("jobs", counts),
        ("policy", f"{summary['policy']}, allocation {summary['allocation']}"),
        ("makespan", f"{_number(summary['makespan_s'])} s"),
        ("utilisation", _number(summary["utilisation"])),
        ("throughput", f"{_number(summary['throughput_jobs_per_hour'])} jobs per hour"),
        ("simulated in", f"{summary['simulation_wall_time_s']:.3g} s"),
        *(("note", note) for note in summary["notes"]),
    ]
    if output is not None:
        lines.append(("written", f"{output}/jobs.csv, schedule.json, summary.json ..."))
    table = text_table(header, rows, right=(1, 2, 3, 4))
    return table + "\n\n" + "\n".join(f"{name:<13}{value}" for name, value in lines)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"
