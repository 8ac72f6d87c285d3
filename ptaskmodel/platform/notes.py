"""What is told about a platform: notes, and texts short enough to be quoted."""

from __future__ import annotations

from typing import NamedTuple


class Note(NamedTuple):
    """Something odd in a file, that does not stop its reading."""

    line: int
    kind: str
    text: str


def short(text: str) -> str:
    """Quoted, on one line and never long."""
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
