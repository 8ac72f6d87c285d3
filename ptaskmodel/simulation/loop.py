# mypy: allow-untyped-defs, allow-incomplete-defs
"""The compiled loop of tasks: it links the parts of the engine's loop, with tasks in between.

The order of events at one time is the engine's (see `engine.loop`). For tasks, its steps add:

2. a start time that has come queues its task; the end of a delay or a latency may end a stage;
5. walltimes kill; followers are released, queued stages begin (in the order of becoming ready).
"""

from __future__ import annotations

from ptaskmodel.engine.activity import share
from ptaskmodel.engine.availability import follow_live
from ptaskmodel.engine.loop import due, finished, go_on, listed_as_doomed, settle
from ptaskmodel.engine.queue import has_room_for_wake
from ptaskmodel.engine.state import (
    DONE,
    GROW_WAKES,
    NO_CHANGE,
    NOTHING,
    OK,
    ROUTES_CHANGED,
    SOME_ENDED,
    STEP,
    WAKE,
)
from ptaskmodel.engine.virtual_time import write_members
from ptaskmodel.kernels.decorators import entry, jit
from ptaskmodel.simulation.life import (
    ENDED,
    FAILED,
    WAITING,
    WALLTIME,
    begin_ready,
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
def note_killed(t, first_killed, last_killed, task):
    """Put a task whose walltime has come last in the list of those; the ends of the list."""
    t.tasks[task].next_killed = NOTHING
    if last_killed >= 0:
        t.tasks[last_killed].next_killed = task
    else:
        first_killed = task
    return first_killed, task


@jit
def end_killed(s, t, task):
    """End the tasks of that list that are not over yet."""
    while task >= 0:
        if t.tasks[task].state < ENDED:
            end_task(s, t, task, WALLTIME)
        task = t.tasks[task].next_killed


@jit
def process(s, t, o):
    """Everything that happens at this date, up to the queueing of what begins."""
    first_killed = NOTHING
    last_killed = NOTHING
    while True:
        kind = due(s, o.time_precision)
        if kind == NOTHING:
            break
        number = s.clock[0].argument
        if kind == WAKE:
            if woken(s, t, number):
                first_killed, last_killed = note_killed(t, first_killed, last_killed, number)
        else:
            share(s, number, o.gamma)
            if s.activities[number].state == DONE:
                end_stage(s, t, s.activities[number].owner)
    while True:
        slot = finished(s, o)
        if slot < 0:
            break
        end_stage(s, t, s.activities[slot].owner)
    clock = s.clock[0]
    n = clock.n_doomed
    clock.n_doomed = 0
    for i in range(n):
        slot = listed_as_doomed(s, i)
        if slot >= 0:
            end_task(s, t, s.activities[slot].owner, FAILED)
    end_killed(s, t, first_killed)


@jit
def advance(s, t, o):
    """Advance until something needs Python or ``until`` is reached; returns why."""
    clock = s.clock[0]
    status = admit(s, t)
    if status != OK:
        return status
    if clock.begun == 0:
        clock.begun = 1
        follow_live(s, o)
    while True:
        if clock.changed != NO_CHANGE:
            return ROUTES_CHANGED
        status = begin_ready(s, t, o)
        if status != OK:
            return status
        if o.stop_on_end and t.counts[0].n_ended > t.counts[0].n_told:
            return SOME_ENDED
        status = settle(s, o)
        if status != OK:
            return status
        status = go_on(s, o)
        if status != OK:
            return status
        process(s, t, o)
        if o.mode == STEP:
            clock.stepping = 1


@entry
def run(s, t, o):
    """Advance until something needs Python or ``until`` is reached; returns why.

    Everything that it leaves undone is in the state: calling it again goes on where it was.
    """
    status = advance(s, t, o)
    write_members(s)
    return status


@entry
def finish(s, t, task, state):
    """End a task from Python, in a final state (there is room in the stream)."""
    end_task(s, t, task, state)
