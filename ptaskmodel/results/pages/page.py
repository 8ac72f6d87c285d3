"""Write a self-contained HTML page; reports of runs, batches, replays and campaigns use it.

Sections are pictures and tables, rendered to HTML when the page is written.
"""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptaskmodel.errors import PTaskModelError
from ptaskmodel.files import json_text, whole_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# CSS pixels: of an inch of a picture; where a phone is narrower than the least, it scrolls.
PIXELS, LEAST = 96, 560
SCRIPTS = ("numbers.js", "topology.js", "ranks.js", "report.js")


@dataclass(frozen=True, slots=True)
class Table:
    """Texts in rows below a header; the columns of ``right`` hold numbers."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, and below it a sentence, points, a picture, tables, a text as it is.

    alt: what the picture shows.
    """

    title: str
    note: str = ""
    tables: tuple[Table, ...] = ()
    picture: Figure | None = None
    alt: str = ""
    points: tuple[str, ...] = ()
    text: str = ""


def pictured(
    title: str,
    draw: Callable[[], Figure],
    note: str = "",
    alt: str = "",
    tables: tuple[Table, ...] = (),
) -> Section:
    """A section with a picture, or with why there is none: nothing to draw, or no matplotlib."""
    try:
        return Section(title, note, tables, draw(), alt)
    except PTaskModelError as nothing:
        return Section(title, f"{note} {nothing}.".strip(), tables)


def as_html(sections: Sequence[Section]) -> str:
    """The sections one after the other; nothing in them is taken for HTML."""
    return "\n".join(_section(section) for section in sections)


def _section(section: Section) -> str:
    parts = [f"<h2>{html.escape(section.title)}</h2>"]
    if section.note:
        parts.append(f'<p class="soft">{html.escape(section.note)}</p>')
    if section.points:
        said = "".join(f"<li>{html.escape(point)}</li>" for point in section.points)
        parts.append(f"<ul>{said}</ul>")
    if section.picture is not None:
        parts.append(_image(section.picture, section.alt or section.title))
    parts += [_table(table) for table in section.tables]
    if section.text:
        parts.append(f"<pre>{html.escape(section.text)}</pre>")
    return "<section>" + "\n".join(parts) + "</section>"


def _table(table: Table) -> str:
    def cells(tag: str, texts: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{' class=' + chr(34) + 'number' + chr(34) if k in table.right else ''}>"
            f"{html.escape(text)}</{tag}>"
            for k, text in enumerate(texts)
        )

    rows = "\n".join(f"<tr>{cells('td', row)}</tr>" for row in table.rows)
    head = f"<thead><tr>{cells('th', table.header)}</tr></thead>"
    return f'<div class="scroll"><table>{head}<tbody>{rows}</tbody></table></div>'


def _image(figure: Figure, alt: str) -> str:
    """The figure as an image inside the page, without a date."""
    import matplotlib as mpl

    stream = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "ptaskmodel"}):
        figure.savefig(stream, format="svg", metadata={"Date": None}, facecolor="white", dpi=150)
    data = base64.b64encode(stream.getvalue()).decode("ascii")
    width = round(PIXELS * figure.get_figwidth())
    size = f"width:clamp({min(width, LEAST)}px,100%,{width}px)"
    source = f"data:image/svg+xml;base64,{data}"
    image = f'<img class="picture" style="{size}" src="{source}" alt="{html.escape(alt)}">'
    return f'<div class="scrolled">{image}</div>'


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

    data: what its script shows, `empty_data` and more; before, after: sections above and below the
    chart of who ran where; answer: the sentence at its head.

    Raises PTaskModelError if it cannot be written.
    """
    folder = files("ptaskmodel.results.pages").joinpath("templates")
    texts = {
        name: folder.joinpath(name).read_text(encoding="utf-8")
        for name in ("report.html", "report.css", *SCRIPTS)
    }
    # "<" could end the element that holds the data.
    packed = json_text(data, indent=None).replace("<", "\\u003c")
    parts = {
        "@TITLE@": html.escape(title),
        "@CSS@": texts["report.css"],
        "@SUBJECT@": html.escape(subject),
        "@ANSWER@": f'<p class="answer">{html.escape(answer)}</p>' if answer else "",
        "@BEFORE@": as_html(before),
        "@AFTER@": as_html(after),
        "@DATA@": packed,
        "@JS@": "".join(texts[name] for name in SCRIPTS),
    }
    text = texts["report.html"]
    with whole_file(path) as stream:
        while text:
            found = [(text.find(mark), mark) for mark in parts if mark in text]
            if not found:
                break
            at, mark = min(found)
            stream.write(text[:at] + parts[mark])
            text = text[at + len(mark) :]
        stream.write(text)


def empty_data(what: str) -> dict[str, Any]:
    """A page on which nothing is shown yet; what: "task", "job", "rank" or "run"."""
    return {
        "what": what,
        "end": 0.0,
        "cards": [],
        "facts": [],
        "warnings": [],
        "hosts": [],
        "tasks": [],
        "words": [],
        "has_slowdowns": False,
        "limits": [],
        "spells": None,
        "uses": [],
        "use_width": 1.0,
        "use_note": "",
        "topology": "",
        "load": None,
        "timeline": None,
        "table": None,
        "columns": None,
        "outcomes": None,
        "stopped": None,
    }
