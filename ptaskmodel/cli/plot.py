"""``ptaskmodel plot``: pictures of the results of a run."""

from __future__ import annotations

from pathlib import Path

import click

from ptaskmodel.cli.command import Command
from ptaskmodel.cli.parameters import NOT_NEGATIVE, PATH, POSITIVE, Choice, output_option
from ptaskmodel.errors import PTaskModelError
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
@click.option(
    "--from", "since_s", metavar="S", type=NOT_NEGATIVE, help="Of ranks: draw from then on, in s."
)
@click.option("--until", "until_s", metavar="S", type=POSITIVE, help="Of ranks: until then, in s.")
@click.option("--messages/--no-messages", default=True, help="Of ranks: draw messages.")
@output_option("The picture to write: .png, .svg or .pdf.", required=True)
def plot(
    results: Path,
    picture: str,
    colour: str,
    since_s: float | None,
    until_s: float | None,
    messages: bool,
    output: Path,
) -> None:
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

    if picture != "ranks" and (since_s is not None or until_s is not None or not messages):
        raise PTaskModelError("--from, --until and --no-messages are of the picture 'ranks' alone")
    if since_s is not None and until_s is not None and since_s >= until_s:
        raise PTaskModelError(f"--from {since_s:g} is not before --until {until_s:g}")
    draw_results(
        results, picture, output, colour, since_s=since_s, until_s=until_s, messages=messages
    )
    click.echo(f"written   {output}")
