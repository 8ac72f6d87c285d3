"""What can limit a task, in words, and the names that these use."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from ptaskmodel.core.state import (
    LIMIT_CORE,
    LIMIT_DELAY,
    LIMIT_LATENCY,
    LIMIT_NOTHING,
    LIMIT_RATE_BOUND,
    LIMIT_SUSPENDED,
)
from ptaskmodel.recording.windows import Windows

if TYPE_CHECKING:
    from ptaskmodel.recording.owners import Recorded

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


class Names:
    """Names of the resources, routes and tasks of a simulation, by number."""

    def __init__(self, simulation: Recorded) -> None:
        platform = simulation.platform
        self._simulation = simulation
        self.n_hosts = len(platform.hosts)
        self.resources = [host.name for host in platform.hosts]
        self.resources += [link.name for link in platform.all_links]
        self.windows = Windows()
        self._tasks: list[str] = []

    def kind(self, resource: int) -> str:
        return "host" if resource < self.n_hosts else "link"

    def tasks(self) -> list[str]:
        """Ids of all tasks added so far."""
        new = islice(self._simulation.tasks(), len(self._tasks), None)
        self._tasks += [ref.id for ref in new]
        return self._tasks


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
