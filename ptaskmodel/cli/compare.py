"""``ptaskmodel compare``: what changed between two runs."""

from __future__ import annotations

from pathlib import Path

import click

from ptaskmodel.cli.parameters import PATH, output_option


@click.command()
@click.argument("a", metavar="RESULTS_A", type=PATH)
@click.argument("b", metavar="RESULTS_B", type=PATH)
@output_option("Also write a line for every task (CSV).")
@click.option(
    "--picture",
    metavar="FILE",
    type=PATH,
    help="Also draw times against each other (.png, .svg or .pdf).",
)
def compare(a: Path, b: Path, output: Path | None, picture: Path | None) -> None:
    """Say what changed from RESULTS_A to RESULTS_B, directories of runs of the same tasks.

    Tasks are matched by id. What limited a task is known for runs with --attribution.
    """
    from ptaskmodel.cli.show import comparison_text
    from ptaskmodel.results.comparison import compare as compare_results

    found = compare_results(a, b, table=output, picture=picture)
    click.echo(comparison_text(found))
    for path in (output, picture):
        if path is not None:
            click.echo(f"written   {path}")
