"""Which rank runs on which host."""

from __future__ import annotations

import os
import re

from ptaskmodel.errors import PTaskModelError, SimulationError, shown
from ptaskmodel.files import read_text, shown_path
from ptaskmodel.platform import Platform
from ptaskmodel.workload.formats.host_names import expand

AnyPath = str | os.PathLike[str]


def hosts_of_ranks(
    platform: Platform | None,
    ranks: int,
    *,
    hosts: list[str] | None = None,
    per_host: int = 1,
) -> list[str]:
    """The host of each rank: ``per_host`` ranks on each of the hosts, over again if they run out.

    hosts: their names in order; None: all of the platform in the order of their names compared as
    text, as ``smpirun`` takes them (n10 comes before n2). platform: None: whatever names are given.
    """
    if hosts is None:
        if platform is None:
            raise SimulationError("ranks need hosts: name them, or give a platform")
        hosts = sorted(host.name for host in platform.hosts)
    elif platform is not None:
        for name in hosts:
            platform.host(name)
    if not hosts:
        raise SimulationError("the platform has no hosts for the ranks")
    return [hosts[rank // per_host % len(hosts)] for rank in range(ranks)]


def hosts_named(text: str, option: str = "--hosts") -> list[str]:
    """The hosts of a text such as ``n[0-15]`` or ``a,b,c``, given by an option.

    Raises SimulationError.
    """
    hosts: list[str] = []
    for name in re.split(r"[\s,]+(?![^\[]*\])", text.strip()):
        try:
            hosts += expand(name)
        except ValueError as fault:
            raise SimulationError(f"{option}: {shown(name)} {fault}") from None
    return hosts


def hosts_in_file(path: AnyPath, platform: Platform | None = None) -> list[str]:
    """The hosts that a hostfile names, one a line; ``name:N`` stands for N ranks there.

    platform: where they have to be; None: whatever names there are.

    Raises SimulationError with file and line.
    """
    hosts: list[str] = []
    for number, line in enumerate(read_text(path, error=SimulationError).splitlines(), start=1):
        name, colon, count = line.strip().partition(":")
        if not name or name.startswith("#"):
            continue
        if colon and not (count.isdecimal() and 0 < int(count) <= 10**6):
            raise SimulationError(
                f"{shown_path(path)}:{number}: {shown(count)} is not a number of ranks above 0"
            )
        _check_host(name, f"{shown_path(path)}:{number}", platform)
        hosts += [name] * (int(count) if colon else 1)
    if not hosts:
        raise SimulationError(f"{shown_path(path)}: names no hosts; give one a line")
    return hosts


def _check_host(name: str, where: str, platform: Platform | None) -> None:
    """SimulationError with the line that names a host, if the platform has none of that name."""
    if platform is None:
        return
    try:
        platform.host(name)
    except PTaskModelError as fault:
        raise SimulationError(f"{where}: {fault}") from None
