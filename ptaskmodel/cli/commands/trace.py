"""``ptaskmodel trace``: show, generate and convert time-independent traces of MPI ranks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptaskmodel.apps.names import PHASES, PROGRAMS
from ptaskmodel.cli.command import Choice, Group
from ptaskmodel.cli.parameters import (
    COUNT,
    NOT_NEGATIVE,
    PATH,
    SEED,
    Real,
    directory_option,
    options_of,
    output_option,
    platform_argument,
)
from ptaskmodel.engine.usage.network_models import COUNTS, REPLAY_MODELS
from ptaskmodel.errors import PTaskModelError
from ptaskmodel.runs.options import COLLECTIVES, RANKS, check_rank_options
from ptaskmodel.sharing.rules import SOLVERS

if TYPE_CHECKING:
    from ptaskmodel.runs.trace_comparison import TraceComparison

MOST = 100_000  # flows or windows


@click.group(cls=Group)
def trace() -> None:
    """Inspect, generate and convert traces of MPI applications."""


@trace.command()
@click.argument("traces", metavar="TRACES", type=PATH)
@click.option("--ranks", type=COUNT, help="[default: as many as TRACES has]")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def info(traces: Path, ranks: int | None, as_json: bool) -> None:
    """Count the ranks, and the actions of each kind."""
    from ptaskmodel.cli.progress import told_reading
    from ptaskmodel.mpi import read_trace

    with told_reading(traces):
        found = read_trace(traces, ranks)
    if as_json:
        facts = {"ranks": found.ranks, "actions": found.counts(), "notes": list(found.notes)}
        click.echo(json.dumps(facts, indent=2))
        return
    click.echo(f"{'ranks':<14}{found.ranks:,}")
    for name, count in found.counts().items():
        click.echo(f"{name:<14}{count:,}")
    for note in found.notes:
        click.echo(f"{'note':<14}{note}")


@trace.command()
@click.argument("traces", metavar="TRACES", type=PATH)
@output_option("The packed trace, named .npz.", required=True)
@click.option("--ranks", type=COUNT, help="[default: as many as TRACES has]")
def pack(traces: Path, output: Path, ranks: int | None) -> None:
    """Write TRACES into one compact file, which replays in the same way."""
    from ptaskmodel.cli.progress import told_reading, told_steps
    from ptaskmodel.mpi import read_trace, write_trace

    if output.suffix != ".npz":
        raise PTaskModelError(f"{output}: a packed trace is named .npz; end the name so")
    with told_reading(traces):
        found = read_trace(traces, ranks)
    with told_steps("bytes") as progress:
        write_trace(found, output, progress)
    click.echo(f"{output}: {found.ranks} ranks, {len(found):,} actions")


@trace.command()
@click.argument("program", metavar="PROGRAM", type=Choice(PROGRAMS))
@output_option("The trace: text, gzipped if named .gz; packed if named .npz.", required=True)
@click.option("--ranks", type=COUNT, required=True, help="Number of ranks.")
@click.option("--iterations", type=COUNT, default=10, show_default=True)
@click.option(
    "--flops",
    type=NOT_NEGATIVE,
    default=1e9,
    show_default=True,
    help="Flop of a rank in an iteration.",
)
@click.option(
    "--bytes",
    "size",
    type=NOT_NEGATIVE,
    default=1e6,
    show_default=True,
    help="Bytes of a message.",
)
@click.option(
    "--imbalance",
    type=Real(min=0.0, max=1.0),
    default=0.0,
    show_default=True,
    help="Draw each computation from 1 - X to 1 + X times --flops.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of --imbalance.")
def make(
    program: str,
    output: Path,
    ranks: int,
    iterations: int,
    flops: float,
    size: float,
    imbalance: float,
    seed: int,
) -> None:
    """Make the trace of a PROGRAM, without MPI.

    The trace has what each rank computes, sends and receives. all-to-all: in each iteration a
    computation, an all-to-all, a checksum; stencil: an exchange with up to four neighbours in a
    grid, a computation; pipeline: each rank is a stage, each iteration a block; master-worker: rank
    0 sends a task to each worker, and receives a result; pdgemm: a matrix product by broadcasts
    along rows and columns of a square grid.
    """
    from ptaskmodel.apps.programs import Size
    from ptaskmodel.apps.programs import program as trace_of_program
    from ptaskmodel.mpi import write_text_trace, write_trace

    asked = Size(ranks, iterations, flops, int(size), imbalance, seed)
    made = trace_of_program(program, asked)
    (write_trace if output.suffix == ".npz" else write_text_trace)(made, output)
    click.echo(f"{output}: {made.ranks} ranks, {len(made):,} actions")


@trace.command()
@click.argument("traces", metavar="TRACES", type=PATH)
@output_option("The tasks file, gzipped if named .gz.", required=True)
@click.option(
    "--platform",
    "platform_file",
    metavar="PLATFORM",
    type=PATH,
    help="Take its hosts, and replay on them for --phases time.",
)
@options_of(RANKS)
@click.option(
    "--phases",
    type=Choice(PHASES),
    default="none",
    show_default=True,
    help="none: one bundle; collectives: each collective, and what is done between "
    "two; time: equal windows of a replay alone.",
)
@click.option(
    "--windows",
    type=COUNT,
    default=10,
    show_default=True,
    help="Number of windows, for --phases time.",
)
@click.option(
    "--network-model",
    type=Choice(REPLAY_MODELS),
    help="Network model of the replay for --phases time  [default: SMPI, or L07 if the"
    " platform says so]",
)
@options_of([COLLECTIVES])
@click.option("--id", "name", metavar="NAME", default="application", help="Name of the task.")
def to_ptask(
    traces: Path,
    output: Path,
    platform_file: Path | None,
    phases: str,
    windows: int,
    network_model: str | None,
    collectives: dict[str, str],
    name: str,
    **places: Any,
) -> None:
    """Make one parallel task of TRACES, an MPI application.

    It has the flops of each rank and the bytes of each pair of ranks. Collectives count as the
    messages that a replay sends. The file is input for `simulate`; a Batsim workload can use its
    profiles too.
    """
    check_rank_options(places)
    if platform_file is None and (
        phases == "time" or (places["ranks_on"] is None and places["hosts"] is None)
    ):
        why = "--phases time replays the trace" if phases == "time" else "a task needs hosts"
        other = "" if phases == "time" else ", --hosts NAMES or --ranks-on FILE"
        raise PTaskModelError(f"{why}; give --platform PLATFORM{other}")
    from ptaskmodel.apps.trace_works import task_of_trace
    from ptaskmodel.cli.progress import told_progress, told_reading
    from ptaskmodel.mpi import read_trace
    from ptaskmodel.platform import load_platform
    from ptaskmodel.runs.replay import check_collectives, hosts_asked_for
    from ptaskmodel.workload.formats.tasks_json import write_tasks

    with told_reading(traces):
        found = read_trace(traces, places["ranks"])
    platform = None if platform_file is None else load_platform(platform_file)
    chosen = hosts_asked_for(platform, found.ranks, places)
    check_collectives(platform, found, collectives)
    with told_progress(0, "actions", after="the task is made") as progress:
        made = task_of_trace(
            found,
            chosen,
            phases,
            platform=platform,
            count=windows,
            model=network_model,
            collectives=collectives,
            name=name,
            progress=progress,
        )
    write_tasks([made], output, description=f"of the trace {traces.name}, phases: {phases}")
    stages = sum(1 for _ in made.work.parts())
    click.echo(f"{output}: a task of {found.ranks} ranks, {stages} phase{'s' * (stages != 1)}")
    for note in found.notes:
        click.echo(f"{'note':<14}{note}")


@trace.command()
@platform_argument
@click.argument("traces", metavar="TRACES", type=PATH)
@options_of(RANKS)
@click.option(
    "--disturb",
    metavar="FROM:TO",
    help="Endless flows from each host FROM to the host TO at its place, as n[0-3]:n[4-7].",
)
@click.option(
    "--flows",
    metavar="N,...",
    default="0,1,2,4",
    show_default=True,
    help="Numbers of flows for each pair; each number is tried.",
)
@click.option(
    "--windows",
    metavar="N,...",
    default="1,10",
    show_default=True,
    help="Numbers of windows of equal length; each number is tried.",
)
@click.option(
    "--network-model",
    type=Choice(REPLAY_MODELS),
    help="Network model of the replay; tasks use L07  [default: SMPI, or L07 if the "
    "platform says so]",
)
@options_of([COLLECTIVES])
@click.option(
    "--solver", type=Choice(SOLVERS), help="Rule by which the tasks share resources  [default: bmf]"
)
@click.option(
    "--count",
    type=Choice(COUNTS),
    default="task",
    show_default=True,
    help="Unit of the tasks that counts as one competitor on a shared link.",
)
@directory_option("Write comparison.csv, comparison.png and summary.json there.")
def compare(
    platform_file: Path,
    traces: Path,
    disturb: str | None,
    flows: str,
    windows: str,
    network_model: str | None,
    collectives: dict[str, str],
    solver: str | None,
    count: str,
    output: Path | None,
    **places: Any,
) -> None:
    """Compare parallel tasks with a replay: their errors and their costs.

    It replays TRACES on PLATFORM and runs it as parallel tasks: alone, and with --disturb beside
    endless flows. The parallel tasks are one bundle, phases at collectives, and windows in time of
    the replay alone, none of which takes less time than it did (one window: a bundle that takes as
    long as the replay alone).
    """
    check_rank_options(places)
    numbers = whole_numbers("--flows", flows, least=0)
    counts = whole_numbers("--windows", windows, least=1)
    from ptaskmodel.apps.trace_works import pairs_of
    from ptaskmodel.cli.progress import told_progress, told_reading
    from ptaskmodel.mpi import hosts_named, read_trace
    from ptaskmodel.platform import load_platform
    from ptaskmodel.runs.replay import check_collectives, hosts_asked_for
    from ptaskmodel.runs.trace_comparison import ModelOptions, compare_into

    with told_reading(traces):
        found = read_trace(traces, places["ranks"])
    platform = load_platform(platform_file)
    chosen = hosts_asked_for(platform, found.ranks, places)
    check_collectives(platform, found, collectives)
    pairs = []
    if disturb is not None:
        sources, colon, targets = disturb.partition(":")
        if not (colon and sources and targets):
            raise PTaskModelError(f"--disturb '{disturb}'; give FROM:TO, such as n[0-3]:n[4-7]")
        pairs = pairs_of(*(hosts_named(ends, "--disturb") for ends in (sources, targets)))
    with told_progress(0, "actions", after="the parallel tasks run") as progress:
        made = compare_into(
            output,
            platform,
            found,
            chosen,
            pairs=pairs,
            flows=numbers,
            windows=counts,
            options=ModelOptions(network_model, None, solver, count, collectives=collectives),
            inputs=[platform_file, traces],
            progress=progress,
        )
    click.echo(comparison_text(made))
    if output is not None:
        click.echo(f"written   {output}")


def comparison_text(made: TraceComparison) -> str:
    """A comparison as a table for the terminal."""
    from ptaskmodel.style.text import text_table

    rows = []
    for row in made.rows:
        times = (f"{row.makespan_s:.6g}", f"{row.error:+.1%}", f"{row.slowdown:.3f}")
        costs = (f"{made.slowdown_error(row):+.1%}", f"{row.cpu_s:.2g}", f"{row.events:,}")
        rows.append((str(row.flows), row.model, *times, *costs))
    header = ("flows", "model", "ends (s)", "error", "slowdown", "its error", "cpu (s)", "events")
    return text_table(header, rows, right={0, 2, 3, 4, 5, 6, 7})


def whole_numbers(option: str, text: str, least: int) -> list[int]:
    """The numbers of a list such as 0,1,4. Raises PTaskModelError."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and least <= int(word) <= MOST for word in words):
        raise PTaskModelError(f"{option} '{text}'; give whole numbers from {least}, such as 1,4")
    return [int(word) for word in words]
