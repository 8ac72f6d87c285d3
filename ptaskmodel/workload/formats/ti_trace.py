"""Read time-independent traces: text as SimGrid writes it, or a compact binary form.

Text: one line an action, ``rank action field...``, in one file for all ranks, or in one file a
rank, named in a list in the order of ranks. Binary: a ``.npz`` file that `write_trace` made.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ptaskmodel.errors import MOST_PROBLEMS, WorkloadError, shown
from ptaskmodel.files import read_bytes, read_pieces, shown_path, taken_for, write_bytes
from ptaskmodel.memory import available_bytes
from ptaskmodel.remarks import TAKEN, WARNING, Account, reader
from ptaskmodel.workload.actions import ACTIONS, HEAD, OldLines, is_old, may_be_old
from ptaskmodel.workload.formats import refuse_parquet
from ptaskmodel.workload.formats.number_scanner import (
    FINE,
    IS_UNREAD,
    LENGTHS,
    MEANT,
    NAMES,
    NO_ACTION,
    NO_RANK,
    TENS,
    scan,
)
from ptaskmodel.workload.traces import Lines, Spooled, Trace, trace_of

AnyPath = str | os.PathLike[str]

MAX_RANKS = 1_000_000
MAX_TRACE_BYTES = 2**33
# Of the memory and the disk that are free, what the text of a trace may take; of the memory alone,
# what the arrays of a packed one may.
PART_OF_ROOM = 0.25
PART_OF_MEMORY = 0.25
PIECE = 1 << 20  # bytes of text read at a time
PACK_BYTES = 1 << 22  # between two calls of a writer's progress
PACKED = b"PK"  # how a .npz file begins
FORMAT = "ptaskmodel-ti-trace-1"
# What a damaged or foreign .npz file makes zipfile, zlib and numpy raise.
UNREADABLE = (
    *(KeyError, ValueError, TypeError, OSError, EOFError, zipfile.BadZipFile, zlib.error),
    *(MemoryError, NotImplementedError, OverflowError, RuntimeError, SyntaxError),
)
ARRAYS = {"actions": np.int8, "first": np.int64, "start": np.int64, "values": np.float64}

# The first word of a line that is no comment, and the begin of its second, if there is one.
FIRST_LINE = re.compile(rb"^[ \t]*+([^\s#]\S*+)[ \t]*+(\S?)", re.MULTILINE)
# Of calls whose lines cannot be replayed, what does the same; by names in traces, in lower case.
INSTEAD = {
    "waitsome": "MPI_Waitany or MPI_Waitall",
    "testall": "MPI_Test or MPI_Waitall",
    "testany": "MPI_Test or MPI_Wait",
    "testsome": "MPI_Test or MPI_Wait",
    "start": "MPI_Isend and MPI_Irecv",
    "startall": "MPI_Isend and MPI_Irecv",
    "ssend": "MPI_Send",
    "issend": "MPI_Isend",
}


@reader(WorkloadError)
def read_trace(path: AnyPath, account: Account, ranks: int | None = None) -> Trace:
    """Read the trace of an application: a list of files, one file for all ranks, or ``.npz``.

    ranks: how many there are (None: as many files as the list names, or as the trace has). Files
    may be gzipped. Unlike SimGrid, the last line counts even if it has no end. A large trace is
    kept in a file in the folder for temporary files, not in memory. account: of the file at `path`.

    Raises WorkloadError, one line with file and line.
    """
    path = Path(path)
    head = _head(path)
    if not _is_list(head):
        return _one_file(path, head, ranks, account)
    content = read_bytes(path, most=_room(), error=WorkloadError)
    what = taken_for(content)
    if what is not None:
        raise WorkloadError(f"{shown_path(path)}: {what}; give a trace, or a list of traces")
    names = content.decode("utf-8", errors="surrogateescape").split()
    if not names:
        raise WorkloadError(f"{shown_path(path)}: is empty; give a trace or a list of traces")
    if len(names) == 1:
        own = _beside(path, names[0], content)
        return _one_file(own, _named(own), ranks, Account(own, WorkloadError))
    if names[0] == "num_ranks":
        raise WorkloadError(
            f"{shown_path(path)}: is a GOAL schedule; give a time-independent trace, as smpirun "
            "writes it"
        )
    if ranks is not None and ranks != len(names):
        raise WorkloadError(
            f"{shown_path(path)}: names {len(names)} traces for {ranks} ranks; give one for each"
        )
    reading = _Reading(account)
    if not any((path.parent / name).is_file() for name in names):
        _beside(path, names[0], content)
    for rank, name in enumerate(names):
        foreign = 0
        with account.problems():
            own = _beside(path, name, content)
            _named(own)
            foreign = reading.file(own, rank)
        if foreign:
            account.left_out(f"{own}: left out {foreign} lines of ranks other than {rank}")
    return trace_of(reading.lines(), len(names), account)


def _head(path: Path) -> bytes:
    """How a file begins."""
    with contextlib.closing(read_pieces(path, HEAD, most=_room(), error=WorkloadError)) as pieces:
        head = next(pieces, b"")
    refuse_parquet(head, path)
    return head


def _one_file(path: Path, head: bytes, ranks: int | None, account: Account) -> Trace:
    """The trace of all ranks in one file, of either form, that begins with ``head``."""
    where = shown_path(path)
    if head[:2] == PACKED:
        return _unpacked(read_bytes(path, most=_room(), error=WorkloadError), where, ranks)
    reading = _Reading(account)
    reading.file(path)
    return _of_one(reading, ranks)


def _of_one(reading: _Reading, ranks: int | None) -> Trace:
    if reading.ranks == 0:
        reading.account.check()
    count = reading.ranks if ranks is None else ranks
    _check_ranks(count, reading.ranks, reading.account.file)
    return trace_of(reading.lines(), count, reading.account)


def _named(own: Path) -> bytes:
    """How a file begins that a list names."""
    head = _head(own)
    if not head.strip():
        raise WorkloadError(f"{shown_path(own)}: is empty; give the trace of a rank")
    if _is_list(head):
        raise WorkloadError(
            f"{shown_path(own)}: is a list of traces, not a trace; name the traces of ranks"
        )
    return head


def _room() -> int:
    """The bytes that the text of a trace may have, unpacked; its numbers take about twice that."""
    free = available_bytes()
    with contextlib.suppress(OSError):
        free += shutil.disk_usage(tempfile.gettempdir()).free
    return min(MAX_TRACE_BYTES, int(PART_OF_ROOM * free))


def trace_in(content: bytes, where: str, ranks: int | None = None) -> Trace:
    """The trace of all ranks in the content of one file. Raises WorkloadError, as `read_trace`."""
    reading = _Reading(Account(where, WorkloadError))
    reading.begin(where)
    reading.piece(content)
    return _of_one(reading, ranks)


def _beside(path: Path, name: str, content: bytes) -> Path:
    """The file that a list names. Raises WorkloadError with the line of the list."""
    own = path.parent / name
    if not own.is_file():
        line = content[: content.find(os.fsencode(name))].count(b"\n") + 1
        raise WorkloadError(
            f"{shown_path(path)}:{line}: names {shown(name)}, but there is no such file; "
            "give a trace, or a list of traces"
        )
    return own


def _check_ranks(ranks: int, found: int, where: str) -> None:
    if found == 0:
        raise WorkloadError(f"{where}: has no actions; give a trace")
    if ranks > MAX_RANKS:
        raise WorkloadError(f"{where}: has {ranks:,} ranks, more than {MAX_RANKS:,}; give fewer")
    if found > ranks:
        there = "is 1 rank" if ranks == 1 else f"are {ranks} ranks"
        raise WorkloadError(
            f"{where}: has actions of rank {found - 1}, but there {there}; correct the number of "
            "ranks"
        )


def _is_list(content: bytes) -> bool:
    """Whether a file names traces, instead of being one: no line of it begins with a rank."""
    if content[:2] == PACKED:
        return False
    first = FIRST_LINE.search(content, 0, HEAD)
    return first is None or not (first[1].removeprefix(b"p").isdigit() and first[2])


class _Reading:
    """Traces as they are read, piece by piece.

    ranks: the largest rank that has been met, and 1. account: what is told of the trace.
    """

    def __init__(self, account: Account) -> None:
        self.account = account
        self.ranks = 0
        self._whose = Spooled(np.int32)
        self._actions = Spooled(np.int8)
        self._numbers = Spooled(np.int32)
        self._start = Spooled(np.int64)
        self._start.append(np.zeros(1, dtype=np.int64))
        self._values = Spooled(np.float64)
        self._files: list[tuple[str, int]] = []
        self._line = 0  # of the file, before the next piece
        self._old: OldLines | None = None  # if the file is of before SimGrid 3.20
        self._refused = 0  # problems
        self._room = _room()  # bytes that may still be read

    def lines(self) -> Lines:
        """All that has been read."""
        try:
            columns = (self._whose, self._actions, self._numbers, self._start, self._values)
            return Lines(tuple(self._files), *(column.whole() for column in columns))
        except OSError as fault:
            raise WorkloadError(self._no_room(fault)) from None

    def begin(self, where: str) -> None:
        """What follows is of the file of that name."""
        self._files.append((where, len(self._actions)))
        self._line = 0
        self._old = None

    def file(self, path: Path, rank: int | None = None) -> int:
        """Read a file; of only one rank, if one is given; how many lines of others were left out.

        Raises WorkloadError.
        """
        self.begin(shown_path(path))
        foreign = read = 0
        rest = b""
        for content in read_pieces(path, PIECE, most=self._room, error=WorkloadError):
            read += len(content)
            end = content.rfind(b"\n") + 1
            if end == 0:
                rest += content
                continue
            foreign += self.piece(rest + content[:end], rank)
            rest = content[end:]
        self._room -= read
        return foreign + self.piece(rest, rank)

    def piece(self, content: bytes, rank: int | None = None) -> int:
        """Read lines, as `file`."""
        if self._old is not None:
            content = self._old.as_now(content)
        return self._lines(content, rank)

    def _lines(self, content: bytes, rank: int | None) -> int:
        """Read lines of now, as `file`; those after one that is refused, too."""
        where = self._files[-1][0]
        text = np.frombuffer(content, dtype=np.uint8)
        ends = int(np.count_nonzero(text == 10))
        most = ends + 1
        words = int(np.count_nonzero((text == 32) | (text == 9))) + most
        ranks = np.empty(most, dtype=np.int32)
        actions = np.empty(most, dtype=np.int8)
        numbers = np.empty(most, dtype=np.int32)
        start = np.empty(most + 1, dtype=np.int64)
        values = np.empty(words)
        odd = np.empty((words, 3), dtype=np.int64)
        n, why, line, oddities = scan(
            text, NAMES, LENGTHS, MEANT, IS_UNREAD, TENS, ranks, actions, numbers, start, values,
            odd,
        )  # fmt: skip
        is_first = self._line == 0 and self._old is None
        may_be = is_first and (why != FINE or may_be_old(actions[:n], start[: n + 1]))
        if may_be and is_old(content):
            self._old = OldLines()
            self._tell_old(where)
            return self._lines(self._old.as_now(content), rank)
        rest = b""
        if why != FINE:
            self._refuse(f"{where}:{self._line + line}: {_why(content, why, line)}")
            rest = b"".join(content.split(b"\n", line)[line:])
            ends = line
        ranks, actions, start = ranks[:n], actions[:n], start[: n + 1]
        numbers = numbers[:n] + np.int32(self._line)
        values = values[: start[n]]
        for entry, first, last in odd[:oddities].tolist():
            if entry >= len(values):  # on the line that is refused
                break
            word = content[first:last]
            try:
                values[entry] = float(word)
            except ValueError:
                values[entry] = 0.0
                action = int(np.searchsorted(start, entry, side="right")) - 1
                text_of = word.decode("utf-8", errors="replace")
                self._refuse(
                    f"{where}:{numbers[action]}: {ACTIONS[actions[action]]}: {shown(text_of)} is "
                    "not a number"
                )
        self._line += ends
        left_out = 0
        if rank is not None and not (mine := ranks == rank).all():
            left_out = int((~mine).sum())
            counts = np.diff(start)
            values = values[np.repeat(mine, counts)]
            start = np.concatenate(([0], np.cumsum(counts[mine])))
            ranks, actions, numbers = ranks[mine], actions[mine], numbers[mine]
        if len(ranks):
            self.ranks = max(self.ranks, int(ranks.max()) + 1)
        try:
            self._start.append(start[1:] + len(self._values))
            self._whose.append(ranks)
            self._actions.append(actions)
            self._numbers.append(numbers)
            self._values.append(values)
        except OSError as fault:
            raise WorkloadError(self._no_room(fault)) from None
        return left_out + (self._lines(rest, rank) if rest else 0)

    def _refuse(self, text: str) -> None:
        """The trace cannot be read, as a text says; after many such, no more is looked at."""
        self.account.refused(WorkloadError(text))
        self._refused += 1
        if self._refused == MOST_PROBLEMS:
            self.account.problem("what follows was not looked at")
            self.account.check()

    def _tell_old(self, where: str) -> None:
        """Tell of the first old file; all files of a trace are alike."""
        if not any(remark.kind == TAKEN for remark in self.account.found):
            what = "messages have no tag, a wait is for the last request"
            text = f"{where}: lines have the format of before SimGrid 3.20: {what}"
            self.account.tell(TAKEN, text, level=WARNING)

    def _no_room(self, fault: OSError) -> str:
        return (
            f"{self._files[0][0]}: the trace does not fit in {tempfile.gettempdir()} "
            f"({fault.strerror or fault}); name another folder in TMPDIR"
        )


def _why(content: bytes, why: int, line: int) -> str:
    text = content.split(b"\n")[line - 1]
    words = [
        word.decode("utf-8", errors="replace") for word in re.split(rb"[ \t\r]+", text) if word
    ]
    if why == NO_RANK:
        return f"{shown(words[0])} is not a rank; write 'RANK ACTION FIELDS'"
    if why == NO_ACTION:
        return "there is no action after the rank; add one"
    for name in ACTIONS:
        if name.lower() == words[1].lower():
            return f"{shown(words[1])} is not an action; write {name}, as SimGrid does since 3.20"
    instead = INSTEAD.get(words[1].lower())
    if instead is not None:
        return (
            f"{shown(words[1])}: smpirun writes it, but it cannot be replayed; let the program use "
            f"{instead}, and trace it again"
        )
    return f"{shown(words[1])} is not an action; use one of {', '.join(ACTIONS)}"


def write_trace(
    trace: Trace, path: AnyPath, progress: Callable[[int, int], object] | None = None
) -> None:
    """Write a trace to ``path`` in the binary form (``.npz``), whole or not at all.

    progress: called with the bytes that are packed, and with how many there are.
    """
    members = {
        "format": np.array(FORMAT),
        "type_bytes": np.array(trace.type_bytes),
        **{name: getattr(trace, name) for name in ARRAYS},
    }
    total = sum(array.nbytes for array in members.values())
    packed, done = io.BytesIO(), 0
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in members.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array_header_1_0(
                    member, np.lib.format.header_data_from_array_1_0(array)
                )
                content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
                for begin in range(0, len(content), PACK_BYTES):
                    part = content[begin : begin + PACK_BYTES]
                    member.write(part.data)
                    done += len(part)
                    if progress is not None:
                        progress(done, total)
    write_bytes(path, packed.getvalue(), error=WorkloadError)


def _unpacked(content: bytes, where: str, ranks: int | None) -> Trace:
    room = int(PART_OF_MEMORY * available_bytes())
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as members:
            size = sum(member.file_size for member in members.infolist())
        if size > room:
            raise WorkloadError(
                f"{where}: holds {size:,} bytes unpacked, more than the {room:,} that fit in "
                "memory; use a larger machine"
            )
        with np.load(io.BytesIO(content), allow_pickle=False) as packed:
            if "format" not in packed or str(packed["format"]) != FORMAT:
                raise WorkloadError(
                    f"{where}: is an .npz file, but not a trace; write it by `ptaskmodel "
                    "trace pack`"
                )
            arrays: dict[str, Any] = {
                name: packed[name].astype(kind, casting="safe") for name, kind in ARRAYS.items()
            }
            type_bytes = float(packed["type_bytes"])
    except UNREADABLE as fault:
        reason = " ".join(str(fault).split())
        raise WorkloadError(f"{where}: is damaged: {shown(reason)}; write it again") from None
    actions, first, start, values = arrays.values()
    flat = all(array.ndim == 1 for array in arrays.values())
    count = len(first) - 1 if flat else 0
    sound = (
        count >= 1
        and len(start) == len(actions) + 1
        and first[0] == 0
        and first[-1] == len(actions)
        and start[0] == 0
        and start[-1] == len(values)
        and bool((np.diff(first) >= 0).all() and (np.diff(start) >= 0).all())
        and bool(((actions >= 0) & (actions < len(ACTIONS))).all())
        and type_bytes in (1.0, 8.0)
    )
    if not sound:
        raise WorkloadError(f"{where}: is damaged: its arrays do not fit together; write it again")
    _check_ranks(count if ranks is None else ranks, count, where)
    whose = np.repeat(np.arange(count), np.diff(first)).astype(np.int32)
    numbers = np.arange(1, len(actions) + 1).astype(np.int32)
    lines = Lines(((where, 0),), whose, actions, numbers, start, values)
    whole = trace_of(lines, count if ranks is None else ranks, Account(where, WorkloadError))
    return replace(whole, type_bytes=type_bytes)
