"""The report of a run: a self-contained HTML page for readers who did not run it.

It begins with an overview: key numbers, inputs and options, warnings.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.recording.limits import HOST, LINK, WAITING
from ptaskmodel.results.comparison.metrics import outcomes
from ptaskmodel.results.directory import finite, readable
from ptaskmodel.results.loading import Results, ShownLimit, results_of
from ptaskmodel.results.pages.interference import interference_sections
from ptaskmodel.results.pages.mpi import (
    ranks_table,
    replay_cards,
    replay_sections,
    timeline_data,
)
from ptaskmodel.results.pages.page import Section, Table, empty_data, pictured, write_page
from ptaskmodel.results.pictures.drawing import (
    clock_text,
    host_order,
    lasting,
    natural,
    prefix_of,
    short_name,
)
from ptaskmodel.results.pictures.load import load_data
from ptaskmodel.results.pictures.topology import topology_data
from ptaskmodel.results.pictures.waiting import (
    CLASSES,
    MADE_ANEW,
    MOST_USERS,
    SHOWN,
    classes_of,
    waiting_figure,
)
from ptaskmodel.results.readings import other_remarks, stopped_text, warnings_of
from ptaskmodel.results.states import ENDED, in_words
from ptaskmodel.results.tables.slurm_reading import is_slurm

# Of the time of all tasks: less than this held up by a resource is no bottleneck to name.
WORTH_TELLING = 0.001
MAX_USES = {HOST: 200, LINK: 300}
# More spells of tasks than these are not sent.
MAX_SPELLS = 60_000
# More bars than these are neither drawn nor sent.
MAX_BARS = 500_000
# Uses from here on are told to the per mille, smaller ones to a tenth of it.
FINE = 100
CROWDED = "Too many jobs and hosts for a chart of who ran where."
SUBJECTS = {
    "task": "A simulation of parallel tasks that share a platform",
    "job": "A simulation of a batch of jobs that wait for a machine and share it",
    "rank": "A replay of an MPI application, message by message",
}
SLURM = "A simulation of what Slurm does with a workload"
WAITING_NOTE = (
    "Of the jobs that ran, in classes: how long they waited, and how slow that made them."
)


def cards_of(results: Results, limits: list[list[Any]]) -> list[list[str]]:
    """[name, value, what it is about or \"\"]; limits: as `report.limits_of` gives them."""
    summary = results.summary
    makespan = summary.get("makespan", summary.get("makespan_s", results.end_s))
    cards = [["makespan", lasting(makespan)]]
    if results.stopped is not None:
        cards = [["simulated until", clock_text(results.stopped.at_s)]]
    counts = outcomes(results)
    all_ended = list(counts) == [ENDED]
    cards.append([f"{results.what}s", f"{results.submitted:,}", "all ended" * all_ended])
    if not all_ended:
        cards += [[word, f"{number:,}"] for word, number in counts.items()]
    if results.what == "rank":
        cards += replay_cards(summary)
    cards += _batch_cards(summary)
    cards += _energy_cards(summary)
    slow = [task.slowdown for task in results.tasks if task.slowdown is not None]
    if slow:
        cards.append(["mean contention slowdown", f"{sum(slow) / len(slow):.4g}"])
    if limits:
        cards.append(_bottleneck(results, limits, slow))
    return cards


def _bottleneck(results: Results, limits: list[list[Any]], slow: list[float]) -> list[str]:
    """The host or link that limited tasks longest while others used it, too, if any did."""
    total = sum(row[2] for row in limits)
    found = [row for row in limits if row[0] in (HOST, LINK) and row[3] >= WORTH_TELLING * total]
    if not found or not found[0][3] or max(slow, default=2.0) <= 1.0 + 1e-6:
        return ["worst bottleneck", "none", "nothing that several shared cost time"]
    kind, name, _, shared = found[0][:4]
    whose = "messages' and computations'" if results.what == "rank" else f"{results.what}s'"
    text = f"{kind} {short_name(name, 44)}"
    return [
        "worst bottleneck",
        text,
        f"{shared / total:.1%} of the {whose} time, in spells that others shared",
    ]


def _batch_cards(summary: dict[str, Any]) -> list[list[str]]:
    """What the summary of a batch says of waiting and of the use of the machine."""
    cards = []
    for name, key, text in (
        ("mean waiting", "waiting_s", lasting),
        ("mean bounded slowdown", "bounded_slowdown", "{:,.4g}".format),
    ):
        mean = summary[key].get("mean") if isinstance(summary.get(key), dict) else None
        if isinstance(mean, int | float):
            cards.append([name, text(mean)])
    used, useful = summary.get("utilisation"), summary.get("useful_utilisation")
    if isinstance(used, int | float):
        cards.append(["utilisation", f"{used:.1%}"])
    if isinstance(useful, int | float):
        about = "of the machine; what the jobs that ended need alone"
        cards.append(["useful utilisation", f"{useful:.1%}", about])
    killed = summary.get("killed_only_by_neighbours")
    if killed:
        cards.append(["killed by neighbours", f"{killed:,}", "alone they would have ended"])
    return cards


def _energy_cards(summary: dict[str, Any]) -> list[list[str]]:
    """The joules of the run and the most that was drawn, if they were counted."""
    found = summary.get("energy")
    if not isinstance(found, dict):
        return []
    cards = []
    for name, key, unit in (("energy", "total_J", "J"), ("peak power", "peak_W", "W")):
        value = found.get(key)
        if isinstance(value, int | float):
            scale, prefix = prefix_of(value)
            cards.append([name, f"{value / scale:.4g} {prefix}{unit}"])
    return cards


def facts_of(results: Results) -> list[list[str]]:
    """[name, value] of inputs, choices, versions, and remarks that change no reading."""
    summary = results.summary
    facts = [["input", f"{e['path']} (SHA-256 {e['sha256'][:12]}…)"]
             for e in summary.get("inputs") or [] if "path" in e and "sha256" in e]  # fmt: skip
    names = {
        "solver": "solver",
        "network_model": "network model",
        "network_level": "network level",
        "count": "competitors counted by",
        "policy": "scheduling policy",
        "allocation": "allocation",
        "events": "events",
        "end_date": "simulated until (s)",
        "simulation_wall_time_s": "simulated in (s)",
    }
    for key, name in names.items():
        if key in summary:
            value = summary[key]
            facts.append([name, _fact(key, value)])
    facts += [[remark["level"], remark["text"]] for remark in other_remarks(results)]
    versions = summary.get("versions")
    if isinstance(versions, dict):
        facts.append(["versions", ", ".join(f"{name} {v}" for name, v in versions.items())])
    return facts


def _fact(key: str, value: Any) -> str:
    """A value of the summary for a reader, who needs dates to the millisecond."""
    if key.endswith("_time_s"):
        return f"{value:.4g}"
    return f"{round(value, 3):,}" if key == "end_date" else str(value)


def write_report(
    results: Results | str | Path,
    path: str | Path,
    *,
    against: Results | str | Path | None = None,
) -> None:
    """Write the HTML page of `results` (or of those in a directory) to the file `path`.

    against: another run of Slurm on the same jobs, before the change: the page then shows which
    jobs gain or lose. Raises PTaskModelError if results cannot be read or compared, or the page
    cannot be written.
    """
    results = results_of(results)
    before: list[Section] = []
    after: list[Section] = []
    subject = SUBJECTS[results.what]
    columns = None
    if is_slurm(results.summary):
        from ptaskmodel.results.pages.slurm import job_columns, sections_of

        subject = SLURM
        columns = job_columns(results)
        before = sections_of(results, None if against is None else results_of(against))
    elif against is not None:
        raise PTaskModelError(f"{results.directory}: --against is for results of slurm")
    elif results.what == "job":
        after = [*_waits(results), *waiting_sections(results)]
    elif results.what == "task":
        after = interference_sections(results)
    elif results.what == "rank":
        after = replay_sections(results)
    data = page_data(results) | {"columns": columns}
    write_page(path, data, title=_title(results), subject=subject, before=before, after=after)


def _waits(results: Results) -> list[Section]:
    """The picture of who waited, if anybody did."""
    waited = results.summary.get("waiting_s")
    if not isinstance(waited, dict) or not waited.get("max"):
        return [Section("Who waited how long", "No job waited.")]
    alt = "Waiting by hosts asked for, time of execution and user; distribution of slowdowns"
    return [pictured("Who waited how long", lambda: waiting_figure(results), alt=alt)]


def waiting_sections(results: Results) -> list[Section]:
    """One section with a table for each kind of class; none if the results are of no batch.

    Raises PTaskModelError if classes.csv is not as it was written.
    """
    path = results.directory / CLASSES
    with readable(path, MADE_ANEW):
        found = classes_of(path)
        users = found["user"]
        tables = tuple(_classes_table(SHOWN[kind], found[kind][:MOST_USERS]) for kind in SHOWN)
    tables = tuple(table for table in tables if table.rows)
    if not tables:
        return []
    note = WAITING_NOTE
    if len(users) > MOST_USERS:
        note += f" The {MOST_USERS} of {len(users):,} users who used most are here."
    return [Section("Waiting in classes of jobs", note, tables)]


def _classes_table(name: str, classes: list[dict[str, str]]) -> Table:
    header = (name, "jobs", "mean waiting", "longest", "mean execution", "mean bounded slowdown")
    texts = [
        (
            row["class"],
            f"{int(row['jobs']):,}",
            lasting(finite(row["mean_waiting"])),
            lasting(finite(row["max_waiting"])),
            lasting(finite(row["mean_execution"])),
            f"{finite(row['mean_bounded_slowdown']):,.4g}",
        )
        for row in classes
    ]
    return Table(header, texts, (1, 2, 3, 4, 5))


def _title(results: Results) -> str:
    inputs = results.summary.get("inputs") or []
    names = [Path(entry["path"]).name for entry in inputs if "path" in entry]
    if len(names) > 1:
        return f"{names[1]} on {names[0]}"
    return f"Results in {results.directory.name}"


def page_data(results: Results) -> dict[str, Any]:
    """What the page shows, as JSON; see the comments of report.js."""
    crowded = sum(len(task.hosts) for task in results.tasks) > MAX_BARS
    hosts = [] if crowded else host_order(results)
    words: dict[str, int] = {}
    tasks = _task_rows(results, {host: k for k, host in enumerate(hosts)}, words)
    uses, width_s, note = _uses(results)
    limits = limits_of(results)
    spells = spells_of(results, limits, words) if limits and results.what != "rank" else None
    return empty_data(results.what) | {
        "end": results.end_s,
        "cards": cards_of(results, limits),
        "facts": facts_of(results),
        "warnings": warnings_of(results) + [CROWDED] * crowded,
        "stopped": stopped_text(results),
        "hosts": hosts,
        "tasks": tasks,
        "words": list(words),
        "has_slowdowns": any(task.slowdown is not None for task in results.tasks),
        "limits": limits,
        "spells": spells,
        "uses": uses,
        "use_width": width_s,
        "use_note": note,
        "topology": topology_data(results, [name for name, kind, *_ in uses if kind == LINK]),
        "load": load_data(results),
        "timeline": timeline_data(results),
        "table": ranks_table(results),
    }


def _task_rows(results: Results, place: dict[str, int], words: dict[str, int]) -> list[list[Any]]:
    """Of each task what report.js names its columns, as short as can be.

    place: numbers of hosts. Texts that come back are numbers in ``words``, which grows; dates and
    times end where they say no more; of hosts, each is what it is beyond the one before.
    """
    main = _main_limits(results.limits)
    digits = decimals(results.end_s)

    def word(text: str | None) -> int | None:
        return None if text is None else words.setdefault(text, len(words))

    def rounded(seconds: float | None) -> float | None:
        return None if seconds is None else round(seconds, digits)

    rows = []
    for task in results.tasks:
        limit, seconds, shared = main.get(task.task_id, (None, None, None))
        where = sorted({place[host] for host in task.hosts}) if place else []
        rows.append(
            [
                task.task_id,
                word(task.profile),
                rounded(task.start_s),
                rounded(task.end_s),
                word(in_words(task.state)),
                [k - before for k, before in zip(where, [0, *where], strict=False)],
                None if task.slowdown is None else float(f"{task.slowdown:.7g}"),
                word(limit),
                rounded(seconds),
                shared,
            ]
        )
    return rows


def decimals(end_s: float) -> int:
    """Of dates up to an end, s, on a page: a part in 10^9 of it, or the millisecond."""
    return max(3, 9 - math.ceil(math.log10(end_s))) if end_s > 0.0 else 3


def _main_limits(limits: list[ShownLimit]) -> dict[str, tuple[str, float, str]]:
    """For each task that began what limited it longest, for how long, and who shared that."""
    times: dict[str, dict[str, float]] = {}
    longest: dict[tuple[str, str], ShownLimit] = {}
    for interval in limits:
        if interval.limited_by == WAITING:
            continue
        limit = f"{interval.limited_by} {interval.resource}".strip()
        lasted = interval.end_s - interval.start_s
        mine = times.setdefault(interval.task_id, {})
        mine[limit] = mine.get(limit, 0.0) + lasted
        best = longest.get((interval.task_id, limit))
        if best is None or best.end_s - best.start_s < lasted:
            longest[interval.task_id, limit] = interval
    found = {}
    for task_id, mine in times.items():
        limit = max(mine, key=lambda name: mine[name])
        shared = longest[task_id, limit].shared_with.replace(";", ", ")
        found[task_id] = limit, mine[limit], shared
    return found


def limits_of(results: Results) -> list[list[Any]]:
    """What limited tasks, what was shared longest first.

    [kind, resource, seconds summed over tasks, of them in spells during which others used it too,
    tasks, mean use in % or None].
    """
    seconds: dict[tuple[str, str], float] = {}
    shared: dict[tuple[str, str], float] = {}
    tasks: dict[tuple[str, str], set[str]] = {}
    for interval in results.limits:
        key = interval.limited_by, interval.resource
        lasted = interval.end_s - interval.start_s
        seconds[key] = seconds.get(key, 0.0) + lasted
        shared[key] = shared.get(key, 0.0) + (lasted if interval.sharers else 0.0)
        tasks.setdefault(key, set()).add(interval.task_id)
    span = results.end_s or 1.0
    rows = []
    for key in sorted(seconds, key=lambda key: (-shared[key], -seconds[key], key)):
        kind, resource = key
        spans = results.utilisation.get((resource, kind))
        mean = None
        if spans is not None:
            mean = 100.0 * sum((b - a) * share for a, b, share in spans) / span
        elif kind in (HOST, LINK):
            mean = 0.0
        rows.append([kind, resource, seconds[key], shared[key], len(tasks[key]), mean])
    return rows


def spells_of(results: Results, limits: list[list[Any]], words: dict[str, int]) -> dict[str, Any]:
    """For a click on a task, or on a limit: each task's spells, and who was limited by each.

    tasks: of each task [limit, start, end, sharers, shared with], limits and texts as numbers in
    ``words``, which grows; where there are too many, the longest. of: for each of ``limits`` the
    numbers of its tasks. kept: how many spells of a task are here at most, None: all.
    """
    place = {task.task_id: k for k, task in enumerate(results.tasks)}
    number = {(row[0], row[1]): k for k, row in enumerate(limits)}
    mine: list[list[ShownLimit]] = [[] for _ in results.tasks]
    of: list[set[int]] = [set() for _ in limits]
    for interval in results.limits:
        if (k := place.get(interval.task_id)) is not None:
            mine[k].append(interval)
            of[number[interval.limited_by, interval.resource]].add(k)
    kept = None
    if len(results.limits) > MAX_SPELLS:
        kept = max(MAX_SPELLS // max(len(mine), 1), 3)
        for spells in mine:
            spells.sort(key=lambda one: one.start_s - one.end_s)
            del spells[kept:]
            spells.sort(key=lambda one: one.start_s)
    digits = decimals(results.end_s)

    def word(text: str) -> int:
        return words.setdefault(text, len(words))

    return {
        "tasks": [
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
        ],
        "of": [sorted(members) for members in of],
        "kept": kept,
    }


def _uses(results: Results) -> tuple[list[list[Any]], float, str]:
    """([name, kind, mean %, per mille in each interval], length of an interval in s, a note)."""
    table = results.utilisation
    if not table:
        return [], 1.0, ""
    width = min(b - a for spans in table.values() for a, b, _ in spans)
    span = results.end_s or 1.0
    mean = {
        key: 100.0 * sum((b - a) * share for a, b, share in spans) / span
        for key, spans in table.items()
    }
    order = sorted(table, key=lambda key: (-mean[key], natural(key[0])))
    left = dict(MAX_USES)
    chosen = []
    for key in order:
        if left[key[1]] > 0:
            left[key[1]] -= 1
            chosen.append(key)
    uses = []
    for name, kind in chosen:
        parts: list[float] = [0] * (round(table[name, kind][-1][0] / width) + 1)
        for start, _, share in table[name, kind]:
            part = 1000 * share
            parts[round(start / width)] = round(part) if part >= FINE else round(part, 1)
        uses.append([name, kind, mean[name, kind], parts])
    note = f"Means over {clock_text(width)}, the most used first."
    if len(table) > len(chosen):
        most = " and ".join(
            f"{count - left[kind]} most used {kind}s" for kind, count in MAX_USES.items()
        )
        note += f" Of {len(table):,} resources, the {most} are here."
    return uses, width, note
