"""Names of a replay's files and columns, and of the activity of a rank in each kind of action."""

from __future__ import annotations

from ptaskmodel.workload.actions import (
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
    WAITANY,
)

RANKS, ACTION_TIMES, SPANS, MESSAGES, MATRIX, CRITICAL_PATH, CRITICAL_LINKS = (
    "ranks.csv",
    "actions.csv",
    "spans.csv",
    "messages.csv",
    "matrix.csv",
    "critical_path.csv",
    "critical_links.csv",
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
    WAITANY: "waiting",
}
# Of STATES, for Paje: Okabe and Ito's, as in the pictures.
PAJE_COLOURS = (
    *("0.0 0.45 0.7", "0.6 0.6 0.6", "0.9 0.62 0.0", "0.34 0.71 0.91", "0.8 0.47 0.65"),
    *("0.84 0.37 0.0", "0.94 0.89 0.26"),
)
STATES = (*dict.fromkeys(DOING.values()), "in collectives")


def doing(kind: int) -> str:
    """What a rank does in an action of that kind, one of STATES."""
    return DOING.get(kind, STATES[-1])


def column_of(state: str) -> str:
    """The column of ranks.csv with the seconds in a state."""
    return f"{state.replace(' ', '_')}_s"
