"""``ptaskmodel batch``: schedule a workload on a platform and measure what happened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ptaskmodel.batch.allocations import ALLOCATIONS, FILE_MARK
from ptaskmodel.batch.options import (
    CHECKPOINT,
    DELAY_POWERS,
    FAILURE_LAW,
    FAIRNESS,
    LOOPS,
    ON_FAILURE,
    WALLTIMES,
)
from ptaskmodel.batch.policies import POLICIES
from ptaskmodel.batch.policies.orders import ORDERS
from ptaskmodel.cli.command import Command
from ptaskmodel.cli.parameters import (
    FINITE,
    NOT_NEGATIVE,
    PATH,
    SEED,
    Choice,
    FileOrChoice,
    calibration_options,
    check_group,
    job_options,
    job_results_options,
    model_options,
    platform_argument,
    profile_options,
)
from ptaskmodel.errors import SimulationError


@click.command(cls=Command)
@platform_argument
@click.argument("workload_file", metavar="WORKLOAD", type=PATH)
@click.option(
    "--policy",
    type=FileOrChoice(POLICIES, "FILE.py:CLASS"),
    default="easy",
    show_default=True,
    metavar="NAME",
    help=f"{', '.join(POLICIES)}, or FILE.py:CLASS.",
)
@click.option(
    "--order",
    type=Choice(ORDERS),
    metavar="NAME",
    help=f"Order of the queue: {', '.join(ORDERS)}  [default: fcfs]",
)
@click.option(
    "--backfill-order",
    type=Choice(ORDERS),
    metavar="NAME",
    help="Order of candidates of easy, the same names.",
)
@click.option(
    "--policy-option", "policy_options", multiple=True, metavar="KEY=VALUE", help="Repeatable."
)
@click.option(
    "--allocation",
    type=FileOrChoice(ALLOCATIONS, f"{FILE_MARK}FILE", FILE_MARK),
    default="first-fit",
    show_default=True,
    metavar="NAME",
    help=f"{', '.join(ALLOCATIONS)} or {FILE_MARK}FILE.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Of the random allocation.")
@click.option(
    "--estimates",
    type=FileOrChoice(("exact", "walltime"), "factor:F", "factor:"),
    metavar="KIND",
    help="exact, walltime or factor:F  [default: walltime if every job has one; else exact, of "
    "parallel tasks factor:2]",
)
@profile_options("as-given", "delay", "ptask", "smpi")
@calibration_options("the jobs that are parallel tasks, without competitors")
@model_options
@click.option(
    "--tau", type=FINITE, default=60.0, show_default=True, help="Of the bounded slowdown, s."
)
@job_options
@click.option(
    "--walltimes",
    type=Choice(WALLTIMES),
    default="kill",
    show_default=True,
    help="Jobs that reach theirs are killed; or they run on; or it is extended beforehand.",
)
@click.option(
    "--on-failure",
    type=Choice(ON_FAILURE),
    default="fail",
    show_default=True,
    help="What becomes of jobs that something which goes down, or maintenance, stops.",
)
@click.option("--failures", metavar="FILE", type=PATH, help="date,resource,event (down or up).")
@click.option(
    "--failure-law",
    multiple=True,
    metavar="KEY=VALUE",
    help=f"Draw failures: {', '.join(FAILURE_LAW)}; times in s, or 30d, 2h, 5m. Repeatable.",
)
@click.option(
    "--checkpoint",
    multiple=True,
    metavar="KEY=VALUE",
    help=f"Jobs write checkpoints: {', '.join(CHECKPOINT)}; times in s, or 1h, 2m. Repeatable.",
)
@click.option("--maintenance", metavar="FILE", type=PATH, help="hosts,start,end of windows.")
@click.option(
    "--delay-power",
    type=Choice(DELAY_POWERS),
    default="idle",
    show_default=True,
    help="What hosts draw while a delay runs there, for --energy: as idle ones (Batsim's rule), "
    "or as with all cores that it holds busy.",
)
@click.option(
    "--licence",
    "licences",
    multiple=True,
    metavar="NAME=COUNT",
    help="Of the machine. Repeatable.",
)
@click.option(
    "--dependencies",
    is_flag=True,
    help="Submit jobs when their preceding job is over, and after the think time.",
)
@click.option(
    "--loop",
    type=Choice(LOOPS),
    default="auto",
    show_default=True,
    help="auto: the compiled loop for many jobs, where it can; compiled: for few too; open: never.",
)
@click.option("--until", "until_s", type=NOT_NEGATIVE, help="Stop at this date, s.")
@click.option(
    "--fairness",
    type=Choice(FAIRNESS),
    metavar="BASIS",
    help="Count the jobs that would have started earlier if nobody had come after them, by "
    "runtimes, estimates or both: a fork for each job that waited.",
)
@click.option("--frozen", is_flag=True, help="An adaptive policy stays as it is in these forks.")
@click.option("--leave-out-larger", is_flag=True, help="Drop jobs larger than the platform.")
@click.option(
    "--verify",
    type=Choice(["none", "head", "all"]),
    help="Check at every date: no host shared; head: EASY's promise; all: conservative's.",
)
@job_results_options
@click.option("--neighbours", is_flag=True, help="Write there who slowed whom: neighbours.csv.")
def batch(
    platform_file: Path,
    workload_file: Path,
    policy_options: tuple[str, ...],
    storages: tuple[str, ...],
    licences: tuple[str, ...],
    failure_law: tuple[str, ...],
    checkpoint: tuple[str, ...],
    calibration: Path | None,
    group: str | None,
    tau: float,
    processors_per_host: int,
    leave_out_larger: bool,
    no_contention: bool,
    output: Path | None,
    traces: tuple[str, ...],
    trace_limit: float | None,
    attribution: bool,
    plots: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Schedule the jobs of WORKLOAD (Batsim JSON or SWF) on PLATFORM (SimGrid XML)."""
    from ptaskmodel.batch.plan import BatchOptions, check_sizes
    from ptaskmodel.cli.parameters import number_or_text, number_time_or_text, pairs
    from ptaskmodel.cli.progress import told_progress
    from ptaskmodel.cli.show import batch_text, summary_text
    from ptaskmodel.platform import load_platform
    from ptaskmodel.runs.batch import (
        BatchWriting,
        batch_into,
        without_larger,
    )
    from ptaskmodel.workload.formats.table import Cleaning
    from ptaskmodel.workload.reading import read_workload

    chosen = BatchOptions(
        policy_options=pairs(policy_options, "--policy-option", number_or_text),
        storages=pairs(storages, "--storage", str),
        licences=pairs(licences, "--licence", _count),
        failure_law=pairs(failure_law, "--failure-law", number_time_or_text),
        checkpoint=pairs(checkpoint, "--checkpoint", number_time_or_text),
        contention=not no_contention,
        **options,
    )
    check_group(calibration, group)
    workload = read_workload(workload_file, Cleaning(processors_per_host))
    inputs = [platform_file, workload_file]
    if calibration is not None:
        from ptaskmodel.calibration import apply_to_jobs, parse_labels

        workload = apply_to_jobs(calibration, workload, parse_labels(group or ""))
        inputs.append(calibration)
    inputs += [options[name] for name in ("failures", "maintenance") if options[name] is not None]
    platform = load_platform(platform_file)
    if leave_out_larger:
        workload = without_larger(workload, platform, chosen)
    # Against all hosts, whatever they are for: what is left of them for jobs is counted later.
    check_sizes(workload, len(platform.hosts))
    with told_progress(len(workload.jobs), "jobs", queues=True) as progress:
        run = batch_into(
            output,
            platform,
            workload,
            chosen,
            BatchWriting(tau, traces, trace_limit, attribution, plots),
            inputs=inputs,
            progress=progress,
        )
    click.echo(summary_text(run) if as_json else batch_text(run))


def _count(text: str) -> int:
    if not text.isdecimal():
        raise SimulationError(f"--licence: '{text[:60]}' is not a number of licences")
    return int(text)
