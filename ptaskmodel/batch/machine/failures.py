"""Failures of hosts and links: read from a file of events, or drawn from distributions.

The readers of small CSV files of machine events (failures, maintenance) are here too.
Source: Schroeder and Gibson, "A large-scale study of failures in high-performance computing
systems", IEEE TDSC 7(4), 2010 (Weibull distributions of shape 0.7 to 0.8 fit the times between
failures of real machines).
"""

from __future__ import annotations

import csv
import io
import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptaskmodel.batch.machine.machine import Machine
from ptaskmodel.batch.options import FAILURE_LAW
from ptaskmodel.errors import SimulationError, shown
from ptaskmodel.files import read_text, shown_path
from ptaskmodel.platform.facts import LOOPBACK_NAME
from ptaskmodel.units import UnitError, split_float

MAX_LINES = 5_000_000
Changes = Iterable[tuple[float, bool]]
UP, DOWN = "up", "down"
REPAIR_LAWS = ("exponential", "constant")
# Longer than any run; beyond it dates lose the seconds.
LONGEST_S = 1e12


def read_table(path: str | Path, columns: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """("FILE:LINE", the values of these columns) of each line of a CSV file with a header.

    Other columns are left alone. Raises SimulationError with file and line.
    """
    where = shown_path(path)
    text = io.StringIO(read_text(path, error=SimulationError), newline="")
    reader = csv.reader(text, strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        for name in columns:
            if header.count(name) != 1:
                raise SimulationError(
                    f"{where}:1: the header names column '{name}' {header.count(name)} times: it "
                    f"needs {','.join(columns)}, each once"
                )
        places = [header.index(name) for name in columns]
        for count, row in enumerate(reader):
            if not row:
                continue
            if len(row) != len(header):
                raise SimulationError(
                    f"{where}:{reader.line_num}: {len(row)} fields and the header has "
                    f"{len(header)}; give as many"
                )
            if count >= MAX_LINES:
                raise SimulationError(f"{where}: more than {MAX_LINES:,} lines; give fewer")
            yield f"{where}:{reader.line_num}", tuple(row[k].strip() for k in places)
    except csv.Error as error:
        raise SimulationError(
            f"{where}:{reader.line_num}: cannot be read as a CSV file: {error}"
        ) from None


def table_date(text: str, where: str, column: str) -> float:
    """A date in s; SimulationError if it is none."""
    try:
        value, rest = split_float(text)
    except UnitError:
        value, rest = math.nan, ""
    if rest or not 0 <= value < math.inf:
        raise SimulationError(f"{where}: {column} {shown(text)}; give a finite date in s, >= 0")
    return value


@dataclass(frozen=True, slots=True)
class FailureLaw:
    """Failures drawn for each host and link on its own, whatever happens to the others.

    Times from a start or a repair to the next failure follow a Weibull law of mean ``mtbf`` s and
    of this ``shape`` (1: exponential; below 1 failures come in bursts), times to repair have mean
    ``repair`` s and are exponential or constant (``repair_law``). ``link_mtbf`` and ``link_repair``
    are those of links (None: links do not fail; ``repair``). All resources begin as new at date 0.
    The stream of a resource depends on its name and the ``seed`` alone.
    """

    mtbf: float | None = None
    repair: float = 0.0
    shape: float = 1.0
    repair_law: str = "exponential"
    link_mtbf: float | None = None
    link_repair: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("mtbf", 1e-3), ("link_mtbf", 1e-3), ("repair", 0), ("link_repair", 0)):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and least <= value <= LONGEST_S):
                raise SimulationError(
                    f"failures: {name} is {shown(value)}; give {least:g} to {LONGEST_S:g} s"
                )
        if not (_is_number(self.shape) and 0.1 <= self.shape <= 100):
            raise SimulationError(f"failures: shape is {shown(self.shape)}; give 0.1 to 100")
        if self.repair_law not in REPAIR_LAWS:
            raise SimulationError(
                f"failures: repair_law is {shown(self.repair_law)}; use {' or '.join(REPAIR_LAWS)}"
            )
        if type(self.seed) is not int or self.seed < 0:
            raise SimulationError(f"failures: seed is {shown(self.seed)}; give a whole number >= 0")
        if self.mtbf is None and self.link_mtbf is None:
            raise SimulationError("failures: neither mtbf nor link_mtbf is given: nothing fails")

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> FailureLaw:
        """From KEY=VALUE options; SimulationError for an unknown one."""
        for key in options:
            if key not in FAILURE_LAW:
                raise SimulationError(
                    f"failures: option '{key[:60]}' is unknown; use one of {', '.join(FAILURE_LAW)}"
                )
        return cls(**options)

    def stream(self, name: str, *, link: bool = False) -> Iterator[tuple[float, bool]]:
        """(date in s, whether it is up then) of the changes of a resource, for ever."""
        mean_s = self.link_mtbf if link else self.mtbf
        if mean_s is None:
            return
        repair_s = self.repair if not link or self.link_repair is None else self.link_repair
        draw = random.Random(f"{self.seed}:{'link' if link else 'host'}:{name}")
        scale_s = mean_s / math.gamma(1 + 1 / self.shape)
        date = 0.0
        while date < LONGEST_S:
            date += draw.weibullvariate(scale_s, self.shape)
            yield date, False
            constant = self.repair_law == "constant" or repair_s == 0
            date += repair_s if constant else draw.expovariate(1 / repair_s)
            yield date, True


