"""Which task cost which other task how much time: interference.csv, neighbours.csv of jobs.

The loss of a task is its time minus its isolated run time on the same hosts. The charges of
`recording.attribution` divide the loss: they say how much of the limiting resource each other task
used.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from ptaskmodel.recording import HOST, LINK
from ptaskmodel.results.directory import finite, read_table
from ptaskmodel.style.text import count, duration, number

if TYPE_CHECKING:
    from ptaskmodel.recording.attribution import Neighbours
    from ptaskmodel.results.loading import Results
    from ptaskmodel.simulation.simulation import Simulation

Key = TypeVar("Key")
INTERFERENCE = "interference.csv"
NEIGHBOURS = "neighbours.csv"
MOST_SHARERS = 8  # names of those that slowed a task
MOST_COSTS = 1_000_000  # in interference.csv


class Cost(NamedTuple):
    """How many seconds a task lost to another one on a host or link."""

    task_id: str
    slowed_by: str
    limited_by: str
    resource: str
    seconds: float


def costs_of(
    simulation: Simulation, watch: Neighbours, alone_s: Sequence[float | None]
) -> tuple[list[Cost], str]:
    """What tasks that ended lost to each other, by task, the worst first; and what is left out.

    Of more than MOST_COSTS, each task has as many of its worst ones. watch: of the whole run of
    ``simulation``. alone_s: the times alone of its tasks.
    """
    refs = list(simulation.tasks())
    took = (None if ref.start_s is None or ref.end_s is None else ref.end_s - ref.start_s
            for ref in refs)  # fmt: skip
    lost = np.array([np.nan if whole is None or alone is None else whole - alone
                     for whole, alone in zip(took, alone_s, strict=True)])  # fmt: skip
    charges = watch.rows()
    charges = charges[lost[charges["task"]] > 0.0]
    task, seconds = charges["task"], charges["seconds"]
    seconds *= lost[task] / np.bincount(task, seconds, len(refs))[task]
    order = np.lexsort((-seconds, task))
    tasks, first, many = np.unique(task, return_index=True, return_counts=True)
    most, note = max(MOST_COSTS // max(len(tasks), 1), 1), ""
    if len(charges) > MOST_COSTS:
        kept = np.arange(len(order)) - np.repeat(first, many) < most
        part = seconds[order[kept]].sum() / seconds.sum()
        note = f"{INTERFERENCE} has the {most} worst of each task, {number(part, 'share')} of all"
        order = order[kept]
    names = [host.name for host in simulation.platform.hosts]
    hosts = len(names)
    names += [link.name for link in simulation.platform.all_links]
    ids = [ref.id for ref in refs]
    return [Cost(ids[victim], ids[other], HOST if at < hosts else LINK, names[at], cost)
            for victim, other, at, cost in charges[order].tolist()], note  # fmt: skip


def write_costs(place: Path, costs: Iterable[Cost]) -> str:
    """Write interference.csv in an existing directory; its name."""
    with (place / INTERFERENCE).open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(Cost._fields)
        writer.writerows(costs)
    return INTERFERENCE


def read_costs(results: Results) -> list[Cost] | None:
    """Who cost whom in `results`, the most first; None if it was not recorded.

    Raises PTaskModelError if interference.csv, or neighbours.csv of a batch, is damaged.
    """
    by_task, by_job = results.directory / INTERFERENCE, results.directory / NEIGHBOURS
    if by_task.exists():
        found = read_table(by_task, task_id=str, slowed_by=str, limited_by=str, resource=str,
                           seconds=finite)  # fmt: skip
    elif by_job.exists():
        rows = read_table(by_job, job_id=str, slowed_by=str, seconds=finite)
        found = [(job, other, "", "", seconds) for job, other, seconds in rows]
    else:
        return None
    return sorted(itertools.starmap(Cost, found), key=lambda cost: -cost.seconds)


def sharers_by_cost(costs: Iterable[Cost]) -> dict[str, str]:
    """From `costs`, how many slowed each task, and which most: "139: t04712 (31 s), ..."."""
    of: dict[str, list[str]] = {}
    pairs = summed(((cost.task_id, cost.slowed_by), cost.seconds) for cost in costs)
    for (task_id, name), seconds in pairs.items():
        of.setdefault(task_id, []).append(f"{name} ({duration(seconds)})")
    return {task_id: f"{count(len(its))}: " + ", ".join(
                [*its[:MOST_SHARERS], *["..."] * (len(its) > MOST_SHARERS)])
            for task_id, its in of.items()}  # fmt: skip


def summed(parts: Iterable[tuple[Key, float]]) -> dict[Key, float]:
    """Return the sum of the amounts of each name of ``parts``, the largest first."""
    found: dict[Key, float] = {}
    for name, amount in parts:
        found[name] = found.get(name, 0.0) + amount
    return dict(sorted(found.items(), key=lambda item: -item[1]))
