"""One self-contained page about a run, for a person who did not run it."""

from __future__ import annotations

import html
import json
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import Any

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.files import whole_file
from ptaskmodel.recording.limits import HOST, LINK, WAITING
from ptaskmodel.results.drawing import host_order, lasting, natural, prefix_of
from ptaskmodel.results.loading import Results, ShownLimit, results_of
from ptaskmodel.results.machine_load import load_data
from ptaskmodel.results.report_sections import as_html
from ptaskmodel.results.slurm_reading import is_slurm
from ptaskmodel.results.topology_page import topology_data
from ptaskmodel.results.waiting import waiting_sections

MAX_USES = 400
# More bars than these are neither drawn nor sent.
MAX_BARS = 500_000
# Of the time of all tasks: less than this held up by a resource is no bottleneck to name.
WORTH_TELLING = 0.001
CROWDED = "Too many jobs and hosts for a chart of who ran where."
TASKS = "A simulation of parallel tasks that share a platform"
SLURM = "A simulation of what Slurm does with a workload"
# States that a reader wants to know of at once.
GOOD_STATES = frozenset({"completed", "COMPLETED_SUCCESSFULLY", "COMPLETED"})


def write_report(
    results: Results | str | Path,
    path: str | Path,
    *,
    against: Results | str | Path | None = None,
) -> None:
    """Write the page of results, or of those in a directory.

    against: another run of Slurm on the same jobs, before the change: who gains, who loses. Raises
    PTaskModelError if results cannot be read or compared, or the page cannot be written.
    """
    results = results_of(results)
    sections = waiting_sections(results) if results.what == "job" else []
    if is_slurm(results.summary):
        from ptaskmodel.results.slurm_report import sections_of

        sections = sections_of(results, None if against is None else results_of(against))
    elif against is not None:
        raise PTaskModelError(f"{results.directory}: --against is for results of slurm")
    page = files("ptaskmodel.results").joinpath("templates")
    text = page.joinpath("report.html").read_text(encoding="utf-8")
    data = json.dumps(page_data(results), separators=(",", ":"), allow_nan=False)
    parts = {
        "@TITLE@": html.escape(_title(results)),
        "@CSS@": page.joinpath("report.css").read_text(encoding="utf-8"),
        # "<" could end the element that holds the data.
        "@SUBJECT@": SLURM if is_slurm(results.summary) else TASKS,
        "@SECTIONS@": as_html(sections),
        "@DATA@": data.replace("<", "\\u003c"),
        "@JS@": "".join(
            page.joinpath(name).read_text(encoding="utf-8") for name in ("topology.js", "report.js")
        ),
    }
    with whole_file(path) as stream:
        while text:
            found = [(text.find(mark), mark) for mark in parts if mark in text]
            if not found:
                break
            at, mark = min(found)
            stream.write(text[:at] + parts[mark])
            text = text[at + len(mark) :]
        stream.write(text)


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
    place = {host: k for k, host in enumerate(hosts)}
    main = _main_limits(results.limits)
    tasks = []
    for task in results.tasks:
        limit, seconds, shared = main.get(task.task_id, (None, None, None))
        where = [] if crowded else sorted({place[host] for host in task.hosts})
        tasks.append(
            [
                task.task_id,
                task.profile,
                task.start_s,
                task.finish_s,
                task.state,
                where,
                task.slowdown,
                limit,
                seconds,
                shared,
            ]
        )
    uses, width_s, note = _uses(results)
    return {
        "what": results.what,
        "end": results.end_s,
        "cards": _cards(results),
        "facts": _facts(results),
        "warnings": _warnings(results) + [CROWDED] * crowded,
        "hosts": hosts,
        "tasks": tasks,
        "has_slowdowns": any(task.slowdown is not None for task in results.tasks),
        "limits": _limits(results),
        "uses": uses,
        "use_width": width_s,
        "use_note": note,
        "topology": topology_data(results),
        "load": load_data(results),
    }


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


