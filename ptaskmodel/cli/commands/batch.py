"""``ptaskmodel batch``, ``slurm`` and ``slurm-live``: run a workload whose jobs wait in a queue.

``batch`` schedules by a policy, ``slurm`` as Slurm does with a slurm.conf; under ``slurm-live`` a
real Slurm schedules a simulated machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptaskmodel import interrupts
from ptaskmodel.cli.command import Command
from ptaskmodel.cli.parameters import (
    conf_argument,
    directory_option,
    json_option,
    options_of,
    platform_argument,
    workload_argument,
)
from ptaskmodel.runs.scheduling_options import BATCH, SLURM, SLURM_LIVE

if TYPE_CHECKING:
    from ptaskmodel.runs.slurm_live import LiveComparison, LiveResults


@click.command(cls=Command)
@platform_argument
@workload_argument
@options_of(BATCH)
@directory_option("Write jobs.csv, schedule.json, ... there (earlier results are replaced).")
@json_option
def batch(
    platform_file: Path, workload_file: Path, output: Path | None, as_json: bool, **options: Any
) -> None:
    """Schedule the jobs of WORKLOAD (Batsim JSON or SWF) on PLATFORM (SimGrid XML)."""
    from ptaskmodel.cli.progress import told_progress
    from ptaskmodel.cli.show import batch_text, summary_text
    from ptaskmodel.runs.batch import batch_inputs, batch_into

    found = batch_inputs({"platform": platform_file, "workload": workload_file, **options})
    with told_progress(len(found.workload.jobs), "jobs", queues=True) as progress:
        run = batch_into(output, **found._asdict(), progress=progress)
    click.echo(summary_text(run) if as_json else batch_text(run))


SHOWN = 8


@click.command(cls=Command)
@conf_argument
@workload_argument
@options_of(SLURM)
@directory_option("Write jobs.csv, sacct.txt, reasons.csv, cycles.csv, ... there.")
@json_option
def slurm(
    conf_file: Path, workload_file: Path, output: Path | None, as_json: bool, **options: Any
) -> None:
    """Simulate Slurm with CONF (a slurm.conf) and the jobs of WORKLOAD.

    WORKLOAD is the output of `sacct -P` or `sacct --json`, an SWF log, Batsim's JSON, an events
    file of the UB Slurm simulator, or a jobs.csv with id, submit, nodes, cores, limit, run and
    other options of sbatch.
    """
    from ptaskmodel.cli.progress import told_progress
    from ptaskmodel.cli.show import slurm_text, summary_text
    from ptaskmodel.runs.slurm import slurm_inputs, slurm_into

    given = slurm_inputs({"conf": conf_file, "workload": workload_file, **options})
    with told_progress(len(given.submissions.jobs), "jobs", queues=True) as progress:
        found = slurm_into(output, **given._asdict(), progress=progress)
    click.echo(summary_text(found) if as_json else slurm_text(found))
    interrupts.check()


@click.command(name="slurm-live", cls=Command)
@conf_argument
@workload_argument
@options_of(SLURM_LIVE)
@directory_option("Write jobs.csv, sacct.txt, events.csv, ... there.")
@json_option
def slurm_live(
    conf_file: Path, workload_file: Path, output: Path | None, as_json: bool, **options: Any
) -> None:
    """Run the Slurm that is installed here on simulated nodes, with CONF (a slurm.conf).

    Its daemons run unmodified, on the loopback, under a clock that jumps from event to event. The
    simulation decides when the jobs of WORKLOAD end. WORKLOAD is as for `ptaskmodel slurm`.
    """
    from ptaskmodel.cli.progress import told_progress
    from ptaskmodel.cli.show import summary_text
    from ptaskmodel.runs.slurm_live import live_inputs, live_into

    given = live_inputs({"conf": conf_file, "workload": workload_file, **options})
    with told_progress(len(given.submissions.jobs), "jobs", queues=True) as progress:
        found = live_into(output, **given._asdict(), progress=progress)
    click.echo(summary_text(found) if as_json else _text(found))
    if found.run.stopped is not None:
        raise found.run.stopped


def _text(found: LiveResults) -> str:
    from ptaskmodel.cli.show import slurm_text

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
    from ptaskmodel.runs.slurm_live import NEAR_S
    from ptaskmodel.style.text import text_table

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
