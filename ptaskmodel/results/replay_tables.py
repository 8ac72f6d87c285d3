"""The files of a replay, and what a rank does in an action of each kind."""

from __future__ import annotations

from ptaskmodel.workload.ti_actions import (
    COMPUTE,
    IRECV,
    ISEND,
    RECV,
    SEND,
    SENDRECV,
    SLEEP,
    TEST,
    WAIT,
    WAITALL,
)

RANKS, ACTION_TIMES, SPANS, MESSAGES, MATRIX = (
    "ranks.csv",
    "actions.csv",
    "spans.csv",
    "messages.csv",
    "matrix.csv",
)

# What a rank does in an action of a kind; whatever is not here is a collective.
DOING = {
    COMPUTE: "computing",
    SLEEP: "sleeping",
    SEND: "sending",
    ISEND: "sending",
    RECV: "receiving",
    IRECV: "receiving",
    SENDRECV: "exchanging",
    WAIT: "waiting",
    TEST: "waiting",
    WAITALL: "waiting",
}
STATES = (*dict.fromkeys(DOING.values()), "in collectives")


def doing(kind: int) -> str:
    """What a rank does in an action of that kind, one of STATES."""
    return DOING.get(kind, STATES[-1])
