"""Time-independent traces of MPI applications as data: what each rank does, in order.

`trace_of` checks lines that a reader read; `trace_of_actions` makes a trace in Python;
`write_text_trace` writes one as text.

SimGrid's ``smpirun -trace-ti`` writes -333 both for a message of any source and for one of none
(MPI_PROC_NULL). `settle` decides by the number of messages sent to a rank, beyond those with a
known source. If it equals the number that the rank receives with -333, each of these is of any
source. If it is 0, each is of none.

`Spooled` arrays grow piece by piece, in memory while small, then in an unnamed file, for traces
larger than memory. Pages of the file are read when they are needed; `let_go` releases them.
"""

from __future__ import annotations

import mmap
import os
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ptaskmodel.errors import WorkloadError, shown
from ptaskmodel.files import whole_file
from ptaskmodel.remarks import MOST, Account, Remark
from ptaskmodel.workload.actions import (
    ACTIONS,
    ALLGATHERV,
    ANY_SOURCE,
    ANY_TAG,
    DATATYPE_BYTES,
    FIELDS,
    IALLGATHERV,
    INIT,
    IRECV,
    ISEND,
    NO_RANK,
    NUMBER,
    RECV,
    SEND,
    SENDRECV,
    TEST,
    UNDEFINED,
    WAIT,
    fields_of,
    least_fields,
)

IN_MEMORY_BYTES = 1 << 23
SLICE = 1 << 16  # elements looked at together


class Spooled:
    """An array of one dimension that grows at its end.

    Raises OSError where there is no room for its file (in the folder for temporary files).
    """

    def __init__(self, dtype: DTypeLike) -> None:
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self._pieces: list[NDArray[Any]] = []
        self._size = 0
        self._file: IO[bytes] | None = None

    def __len__(self) -> int:
        return self._size

    def append(self, piece: NDArray[Any]) -> None:
        """Add ``piece``, an array of the same type that is not changed later, at the end."""
        self._size += len(piece)
        if self._file is None and self._size * self.dtype.itemsize > IN_MEMORY_BYTES:
            import tempfile

            self._file = tempfile.TemporaryFile()  # noqa: SIM115, open as long as it grows
            weakref.finalize(self, self._file.close)
            for earlier in self._pieces:
                self._file.write(earlier.data)
            self._pieces.clear()
        if self._file is None:
            base = piece.base
            is_part = isinstance(base, np.ndarray) and base.size > 2 * piece.size
            self._pieces.append(piece.copy() if is_part else piece)
        elif len(piece):
            self._file.write(np.ascontiguousarray(piece).data)

    def whole(self) -> NDArray[Any]:
        """The array, which can be written to."""
        if self._file is None:
            if len(self._pieces) == 1:
                return self._pieces[0]
            return np.concatenate([np.empty(0, dtype=self.dtype), *self._pieces])
        self._file.flush()
        return np.frombuffer(mmap.mmap(self._file.fileno(), 0), dtype=self.dtype)


