"""Writes the one self-contained page that runs, batches, replays and campaigns have in common."""

from __future__ import annotations

import html
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from ptaskmodel.files import json_text, whole_file
from ptaskmodel.results.report_sections import Section, as_html

SCRIPTS = ("topology.js", "ranks.js", "report.js")


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
    folder = files("ptaskmodel.results").joinpath("templates")
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
