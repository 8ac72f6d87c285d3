"""``ptaskmodel serve`` and ``batsim``: an external scheduler decides, by Batsim's protocol.

``batsim`` takes Batsim's own options, for scripts and clients that start it themselves.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ptaskmodel import __version__
from ptaskmodel.batch.names import HOST_ORDERS
from ptaskmodel.cli import run_as
from ptaskmodel.cli.command import Choice, Command, tell
from ptaskmodel.cli.parameters import (
    PATH,
    POSITIVE,
    directory_option,
    json_option,
    options_of,
    platform_argument,
)
from ptaskmodel.connect.options import ENDPOINT, ConnectionOptions, SessionOptions
from ptaskmodel.errors import SimulationError
from ptaskmodel.runs.scheduling_options import SERVE
from ptaskmodel.sharing.rules import SOLVERS

LEVELS = ("quiet", "network-only", "information", "debug")
SOLVER = "host/solver:"
# Of the version whose options these are.
BATSIM = "4.2.0"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message=f"{BATSIM} (ptaskmodel %(version)s)")
@click.option("-p", "--platform", "platform_file", metavar="FILE", type=PATH, required=True)
@click.option(
    "-w", "--workload", "workloads", metavar="FILE", type=PATH, multiple=True, help="Repeatable."
)
@click.option(
    "-s",
    "--socket-endpoint",
    metavar="ENDPOINT",
    default=ENDPOINT,
    show_default=True,
    help="Address at which the scheduler listens.",
)
@click.option(
    "-e",
    "--export",
    "prefix",
    metavar="PREFIX",
    default="out",
    show_default=True,
    help="Prefix of the files to write.",
)
@click.option(
    "-E",
    "--energy",
    is_flag=True,
    help="Allow changes of pstates, and compute energy of hosts with power properties.",
)
@click.option("--events", metavar="FILE", type=PATH, multiple=True, help="Repeatable.")
@click.option("-m", "--master-host", metavar="NAME", help="A host that runs no jobs.")
@click.option(
    "-r", "--add-role-to-hosts", "roles", metavar="HOSTS:ROLE", multiple=True, help="Repeatable."
)
@click.option(
    "--mmax", type=click.IntRange(min=0), default=0, help="Only this many hosts  [0: all]"
)
@click.option("--mmax-workload", is_flag=True, help="Only as many hosts as the workloads say.")
@click.option("--enable-compute-sharing", is_flag=True)
@click.option("--disable-storage-sharing", is_flag=True)
@click.option("--enable-dynamic-jobs", is_flag=True)
@click.option("--acknowledge-dynamic-jobs", is_flag=True)
@click.option("--enable-profile-reuse", is_flag=True)
@click.option("--forward-profiles-on-submission", is_flag=True)
@click.option("--forward-unknown-events", is_flag=True)
@click.option("--sched-cfg", default="", metavar="TEXT")
@click.option("--sched-cfg-file", type=PATH, metavar="FILE")
@click.option("--enable-redis", is_flag=True)
@click.option("--redis-hostname", default="127.0.0.1", show_default=True)
@click.option("--redis-port", type=click.IntRange(1, 65535), default=6379, show_default=True)
@click.option("--redis-prefix", default="default", show_default=True)
@click.option("--disable-schedule-tracing", is_flag=True, help="No effect: there is no such trace.")
@click.option("--disable-machine-state-tracing", is_flag=True)
@click.option(
    "--dump-execution-context", is_flag=True, help="Print the options that would be used, and exit."
)
@click.option("-v", "--verbosity", type=Choice(LEVELS), default="information")
@click.option("-q", "--quiet", is_flag=True)
@click.option("--sg-cfg", "sg_cfg", multiple=True, metavar="NAME:VALUE", help=f"{SOLVER}NAME.")
@click.option("--sg-log", multiple=True, metavar="TEXT", help="Ignored.")
@click.option(
    "--no-sched",
    is_flag=True,
    help="Not supported; use ptaskmodel batch --policy fcfs.",
    hidden=True,
)
@click.option("-W", "--workflow", multiple=True, metavar="FILE", hidden=True)
@click.option("--WS", "--workflow-start", "workflow_start", multiple=True, hidden=True)
@click.option(
    "--protocol",
    type=Choice(["2", "3", "4"]),
    default="4",
    show_default=True,
    help="Version of the protocol (not an option of Batsim).",
)
@click.option(
    "--host-order",
    type=Choice(HOST_ORDERS),
    default="platform",
    help="See ptaskmodel serve (not an option of Batsim).",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=POSITIVE,
    metavar="SECONDS",
    help="Version of the protocol (not an option of Batsim).",
)
@click.option(
    "--record", type=PATH, metavar="FILE", help="Write every message (not an option of Batsim)."
)
def batsim(**given: Any) -> None:
    """Connect a scheduler, with the options of Batsim 4; ptaskmodel simulates."""
    _check(given)
    if given["dump_execution_context"]:
        click.echo(json.dumps(_context(given)))
        return

    from ptaskmodel.batch.options import BatchOptions
    from ptaskmodel.batch.run import run_batch
    from ptaskmodel.connect.jobs import Book
    from ptaskmodel.connect.scheduler import served
    from ptaskmodel.files import read_text
    from ptaskmodel.platform import load_platform
    from ptaskmodel.platform.power import host_power
    from ptaskmodel.runs.batch import check_prefix, write_batsim_files

    check_prefix(given["prefix"])
    config_file = given["sched_cfg_file"]
    address = f"{given['redis_hostname']}:{given['redis_port']}"
    agreed = SessionOptions(
        protocol=int(given["protocol"]),
        energy=given["energy"],
        compute_sharing=given["enable_compute_sharing"],
        storage_sharing=not given["disable_storage_sharing"],
        dynamic_jobs=given["enable_dynamic_jobs"],
        acknowledge_dynamic_jobs=given["acknowledge_dynamic_jobs"],
        profile_reuse=given["enable_profile_reuse"],
        forward_profiles=given["forward_profiles_on_submission"],
        forward_unknown_events=given["forward_unknown_events"],
        scheduler_config=read_text(config_file) if config_file else given["sched_cfg"],
        redis=address if given["enable_redis"] else None,
        redis_prefix=given["redis_prefix"],
    )
    platform = load_platform(given["platform_file"])
    book = Book(given["workloads"])
    powered = given["energy"] and any(host_power(platform, host) for host in platform.hosts)
    chosen = BatchOptions(
        estimates="walltime",
        contention=False,
        energy=powered,
        solver=_solver(given["sg_cfg"]),
        roles=_roles(given["roles"], given["master_host"]),
        host_order=given["host_order"],
        most_hosts=_most_hosts(given, book.sizes),
    )
    connection = ConnectionOptions(
        socket=given["socket_endpoint"],
        timeout_s=given["timeout_s"],
        record=given["record"],
        events=given["events"],
    )
    with served(platform, book, chosen, agreed, connection) as session:
        result = run_batch(platform, book.workload, chosen, driver=session)
    if not (given["quiet"] or given["verbosity"] == "quiet"):
        for note in session.notes():
            click.echo(f"batsim: {note}", err=True)
    write_batsim_files(
        given["prefix"],
        result,
        states=not given["disable_machine_state_tracing"],
        energy=given["energy"],
    )
    if session.fault is not None:
        raise session.fault


def _check(given: dict[str, Any]) -> None:
    """SimulationError for what is not here."""
    if given["no_sched"]:
        raise SimulationError("--no-sched: use ptaskmodel batch PLATFORM WORKLOAD --policy fcfs")
    if given["workflow"] or given["workflow_start"]:
        raise SimulationError("workflows are not simulated; give workloads (-w)")
    if not given["workloads"] and not given["enable_dynamic_jobs"]:
        raise SimulationError("give a workload (-w), or --enable-dynamic-jobs")


def _context(given: dict[str, Any]) -> dict[str, Any]:
    return {
        "socket_endpoint": given["socket_endpoint"],
        "redis_enabled": given["enable_redis"],
        "redis_hostname": given["redis_hostname"],
        "redis_port": given["redis_port"],
        "redis_prefix": given["redis_prefix"],
        "export_prefix": given["prefix"],
        "external_scheduler": True,
    }


def _roles(given: Sequence[str], master: str | None) -> dict[str, str]:
    found = {} if master is None else {master: "master"}
    for text in given:
        hosts, colon, role = text.rpartition(":")
        if not colon or not hosts or not role:
            raise SimulationError(f"--add-role-to-hosts: '{text[:60]}' is not HOSTS:ROLE")
        found |= dict.fromkeys(hosts.split(","), role)
    return found


def _solver(given: Sequence[str]) -> str | None:
    """The solver that SimGrid's options name; the others mean nothing here."""
    for text in given:
        name = text.removeprefix(SOLVER)
        if name != text:
            if name not in SOLVERS:
                raise SimulationError(
                    f"--sg-cfg: solver '{name[:60]}' is unknown; use {', '.join(SOLVERS)}"
                )
            return name
        tell(f"batsim: --sg-cfg {text} is ignored")
    return None


