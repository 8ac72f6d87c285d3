"""``ptaskmodel slurm``: what a slurm.conf does with a workload.

``ptaskmodel slurm-live``: a real Slurm decides over a simulated machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptaskmodel.batch.options import FAILURE_LAW
from ptaskmodel.cli.command import Command
from ptaskmodel.cli.parameters import (
    COUNT,
    NOT_NEGATIVE,
    PATH,
    POSITIVE,
    SEED,
    directory_option,
    slurm_options,
)

if TYPE_CHECKING:
    from ptaskmodel.runs.slurm_live import LiveComparison, LiveResults


NODE_LAW = tuple(name for name in FAILURE_LAW if not name.startswith("link_"))


@click.command(cls=Command)
@slurm_options
@click.option(
    "--reservations",
    metavar="FILE",
    type=PATH,
    help="Advance reservations: lines of `create reservation` as scontrol takes them.",
)
@click.option(
    "--failures",
    metavar="FILE",
    type=PATH,
    help="Nodes that fail and answer again: date,resource,event (down or up).",
)
@click.option(
    "--failure-law",
    multiple=True,
    metavar="KEY=VALUE",
    help=f"Draw failures of nodes: {', '.join(NODE_LAW)}. Repeatable.",
)
@click.option(
    "--seed",
    type=SEED,
    default=0,
    show_default=True,
    help="Draws when the controller's threads wake; 0: at fixed dates.",
)
@click.option("--meta", metavar="FILE", type=PATH, help="Wake when those of a recorded run did.")
@click.option("--cycles", metavar="FILE", type=PATH, help="Events of a recorded run: its dates.")
@click.option(
    "--controllers",
    type=COUNT,
    default=1,
    show_default=True,
    help="Independent ones: each has its own partitions, or its part of the nodes.",
)
@click.option(
    "--test-cost",
    type=NOT_NEGATIVE,
    default=0.0,
    show_default=True,
    help="How long backfill takes to test a job, s: bf_max_time and pauses count then.",
)
@click.option(
    "--priorities",
    metavar="SECONDS",
    type=POSITIVE,
    help="Write the priorities of waiting jobs, so often, as sprio shows them: priorities.csv.",
)
@click.option("--explain", multiple=True, metavar="JOB", help="Tell a job's story. Repeatable.")
@directory_option("Write jobs.csv, sacct.txt, reasons.csv, cycles.csv, ... there.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def slurm(
    conf_file: Path,
    workload_file: Path,
    platform_file: Path | None,
    reservations: Path | None,
    failures: Path | None,
    failure_law: tuple[str, ...],
    accounts: Path | None,
    processors_per_node: int | None,
    seed: int,
    meta: Path | None,
    cycles: Path | None,
    test_cost: float,
    output: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Simulate Slurm with CONF (a slurm.conf) and the jobs of WORKLOAD.

    WORKLOAD is what `sacct -P` prints, an SWF log, Batsim's JSON, or a jobs.csv with id, submit,
    nodes, cores, limit, run and more of what sbatch is told.
    """
    from ptaskmodel.batch.machine.failures import FailureLaw
    from ptaskmodel.cli.parameters import number_time_or_text, pairs
    from ptaskmodel.cli.progress import told_progress
    from ptaskmodel.cli.show import summary_text
    from ptaskmodel.cli.show_slurm import slurm_text
    from ptaskmodel.platform import load_platform
    from ptaskmodel.runs.slurm import (
        SlurmOptions,
        check_options,
        slurm_into,
    )
    from ptaskmodel.slurm.accounts.sacctmgr import read_accounts
    from ptaskmodel.slurm.conf.phases import Costs, drawn, read_cycles, read_phases
    from ptaskmodel.slurm.conf.reading import read_conf
    from ptaskmodel.slurm.conf.reservations import read_reservations
    from ptaskmodel.slurm.controller.node_failures import failures_of_nodes
    from ptaskmodel.slurm.requests.submissions import read_submissions

    conf = read_conf(conf_file)
    submissions = read_submissions(workload_file, conf, processors_per_node=processors_per_node)
    phases = drawn(seed, submissions.t0 or 0) if meta is None else read_phases(meta, conf)
    known = None if accounts is None else read_accounts(accounts)
    dates = None if cycles is None else read_cycles(cycles)
    reserved = None if reservations is None else read_reservations(reservations, conf, phases.t0)
    law = pairs(failure_law, "--failure-law", number_time_or_text)
    failing = failures_of_nodes(conf, file=failures, law=FailureLaw.of(law) if law else None)
    platform = None if platform_file is None else load_platform(platform_file)
    chosen = SlurmOptions(seed=seed, costs=Costs(test_cost), **options)
    check_options(chosen, submissions, dates, platform)
    given = (
        conf_file,
        workload_file,
        platform_file,
        accounts,
        meta,
        cycles,
        reservations,
        failures,
    )
    with told_progress(len(submissions.jobs), "jobs", queues=True) as progress:
        found = slurm_into(
            output,
            conf,
            submissions,
            chosen,
            accounts=known,
            phases=phases,
            recorded=dates,
            reserved=reserved,
            failures=failing,
            platform=platform,
            inputs=[path for path in given if path is not None],
            progress=progress,
        )
    click.echo(summary_text(found) if as_json else slurm_text(found))