def read_failures(path: str | Path) -> dict[str, list[tuple[float, bool]]]:
    """The changes of each resource in a file with the columns ``date`` (s), ``resource``, ``event``
    ("down" or "up"). The lines of a resource are in order of date; a resource is up before the
    first.

    Raises SimulationError with file and line.
    """
    found: dict[str, list[tuple[float, bool]]] = {}
    for where, (date, name, event) in read_table(path, ("date", "resource", "event")):
        when = table_date(date, where, "date")
        if event not in (UP, DOWN):
            raise SimulationError(f"{where}: event {shown(event)}; write down or up")
        changes = found.setdefault(name, [])
        last_s, was_up = changes[-1] if changes else (0.0, True)
        if when < last_s:
            raise SimulationError(
                f"{where}: {when:g} s is before the last event of '{name[:60]}' ({last_s:g} s): "
                "put the lines of a resource in order of date"
            )
        if was_up == (event == UP):
            raise SimulationError(f"{where}: '{name[:60]}' is {event} already; remove the line")
        changes.append((when, event == UP))
    return found


def failures_of(
    machine: Machine, *, file: str | Path | None = None, law: FailureLaw | None = None
) -> dict[int | str, Changes]:
    """The failures of a machine: of a file, and drawn for what the file does not name.

    By number of the host, and by name of links and hosts that run no jobs.

    Raises SimulationError for a name that the platform does not have, and for a resource that has
    an availability (state) trace in the platform.
    """
    platform = machine.platform
    number = {name: k for k, name in enumerate(machine.names)}
    traced = {host.name for host in platform.hosts if host.state_trace is not None}
    traced |= {link.name for link in platform.links if link.state_trace is not None}
    known = {host.name: False for host in platform.hosts}
    known |= {link.name: True for link in platform.all_links if link.name not in known}
    changes: dict[str, Changes] = {}
    if law is not None:
        # What a host sends to itself crosses no cable.
        known.pop(LOOPBACK_NAME, None)
        wanted = {False: law.mtbf is not None, True: law.link_mtbf is not None}
        changes |= {
            name: law.stream(name, link=link) for name, link in known.items() if wanted[link]
        }
    if file is not None:
        given = read_failures(file)
        for name in given:
            if name not in known:
                halves = [f"{name}_UP", f"{name}_DOWN"]
                remedy = "use the platform's names"
                if all(half in known for half in halves):
                    remedy = f"it is SPLITDUPLEX, which is two; use {' and '.join(halves)}"
                raise SimulationError(
                    f"{file}: there is no host and no link '{name[:60]}': {remedy}"
                )
        changes |= given
    for name in changes:
        if name in traced:
            raise SimulationError(
                f"'{name[:60]}' has an availability trace in the platform file and failures beside "
                "it: remove one of them"
            )
    return {number.get(name, name): events for name, events in changes.items()}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
