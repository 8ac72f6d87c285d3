"""``ptaskmodel plot``: pictures of the results of a run."""

from __future__ import annotations

from pathlib import Path

import click

KINDS = ("gantt", "progress", "links", "hosts", "topology", "slowdowns")


@click.command()
@click.argument("results", metavar="RESULTS", type=click.Path(path_type=Path))
@click.argument("kind", type=click.Choice(KINDS))
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path),
    help="The picture to write: .png, .svg or .pdf.",
)
def plot(results: Path, kind: str, output: Path) -> None:
    """Draw the results in directory RESULTS.

    gantt: tasks on hosts over time; progress: part done of each task; links, hosts: what part of
    each is used over time; topology: the platform coloured by use; slowdowns: their distribution.
    All but gantt need a run with --attribution.
    """
    from ptaskmodel.results.loading import load_results
    from ptaskmodel.results.plots import KINDS as FUNCTIONS
    from ptaskmodel.results.plots import save

    save(FUNCTIONS[kind](load_results(results)), output)
    click.echo(f"written   {output}")
