"""``ptaskmodel compare``, ``plot``, ``report`` and ``schema``: look at results of runs.

They compare runs, draw pictures, write an HTML page, and print JSON Schemas of all files.
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from ptaskmodel.cli.command import Choice, Command
from ptaskmodel.cli.parameters import NOT_NEGATIVE, PATH, POSITIVE, output_option
from ptaskmodel.errors import PTaskModelError
from ptaskmodel.results import COLOURS, GANTT_COLOURS, PICTURES

# What a directory of a campaign holds, and no other.
CAMPAIGN = "campaign.toml"


@click.command(cls=Command)
@click.argument("runs", metavar="RESULTS_A RESULTS_B ...", type=PATH, nargs=-1, required=True)
@output_option(
    "Also write a CSV file: a line for every task or job; for more than two runs,"
    " a line for every metric."
)
@click.option(
    "--picture",
    metavar="FILE",
    type=PATH,
    help="Also draw a picture: times of both runs, metrics and queues, or changes of "
    "waiting times (.png, .svg or .pdf).",
)
@click.option(
    "--page",
    metavar="FILE",
    type=PATH,
    help="Also write an HTML page with all metrics, tables and pictures.",
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
    """Compare RESULTS_A with RESULTS_B ..., directories of runs of the same tasks.

    First comes whether the runs did the same work, then metrics of users and of the machine, each
    with its change against the first run. Two runs are also compared task by task, matched by id;
    only tasks that ended in both count as faster or slower. For two runs of `slurm`: which settings
    differ, and which jobs wait less or longer, by size, length, user and account.
    """
    from ptaskmodel.cli.show import comparison_text, slurm_comparison_text, standings_text
    from ptaskmodel.results.batch_comparison import standings
    from ptaskmodel.results.loading import load_results
    from ptaskmodel.results.slurm_comparison import both_slurm, compare_slurm
    from ptaskmodel.results.task_comparison import compare as compare_results

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
        from ptaskmodel.results.pages.comparison import write_comparison_page

        write_comparison_page(page, results, tolerance=tolerance)
    for path in (output, picture, page):
        if path is not None:
            click.echo(f"written   {path}")


@click.command(cls=Command)
@click.argument("results", metavar="RESULTS", type=PATH)
@click.argument("picture", metavar="PICTURE", type=Choice(PICTURES))
@click.option(
    "--colour",
    type=Choice({**COLOURS, **GANTT_COLOURS}),
    help="Meaning of the colours of the topology: mean use over the run (default), highest use "
    "in an interval, or time in which each limited a task. Of gantt: slowdown, state, user "
    "(of Slurm's jobs), size, waiting or task; by default the first that is known of slowdown, "
    "waiting and task.",
)
@click.option(
    "--from",
    "since_s",
    metavar="S",
    type=NOT_NEGATIVE,
    help="For ranks: draw from this date on, s.",
)
@click.option(
    "--until", "until_s", metavar="S", type=POSITIVE, help="For ranks: draw until this date, s."
)
@click.option("--messages/--no-messages", default=True, help="For ranks: draw messages.")
@output_option("The picture to write: .png, .svg or .pdf.", required=True)
def plot(
    results: Path,
    picture: str,
    colour: str | None,
    since_s: float | None,
    until_s: float | None,
    messages: bool,
    output: Path,
) -> None:
    """Draw the results in directory RESULTS.

    gantt: tasks on hosts over time; progress: progress of each task; links, hosts: use of each over
    time; topology: the platform coloured by use; routes: by how many flows cross each link (needs
    --routes); queues: queues and pauses of links over time (needs --network-level packets);
    slowdowns: their distribution; load: hosts in use and the queue of a batch; queue: how long the
    jobs in it have waited; waits: waiting times of its jobs; reasons, backfill: of a simulated
    Slurm, why jobs waited, and backfill's cycles;
    power: power of hosts and links (needs a run with --energy); times: how long each rank of a
    replay spent in each kind of action; ranks: the same over time; matrix: traffic between ranks
    (both need --timeline). progress, links, hosts, topology and slowdowns need a run with
    --attribution.
    """
    from ptaskmodel.results.pictures.catalogue import draw_results
    from ptaskmodel.style.text import terminal_width, wrapped

    if picture != "ranks" and (since_s is not None or until_s is not None or not messages):
        raise PTaskModelError("--from, --until and --no-messages apply only to the picture 'ranks'")
    if since_s is not None and until_s is not None and since_s >= until_s:
        raise PTaskModelError(f"--from {since_s:g} is not before --until {until_s:g}")
    said = draw_results(
        results, picture, output, colour, since_s=since_s, until_s=until_s, messages=messages
    )
    shown = wrapped(said) if terminal_width() else said
    click.echo(f"{shown}\nwritten   {output}")


@click.command(cls=Command)
@click.argument("results", metavar="RESULTS", type=PATH)
@output_option("The page to write.", default="report.html", show_default=True)
@click.option(
    "--against",
    metavar="RESULTS",
    type=PATH,
    help="For a run of slurm: also compare it with this earlier run, with the jobs "
    "that gain or lose.",
)
def report(results: Path, output: Path, against: Path | None) -> None:
    """Write one self-contained HTML page about the results in directory RESULTS.

    RESULTS are of `simulate`, `batch`, `slurm` or `replay`, or a campaign. The page shows most for
    runs with --attribution, and for replays with --timeline and --critical-path.
    """
    if (results / CAMPAIGN).exists():
        from ptaskmodel.campaign import Campaign, write_campaign_report

        if against is not None:
            raise PTaskModelError(f"{results}: --against is for results of slurm")
        write_campaign_report(Campaign.in_directory(results), output)
        click.echo(f"written   {output}")
        return
    from ptaskmodel.cli.progress import told_reading
    from ptaskmodel.results.pages.report import write_report

    with told_reading(results, "making a page of"):
        write_report(results, output, against=against)
    click.echo(f"written   {output}")


@click.command(cls=Command)
@click.argument("name", required=False)
def schema(name: str | None) -> None:
    """Print the JSON Schema of NAME; without it, list the names.

    The schema of a table (CSV) describes a line: an object with a property for each column, null
    where the field is empty.
    """
    from ptaskmodel.results.schemas import schema_names, schema_of

    if name is None:
        names = schema_names()
        width = max(map(len, names)) + 2
        for known, what in names.items():
            click.echo(f"{known:<{width}}{what}")
        return
    click.echo(json.dumps(schema_of(name), indent=2, ensure_ascii=False))