def let_go(array: NDArray[Any]) -> None:
    """Give the memory of an array back that is in a file; it is read again where it is needed."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


IntArray = NDArray[np.int64]
Ranks = NDArray[np.int32]
FloatArray = NDArray[np.float64]
SENDRECV_TAG = 0
LARGEST = 2.0**53
EXPECTED = {
    "count": "give a number of elements, 0 or more (2^53 at most)",
    "any count": "give a number of elements",
    "rank": "give a rank, 0 to {last}",
    "sender": "give a rank, 0 to {last}, or -555 for any, or -666 for none",
    "receiver": "give a rank, 0 to {last}, or -666 for none",
    "tag": "give a whole number",
    "any tag": "give a whole number (-444 for any)",
    "flop": "give a finite amount, 0 or more",
    "seconds": "give a finite time, 0 s or more",
    "type": f"give the number of a datatype, -1 to {len(DATATYPE_BYTES) - 1}",
}

STAND_FOR: dict[str, tuple[int, ...]] = {
    "rank": (),
    "sender": (ANY_SOURCE, NO_RANK, UNDEFINED),
    "receiver": (NO_RANK, UNDEFINED),
}

# An action: its name, then its fields.
Action = tuple[str | float, ...]


def settle(
    actions: NDArray[np.int8], whose: Ranks, start: IntArray, values: NDArray[np.float64]
) -> int:
    """Replace each -333 in ``values`` by what it stands for.

    Returns -1, or the number of an action that asks for a message of which that is not clear.
    """
    rows, ranks, tags, fields = _receives(actions, whose, start, values)
    sources = values[fields]
    open_ = sources == UNDEFINED
    sent_to, sent_tags = _sends(actions, start, values)
    # Where a rank takes any tag, messages of all tags are counted together.
    any_tag = np.isin(ranks, ranks[tags == ANY_TAG])
    at_any_tag = np.isin(sent_to, ranks[tags == ANY_TAG])
    groups = np.stack((ranks, np.where(any_tag, 0.0, tags)), axis=1)
    come = np.stack((sent_to, np.where(at_any_tag, 0.0, sent_tags)), axis=1)
    both, number = np.unique(np.concatenate((groups, come)), axis=0, return_inverse=True)
    number = number.reshape(-1)
    group_of, come_of = number[: len(groups)], number[len(groups) :]
    asked = np.bincount(group_of[open_], minlength=len(both))
    told = np.bincount(group_of[~open_ & (sources != NO_RANK)], minlength=len(both))
    left = np.bincount(come_of, minlength=len(both)) - told
    unclear = (asked > 0) & (left > 0) & (left < asked)
    if unclear.any():
        return int(rows[open_ & unclear[group_of]][0])
    meant = np.where(left > 0, ANY_SOURCE, NO_RANK)[group_of]
    values[fields[open_]] = meant[open_]
    _settle_waits(actions, whose, start, values, (ranks, tags, meant, open_))
    to = np.concatenate((start[_rows(actions, SEND, ISEND)], start[_rows(actions, SENDRECV)] + 1))
    values[to[values[to] == UNDEFINED]] = NO_RANK
    return -1


def _rows(actions: NDArray[np.int8], *kinds: int) -> IntArray:
    return np.flatnonzero(np.isin(actions, kinds))


def _receives(
    actions: NDArray[np.int8], whose: Ranks, start: IntArray, values: NDArray[np.float64]
) -> tuple[IntArray, Ranks, NDArray[np.float64], IntArray]:
    """Of each receive its action, its rank, its tag, and where its source stands."""
    alone, both = _rows(actions, RECV, IRECV), _rows(actions, SENDRECV)
    rows = np.concatenate((alone, both))
    tags = np.concatenate((values[start[alone] + 1], np.full(len(both), float(SENDRECV_TAG))))
    return rows, whose[rows], tags, np.concatenate((start[alone], start[both] + 3))


def _sends(
    actions: NDArray[np.int8], start: IntArray, values: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of each message that is sent the rank that it goes to, and its tag."""
    alone, both = _rows(actions, SEND, ISEND), _rows(actions, SENDRECV)
    to = np.concatenate((values[start[alone]], values[start[both] + 1]))
    tags = np.concatenate((values[start[alone] + 1], np.full(len(both), float(SENDRECV_TAG))))
    return to[to >= 0], tags[to >= 0]


