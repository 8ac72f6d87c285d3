"""Sections of a report on a run of Slurm, alone or compared with another configuration."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ptaskmodel.results.comparison.slurm import (
    class_table,
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
    ("Why jobs waited", "The reason that squeue would show.", slurm_pictures.reasons),
    ("Backfill", "As sdiag counts it.", slurm_pictures.backfill),
)
MOST_SETTINGS = 200
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
    """Return what changed from run `a` to run `b`, and which jobs gain or lose.

    Raises PTaskModelError if one is not a run of Slurm, or they have no job in common.
    """
    compared = compare_slurm(a, b)
    names = f"a: {compared.a.directory.name}, b: {compared.b.directory.name}."
    settings = compared.settings()[:MOST_SETTINGS]
    whose = [
        Table((by, *heads), rows, range(1, 9))
        for by in compared.order()
        if len(groups := compared.groups(by)) > 1
        for heads, rows in [class_table(groups)]
    ]
    return [
        Section(
            "What changed", names, (Table(("setting", "a", "b"), settings),) if settings else ()
        ),
        pictured(
            "Who gains, who loses",
            lambda: slurm_comparison_figure(compared),
            f"{compared.counts_text()}. {CLEAR}",
            tables=tuple(whose),
        ),
    ]


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict):
        return ", ".join(f"{count} {name}" for name, count in value.items())
    return f"{value:.6g}" if isinstance(value, float) else str(value)
