"""Why tasks took long: what limited whom, and how much time each lost to which other task."""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ptaskmodel.recording import HOST, LINK, WAITING
from ptaskmodel.results.pages.page import Section, Table
from ptaskmodel.results.pictures.charts import Matrix
from ptaskmodel.results.states import NOT_SLOWED
from ptaskmodel.results.tables.costs import INTERFERENCE, NEIGHBOURS, Cost, summed
from ptaskmodel.results.tables.places import Place, resource_name
from ptaskmodel.style.text import count, duration, number
from ptaskmodel.workload.tasks import NUMBER

if TYPE_CHECKING:
    from ptaskmodel.results.loading import Results, ShownLimit

MOST = 15  # rows and columns of the matrix
# More spells of tasks than these are not sent.
MAX_SPELLS = 60_000
BOTTLENECKS = "bottlenecks.csv"


class Limit(NamedTuple):
    """What limited tasks: a resource, or a kind of limit without one.

    seconds: summed over tasks. shared: of them, in spells in which others used it, too. tasks: the
    ids of those that it limited. use: mean, in %; None: not a resource.
    """

    kind: str
    resource: str
    seconds: float
    shared: float
    tasks: Collection[str]
    use: float | None


def decimals(end_s: float) -> int:
    """Of dates up to an end, s, on a page: a part in 10^9 of it, or the millisecond."""
    return max(3, 9 - math.ceil(math.log10(end_s))) if end_s > 0.0 else 3


def limits_of(results: Results) -> list[Limit]:
    """What limited tasks, what was shared longest first."""
    spells: dict[tuple[str, str], list[ShownLimit]] = {}
    for interval in results.limits:
        if interval.limited_by != WAITING:
            spells.setdefault((interval.limited_by, interval.resource), []).append(interval)
    span, found = results.end_s or 1.0, []
    for (kind, resource), its in spells.items():
        spans = results.utilisation.get((resource, kind), ())
        use = 100.0 * sum((b - a) * share for a, b, share in spans) / span
        seconds = sum(one.end_s - one.start_s for one in its)
        shared = sum(one.end_s - one.start_s for one in its if one.sharers)
        tasks = {one.task_id for one in its}
        is_told = spans or kind in (HOST, LINK)
        found.append(Limit(kind, resource, seconds, shared, tasks, use if is_told else None))
    return sorted(found, key=lambda one: (-one.shared, -one.seconds, one.kind, one.resource))


