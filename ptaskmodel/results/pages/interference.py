"""Interference: how much time each task lost to which other task, and on which host or link.

The loss of a task is its time minus its isolated run time on the same hosts. The charges of
`recording.attribution` divide the loss: they say how much of the limiting resource each other task
used.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ptaskmodel.recording.limits import HOST, LINK
from ptaskmodel.results.directory import finite, readable, rows
from ptaskmodel.results.pages.page import Section, Table

if TYPE_CHECKING:
    from ptaskmodel.recording.attribution import Neighbours
    from ptaskmodel.results.loading import Results
    from ptaskmodel.simulation.simulation import Simulation

INTERFERENCE = "interference.csv"
COLUMNS = ("task_id", "slowed_by", "limited_by", "resource", "seconds")
MOST = 200


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


def interference_sections(results: Results) -> list[Section]:
    """Return tables of how much each task slowed each other, largest first; none if not recorded.

    Raises PTaskModelError if interference.csv is damaged.
    """
    path = results.directory / INTERFERENCE
    if not path.exists():
        return []
    with readable(path):
        costs = [
            Cost(
                row["task_id"],
                row["slowed_by"],
                row["limited_by"],
                row["resource"],
                finite(row["seconds"]),
            )
            for row in rows(path, *COLUMNS)
        ]
    title = "Who slowed whom"
    if not costs:
        return [Section(title, "No task lost time to another one.")]
    costs.sort(key=lambda cost: -cost.seconds)
    lost = sum(cost.seconds for cost in costs)
    first = costs[0]
    note = (
        f"{first.slowed_by} cost {first.task_id} {first.seconds:.4g} s on {first.limited_by} "
        f"{first.resource}: the most of {lost:.4g} s that tasks lost to each other."
    )
    if len(costs) > MOST:
        note += f" The {MOST} largest of {len(costs):,} are here; all are in {INTERFERENCE}."
    lines = [
        (one.task_id, one.slowed_by, f"{one.limited_by} {one.resource}", f"{one.seconds:.5g}",
         f"{100 * one.seconds / lost:.1f}")
        for one in costs[:MOST]
    ]  # fmt: skip
    header = ("task", "slowed by", "on", "lost (s)", "of all (%)")
    return [Section(title, note, (Table(header, lines, (3, 4)),))]
