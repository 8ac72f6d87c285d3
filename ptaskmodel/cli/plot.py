"""``ptaskmodel plot``: pictures of the results of a run."""

from __future__ import annotations

from pathlib import Path

import click

from ptaskmodel.cli.command import Command
from ptaskmodel.cli.parameters import PATH, Choice, output_option
from ptaskmodel.results.names import COLOURS, PICTURES


@click.command(cls=Command)
@click.argument("results", metavar="RESULTS", type=PATH)
@click.argument("picture", metavar="PICTURE", type=Choice(PICTURES))
@click.option(
    "--colour",
    type=Choice(COLOURS),
    default="mean",
    show_default=True,
    help="What the colours of the topology say: mean use over the run, highest use in an "
    "interval, or time in which each limited somebody.",
)
@output_option("The picture to write: .png, .svg or .pdf.", required=True)
def plot(results: Path, picture: str, colour: str, output: Path) -> None:
    """Draw the results in directory RESULTS.

    gantt: tasks on hosts over time; progress: what part of each is done; links, hosts: what part
    of each is used over time; topology: the platform coloured by use; slowdowns: their
    distribution; load: hosts in use and the queue of a batch; queue: how long those in it have
    waited; waits: which of its jobs, and for how long; reasons, backfill: of a simulated Slurm,
    why jobs waited, and backfill's cycles; power: what hosts and links draw (needs a run with
    --energy); times: how long each rank of a replay did what; ranks: and when; matrix: who sent to
    whom (both need --timeline). progress, links, hosts, topology and slowdowns need a run with
    --attribution.
    """
    from ptaskmodel.results.plots import draw_results

    draw_results(results, picture, output, colour)
    click.echo(f"written   {output}")
