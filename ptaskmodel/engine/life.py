"""The life of a task: how its stages are queued, begin, share, end, and what follows."""

from __future__ import annotations

import numpy as np

from ptaskmodel.engine.queues import push_timer, remove_end
from ptaskmodel.engine.sharing_graph import (
    disable,
    enable,
    has_room,
    link_nodes,
    unlink_nodes,
)
from ptaskmodel.engine.state import (
    COMPLETED,
    DELAY_END,
    DELAYED,
    DEPENDENCY_FAILED,
    ENDED,
    FAILED,
    GROW_NODES,
    GROW_TIMERS,
    KILL,
    LATENCY_END,
    LATENT,
    LAYOUT,
    LIMIT_DELAY,
    LIMIT_LATENCY,
    LIMIT_NOTHING,
    LIMIT_UNKNOWN,
    LOG_FULL,
    OK,
    READY,
    RUNNING,
    START,
    WAITING,
)
from ptaskmodel.jit import jit

# Of a task in the list of the doomed: uses something that is off; did, but no longer does.
DOOMED, LISTED = 1, 2
INFINITY = float("inf")


@jit
def log_rate(s, task, rate, limit):
    """Note that a task changes its rate, if anyone listens (the caller has made sure of room)."""
    if s.log.size > 0:
        clock = s.clock[0]
        change = s.log[clock.n_log]
        change.task = task
        change.stage = s.programs[s.tasks[task].program].first + s.tasks[task].stage
        change.time = clock.now
        change.rate = rate
        change.limit = limit
        clock.n_log += 1


@jit
def queue(s, task):
    """Let the current stage of a task begin at this date."""
    clock = s.clock[0]
    s.tasks[task].state = READY
    place = clock.ready_first + clock.n_ready
    if place >= s.tasks.size:
        place -= s.tasks.size
    s.tasks[place].slot_ready = task
    clock.n_ready += 1


@jit
def leave(s, task, state):
    """Stop whatever a task is doing and give it another state; its nodes are returned."""
    t = s.tasks[task]
    if t.state == RUNNING:
        if t.rate > 0.0:
            log_rate(s, task, 0.0, LIMIT_NOTHING)
        remove_end(s.heap, s.tasks, s.clock[0], task)
        disable(s, task, state)
    t.timer += 1
    t.state = state
    t.rate = 0.0
    if t.doomed == DOOMED:
        t.doomed = LISTED
    if t.n_nodes > 0:
        unlink_nodes(s, task)


@jit
def end_task(s, task, state):
    """The task is over."""
    clock = s.clock[0]
    leave(s, task, state)
    t = s.tasks[task]
    if not np.isnan(t.started):
        t.finished = clock.now
    s.tasks[clock.n_ended].slot_ended = task
    clock.n_ended += 1
    s.programs[t.program].users -= 1


@jit
def uses_a_dead_host(s, task):
    t = s.tasks[task]
    for k in range(t.nodes, t.nodes + t.n_nodes):
        r = s.resources[s.nodes[k].resource]
        if not r.on and r.one_core < INFINITY:
            return True
    return False


@jit
def end_stage(s, task):
    """A stage is done: on to the next one, or to the end of the task.

    As in SimGrid, a link that is off goes unnoticed by the task that completes, a host does not.
    """
    t = s.tasks[task]
    if t.doomed == DOOMED and uses_a_dead_host(s, task):
        end_task(s, task, FAILED)
        return
    program = s.programs[t.program]
    if t.stage + 1 == program.count and t.rounds + 1 == program.rounds:
        end_task(s, task, COMPLETED)
        return
    leave(s, task, READY)
    t.stage += 1
    if t.stage == program.count:
        t.stage = 0
        t.rounds += 1
    queue(s, task)


@jit
def refresh_bound(s, task, gamma):
    """Largest rate of a stage: its own bound, the TCP window, one core for each host entry."""
    t = s.tasks[task]
    bound = t.stage_bound
    if gamma > 0.0 and t.latency_bytes > 0.0:
        bound = min(bound, gamma / (2.0 * t.latency_bytes))
    for k in range(t.nodes, t.nodes + t.n_nodes):
        node = s.nodes[k]
        one_core = s.resources[node.resource].one_core
        if one_core == INFINITY:  # hosts come first
            break
        if node.usage > 0.0:
            bound = min(bound, one_core / node.largest)
    t.bound = bound


