"""``ptaskmodel compare``: what changed between two runs."""

from __future__ import annotations

from pathlib import Path

import click

from ptaskmodel.cli.command import Command
from ptaskmodel.cli.parameters import NOT_NEGATIVE, PATH, output_option
from ptaskmodel.errors import PTaskModelError


@click.command(cls=Command)
@click.argument("runs", metavar="RESULTS_A RESULTS_B ...", type=PATH, nargs=-1, required=True)
@output_option("Also write a line for every task or job, of more than two runs every metric (CSV).")
@click.option(
    "--picture",
    metavar="FILE",
    type=PATH,
    help="Also draw times against each other, metrics and queues, or who waits less and longer "
    "(.png, .svg or .pdf).",
)
@click.option(
    "--page",
    metavar="FILE",
    type=PATH,
    help="Also write all of it as one HTML page, with metrics and pictures.",
)
@click.option(
    "--tolerance",
    type=NOT_NEGATIVE,
    default=1e-6,
    show_default=True,
    help="Relative difference up to which times of tasks or jobs are equal.",
)
def compare(
    runs: tuple[Path, ...],
    output: Path | None,
    picture: Path | None,
    page: Path | None,
    tolerance: float,
) -> None:
    """Say what changed from RESULTS_A to RESULTS_B, directories of runs of the same tasks.

    First whether the runs did the same work, then what users got and what the machine did, each
    metric with its change against the first run. Of two runs also task by task, matched by id:
    faster and slower are those that ended in both. Of two runs of `slurm`: which settings differ,
    who waits less and who longer, by size, length, user and account.
    """
    from ptaskmodel.cli.show import comparison_text, standings_text
    from ptaskmodel.cli.show_slurm import slurm_comparison_text
    from ptaskmodel.results.comparison import compare as compare_results
    from ptaskmodel.results.loading import load_results
    from ptaskmodel.results.slurm.comparison import both_slurm, compare_slurm
    from ptaskmodel.results.standings import standings

    if len(runs) < 2:
        raise PTaskModelError("compare: give two directories of results, or more")
    if output is not None and output.suffix.lower() in (".html", ".htm"):
        raise PTaskModelError(f"{output}: --output writes CSV; for a page give --page {output}")
    results = [load_results(run) for run in runs]
    if len(runs) == 2 and both_slurm(results):
        click.echo(slurm_comparison_text(compare_slurm(*results, table=output, picture=picture)))
    elif len(runs) == 2:
        found = compare_results(*results, table=output, picture=picture, tolerance=tolerance)
        click.echo(comparison_text(found, standings(results)))
    else:
        click.echo(standings_text(standings(results, table=output, picture=picture)))
    if page is not None:
        from ptaskmodel.results.comparison_page import write_comparison_page

        write_comparison_page(page, results, tolerance=tolerance)
    for path in (output, picture, page):
        if path is not None:
            click.echo(f"written   {path}")
