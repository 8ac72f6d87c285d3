"""Cells with marks on a line, as the scripts draw them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ptaskmodel.results.pages.page import Table
from ptaskmodel.results.pictures.charts import Dot, DotPanel
from ptaskmodel.style.text import column

# Of a mark: from, to (None: a sign stands there), role, sign or thickness, how far down; 0 to 1.
Mark = tuple[float, float | None, str, str, float]
MIDDLE = 0.5
# Single values that are drawn behind their mean, at most.
MOST_DOTS = 60
Column = tuple[str, Sequence[str]]


def cell(
    text: str, marks: Sequence[Mark], label: str = "", value: float | None = None
) -> dict[str, Any]:
    """Return a cell of kind "drawn".

    text: what it says, for those who hear it. marks: on its line. label: what is written above the
    line. value: by which rows are sorted.
    """
    return {"text": text, "marks": [list(mark) for mark in marks], "label": label, "value": value}


def axis(level: float = MIDDLE) -> Mark:
    """Return the line that marks stand on; level: how far down."""
    return (0.0, 1.0, "line", "axis", level)


def dot_table(
    head: str,
    names: Sequence[str],
    panels: Sequence[DotPanel],
    more: Sequence[Column] = (),
    **given: Any,
) -> Table:
    """Return a table whose rows have the dots of ``panels`` on lines, a column for each.

    head: of the names. more: (head, texts) of columns behind the names. given: for `Table`.
    """
    rows: list[list[Any]] = [[name, *(texts[k] for _, texts in more)]
                             for k, name in enumerate(names)]  # fmt: skip
    heads = [head, *(name for name, _ in more)]
    for panel in panels:
        low, high = panel.reach
        unit = column([dot.value for its in panel.rows for dot in its], panel.kind)
        heads.append(panel.name if panel.change else unit.head(panel.name))
        for row, its in zip(rows, panel.rows, strict=True):
            label = " · ".join(dot.label or unit.text(dot.value) for dot in its)
            row.append(_dots(its, low, high, label, panel.change) if its else None)
    kinds = ["text", *["said"] * len(more), *["drawn"] * len(panels)]
    return Table(heads, rows, kinds=kinds, **given)


def _dots(its: Sequence[Dot], low: float, high: float, label: str, change: bool) -> dict[str, Any]:
    """A cell with dots and their intervals between the least and the largest value."""

    def at(value: float) -> float:
        return min(max(0.02 + 0.96 * (value - low) / (high - low), 0.0), 1.0)

    text = "; ".join(dot.text for dot in its)
    marks: list[Mark] = [axis()]
    if high > low:
        marks += [(0.5, None, "ink", "|", MIDDLE)] * change
        for dot in its:
            step = -(-len(dot.others) // MOST_DOTS) or 1
            some = [x for x in dot.others[::step] if math.isfinite(x)]
            marks += [(at(x), None, "soft", "•", MIDDLE) for x in some]
            if math.isfinite(dot.low) and math.isfinite(dot.high):
                marks.append((at(dot.low), at(dot.high), dot.role, "", MIDDLE))
            if math.isfinite(dot.value):
                marks.append((at(dot.value), None, dot.role, dot.sign, MIDDLE))
    return cell(text, marks, label, its[0].value if math.isfinite(its[0].value) else None)
