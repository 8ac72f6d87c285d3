"""One self-contained page that shows runs beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ptaskmodel.results.comparison import SAME, Comparison, compare, comparison_figure
from ptaskmodel.results.loading import Results, results_of
from ptaskmodel.results.page import empty_data, write_page
from ptaskmodel.results.report_sections import Section, Table, pictured
from ptaskmodel.results.standings import Standings, standings, standings_figure

MOST_CHANGED = 20
# Of batches: at the head of the page.
CARDS = ("mean waiting (min)", "mean bounded slowdown", "utilisation (%)")


def write_comparison_page(
    path: str | Path, runs: Sequence[Results | str | Path], *, tolerance: float = SAME
) -> None:
    """Write a page of two runs, or of several batches.

    Batches: every metric, the best marked, and their queues. Two runs: totals, each task's time in
    both, and those that changed most; tolerance: relative difference up to which times are equal.

    Raises PTaskModelError if results cannot be read or compared, or the page cannot be written.
    """
    results = [results_of(run) for run in runs]
    sections: list[Section] = []
    data = empty_data("run")
    if len(results) != 2 or all(each.what == "job" for each in results):
        found = standings(results)
        sections.append(_metrics(found))
        data["cards"] = _cards(found)
    if len(results) == 2:
        sections += _changes(compare(*results, tolerance=tolerance))
    names = [each.directory.name for each in results]
    data["facts"] = [
        [name, ", ".join(_choices(each))] for name, each in zip(names, results, strict=True)
    ]
    title = " and ".join((", ".join(names[:-1]), names[-1]))
    write_page(path, data, title=title, subject=f"{len(names)} runs compared", before=sections)


def _choices(results: Results) -> list[str]:
    """What was chosen for a run."""
    summary = results.summary
    names = ("policy", "allocation", "solver", "network_model", "count")
    return [f"{name} {summary[name]}" for name in names if isinstance(summary.get(name), str)]


def _cards(found: Standings) -> list[list[str]]:
    """Of what batches are judged by: the best, and whose it is."""
    cards = []
    for metric, values in found.rows:
        if metric.name in CARDS and (best := found.best(metric, values)) is not None:
            k = values.index(best)
            name = list(found.runs)[k]
            text = found.text(metric, values, k).removesuffix("*")
            cards.append([f"best {metric.name}", text, name])
    return cards


def _metrics(found: Standings) -> Section:
    rows = [
        (metric.name, *(found.text(metric, values, k) for k in range(len(values))))
        for metric, values in found.rows
    ]
    table = Table(("metric", *found.runs), rows, tuple(range(1, len(found.runs) + 1)))
    alt = "Metrics of each run relative to the largest, and their queues over time"
    note = "* the best of each."
    return pictured("Metrics", lambda: standings_figure(found), note, alt, (table,))


def _changes(found: Comparison) -> list[Section]:
    """Of two runs: what differs, totals, times in one against the other, what changed most."""
    what = found.a.what
    totals = [
        (name, _text(x), _text(y), _text(None if x is None or y is None else y - x))
        for name, x, y in found.totals()
    ]
    tables = [Table(("total", "a", "b", "change"), totals, (1, 2, 3))]
    if choices := found.choices():
        tables.insert(0, Table(("differs", "a", "b"), choices))
    note = (
        f"a: {found.a.directory.name}; b: {found.b.directory.name}. "
        f"{len(found.pairs):,} {what}s in both: {found.said()}."
    )
    alt = f"Time of each {what} in a against its time in b, and how the ratios are distributed"
    title = "From a to b"
    if any(found.counts().values()):
        drawn = pictured(title, lambda: comparison_figure(found), note, alt, tuple(tables))
    else:
        drawn = Section(title, note, tuple(tables))
    sections = [drawn]
    if changed := found.most_changed(MOST_CHANGED):
        header = (what, "a (s)", "b (s)", "change (s)", "b / a", "limit in a", "limit in b")
        rows = [
            (
                pair.a.task_id,
                *map(_text, (pair.a.duration_s, pair.b.duration_s, pair.change_s, pair.ratio)),
                pair.limit_a or "",
                pair.limit_b or "",
            )
            for pair in changed
        ]
        table = Table(header, rows, (1, 2, 3, 4))
        sections.append(Section(f"The {len(rows)} {what}s whose time changed most", "", (table,)))
    if moved := found.most_moved(MOST_CHANGED):
        waits = [
            (pair.a.task_id, *map(_text, (pair.a.waiting_s, pair.b.waiting_s, pair.waits_longer_s)))
            for pair in moved
        ]
        table = Table((what, "a (s)", "b (s)", "change (s)"), waits, (1, 2, 3))
        title = f"The {len(waits)} {what}s whose waiting changed most"
        sections.append(Section(title, "", (table,)))
    return sections


def _text(value: float | None) -> str:
    """A number to six digits; of millions all before the point."""
    if value is None:
        return ""
    return f"{value:,.0f}" if 1e6 <= abs(value) < 1e10 else f"{value:.6g}"