@jit
def share(s, task, gamma):
    """The latency is paid: the stage takes part in the sharing, or is done if it has no work."""
    t = s.tasks[task]
    if t.remaining <= 0.0:
        end_stage(s, task)
    else:
        refresh_bound(s, task, gamma)
        enable(s, task)
        t.limit = LIMIT_UNKNOWN


@jit
def begin_stage(s, task, gamma):
    """Begin the current stage of a task now; OK or what is missing (nothing is done then)."""
    clock = s.clock[0]
    t = s.tasks[task]
    program = s.programs[t.program]
    stage = s.stages[program.first + t.stage]
    if stage.first < 0:
        clock.argument = task
        return LAYOUT
    if not has_room(s, stage.count):
        clock.argument = stage.count
        return GROW_NODES
    if clock.n_timers + 3 > s.timers.size:
        return GROW_TIMERS
    if s.log.size > 0 and clock.n_log + 1 > s.log.size:
        return LOG_FULL
    if np.isnan(t.started):
        t.started = clock.now
        if t.walltime < INFINITY:
            push_timer(s, clock.now + t.walltime, KILL, task, 0)
    if not link_nodes(s, task, stage.first, stage.count):
        doom(s, task)
    t.timer += 1
    t.remaining = stage.amount
    t.latency_bytes = stage.latency_bytes
    t.penalty = stage.penalty / t.weight
    t.stage_bound = stage.bound
    if stage.amount > 0.0:
        t.stage_bound = min(stage.bound, t.rate_bound * stage.amount)
    t.updated = clock.now
    t.rate = 0.0
    if not np.isnan(stage.delay):
        t.state = DELAYED
        log_rate(s, task, 0.0, LIMIT_DELAY)
        push_timer(s, clock.now + stage.delay, DELAY_END, task, t.timer)
    elif stage.latency > 0.0:
        t.state = LATENT
        log_rate(s, task, 0.0, LIMIT_LATENCY)
        push_timer(s, clock.now + stage.latency, LATENCY_END, task, t.timer)
    else:
        share(s, task, gamma)
    return OK


@jit
def begin_ready(s, gamma):
    """Tell the followers of those that ended, begin what is ready, until nothing is left to do."""
    clock = s.clock[0]
    while True:
        if clock.n_released < clock.n_ended:
            ended = s.tasks[s.tasks[clock.n_released].slot_ended]
            while ended.followers >= 0:
                if clock.n_timers + 3 > s.timers.size:
                    return GROW_TIMERS
                follower = s.followers[ended.followers]
                ended.followers = follower.next
                release(s, follower.task, ended.state == COMPLETED)
            clock.n_released += 1
        elif clock.n_ready > 0:
            task = s.tasks[clock.ready_first].slot_ready
            if s.tasks[task].state == READY:
                status = begin_stage(s, task, gamma)
                if status != OK:
                    return status
            clock.n_ready -= 1
            clock.ready_first += 1
            if clock.ready_first == s.tasks.size:
                clock.ready_first = 0
        else:
            return OK


@jit
def release(s, task, completed):
    """A task that this one waits for is over."""
    t = s.tasks[task]
    if t.state != WAITING:
        return
    if not completed:
        end_task(s, task, DEPENDENCY_FAILED)
        return
    t.waits_for -= 1
    if t.waits_for == 0:
        if t.start > s.clock[0].now:
            push_timer(s, t.start, START, task, 0)
        else:
            queue(s, task)


@jit
def doom(s, task):
    """The task uses something that is off: it fails at the next event, unless it completes then."""
    clock = s.clock[0]
    t = s.tasks[task]
    if t.doomed == 0:
        s.tasks[clock.n_doomed].slot_doomed = task
        clock.n_doomed += 1
    t.doomed = DOOMED


@jit
def fail_doomed(s):
    clock = s.clock[0]
    n = clock.n_doomed
    clock.n_doomed = 0
    for i in range(n):
        task = s.tasks[i].slot_doomed
        if s.tasks[task].doomed == DOOMED:
            end_task(s, task, FAILED)
        s.tasks[task].doomed = 0


@jit
def timer_is_valid(s, timer):
    t = s.tasks[timer.task]
    if timer.kind == START:
        return t.state == WAITING
    if timer.kind == KILL:
        return t.state < ENDED
    return t.timer == timer.stamp and (t.state == LATENT or t.state == DELAYED)
