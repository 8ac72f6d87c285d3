"""The actions of time-independent traces: their numbers, names and fields, of today and of before.

Source: the format that SimGrid's ``smpirun -trace-ti`` writes and ``smpirun -replay`` reads.
`ti_trace` turns lines of before SimGrid 3.20 into those of now; source: SimGrid's change log of
3.20 (2018), which gave messages tags.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ACTIONS = (
    "init",
    "finalize",
    "comm_size",
    "comm_split",
    "comm_dup",
    "location",
    "compute",
    "sleep",
    "send",
    "isend",
    "recv",
    "irecv",
    "sendRecv",
    "wait",
    "test",
    "waitall",
    "barrier",
    "bcast",
    "reduce",
    "allreduce",
    "scan",
    "exscan",
    "reducescatter",
    "alltoall",
    "alltoallv",
    "gather",
    "allgather",
    "gatherv",
    "allgatherv",
    "scatter",
    "scatterv",
    "waitAny",
    "ibarrier",
    "ibcast",
    "ireduce",
    "iallreduce",
    "iscan",
    "iexscan",
    "ireducescatter",
    "ialltoall",
    "ialltoallv",
    "igather",
    "iallgather",
    "igatherv",
    "iallgatherv",
    "iscatter",
    "iscatterv",
)
NUMBER = {name: number for number, name in enumerate(ACTIONS)}

# Their names as numbers, for kernels: numpy integers, as those in `engine.state`.
(
    INIT, FINALIZE, COMM_SIZE, COMM_SPLIT, COMM_DUP, LOCATION, COMPUTE, SLEEP, SEND, ISEND, RECV,
    IRECV, SENDRECV, WAIT, TEST, WAITALL, BARRIER, BCAST, REDUCE, ALLREDUCE, SCAN, EXSCAN,
    REDUCESCATTER, ALLTOALL, ALLTOALLV, GATHER, ALLGATHER, GATHERV, ALLGATHERV, SCATTER, SCATTERV,
    WAITANY, IBARRIER, IBCAST, IREDUCE, IALLREDUCE, ISCAN, IEXSCAN, IREDUCESCATTER, IALLTOALL,
    IALLTOALLV, IGATHER, IALLGATHER, IGATHERV, IALLGATHERV, ISCATTER, ISCATTERV,
) = np.arange(len(ACTIONS)).tolist()  # fmt: skip

# Whose fields say nothing that is simulated; of init, only whether there is one.
UNREAD = (INIT, FINALIZE, COMM_SIZE, COMM_SPLIT, COMM_DUP, LOCATION)

# What stands for a rank: any source, no rank (MPI_PROC_NULL), or one of both (SimGrid writes its
# MPI_UNDEFINED for either); and for a tag, any tag.
ANY_SOURCE, NO_RANK, UNDEFINED, ANY_TAG = -555, -666, -333, -444

# A non-blocking collective has the number of the blocking one, and this more.
NON_BLOCKING = IBARRIER - BARRIER

# The tag that ``smpirun -trace-ti`` writes where a rank waits for a non-blocking collective, or
# tests it, by the collective. All are below those of messages.
COLLECTIVE_TAGS = {
    IBARRIER: -779, IBCAST: -3335, IREDUCE: -113, IALLREDUCE: -4446, ISCAN: -889, IEXSCAN: -889,
    IREDUCESCATTER: -890, IALLTOALL: -1113, IALLTOALLV: -1001, IGATHER: -446, IALLGATHER: -557,
    IGATHERV: -2224, IALLGATHERV: -668, ISCATTER: -224, ISCATTERV: -335,
}  # fmt: skip

# Bytes of the datatypes by their number in a trace.
DATATYPE_BYTES = np.array(
    [
        8, 4, 1, 2, 8, 4, 1, 8, 1, 1, 2, 4, 8, 8, 16, 4, 1, 1, 2, 4, 8, 1, 2, 4, 8, 8, 16, 32, 8, 8,
        8, 16, 16, 8, 8, 8, 16, 16, 4, 4, 8, 16, 8, 16, 16, 1, 2, 4, 8, 16, 32, 1, 8, 16, 32, 0, 0,
        1, 8, 8,
    ],
    dtype=np.float64,
)  # fmt: skip


class Fields(NamedTuple):
    """The fields of an action. What is ``*`` is there once for each rank.

    A name says what it is: a count (of elements), a rank, a sender (a rank, any or
    none), a receiver (a rank, or none), a tag, any
    tag (or all), flop, seconds, a datatype (type).
    optional: how many of them, from the end, may be missing.
    """

    names: tuple[str, ...]
    optional: int = 0


FIELDS: dict[int, Fields] = {
    COMPUTE: Fields(("flop",)),
    SLEEP: Fields(("seconds",)),
    SEND: Fields(("receiver", "tag", "count", "type"), 1),
    ISEND: Fields(("receiver", "tag", "count", "type"), 1),
    RECV: Fields(("sender", "any tag", "any count", "type"), 1),
    IRECV: Fields(("sender", "any tag", "any count", "type"), 1),
    SENDRECV: Fields(("count", "receiver", "count", "sender", "type", "type")),
    WAIT: Fields(("sender", "receiver", "any tag")),
    TEST: Fields(("sender", "receiver", "any tag")),
    WAITALL: Fields(("any count",), 1),
    WAITANY: Fields(("any count",), 1),
    BARRIER: Fields(()),
    BCAST: Fields(("count", "rank", "type"), 2),
    REDUCE: Fields(("count", "flop", "rank", "type"), 2),
    ALLREDUCE: Fields(("count", "flop", "type"), 1),
    SCAN: Fields(("count", "flop", "type"), 1),
    EXSCAN: Fields(("count", "flop", "type"), 1),
    REDUCESCATTER: Fields(("*count", "flop", "type"), 1),
    ALLTOALL: Fields(("count", "count", "type", "type"), 2),
    ALLTOALLV: Fields(("count", "*count", "count", "*count", "type", "type"), 2),
    GATHER: Fields(("count", "count", "rank", "type", "type"), 3),
    ALLGATHER: Fields(("count", "count", "type", "type"), 2),
    GATHERV: Fields(("count", "*count", "rank", "type", "type"), 3),
    ALLGATHERV: Fields(("count", "*count", "type", "type", "*any count"), 3),
    SCATTER: Fields(("count", "count", "rank", "type", "type"), 3),
    SCATTERV: Fields(("*count", "count", "rank", "type", "type"), 3),
}
FIELDS |= {action + NON_BLOCKING: FIELDS[action] for action in range(BARRIER, SCATTERV + 1)}


def fields_of(action: int, ranks: int) -> list[str]:
    """Return the names of all fields of an `action` (number) on so many `ranks`.

    A field that each rank has is repeated.
    """
    names: list[str] = []
    for name in FIELDS[action].names:
        names += [name.removeprefix("*")] * (ranks if name.startswith("*") else 1)
    return names


def least_fields(action: int, ranks: int) -> int:
    """Return the least number of fields of an `action` (number) on so many `ranks`."""
    fields = FIELDS[action]
    optional = fields.names[len(fields.names) - fields.optional :]
    return len(fields_of(action, ranks)) - sum(
        ranks if name.startswith("*") else 1 for name in optional
    )


HEAD = 1 << 16  # bytes that say what a file is

# A line that only traces of before SimGrid 3.20 have: a rank p0, a name with capitals that is not
# one of now, a message without a tag, a wait for no request.
_CAPITALS = rb"Isend|Irecv|waitAll|[a-z]++(?:Reduce|To|Gather|Scatter)[A-Za-z]*|reduceScatter"
OLD_LINE = re.compile(
    rb"^[ \t]*+(?:p\d++[ \t]+[A-Za-z_]+|\d++[ \t]++(?:(?:" + _CAPITALS + rb")\b|"
    rb"(?:send|recv)[ \t]++\d++(?:[ \t]++[-+.\deE]++)?[ \t\r]*+$|wait[ \t\r]*+$))",
    re.MULTILINE,
)
MESSAGES = (b"send", b"recv", b"isend", b"irecv")
# The names of now, by those in lower case.
NOW = {name.lower().encode(): name.encode() for name in ACTIONS}


class OldLines:
    """Turn lines of before SimGrid 3.20 (2018) into those of now.

    Ranks may be called p0, p1; names have capitals; messages have no tag; a wait, or a test, names
    no request: it is for the last that its rank has open.
    """

    def __init__(self) -> None:
        self._open: dict[bytes, list[tuple[bytes, bytes]]] = {}

    def as_now(self, content: bytes) -> bytes:
        """The lines of a piece of `content`, as many as it has."""
        return b"\n".join(map(self._line, content.split(b"\n")))

    def _line(self, line: bytes) -> bytes:
        words = line.split()
        if len(words) < 2 or words[0].startswith(b"#"):
            return line
        rank, action = words[0].removeprefix(b"p"), NOW.get(words[1].lower(), words[1])
        fields = words[2:]
        if action in MESSAGES and fields:
            peer = fields[0].removeprefix(b"p")
            size = fields[1:2] or [b"-1"]
            if action in (b"isend", b"irecv"):
                ends = (rank, peer) if action == b"isend" else (peer, rank)
                self._open.setdefault(rank, []).append(ends)
            fields = [peer, b"0", *size, *fields[2:]]
        elif action in (b"wait", b"test") and not fields and self._open.get(rank):
            fields = [*self._open[rank][-1], b"0"]
            if action == b"wait":
                self._open[rank].pop()
        elif action == b"waitall":
            self._open.pop(rank, None)
        return b" ".join([rank, action, *fields])


def may_be_old(actions: NDArray[np.int8], start: NDArray[np.int64]) -> bool:
    """Whether a line has as few fields as those of before SimGrid 3.20.

    actions: int8 array, of each line; start: int64 array, where its fields begin, and their end.
    """
    fields = np.diff(start)
    message = (actions == SEND) | (actions == RECV)
    return bool((message & (fields < 3)).any() or ((actions == WAIT) & (fields == 0)).any())


def is_old(content: bytes) -> bool:
    """Whether the trace that `content` begins has lines that only old ones have."""
    whole = content[:HEAD] if len(content) <= HEAD else content[: content.rfind(b"\n", 0, HEAD)]
    return OLD_LINE.search(whole) is not None
