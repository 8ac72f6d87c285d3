"""Input files of runs: their digests, their content, and marks that identify unchanged copies.

An input is a directory, or a file together with the files that it names. The plan puts digests into
the ids of runs; the Dask cluster uses marks and content to send inputs to workers.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

from ptaskmodel.errors import CampaignError
from ptaskmodel.files import check_regular, digest
from ptaskmodel.named_files import named_by

# Name beside the input, size and date of change of each file.
Mark = tuple[tuple[str, int, int], ...]
# What is sent of an input, at most.
MOST_BYTES = 2**30


class Input(NamedTuple):
    """A file that runs read: where it is for whoever started the campaign, and what it is."""

    path: str
    digest: str
    mark: Mark


def input_at(path: Path, name: str) -> Input:
    """The input at a path. Raises CampaignError."""
    return Input(str(path), digest_of(path, name), mark_of(path))


def digest_of(path: Path, name: str) -> str:
    """SHA-256 of a file; of several, of the list of their names and digests. Raises CampaignError.

    name: of the parameter.
    """
    if not path.exists():
        raise CampaignError(f"parameter '{name}': {path}: no such file")
    if not path.is_dir():
        check_regular(path, error=CampaignError)
    files = _files(path)
    if list(files.values()) == [path]:
        return digest(path)
    start = path if path.is_dir() else path.parent
    parts = [f"{os.path.relpath(one, start)} {digest(one)}" for one in files.values()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def mark_of(path: Path) -> Mark:
    """What tells at once whether a path leads to the same elsewhere. Raises OSError."""
    return tuple(_mark(beside, one) for beside, one in _files(path).items())


def leads_to(path: Path, mark: Mark) -> bool:
    """Whether what is at a path has that mark."""
    try:
        if path.is_dir():
            return mark_of(path) == mark
        return all(_mark(one[0], path.parent / one[0]) == one for one in mark)
    except OSError:
        return False


def content_of(path: Path) -> dict[str, bytes]:
    """What to keep elsewhere, by name. Raises CampaignError if that is too much, or too far off."""
    files = _files(path)
    size = sum(one.stat().st_size for one in files.values())
    if size > MOST_BYTES:
        raise CampaignError(
            f"{path}: {size:,} bytes are too many to send; "
            "put it where workers find it under the same path"
        )
    for beside, one in files.items():
        if beside.startswith(os.pardir):
            raise CampaignError(
                f"{path}: names {one}, which is not beside it and cannot be sent; "
                "put both where workers find them under the same paths"
            )
    return {beside: one.read_bytes() for beside, one in files.items()}


def _files(path: Path) -> dict[str, Path]:
    """All files of an input, by their names from where it is on."""
    if path.is_dir():
        found = sorted(one for one in path.rglob("*") if one.is_file())
    else:
        found = named_by(path)
    return {os.path.relpath(one, path.parent): one for one in found}


def _mark(beside: str, path: Path) -> tuple[str, int, int]:
    state = path.stat()
    return beside, state.st_size, state.st_mtime_ns
