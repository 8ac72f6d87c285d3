"""``ptaskmodel simulate``, ``tasks`` and ``replay``: run tasks, or traces of an application.

``tasks`` checks a file of tasks; ``replay`` runs time-independent traces of an MPI application.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptaskmodel.cli.command import Command, Group
from ptaskmodel.cli.parameters import (
    PATH,
    directory_option,
    json_option,
    options_of,
    platform_argument,
)
from ptaskmodel.errors import WorkloadError
from ptaskmodel.runs.options import REPLAY, SIMULATE
from ptaskmodel.style.text import count, duration, number

if TYPE_CHECKING:
    from ptaskmodel.runs.replay import ReplayRun


@click.command(cls=Command)
@platform_argument
@click.argument("tasks_file", metavar="TASKS", type=PATH)
@options_of(SIMULATE)
@directory_option("Write tasks.csv and summary.json there (earlier results are replaced).")
@json_option
def simulate(
    platform_file: Path, tasks_file: Path, output: Path | None, as_json: bool, **options: Any
) -> None:
    """Run the tasks of TASKS (JSON) on PLATFORM (SimGrid XML)."""
    from ptaskmodel.cli.progress import told_progress
    from ptaskmodel.cli.show import run_as_json, run_text
    from ptaskmodel.files import json_text
    from ptaskmodel.runs.simulate import simulate_into, simulation_inputs

    found = simulation_inputs({"platform": platform_file, "tasks": tasks_file, **options})
    with told_progress(len(found.tasks), "tasks") as progress:
        run = simulate_into(output, **found._asdict(), progress=progress)
    if as_json:
        click.echo(json_text(run_as_json(run)))
    else:
        click.echo(run_text(run))


@click.group(cls=Group)
def tasks() -> None:
    """Check a tasks file."""


@tasks.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--platform",
    "platform_file",
    metavar="PLATFORM",
    type=click.Path(path_type=Path),
    help="Also check that this platform has the hosts and routes, and estimate times.",
)
def validate(file: Path, platform_file: Path | None) -> None:
    """Check the tasks of FILE; list what is legal but surely wrong, and count the tasks."""
    from ptaskmodel.files import shown_path
    from ptaskmodel.simulation.checks import check_tasks
    from ptaskmodel.workload.formats.json import read_json
    from ptaskmodel.workload.formats.tasks_json import load_tasks

    loaded = load_tasks(file)
    names = {name for task in loaded for name in task.hosts}
    platform = None
    if platform_file is not None:
        from ptaskmodel.platform import load_platform

        platform = load_platform(platform_file)
        known = {host.name for host in platform.hosts}
        for k, task in enumerate(loaded):
            missing = next((name for name in task.hosts if name not in known), None)
            if missing is not None:
                raise WorkloadError(
                    f"{shown_path(file)}: /tasks/{k}/hosts: {missing!r} is not a host of "
                    f"{shown_path(platform_file)}; give one of its hosts"
                )
    findings = check_tasks(read_json(file), loaded, platform)
    name = shown_path(file)
    for finding in findings:
        click.echo(f"{name}: {finding.pointer}: {finding.kind}: {finding.text}")
    first, last = min(t.start_s for t in loaded), max(t.start_s for t in loaded)
    dates = f"start at {first:g} s" if first == last else f"start from {first:g} to {last:g} s"
    count = "1 task" if len(loaded) == 1 else f"{len(loaded)} tasks"
    warnings = f", {len(findings)} warning{'s' * (len(findings) != 1)}" if findings else ""
    click.echo(f"{name}: {count} on {len(names)} hosts, {dates}{warnings}")


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
    from ptaskmodel.cli.show import recorded_answer, remark_lines, written
    from ptaskmodel.style.text import fact_lines

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
    facts = remark_lines(summary)
    if run.directory is not None:
        facts.append(("written", written(run.directory, run.files)))
    answer = recorded_answer(run.directory, run.files, summary["actions"])
    return "\n\n".join([*answer, "\n".join([*lines, *fact_lines(facts, 10).splitlines()])])
