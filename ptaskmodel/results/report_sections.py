"""Sections of a report that are pictures and tables, made as HTML before the page is opened."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Table:
    """Texts in rows below a header; the columns of ``right`` hold numbers."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with a sentence, tables and a picture below it. alt: what the picture shows."""

    title: str
    note: str = ""
    tables: tuple[Table, ...] = ()
    picture: Figure | None = None
    alt: str = ""


def as_html(sections: Sequence[Section]) -> str:
    """The sections one after the other; nothing in them is taken for HTML."""
    return "\n".join(_section(section) for section in sections)


def _section(section: Section) -> str:
    parts = [f"<h2>{html.escape(section.title)}</h2>"]
    if section.note:
        parts.append(f'<p class="soft">{html.escape(section.note)}</p>')
    parts += [_table(table) for table in section.tables]
    if section.picture is not None:
        parts.append(_image(section.picture, section.alt or section.title))
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
    return f'<img class="picture" src="data:image/svg+xml;base64,{data}" alt="{html.escape(alt)}">'
