"""``ptaskmodel serve``: a scheduler elsewhere decides, by Batsim's protocol."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Any

import click

from ptaskmodel.batch.names import DELAY_POWERS, HOST_ORDERS
from ptaskmodel.cli.command import Command
from ptaskmodel.cli.parameters import (
    COUNT,
    PATH,
    POSITIVE,
    Choice,
    job_options,
    job_results_options,
    model_options,
    platform_argument,
)
from ptaskmodel.errors import SimulationError

# Options that are a matter between us and the scheduler.
AGREED = (
    "acknowledge_dynamic_jobs",
    "compute_sharing",
    "dynamic_jobs",
    "forward_profiles",
    "forward_unknown_events",
    "scheduler_config",
)
SOCKET = "tcp://localhost:28000"


@click.command(cls=Command)
@platform_argument
@click.argument("workload_files", metavar="WORKLOAD...", type=PATH, nargs=-1, required=True)
@click.option(
    "--socket",
    "endpoint",
    metavar="ENDPOINT",
    help=f"Where the scheduler listens  [default: {SOCKET}; with --scheduler a free port of the "
    "loopback]",
)
@click.option(
    "--scheduler",
    "command",
    metavar="COMMAND",
    help="Start it, and end it with the run; {socket} in it stands for the endpoint.",
)
@click.option(
    "--protocol", type=Choice(["2", "3", "4"]), default="4", show_default=True, help="Its version."
)
@click.option(
    "--timeout",
    "timeout_s",
    type=POSITIVE,
    metavar="SECONDS",
    help="How long a reply may take  [default: any time]",
)
@click.option("--record", metavar="FILE", type=PATH, help="Write every message, a line each.")
@click.option(
    "--replay",
    metavar="FILE",
    type=PATH,
    help="Instead of a scheduler, what one said by a record; stop where we say anything else.",
)
@click.option("--dynamic-jobs", is_flag=True, help="The scheduler may register jobs.")
@click.option("--acknowledge-dynamic-jobs", is_flag=True, help="Tell it when these are submitted.")
@click.option("--forward-profiles", is_flag=True, help="Send each job's profile with the job.")
@click.option("--compute-sharing", is_flag=True, help="Hosts may have several jobs at once.")
@click.option("--no-storage-sharing", is_flag=True, help="What the scheduler is told of storages.")
@click.option(
    "--events",
    metavar="FILE",
    type=PATH,
    multiple=True,
    help="External events, a JSON object a line. Repeatable.",
)
@click.option("--forward-unknown-events", is_flag=True, help="Other events than of machines too.")
@click.option("--scheduler-config", default="", metavar="TEXT", help="Sent when all begins.")
@click.option("--redis", metavar="HOST:PORT", help="Jobs and profiles go by way of Redis.")
@click.option("--redis-prefix", default="default", show_default=True, help="Of its keys.")
@click.option(
    "--role", "roles", multiple=True, metavar="HOST=ROLE", help="master, storage. Repeatable."
)
@click.option(
    "--host-order",
    type=Choice(HOST_ORDERS),
    default="platform",
    show_default=True,
    help="By which hosts are numbered: as declared, by name, by name with numbers as numbers.",
)
@click.option("--most-hosts", type=COUNT, help="Only the first hosts run jobs.")
@job_options
@click.option(
    "--delay-power",
    type=Choice(DELAY_POWERS),
    default="idle",
    show_default=True,
    help="What hosts draw while a delay runs there, for --energy.",
)
@model_options
@job_results_options
def serve(
    platform_file: Path,
    workload_files: tuple[Path, ...],
    endpoint: str | None,
    command: str | None,
    protocol: str,
    timeout_s: float | None,
    record: Path | None,
    replay: Path | None,
    redis: str | None,
    redis_prefix: str,
    events: tuple[Path, ...],
    storages: tuple[str, ...],
    roles: tuple[str, ...],
    processors_per_host: int,
    no_contention: bool,
    no_storage_sharing: bool,
    output: Path | None,
    traces: tuple[str, ...],
    trace_limit: float | None,
    attribution: bool,
    plots: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Let a scheduler elsewhere start the jobs of WORKLOAD (Batsim JSON or SWF) on PLATFORM.

    The scheduler binds a ZeroMQ REP socket and is asked as Batsim does. When it breaks the
    protocol, falls silent or leaves, one line says how; what happened until then is written.
    """
    from ptaskmodel.batch.plan import BatchOptions
    from ptaskmodel.bridges.batsim.book import Book
    from ptaskmodel.bridges.batsim.serving import served
    from ptaskmodel.bridges.batsim.telling import SessionOptions
    from ptaskmodel.cli.pairs import pairs
    from ptaskmodel.cli.progress import told_progress
    from ptaskmodel.cli.show import batch_text, summary_text
    from ptaskmodel.platform import load_platform
    from ptaskmodel.results.batches import BatchWriting, batch_into
    from ptaskmodel.workload.formats.table import Cleaning

    if replay is not None and (command is not None or endpoint is not None):
        raise SimulationError("--replay needs no scheduler: leave out --scheduler and --socket")
    agreed = SessionOptions(
        protocol=int(protocol),
        energy=options["energy"],
        storage_sharing=not no_storage_sharing,
        redis=None if redis is None else (*_address(redis), redis_prefix),
        **{name: options.pop(name) for name in AGREED},
    )
    chosen = BatchOptions(
        estimates="walltime",
        contention=not no_contention,
        storages=pairs(storages, "--storage", str),
        roles=pairs(roles, "--role", str),
        **options,
    )
    platform = load_platform(platform_file)
    book = Book(workload_files, Cleaning(processors_per_host))
    with (
        served(
            platform,
            book,
            chosen,
            agreed,
            endpoint=endpoint,
            command=command,
            timeout_s=inf if timeout_s is None else timeout_s,
            events=events,
            record=record,
            replay=replay,
        ) as session,
        told_progress(len(book.workload.jobs), "jobs", queues=True) as progress,
    ):
        run = batch_into(
            output,
            platform,
            book.workload,
            chosen,
            BatchWriting(60.0, traces, trace_limit, attribution, plots),
            inputs=[platform_file, *workload_files, *events, *([replay] if replay else [])],
            progress=progress,
            driver=session,
        )
    click.echo(summary_text(run) if as_json else batch_text(run))
    if session.fault is not None:
        raise session.fault


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or len(port) > 5:
        raise SimulationError(f"--redis: '{text[:60]}' is not HOST:PORT")
    return host, int(port)
