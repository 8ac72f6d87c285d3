"""What Python may change between two runs."""

from __future__ import annotations

from ptaskmodel.core.availability import catch_up, refresh_bound, set_speed, set_state
from ptaskmodel.core.crowd import dissolve
from ptaskmodel.core.life import end, missing, resume, start, stop, succeeds, suspend
from ptaskmodel.core.queues import cancel_wake
from ptaskmodel.core.sharing_graph import classify, declassify, set_capacity
from ptaskmodel.core.state import DONE, ENDED, FAILED, LOST, OK, RUNNING, numbers
from ptaskmodel.kernels.decorators import entry

# What `change` is asked for.
(
    STOP,
    SUSPEND,
    RESUME,
    CANCEL_WAKE,
    SET_SPEED,
    SET_BANDWIDTH,
    TURN_OFF,
    TURN_ON,
    CATCH_UP,
) = numbers(9)


@entry
def start_now(s, pattern, amount, weight, bound, delay, owner, o):
    """Start an activity from Python: its place, or -2 minus the status that says what is missing.

    What has nothing to do, or begins on something off, is over at once, and told.
    """
    status = missing(s, pattern)
    if status != OK:
        return -2 - status
    slot = start(s, pattern, amount, weight, bound, delay, owner, o)
    if s.activities[slot].state in (DONE, LOST):
        end(s, slot, ENDED if succeeds(s, slot) else FAILED)
    return slot


@entry
def change(s, what, number, value, o):
    """STOP, SUSPEND or RESUME an activity, CANCEL_WAKE a wake-up, give a host SET_SPEED (value: its
    availability) or a link SET_BANDWIDTH, TURN_OFF or TURN_ON a resource, or let its traces
    CATCH_UP.
    """
    if what == STOP:
        stop(s, number)
        return
    if what == SUSPEND:
        dissolve(s)
        suspend(s, number)
        return
    if what == RESUME:
        resume(s, number, o.gamma)
        return
    if what == CANCEL_WAKE:
        cancel_wake(s, number)
        return
    if s.clock[0].begun == 1:
        catch_up(s, number, o)
    if what == SET_SPEED:
        set_speed(s, number, value, o.gamma)
    elif what == SET_BANDWIDTH:
        set_capacity(s, number, value)
    elif what == TURN_OFF:
        set_state(s, number, False)
    elif what == TURN_ON:
        set_state(s, number, True)


@entry
def refresh_routed(s, slot, o):
    """The pattern of an activity was routed anew: its bound and its weight follow."""
    dissolve(s)
    a = s.activities[slot]
    p = s.patterns[a.pattern]
    a.latency_bytes = p.latency_bytes
    a.penalty = p.penalty / a.weight
    if a.state == RUNNING:
        declassify(s, slot)
        refresh_bound(s, slot, o.gamma)
        classify(s, slot)
