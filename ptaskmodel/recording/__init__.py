"""Record what happened between events: exact intervals, uses, capacities, isolated run times."""

from __future__ import annotations

# What can limit a task.
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
