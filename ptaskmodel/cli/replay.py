"""``ptaskmodel replay``: time-independent traces of an MPI application on a platform."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptaskmodel.cli.parameters import PATH, Choice, directory_option, platform_argument
from ptaskmodel.cli.rank_hosts import check_rank_options, hosts_asked_for, rank_options
from ptaskmodel.errors import PTaskModelError
from ptaskmodel.replay.names import MODELS
from ptaskmodel.sharing.rules import SOLVERS
from ptaskmodel.units import format_time

if TYPE_CHECKING:
    from ptaskmodel.results.replays import ReplayRun


@click.command()
@platform_argument
@click.argument("traces", metavar="TRACES", type=PATH)
@rank_options
@click.option(
    "--network-model", type=Choice(MODELS), help="[default: as the platform says, else SMPI]"
)
@click.option(
    "--solver",
    type=Choice(SOLVERS),
    help="Who gets how much  [default: maxmin; with L07 fairbottleneck]",
)
@click.option(
    "--collective",
    "collectives",
    metavar="NAME=ALGORITHM",
    multiple=True,
    help="How a collective is done, by SimGrid's names, such as alltoall=ring (may be given "
    "several times)  [default: as the platform says, else SMPI's]",
)
@directory_option("Write summary.json, ranks.csv and actions.csv there.")
@click.option(
    "--timeline",
    is_flag=True,
    help="Also write what each rank did when, each message, and who sent to whom (needs --output).",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def replay(
    platform_file: Path,
    traces: Path,
    ranks: int | None,
    ranks_on: Path | None,
    hosts: str | None,
    per_host: int,
    network_model: str | None,
    solver: str | None,
    collectives: tuple[str, ...],
    output: Path | None,
    timeline: bool,
    as_json: bool,
) -> None:
    """Replay TRACES, an MPI application, on PLATFORM (SimGrid XML), message by message.

    TRACES is what `smpirun -trace-ti` writes: a list of files, one for each rank, or one file for
    all; or a .npz file of `ptaskmodel trace pack`. Without a choice of hosts, ranks take those that
    smpirun would: all, in the order of their names as text.
    """
    if timeline and output is None:
        raise PTaskModelError("--timeline writes files; give --output DIR")
    check_rank_options(ranks_on, hosts)
    from ptaskmodel.cli.kernels import ready_kernels
    from ptaskmodel.cli.progress import bar_of_simulation
    from ptaskmodel.kernel_sets import REPLAY
    from ptaskmodel.platform import load_platform
    from ptaskmodel.replay import algorithms_named, read_trace
    from ptaskmodel.results.replays import replay_into

    platform = load_platform(platform_file)
    ready_kernels(REPLAY)
    trace = read_trace(traces, ranks)
    chosen = hosts_asked_for(platform, trace.ranks, ranks_on, hosts, per_host)
    with bar_of_simulation(len(trace), hidden=as_json) as progress:
        run = replay_into(
            output,
            platform,
            trace,
            chosen,
            model=network_model,
            solver=solver,
            collectives=algorithms_named(collectives),
            timeline=timeline,
            inputs=[platform_file, traces],
            progress=progress,
        )
    if as_json:
        click.echo(json.dumps(run.summary, indent=2, allow_nan=False))
    else:
        click.echo(_text(run))


def _text(run: ReplayRun) -> str:
    summary: dict[str, Any] = run.summary
    lines = [
        f"makespan  {format_time(summary['makespan'])}",
        f"ranks     {summary['ranks']}",
        f"actions   {summary['actions']:,}, {summary['messages']:,} messages",
        f"model     {summary['network_model']}, solver {summary['solver']}",
    ]
    spent = summary["mean_rank_s"]
    total = sum(spent.values())
    for state, seconds in sorted(spent.items(), key=lambda one: -one[1]):
        lines.append(f"{state:<16}{seconds / total:6.1%} of the time of the ranks")
    if summary["unmatched_messages"]:
        lines.append(f"note      {summary['unmatched_messages']} messages were never received")
    lines += [f"note      {note}" for note in summary["notes"]]
    if run.directory is not None:
        lines.append(f"written   {len(run.files)} files in {run.directory}: {', '.join(run.files)}")
    return "\n".join(lines)
