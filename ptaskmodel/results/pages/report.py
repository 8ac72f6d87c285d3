"""The report of a run: a self-contained HTML page for readers who did not run it.

It begins with the answer; warnings, causes, charts of time and place, tables and inputs follow.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.recording import HOST, LINK
from ptaskmodel.results.loading import Results, ShownTask, main_limits, results_of
from ptaskmodel.results.pages.answers import (
    Found,
    answer_of,
    energies_of,
    energy_section,
    numbers_of,
)
from ptaskmodel.results.pages.interference import (
    decimals,
    interference_sections,
    limits_of,
    limits_section,
    loops_of,
    loops_section,
    spells_of,
)
from ptaskmodel.results.pages.metrics import slowdown_sections, waiting_sections
from ptaskmodel.results.pages.mpi import ranks_table, replay_sections, timeline_data
from ptaskmodel.results.pages.page import write_page
from ptaskmodel.results.pages.platform import (
    answer_of_flows,
    flow_sections,
    flows_of,
    topology_data,
)
from ptaskmodel.results.pictures.drawing import host_order, natural
from ptaskmodel.results.pictures.topology import input_of, mean_use, platform_of
from ptaskmodel.results.pictures.tracks import (
    link_tracks,
    load_tracks,
    panel_says,
    power_tracks,
    reason_tracks,
    start_tracks,
    use_table,
)
from ptaskmodel.results.sentences import other_remarks, stopped_text, warnings_of
from ptaskmodel.results.states import KILLED, in_words, outcome_of
from ptaskmodel.results.tables.costs import read_costs, sharers_by_cost
from ptaskmodel.results.tables.places import Place, host_groups, link_name, link_places
from ptaskmodel.results.tables.slurm_reading import is_slurm
from ptaskmodel.style.text import count, duration, number, words_of_name

MAX_USES = {HOST: 200, LINK: 300}
# Uses from here on are told to the per mille, smaller ones to a tenth of it.
FINE = 100
SUBJECTS = {
    "task": "A simulation of parallel tasks that share a platform",
    "job": "A simulation of a batch of jobs that wait for a machine and share it",
    "rank": "A replay of an MPI application, message by message",
}
SLURM = {
    "slurm": "A simulation of what Slurm does with a workload",
    "slurm-live": "What a real Slurm did with a workload on simulated nodes",
}
# Of more tasks those with most host time are on a page; each has more to tell where limits are.
MAX_TASKS, MAX_LIMITED = 75_000, 25_000
MOST_INPUTS = 6  # named
# Options that are not written as their parameters; what files show that was asked for, too.
OPTIONS = {
    "policy_options": "--policy-option", "storages": "--storage", "licences": "--licence",
    "roles": "--role", "until_s": "--until", "tau_s": "--tau", "jitter_s": "--jitter",
    "collectives": "--collective", "slack_us": "--slack", "timeout_s": "--timeout",
}  # fmt: skip
# Parameters that are true unless an option says no.
SWITCHED_OFF = ("contention", "storage_sharing")
WRITTEN = {
    "attribution.csv": "--attribution", "interference.csv": "--neighbours",
    "neighbours.csv": "--neighbours", "routes.csv": "--routes",
}  # fmt: skip
# Of a summary, with its parameters.
CHOICES = ("solver", "network_model", "network_level", "policy", "allocation", "events")


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
    page = _Report(results_of(results))
    results = page.results
    subject = SUBJECTS[results.what]
    answer, columns, title = _answer(page), None, _title(results)
    cards = numbers_of(page.found)
    # Each is nothing where it has nothing to say.
    before = [
        *replay_sections(results, page.places),
        *loops_section(results),
        *interference_sections(results, page.costs, {"user": page.users, "client": page.loops}),
        *flow_sections(results, page.flows, page.places),
        *limits_section(page.shown, page.limits, page.places),
        *waiting_sections(results, page.users),
        *energy_section(page.found),
        *slowdown_sections(results),
    ]
    if is_slurm(results.summary):
        from ptaskmodel.results.pages import slurm

        earlier = None if against is None else results_of(against)
        subject = SLURM[results.summary["command"]]
        columns = slurm.job_columns(results, earlier)
        columns["rows"] = [columns["rows"][k] for k in page.order[: len(page.shown.tasks)]]
        before = [*slurm.sections_of(results, earlier), *before]
        answer = slurm.answer_of_slurm(results, earlier, answer)
        if earlier is not None:
            changed = slurm.changed_text(earlier, results)
            subject = "What a change of slurm.conf does" if changed else "The same slurm.conf twice"
            subject += f"{changed}: {title}"
            title = f"From {earlier.directory.name} to {results.directory.name}"
            cards = slurm.numbers_against(earlier, results)
    elif against is not None:
        raise PTaskModelError(f"{results.directory}: --against is for results of slurm")
    data = page.data() | {"columns": columns, "cards": cards}
    write_page(path, data, title=title, subject=subject, before=before, answer=answer)


def answer_in(results: Results | str | Path) -> str:
    """Return the sentences with which the page of `results`, or of those in a directory, begins."""
    return _answer(_Report(results_of(results)))


def _answer(page: _Report) -> str:
    lines = answer_of_flows(page.flows, page.places) if page.results.what == "task" else []
    return "\n".join([answer_of(page.found), *lines])


def facts_of(results: Results) -> list[list[str]]:
    """[name, value] of inputs, choices, versions, and remarks that change no reading."""
    summary = results.summary
    inputs = [e for e in summary.get("inputs") or [] if "path" in e and "sha256" in e]
    facts = [["input", f"{e['path']} (SHA-256 {e['sha256'][:12]}…)"] for e in inputs[:MOST_INPUTS]]
    if len(inputs) > MOST_INPUTS:
        facts.append(["inputs", f"{count(len(inputs) - MOST_INPUTS)} more, in summary.json"])
    parameters = summary.get("parameters")
    chosen = {name: summary[name] for name in CHOICES if name in summary}
    chosen |= parameters if isinstance(parameters, dict) else {}
    facts += [
        [words_of_name(name), _shown(value)]
        for name, value in chosen.items()
        if value not in (None, False, "")
    ]
    if (took := summary.get("simulation_wall_time_s")) is not None:
        facts.append(["simulated in", duration(took)])
    facts += [[remark["level"], remark["text"]] for remark in other_remarks(results)]
    versions = summary.get("versions")
    if isinstance(versions, dict):
        facts.append(["versions", ", ".join(f"{name} {v}" for name, v in versions.items())])
    facts.append(["made again by", command_of(results)])
    facts.append(["this page", f"ptaskmodel report {results.directory.name} -o FILE.html"])
    return facts


def _shown(value: object) -> str:
    """A choice as text."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_shown(one)}" for name, one in value.items())
    return number(value) if isinstance(value, float) else "yes" if value is True else str(value)


