"""``ptaskmodel replay``: replay time-independent traces of an MPI application on a platform."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptaskmodel.cli.command import Command
from ptaskmodel.cli.parameters import (
    PATH,
    directory_option,
    json_option,
    options_of,
    platform_argument,
)
from ptaskmodel.runs.options import REPLAY
from ptaskmodel.style.text import count, duration, number

if TYPE_CHECKING:
    from ptaskmodel.runs.replay import ReplayRun


@click.command(cls=Command)
@platform_argument
@click.argument("traces_file", metavar="TRACES", type=PATH)
@options_of(REPLAY)
@directory_option("Write summary.json, ranks.csv and actions.csv there.")
@json_option
def replay(
    platform_file: Path, traces_file: Path, output: Path | None, as_json: bool, **options: Any
) -> None:
    """Replay TRACES, an MPI application, on PLATFORM (SimGrid XML), message by message.

    TRACES is the output of `smpirun -trace-ti`: a list of files, one for each rank, or one file for
    all; or a .npz file of `ptaskmodel trace pack`. By default ranks are placed as by smpirun: on
    all hosts, in the order of their names as text.
    """
    from ptaskmodel.cli.progress import told_progress, told_reading
    from ptaskmodel.cli.show import summary_text
    from ptaskmodel.runs.replay import replay_inputs, replay_into

    with told_reading(traces_file):
        found = replay_inputs({"platform": platform_file, "traces": traces_file, **options})
    with told_progress(len(found.trace), "actions") as progress:
        run = replay_into(output, **found._asdict(), progress=progress)
    click.echo(summary_text(run) if as_json else _text(run))


def path_text(path: dict[str, Any]) -> list[str]:
    """The critical path in a few lines."""
    whole = sum(path["seconds"].values()) or 1.0
    messages, ranks = count(path["messages"], "message"), count(path["ranks"], "rank")
    lines = [f"critical path: {messages} over {ranks}"]
    for kind, seconds in sorted(path["seconds"].items(), key=lambda one: -one[1]):
        lines.append(f"  {kind:<14}{number(seconds / whole, 'share')}")
    for share in path["links"][:1]:
        spent = share["latency_s"] + share["transfer_s"] + share["contention_s"]
        lines.append(f"  most across   link {share['link']}: {number(spent / whole, 'share')}")
    return lines


def _text(run: ReplayRun) -> str:
    from ptaskmodel.cli.show import remark_lines

    summary: dict[str, Any] = run.summary
    lines = [
        f"makespan  {duration(summary['makespan'])}",
        f"ranks     {count(summary['ranks'])}",
        f"actions   {count(summary['actions'])}, {count(summary['messages'], 'message')}",
        f"model     {summary['network_model']}, solver {summary['solver']}",
    ]
    spent = summary["mean_rank_s"]
    total = sum(spent.values())
    for state, seconds in sorted(spent.items(), key=lambda one: -one[1]):
        lines.append(f"{state:<16}{number(seconds / total, 'share')} of the time of the ranks")
    if summary["imbalance"] is not None:
        worst = f"rank {summary['worst_rank']} computes that many times as long as the mean"
        lines.append(f"imbalance {number(summary['imbalance'])}: {worst}")
    if "critical_path" in summary:
        lines += path_text(summary["critical_path"])
    lines += [f"{level:<10}{text}" for level, text in remark_lines(summary)]
    if run.directory is not None:
        lines.append(f"written   {len(run.files)} files in {run.directory}: {', '.join(run.files)}")
    return "\n".join(lines)
