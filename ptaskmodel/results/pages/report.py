"""The report of a run: a self-contained HTML page for readers who did not run it.

It begins with the answer; warnings, causes, charts of time and place, tables and inputs follow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.files import digest
from ptaskmodel.recording.limits import HOST, LINK, WAITING
from ptaskmodel.results.directory import finite, readable
from ptaskmodel.results.loading import Results, ShownLimit, results_of
from ptaskmodel.results.pages.answers import Found, Limit, answer_of, numbers_of
from ptaskmodel.results.pages.interference import (
    interference_sections,
    read_costs,
    sharers_by_cost,
)
from ptaskmodel.results.pages.mpi import ranks_table, replay_sections, timeline_data
from ptaskmodel.results.pages.page import Section, Table, empty_data, write_page
from ptaskmodel.results.pages.panel import link_tracks, load_tracks, panel_says, power_tracks
from ptaskmodel.results.pages.platform import topology_data
from ptaskmodel.results.pages.waits import slowdown_sections, waiting_sections
from ptaskmodel.results.pictures.drawing import host_order, natural
from ptaskmodel.results.pictures.topology import platform_of
from ptaskmodel.results.pictures.waiting import (
    CLASSES,
    MADE_ANEW,
    MOST_USERS,
    SHOWN,
    classes_of,
)
from ptaskmodel.results.readings import other_remarks, stopped_text, warnings_of
from ptaskmodel.results.states import KILLED, in_words, outcome_of
from ptaskmodel.results.tables.places import Place, host_groups, link_name, link_places
from ptaskmodel.results.tables.slurm_reading import is_slurm, read_jobs
from ptaskmodel.style.quantities import duration, number

MAX_USES = {HOST: 200, LINK: 300}
# More spells of tasks than these are not sent.
MAX_SPELLS = 60_000
# Uses from here on are told to the per mille, smaller ones to a tenth of it.
FINE = 100
SUBJECTS = {
    "task": "A simulation of parallel tasks that share a platform",
    "job": "A simulation of a batch of jobs that wait for a machine and share it",
    "rank": "A replay of an MPI application, message by message",
}
SLURM = "A simulation of what Slurm does with a workload"


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
    page = _Report(results)
    before: list[Section] = []
    after: list[Section] = []
    subject = SUBJECTS[results.what]
    answer, columns, title = answer_of(page.found), None, _title(results)
    cards = numbers_of(page.found)
    if is_slurm(results.summary):
        from ptaskmodel.results.pages import slurm

        earlier = None if against is None else results_of(against)
        subject, columns = SLURM, slurm.job_columns(results, earlier)
        before = slurm.sections_of(results, earlier)
        before += [*waiting_sections(page.results, page.users), *slowdown_sections(page.results)]
        answer = slurm.answer_of_slurm(results, earlier, answer)
        if earlier is not None:
            subject = f"What a change of slurm.conf does: {title}"
            title = f"From {earlier.directory.name} to {results.directory.name}"
            cards = slurm.numbers_against(earlier, results)
    elif against is not None:
        raise PTaskModelError(f"{results.directory}: --against is for results of slurm")
    else:
        costs = page.costs
        slowed = [] if results.what == "rank" else interference_sections(results, costs, page.users)
        before = replay_sections(results, page.places) if results.what == "rank" else slowed
        if results.what == "job":
            before += waiting_sections(results, page.users)
            after = class_tables(results)
        before += slowdown_sections(results)
    data = page.data() | {"columns": columns, "epoch": results.summary.get("begin_unix_s")}
    data["cards"] = cards
    write_page(path, data, title=title, subject=subject, before=before, after=after,
               answer=answer)  # fmt: skip


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
            facts.append([name, number(value) if isinstance(value, float) else str(value)])
    parameters = summary.get("parameters")
    if isinstance(parameters, dict):
        facts += [[name.replace("_", " "), str(value)] for name, value in parameters.items()]
    facts += [[remark["level"], remark["text"]] for remark in other_remarks(results)]
    versions = summary.get("versions")
    if isinstance(versions, dict):
        facts.append(["versions", ", ".join(f"{name} {v}" for name, v in versions.items())])
    facts.append(["this page", f"ptaskmodel report {results.directory.name} -o FILE.html"])
    return facts


def class_tables(results: Results) -> list[Section]:
    """One section with a table for each kind of class; none if the results are of no batch.

    Raises PTaskModelError if classes.csv is not as it was written.
    """
    path = results.directory / CLASSES
    if len(results.tasks) == 1:
        return []
    with readable(path, MADE_ANEW):
        found = classes_of(path)
        users = found["user"]
        tables = tuple(_class_table(SHOWN[kind], found[kind][:MOST_USERS]) for kind in SHOWN)
    tables = tuple(table for table in tables if table.rows)
    if not tables:
        return []
    note = "Of the jobs that ran; the execution times of killed ones are shorter than their work."
    if len(users) > MOST_USERS:
        note += f" The {MOST_USERS} of {len(users):,} users who used most are here."
    return [Section("Waiting in classes of jobs", note, tables)]


def _class_table(name: str, classes: list[dict[str, str]]) -> Table:
    kinds = ("text", "count", "count", "time", "time", "time", "number")
    header = (name, "jobs", "killed", "mean waiting", "longest wait", "mean execution",
              "mean bounded slowdown")  # fmt: skip
    columns = ("mean_waiting", "max_waiting", "mean_execution", "mean_bounded_slowdown")
    lines = [
        (row["class"], int(row["jobs"]), int(row.get("killed") or 0),
         *(finite(row[column]) for column in columns))
        for row in classes
    ]  # fmt: skip
    return Table(header, lines, kinds=kinds, caption=f"Jobs by {name}", key=(2, 3), file=CLASSES)


def _title(results: Results) -> str:
    inputs = results.summary.get("inputs") or []
    names = [Path(entry["path"]).name for entry in inputs if "path" in entry]
    if len(names) > 1:
        return f"{names[1]} on {names[0]}"
    return f"Results in {results.directory.name}"


class _Report:
    """What a page of results shows, gathered once."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.places: dict[str, Place] = {}
        self.platform, self.lacking = None, ""
        if results.utilisation or results.what != "rank":
            try:
                self.platform = platform_of(results)
                self.places = link_places(self.platform)
            except PTaskModelError as error:
                self.lacking = f"The topology is not drawn: {error}." if results.utilisation else ""
        self.costs = read_costs(results)
        self.users = users_of(results)
        if is_slurm(results.summary):
            jobs = read_jobs(results.directory)
            self.users = {job.job_id: job.user for job in jobs if job.user}
            tasks = [replace(task, waiting_s=job.wait_s)
                     for task, job in zip(results.tasks, jobs, strict=True)]  # fmt: skip
            self.results = results = replace(results, tasks=tasks)
        self.limits = limits_of(results)
        self.found = Found(results, self.limits, self.costs or (), self.places)

    def data(self) -> dict[str, Any]:
        """What the page shows, as JSON; see time.js and page.js."""
        results = self.results
        hosts = host_order(results)
        words: dict[str, int] = {}
        tasks = self._task_rows({host: k for k, host in enumerate(hosts)}, words)
        uses, width_s, note = _uses(results)
        links = [name for name, kind, *_ in uses if kind == LINK]
        spells = None
        if self.limits and results.what != "rank":
            spells = spells_of(results, self.limits, words)
        topology: dict[str, Any] | str = self.lacking
        if self.platform is not None and results.utilisation:
            topology = topology_data(results, self.platform, links, self.places)
        tracks = [*load_tracks(results), *power_tracks(results), *link_tracks(results, self.places)]
        killed = {in_words(t.state) for t in results.tasks if outcome_of(t.state) == KILLED}
        named = {limit.resource for limit in self.limits if limit.kind == LINK}
        if isinstance(topology, dict):
            named |= {row[0] for row in topology["links"]}
        return empty_data(results.what) | {
            "end": results.end_s,
            "facts": facts_of(results),
            "warnings": warnings_of(results),
            "stopped": stopped_text(results),
            "hosts": hosts,
            "groups": host_groups(hosts, self.places),
            "tasks": tasks,
            "killed": sorted(killed),
            "words": list(words),
            "panel_says": panel_says(results, tracks),
            "tracks": tracks,
            "limits": [list(limit) for limit in self.limits],
            "spells": spells,
            "uses": uses,
            "use_width": width_s,
            "use_note": note,
            "places": {name: shown for name in sorted(named)
                       if (shown := link_name(name, self.places)) != name},
            "topology": topology,
            "timeline": timeline_data(results),
            "table": ranks_table(results),
        }  # fmt: skip

    def _task_rows(self, place: dict[str, int], words: dict[str, int]) -> list[list[Any]]:
        """Of each task what time.js names its columns, as short as can be.

        place: numbers of hosts. Texts that come back are numbers in ``words``, which grows; dates
        and times end where they say no more; of hosts, runs: the gap to the run before, how many.
        """
        main = _main_limits(self.results.limits)
        sharers = None if self.costs is None else sharers_by_cost(self.costs)
        digits = decimals(self.results.end_s)

        def word(text: str | None) -> int | None:
            return None if text is None else words.setdefault(text, len(words))

        def rounded(seconds: float | None) -> float | None:
            return None if seconds is None else round(seconds, digits)

        rows = []
        for task in self.results.tasks:
            limit, seconds, shared = main.get(task.task_id, (None, None, None))
            if sharers is not None:
                shared = sharers.get(task.task_id, "")
            rows.append(
                [
                    task.task_id,
                    word(task.profile),
                    rounded(task.start_s),
                    rounded(task.end_s),
                    word(in_words(task.state)),
                    _runs(sorted({place[host] for host in task.hosts})),
                    None if task.slowdown is None else float(f"{task.slowdown:.7g}"),
                    word(limit),
                    rounded(seconds),
                    shared,
                    rounded(task.waiting_s),
                    word(self.users.get(task.task_id)),
                ]
            )
        return rows


