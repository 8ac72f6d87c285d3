"""Sections of a report on a run of Slurm, alone or compared with another configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ptaskmodel.results.compared_metrics import TIME, idle_while_waiting_h, number_of
from ptaskmodel.results.loading import Results
from ptaskmodel.results.pages.metrics import metric_sections
from ptaskmodel.results.pages.page import MIDDLE, Mark, Section, Table, cell, dot_cell
from ptaskmodel.results.pictures.charts import Cumulative, Dot, DotPanel, curves
from ptaskmodel.results.sentences import log_answer
from ptaskmodel.results.slurm_comparison import (
    BETTER,
    ROLES,
    WORSE,
    GroupChange,
    class_table,
    compare_slurm,
)
from ptaskmodel.results.tables.slurm_reading import (
    accepted,
    grouped,
    idle_of,
    last_date_s,
    reason_curves,
)
from ptaskmodel.style.text import count, date, duration, number

MOST_SETTINGS, MOST_CHANGED = 200, 2  # in the table, and below the title
# Shorter ones, in which few CPUs work although jobs wait, are not worth a sentence.
LEAST_SPELL_s = 300.0
# What the summary says of backfill, in words.
BACKFILL = {
    "cycles": "cycles",
    "started": "jobs started",
    "mean_tested": "jobs tested in a cycle, mean",
    "most_tested": "jobs tested in a cycle, most",
    "mean_queue": "jobs in the queue at a cycle, mean",
    "mean_cycle_s": "length of a cycle, mean (s)",
    "longest_cycle_s": "length of a cycle, longest (s)",
    "cycles_at_limit": "cycles that reached bf_max_time",
    "ended_by": "why cycles ended",
}
CLEAR = (
    "Gain, lose: wait over a minute less, longer. Better or worse is only a class whose waits and"
    " counts agree, and whose counts differ by more than twice the root of their sum; others are"
    " mixed."
)


def sections_of(results: Results, against: Results | None = None) -> list[Section]:
    """Return what changed from the run `against`, if there is one, then what happened in `results`.

    Raises PTaskModelError if the other run is none of Slurm, or has no job in common.
    """
    return [
        *([] if against is None else changes(against, results)),
        *_against_log(against or results),
        *_reasons(results),
        *_backfill(results),
    ]


def _against_log(results: Results) -> list[Section]:
    """How long jobs waited here and in the log that they are from; none if it does not say."""
    jobs = [job for job in results.jobs if job.wait_s is not None and job.logged_wait_s is not None]
    if not jobs:
        return []
    here = np.array([job.wait_s for job in jobs])
    log = np.array([job.logged_wait_s for job in jobs])
    by = next((by for by in ("partition", "size") if len(grouped(jobs, by)) > 1), "partition")
    rows = []
    for name, members in grouped(jobs, by).items():
        levels = [np.percentile(waits[members], part) for part in (50, 95) for waits in (log, here)]
        apart = float(np.median(np.abs(here - log)[members]))
        rows.append([name, len(members), *map(float, levels), apart])
    columns = {by: "text", "jobs": "count", "median, log": "time", "median, simulated": "time",
               "95 %, log": "time", "95 %, simulated": "time",
               "half differ by at most": "time"}  # fmt: skip
    table = Table(columns, rows, key=(2, 3), same=(2, 3, 4, 5), caption=f"Waits by {by}")
    chart = Cumulative("waiting", TIME, curves({"log": [log], "simulated": [here]}))
    note = "Where the two are far apart, do not believe what a change of slurm.conf does here."
    return [Section("Against the log", f"{log_answer(results.summary)} {note}", (table,),
                    charts=(chart.data(),))]  # fmt: skip


def _reasons(results: Results) -> list[Section]:
    """For how long jobs waited for which reason; none if no job waited."""
    found = reason_curves(results.directory, last_date_s(results.jobs))
    whole = sum(curve.integral for curve in found.values())
    if not whole:
        return []
    rows = [(reason, curve.integral / whole, curve.integral / 3600, float(curve.values.max()))
            for reason, curve in found.items()]  # fmt: skip
    first = next(iter(rows))
    note = (
        f"{first[0]} is the reason for {number(first[1], 'share')} of all waiting, as squeue would "
        "show it. When: below, over time."
    )
    table = Table({"reason": "text", "of all waiting": "share", "job h": "number",
                   "jobs at once, most": "count"}, rows, key=(1, 2))  # fmt: skip
    return [Section("Why jobs waited", note, (table,))]


def _backfill(results: Results) -> list[Section]:
    """What each scheduler started, and what sdiag counts of backfill."""
    counted = results.summary.get("backfill")
    ran = [job for job in results.jobs if job.run_s is not None]
    hours = {by: [(job.run_s or 0.0) * job.cpus / 3600 for job in ran if job.scheduler == by]
             for by in ("main", "backfill")}  # fmt: skip
    whole = sum(map(sum, hours.values()))
    if not isinstance(counted, dict) or not counted.get("cycles") or not whole:
        return []
    rows = []
    for by, its in hours.items():
        waits = [job.wait_s for job in ran if job.scheduler == by and job.wait_s is not None]
        levels = np.percentile(waits, (50, 95)).tolist() if waits else (None, None)
        rows.append([by, len(its), sum(its), sum(its) / whole, *levels])
    part = number(sum(hours["backfill"]) / whole, "share")
    tested, queue = (number(counted.get(name)) for name in ("mean_tested", "mean_queue"))
    note = (
        f"Backfill starts {count(len(hours['backfill']))} of {count(len(ran), 'job')}, with {part} "
        f"of the CPU hours. On average a cycle tests {tested} jobs"
    )
    note += f", and the queue has {queue}" if "mean_queue" in counted else ""
    limit = counted.get("cycles_at_limit")
    note += f"; {count(limit)} of {count(counted['cycles'])} reach bf_max_time." if limit else "."
    told = [(BACKFILL.get(name, name.replace("_", " ")), _text(value))
            for name, value in counted.items()]  # fmt: skip
    columns = {"started by": "text", "jobs": "count", "CPU h": "number", "of all CPU h": "share",
               "median wait": "time", "95 % wait": "time"}  # fmt: skip
    tables = (
        Table(columns, rows, caption="Who started jobs", key=(1, 3)),
        Table({"backfill": "text", "value": "said"}, told, caption="As sdiag counts"),
    )
    return [Section("What backfill earned", note, tables)]


def job_columns(results: Results, against: Results | None = None) -> dict[str, Any]:
    """Return columns of the table of jobs of `results` beside those that any batch has.

    heads, kinds: as of `Table`; the first sorts, largest first. against: an
    earlier run, whose waits stand beside.
    """
    earlier = {} if against is None else {j.job_id: j.wait_s for j in against.jobs}
    waits = ["wait (s)", "wait in the log (s)"]
    if against is not None:
        waits = ["change of wait (s)", "wait before (s)", "wait (s)"]
    rows: list[list[Any]] = []
    for job in results.jobs:
        told = [job.wait_s, job.logged_wait_s]
        if against is not None:
            before = earlier.get(job.job_id)
            change = None if before is None or job.wait_s is None else job.wait_s - before
            told = [change, before, job.wait_s]
        rows.append([*told, job.cpus or None, job.user, job.account, job.partition, job.reason])
    heads = [*waits, "CPUs", "user", "account", "partition", "reason"]
    kinds = [*["number"] * (len(waits) + 1), *["text"] * 4]
    return {"heads": heads, "kinds": kinds, "rows": rows, "same": list(range(len(waits))),
            "signed": against is not None}  # fmt: skip


def answer_of_slurm(results: Results, against: Results | None, answer: str) -> str:
    """Return the sentences at the head of the page of `results`, a line each.

    answer: what is said of any batch: what became of jobs, and how long they wait. Where there is
    an earlier run `against` which it is compared, they say instead what the change does. Last comes
    when CPUs stood idle although jobs waited.
    """
    if against is not None:
        spell = _idle_spell(results, " after the change")
        return f"{compare_slurm(against, results).answer()}\n{spell}"
    first, *waits = answer.splitlines()
    hours = idle_while_waiting_h(results)
    if waits and hours:
        half, _, rest = waits[0].rstrip(".").partition(". ")
        waits[0] = f"{half}; {number(hours)} CPU h stood idle while jobs waited."
        waits[1:1] = [f"{rest}."] if rest else []
    # What became of jobs comes first only if they did not all end.
    lines = [*waits[:1], first] if first.startswith("All ") else [first, *waits[:1]]
    again = [job.restarts for job in results.jobs if job.restarts]
    if again:
        lines[-1] += f" {count(len(again), 'job')} began anew, {count(sum(again), 'time')} in all."
    lines[-1] = f"{lines[-1]} {log_answer(results.summary)}".rstrip()
    return "\n".join([*lines, *waits[1:], _idle_spell(results)])


def changed_text(against: Results, results: Results) -> str:
    """Return which settings differ from the run `against` to `results`, with how, in brackets."""
    settings = compare_slurm(against, results).settings()
    told = [f"{name} {before} → {after}" for name, before, after in settings[:MOST_CHANGED]]
    if len(settings) > MOST_CHANGED:
        told.append(f"{len(settings) - MOST_CHANGED} more")
    return f" ({', '.join(told)})" if told else ""


def numbers_against(against: Results, results: Results) -> list[list[str]]:
    """Return [name, value, of what] of four numbers in `against`, and later in `results`."""

    def arrow(name: str, kind: str, *path: str) -> list[str]:
        before, after = (number_of(each.summary, *path) for each in (against, results))
        return [name, f"{number(before, kind)} → {number(after, kind)}"]

    idle = [number(idle_while_waiting_h(each)) for each in (against, results)]
    return [
        [*arrow("median wait", TIME, "waiting_s", "p50"), "half wait at most"],
        [*arrow("95 % wait", TIME, "waiting_s", "p95"), "5 % wait longer"],
        [*arrow("utilisation", "share", "utilisation"), f"of {results.summary.get('cpus')} CPUs"],
        ["idle while jobs wait", f"{' → '.join(idle)} CPU h", "CPUs that stood idle"],
    ]


def _idle_spell(results: Results, where: str = "") -> str:
    """When most CPUs stood idle while jobs waited, and the largest job that did; "" if never.

    where: in which of several runs.
    """
    jobs, cpus = accepted(results.jobs), int(results.summary.get("cpus") or 0)
    found = idle_of(jobs, cpus).worst if cpus else None
    if found is None or found.end_s - found.begin_s < LEAST_SPELL_s:
        return ""
    end_s = last_date_s(jobs)
    wait = [
        job
        for job in jobs
        if job.submit_s < found.end_s and (job.start_s is None or job.start_s > found.begin_s)
    ]
    largest = max(wait, key=lambda job: job.cpus)
    begin, end = (
        date(each, end_s, results.summary.get("begin_unix_s"))
        for each in (found.begin_s, found.end_s)
    )
    few, most = number(found.least), number(found.most)
    used = few if few == most else f"{few} to {most}"
    whole = count(cpus, "CPU")
    size = "all " * (largest.cpus == cpus) + count(largest.cpus)
    return (
        f"From {begin} to {end} only {used} of {whole} work{where}, although jobs wait; job "
        f"{largest.job_id} waits for {size}."
    )


def changes(a: Results, b: Results) -> list[Section]:
    """Return what changed from run `a` to run `b`, and which jobs gain or lose.

    Raises PTaskModelError if one is not a run of Slurm, or they have no job in common.
    """
    compared = compare_slurm(a, b)
    names = f"a: {compared.a.directory.name}, b: {compared.b.directory.name}."
    settings = compared.settings()[:MOST_SETTINGS]
    whose = [
        _classes(by, groups) for by in compared.order() if len(groups := compared.groups(by)) > 1
    ]
    return [
        Section(
            "What changed", names, (Table(dict.fromkeys(("setting", "a", "b"), "text"), settings),)
        )
        if settings
        else Section("What changed", f"{names} No setting differs."),
        Section("Who gains, who loses", f"{compared.counts_text()}. {CLEAR}", tuple(whose)),
        Section("How many waited how long", charts=(compared.waits().data(),)),
        *metric_sections(compared.totals),
    ]


def _classes(by: str, groups: Sequence[GroupChange]) -> Table:
    """Classes of jobs: waits before and after on one line, and how many gain or lose."""
    heads, rows = class_table(groups)
    most = max(1.0, *(max(*each.before_s, *each.after_s) for each in groups))
    waits = [
        [Dot(half, half, high, role, text=f"in {run} half wait {duration(half)}, 95 % at most "
             f"{duration(high)}") for run, role, (half, high) in (
                 ("a", "soft", each.before_s), ("b", ROLES.get(each.verdict, "ink"), each.after_s))]
        for each in groups
    ]  # fmt: skip
    panel = DotPanel("a above, b below", TIME, waits, ends=(0.0, most), bare=True, apart=True)
    cells = []
    for group, row, its in zip(groups, rows, waits, strict=True):
        counts = f"{count(group.gain)} gain, {count(group.same)} same, {count(group.lose)} lose"
        name, jobs, *levels, gain, same, lose, verdict = row
        sign = {BETTER: "− ", WORSE: "+ "}.get(group.verdict, "")
        label = f"{gain} · {same} · {lose}"
        cells.append([name, dot_cell(panel, its), jobs,
                      cell(counts, _parts(group), label, group.gain), sign + verdict,
                      *levels])  # fmt: skip
    columns = {by: "text", panel.name: "drawn", heads[0]: "said", "gain · same · lose": "drawn",
               heads[-1]: "text", **dict.fromkeys(heads[1:5], "said")}  # fmt: skip
    caption = (
        f"By {by}; lines from what half wait at most (●) to what 95 % do, 0 to {duration(most)}"
    )
    return Table(columns, cells, caption, key=(1, 3))


def _parts(group: GroupChange) -> list[Mark]:
    """How many gain, wait about as long and lose, as parts of a bar."""
    marks: list[Mark] = []
    at = 0.0
    parts = ((group.gain, "gain"), (group.same, "nothing"), (group.lose, "lose"))
    for number_of_jobs, role in parts:
        to = at + number_of_jobs / group.jobs
        marks.append((at, to, role, "thick", MIDDLE))
        at = to
    return marks


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict):
        return ", ".join(f"{name}: {count(times)}" for name, times in value.items())
    return number(value) if isinstance(value, int | float) else str(value)
