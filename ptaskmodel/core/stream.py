"""The stream of events: all that anybody learns of a run."""

from __future__ import annotations

from ptaskmodel.core.state import RATE, RATES_OF_ALL
from ptaskmodel.jit import jit


@jit
def has_room_for_events(s, count):
    """Whether the stream has room for so many events more, and a few."""
    clock = s.clock[0]
    clock.argument = count + 16
    return clock.n_events + clock.argument <= s.events.size


@jit
def tell(s, kind, subject, value):
    """Add an event to the stream (the caller has made sure of room)."""
    clock = s.clock[0]
    event = s.events[clock.n_events]
    event.date = clock.now
    event.kind = kind
    event.subject = subject
    event.value = value
    clock.n_events += 1


@jit
def tell_rate(s, slot, rate, limit):
    """Say that an activity changes its rate, if anyone listens to that of its owner."""
    clock = s.clock[0]
    a = s.activities[slot]
    if clock.tells_rates > 0 and (a.owner >= 0 or clock.tells_rates == RATES_OF_ALL):
        event = s.events[clock.n_events]
        event.pattern = a.pattern
        event.amount = a.amount
        event.limit = limit
        tell(s, RATE, a.owner, rate)
