"""Sections of a report on a run of Slurm, alone or compared with another configuration."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ptaskmodel.results.comparison.slurm import (
    BY,
    SlurmComparison,
    compare_slurm,
    slurm_comparison_figure,
)
from ptaskmodel.results.loading import Results
from ptaskmodel.results.pages.page import Section, Table, pictured
from ptaskmodel.results.pictures import slurm as slurm_pictures
from ptaskmodel.results.tables.slurm_reading import read_jobs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURES: tuple[tuple[str, str, Callable[[Results], Figure]], ...] = (
    ("CPUs in use, and the queue", "", slurm_pictures.load),
    ("Who waited how long", "From submission to start.", slurm_pictures.waits),
    ("Why jobs waited", "The reason that squeue would show.", slurm_pictures.reasons),
    ("Backfill", "As sdiag counts it.", slurm_pictures.backfill),
)
MOST_SETTINGS = 200


def sections_of(results: Results, against: Results | None = None) -> list[Section]:
    """The sections: what changed against another run, if there is one, then what happened.

    Raises PTaskModelError if the other run is none of Slurm, or has no job in common.
    """
    found = [] if against is None else changes(against, results)
    for title, note, draw in PICTURES:
        found.append(pictured(title, functools.partial(draw, results), note))
    backfill = results.summary.get("backfill")
    if isinstance(backfill, dict):
        rows = [(name.replace("_", " "), _text(value)) for name, value in backfill.items()]
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


def changes(a: Results, b: Results) -> list[Section]:
    """Return what changed from run a to run b, and which jobs gain or lose.

    Raises PTaskModelError if one is not a run of Slurm, or they have no job in common.
    """
    compared = compare_slurm(a, b)
    names = f"a: {compared.a.directory}, b: {compared.b.directory}"
    counts = ", ".join(f"{count:,} {name}" for name, count in compared.counts().items() if count)
    totals = [
        (name, _text(x), _text(y), _text(y - x) if x is not None and y is not None else "")
        for name, x, y in compared.totals()
    ]
    tables = [Table(("total", "a", "b", "change"), totals, (1, 2, 3))]
    if settings := compared.settings()[:MOST_SETTINGS]:
        tables.insert(0, Table(("setting", "a", "b"), settings))
    whose = [table for by in BY if (table := _groups(compared, by)) is not None]
    return [
        Section("What changed", names, tuple(tables)),
        pictured(
            "Who gains, who loses",
            lambda: slurm_comparison_figure(compared),
            f"{len(compared.jobs_a):,} jobs in both: {counts}.",
            tables=tuple(whose),
        ),
    ]


def _groups(compared: SlurmComparison, by: str) -> Table | None:
    groups = compared.groups(by)
    if len(groups) < 2:
        return None
    rows = [
        (
            each.name,
            f"{each.jobs:,}",
            f"{each.wait_a_s:,.0f}",
            f"{each.wait_b_s:,.0f}",
            f"{each.change_s:+,.0f}",
            f"{each.gain:,}",
            f"{each.lose:,}",
        )
        for each in groups
    ]
    header = (by, "jobs", "mean wait a (s)", "mean wait b (s)", "change (s)", "gain", "lose")
    return Table(header, rows, (1, 2, 3, 4, 5, 6))


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict):
        return ", ".join(f"{count} {name}" for name, count in value.items())
    return f"{value:.6g}" if isinstance(value, float) else str(value)
