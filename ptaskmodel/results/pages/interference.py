"""Interference: how much time each task lost to which other task, and on which host or link.

The loss of a task is its time minus its isolated run time on the same hosts. The charges of
`recording.attribution` divide the loss: they say how much of the limiting resource each other task
used.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ptaskmodel.recording.limits import HOST, LINK
from ptaskmodel.results.directory import finite, readable, rows
from ptaskmodel.results.pages.page import Section
from ptaskmodel.style.quantities import count, duration, number

if TYPE_CHECKING:
    from ptaskmodel.recording.attribution import Neighbours
    from ptaskmodel.results.loading import Results
    from ptaskmodel.simulation.simulation import Simulation

INTERFERENCE = "interference.csv"
COLUMNS = ("task_id", "slowed_by", "limited_by", "resource", "seconds")
NEIGHBOURS, NEIGHBOUR_COLUMNS = "neighbours.csv", ("job_id", "slowed_by", "seconds")
# Rows and columns of the matrix; names of those that slowed a task.
MOST, MOST_SHARERS = 15, 8


class Cost(NamedTuple):
    """How many seconds a task lost to another one on a host or link."""

    task_id: str
    slowed_by: str
    limited_by: str
    resource: str
    seconds: float


def costs_of(
    simulation: Simulation, watch: Neighbours, alone_s: Sequence[float | None]
) -> list[Cost]:
    """What tasks that ended lost to each other, by task, the worst first."""
    hosts = [host.name for host in simulation.platform.hosts]
    names = hosts + [link.name for link in simulation.platform.all_links]
    refs = list(simulation.tasks())
    found = []
    for task, charges in watch.by_task().items():
        alone, ref = alone_s[task], refs[task]
        if alone is None or ref.start_s is None or ref.end_s is None:
            continue
        lost = ref.end_s - ref.start_s - alone
        total = sum(charges.values())
        if not (lost > 0 and total > 0):
            continue
        mine = [
            Cost(
                ref.id,
                refs[other].id,
                HOST if limit < len(hosts) else LINK,
                names[limit],
                lost * charge / total,
            )
            for (other, limit), charge in charges.items()
        ]
        found += sorted(mine, key=lambda cost: -cost.seconds)
    return found


def write_costs(place: Path, costs: Iterable[Cost]) -> str:
    """Write interference.csv in an existing directory; its name."""
    with (place / INTERFERENCE).open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(costs)
    return INTERFERENCE


def read_costs(results: Results) -> list[Cost] | None:
    """Who cost whom in `results`, the most first; None if it was not recorded.

    Raises PTaskModelError if interference.csv, or neighbours.csv of a batch, is damaged.
    """
    path = results.directory / INTERFERENCE
    columns: tuple[str, ...] = COLUMNS
    if not path.exists():
        path, columns = results.directory / NEIGHBOURS, NEIGHBOUR_COLUMNS
    if not path.exists():
        return None
    with readable(path):
        costs = [
            Cost(
                row[columns[0]],
                row["slowed_by"],
                row.get("limited_by") or "",
                row.get("resource") or "",
                finite(row["seconds"]),
            )
            for row in rows(path, *columns)
        ]
    return sorted(costs, key=lambda cost: -cost.seconds)


def sharers_by_cost(costs: Iterable[Cost]) -> dict[str, str]:
    """From `costs`, how many slowed each task, and which most: "139: t04712 (31 s), ..."."""
    of: dict[str, dict[str, float]] = {}
    for cost in costs:
        mine = of.setdefault(cost.task_id, {})
        mine[cost.slowed_by] = mine.get(cost.slowed_by, 0.0) + cost.seconds
    found = {}
    for task_id, mine in of.items():
        worst = sorted(mine, key=lambda name: -mine[name])[:MOST_SHARERS]
        told = ", ".join(f"{name} ({duration(mine[name])})" for name in worst)
        found[task_id] = f"{len(mine):,}: {told}" + (", ..." if len(mine) > MOST_SHARERS else "")
    return found


def interference_sections(
    results: Results, costs: Sequence[Cost] | None, users: Mapping[str, str]
) -> list[Section]:
    """Return the matrix of who cost whom; of a batch in host hours, by user where users are known.

    results: of tasks or a batch. costs: as of `read_costs`. users: of jobs.
    """
    title = "Who slowed whom"
    if costs is None:
        if not any((task.slowdown or 1.0) > 1.001 for task in results.tasks):
            return []
        again = "--attribution --neighbours" if results.what == "job" else "--neighbours"
        return [Section(title, f"Not recorded: run again with {again}.")]
    if not costs:
        return [Section(title, f"No {results.what} lost time to another one.")]
    sections = []
    for kind, group in (("user", users), (results.what, {})):
        if kind != "user" or len(set(users.values())) > 1:
            sections.append(_matrix(results, costs, kind, group))
    return [Section(title, charts=tuple(sections))]


def _matrix(
    results: Results, costs: Sequence[Cost], kind: str, group: Mapping[str, str]
) -> dict[str, Any]:
    """The chart of who cost whom: victims down, culprits across, those with most first.

    kind: "user", "job" or "task". group: the user of each job; empty: each for itself.
    """
    hosts = {task.task_id: len(task.hosts) for task in results.tasks}
    place = {task.task_id: k for k, task in enumerate(results.tasks)}
    in_hours = results.what == "job"
    cells: dict[tuple[str, str], float] = {}
    lost: dict[str, float] = {}
    caused: dict[str, float] = {}
    members: dict[tuple[str, str], set[int]] = {}
    for cost in costs:
        amount = cost.seconds * (hosts.get(cost.task_id, 0) / 3600 if in_hours else 1.0)
        victim, culprit = (group.get(name, name) for name in (cost.task_id, cost.slowed_by))
        cells[victim, culprit] = cells.get((victim, culprit), 0.0) + amount
        lost[victim] = lost.get(victim, 0.0) + amount
        caused[culprit] = caused.get(culprit, 0.0) + amount
        both = (place[name] for name in (cost.task_id, cost.slowed_by) if name in place)
        members.setdefault((victim, culprit), set()).update(both)
    down, across = (sorted(of, key=lambda name: -of[name]) for of in (lost, caused))
    rows, columns = down[:MOST], across[:MOST]
    more = len(across) > MOST
    table, who = [], []
    for victim in rows:
        shown = [cells.get((victim, culprit), 0.0) for culprit in columns]
        mine = [sorted(members.get((victim, culprit), ())) for culprit in columns]
        others = [name for name in across[MOST:] if (victim, name) in cells] if more else []
        if more:
            shown.append(sum(cells[victim, name] for name in others))
            mine.append(sorted(set().union(*(members[victim, name] for name in others))))
        table.append([*shown, lost[victim]])
        who.append([*mine, sorted(set().union(*mine))])
    total = sum(lost.values())
    (victim, culprit), worst = max(cells.items(), key=lambda item: item[1])
    named = f"{kind} " if kind == "user" else ""
    told = f"{number(total)} host hours" if in_hours else duration(total)
    most = f"{number(worst)} host hours" if in_hours else duration(worst)
    whom = f"{named}{victim}" if victim != culprit else "its own jobs"
    sentence = (
        f"{count(len(lost), kind)} lost {told} to {count(len(caused), kind)}; "
        f"{named}{culprit} cost {whom} most: {most}."
    )
    parts = [f"the {MOST} that lost most of {len(lost):,}"] if len(lost) > MOST else []
    parts += [f"the {MOST} that cost most of {len(caused):,}"] if more else []
    return {
        "chart": "matrix",
        "kind": "number" if in_hours else "time",
        "unit": "host hours" if in_hours else "",
        "caption": "Host hours lost" if in_hours else "Time lost",
        "corner": f"{kind}: lost by ↓ because of →",
        "sentence": sentence,
        "note": f"Shown: {'; '.join(parts)}. A click shows a cell everywhere." if parts
        else "A click on a cell shows it in all charts and tables.",
        "rows": rows,
        "columns": [*columns, *(["others"] if more else []), "sum"],
        "cells": table,
        "members": who,
        "says": ["{}"],
    }  # fmt: skip
