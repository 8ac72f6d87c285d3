"""``ptaskmodel batch``: schedule a workload on a platform and compute metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ptaskmodel.cli.command import Command
from ptaskmodel.cli.parameters import (
    directory_option,
    json_option,
    options_of,
    platform_argument,
    workload_argument,
)
from ptaskmodel.runs.scheduling_options import BATCH


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
