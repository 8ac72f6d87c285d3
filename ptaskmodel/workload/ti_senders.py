"""What SimGrid writes as -333 into a trace: a message of any source, or of none (MPI_PROC_NULL)?

Its ``smpirun -trace-ti`` writes both so. But messages that are sent are received: where as many
come to a rank, beyond those whose source is told, as it asks for with -333, each is of any source;
where none comes, each is of none.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.workload.ti_actions import (
    ANY_SOURCE,
    ANY_TAG,
    IRECV,
    ISEND,
    NO_RANK,
    RECV,
    SEND,
    SENDRECV,
    TEST,
    UNDEFINED,
    WAIT,
)

IntArray = NDArray[np.int64]
Ranks = NDArray[np.int32]
SENDRECV_TAG = 0


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
