"""State of the compiled batch loop: record arrays, and one record of all scalars."""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.kernels.records import as_records

INT, SMALL, REAL = "i8", "i4", "f8"
Records = NDArray[np.void]
Ints = NDArray[np.int64]

# Which policy decides; numpy integers, or numba would compile the kernel anew for each.
FCFS, FILLER, EASY, CONSERVATIVE, REDIRECTION = cast("list[int]", list(np.arange(5)))
# Why the kernel came back: all is done (or the date `until` is reached); it did what it was asked
# to; there is no room for the hosts of another date; it goes round in circles at one date; there
# was nothing to decide.
DONE, PAUSED, FULL, CIRCLES, NOTHING = cast("list[int]", list(np.arange(5)))
NOBODY = np.int64(-1)
# Of a job that has no reservation yet.
NO_DATE = -1.0
# Redirection: what the rule of conflict compares of the jobs that qualify.
BY_COUNTER, BY_ESTIMATE, BY_HOSTS, BY_START = cast("list[int]", list(np.arange(4)))
# Entries of a block of expected ends.
BLOCK_ENTRIES = np.int64(64)

JOB = np.dtype(
    [
        ("submit", REAL),
        ("hosts", INT),
        ("estimate", REAL),
        ("duration", REAL),  # until it ends, or is killed at its walltime; inf: not known
        ("walltime", REAL),  # inf: none, or not enforced
        ("rank", INT),  # its place among all jobs in the order of the queue
        ("candidate", INT),  # the same in that of backfilling
        ("start", REAL),
        ("end", REAL),
        ("expected", REAL),  # end, by its estimate
        ("date", REAL),  # its reservation; NO_DATE
        ("number", INT),  # of its start
        ("began", INT),  # at which decision it started
        ("over", INT),  # before which decision it ended
        ("counter", INT),  # redirection: how many shorter jobs it has kept waiting
        ("apart", INT),  # redirection: whether it runs in the group set apart
    ],
    align=True,
)
# A node of a tree of those that wait: the fewest hosts and the smallest estimate below it.
NODE = np.dtype([("hosts", INT), ("estimate", REAL)], align=True)
END = np.dtype([("date", REAL), ("job", INT)], align=True)
EXPECTED = np.dtype([("date", REAL), ("job", SMALL), ("hosts", SMALL)], align=True)
BLOCK = np.dtype([("count", INT), ("hosts", INT)], align=True)
# Consecutive hosts.
RUN = np.dtype([("first", SMALL), ("length", SMALL)], align=True)
SLOT = np.dtype([("date", REAL), ("free", INT)], align=True)
# A date of reservations of no length: the hosts beside those who begin before it and end after it,
# and the most that one of the reservations needs.
INSTANT = np.dtype([("date", REAL), ("free", INT), ("need", INT)], align=True)
# An attempt that redirection has stopped.
LOST = np.dtype(
    [
        ("job", INT),
        ("number", INT),
        ("began", INT),
        ("before", INT),  # the number of the next start
        ("start", REAL),
        ("expected", REAL),
        ("end", REAL),
    ],
    align=True,
)
CLOCK = np.dtype(
    [
        ("now", REAL),
        ("until", REAL),
        ("due", REAL),  # in a simulation: the next submission or walltime, or earlier
        ("policy", INT),
        ("hosts", INT),
        ("picks", INT),  # whether hosts are chosen: first fit
        ("sorts", INT),  # whether candidates have an order of their own
        ("pause", INT),  # after how many decisions to come back
        ("most", INT),  # decisions at one date
        ("leaves", INT),
        ("position", INT),  # the next job to be submitted
        ("free", INT),
        ("waiting", INT),
        ("started", INT),
        ("over", INT),
        ("decisions", INT),
        ("at_date", INT),
        ("n_ends", INT),
        ("n_blocks", INT),
        ("n_spare", INT),
        ("n_runs", INT),
        ("n_pieces", INT),
        ("n_fresh", INT),
        # EASY: what it found out at the last date at which somebody ended.
        ("kept", INT),
        ("head", INT),
        ("extra", INT),
        ("shadow", REAL),
        # Conservative.
        ("n_slots", INT),
        ("n_queue", INT),
        ("depth", INT),  # how many jobs hold reservations at a time; 0: all
        ("n_instants", INT),
        ("brief", INT),  # whether some reservation was of no length
        ("first_date", REAL),  # no reservation is earlier
        # Redirection.
        ("theta", REAL),
        ("rule", INT),
        ("sign", INT),  # of the rule: -1 for the largest
        ("hosts_apart", INT),
        ("free_apart", INT),
        ("n_apart", INT),
        ("n_lost", INT),
        ("n_again", INT),  # of those lost, how many have begun anew
        ("queues", INT),  # whether redirected jobs may wait for hosts
    ],
    align=True,
)


