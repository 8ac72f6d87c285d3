"""The options of commands on traces: on which hosts ranks run, how collectives are done."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ptaskmodel.cli.parameters import COUNT, PATH
from ptaskmodel.errors import PTaskModelError

if TYPE_CHECKING:
    from ptaskmodel.platform import Platform
    from ptaskmodel.workload.traces import Trace


def rank_options(command: Any) -> Any:
    """--ranks, --ranks-on, --hosts and --per-host."""
    for option in (
        click.option(
            "--per-host", type=COUNT, default=1, show_default=True, help="Ranks beside each other."
        ),
        click.option(
            "--hosts", metavar="NAMES", help="The hosts in order, such as n[0-15] or a,b,c."
        ),
        click.option(
            "--ranks-on",
            metavar="FILE",
            type=PATH,
            help="Hostfile: the hosts in order, with slots=N or :N for N ranks on one.",
        ),
        click.option("--ranks", type=COUNT, help="[default: as many as TRACES has]"),
    ):
        command = option(command)
    return command


COLLECTIVE_OPTION = click.option(
    "--collective",
    "collectives",
    metavar="NAME=ALGORITHM",
    multiple=True,
    help="How a collective is done, by SimGrid's names, such as alltoall=ring (may be given "
    "several times)  [default: as the platform says, else SMPI's]",
)


def collectives_asked_for(
    platform: Platform | None, trace: Trace, texts: Iterable[str]
) -> dict[str, str]:
    """By names of collectives those of algorithms, which suit the trace. Raises PTaskModelError."""
    from ptaskmodel.mpi import algorithms_named
    from ptaskmodel.mpi.collectives.names import algorithms_of

    named = algorithms_named(texts)
    algorithms_of(named, {} if platform is None else platform.config, trace)
    return named


def check_rank_options(ranks_on: Path | None, hosts: str | None) -> None:
    """Raises PTaskModelError if both are given."""
    if ranks_on is not None and hosts is not None:
        raise PTaskModelError("give either --ranks-on or --hosts")


def hosts_asked_for(
    platform: Platform | None, ranks: int, ranks_on: Path | None, hosts: str | None, per_host: int
) -> list[str]:
    """The host of each rank, by the options. Raises PTaskModelError."""
    from ptaskmodel.mpi import hosts_in_file, hosts_named, hosts_of_ranks

    names = None
    if ranks_on is not None:
        names = hosts_in_file(ranks_on, platform)
    elif hosts is not None:
        names = hosts_named(hosts)
    return hosts_of_ranks(platform, ranks, hosts=names, per_host=per_host)
