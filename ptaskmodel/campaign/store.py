"""The directory of a campaign: files of runs that only grow, and packs of finished files.

    DIR/campaign.toml       the plan
    DIR/runs/HEX.jsonl      a part: runs that one process made, or failed to make
    DIR/runs/HEX.jsonl.closed   a part to which no process appends any more
    DIR/runs/00000001.zip   a pack of parts
    DIR/logs/               the last output of workers that died

A part has a line of JSON for each run. The process that made a run appends its line, so that
killing any process at any time loses no finished run; at most the last line is incomplete. To pack
parts, they are renamed (closed) first. A process that then appends a line sees that its part has
been renamed, and appends the line to a new part as well. A record that is stored twice counts once.

A pack is a zip file, written atomically before its parts are deleted:

    ids, done   for each record the id of its run, and whether it is done (1) or failed (0)
    0, 1, ...   records, a line of JSON each, `LINES` lines a member

A digest of inputs, options and versions identifies a run, so directories of several machines merge
by copying. Runs of older versions, one file each, are read and packed too.
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
import secrets
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from ptaskmodel.campaign.plan import Plan, plan_of
from ptaskmodel.errors import CampaignError
from ptaskmodel.files import read_text, whole_path, write_bytes

DONE, FAILED = "done", "failed"
ID_LENGTH = 24
LINES = 1000
LEVEL = 3
# How many members of packs are kept unpacked.
KEPT = 32
PLAN, RUNS, LOGS, LOCK, FOLDER = "campaign.toml", "runs", "logs", ".lock", "folder.txt"
# By what it holds, a worker knows that it sees the same directory.
TOKEN = ".shared"
MISSING = "missing"
PART, CLOSED, PACK = ".jsonl", ".jsonl.closed", ".zip"
# How many records make a pack; a smaller one is packed again with what comes after it.
PACKED = 20_000
# After so long, s, every machine that shares the directory knows that a part is closed.
GRACE_S = 60.0
# How often a directory is listed anew where others pack it meanwhile.
LISTED = 20
_OURS = {
    PLAN,
    RUNS,
    LOGS,
    LOCK,
    FOLDER,
    TOKEN,
    "table.parquet",
    "table.csv",
    "report.html",
    "pictures",
}


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
        return CampaignError(f"{self._path}: is damaged ({fault}); delete it to repeat its runs")


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


class Store:
    """A directory of a campaign."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        self._runs = self.directory / RUNS
        self._part: Path | None = None

    def begin(self, plan: Plan) -> None:
        """Keep the plan here; a changed one takes the place of the old. Raises CampaignError."""
        self.directory.mkdir(parents=True, exist_ok=True)
        others = {one.name for one in self.directory.iterdir()} - _OURS
        if others and not (self.directory / PLAN).exists():
            raise CampaignError(
                f"{self.directory}: contains {min(others)}, which belongs to no campaign; "
                "give an empty directory or a new name"
            )
        write_bytes(self.directory / PLAN, plan.text.encode(), error=CampaignError)
        write_bytes(self.directory / FOLDER, f"{plan.folder}\n".encode(), error=CampaignError)

    def plan(self) -> Plan:
        """The plan kept here. Raises CampaignError."""
        path = self.directory / PLAN
        if not path.exists():
            raise CampaignError(
                f"{self.directory}: contains no campaign (no {PLAN}); give another directory"
            )
        folder = Path(read_text(self.directory / FOLDER, error=CampaignError).strip())
        return plan_of(read_text(path, error=CampaignError), folder, self.directory.name)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from making runs here. Raises CampaignError if one does already."""
        with (self.directory / LOCK).open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise CampaignError(
                    f"{self.directory}: another process executes runs here; wait for it, "
                    "or execute another part of them in another directory (--part)"
                ) from None
            yield

    def say_begun(self, made: int) -> None:
        """Keep that runs are being made from now on, and how many there are (see `begun`)."""
        (self.directory / LOCK).write_text(f"{made}\n", encoding="utf-8")

    def begun(self) -> tuple[float, int] | None:
        """When the process that makes runs here began (Unix seconds), with how many; None if none
        does.
        """
        with suppress(OSError, ValueError), (self.directory / LOCK).open("r") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return os.fstat(file.fileno()).st_mtime, int(file.read())
        return None

    def write(self, run_id: str, record: Mapping[str, Any]) -> None:
        """Store the `record` (outcome) of the run `run_id`.

        Raises CampaignError if it cannot be written.
        """
        line = json.dumps({**record, "id": run_id}, allow_nan=False).encode() + b"\n"
        try:
            while not self._add(line):
                pass
        except OSError as fault:
            raise CampaignError(f"{self._runs}: cannot be written: {fault.strerror}") from None

    def _add(self, line: bytes) -> bool:
        """Append a line to this process's part; return whether it is still open. Raises OSError."""
        part, self._part = self._part, None
        flags = os.O_WRONLY | os.O_APPEND
        if part is None:
            self._runs.mkdir(parents=True, exist_ok=True)
            part = self._runs / f"{secrets.token_hex(8)}{PART}"
            flags |= os.O_CREAT | os.O_EXCL
        try:
            with open(os.open(part, flags, 0o666), "wb", buffering=0) as file:
                while line:
                    line = line[file.write(line) :]
                added_to = os.fstat(file.fileno())
            if not os.path.samestat(os.stat(part), added_to):
                return False
        except FileNotFoundError:
            return False
        self._part = part  # after an error, which may have torn the line, another is begun
        return True

    def index(self) -> Index:
        """What is kept by now. Raises CampaignError if a pack is damaged."""
        for _ in range(LISTED):
            with suppress(
                FileNotFoundError
            ):  # packed meanwhile; parts first, as packs take them in
                parts = [Part(path) for path in self._open_and_closed()]
                packs = self._packs()
                found = Index([*map(Pack, packs), *parts])
                if packs == self._packs():
                    return found
        raise CampaignError(f"{self._runs}: changes faster than it can be read; try again")

    def read(self, run_id: str) -> dict[str, Any] | None:
        """Return the stored outcome of the run `run_id`; None: not finished."""
        index = self.index()
        place = int(index.places([run_id])[0])
        return None if place < 0 else index.record(place)

    def _packs(self) -> list[Path]:
        return sorted(self._runs.glob(f"*{PACK}"))

    def _open_and_closed(self) -> list[Path]:
        """Parts, and runs of older versions; the oldest first. Raises FileNotFoundError."""
        patterns = (f"*{PART}", f"*{CLOSED}", "??/*.json")
        found = [path for pattern in patterns for path in self._runs.glob(pattern)]
        return sorted(found, key=lambda path: (path.stat().st_mtime_ns, path.name))

    def pack(self, *, finished: bool) -> None:
        """Pack the stored runs; only the process that makes runs does this. Raises CampaignError.

        finished: no process will add runs, so none is waited for.
        """
        for path in self._runs.glob(f"*{PART}"):
            path.rename(path.with_suffix(CLOSED))
        since = time.time() - GRACE_S
        parts = [
            path
            for path in self._open_and_closed()
            if path.suffix != PART and (finished or path.stat().st_ctime <= since)
        ]
        if not parts:
            return
        packs = self._packs()
        last = [path for path in packs[-1:] if len(Pack(path).ids) < PACKED]
        index = Index([*map(Pack, last), *map(Part, parts)])
        number = int(packs[-1].stem) + 1 if packs else 1
        self._write_packs(number, map(index.line, index.in_order()))
        for path in (*last, *parts):
            path.unlink()
        for folder in {path.parent for path in parts} - {self._runs}:
            with suppress(OSError):  # something else is in it
                folder.rmdir()

    def _write_packs(self, number: int, lines: Iterable[Line]) -> None:
        """Write lines as packs, from a number on."""
        held: list[Line] = []
        for line in lines:
            held.append(line)
            if len(held) == PACKED:
                write_pack(self._runs / f"{number:08}{PACK}", held)
                number, held = number + 1, []
        if held:
            write_pack(self._runs / f"{number:08}{PACK}", held)

    def take_in(self, others: Iterable[Path]) -> int:
        """Copy finished runs from the directories `others`; return how many were new.

        Raises CampaignError.
        """
        with self.locked():
            self._runs.mkdir(exist_ok=True)
            return sum(map(self._take_in, others))

    def _take_in(self, directory: Path) -> int:
        if not (directory / RUNS).is_dir():
            raise CampaignError(
                f"{directory}: contains no runs of a campaign; give another directory"
            )
        theirs, mine = Store(directory).index(), self.index()
        there = mine.places(theirs.ids)
        lacking = there < 0
        lacking[~lacking] = ~mine.done[there[~lacking]]
        taken = [k for k in theirs.in_order() if lacking[k]]
        packs = self._packs()
        self._write_packs(int(packs[-1].stem) + 1 if packs else 1, map(theirs.line, taken))
        return len(taken)

    def log(self, worker: int) -> Path:
        """The file that a worker's words go to."""
        place = self.directory / LOGS
        place.mkdir(parents=True, exist_ok=True)
        return place / f"worker-{os.getpid()}-{worker}.log"
