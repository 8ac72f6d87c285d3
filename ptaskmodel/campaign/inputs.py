"""The files that runs read: what they hold, and what tells that another path leads to the same."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

from ptaskmodel.errors import CampaignError
from ptaskmodel.files import digest

# Size and date of change of a file, or of all files of a directory.
Mark = tuple[tuple[str, int, int], ...]
# What is sent of an input, at most.
MOST_BYTES = 2**30


class Input(NamedTuple):
    """A file that runs read: where it is for whoever started the campaign, and what it is."""

    path: str
    digest: str
    mark: Mark


def digest_of(path: Path, name: str) -> str:
    """SHA-256 of a file, or of all files of a directory. Raises CampaignError."""
    if not path.exists():
        raise CampaignError(f"parameter '{name}': {path}: no such file")
    if path.is_file():
        return digest(path)
    parts = [
        f"{one.relative_to(path)} {digest(one)}" for one in sorted(path.rglob("*")) if one.is_file()
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def mark_of(path: Path) -> Mark:
    """What tells at once whether a path leads to the same elsewhere. Raises OSError."""
    found = [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.is_file())
    states = [(one, one.stat()) for one in found]
    return tuple(
        (str(one.relative_to(path)), state.st_size, state.st_mtime_ns) for one, state in states
    )


def content_of(path: Path) -> dict[str, bytes]:
    """Of a file, or of the files of a directory. Raises CampaignError if that is too much."""
    size = sum(size for _, size, _ in mark_of(path))
    if size > MOST_BYTES:
        raise CampaignError(
            f"{path}: {size:,} bytes are too many to send; "
            "put it where workers find it under the same path"
        )
    if path.is_file():
        return {".": path.read_bytes()}
    return {
        str(one.relative_to(path)): one.read_bytes()
        for one in sorted(path.rglob("*"))
        if one.is_file()
    }
