"""The actions of time-independent traces: their numbers, names and fields.

Source: the format that SimGrid's ``smpirun -trace-ti`` writes and ``smpirun -replay`` reads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

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