SHOWN = 8


@click.command(name="slurm-live", cls=Command)
@slurm_options
@click.option(
    "--failures",
    metavar="FILE",
    type=PATH,
    help="Daemons that die and come back: CSV with time, daemon (a node or slurmctld), what "
    "(dies, starts, restarts).",
)
@click.option(
    "--slack",
    "slack_us",
    metavar="MICROSECONDS",
    type=NOT_NEGATIVE,
    default=0.0,
    show_default=True,
    help="By how much every wait is longer; ties fall otherwise, as with a seed.",
)
@click.option(
    "--compare", is_flag=True, help="Also simulate Slurm on the same input: where they differ."
)
@directory_option("Write jobs.csv, sacct.txt, events.csv, ... there.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def slurm_live(
    conf_file: Path,
    workload_file: Path,
    platform_file: Path | None,
    profiles: str,
    ratio: float,
    pattern: str,
    accounts: Path | None,
    processors_per_node: int | None,
    failures: Path | None,
    slack_us: float,
    compare: bool,
    output: Path | None,
    as_json: bool,
) -> None:
    """Let the Slurm that is installed here decide over simulated nodes, with CONF (a slurm.conf).

    Its daemons run unmodified, on the loopback, under a clock that jumps from event to event; when
    the jobs of WORKLOAD end is up to the simulation. WORKLOAD is as for `ptaskmodel slurm`.
    """
    from ptaskmodel.cli.progress import told_progress
    from ptaskmodel.cli.show import summary_text
    from ptaskmodel.platform import load_platform
    from ptaskmodel.runs.slurm import SlurmOptions
    from ptaskmodel.runs.slurm_live import live_into
    from ptaskmodel.slurm.conf.reading import read_conf
    from ptaskmodel.slurm.live.cluster import read_failures
    from ptaskmodel.slurm.live.run import T0, LiveOptions
    from ptaskmodel.slurm.requests.submissions import read_submissions

    conf = read_conf(conf_file)
    submissions = read_submissions(workload_file, conf, processors_per_node=processors_per_node)
    given = (conf_file, workload_file, platform_file, accounts, failures)
    options = LiveOptions(
        t0=T0 if submissions.t0 is None else submissions.t0,
        slack_us=slack_us,
        failures=() if failures is None else read_failures(failures, conf),
    )
    platform = None if platform_file is None else load_platform(platform_file)
    with told_progress(len(submissions.jobs), "jobs", queues=True) as progress:
        found = live_into(
            output,
            conf_file,
            submissions,
            options,
            accounts=accounts,
            platform=platform,
            works=SlurmOptions(profiles=profiles, ratio=ratio, pattern=pattern),
            compare=compare,
            inputs=[path for path in given if path is not None],
            progress=progress,
        )
    click.echo(summary_text(found) if as_json else _text(found))
    if found.run.stopped is not None:
        raise found.run.stopped


def _text(found: LiveResults) -> str:
    from ptaskmodel.cli.show_slurm import slurm_text

    run = found.run
    speed = run.simulated_s / run.wall_s if run.wall_s > 0 else 0.0
    parts = [
        slurm_text(found),
        f"Slurm {run.version} decided over {run.simulated_s:.0f} s, {speed:.0f} times as fast as "
        "they last",
    ]
    if found.comparison is not None:
        parts.append(_comparison_text(found.comparison))
    return "\n\n".join(parts)


def _comparison_text(found: LiveComparison) -> str:
    """Where the simulated Slurm differs, in a few lines and a table of the jobs that do."""
    from ptaskmodel.cli.table import text_table
    from ptaskmodel.runs.slurm_live import NEAR_S

    said = found.summary()
    lines = [
        f"Compared with the simulated Slurm: of {said['jobs']} jobs {said['same_start']} start in "
        f"the same second, {said['near_start']} within {NEAR_S} s (largest gap "
        f"{said['largest_gap_s']} s), {said['same_nodes']} on the same nodes."
    ]
    different = [pair for pair in found.pairs if pair.differs]
    if not different or found.first is None:
        return lines[0]
    lines.append(f"Job {found.first.job} is the first of which something else was decided:")
    different.sort(key=lambda pair: pair is not found.first)
    rows = [
        (
            pair.job,
            *("-" if start is None else str(start) for start in pair.starts_s),
            *(text[:24] or "-" for text in pair.nodes),
            *pair.schedulers,
        )
        for pair in different[:SHOWN]
    ]
    header = (
        "job",
        "start, real",
        "simulated",
        "nodes, real",
        "simulated",
        "by, real",
        "simulated",
    )
    lines.append(text_table(header, rows, right=(1, 2)))
    if len(different) > SHOWN:
        lines.append(f"... and {len(different) - SHOWN} more")
    return "\n".join(lines)
