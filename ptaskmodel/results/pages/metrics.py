"""Sections of metrics of several runs, each with the place of every run on a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptaskmodel.results.batch_comparison import Standings, placed
from ptaskmodel.results.compared_metrics import Group, Metric
from ptaskmodel.results.pages.page import MIDDLE, Mark, Section, Table, axis, cell
from ptaskmodel.style.figures import run_sign

# So many runs are rows of tables; fewer are columns.
MANY = 6
PLACE = "from 0 to the largest"
PLACED = "The dot is the place of a number between 0, at the left, and the largest."


def metric_sections(found: Standings) -> list[Section]:
    """Return a section for each question, with the metrics of the runs `found` that answer it."""
    return [_group(found, group) for group in found.groups]


def _group(found: Standings, group: Group) -> Section:
    """The metrics that answer a question: a column for each run, or a row where there are many."""
    same_work = group is found.groups[0]
    if len(found.runs) >= MANY:
        return Section(group.title, PLACED, (_runs_down(found, group, same_work),))
    rows = [
        [
            found.label(metric, values),
            *(found.text(metric, values, k) for k in range(len(values))),
            _placed(found, metric, values),
        ]
        for metric, values in group.rows
    ]
    if found.apart and same_work:
        rows.insert(0, ["comparable", *(found.apart.get(each, "yes") for each in found.runs), None])
    heads = ["metric", *(f"{run_sign(k)} {name}" for k, name in enumerate(found.runs)), PLACE]
    others = ", ".join(f"{run_sign(k)} {name}" for k, name in enumerate(found.runs) if k)
    note = f"Changes are against {run_sign(0)} {found.first}; {others}." if same_work else ""
    kinds = ["text", *["said"] * len(found.runs), "drawn"]
    # A small screen has room for two runs, or for the places of all.
    key = (1, 2) if len(found.runs) == 2 else (1, len(heads) - 1)
    return Section(group.title, note, (Table(heads, rows, kinds=kinds, key=key),))


def _placed(
    found: Standings, metric: Metric, values: Sequence[float | None]
) -> dict[str, Any] | None:
    """A sign of each run on a line from 0 to the largest value."""
    if not (dots := placed(values)):
        return None
    shown = metric.column(values)
    marks: list[Mark] = [(dot.value, None, dot.role, dot.sign, MIDDLE) for dot in dots]
    pairs = zip(found.runs, values, strict=True)
    said = ", ".join(f"{name} {shown.text(value)}" for name, value in pairs)
    if metric.better:
        said += f"; {metric.better} is better"
    return cell(f"{found.label(metric, values)}: {said}", [axis(), *marks])


def _runs_down(found: Standings, group: Group, same_work: bool) -> Table:
    """A row for each run, in each cell a number and its place between 0 and the largest."""
    heads = ["run", *(found.label(metric, values) for metric, values in group.rows)]
    rows: list[list[Any]] = []
    for k, (name, results) in enumerate(found.runs.items()):
        row: list[Any] = [name]
        for metric, values in group.rows:
            value, most = values[k], max((one for one in values if one is not None), default=0.0)
            shown = metric.column(values).text(value)
            if value is None:
                row.append(None)
                continue
            marks = [(value / most, None, "ink", "●", MIDDLE)] if most > 0.0 else []
            text = f"{results.directory.name}: {found.label(metric, values)} {shown}"
            row.append(cell(text, [axis(), *marks], shown, value))
        if found.apart and same_work:
            row.append(found.apart.get(name, "yes"))
        rows.append(row)
    kinds = ["text", *["drawn"] * len(group.rows)]
    if found.apart and same_work:
        heads, kinds = [*heads, "comparable"], [*kinds, "text"]
    return Table(heads, rows, kinds=kinds)
