# mypy: allow-untyped-defs, allow-incomplete-defs
"""The compiled loop of a simulation in which some tasks are MPI applications.

At each date, tasks are handled as in `simulation.life` and ranks as in `mpi.loop`. An application
holds its hosts by an activity that waits, and starts its ranks as soon as that ends. The activities
and wake-ups of ranks have owners below 0. The task ends with its last rank; if something else ends
it, its ranks stop.
"""

from __future__ import annotations

from ptaskmodel.engine.availability import follow_live
from ptaskmodel.engine.loop import to_next_date
from ptaskmodel.engine.queue import append, take_first
from ptaskmodel.engine.state import (
    EVENTS_FULL,
    NEW_DATE,
    NO_CHANGE,
    NOTHING_MORE,
    OK,
    ROUTES_CHANGED,
    SOME_ENDED,
    WAITED,
    WOKEN,
)
from ptaskmodel.engine.stream import has_room_for_events
from ptaskmodel.engine.virtual_time import write_members
from ptaskmodel.kernels.decorators import entry, jit
from ptaskmodel.mpi.loop import events_of_ranks, next_of_ranks, rank_happens
from ptaskmodel.mpi.ranks import advance_ready, end_application
from ptaskmodel.mpi.state import LOST_RANK, NEEDS_RANKS
from ptaskmodel.simulation.life import (
    ENDED,
    FAILED,
    admit,
    begin_ready,
    end_killed,
    end_stage,
    end_task,
    task_happens,
)


@jit
def is_of_ranks(t, task):
    """Whether the current stage of a task is one of ranks."""
    record = t.tasks[task]
    return t.stages[t.programs[record.program].first + record.stage].ranks == 1


@jit
def want_ranks(t, x, task):
    """The ranks of a task are to begin at this date."""
    append(x.counts[0].wanted, t.tasks.next_ready, task)


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
    while counts.over.first >= 0:
        a = take_first(counts.over, x.apps.next)
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
        if counts.wanted.first >= 0:
            return NEEDS_RANKS
        status = advance_ready(s, x, o)
        if status == LOST_RANK:
            fail_application(s, t, x)
        elif status != OK:
            return status
        elif counts.over.first < 0 and counts.n_ended == tasks.n_ended:
            return OK


@jit
def process(s, t, x, o):
    """Apply all that happens at this date, up to the queueing of what begins.

    s, o: the engine's state and options. t: the state of tasks. x: that of ranks.
    """
    what = next_of_ranks(s, x, o, NEW_DATE)
    while what != NOTHING_MORE:
        subject = s.clock[0].argument
        owner = subject if what == WOKEN else s.activities[subject].owner
        if owner < 0:
            if rank_happens(s, x, what) == LOST_RANK:
                fail_application(s, t, x)
        elif what == WAITED and is_of_ranks(t, owner):
            want_ranks(t, x, owner)
        else:
            task_happens(s, t, what)
        what = next_of_ranks(s, x, o, what)
    end_killed(s, t)


@jit
def advance(s, t, x, o):
    """Advance until something needs Python or ``until`` is reached; returns why."""
    status = admit(s, t)
    if status != OK:
        return status
    follow_live(s, o)
    while True:
        if s.clock[0].changed != NO_CHANGE:
            return ROUTES_CHANGED
        status = begin_all(s, t, x, o)
        if status != OK:
            return status
        if o.stop_on_end and t.counts[0].n_ended > t.counts[0].n_told:
            return SOME_ENDED
        status = to_next_date(s, o, events_of_ranks(s, x))
        if status != OK:
            return status
        process(s, t, x, o)


@entry
def run(s, t, x, o):
    """Advance until something needs Python or ``until`` is reached; returns why.

    Everything that it leaves undone is in the state: calling it again goes on where it was.
    """
    status = advance(s, t, x, o)
    write_members(s)
    return status
