"""Sections of a report on a run of Slurm, alone or compared with another configuration."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from ptaskmodel.results.comparison.metrics import TIME, idle_while_waiting_h
from ptaskmodel.results.comparison.slurm import (
    BETTER,
    WORSE,
    GroupChange,
    class_table,
    compare_slurm,
)
from ptaskmodel.results.loading import Results
from ptaskmodel.results.pages.drawn import MIDDLE, Mark, cell, cumulative_chart
from ptaskmodel.results.pages.metrics import metric_sections
from ptaskmodel.results.pages.page import Section, Table, pictured
from ptaskmodel.results.pictures import slurm as slurm_pictures
from ptaskmodel.results.tables.slurm_reading import grouped, idle_of, last_date_s, read_jobs
from ptaskmodel.style.quantities import count, date, duration, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURES: tuple[tuple[str, str, Callable[[Results], Figure]], ...] = (
    ("Why jobs waited", "The reason that squeue would show.", slurm_pictures.reasons),
    ("Backfill", "As sdiag counts it.", slurm_pictures.backfill),
)
MOST_SETTINGS = 200
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
    """The sections: what changed against another run, if there is one, then what happened.

    Raises PTaskModelError if the other run is none of Slurm, or has no job in common.
    """
    found = [] if against is None else changes(against, results)
    found += _by_size_and_length(results)
    for title, note, draw in PICTURES:
        found.append(pictured(title, functools.partial(draw, results), note))
    backfill = results.summary.get("backfill")
    if isinstance(backfill, dict):
        rows = [(BACKFILL.get(name, name.replace("_", " ")), _text(value))
                for name, value in backfill.items()]  # fmt: skip
        found[-1] = Section(
            found[-1].title,
            found[-1].note,
            (Table(("backfill", "value"), rows, (1,)),),
            found[-1].picture,
        )
    return found


def job_columns(results: Results) -> dict[str, Any]:
    """Columns of the page's table of jobs beside those that any batch has, in order of its jobs.

    heads: names; the first sorts, largest first. texts: which of them are no numbers.
    """
    rows = [
        [job.wait_s, job.cpus or None, job.user, job.account, job.partition, job.reason]
        for job in read_jobs(results.directory)
    ]
    heads = ["wait (s)", "CPUs", "user", "account", "partition", "reason"]
    return {"heads": heads, "texts": [2, 3, 4, 5], "rows": rows}


def answer_of_slurm(results: Results, against: Results | None, answer: str) -> str:
    """Return the sentences at the head of the page of `results`, a line each.

    answer: what is said of any batch. Where there is an earlier run `against` which it is compared,
    they say instead what the change does. Last comes when CPUs stood idle although jobs waited.
    """
    if against is not None:
        return f"{compare_slurm(against, results).answer()}{_idle_spell(results)}"
    hours = idle_while_waiting_h(results)
    idle = f"\n{number(hours)} CPU h stood idle while jobs waited." if hours else ""
    return f"{answer}{idle}{_idle_spell(results).replace(chr(10), ' ')}"


def _idle_spell(results: Results) -> str:
    """When most CPUs stood idle while jobs waited, and the largest job that did; "" if never."""
    jobs, cpus = read_jobs(results.directory), results.summary.get("cpus")
    found = None if not isinstance(cpus, int) else idle_of(jobs, cpus).worst
    if found is None:
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
    size = f"all {cpus}" if largest.cpus == cpus else f"{largest.cpus}"
    return (
        f"\nFrom {begin} to {end} only {used} of {cpus} CPUs work in {results.directory.name}, "
        f"although jobs wait; job {largest.job_id} waits for {size}."
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
    chart = cumulative_chart("waiting of the jobs in both", TIME, compared.curves())
    return [
        Section(
            "What changed", names, (Table(("setting", "a", "b"), settings),) if settings else ()
        ),
        Section("Who gains, who loses", f"{compared.counts_text()}. {CLEAR}", tuple(whose)),
        Section("How many waited how long", charts=(chart,)),
        *metric_sections(compared.totals),
    ]


def _classes(by: str, groups: Sequence[GroupChange]) -> Table:
    """Classes of jobs: waits before and after on one line, and how many gain or lose."""
    heads, rows = class_table(groups)
    most = max(1.0, *(max(*each.before_s, *each.after_s) for each in groups))
    cells = []
    for group, row in zip(groups, rows, strict=True):
        after = {BETTER: "gain", WORSE: "lose"}.get(group.verdict, "ink")
        marks: list[Mark] = []
        lines = (group.before_s, "soft", 0.25), (group.after_s, after, 0.75)
        for (half, high), role, down in lines:
            marks.append((half / most, high / most, role, "", down))
            marks.append((half / most, None, role, "●", down))
        waits = [f"half wait {duration(half)}, 95 % at most {duration(high)}"
                 for half, high in (group.before_s, group.after_s)]  # fmt: skip
        counts = f"{count(group.gain)} gain, {count(group.same)} same, {count(group.lose)} lose"
        name, jobs, *levels, gain, same, lose, verdict = row
        sign = {BETTER: "− ", WORSE: "+ "}.get(group.verdict, "")
        strip = cell(f"{name}: in a {waits[0]}; in b {waits[1]}", marks, value=group.after_s[0])
        label = f"{gain} · {same} · {lose}"
        cells.append([name, strip, jobs, *levels, cell(counts, _parts(group), label, group.gain),
                      sign + verdict])  # fmt: skip
    header = (by, "a above, b below", *heads[:5], "gain · same · lose", heads[-1])
    kinds = ("text", "drawn", *["said"] * 5, "drawn", "text")
    caption = (
        f"By {by}; lines from what half wait at most (●) to what 95 % do, 0 to {duration(most)}"
    )
    return Table(header, cells, kinds=kinds, caption=caption, key=(1, 7))


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


def _by_size_and_length(results: Results) -> list[Section]:
    """Median waits of jobs by size and run time, with how many there are; none if no job ran."""
    jobs = [job for job in read_jobs(results.directory) if job.wait_s is not None]
    sizes, lengths = grouped(jobs, "size"), grouped(jobs, "length")
    if len(sizes) * len(lengths) < 2:
        return []
    halves = {}
    for size, of_size in sizes.items():
        for length, of_length in lengths.items():
            waits = [jobs[k].wait_s or 0.0 for k in sorted(set(of_size) & set(of_length))]
            if waits:
                halves[size, length] = median(waits), len(waits)
    most = math.log1p(max(half for half, _ in halves.values())) or 1.0
    rows: list[list[Any]] = []
    for size in sizes:
        row: list[Any] = [size]
        for length in lengths:
            half, many = halves.get((size, length), (0.0, 0))
            text = f"{size}, {length}: half of {count(many, 'job')} wait at most {duration(half)}"
            bar: Mark = (0.0, math.log1p(half) / most, "wait", "thick", MIDDLE)
            label = f"{duration(half)} · {count(many)}"
            row.append(cell(text, [bar], label, half) if many else None)
        rows.append(row)
    kinds = ["text", *["drawn"] * len(lengths)]
    caption = "What half wait at most · how many jobs; bars on a logarithmic scale"
    table = Table(["size", *lengths], rows, kinds=kinds, caption=caption)
    return [Section("Who waits, by size and run time", "", (table,))]


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict):
        return ", ".join(f"{name}: {count(times)}" for name, times in value.items())
    return number(value) if isinstance(value, int | float) else str(value)