def _most_hosts(given: dict[str, Any], sizes: Sequence[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    limits = [given["mmax"]] if given["mmax"] else []
    if given["mmax_workload"] and known:
        limits.append(max(known))
    return min(limits, default=None)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; exit codes as of ``ptaskmodel``."""
    return run_as(batsim, "batsim", arguments)


@click.command(cls=Command)
@platform_argument
@click.argument("workload_files", metavar="WORKLOAD...", type=PATH, nargs=-1, required=True)
@options_of(SERVE)
@directory_option("Write jobs.csv, schedule.json, ... there (earlier results are replaced).")
@json_option
def serve(
    platform_file: Path,
    workload_files: tuple[Path, ...],
    output: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Let an external scheduler start the jobs of WORKLOAD (Batsim JSON or SWF) on PLATFORM.

    The scheduler binds a ZeroMQ REP socket and receives requests by Batsim's protocol. If it breaks
    the protocol, does not answer or exits, one line says so, and the results up to then are
    written.
    """
    from ptaskmodel.cli.progress import told_progress
    from ptaskmodel.cli.show import batch_text, summary_text
    from ptaskmodel.runs.serve import serve_inputs, serve_into

    given = serve_inputs({"platform": platform_file, "workloads": workload_files, **options})
    with told_progress(len(given.book.workload.jobs), "jobs", queues=True) as progress:
        run, fault = serve_into(output, **given._asdict(), progress=progress)
    click.echo(summary_text(run) if as_json else batch_text(run))
    if fault is not None:
        raise fault
