"""The compiled event loop: the life of an activity, one date after the other.

At a date T, in this order (what "simultaneous" means here; see docs/background/events.md):

1. profile events dated <= T change capacities, latencies and states;
2. timers within ``time_precision`` of T: latencies and delays end, starts are queued;
3. activities whose work is done (up to ``work_precision``) end their stage;
4. activities that use something that is off fail, unless step 3 ended them;
5. walltimes kill;
6. followers are released, queued stages begin (in the order in which they became ready);
7. what changed is shared anew.
"""

from __future__ import annotations

from ptaskmodel.core.changes import MAX_IDLE_PROFILES, apply_profiles
from ptaskmodel.core.life import (
    begin_ready,
    end_stage,
    end_task,
    fail_doomed,
    queue,
    share,
    timer_is_valid,
)
from ptaskmodel.core.queues import pop_timer, push_timer
from ptaskmodel.core.solving import reshare
from ptaskmodel.core.state import (
    DELAY_END,
    ENDED,
    IDLE,
    LATENCY_CHANGED,
    LATENCY_END,
    LOG_FULL,
    NO_CHANGE,
    OK,
    PAUSED,
    SETTLE,
    SOME_ENDED,
    START,
    STEP,
    STEPPED,
    UNTIL,
    WAITING,
    WALLTIME,
)
from ptaskmodel.jit import entry, jit

INFINITY = float("inf")


@jit
def admit(s):
    """Let new activities wait for their date or begin (there is room for their timers)."""
    clock = s.clock[0]
    while clock.n_admitted < clock.n_tasks:
        t = s.activities[clock.n_admitted]
        if t.state == WAITING and t.waits_for == 0:
            if t.start > clock.now:
                push_timer(s, t.start, START, clock.n_admitted, 0)
            else:
                queue(s, clock.n_admitted)
        clock.n_admitted += 1


@jit
def next_date(s):
    """Date of the next timer or end of stage (inf: none)."""
    clock = s.clock[0]
    while clock.n_timers > 0 and not timer_is_valid(s, s.timers[0]):
        pop_timer(s)
    date = INFINITY
    if clock.n_timers > 0:
        date = s.timers[0].time
    if clock.n_heap > 0:
        date = min(date, s.heap[0].date)
    return max(date, clock.now)


@jit
def fire_timers(s, date, gamma, time_precision):
    """Fire the timers within ``time_precision`` of the date; kills are put aside, their number."""
    clock = s.clock[0]
    n_kills = 0
    while clock.n_timers > 0:
        timer = s.timers[0]
        if timer.time > date and timer.time - date >= time_precision:
            break
        slot = timer.slot
        kind = timer.kind
        valid = timer_is_valid(s, timer)
        pop_timer(s)
        if not valid:
            continue
        if kind == LATENCY_END:
            share(s, slot, gamma)
        elif kind == DELAY_END:
            end_stage(s, slot)
        elif kind == START:
            queue(s, slot)
        else:
            s.activities[n_kills].slot_sub = slot
            n_kills += 1
    return n_kills


@jit
def process(s, date, o):
    """Everything that happens at a date, up to the queueing of what begins."""
    clock = s.clock[0]
    clock.now = date
    clock.events += 1
    n_kills = fire_timers(s, date, o.gamma, o.time_precision)
    snap = o.work_precision * o.time_precision
    while clock.n_heap > 0:
        end = s.heap[0]
        if end.date > date and s.activities[end.slot].rate * (end.date - date) >= snap:
            break
        end_stage(s, end.slot)
    fail_doomed(s)
    for i in range(n_kills):
        if s.activities[s.activities[i].slot_sub].state < ENDED:
            end_task(s, s.activities[i].slot_sub, WALLTIME)


@entry
def run(s, o):
    """Advance until something needs Python or ``until`` is reached; returns why.

    Everything that it leaves undone is in the state: calling it again goes on where it was.
    """
    clock = s.clock[0]
    admit(s)
    if clock.begun == 0:
        clock.begun = 1
        apply_profiles(s, 0.0, o)
    while True:
        if clock.changed != NO_CHANGE:
            return LATENCY_CHANGED
        status = begin_ready(s, o.gamma)
        if status != OK:
            return status
        if o.stop_on_end and clock.n_ended > clock.n_told:
            return SOME_ENDED
        status = reshare(s, o)
        if status != OK:
            return status
        if s.log.size > 0 and clock.n_log + clock.n_enabled + 16 > s.log.size:
            return LOG_FULL
        if clock.stepping == 1 or o.mode == SETTLE:
            clock.stepping = 0
            return STEPPED
        if clock.events >= o.pause_at:
            return PAUSED
        happens = next_date(s)
        if happens == INFINITY and clock.n_enabled == 0 and o.until == INFINITY:
            return IDLE
        clock.cut = 0
        date = apply_profiles(s, min(happens, o.until), o)
        clock.idle_profiles = 0 if happens < INFINITY else clock.idle_profiles + 1
        if date == INFINITY or clock.idle_profiles > MAX_IDLE_PROFILES:
            return IDLE
        if happens > o.until and clock.cut == 0:
            clock.now = max(clock.now, o.until)
            return UNTIL
        process(s, date, o)
        if o.mode == STEP:
            clock.stepping = 1


@entry
def upcoming(s):
    """Date of the next event, timers, ends and profiles on resources in use; inf: none."""
    date = next_date(s)
    for i in range(s.profiles.size):
        if s.resources[s.profiles[i].resource].users > 0:
            date = min(date, s.profiles[i].next_date)
    return date
