# mypy: allow-untyped-defs, allow-incomplete-defs
"""The stream of events, which is the only output of a run, and the listeners that receive it."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ptaskmodel.engine.state import (
    ENDED,
    FAILED,
    LIMIT_BOUND,
    LIMIT_CORE,
    LIMIT_RATE_BOUND,
    LIMIT_WINDOW,
    RATE,
    RATES_OF_ALL,
    WOKE,
)
from ptaskmodel.kernels.decorators import jit

INFINITY = float("inf")


@jit
def has_room_for_events(s, count):
    """Whether the stream has room for so many events more, and a few."""
    clock = s.clock[0]
    clock.argument = count + 16
    return clock.n_events + clock.argument <= s.events.size


@jit
def emit(s, kind, subject, value):
    """Add an event (kind, subject, value) to the stream; the caller has made sure of room."""
    clock = s.clock[0]
    event = s.events[clock.n_events]
    event.date = clock.now
    event.kind = kind
    event.subject = subject
    event.value = value
    clock.n_events += 1


@jit
def what_bounds(s, slot):
    """What sets the bound of an activity (see `availability.refresh_bound`).

    LIMIT_RATE_BOUND, LIMIT_WINDOW, LIMIT_CORE - the host, or of a flow the link with the least
    bandwidth on its way.
    """
    a = s.activities[slot]
    t = s.graph.variables[slot]
    if t.bound == a.asked:
        return LIMIT_RATE_BOUND
    is_of_link = t.bound == a.routed or t.bound == s.patterns[a.pattern].bound
    narrowest = INFINITY
    link = LIMIT_WINDOW
    for k in range(t.nodes, t.nodes + t.n_nodes):
        node = s.graph.nodes[k]
        r = s.resources[node.resource]
        if r.one_core < INFINITY:
            if node.usage > 0.0 and r.one_core / node.largest == t.bound:
                return LIMIT_CORE - node.resource
        elif not is_of_link:
            break
        elif node.usage >= 1.0:  # less: acknowledgements
            capacity = s.graph.constraints[node.resource].capacity
            if capacity >= narrowest:
                continue
            narrowest = capacity
            link = node.resource
    return link


@jit
def emit_rate(s, slot, rate, limit):
    """Say that an activity changes its rate, if anyone listens to that of its owner."""
    clock = s.clock[0]
    a = s.activities[slot]
    if clock.tells_rates > 0 and (a.owner >= 0 or clock.tells_rates == RATES_OF_ALL):
        event = s.events[clock.n_events]
        event.pattern = a.pattern
        event.amount = a.amount
        event.limit = what_bounds(s, slot) if limit == LIMIT_BOUND else limit
        emit(s, RATE, a.owner, rate)


def contains_end(events: np.ndarray) -> bool:
    """Return whether something ended, failed or woke a front end among these events."""
    return bool(np.isin(events["kind"], (ENDED, FAILED, WOKE)).any())


class Listener(Protocol):
    """Takes the stream of events, in order of date, in arrays of `state.EVENT` not to be changed.

    Rates are constant between two RATE events of an owner.
    """

    def take(self, events: np.ndarray) -> None: ...

    def forget(self, patterns: list[int]) -> None:
        """These numbers will be given to other patterns: the last moment to ask for their uses.

        All events on them have been taken.
        """
        ...