def _runs(numbers: Sequence[int]) -> list[int]:
    """Ascending numbers as runs: the gap to the run before, how many follow each other, ..."""
    found: list[int] = []
    reached = 0
    for k in numbers:
        if found and k == reached:
            found[-1] += 1
        else:
            found += [k - reached, 1]
        reached = k + 1
    return found


def users_of(results: Results) -> dict[str, str]:
    """The user of each job, from the workload that the summary names; empty if it is not there."""
    if results.what != "job" or is_slurm(results.summary):
        return {}
    from ptaskmodel.workload.reading import read_workload

    for entry in (results.summary.get("inputs") or [])[1:2]:
        for folder in (Path(), results.directory, *results.directory.absolute().parents):
            path = folder / entry["path"]
            if path.is_file() and digest(path) == entry["sha256"]:
                try:
                    jobs = read_workload(path).jobs
                except PTaskModelError:
                    return {}
                return {job.id: job.user for job in jobs if job.user is not None}
    return {}


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
        best = longest[task_id, limit]
        shared = best.shared_with.replace(";", ", ")
        if best.sharers > 1 + best.shared_with.count(";"):
            shared = f"{best.sharers:,}: {shared}, ..."
        found[task_id] = limit, mine[limit], shared
    return found


def limits_of(results: Results) -> list[Limit]:
    """What limited tasks, what was shared longest first."""
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
        rows.append(Limit(kind, resource, seconds[key], shared[key], len(tasks[key]), mean))
    return rows


def spells_of(results: Results, limits: list[Limit], words: dict[str, int]) -> dict[str, Any]:
    """For a click on a task, or on a limit: each task's spells, and who was limited by each.

    tasks: of each task [limit, start, end, sharers, shared with], limits and texts as numbers in
    ``words``, which grows; where there are too many, the longest. of: for each of ``limits`` the
    numbers of its tasks. kept: how many spells of a task are here at most, None: all.
    """
    place = {task.task_id: k for k, task in enumerate(results.tasks)}
    place_of = {(row.kind, row.resource): k for k, row in enumerate(limits)}
    mine: list[list[ShownLimit]] = [[] for _ in results.tasks]
    of: list[set[int]] = [set() for _ in limits]
    for interval in results.limits:
        if (k := place.get(interval.task_id)) is not None:
            mine[k].append(interval)
            of[place_of[interval.limited_by, interval.resource]].add(k)
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
    note = f"Means over {duration(width)}, the most used first."
    if len(table) > len(chosen):
        most = " and ".join(
            f"{count - left[kind]} most used {kind}s" for kind, count in MAX_USES.items()
        )
        note += f" Of {len(table):,} resources, the {most} are here."
    return uses, width, note