def _limits(results: Results) -> list[list[Any]]:
    """[kind, resource, seconds summed over tasks, tasks, mean use in % or None], worst first."""
    seconds: dict[tuple[str, str], float] = {}
    tasks: dict[tuple[str, str], set[str]] = {}
    for interval in results.limits:
        key = interval.limited_by, interval.resource
        seconds[key] = seconds.get(key, 0.0) + interval.end_s - interval.start_s
        tasks.setdefault(key, set()).add(interval.task_id)
    span = results.end_s or 1.0
    rows = []
    for (kind, resource), total in sorted(seconds.items(), key=lambda item: (-item[1], item[0])):
        spans = results.utilisation.get((resource, kind))
        mean = None
        if spans is not None:
            mean = 100.0 * sum((b - a) * share for a, b, share in spans) / span
        elif kind in (HOST, LINK):
            mean = 0.0
        rows.append([kind, resource, total, len(tasks[kind, resource]), mean])
    return rows


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
    chosen = sorted(table, key=lambda key: (-mean[key], natural(key[0])))[:MAX_USES]
    uses = []
    for name, kind in chosen:
        parts = [0] * (round(table[name, kind][-1][0] / width) + 1)
        for start, _, share in table[name, kind]:
            parts[round(start / width)] = round(1000 * share)
        uses.append([name, kind, mean[name, kind], parts])
    note = f"Means over {lasting(width)}, the most used first."
    if len(table) > len(chosen):
        note += f" The {len(chosen)} most used of {len(table):,} are here."
    return uses, width, note


def _cards(results: Results) -> list[list[str]]:
    summary = results.summary
    makespan = summary.get("makespan", summary.get("makespan_s", results.end_s))
    cards = [
        ["makespan", lasting(makespan)],
        [f"{results.what}s", f"{len(results.tasks):,}"],
    ]
    states = Counter(task.state for task in results.tasks)
    cards += [[state.replace("_", " ").lower(), f"{n:,}"] for state, n in sorted(states.items())]
    cards += _batch_cards(summary)
    cards += _energy_cards(summary)
    slow = [task.slowdown for task in results.tasks if task.slowdown is not None]
    if slow:
        cards.append(["mean contention slowdown", f"{sum(slow) / len(slow):.4g}"])
    limits = _limits(results)
    total = sum(row[2] for row in limits)
    shared = [row for row in limits if row[0] in (HOST, LINK)]
    slowed = max(slow, default=2.0) > 1.0 + 1e-6
    if shared and slowed and shared[0][2] >= WORTH_TELLING * total:
        kind, name, seconds = shared[0][:3]
        cards.append(["worst bottleneck", f"{kind} {name}: {seconds / total:.1%} of the task time"])
    return cards


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
    used = summary.get("utilisation")
    if isinstance(used, int | float):
        cards.append(["utilisation", f"{used:.1%}"])
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


def _facts(results: Results) -> list[list[str]]:
    summary = results.summary
    facts = [["input", f"{e['path']} (SHA-256 {e['sha256'][:12]}…)"]
             for e in summary.get("inputs") or [] if "path" in e and "sha256" in e]  # fmt: skip
    names = {
        "solver": "solver",
        "network_model": "network model",
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
    facts += [["note", str(note)] for note in summary.get("notes") or []]
    versions = summary.get("versions")
    if isinstance(versions, dict):
        facts.append(["versions", ", ".join(f"{name} {v}" for name, v in versions.items())])
    return facts


def _fact(key: str, value: Any) -> str:
    """A value of the summary for a reader, who needs dates to the millisecond."""
    if key.endswith("_time_s"):
        return f"{value:.4g}"
    return f"{round(value, 3):,}" if key == "end_date" else str(value)


def _warnings(results: Results) -> list[str]:
    """What somebody who did not make the run should know before believing it."""
    states = Counter(task.state for task in results.tasks)
    found = [
        f"{n:,} of {len(results.tasks):,} {results.what}s ended as: {state}"
        for state, n in sorted(states.items())
        if state not in GOOD_STATES
    ]
    if results.what == "task" and not results.limits:
        found.append("Made without --attribution: no bottlenecks, slowdowns or utilisation.")
    return found
