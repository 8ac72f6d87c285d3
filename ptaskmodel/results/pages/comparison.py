"""The HTML page that compares several runs, self-contained."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ptaskmodel.results.batch_comparison import MOST_NAMED, Standings, curves_of, standings
from ptaskmodel.results.loading import Results, results_of
from ptaskmodel.results.pages.metrics import MANY, metric_sections
from ptaskmodel.results.pages.page import Section, Table, write_page
from ptaskmodel.results.pages.report import write_report
from ptaskmodel.results.pictures.charts import Matrix
from ptaskmodel.results.pictures.topology import places_of
from ptaskmodel.results.sentences import warnings_of_runs
from ptaskmodel.results.slurm_comparison import both_slurm
from ptaskmodel.results.states import NOT_RUN, outcome_of
from ptaskmodel.results.tables.places import resource_name
from ptaskmodel.results.task_comparison import (
    SAME,
    WAITING,
    Comparison,
    Pair,
    changes_of,
    compare,
)
from ptaskmodel.style.text import count, words_of_name

# More tasks are not sent: those that changed least are left out.
MAX_ROWS = 20_000
HEADS = {
    "state a → b": "text", "time a (s)": "number", "time b (s)": "number", "change (s)": "number",
    "b / a": "number", "waiting a (s)": "number", "waiting b (s)": "number",
    "change of waiting (s)": "number", "limit in a": "text", "limit in b": "text",
}  # fmt: skip


def write_comparison_page(
    path: str | Path, runs: Sequence[Results | str | Path], *, tolerance: float = SAME
) -> None:
    """Write a page about runs: whether they did the same work, all metrics in groups, pictures.

    For two runs also what ended in which, and each task in both; for two of Slurm the page of the
    second against the first, as `write_report` makes it. tolerance: relative difference up
    to which times are equal. Raises PTaskModelError if results cannot be read or compared, or the
    page cannot be written.
    """
    results = [results_of(run) for run in runs]
    if len(results) == 2 and both_slurm(results):
        write_report(results[1], path, against=results[0])
        return
    found = standings(results)
    sections = metric_sections(found)
    charts = tuple(chart.data() for chart in curves_of(found))
    if charts:
        sections.append(Section("How many waited how long, and were how slow", charts=charts))
    data: dict[str, Any] = {"what": "run"}
    details, outcomes = [], []
    if len(results) == 2:
        compared = compare(*results, tolerance=tolerance)
        details.append(_changes(compared))
        data["table"] = _table(compared)
        outcomes = [_outcomes(compared)]
    names = list(found.runs)
    data["warnings"] = warnings_of_runs(found.runs)
    data["facts"] = [
        ["inputs", found.inputs_text()],
        *([name, ", ".join(_choices(run))] for name, run in found.runs.items()),
        ["made again by", f"ptaskmodel compare {' '.join(r.directory.name for r in results)} --page"
         f" {Path(path).name}"],
    ]  # fmt: skip
    title = (
        " and ".join((", ".join(names[:-1]), names[-1])) if len(names) < MANY else "Runs compared"
    )
    before = [*outcomes, sections[0], *_differences(found), *sections[1:]]
    answer = "\n".join(found.sentences())
    write_page(path, data, title=title, subject=_subject(found), answer=answer,
               before=before, after=details)  # fmt: skip


def _subject(found: Standings) -> str:
    """How many runs these are, and in what they differ."""
    names = list(dict.fromkeys(words_of_name(name) for name, *_ in found.choices()))
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    differ = f", which differ in {', '.join(names[:MOST_NAMED])}{more}" if names else ""
    return f"{count(len(found.runs), 'run')} compared{differ}"


def _choices(results: Results) -> list[str]:
    """What was chosen for a run."""
    summary = results.summary
    names = ("policy", "allocation", "solver", "network_model", "count")
    return [
        f"{name.replace('_', ' ')} {summary[name]}"
        for name in names
        if isinstance(summary.get(name), str)
    ]


def _differences(found: Standings) -> list[Section]:
    """The choices that differ, if any do."""
    choices = [(words_of_name(name), *values) for name, *values in found.choices()]
    if not choices:
        return []
    lines: list[tuple[str, ...]] = [("differs", *found.runs), *choices]
    if len(found.runs) >= MANY:  # a row each
        lines = [("run", *lines[0][1:]), *lines[1:]]
        lines = list(zip(*lines, strict=True))
    table = Table([(head, "text") for head in lines[0]], lines[1:])
    return [Section("What was different?", "", (table,))]


def _changes(found: Comparison) -> Section:
    """Of two runs: the times of tasks that ended in both, one against the other."""
    what = found.a.what
    note = (
        f"a: {found.a.directory.name}; b: {found.b.directory.name}. "
        f"{count(len(found.pairs), what)} in both: {found.said()}."
    )
    charts = changes_of(found)
    if not (found.only_a or found.only_b):  # waits of the same jobs are drawn above
        charts = [chart for chart in charts if not chart.label.startswith(WAITING)]
    return Section("From a to b", note, charts=tuple(chart.data() for chart in charts))


def _table(found: Comparison) -> dict[str, Any]:
    """Each task in both runs, those whose time changed most first; see page.js."""
    pairs = _most_changed(found)
    places = places_of(found.a)
    rows = [
        [
            pair.a.task_id,
            pair.states,
            *(pair.a.duration_s, pair.b.duration_s, pair.change_s, pair.ratio),
            *(pair.a.waiting_s, pair.b.waiting_s, pair.waits_longer_s),
            *(
                resource_name(*limit.partition(" ")[::2], places) if limit else ""
                for limit in (pair.limit_a, pair.limit_b)
            ),
        ]
        for pair in pairs
    ]
    what = found.a.what
    title = f"{what[0].upper()}{what[1:]}s in both runs"
    if len(pairs) < len(found.pairs):
        title += f": the {count(len(pairs))} that changed most of {count(len(found.pairs))}"
    columns = {what: "text"} | HEADS
    table = Table(columns, rows, same=(6, 7, 8), signed=(4, 8))
    search = f"search {what}s: id, state, limit"
    return {"title": title, "of": what, "search": search, **table.data(title)}


def _most_changed(found: Comparison) -> list[Pair]:
    return sorted(found.pairs, key=lambda pair: -_size(pair))[:MAX_ROWS]


def _size(pair: Pair) -> float:
    """How much a task changed, s: its time, or its waiting."""
    return max(abs(pair.change_s or 0.0), abs(pair.waits_longer_s or 0.0))


def _outcomes(found: Comparison) -> Section:
    """What became of tasks in a, and in b; a click on a number lists them."""
    what, names = f"{found.a.what}s", [each for each, _ in found.outcomes()]
    of: dict[tuple[str, str], list[int]] = {}
    for k, pair in enumerate(_most_changed(found)):
        both = outcome_of(pair.a.state), outcome_of(pair.b.state)
        of.setdefault(both, []).append(k)
    counts = [list(its) for _, its in found.outcomes()]
    note = f"a: {found.a.directory.name}, b: {found.b.directory.name}. A click on a number lists "
    note += f"these {what} below."
    if missing := len(found.only_a) + len(found.only_b):
        note += f" {count(missing)} are in one run alone: {NOT_RUN} in the other."
    members = [[of.get((a, b), []) for b in names] for a in names]
    chart = Matrix(
        "count", f"{what}: what became of them", what, note, [f"{name} in a" for name in names],
        [*(f"{name} in b" for name in names), "sum"], [[*row, sum(row)] for row in counts],
        members=[[*row, sorted(itertools.chain(*row))] for row in members],
    )  # fmt: skip
    return Section("What became of them in a, and in b?", charts=(chart.data(),))
