"""The life of a task: how its stages are queued, begin, end, and what follows."""

from __future__ import annotations

import numpy as np

from ptaskmodel.core.life import missing, start, stop, succeeds
from ptaskmodel.core.queues import cancel_wake, has_room_for_wake, push_wake
from ptaskmodel.core.state import (
    DONE,
    GROW_WAKES,
    LOST,
    OK,
    UNROUTED,
)
from ptaskmodel.core.state import ENDED as TOLD_ENDED
from ptaskmodel.core.state import EVENTS_FULL as STREAM_FULL
from ptaskmodel.core.state import STARTED as TOLD_STARTED
from ptaskmodel.core.stream import has_room_for_events, tell
from ptaskmodel.kernels.decorators import jit
from ptaskmodel.simulation.state import (
    COMPLETED,
    DEPENDENCY_FAILED,
    ENDED,
    FAILED,
    READY,
    RUNNING,
    WAITING,
)

INFINITY = float("inf")


@jit
def queue(t, task):
    """Let the current stage of a task begin at this date."""
    counts = t.counts[0]
    record = t.tasks[task]
    record.state = READY
    record.next_ready = -1
    if counts.last_ready >= 0:
        t.tasks[counts.last_ready].next_ready = task
    else:
        counts.first_ready = task
    counts.last_ready = task


@jit
def queue_at_start_date(s, t, task):
    """Queue a task that waits for nobody, or let it wait for its date (there is room for that)."""
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
    record.next_ended = -1
    if counts.last_ended >= 0:
        t.tasks[counts.last_ended].next_ended = task
    else:
        counts.first_ended = task
    counts.last_ended = task
    counts.n_ended += 1
    t.programs[record.program].users -= 1
    tell(s, TOLD_ENDED, task, float(state))


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
        tell(s, TOLD_STARTED, task, 0.0)
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
        if counts.first_ended >= 0:
            ended = t.tasks[counts.first_ended]
            while ended.followers >= 0:
                if not has_room_for_wake(s):
                    return GROW_WAKES
                if not has_room_for_events(s, 0):
                    return STREAM_FULL
                follower = t.followers[ended.followers]
                ended.followers = follower.next
                release(s, t, follower.task, ended.state == COMPLETED)
            ended.released = 1
            counts.first_ended = ended.next_ended
            if counts.first_ended < 0:
                counts.last_ended = -1
        elif counts.first_ready >= 0:
            task = counts.first_ready
            record = t.tasks[task]
            if record.state == READY:
                status = missing_for_stage(s, t, task)
                if status != OK:
                    return status
            counts.first_ready = record.next_ready
            if counts.first_ready < 0:
                counts.last_ready = -1
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
    """The start date or the walltime of a task has come; whether it is the walltime."""
    record = t.tasks[task]
    record.wake = -1
    if record.state == WAITING:
        queue(t, task)
        return False
    return record.state < ENDED
