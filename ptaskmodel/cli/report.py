"""``ptaskmodel report``: a page about a run that anyone can open."""

from __future__ import annotations

from pathlib import Path

import click

from ptaskmodel.cli.command import Command
from ptaskmodel.cli.parameters import PATH, output_option


@click.command(cls=Command)
@click.argument("results", metavar="RESULTS", type=PATH)
@output_option("The page to write.", default="report.html", show_default=True)
@click.option(
    "--against",
    metavar="RESULTS",
    type=PATH,
    help="Of two runs of slurm: also say what changed since that one, who gains and who loses.",
)
def report(results: Path, output: Path, against: Path | None) -> None:
    """Make one self-contained HTML page of the results in directory RESULTS.

    It shows most for a run of `simulate --attribution`, and of `slurm`; those of `batch` are taken
    too.
    """
    from ptaskmodel.results.report import write_report

    write_report(results, output, against=against)
    click.echo(f"written   {output}")
