# mypy: allow-untyped-defs, allow-incomplete-defs
"""The life cycle of a task: its stages are queued, begin and end; then its followers are released.

The state of tasks is here too: what they wait for, their present stage, how they ended.

The engine defines the order of events at one time (see `engine.loop`). Tasks add to its steps:

2. a start time that has come queues its task; the end of a delay or a latency may end a stage;
5. walltimes kill;
6. followers are released, queued stages begin (in the order of becoming ready).
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from ptaskmodel.engine.activity import missing, start, stop, succeeds
from ptaskmodel.engine.availability import follow_live
from ptaskmodel.engine.loop import next_happening, to_next_date
from ptaskmodel.engine.queue import (
    EMPTY,
    LIST,
    append,
    cancel_wake,
    has_room_for_wake,
    push_wake,
    take_first,
)
from ptaskmodel.engine.state import (
    DONE,
    FAILING,
    GROW_WAKES,
    LOST,
    NEW_DATE,
    NO_CHANGE,
    NOTHING_MORE,
    OK,
    ROUTES_CHANGED,
    SOME_ENDED,
    UNROUTED,
    WOKEN,
)
from ptaskmodel.engine.state import ENDED as TOLD_ENDED
from ptaskmodel.engine.state import EVENTS_FULL as STREAM_FULL
from ptaskmodel.engine.state import STARTED as TOLD_STARTED
from ptaskmodel.engine.stream import emit, has_room_for_events
from ptaskmodel.engine.virtual_time import write_members
from ptaskmodel.kernels.decorators import entry, jit
from ptaskmodel.kernels.records import INT, REAL, below, count_in, number_in, numbers, records

# States of a task. Those from ENDED on are final.
WAITING, READY, RUNNING = numbers(3)
COMPLETED, FAILED, WALLTIME, CANCELLED, DEPENDENCY_FAILED = numbers(3, 8)
ENDED = COMPLETED

TASK = np.dtype(
    [
        ("state", below(8)),
        ("slot", number_in("activities")),  # of its activity, while it runs
        ("program", number_in("programs", INT, 0)),
        ("stage", number_in("stages", INT, 0)),  # position in the program
        ("rounds", INT),  # rounds of the program already begun
        (
            "wake",
            number_in("wakes"),
        ),  # until it starts, its start date; then its walltime; -1: none
        ("waits_for", INT),  # tasks that must complete first
        (
            "followers",
            number_in("followers"),
        ),  # head of the list of those that wait for this one, -1: none
        ("released", below(2)),  # 1: they have been told
        ("next_ready", number_in("tasks")),  # in the list of stages to begin now
        ("next_killed", number_in("tasks")),  # in the list of those whose walltime has come
        ("next_ended", number_in("tasks")),  # in the list of those whose followers are to be told
        ("start", REAL),  # earliest date, s
        ("walltime", REAL),  # inf: none
        ("weight", REAL),
        ("rate_bound", REAL),  # 1/s, inf: none
        ("started", REAL),
        ("finished", REAL),
    ],
    align=True,
)

# pattern: -1 until it is routed. delay: s, nan: none. ranks: 1: those of a trace do it.
STAGE = np.dtype(
    [("pattern", number_in("patterns")), ("amount", REAL), ("delay", REAL), ("ranks", below(2))],
    align=True,
)

PROGRAM = np.dtype(
    [
        ("first", number_in("stages", INT, 0)),
        ("count", count_in("stages")),
        ("rounds", INT),
        ("users", INT),
    ],
    align=True,
)

FOLLOWER = np.dtype(
    [("task", number_in("tasks", INT, 0)), ("next", number_in("followers"))], align=True
)

COUNTS = np.dtype(
    [
        ("n_tasks", count_in("tasks")),
        ("n_admitted", count_in("tasks")),  # tasks that the loop has seen
        ("n_ended", count_in("tasks")),
        ("n_told", count_in("tasks")),  # ended tasks already reported to the caller
        ("n_followers", count_in("followers")),
        ("ready", LIST),  # tasks whose stage is to begin now
        ("ended", LIST),  # tasks whose followers are to be told
        ("killed", LIST),  # tasks whose walltime has come at this date
    ],
    align=True,
)

INFINITY = float("inf")


class Tasks(NamedTuple):
    """Every array of tasks that the loop reads and writes (see the record types above)."""

    counts: np.ndarray  # one record
    tasks: np.ndarray
    programs: np.ndarray
    stages: np.ndarray
    followers: np.ndarray


def new_tasks() -> Tasks:
    """No tasks."""
    counts = records(1, COUNTS)
    for name in ("ready", "ended", "killed"):
        counts[name] = EMPTY
    return Tasks(
        counts, records(1, TASK), records(1, PROGRAM), records(1, STAGE), records(1, FOLLOWER)
    )


@functools.cache
def task_template() -> np.ndarray:
    """One task record with the values that a new task has, not to be written to."""
    template = records(1, TASK)
    for name in ("walltime", "rate_bound"):
        template[name] = np.inf
    for name in ("started", "finished"):
        template[name] = np.nan
    for name in ("followers", "wake", "slot", "next_ready", "next_ended"):
        template[name] = -1
    template["weight"] = 1.0
    return template


@jit
def queue(t, task):
    """Let the current stage of a task begin at this date."""
    t.tasks[task].state = READY
    append(t.counts[0].ready, t.tasks.next_ready, task)


@jit
def queue_at_start_date(s, t, task):
    """Queue a task that waits for no other, or let it wait for its start time (there is space)."""
    record = t.tasks[task]
    if record.start > s.clock[0].now:
        record.wake = push_wake(s, record.start, task)
    else:
        queue(t, task)


@jit
def leave(s, t, task):
    """End what a task is doing."""
    record = t.tasks[task]
    if record.slot >= 0:
        stop(s, record.slot)
        record.slot = -1


@jit
def end_task(s, t, task, state):
    """The task is over."""
    counts = t.counts[0]
    record = t.tasks[task]
    leave(s, t, task)
    if record.wake >= 0:
        cancel_wake(s, record.wake)
        record.wake = -1
    record.state = state
    if not np.isnan(record.started):
        record.finished = s.clock[0].now
    append(counts.ended, t.tasks.next_ended, task)
    counts.n_ended += 1
    t.programs[record.program].users -= 1
    emit(s, TOLD_ENDED, task, float(state))


@jit
def end_stage(s, t, task):
    """A stage is done or lost: on to the next one, or to the end of the task."""
    record = t.tasks[task]
    if not succeeds(s, record.slot):
        end_task(s, t, task, FAILED)
        return
    program = t.programs[record.program]
    if record.stage + 1 == program.count and record.rounds + 1 == program.rounds:
        end_task(s, t, task, COMPLETED)
        return
    leave(s, t, task)
    record.stage += 1
    if record.stage == program.count:
        record.stage = 0
        record.rounds += 1
    queue(t, task)


@jit
def missing_for_stage(s, t, task):
    """What the current stage of a task still needs to begin; OK if nothing."""
    record = t.tasks[task]
    pattern = t.stages[t.programs[record.program].first + record.stage].pattern
    status = UNROUTED
    if pattern >= 0:
        status = missing(s, pattern)
    if status == UNROUTED:
        s.clock[0].argument = task
    elif status == OK and not has_room_for_wake(s):
        return GROW_WAKES
    return status


@jit
def begin_stage(s, t, task, o):
    """Begin the current stage of a task now: nothing is missing."""
    clock = s.clock[0]
    record = t.tasks[task]
    stage = t.stages[t.programs[record.program].first + record.stage]
    if np.isnan(record.started):
        record.started = clock.now
        emit(s, TOLD_STARTED, task, 0.0)
        if record.walltime < INFINITY:
            record.wake = push_wake(s, clock.now + record.walltime, task)
    bound = record.rate_bound * stage.amount if stage.amount > 0.0 else INFINITY
    record.state = RUNNING
    record.slot = start(s, stage.pattern, stage.amount, record.weight, bound, stage.delay, task, o)
    if s.activities[record.slot].state in (DONE, LOST):
        end_stage(s, t, task)


@jit
def begin_ready(s, t, o):
    """Tell the followers of those that ended, begin what is ready, until nothing is left to do."""
    counts = t.counts[0]
    while True:
        if counts.ended.first >= 0:
            ended = t.tasks[counts.ended.first]
            while ended.followers >= 0:
                if not has_room_for_wake(s):
                    return GROW_WAKES
                if not has_room_for_events(s, 0):
                    return STREAM_FULL
                follower = t.followers[ended.followers]
                ended.followers = follower.next
                release(s, t, follower.task, ended.state == COMPLETED)
            ended.released = 1
            take_first(counts.ended, t.tasks.next_ended)
        elif counts.ready.first >= 0:
            task = counts.ready.first
            record = t.tasks[task]
            if record.state == READY:
                status = missing_for_stage(s, t, task)
                if status != OK:
                    return status
            take_first(counts.ready, t.tasks.next_ready)
            if record.state == READY:
                begin_stage(s, t, task, o)
        else:
            return OK


@jit
def release(s, t, task, completed):
    """A task that this one waits for is over."""
    record = t.tasks[task]
    if record.state != WAITING:
        return
    if not completed:
        end_task(s, t, task, DEPENDENCY_FAILED)
        return
    record.waits_for -= 1
    if record.waits_for == 0:
        queue_at_start_date(s, t, task)


@jit
def woken(s, t, task):
    """The start date of a task has come, or its walltime: then it is listed to be killed."""
    record = t.tasks[task]
    record.wake = -1
    if record.state == WAITING:
        queue(t, task)
    elif record.state < ENDED:
        append(t.counts[0].killed, t.tasks.next_killed, task)


@jit
def end_killed(s, t):
    """End the tasks of ``t`` whose walltime has come and which are not over (s: the engine's)."""
    killed = t.counts[0].killed
    while killed.first >= 0:
        task = take_first(killed, t.tasks.next_killed)
        if t.tasks[task].state < ENDED:
            end_task(s, t, task, WALLTIME)


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

    It takes the engine's state `s`, that of tasks `t`, and the options `o`. What it leaves undone
    is in the state: calling it again continues there.
    """
    status = advance(s, t, o)
    write_members(s)
    return status


@entry
def finish(s, t, task, state):
    """End task `task` (index) from Python in a final `state`; the stream must have room.

    The states `s` and `t` are as for `run`.
    """
    end_task(s, t, task, state)
