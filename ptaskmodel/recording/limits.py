"""What can limit a task, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptaskmodel.core.state import (
    LIMIT_BOUND,
    LIMIT_DELAY,
    LIMIT_LATENCY,
    LIMIT_NOTHING,
    LIMIT_SUSPENDED,
)

if TYPE_CHECKING:
    from ptaskmodel.recording.intervals import Names

HOST, LINK, BOUND, LATENCY, DELAY = "host", "link", "bound", "latency", "delay"
SUSPENDED, STOPPED, WAITING = "suspended", "stopped", "waiting"

# host, link: that resource; bound: its own (one core, TCP window, rate_bound); waiting: for the
# tasks that come before; stopped: it cannot progress and no resource is to blame.
KINDS = (HOST, LINK, BOUND, LATENCY, DELAY, SUSPENDED, STOPPED, WAITING)

_WORDS = {
    int(LIMIT_BOUND): BOUND,
    int(LIMIT_NOTHING): STOPPED,
    int(LIMIT_LATENCY): LATENCY,
    int(LIMIT_DELAY): DELAY,
    int(LIMIT_SUSPENDED): SUSPENDED,
}


def limit_name(limit: int, names: Names) -> tuple[str, str]:
    """(one of KINDS, name of the resource or "") of a limit in a RATE event."""
    if limit >= 0:
        return names.kind(limit), names.resources[limit]
    return _WORDS[limit], ""