def _settle_waits(
    actions: NDArray[np.int8],
    whose: Ranks,
    start: IntArray,
    values: NDArray[np.float64],
    found: tuple[Ranks, NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]],
) -> None:
    """Waits and tests name what they are for as the receives with their tag do."""
    ranks, tags, meant, open_ = found
    rows = _rows(actions, WAIT, TEST)
    tags_of_waits = values[start[rows] + 2]
    rows = rows[(tags_of_waits >= 0) | (tags_of_waits == ANY_TAG)]  # not of collectives
    to = start[rows] + 1
    values[to[values[to] == UNDEFINED]] = NO_RANK
    rows = rows[values[start[rows]] == UNDEFINED]
    of_any = open_ & (meant == ANY_SOURCE)
    pairs = np.stack((ranks[of_any], tags[of_any]), axis=1)
    asked = np.stack((whose[rows], values[start[rows] + 2]), axis=1)
    _, number = np.unique(np.concatenate((pairs, asked)), axis=0, return_inverse=True)
    number = number.reshape(-1)
    is_any = np.isin(number[len(pairs) :], number[: len(pairs)])
    values[start[rows]] = np.where(is_any, ANY_SOURCE, NO_RANK)


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """What the ranks of an application do, without dates.

    Actions of rank r are ``first[r]:first[r + 1]``, their kinds (see `actions`) in ``actions``;
    the fields of action k are ``values[start[k]:start[k + 1]``. type_bytes: size of an element
    where no datatype is given.
    """

    actions: NDArray[np.int8]
    first: IntArray
    start: IntArray
    values: FloatArray
    type_bytes: float
    origin: str = ""
    remarks: tuple[Remark, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """The texts of the remarks."""
        return tuple(remark.text for remark in self.remarks)

    @property
    def ranks(self) -> int:
        return len(self.first) - 1

    def __len__(self) -> int:
        return len(self.actions)

    def counts(self) -> dict[str, int]:
        """How many actions there are of each kind that occurs."""
        counts = np.zeros(len(ACTIONS), dtype=np.int64)
        for part in self.parts():
            counts += np.bincount(self.actions[part], minlength=len(ACTIONS))
        return {name: n for name, n in zip(ACTIONS, counts.tolist(), strict=True) if n}

    def parts(self) -> Iterator[slice]:
        """All actions, so many at a time that looking at them takes little memory."""
        for first in range(0, len(self), SLICE):
            yield slice(first, min(first + SLICE, len(self)))
            self.let_go()

    def let_go(self) -> None:
        """Give the memory of a large trace back; what is needed of it is read again."""
        for array in (self.actions, self.start, self.values):
            let_go(array)


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Actions as they stand in files, one after the other: the rank and the line of each.

    files: the name of each file, and how many actions stand before its own.
    """

    files: tuple[tuple[str, int], ...]
    ranks: NDArray[np.int32]
    actions: NDArray[np.int8]
    numbers: NDArray[np.int32]
    start: IntArray
    values: FloatArray

    def place(self, action: int) -> str:
        where = next(name for name, before in reversed(self.files) if before <= action)
        return f"{where}:{self.numbers[action]}"

    def parts(self) -> Iterator[tuple[int, Lines]]:
        """So many actions at a time that looking at them takes little memory; how many before."""
        for first in range(0, len(self.actions), SLICE):
            last = first + SLICE
            arrays = (self.ranks[first:last], self.actions[first:last], self.numbers[first:last])
            files = tuple((name, before - first) for name, before in self.files)
            yield first, Lines(files, *arrays, self.start[first : last + 1], self.values)
            for array in (self.ranks, self.actions, self.numbers, self.start, self.values):
                let_go(array)


def trace_of(lines: Lines, ranks: int, account: Account) -> Trace:
    """The trace of what stands in files, checked. Raises WorkloadError with file and line.

    account: what is told of the trace.
    """
    first_type = 1.0
    known: set[bool] = set()
    beyond = 0
    in_order, is_open, last_rank = True, False, 0
    for _, part in lines.parts():
        inits = np.flatnonzero(part.actions == INIT)
        has_field = np.diff(part.start)[inits] > 0
        known |= set(has_field.tolist())
        if len(inits):
            first_type = 8.0 if has_field[-1] else 1.0
        beyond += _check(part, ranks, account)
        in_order &= bool(part.ranks[0] >= last_rank and (np.diff(part.ranks) >= 0).all())
        last_rank = int(part.ranks[-1])
        is_open |= bool((part.values[part.start[0] : part.start[-1]] == UNDEFINED).any())
    account.check()
    if len(known) > 1:
        account.assumed(
            "some ranks call init with a field and others without; elements are taken as "
            f"{first_type:g} bytes"
        )
    if beyond:
        account.unused(f"ignored {beyond:,} surplus fields of actions")
    whose, actions, start, values = lines.ranks, lines.actions, lines.start, lines.values
    if not in_order:
        order = np.argsort(whose, kind="stable")
        counts = np.diff(start)[order]
        places = np.arange(len(values)) + np.repeat(
            start[order] - (np.cumsum(counts) - counts), counts
        )
        whose, actions, values = whose[order], actions[order], values[places]
        start = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    keys = np.arange(ranks + 1, dtype=whose.dtype)  # of another type, all ranks would be copied
    first = np.searchsorted(whose, keys).astype(np.int64)
    for text in _idle(first):
        account.assumed(text)
    unclear = settle(actions, whose, start, values) if is_open else -1
    if unclear >= 0:
        rank = int(whose[unclear])
        own = np.flatnonzero(lines.ranks == rank)[unclear - int(first[rank])]
        raise WorkloadError(
            f"{lines.place(int(own))}: {ACTIONS[actions[unclear]]}: -333 "
            "is ambiguous (any source, or MPI_PROC_NULL), and it receives more messages than "
            "are sent; write -555 for any source, -666 for MPI_PROC_NULL"
        )
    return Trace(actions, first, start, values, first_type, account.file, account.remarks)


def _idle(first: IntArray) -> list[str]:
    """A note on the ranks that have no actions, if there are any."""
    idle = np.flatnonzero(np.diff(first) == 0)
    if len(idle) < 2:
        return [f"rank {rank} has no actions" for rank in idle]
    if idle[-1] - idle[0] + 1 == len(idle):
        return [f"ranks {idle[0]} to {idle[-1]} have no actions"]
    return [f"{len(idle):,} ranks have no actions, the first of them rank {idle[0]}"]


def _check(lines: Lines, ranks: int, account: Account) -> int:
    """How many fields there are beyond those that their actions have.

    Lines whose fields make no sense are problems of the account.
    """
    counts = np.diff(lines.start)
    beyond = 0
    there = np.bincount(lines.actions, minlength=len(ACTIONS)).tolist()
    for action, fields in FIELDS.items():
        if not there[action]:
            continue
        rows = np.flatnonzero(lines.actions == action)
        names = fields_of(action, ranks)
        least = least_fields(action, ranks)
        for row in rows[counts[rows] < least][:MOST]:
            needs = " ".join(name.replace("*", "each rank's ") for name in fields.names)
            given = int(counts[row])
            what = (
                f"{lines.place(row)}: {ACTIONS[action]} has {given} fields of the "
                f"{least} it needs on {ranks} rank{'s' * (ranks != 1)} ({needs})"
                + _of_fewer(action, given, least)
            )
            account.refused(WorkloadError(what))
        long = rows[counts[rows] > len(names)]
        if any(name.startswith("*") for name in fields.names):
            for row in long[:MOST]:
                what = (
                    f"{lines.place(row)}: {ACTIONS[action]} has {int(counts[row])} fields, "
                    f"{len(names)} at most on {ranks} rank{'s' * (ranks != 1)}; give a count for "
                    "each rank"
                )
                account.refused(WorkloadError(what))
        else:
            beyond += int((counts[long] - len(names)).sum())
        if action in (ALLGATHERV, IALLGATHERV):
            # With displacements alone: as many further fields as ranks. No replay needs them.
            typed = (counts[rows] <= least + 2) | (counts[rows] > least + ranks)
            _check_fields(lines, rows[~typed], counts, (names[:least], ranks), account)
            rows = rows[typed]
        _check_fields(lines, rows, counts, (names, ranks), account)
    return beyond


def _of_fewer(action: int, given: int, least: int) -> str:
    """What more to say of too few fields, if a communicator of fewer ranks has as many."""
    if not least_fields(action, 1) <= given < least or least == least_fields(action, 1):
        return ""
    return "; a collective on fewer ranks cannot be replayed, as traces do not name its ranks"


def _check_fields(
    lines: Lines,
    rows: IntArray,
    counts: IntArray,
    fields: tuple[Sequence[str], int],
    account: Account,
) -> None:
    """Tell values that make no sense. fields: their names, and how many ranks there are."""
    names, ranks = fields
    begin, given = lines.start[rows], counts[rows]
    for k, name in enumerate(names):
        has = given > k
        there, values = rows[has], lines.values[begin[has] + k]
        for at in np.flatnonzero(_wrong(name, values, ranks))[:MOST].tolist():
            kind = ACTIONS[lines.actions[there[at]]]
            remedy = EXPECTED[name].format(last=ranks - 1)
            if name in STAND_FOR and LARGEST > values[at] >= ranks:
                remedy += ". Its trace is missing: give those of all ranks"
            what = (
                f"{lines.place(int(there[at]))}: {kind}: field {k + 1} is {values[at]:g}; {remedy}"
            )
            account.refused(WorkloadError(what))


def _wrong(name: str, values: FloatArray, ranks: int) -> NDArray[np.bool_]:
    largest = np.finfo(np.float64).max if name in ("flop", "seconds") else LARGEST
    if name in ("count", "flop", "seconds"):
        return ~((values >= 0) & (values <= largest))
    whole = values == np.floor(values)
    if name in STAND_FOR:
        wrong = ~(whole & (values >= 0) & (values < ranks))
        return wrong & ~np.isin(values, STAND_FOR[name]) if wrong.any() else wrong
    finite = np.abs(values) <= largest
    if name in ("tag", "any tag"):
        wrong = ~(finite & whole)
        return wrong if name == "any tag" else wrong | (values == ANY_TAG)
    if name == "type":
        return ~(whole & (values >= -1) & (values < len(DATATYPE_BYTES)))
    return ~finite


def trace_of_actions(ranks: Sequence[Iterable[Action]], origin: str = "trace") -> Trace:
    """The trace in which rank r does ``ranks[r]``, such as ``("send", 1, 0, 1e6)``, in order.

    origin: what messages call it. Without ``("init", ...)``, or with one of no field, sizes are in
    bytes.

    Raises WorkloadError, with the number of the action, for one that is unknown or makes no sense.
    """
    whose: list[int] = []
    kinds: list[int] = []
    values: list[float] = []
    start = [0]
    for rank, actions in enumerate(ranks):
        for name, *fields in actions:
            if name not in NUMBER:
                known = ", ".join(ACTIONS)
                raise WorkloadError(f"{origin}: {shown(name)} is not an action; use one of {known}")
            whose.append(rank)
            kinds.append(NUMBER[str(name)])
            values += map(float, fields)
            start.append(len(values))
    lines = Lines(
        ((origin, 0),),
        np.array(whose, dtype=np.int32),
        np.array(kinds, dtype=np.int8),
        np.arange(1, len(kinds) + 1, dtype=np.int32),
        np.array(start, dtype=np.int64),
        np.array(values),
    )
    return trace_of(lines, len(ranks), Account(origin, WorkloadError))


def write_text_trace(trace: Trace, path: str | os.PathLike[str]) -> None:
    """Write a trace as text to ``path``, all ranks in one file, whole or not at all.

    It is gzipped if the name ends in ``.gz``.
    `read_trace` reads it, and ``smpirun -replay`` a list that names it. Raises WorkloadError.
    """
    with whole_file(path, error=WorkloadError) as stream:
        for rank in range(trace.ranks):
            first, last = int(trace.first[rank]), int(trace.first[rank + 1])
            begin = trace.start[first : last + 1].tolist()
            values = trace.values[begin[0] : begin[-1]].tolist()
            for k, kind in enumerate(trace.actions[first:last].tolist()):
                fields = values[begin[k] - begin[0] : begin[k + 1] - begin[0]]
                words = [str(rank), ACTIONS[kind], *map(_number, fields)]
                stream.write(" ".join(words) + "\n")


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
