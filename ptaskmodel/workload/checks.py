"""Find what is legal in a tasks file but surely wrong, whatever the platform.

The command ``check`` calls `check_document`; `simulation.checks` adds what depends on the platform.
`warn_if_long` warns of a work whose simulation takes very long.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np

from ptaskmodel.remarks import TAKEN, WARNING, Account, warn
from ptaskmodel.workload.formats.json import token
from ptaskmodel.workload.tasks import Task
from ptaskmodel.workload.works import Work

# Stages that take the simulator minutes; one takes it some microseconds.
LONG_STAGES = 10_000_000
STAGE_S = 5e-6


# Dates from here on (2001) are taken for Unix seconds; the year 9999, which has a text, ends there.
UNIX_DATES_S, LATEST_DATE_S = 1e9, 253_402_300_800.0


def tell_unix_dates(first_s: float, account: Account, field: str) -> bool:
    """Tell the account if the first date of its file, `first_s`, is a Unix date; whether it is.

    It is time 0 then. field: the one that has dates.
    """
    if not UNIX_DATES_S <= first_s < math.inf:
        return False
    text = f"dates are Unix seconds: time 0 of the simulation is the first, {first_s:.12g}"
    if first_s < LATEST_DATE_S:
        text += f" ({datetime.fromtimestamp(first_s, UTC):%Y-%m-%d %H:%M:%S} UTC)"
    account.tell(TAKEN, text, None, field, WARNING)
    return True


class Finding(NamedTuple):
    """What is odd, where: a JSON pointer, a short kind, a sentence."""

    pointer: str
    kind: str
    text: str


Found = tuple[Finding, str | None]  # with the profile that the task is of


def check_document(document: Mapping[str, Any], tasks: Sequence[Task]) -> Iterator[Found]:
    """Findings about the JSON document of a tasks file and the tasks that were read from it."""
    yield from _unused_profiles(document)
    yield from _idle_ranks(tasks)


def told_once(findings: Iterable[Found]) -> list[Finding]:
    """The findings; of those of a kind that tasks of a profile have in common, the first."""
    told: dict[tuple[str, str], Finding] = {}
    for finding, profile in findings:
        told.setdefault((finding.kind, profile or finding.pointer), finding)
    return list(told.values())


def _unused_profiles(document: Mapping[str, Any]) -> Iterator[Found]:
    profiles = document.get("profiles", {})
    used: set[str] = set()
    waiting = [task["profile"] for task in document["tasks"] if "profile" in task]
    while waiting:
        name = waiting.pop()
        if name not in used:
            used.add(name)
            waiting += profiles[name].get("seq", ())
    for name in profiles:
        if name not in used:
            text = "no task uses this profile; remove it"
            yield Finding(f"/profiles/{token(name)}", "unused profile", text), None


def _idle_ranks(tasks: Sequence[Task]) -> Iterator[Found]:
    """Ranks that exchange bytes but compute nothing while others do, and ranks that do nothing."""
    checked: set[int] = set()
    for k, task in enumerate(tasks):
        if id(task.work) in checked:
            continue
        checked.add(id(task.work))
        works = [work for work in task.work.parts() if work.duration_s is None]
        if not works or any(work.ranks is None for work in works):
            continue  # works for any number of ranks use every rank
        demands = [work.demand(len(task.hosts)) for work in works]
        computes = np.zeros(len(task.hosts), bool)
        moved = computes.copy()
        for demand in demands:
            computes |= np.asarray(demand.flops) > 0
            moved[demand.flow_from] = moved[demand.flow_to] = True
            moved |= demand.pair_bytes > 0
        if (idle := np.flatnonzero(moved & ~computes)).size and computes.any():
            text = f"{_ranks(idle)} bytes but no flop, while other ranks compute; is cpu complete?"
            yield Finding(_place(k, task), "traffic to an idle host", text), task.profile
        if (idle := np.flatnonzero(~moved & ~computes)).size and (moved | computes).any():
            text = f"{_ranks(idle)} neither flop nor bytes; remove such hosts"
            yield Finding(_place(k, task), "idle host", text), task.profile


def _place(k: int, task: Task) -> str:
    return f"/tasks/{k}" if task.profile is None else f"/profiles/{token(task.profile)}"


def _ranks(numbers: np.ndarray) -> str:
    shown = ", ".join(map(str, numbers[:3].tolist()))
    more = f", ... ({numbers.size} in all)" if numbers.size > 3 else ""
    return f"rank {shown} has" if numbers.size == 1 else f"ranks {shown}{more} have"


def warn_if_long(work: Work, where: str) -> None:
    """Warn, with the place in a file, of a work of more than LONG_STAGES stages, repeated ones."""
    stages = work.summed(lambda part: 1.0)
    if stages > LONG_STAGES:
        warn(
            f"{where}: makes {stages:,.0f} consecutive stages, which take about "
            f"{stages * STAGE_S / 60:,.0f} minutes to simulate for each task; make fewer, "
            "larger stages"
        )
