"""Write a self-contained HTML page; reports of runs, batches, replays and campaigns use it.

A page has the same order everywhere: the answer and a few numbers, warnings, why, when and where,
details, inputs. Sections hold tables and charts, which the page's scripts draw; cells of tables may
have marks on a line.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from ptaskmodel.files import json_text, whole_file
from ptaskmodel.results.pictures.charts import Dot, DotPanel
from ptaskmodel.style.figures import css
from ptaskmodel.style.text import Column as Unit
from ptaskmodel.style.text import column

SCRIPTS = (
    *("numbers.js", "parts.js", "charts.js", "time.js", "topology.js", "ranks.js"),
    "page.js",
)
# Characters of a title; the whole name is in the title of the window.
MOST_TITLE = 60


class Table(NamedTuple):
    """A table of a page: sorted, searched, copied as CSV by the reader; the first 50 rows shown.

    columns: (name, kind) of each, or a mapping. Kinds: "text", "said" (numbers as texts), "drawn"
    (of `cell`), or of numbers in SI "number", "count", "time", "share", "bytes", "rate", "energy",
    "power", "date"; these are shown in one unit, which the head then names. caption: what the table
    is of, for those who hear it. order: (column, whether the largest come first); None: as given.
    key: the two columns that small screens show beside the first. file: where all rows are. same:
    columns that have one unit. signed: columns of changes. picks: of each row what a click shows:
    numbers of tasks, what these are, a link or "".
    """

    columns: Mapping[str, str] | Sequence[tuple[str, str]]
    rows: Sequence[Sequence[Any]]
    caption: str = ""
    order: tuple[int, bool] | None = None
    key: Sequence[int] | None = None
    file: str = ""
    same: Sequence[int] = ()
    picks: Sequence[tuple[Sequence[int], str, str]] | None = None
    signed: Sequence[int] = ()

    def data(self, title: str) -> dict[str, Any]:
        """What the script `table` takes; title: of the section."""
        its = self._asdict() | {"caption": self.caption or title, "quiet": not self.caption}
        columns = its.pop("columns")
        columns = columns.items() if isinstance(columns, Mapping) else columns
        its["heads"], its["kinds"] = zip(*columns, strict=True)
        return its


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, and below it a sentence, points, charts, tables, a text as it is.

    charts: what a script in charts.js draws, by its key "chart":
    "strip", "cumulative" or "matrix"; each has a "sentence" with its numbers.
    """

    title: str
    note: str = ""
    tables: tuple[Table, ...] = ()
    points: tuple[str, ...] = ()
    text: str = ""
    charts: tuple[dict[str, Any], ...] = ()


class _Body:
    """Sections as HTML; what scripts draw in them is kept in `tables` and `charts`."""

    def __init__(self) -> None:
        self.tables: list[dict[str, Any]] = []
        self.charts: list[dict[str, Any]] = []

    def of(self, sections: Sequence[Section]) -> str:
        """The sections one after the other; nothing in them is taken for HTML."""
        return "\n".join(self._section(section) for section in sections)

    def _section(self, section: Section) -> str:
        parts = [f"<h2>{html.escape(section.title)}</h2>"]
        if section.note:
            parts.append(f'<p class="soft">{html.escape(section.note)}</p>')
        if section.points:
            said = "".join(f"<li>{html.escape(point)}</li>" for point in section.points)
            parts.append(f"<ul>{said}</ul>")
        for chart in section.charts:
            parts.append(f'<div data-chart="{len(self.charts)}"></div>')
            self.charts.append(chart)
        for table in section.tables:
            parts.append(f'<div data-table="{len(self.tables)}"></div>')
            self.tables.append(table.data(section.title))
        if section.text:
            parts.append(f"<pre>{html.escape(section.text)}</pre>")
        return "<section>" + "\n".join(parts) + "</section>"


def write_page(
    path: str | Path,
    data: dict[str, Any],
    *,
    title: str,
    subject: str,
    before: Sequence[Section] = (),
    after: Sequence[Section] = (),
    answer: str = "",
) -> None:
    """Write a page.

    data: what page.js shows, with "what": "task", "job", "rank" or "run". before: sections that say
    why; after: details, below the charts of time and place; answer: sentences at its head, a line
    each.

    Raises PTaskModelError if it cannot be written.
    """
    folder = files("ptaskmodel.results.pages").joinpath("templates")
    texts = {
        name: folder.joinpath(name).read_text(encoding="utf-8")
        for name in ("page.html", "page.css", *SCRIPTS)
    }
    body = _Body()
    lines = answer.replace(" %", "\u00a0%").splitlines()
    said = "".join(f'<p class="answer">{html.escape(line)}</p>' for line in lines)
    heading = title if len(title) <= MOST_TITLE else f"{title[: MOST_TITLE - 1].rstrip()}…"
    parts = {
        "@TITLE@": html.escape(title),
        "@HEADING@": html.escape(heading),
        "@CSS@": css() + texts["page.css"],
        "@SUBJECT@": html.escape(subject),
        "@ANSWER@": said,
        "@BEFORE@": body.of(before),
        "@AFTER@": body.of(after),
        "@JS@": "".join(texts[name] for name in SCRIPTS),
    }
    drawn = {"tables": body.tables, "charts": body.charts}
    # "<" could end the element that holds the data.
    parts["@DATA@"] = json_text(data | drawn, indent=None).replace("<", "\\u003c")
    with whole_file(path) as stream:
        stream.write(re.sub("@[A-Z]+@", lambda mark: parts[mark[0]], texts["page.html"]))


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
    heads = [(head, "text"), *((name, "said") for name, _ in more)]
    for panel in panels:
        unit = column([dot.value for its in panel.rows for dot in its], panel.kind)
        name = panel.name if panel.change or panel.bare else unit.head(panel.name)
        heads.append((name, "drawn"))
        for row, its in zip(rows, panel.rows, strict=True):
            row.append(dot_cell(panel, its, unit) if its else None)
    return Table(heads, rows, **given)


def dot_cell(panel: DotPanel, its: Sequence[Dot], unit: Unit | None = None) -> dict[str, Any]:
    """Return a cell with the dots of a row of ``panel``, and their intervals, on a line.

    its: of the row. unit: of the numbers above them; of a bare panel there are none.
    """
    low, high = panel.reach

    def at(value: float) -> float:
        return min(max(0.02 + 0.96 * (value - low) / (high - low), 0.0), 1.0)

    marks: list[Mark] = [] if panel.apart else [(0.0, 1.0, "line", "axis", MIDDLE)]
    marks += [(0.5, None, "ink", "|", MIDDLE)] * (panel.change and high > low)
    for k, dot in enumerate(its if high > low else ()):
        down = (k + 0.5) / len(its) if panel.apart else MIDDLE
        step = -(-len(dot.others) // MOST_DOTS) or 1
        some = [x for x in dot.others[::step] if math.isfinite(x)]
        marks += [(at(x), None, "soft", "•", down) for x in some]
        if math.isfinite(dot.low) and math.isfinite(dot.high):
            marks.append((at(dot.low), at(dot.high), dot.role, "", down))
        if math.isfinite(dot.value):
            marks.append((at(dot.value), None, dot.role, dot.sign, down))
    label = ""
    if unit is not None and not panel.bare:
        label = " · ".join(dot.label or unit.text(dot.value) for dot in its)
    text = "; ".join(dot.text for dot in its if dot.text)
    return cell(text, marks, label, its[0].value if math.isfinite(its[0].value) else None)