class Redirecting(NamedTuple):
    """What redirection needs: the hosts set apart, theta, and of the rule of conflict what it
    compares and its sign (-1 for the largest); whether redirected jobs may queue.
    """

    hosts: int
    theta: float
    rule: int
    sign: int
    queues: bool


class State(NamedTuple):
    """All that the kernel works on.

    clock: one record. jobs: by submission. by_rank, by_candidate: jobs in the order of the queue
    and of backfilling. queue: a tree over ranks; candidates: one over the order of backfilling.
    ends: a heap. expected, blocks, places, spare: expected ends, see `ends`. runs: free
    hosts, the highest first. order: jobs by number of their starts; first_piece: where the hosts
    of each begin in ``pieces``. fresh: jobs submitted at this date. slots, instants: the calendar
    of conservative; ranks: who holds a reservation, in the order of the queue. apart: who runs in
    the group that redirection sets apart, in no order; lost: the attempts that it stopped, whose
    jobs begin anew in this order.
    """

    clock: Any
    jobs: Any
    by_rank: Ints
    by_candidate: Ints
    queue: Any
    candidates: Any
    ends: Any
    expected: Any
    blocks: Any
    places: Ints
    spare: Ints
    runs: Any
    order: Ints
    first_piece: Ints
    pieces: Any
    fresh: Ints
    slots: Any
    instants: Any
    ranks: Ints
    apart: Ints
    lost: Any


def new_state(
    policy: int,
    hosts: int,
    jobs: Records,
    by_rank: Ints,
    by_candidate: Ints | None,
    *,
    picks: bool,
    pause: int,
    most: int,
    until: float = inf,
    redirecting: Redirecting | None = None,
    depth: int = 0,
) -> State:
    """The state at date 0. jobs: of dtype JOB, with what is known of them beforehand.

    hosts: of the principal group, under redirection. depth: of conservative.
    """
    n = len(jobs)
    leaves = 1 << max(n - 1, 0).bit_length()
    reserves, sorts = (
        policy == CONSERVATIVE,
        policy in (EASY, REDIRECTION) and by_candidate is not None,
    )
    running = min(n, hosts + int((jobs["hosts"] == 0).sum())) + 2
    most_runs = hosts // 2 + 2
    clock = as_records(np.zeros(1, CLOCK))
    given: dict[str, Any] = {
        "until": until,
        "policy": policy,
        "hosts": hosts,
        "picks": picks,
        "sorts": sorts,
        "pause": pause,
        "most": most,
        "leaves": leaves,
        "free": hosts,
        "n_spare": running,
        "n_runs": int(hosts > 0),
        "head": NOBODY,
        "first_date": inf,
        "depth": depth,
    }
    if redirecting is not None:
        apart, *rest = redirecting
        given |= zip(("theta", "rule", "sign", "queues"), rest, strict=True)
        given["hosts_apart"] = given["free_apart"] = apart
    for name, value in given.items():
        clock[name] = value
    again = 0 if redirecting is None else n  # each job is redirected at most once
    runs = as_records(np.empty(most_runs, RUN))
    runs[0] = (0, hosts)
    return State(
        clock,
        as_records(jobs),
        by_rank,
        by_rank if by_candidate is None else by_candidate,
        _nobody(1 if reserves and depth == 0 else 2 * leaves),
        _nobody(2 * leaves if sorts else 1),
        as_records(np.empty(n + 1, END)),
        as_records(np.empty(running * int(BLOCK_ENTRIES), EXPECTED)),
        as_records(np.empty(running, BLOCK)),
        np.empty(running, np.int64),
        np.arange(running),
        runs,
        np.empty(n + again, np.int64),
        np.zeros(n + again + 1, np.int64),
        as_records(np.empty(3 * n + most_runs + 2 if picks else 1, RUN)),
        np.empty(n, np.int64),
        as_records(np.empty(2 * n + 8 if reserves else 1, SLOT)),
        as_records(np.empty(n + 1 if reserves else 1, INSTANT)),
        np.empty(n + 1 if reserves else 1, np.int64),
        np.empty(again + 1, np.int64),
        as_records(np.empty(again + 1, LOST)),
    )


def with_more_pieces(state: State) -> State:
    """The same with room for the hosts of more jobs."""
    pieces = as_records(np.empty(len(state.pieces) * 3 // 2 + 2, RUN))
    pieces[: len(state.pieces)] = state.pieces
    return state._replace(pieces=pieces)


def _nobody(nodes: int) -> Records:
    """Return a tree in which no job waits."""
    tree = np.empty(nodes, NODE)
    tree["hosts"] = np.iinfo(np.int64).max
    tree["estimate"] = inf
    return as_records(tree)
