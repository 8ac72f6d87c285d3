"""What can limit a task, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptaskmodel.core.state import (
    LIMIT_CORE,
    LIMIT_DELAY,
    LIMIT_LATENCY,
    LIMIT_NOTHING,
    LIMIT_RATE_BOUND,
    LIMIT_SUSPENDED,
)

if TYPE_CHECKING:
    from ptaskmodel.recording.intervals import Names

HOST, LINK, CORE, WINDOW, RATE_BOUND = "host", "link", "core", "window", "rate_bound"
LATENCY, DELAY, SUSPENDED, STOPPED, WAITING = (
    *("latency", "delay", "suspended", "stopped", "waiting"),
)

# host, link: all that this resource has is taken; core: one core of this host, while others idle;
# window: the TCP window on this route; rate_bound: what the task was given as its largest rate;
# waiting: for the tasks that come before; stopped: it cannot progress and no resource is to blame.
KINDS = (
    *(HOST, LINK, CORE, WINDOW, RATE_BOUND),
    *(LATENCY, DELAY, SUSPENDED, STOPPED, WAITING),
)

_WORDS = {
    int(LIMIT_RATE_BOUND): RATE_BOUND,
    int(LIMIT_NOTHING): STOPPED,
    int(LIMIT_LATENCY): LATENCY,
    int(LIMIT_DELAY): DELAY,
    int(LIMIT_SUSPENDED): SUSPENDED,
}
# In recordings LIMIT_WINDOW gives way to the number of a route, below those of cores.
FIRST_ROUTE = -(1 << 40)


def limit_name(limit: int, names: Names) -> tuple[str, str]:
    """(one of KINDS, what it is of) of a limit of a recording.

    That is a host, a link, the host of a core, ``source->target`` of a window, else "".
    """
    if limit >= 0:
        return names.kind(limit), names.resources[limit]
    window = names.windows.route(limit)
    if window is not None:
        return WINDOW, f"{window.source}->{window.target}"
    if limit <= LIMIT_CORE:
        return CORE, names.resources[LIMIT_CORE - limit]
    return _WORDS[limit], ""
