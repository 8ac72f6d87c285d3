# mypy: allow-untyped-defs, allow-incomplete-defs
"""The compiled loop of tasks: how tasks react to the events at one time.

The engine defines the order of events at one time (see `engine.loop`). Tasks add to its steps:

2. a start time that has come queues its task; the end of a delay or a latency may end a stage;
5. walltimes kill;
6. followers are released, queued stages begin (in the order of becoming ready).
"""

from __future__ import annotations

from ptaskmodel.engine.availability import follow_live
from ptaskmodel.engine.loop import next_happening, to_next_date
from ptaskmodel.engine.queue import has_room_for_wake
from ptaskmodel.engine.state import (
    FAILING,
    GROW_WAKES,
    NEW_DATE,
    NO_CHANGE,
    NOTHING_MORE,
    OK,
    ROUTES_CHANGED,
    SOME_ENDED,
    WOKEN,
)
from ptaskmodel.engine.virtual_time import write_members
from ptaskmodel.kernels.decorators import entry, jit
from ptaskmodel.simulation.life import (
    FAILED,
    WAITING,
    begin_ready,
    end_killed,
    end_stage,
    end_task,
    queue_at_start_date,
    woken,
)


@jit
def admit(s, t):
    """Let new tasks wait for their date or begin; OK or what is missing."""
    counts = t.counts[0]
    while counts.n_admitted < counts.n_tasks:
        record = t.tasks[counts.n_admitted]
        if record.state == WAITING and record.waits_for == 0:
            if not has_room_for_wake(s):
                return GROW_WAKES
            queue_at_start_date(s, t, counts.n_admitted)
        counts.n_admitted += 1
    return OK


@jit
def task_happens(s, t, what):
    """Apply to a task what happens at this date.

    s: the engine's state. t: that of tasks. what: the answer of `next_happening`.
    """
    subject = s.clock[0].argument
    if what == WOKEN:
        woken(s, t, subject)
    elif what == FAILING:
        end_task(s, t, s.activities[subject].owner, FAILED)
    else:
        end_stage(s, t, s.activities[subject].owner)


@jit
def process(s, t, o):
    """Apply all that happens at this date, up to the queueing of what begins.

    s, o: the engine's state and options. t: the state of tasks.
    """
    what = next_happening(s, o, NEW_DATE, False)
    while what != NOTHING_MORE:
        task_happens(s, t, what)
        what = next_happening(s, o, what, False)
    end_killed(s, t)


@jit
def advance(s, t, o):
    """Advance until something needs Python or ``until`` is reached; returns why."""
    status = admit(s, t)
    if status != OK:
        return status
    follow_live(s, o)
    while True:
        if s.clock[0].changed != NO_CHANGE:
            return ROUTES_CHANGED
        status = begin_ready(s, t, o)
        if status != OK:
            return status
        if o.stop_on_end and t.counts[0].n_ended > t.counts[0].n_told:
            return SOME_ENDED
        status = to_next_date(s, o, 0)
        if status != OK:
            return status
        process(s, t, o)


@entry
def run(s, t, o):
    """Advance until something needs Python or ``until`` is reached; return the status.

    S, t, o: the engine's state, the tasks' state, and the options. Unfinished work stays in the
    state: calling it again continues there.
    """
    status = advance(s, t, o)
    write_members(s)
    return status


@entry
def finish(s, t, task, state):
    """End task `task` (index) from Python in a final `state`; the stream must have room.

    S, t: as `run`.
    """
    end_task(s, t, task, state)
