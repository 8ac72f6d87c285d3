"""SimGrid XML files (DTD 4 and 4.1) to platforms."""

from __future__ import annotations

import logging
import time
from pathlib import Path

from ptaskmodel.errors import PlatformError
from ptaskmodel.files import AnyPath, read_bytes, shown_path
from ptaskmodel.memory import collector_at_rest
from ptaskmodel.platform.model import PlatformWarning
from ptaskmodel.platform.notes import Note
from ptaskmodel.platform.platform import Platform
from ptaskmodel.platform.reader.builder import Builder
from ptaskmodel.platform.reader.document import Document
from ptaskmodel.platform.reader.elements import Source
from ptaskmodel.platform.reader.xml import read_xml
from ptaskmodel.remarks import WARNING, Remark, warn

_log = logging.getLogger(__name__)


def load_platform(path: AnyPath) -> Platform:
    """The platform in a SimGrid XML file; it may be gzipped; ``-`` is standard input.

    Raises PlatformError (one line: file, line, element, remedy) if it cannot be used. What is odd
    but usable gives a PlatformWarning per kind; ``Platform.notes`` lists all of them.
    """
    platform = read_platform(path)
    for remark in remarks_on(platform):
        warn(remark.text, category=PlatformWarning)
    return platform


def remarks_on(platform: Platform) -> list[Remark]:
    """What is odd in a platform file but usable, a warning for each kind."""
    return [
        Remark(f"{platform.path}:{note.line}: {note.text}", WARNING)
        for note in _one_per_kind(platform.notes)
    ]


def read_platform(path: AnyPath) -> Platform:
    """As ``load_platform``, without a Python warning."""
    return parse_platform(read_bytes(path, error=PlatformError), Path(path))


def parse_platform(content: bytes, path: Path) -> Platform:
    """The platform in the bytes of a file; ``path`` serves messages and finds traces."""
    began = time.perf_counter()
    with collector_at_rest():
        document = Document(Builder(Source(path)))
        read_xml(content, document)
        platform = Platform(document.finish())
    _log.info(
        "read %s: %d hosts, %d links, in %.2g s",
        shown_path(path),
        len(platform.hosts),
        len(platform.links),
        time.perf_counter() - began,
    )
    return platform


def _one_per_kind(notes: tuple[Note, ...]) -> list[Note]:
    first: dict[str, Note] = {}
    counts: dict[str, int] = {}
    for note in notes:
        first.setdefault(note.kind, note)
        counts[note.kind] = counts.get(note.kind, 0) + 1
    return [
        note._replace(text=f"{note.text} (and {counts[kind] - 1} more such)")
        if counts[kind] > 1
        else note
        for kind, note in first.items()
    ]