def command_of(results: Results) -> str:
    """Return the command that makes a run's `results` again, with all its options."""
    summary = results.summary
    command = summary.get("command") or {"rank": "replay", "task": "simulate"}.get(results.what)
    inputs = [entry["path"] for entry in summary.get("inputs") or [] if "path" in entry]
    words = ["ptaskmodel", command or "batch", *inputs[:2]]
    parameters = {"solver": summary.get("solver")} if results.what == "task" else {}
    parameters |= summary.get("parameters") or {}
    for name, value in parameters.items():
        option = OPTIONS.get(name) or "--" + name.replace("_", "-")
        if name in SWITCHED_OFF:
            words += [] if value else ["--no-" + name.replace("_", "-")]
        elif value is True:
            words.append(option)
        elif isinstance(value, Mapping):
            words += [part for key, one in value.items() for part in (option, f"{key}={one}")]
        elif isinstance(value, list):
            words += [part for one in value for part in (option, str(one))]
        elif value not in (None, False, ""):
            words += [option, str(value)]
    there = set(summary.get("files") or [])
    words += [option for file, option in WRITTEN.items() if file in there]
    return shlex.join([*words, "-o", results.directory.name])


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
        self.loops, self.flows = loops_of(results), flows_of(results)
        self.users, self.begin_unix_s = _of_workload(results)
        if is_slurm(results.summary):
            self.users = {job.job_id: job.user for job in results.jobs if job.user}
            tasks = [replace(task, waiting_s=job.wait_s)
                     for task, job in zip(results.tasks, results.jobs, strict=True)]  # fmt: skip
            self.results = results = replace(results, tasks=tasks)
        self.order = _most_first(results)
        self.results = results = replace(results, tasks=[results.tasks[k] for k in self.order])
        self.shown = replace(results, tasks=results.tasks[: _most(results)])
        self.limits = limits_of(results)
        energies = energies_of(results)
        self.found = Found(results, self.limits, self.costs or (), self.places, self.loops,
                           self.users, energies)  # fmt: skip

    def data(self) -> dict[str, Any]:
        """What the page shows, as JSON; see time.js and page.js."""
        results, kept = self.results, self.shown
        hosts = host_order(results)
        words: dict[str, int] = {}
        tasks = self._task_rows({host: k for k, host in enumerate(hosts)}, words)
        uses, width_s, note = _uses(results)
        links = [name for name, kind, *_ in uses if kind == LINK]
        spells = None
        if self.limits and results.what != "rank":
            spells = spells_of(kept, words)
        topology: dict[str, Any] | str = self.lacking
        if self.platform is not None and results.utilisation:
            topology = topology_data(kept, self.platform, links, self.places)
        tracks = [*load_tracks(results), *reason_tracks(results), *start_tracks(results),
                  *power_tracks(results), *link_tracks(results, self.places)]  # fmt: skip
        killed = {in_words(t.state) for t in results.tasks if outcome_of(t.state) == KILLED}
        named = {limit.resource for limit in self.limits if limit.kind == LINK}
        if isinstance(topology, dict):
            named |= {row[0] for row in topology["links"]}
        return {
            "what": results.what,
            "end": results.end_s,
            "epoch": self.begin_unix_s,
            "facts": facts_of(results),
            "warnings": warnings_of(results),
            "stopped": stopped_text(results),
            "hosts": hosts,
            "groups": host_groups(hosts, self.places),
            "tasks": tasks,
            "killed": sorted(killed),
            "words": list(words),
            "panel_says": panel_says(results, tracks, self.begin_unix_s),
            "cut": self._cut(),
            "tracks": [track.data() for track in tracks],
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

    def _cut(self) -> str:
        """Which of many tasks are on the page; "" if all are."""
        every, shown = self.results.tasks, self.shown.tasks
        if len(shown) == len(every):
            return ""
        part = sum(map(_host_s, shown)) / (sum(map(_host_s, every)) or 1.0)
        return (f"the {count(len(shown))} of {count(len(every))} with most host time, "
                f"{number(part, 'share')} of it all")  # fmt: skip

    def _task_rows(self, place: dict[str, int], words: dict[str, int]) -> list[list[Any]]:
        """Of each task what time.js names its columns, as short as can be.

        place: numbers of hosts. Texts that come back are numbers in ``words``, which grows; dates
        and times end where they say no more; of hosts, runs: the gap to the run before, how many.
        """
        main = main_limits(self.results.limits)
        sharers = None if self.costs is None else sharers_by_cost(self.costs)
        digits = decimals(self.results.end_s)

        def word(text: str | None) -> int | None:
            return None if text is None else words.setdefault(text, len(words))

        def rounded(seconds: float | None) -> float | None:
            return None if seconds is None else round(seconds, digits)

        rows = []
        for task in self.shown.tasks:
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


def _host_s(task: ShownTask) -> float:
    return len(task.hosts) * (task.duration_s or 0.0)


def _most(results: Results) -> int:
    """How many tasks of `results` a page can hold."""
    return MAX_LIMITED if results.limits else MAX_TASKS


def _most_first(results: Results) -> list[int]:
    """The numbers of tasks: of more than a page can hold first those with most host time."""
    tasks, most = results.tasks, _most(results)
    order = list(range(len(tasks)))
    if len(tasks) <= most:
        return order
    order.sort(key=lambda k: -_host_s(tasks[k]))
    return [*sorted(order[:most]), *sorted(order[most:])]


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


def _of_workload(results: Results) -> tuple[dict[str, str], float | None]:
    """The user of each job, and when the log begins, Unix s, from the workload; both if known.

    It is read again from where the summary says, if it is still there.
    """
    begin = results.summary.get("begin_unix_s")
    if results.what != "job" or is_slurm(results.summary):
        return {}, begin
    from ptaskmodel.workload.jobs import names_of, users_of
    from ptaskmodel.workload.reading import read_workload

    try:
        jobs = read_workload(input_of(results, 1, "workload")).jobs
    except PTaskModelError:
        return {}, begin
    both = zip(names_of(jobs)[0], users_of(jobs), strict=True)
    return {name: user for name, user in both if user is not None}, begin


def _uses(results: Results) -> tuple[list[list[Any]], float, str]:
    """([name, kind, mean %, per mille in each interval], length of an interval in s, a note)."""
    uses: list[list[Any]] = []
    widths: list[float] = []
    for kind, most in MAX_USES.items():
        table, width_s = use_table(results, kind)
        mean = mean_use(results, kind)
        widths += [width_s] * bool(table)
        for name in sorted(table, key=lambda name: (-mean[name], natural(name)))[:most]:
            parts = (1000 * table[name]).tolist()
            shown = [round(part) if part >= FINE else round(part, 1) for part in parts]
            uses.append([name, kind, mean[name], shown])
    if not uses:
        return [], 1.0, ""
    uses.sort(key=lambda use: -use[2])
    note = f"Means over {duration(widths[0])}; a click adds one to the chart and tells who used it."
    if len(results.utilisation) > len(uses):
        note += f" The {len(uses)} most used of {count(len(results.utilisation))} resources."
    return uses, widths[0], note
