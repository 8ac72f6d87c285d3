# mypy: allow-untyped-defs, allow-incomplete-defs
"""The compiled loop of tasks some of which are MPI applications, whose ranks run beside the others.

It links the parts of `simulation.loop` and of `mpi.loop`. Such a task holds its hosts by an
activity that waits, and starts its ranks as soon as that ends. The activities and wake-ups of ranks
have owners below 0. The task ends with its last rank; if something else ends it, its ranks stop.
"""

from __future__ import annotations

from ptaskmodel.engine.activity import share
from ptaskmodel.engine.availability import follow_live
from ptaskmodel.engine.loop import due, finished, go_on, listed_as_doomed, settle
from ptaskmodel.engine.state import (
    DONE,
    EVENTS_FULL,
    NO_CHANGE,
    NOTHING,
    OK,
    ROUTES_CHANGED,
    SOME_ENDED,
    STEP,
    WAKE,
)
from ptaskmodel.engine.stream import has_room_for_events
from ptaskmodel.engine.virtual_time import write_members
from ptaskmodel.kernels.decorators import entry, jit
from ptaskmodel.mpi.ending import end_application
from ptaskmodel.mpi.loop import computes_before_wake, over, rank_of, wakes
from ptaskmodel.mpi.ranks import go_on_with_ready
from ptaskmodel.mpi.state import LOST_RANK, NEEDS_RANKS
from ptaskmodel.simulation.life import ENDED, FAILED, begin_ready, end_stage, end_task, woken
from ptaskmodel.simulation.loop import admit, end_killed, note_killed


@jit
def is_of_ranks(t, task):
    """Whether the current stage of a task is one of ranks."""
    record = t.tasks[task]
    return t.stages[t.programs[record.program].first + record.stage].ranks == 1


@jit
def want_ranks(t, x, task):
    """The ranks of a task are to begin at this date."""
    counts = x.counts[0]
    t.tasks[task].next_ready = -1
    if counts.last_wanted >= 0:
        t.tasks[counts.last_wanted].next_ready = task
    else:
        counts.first_wanted = task
    counts.last_wanted = task


@jit
def fail_application(s, t, x):
    """A rank has lost its host, or a link: its task fails."""
    task = x.apps[x.ranks[x.counts[0].lost].app].task
    x.counts[0].lost = -1
    if task >= 0 and t.tasks[task].state < ENDED:
        end_task(s, t, task, FAILED)


@jit
def end_applications(s, t, x):
    """End the tasks whose last rank has ended, and the ranks of tasks that something else ended."""
    counts = x.counts[0]
    while counts.first_over >= 0:
        a = counts.first_over
        counts.first_over = x.apps[a].next
        if counts.first_over < 0:
            counts.last_over = -1
        task = x.apps[a].task
        if task >= 0:
            end_application(s, x, a)
            if t.tasks[task].state < ENDED:
                end_stage(s, t, task)
    if counts.n_ended != t.counts[0].n_ended:
        counts.n_ended = t.counts[0].n_ended
        for a in range(counts.n_apps):
            task = x.apps[a].task
            if task >= 0 and t.tasks[task].state >= ENDED:
                end_application(s, x, a)


@jit
def begin_all(s, t, x, o):
    """Begin what is ready, tasks and ranks, until nothing is left to do; OK or what is missing."""
    tasks = t.counts[0]
    counts = x.counts[0]
    while True:
        if not has_room_for_events(s, counts.n_apps):
            return EVENTS_FULL
        end_applications(s, t, x)
        status = begin_ready(s, t, o)
        if status != OK:
            return status
        if counts.first_wanted >= 0:
            return NEEDS_RANKS
        status = go_on_with_ready(s, x, o)
        if status == LOST_RANK:
            fail_application(s, t, x)
        elif status != OK:
            return status
        elif counts.first_over < 0 and counts.n_ended == tasks.n_ended:
            return OK


@jit
def ends(s, t, x, slot):
    """An activity is done: of a task, or of a rank."""
    owner = s.activities[slot].owner
    if owner >= 0:
        end_stage(s, t, owner)
    elif over(s, x, slot) == LOST_RANK:
        fail_application(s, t, x)


@jit
def process(s, t, x, o):
    """Everything that happens at this date, up to the queueing of what begins."""
    first_killed = NOTHING
    last_killed = NOTHING
    while True:
        while x.counts[0].by_turns == 1 and computes_before_wake(s, x):
            slot = finished(s, o)
            if slot < 0:
                break
            ends(s, t, x, slot)
        kind = due(s, o.time_precision)
        if kind == NOTHING:
            break
        number = s.clock[0].argument
        if kind == WAKE:
            if number < 0:
                wakes(x, ~number, s.clock[0].now)
            elif woken(s, t, number):
                first_killed, last_killed = note_killed(t, first_killed, last_killed, number)
            continue
        owner = s.activities[number].owner
        if owner >= 0 and is_of_ranks(t, owner):
            want_ranks(t, x, owner)
            continue
        share(s, number, o.gamma)
        if s.activities[number].state == DONE:
            ends(s, t, x, number)
    while True:
        slot = finished(s, o)
        if slot < 0:
            break
        ends(s, t, x, slot)
    clock = s.clock[0]
    n = clock.n_doomed
    clock.n_doomed = 0
    for i in range(n):
        slot = listed_as_doomed(s, i)
        if slot >= 0:
            owner = s.activities[slot].owner
            if owner >= 0:
                end_task(s, t, owner, FAILED)
            else:
                x.counts[0].lost = rank_of(x, owner)
                fail_application(s, t, x)
    end_killed(s, t, first_killed)


@jit
def advance(s, t, x, o):
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
        status = begin_all(s, t, x, o)
        if status != OK:
            return status
        if o.stop_on_end and t.counts[0].n_ended > t.counts[0].n_told:
            return SOME_ENDED
        status = settle(s, o)
        if status != OK:
            return status
        if x.counts[0].names == 1 and not has_room_for_events(s, 3 * clock.n_active):
            return EVENTS_FULL
        status = go_on(s, o)
        if status != OK:
            return status
        process(s, t, x, o)
        if o.mode == STEP:
            clock.stepping = 1


@entry
def run(s, t, x, o):
    """Advance until something needs Python or ``until`` is reached; returns why.

    Everything that it leaves undone is in the state: calling it again goes on where it was.
    """
    status = advance(s, t, x, o)
    write_members(s)
    return status
