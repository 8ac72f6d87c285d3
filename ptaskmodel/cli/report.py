"""``ptaskmodel report``: a page about a run that anyone can open."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("results", metavar="RESULTS", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    default="report.html",
    show_default=True,
    type=click.Path(path_type=Path),
    help="The page to write.",
)
def report(results: Path, output: Path) -> None:
    """Make one self-contained HTML page of the results in directory RESULTS.

    It shows most for a run of `simulate --attribution`; results of `batch` are taken too.
    """
    from ptaskmodel.results.loading import load_results
    from ptaskmodel.results.report import write_report

    write_report(load_results(results), output)
    click.echo(f"written   {output}")
