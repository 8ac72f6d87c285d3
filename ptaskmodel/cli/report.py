"""``ptaskmodel report``: a page about a run that anyone can open."""

from __future__ import annotations

from pathlib import Path

import click

from ptaskmodel.cli.command import Command
from ptaskmodel.cli.parameters import PATH, output_option


@click.command(cls=Command)
@click.argument("results", metavar="RESULTS", type=PATH)
@output_option("The page to write.", default="report.html", show_default=True)
def report(results: Path, output: Path) -> None:
    """Make one self-contained HTML page of the results in directory RESULTS.

    It shows most for a run of `simulate --attribution`; results of `batch` are taken too.
    """
    from ptaskmodel.results.report import write_report

    write_report(results, output)
    click.echo(f"written   {output}")
