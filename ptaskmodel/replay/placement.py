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
    """The hosts that a hostfile names, one a line.

    N ranks on one are ``name:N``, as for ``smpirun``, or ``name slots=N``, as for ``mpirun``;
    the ``max_slots=N`` of the latter says nothing here. What follows a # is a comment.
    platform: where they have to be; None: whatever names there are.

    Raises SimulationError with file and line.
    """
    hosts: list[str] = []
    for number, line in enumerate(read_text(path, error=SimulationError).splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        where = f"{shown_path(path)}:{number}"
        name, colon, count = words[0].partition(":")
        counts = [count] if colon else []
        for word in words[1:]:
            key, _, count = word.partition("=")
            if key not in ("slots", "max_slots", "max-slots"):
                raise SimulationError(f"{where}: {shown(word)} is not slots=N; write name slots=N")
            counts += [count] if key == "slots" else []
        ranks = [_ranks_of(count, where) for count in counts]
        _check_host(name, where, platform)
        hosts += [name] * (ranks[-1] if ranks else 1)
    if not hosts:
        raise SimulationError(f"{shown_path(path)}: names no hosts; give one a line")
    return hosts


def _ranks_of(count: str, where: str) -> int:
    if count.isdecimal() and 0 < int(count) <= 10**6:
        return int(count)
    raise SimulationError(f"{where}: {shown(count)} is not a number of ranks above 0")


def _check_host(name: str, where: str, platform: Platform | None) -> None:
    """SimulationError with the line that names a host, if the platform has none of that name."""
    if platform is None:
        return
    try:
        platform.host(name)
    except PTaskModelError as fault:
        raise SimulationError(f"{where}: {fault}") from None
