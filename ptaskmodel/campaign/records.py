"""Records of runs as files hold them: parts that grow by a line a run, packs, and an index of all.

A part is of one process: lines of JSON, the last of which may be torn where that process was
killed. A pack is a zip file that appears whole:

    ids, done   of each record its run's id, and whether it is done (1) or failed (0)
    0, 1, ...   records, a line of JSON each, so many lines a member
"""

from __future__ import annotations

import functools
import json
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from ptaskmodel.errors import CampaignError
from ptaskmodel.files import whole_path

DONE, FAILED = "done", "failed"
ID_LENGTH = 24
LINES = 1000
LEVEL = 3
# How many members of packs are kept unpacked.
KEPT = 32


class Line(NamedTuple):
    """A record: of which run, whether it is done, its JSON."""

    run_id: str
    done: bool
    text: bytes


class Lines(Protocol):
    """Records of a file, in the order in which they were kept."""

    ids: np.ndarray
    done: np.ndarray

    def text(self, k: int) -> bytes:
        """The k-th of them, as JSON."""


class Part:
    """A file of lines, read whole; what is torn, or no record, is left out. Raises OSError."""

    def __init__(self, path: Path) -> None:
        self.lines = list(_read(path.read_bytes()))
        self.ids = np.array([line.run_id for line in self.lines], f"S{ID_LENGTH}")
        self.done = np.array([line.done for line in self.lines], bool)

    def text(self, k: int) -> bytes:
        return self.lines[k].text


def _read(content: bytes) -> Iterator[Line]:
    for text in content.splitlines():
        try:
            record = json.loads(text)
        except ValueError:
            continue
        if isinstance(record, dict) and record.get("status") in (DONE, FAILED):
            run_id = record.get("id")
            if isinstance(run_id, str) and len(run_id) == ID_LENGTH and run_id.isascii():
                yield Line(run_id, record["status"] == DONE, text)


class Pack:
    """A pack, read as far as is asked for. Raises OSError; CampaignError if it is damaged."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file = zipfile.ZipFile(path)
            self.ids = np.frombuffer(self._file.read("ids"), f"S{ID_LENGTH}")
            self.done = np.frombuffer(self._file.read("done"), bool)
        except (zipfile.BadZipFile, KeyError, ValueError) as fault:
            raise self._damaged(fault) from None

    def text(self, k: int) -> bytes:
        return _member(self, k // LINES)[k % LINES]

    def lines(self) -> Iterator[Line]:
        """All of it."""
        for k, (run_id, done) in enumerate(zip(self.ids.tolist(), self.done.tolist(), strict=True)):
            yield Line(run_id.decode(), done, self.text(k))

    def member(self, k: int) -> list[bytes]:
        """So many lines."""
        try:
            return self._file.read(str(k)).splitlines()
        except (zipfile.BadZipFile, KeyError) as fault:
            raise self._damaged(fault) from None

    def _damaged(self, fault: Exception) -> CampaignError:
        return CampaignError(
            f"{self._path}: is damaged ({fault}); delete it, and its runs are made again"
        )


@functools.lru_cache(maxsize=KEPT)
def _member(pack: Pack, k: int) -> list[bytes]:
    return pack.member(k)


def write_pack(path: Path, lines: Sequence[Line]) -> None:
    """Write a pack, whole. Raises CampaignError."""
    ids = np.array([line.run_id for line in lines], f"S{ID_LENGTH}")
    members = {"ids": ids.tobytes(), "done": bytes(line.done for line in lines)}
    for k in range(0, len(lines), LINES):
        members[str(k // LINES)] = b"\n".join(line.text for line in lines[k : k + LINES])
    with (
        whole_path(path, error=CampaignError) as partial,
        zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as file,
    ):
        for name, content in members.items():
            one = zipfile.ZipInfo(name)
            one.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(one, content)


class Index:
    """Of each run that is kept, the record that counts: one that is done, or the last that failed.

    files: the oldest first.
    """

    def __init__(self, files: Iterable[Lines]) -> None:
        self._files = list(files)
        none = np.array([], f"S{ID_LENGTH}")
        ids = np.concatenate([none, *(one.ids for one in self._files)])
        done = np.concatenate([np.array([], bool), *(one.done for one in self._files)])
        counts = [len(one.ids) for one in self._files]
        order = np.lexsort((np.arange(len(ids)), done, ids))
        kept = order[np.append(ids[order][1:] != ids[order][:-1], True)] if len(ids) else order
        self.ids, self.done = ids[kept], done[kept]
        self._file = np.repeat(np.arange(len(counts)), counts)[kept]
        self._line = kept - np.cumsum([0, *counts])[self._file]

    def places(self, run_ids: Sequence[str] | np.ndarray) -> np.ndarray:
        """Where runs are in `ids` and `done`; -1 of those that are not."""
        asked = np.array(run_ids, f"S{ID_LENGTH}")
        if not len(self.ids):
            return np.full(len(asked), -1)
        found = np.minimum(np.searchsorted(self.ids, asked), len(self.ids) - 1)
        return np.where(self.ids[found] == asked, found, -1)

    def line(self, place: int) -> Line:
        """What is kept of a run."""
        text = self._files[self._file[place]].text(int(self._line[place]))
        return Line(self.ids[place].decode(), bool(self.done[place]), text)

    def record(self, place: int) -> dict[str, Any]:
        """What is kept of a run."""
        record: dict[str, Any] = json.loads(self.line(place).text)
        return record

    def in_order(self) -> np.ndarray:
        """All places, in the order in which the files hold them, which is the quickest to read."""
        return np.lexsort((self._line, self._file))
