"""Maintenance: hosts that are set apart for a while that is known beforehand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ptaskmodel.batch.hostset import Mask, first_hosts
from ptaskmodel.batch.tables import read_table, table_date
from ptaskmodel.errors import SimulationError, shown

_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


class Window(NamedTuple):
    """From ``start_s`` until ``end_s`` nobody has these hosts."""

    hosts: Mask
    start_s: float
    end_s: float


class Maintenance:
    """The windows of a machine that are not over yet, by start.

    Raises SimulationError for a window that ends before it starts or has hosts that do not exist.
    """

    def __init__(self, windows: Iterable[Window], num_hosts: int) -> None:
        self.windows: Sequence[Window] = sorted(windows, key=lambda window: window[1:])
        for window in self.windows:
            if not 0 <= window.start_s < window.end_s < float("inf"):
                raise SimulationError(
                    f"maintenance from {window.start_s:g} to {window.end_s:g} s: give a start >= 0 "
                    "and a later end"
                )
            if not 0 < window.hosts < 1 << num_hosts:
                raise SimulationError(
                    f"maintenance at {window.start_s:g} s: its hosts are not among 0 to "
                    f"{num_hosts - 1}"
                )

    @property
    def first_s(self) -> float:
        """When the first window begins, or began, s; inf without one."""
        return self.windows[0].start_s if self.windows else float("inf")

    def forget_before(self, now: float) -> None:
        """Drop the windows that are over."""
        self.windows = [window for window in self.windows if window.end_s > now]

    def during(self, begin_s: float, end_s: float) -> Mask:
        """The hosts that a window takes at ``begin_s`` or at some time before ``end_s``."""
        found = 0
        for window in self.windows:
            if window.start_s > begin_s and window.start_s >= end_s:
                break
            if window.end_s > begin_s:
                found |= window.hosts
        return found

    def next_start(self, hosts: Mask, now: float) -> float:
        """When the next window that takes any of these hosts begins, s; inf without one."""
        starts = (w.start_s for w in self.windows if w.hosts & hosts and w.start_s > now)
        return min(starts, default=float("inf"))


def read_maintenance(path: str | Path, names: Sequence[str]) -> list[Window]:
    """The windows of a file with the columns ``hosts``, ``start`` and ``end`` (dates in s).

    Hosts are names separated by blanks, or numbers as in ``allocated_resources`` ("0-3 7"), or
    "all"; a word that is a name of a host means that host. names: of the hosts, in order. Raises
    SimulationError with file and line.
    """
    number = {name: k for k, name in enumerate(names)}
    found = []
    for where, (hosts, start, end) in read_table(path, ("hosts", "start", "end")):
        begin_s, end_s = table_date(start, where, "start"), table_date(end, where, "end")
        if end_s <= begin_s:
            raise SimulationError(f"{where}: ends at {end_s:g} s, not after its start: correct it")
        mask = 0
        for word in hosts.split():
            mask |= _hosts(word, number, where)
        if mask == 0:
            raise SimulationError(
                f"{where}: names no host: give names, numbers such as 0-3, or all"
            )
        found.append(Window(mask, begin_s, end_s))
    return found


def _hosts(word: str, number: dict[str, int], where: str) -> Mask:
    if word in number:
        return 1 << number[word]
    everything = (1 << len(number)) - 1
    if word == "all":
        return everything
    match = _RANGE.fullmatch(word)
    if match is None:
        raise SimulationError(
            f"{where}: there is no host {shown(word)}: give names, numbers such as 0-3, or all"
        )
    first, last = int(match[1]), int(match[2] or match[1])
    if not first <= last < len(number):
        raise SimulationError(
            f"{where}: hosts {shown(word)}: give ascending numbers from 0 to {len(number) - 1}"
        )
    return first_hosts(last + 1) ^ first_hosts(first)
