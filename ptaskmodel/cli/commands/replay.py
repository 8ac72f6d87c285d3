"""``ptaskmodel replay``: time-independent traces of an MPI application on a platform."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptaskmodel.cli.command import Command
from ptaskmodel.cli.parameters import (
    PATH,
    POSITIVE,
    Choice,
    directory_option,
    platform_argument,
)
from ptaskmodel.cli.rank_hosts import (
    COLLECTIVE_OPTION,
    check_rank_options,
    collectives_asked_for,
    hosts_asked_for,
    rank_options,
)
from ptaskmodel.errors import PTaskModelError
from ptaskmodel.mpi.names import MODELS
from ptaskmodel.results import TIMELINE_FORMATS, TRACE_FORMATS
from ptaskmodel.sharing.rules import SOLVERS

if TYPE_CHECKING:
    from ptaskmodel.runs.replay import ReplayRun

WRITE_FILES = ("timeline", "timelines", "attribution", "use_traces")
OPTION_NAMES = {"timelines": "timeline-as", "use_traces": "trace"}


@click.command(cls=Command)
@platform_argument
@click.argument("traces", metavar="TRACES", type=PATH)
@rank_options
@click.option(
    "--network-model", type=Choice(MODELS), help="[default: SMPI, or L07 if the platform says so]"
)
@click.option(
    "--solver",
    type=Choice(SOLVERS),
    help="Who gets how much  [default: maxmin; with L07 fairbottleneck]",
)
@COLLECTIVE_OPTION
@directory_option("Write summary.json, ranks.csv and actions.csv there.")
@click.option(
    "--timeline",
    is_flag=True,
    help="Also write what each rank did when, each message, and who sent to whom (needs --output).",
)
@click.option(
    "--timeline-as",
    "timelines",
    type=Choice(TIMELINE_FORMATS),
    multiple=True,
    help="Also write that for the Perfetto UI or for Paje's tools (may be given several times; "
    "needs --output).",
)
@click.option(
    "--critical-path",
    is_flag=True,
    help="Also find the chain of computing and messages that determines the makespan.",
)
@click.option(
    "--attribution",
    is_flag=True,
    help="Also write what limited each computation and message, and the utilisation (needs "
    "--output).",
)
@click.option(
    "--trace",
    "use_traces",
    multiple=True,
    type=Choice(TRACE_FORMATS),
    help="Also write who used what and when (may be given several times; needs --output).",
)
@click.option(
    "--trace-limit",
    metavar="GB",
    type=POSITIVE,
    help="Stop when the traces are larger than that, about.",
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
    as_json: bool,
    **wanted: Any,
) -> None:
    """Replay TRACES, an MPI application, on PLATFORM (SimGrid XML), message by message.

    TRACES is what `smpirun -trace-ti` writes: a list of files, one for each rank, or one file for
    all; or a .npz file of `ptaskmodel trace pack`. Without a choice of hosts, ranks take those that
    smpirun would: all, in the order of their names as text.
    """
    if output is None:
        for name in WRITE_FILES:
            if wanted[name]:
                option = OPTION_NAMES.get(name, name)
                raise PTaskModelError(f"--{option} writes files; give --output DIR")
    wanted["traces"] = wanted.pop("use_traces")
    wanted["trace_limit_GB"] = wanted.pop("trace_limit")
    check_rank_options(ranks_on, hosts)
    from ptaskmodel.cli.progress import told_progress, told_reading
    from ptaskmodel.cli.show import summary_text
    from ptaskmodel.mpi import read_trace
    from ptaskmodel.platform import load_platform
    from ptaskmodel.runs.replay import ReplayFiles, replay_into

    platform = load_platform(platform_file)
    with told_reading(traces):
        trace = read_trace(traces, ranks)
    chosen = hosts_asked_for(platform, trace.ranks, ranks_on, hosts, per_host)
    algorithms = collectives_asked_for(platform, trace, collectives)
    with told_progress(len(trace), "actions") as progress:
        run = replay_into(
            output,
            platform,
            trace,
            chosen,
            model=network_model,
            solver=solver,
            collectives=algorithms,
            wanted=ReplayFiles(**wanted),
            inputs=[platform_file, traces],
            progress=progress,
        )
    if as_json:
        click.echo(summary_text(run))
    else:
        click.echo(_text(run))


def path_text(path: dict[str, Any]) -> list[str]:
    """The critical path in a few lines."""
    whole = sum(path["seconds"].values()) or 1.0
    messages = f"{path['messages']:,} message{'s' * (path['messages'] != 1)}"
    lines = [f"critical path: {messages} over {path['ranks']:,} ranks"]
    for kind, seconds in sorted(path["seconds"].items(), key=lambda one: -one[1]):
        lines.append(f"  {kind:<14}{seconds / whole:6.1%}")
    for share in path["links"][:1]:
        spent = share["latency_s"] + share["transfer_s"] + share["contention_s"]
        lines.append(f"  most across   link {share['link']}: {spent / whole:.1%}")
    return lines


def _text(run: ReplayRun) -> str:
    from ptaskmodel.cli.show import remark_lines

    summary: dict[str, Any] = run.summary
    sent = summary["messages"]
    lines = [
        f"makespan  {summary['makespan']:.9g} s",
        f"ranks     {summary['ranks']}",
        f"actions   {summary['actions']:,}, {sent:,} message{'s' * (sent != 1)}",
        f"model     {summary['network_model']}, solver {summary['solver']}",
    ]
    spent = summary["mean_rank_s"]
    total = sum(spent.values())
    for state, seconds in sorted(spent.items(), key=lambda one: -one[1]):
        lines.append(f"{state:<16}{seconds / total:6.1%} of the time of the ranks")
    if summary["imbalance"] is not None:
        worst = f"rank {summary['worst_rank']} computes that many times as long as the mean"
        lines.append(f"imbalance {summary['imbalance']:.3f}: {worst}")
    if "critical_path" in summary:
        lines += path_text(summary["critical_path"])
    lines += [f"{level:<10}{text}" for level, text in remark_lines(summary)]
    if run.directory is not None:
        lines.append(f"written   {len(run.files)} files in {run.directory}: {', '.join(run.files)}")
    return "\n".join(lines)