def spells_of(results: Results, words: dict[str, int]) -> dict[str, Any]:
    """For a click on a task: each task's spells in which one thing limited it.

    tasks: of each task [limit, start, end, sharers, shared with], limits and texts as numbers in
    ``words``, which grows; where there are too many, the longest. kept: how many spells of a task
    are here at most, None: all.
    """
    place = {task.task_id: k for k, task in enumerate(results.tasks)}
    mine: list[list[ShownLimit]] = [[] for _ in results.tasks]
    for interval in results.limits:
        if (k := place.get(interval.task_id)) is not None:
            mine[k].append(interval)
    kept = None
    if len(results.limits) > MAX_SPELLS:
        kept = max(MAX_SPELLS // max(len(mine), 1), 3)
        longest = (
            heapq.nlargest(kept, its, key=lambda one: one.end_s - one.start_s) for its in mine
        )
        mine = [sorted(its, key=lambda one: one.start_s) for its in longest]
    digits = decimals(results.end_s)

    def word(text: str) -> int:
        return words.setdefault(text, len(words))

    tasks = [
        [
            [
                word(f"{one.limited_by} {one.resource}".strip()),
                round(one.start_s, digits),
                round(one.end_s, digits),
                one.sharers,
                word(one.shared_with.replace(";", ", ")),
            ]
            for one in spells
        ]
        for spells in mine
    ]
    return {"tasks": tasks, "kept": kept}


def limits_section(
    results: Results, limits: Sequence[Limit], places: Mapping[str, Place]
) -> list[Section]:
    """Return a table of the `limits` of `results`, of which a click shows the tasks; or nothing.

    places: see `places.link_places`.
    """
    if not limits:
        return []
    what = "computations and messages" if results.what == "rank" else f"{results.what}s"
    whole = sum(limit.seconds for limit in limits) or 1.0
    lines = [
        (resource_name(limit.kind, limit.resource, places), limit.seconds / whole,
         limit.seconds, limit.shared, len(limit.tasks),
         None if limit.use is None else limit.use / 100)
        for limit in limits
    ]  # fmt: skip
    picks = None
    note = (
        f"For each limit: its part of the time of all {what}, and how long several shared it. A "
        "limit that is not shared is no bottleneck. One twice as fast saves at most half its time."
    )
    if results.what != "rank":
        place = {task.task_id: k for k, task in enumerate(results.tasks)}
        picks = [(sorted(place[name] for name in limit.tasks if name in place),
                  f"limited by {line[0]}", limit.resource)
                 for limit, line in zip(limits, lines, strict=True)]  # fmt: skip
        note += f" A click shows its {what}."
    columns = {"limit": "text", "of all time": "share", "time": "time", "of it shared": "time",
               what: "count", "mean use": "share"}  # fmt: skip
    table = Table(columns, lines, caption=f"What limited {what}", key=(1, 3),
                  file=BOTTLENECKS, picks=picks, same=(2, 3))  # fmt: skip
    return [Section("What limited whom", note, (table,))]


def loops_of(results: Results) -> dict[str, str]:
    """The closed loop of each request of `results`, by its id."""
    loops = results.summary.get("loops") or {}
    named = ((task.task_id, task.profile or "") for task in results.tasks)
    return {name: loop for name, loop in named if loop in loops and name.startswith(loop + NUMBER)}


def loops_section(results: Results) -> list[Section]:
    """Return how long the requests of each closed loop took; nothing if there are no loops."""
    loops = results.summary.get("loops") or {}
    columns = ("completed", "mean_s", "p50_s", "p90_s", "p99_s", "requests_per_s", "bytes_per_s")
    lines = [[name, *(of.get(column) for column in columns)] for name, of in loops.items()]
    heads = {"loop": "text", "requests": "count", "mean": "time", "half within": "time",
             "90 % within": "time", "99 % within": "time", "requests per s": "number",
             "throughput": "rate"}  # fmt: skip
    table = Table(heads, lines, caption="Closed loops", key=(2, 5), same=(2, 3, 4, 5))
    note = "From asking to being served; throughput from the first start to the last end."
    return [Section("How long requests took", note, (table,))] if lines else []


def interference_sections(
    results: Results, costs: Sequence[Cost] | None, groups: Mapping[str, Mapping[str, str]]
) -> list[Section]:
    """Return the matrices of who cost whom; of a batch in host hours.

    results: of tasks or a batch. costs: as of `read_costs`. groups: by kind, such as "user", the
    group of each task.
    """
    title = "Who slowed whom"
    if costs is None:  # the answer says so
        return []
    if not costs:
        return [Section(title, f"No {results.what} lost time to another one.")]
    several = {kind: of for kind, of in groups.items() if len(set(of.values())) > 1}
    # Requests of a loop are alike: one by one they say nothing.
    if "client" not in several:
        several[results.what] = {}
    charts = tuple(_matrix(results, costs, kind, of).data() for kind, of in several.items())
    # What was left out of the file is missing in the sums, too.
    remarks = (remark["text"] for remark in results.summary.get("remarks") or [])
    part = next((f"{text}." for text in remarks if text.startswith(INTERFERENCE)), "")
    return [Section(title, part and f"Only a part is shown: {part}", charts=charts)]


def unknown_culprits(results: Results) -> str:
    """Return with which options to run again to know who slowed tasks in `results`.

    "": it was recorded, or no task was slowed.
    """
    recorded = any((results.directory / name).exists() for name in (INTERFERENCE, NEIGHBOURS))
    if recorded or not any((task.slowdown or 1.0) > NOT_SLOWED for task in results.tasks):
        return ""
    options = "--attribution --neighbours" if results.what == "job" else "--neighbours"
    return f"Which {results.what} slowed which was not recorded: run again with {options}."


def _matrix(results: Results, costs: Sequence[Cost], kind: str, group: Mapping[str, str]) -> Matrix:
    """The chart of who cost whom: victims down, those who cost them most across.

    kind: of rows and columns, "user", "job". group: of each task; those without one are their own.
    """
    hosts = {task.task_id: len(task.hosts) for task in results.tasks}
    place = {task.task_id: k for k, task in enumerate(results.tasks)}
    in_hours = results.what == "job"
    by: dict[tuple[str, str], list[Cost]] = {}
    for cost in costs:
        pair = group.get(cost.task_id, cost.task_id), group.get(cost.slowed_by, cost.slowed_by)
        by.setdefault(pair, []).append(cost)

    def loss(cost: Cost) -> float:
        return cost.seconds * (hosts.get(cost.task_id, 0) / 3600 if in_hours else 1.0)

    cells = summed((pair, sum(map(loss, its))) for pair, its in by.items())
    members = {pair: {place[name] for cost in its for name in (cost.task_id, cost.slowed_by)
                      if name in place} for pair, its in by.items()}  # fmt: skip
    lost = summed((victim, amount) for (victim, _), amount in cells.items())
    rows = list(lost)[:MOST]
    caused = summed((who, amount) for (victim, who), amount in cells.items() if victim in rows)
    columns, others = list(caused)[:MOST], list(caused)[MOST:]
    table, who = [], []
    for victim in rows:
        parts = [*([name] for name in columns), *([others] if others else []), list(caused)]
        table.append([sum(cells.get((victim, name), 0.0) for name in part) for part in parts])
        who.append([sorted(set().union(*(members.get((victim, name), ()) for name in part)))
                    for part in parts])  # fmt: skip
    (victim, culprit), worst = next(iter(cells.items()))
    total, most = (
        f"{number(x)} host hours" if in_hours else duration(x) for x in (sum(lost.values()), worst)
    )
    whom = f"{kind} {victim}" if victim != culprit else "itself"
    culprits = count(len({name for _, name in cells}), kind)
    own = ", their own included" if any(one == other for one, other in cells) else ""
    sentence = (
        f"{count(len(lost), kind)} lost {total} to {culprits}{own}; "
        f"{kind} {culprit} cost {whom} most: {most}."
    )
    parts_shown = [f"the {MOST} that lost most of {count(len(lost))}"] if len(lost) > MOST else []
    parts_shown += [f"the {MOST} that cost them most of {count(len(caused))}"] if others else []
    note = "A click on a cell shows it in all charts and tables."
    return Matrix(
        *(("number", "Host hours lost") if in_hours else ("time", "Time lost")),
        f"{kind}: lost by ↓ because of →",
        sentence,
        rows,
        [*columns, *(["others"] if others else []), "sum"],
        table,
        sums=1 + bool(others),
        members=who,
        unit="host hours" if in_hours else "",
        note=f"Shown: {'; '.join(parts_shown)}. {note}" if parts_shown else note,
    )
