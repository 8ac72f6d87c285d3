"""The state of a replay: applications, their ranks, requests and messages in flight."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ptaskmodel.engine.queue import EMPTY, LIST
from ptaskmodel.kernels.records import INT, REAL, SMALL_INT, in_lines, numbers, records
from ptaskmodel.mpi.collectives.names import CHOICES
from ptaskmodel.workload.actions import ACTIONS, COLLECTIVE_TAGS, DATATYPE_BYTES

# What a rank does: it is in the list of those to go on; computes; sleeps; waits for a message of
# its trace, for all of its present action, for all of its trace; has ended; waits for mailboxes.
READY, COMPUTING, SLEEPING, IN_WAIT, IN_ALL, IN_WAITALL, ENDED, IN_LOCK = numbers(8)

# Where a message is: its sender, or its receiver, waits for the other; it is under way; it is over.
SENT, AWAITED, FLYING, OVER = numbers(4)

# Of a request: its message is under way (or has yet to be), is over, or a test has found it so.
UNDER_WAY, IS_OVER, TESTED = numbers(3)

# Who waits for an end of a message, if not a request: nobody, or the present action of its rank.
NOBODY, ACTION = numbers(-2, 0)

# What a rank waits for that waits for whichever of its requests is over first: of those of its
# present collective, or of all.
WHICHEVER, WHICHEVER_OF_ALL = numbers(-4, -2)

# The sender of a message that its receiver takes from whoever sends it.
ANYBODY = numbers(-2, -1)[0]
# Tags of collectives begin here and go down: traces have none below -2**53.
COLLECTIVES = numbers(-(2**60), 1 - 2**60)[0]

# How far a rank is with the message of its step: the overhead has been slept, the mailboxes have
# been locked, one of them, or both, looked into, it has been posted but they are locked still, or
# it has been posted. MISSED: a message that it asked for is not there.
NOT_YET, PAID, LOCKED, PROBED, LOOKED, UNLOCKING, POSTED, MISSED = numbers(8)

# Why the loop returns, besides the reasons of the engine.
(
    NEEDS_PATTERN,
    GROW_MESSAGES,
    GROW_REQUESTS,
    LOST_RANK,
    TOLD_FULL,
    NEEDS_RANKS,
    NEEDS_ROUTE,
    NO_STEPS,
) = numbers(100, 108)

APP = np.dtype(
    [
        ("first", INT),  # of its ranks
        ("ranks", INT),
        ("type_bytes", REAL),
        ("unfinished", INT),  # ranks that have not ended
        ("finished", REAL),  # date of its last rank's end
        ("task", INT),  # what its front end knows it by, -1: none, its place is free
        ("next", INT),  # in the list of those that are over
    ],
    align=True,
)

RANK = np.dtype(
    [
        ("state", INT),
        ("app", INT),
        ("host", INT),
        ("action", INT),  # the present one
        ("last", INT),  # the one after its last
        ("phase", INT),  # of the action
        ("step", INT),  # of the phase
        ("algorithm", INT),  # of the action
        ("posted", INT),  # of the next message: NOT_YET, ..., POSTED
        ("taken", INT),  # 1: its mailboxes are locked
        ("line", INT),  # the first of those who wait for that, -1: nobody
        ("behind", INT),  # the next in such a line
        ("next", INT),  # in the list of those to go on
        ("awaited", INT),  # request that it waits for, or one of WHICHEVER...
        ("waits", INT),  # number of its present wait, in the order in which waits begin
        ("undone", INT),  # messages of its action that are under way
        ("first_request", INT),  # its requests, oldest first
        ("last_request", INT),
        ("open", INT),  # requests that are under way
        ("answers", INT),  # by turns: what it has asked for, or will, that is over
        ("poll", REAL),  # s that it computes next to look if a message is there
        ("slot", INT),  # of what it computes, -1: nothing
        ("wake", INT),  # end of its sleep, -1: none
        ("held", INT),  # the state in which it does not go on, READY: it does
        ("since", REAL),
        ("cause", INT),  # the last message that let it go on
        ("told", INT),  # number of its last span, -1: none
        ("began", REAL),  # the present action
        ("ended", REAL),
        ("takes_any", INT),  # 1: it receives from anybody, or with any tag
    ],
    align=True,
)

# One cache line.
MESSAGE = in_lines(
    [
        ("state", SMALL_INT),
        ("detached", SMALL_INT),  # 1: its sender did not wait
        ("slot", SMALL_INT),  # activity, -1: none
        ("next", SMALL_INT),  # in its bucket, or among the free
        ("source", INT),  # ranks; ANYBODY while it is awaited so; -1: its place is free
        ("target", INT),
        ("tag", INT),
        ("bytes", REAL),
        ("sender", INT),  # request, NOBODY or ACTION
        ("receiver", INT),
    ]
)

# What is kept of a message that travels, to be told, if it is.
DEPARTURE = np.dtype(
    [
        ("number", INT),  # in the order in which they begin to travel
        ("began", REAL),  # to travel
        ("latency", REAL),  # s before its bytes flow
        ("after", INT),  # number of the last span of the rank that let it begin
    ],
    align=True,
)

REQUEST = np.dtype(
    [
        ("over", INT),
        ("detached", INT),  # 1: it is over since it was posted
        ("of_action", INT),  # 1: a message that the present action receives, kept for its cost
        ("left", INT),  # its messages that are not over; a non-blocking collective has several
        ("source", INT),  # ranks
        ("target", INT),
        ("tag", INT),
        ("owed", REAL),  # s to sleep for what was received
        ("previous", INT),
        ("next", INT),
    ],
    align=True,
)

# What a replay tells, if asked, both numbered in the order of telling: the times in which ranks did
# not go on, and the messages that travelled. What lasts no time is no span.
SPAN = np.dtype(
    [
        ("rank", INT),
        ("action", INT),  # -1: at the end of the trace
        ("held", INT),  # COMPUTING, SLEEPING, or one of IN_...
        ("cause", INT),  # the message whose end ended it, -1: it ended by itself
        ("begin", REAL),
        ("end", REAL),
    ],
    align=True,
)
FLIGHT = np.dtype(
    [
        ("number", INT),  # in the order of beginnings
        ("source", INT),
        ("target", INT),
        ("bytes", REAL),
        ("after", INT),  # the span after which it began, -1: none
        ("begin", REAL),
        ("latency", REAL),  # s
        ("end", REAL),
    ],
    align=True,
)

BUCKET = np.dtype([("first", SMALL_INT), ("last", SMALL_INT)], align=True)

# The pattern of a pair of hosts (or of a host with itself, to compute: target -1), -1: wanted, and
# the amount of it that one byte, or one flop, is. key: -1: none.
ROUTE = np.dtype([("key", INT), ("pattern", INT), ("unit", REAL)], align=True)

# Piecewise constant figures by size: `value` for sizes above `above`.
STEP = np.dtype([("above", REAL), ("value", REAL)], align=True)

# Overheads: a + b * bytes seconds for sizes from `above` on.
OVERHEAD = np.dtype([("above", REAL), ("a", REAL), ("b", REAL)], align=True)

COUNTS = np.dtype(
    [
        ("free_message", INT),
        ("n_messages", INT),  # places ever given out since none was
        ("n_posted", INT),  # messages that have a place
        ("free_request", INT),
        ("n_requests", INT),
        ("ready", LIST),  # ranks to go on
        ("before_woken", INT),  # the rank before those that wake now, -1: they are the first
        ("woken", REAL),  # when they wake
        ("asleep", REAL),  # since when they slept
        ("n_routes", INT),
        ("n_apps", INT),
        ("over", LIST),  # applications that are over
        ("wanted", LIST),  # tasks whose ranks are to begin
        ("n_ended", INT),  # tasks that had ended when applications of those were last looked for
        ("unfinished", INT),  # ranks
        ("take_any", INT),  # 1: some rank receives from anybody, or with any tag
        ("by_turns", INT),  # 1: ranks that can go on do so by turns, a step each
        ("messages", INT),  # that have come to their end
        ("actions", INT),
        ("wanted_source", INT),  # of NEEDS_PATTERN
        ("wanted_target", INT),
        ("tells", INT),  # 1: spans and flights are kept
        ("n_spans", INT),
        ("n_flights", INT),
        ("spans", INT),  # told in all
        ("names", INT),  # 1: the stream says which messages begin and end
        ("begun", INT),  # messages
        ("waits", INT),  # that have begun
        ("test_misses", INT),
        ("poll_misses", INT),
        ("lost", INT),  # rank of LOST_RANK, -1: none
    ],
    align=True,
)

PROTOCOL = np.dtype(
    [
        ("envelope", REAL),  # bytes that each message has more
        ("detached", REAL),  # from so many bytes on, a sender waits for its message
        ("early", REAL),  # below so many, it is under way before it is received
        ("test", REAL),  # s that the first of a row of tests takes
        ("poll", REAL),  # s that the first of a row of polls computes
        ("init", REAL),  # s that the first action takes
        ("miss", INT),  # by how many a failed test or poll lengthens the next
        ("poll_load", REAL),  # part of a core that a poll takes
        ("computes", INT),  # 0: computing takes no time
        ("costs", INT),  # 1: receiving costs time
        ("least_sleep", REAL),  # s, of whoever sleeps
        ("newest_first", INT),  # 1: of those that slept equally long, who slept last goes on first
        ("end_barrier", INT),
    ],
    align=True,
)


TAGS = np.array([COLLECTIVE_TAGS.get(kind, 0) for kind in range(len(ACTIONS))])


class Replays(NamedTuple):
    """Every array of a replay that the loop reads and writes (see the record types above)."""

    counts: np.ndarray  # one record
    protocol: np.ndarray  # one record
    apps: np.ndarray
    ranks: np.ndarray
    messages: np.ndarray
    departures: np.ndarray  # of the messages, if they are told
    requests: np.ndarray
    buckets: np.ndarray
    routes: np.ndarray
    latency_factors: np.ndarray
    bandwidth_factors: np.ndarray
    overheads: np.ndarray  # OVERHEAD, shape (3, n): of send, isend, recv
    actions: np.ndarray
    start: np.ndarray
    values: np.ndarray
    algorithms: np.ndarray  # of each kind of action, and the rows of the tables among them:
    choices: np.ndarray  # see `selectors`
    type_bytes: np.ndarray  # of each datatype
    collective_tags: np.ndarray  # of each kind of action, if it is a non-blocking collective
    size: np.ndarray  # bytes of a step of a collective; scratch
    spent: np.ndarray  # s, shape (ranks, kinds of actions)
    spans: np.ndarray
    flights: np.ndarray


def bare_replays() -> Replays:
    """A state of the right types, with nothing in it."""
    return Replays(
        counts=new_counts(),
        protocol=records(1, PROTOCOL),
        apps=records(0, APP),
        ranks=records(0, RANK),
        messages=records(64, MESSAGE),
        departures=records(0, DEPARTURE),
        requests=records(64, REQUEST),
        buckets=empty_buckets(64),
        routes=empty_routes(1024),
        latency_factors=records(0, STEP),
        bandwidth_factors=records(0, STEP),
        overheads=records(0, OVERHEAD).reshape(3, 0),
        actions=np.zeros(0, dtype=np.int8),
        start=np.zeros(0, dtype=np.int64),
        values=np.zeros(0),
        algorithms=np.zeros(len(ACTIONS), dtype=np.int64),
        choices=CHOICES,
        type_bytes=DATATYPE_BYTES,
        collective_tags=TAGS,
        size=np.zeros(1),
        spent=np.zeros((0, len(ACTIONS))),
        spans=records(0, SPAN),
        flights=records(0, FLIGHT),
    )


def new_counts() -> np.ndarray:
    counts = records(1, COUNTS)
    for name in ("free_message", "free_request", "lost"):
        counts[name] = -1
    for name in ("ready", "over", "wanted"):
        counts[name] = EMPTY
    counts["woken"] = counts["asleep"] = np.nan
    counts["test_misses"] = counts["poll_misses"] = 1
    return counts


def empty_buckets(size: int) -> np.ndarray:
    buckets = records(size, BUCKET)
    buckets["first"] = buckets["last"] = -1
    return buckets


def empty_routes(size: int) -> np.ndarray:
    routes = records(size, ROUTE)
    routes["key"] = -1
    return routes
