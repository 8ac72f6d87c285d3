"""``ptaskmodel report``: a page about a run that anyone can open."""

from __future__ import annotations

from pathlib import Path

import click

from ptaskmodel.cli.command import Command
from ptaskmodel.cli.parameters import PATH, output_option
from ptaskmodel.errors import PTaskModelError

# What a directory of a campaign holds, and no other.
CAMPAIGN = "campaign.toml"


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

    RESULTS are of `simulate`, `batch`, `slurm` or `replay`, or a campaign. The page shows most of
    runs with --attribution, of replays with --timeline and --critical-path.
    """
    if (results / CAMPAIGN).exists():
        from ptaskmodel.campaign import Campaign, write_campaign_report

        if against is not None:
            raise PTaskModelError(f"{results}: --against is for results of slurm")
        write_campaign_report(Campaign.in_directory(results), output)
        click.echo(f"written   {output}")
        return
    from ptaskmodel.cli.progress import told_reading
    from ptaskmodel.results.report import write_report

    with told_reading(results, "making a page of"):
        write_report(results, output, against=against)
    click.echo(f"written   {output}")
