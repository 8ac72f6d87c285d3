"""The life of an activity: how its stages are queued, begin, share, end, and what follows."""

from __future__ import annotations

import numpy as np

from ptaskmodel.core.queues import push_timer, remove_end
from ptaskmodel.core.sharing_graph import (
    disable,
    enable,
    has_room,
    link_nodes,
    unlink_nodes,
)
from ptaskmodel.core.state import (
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

# Of an activity in the list of the doomed: uses something that is off; did, but no longer does.
DOOMED, LISTED = 1, 2
INFINITY = float("inf")


@jit
def log_rate(s, slot, rate, limit):
    """Note that an activity changes its rate, if anyone listens (the caller has made sure of room)."""
    if s.log.size > 0:
        clock = s.clock[0]
        change = s.log[clock.n_log]
        change.task = slot
        change.stage = s.programs[s.activities[slot].program].first + s.activities[slot].stage
        change.time = clock.now
        change.rate = rate
        change.limit = limit
        clock.n_log += 1


@jit
def queue(s, slot):
    """Let the current stage of an activity begin at this date."""
    clock = s.clock[0]
    s.activities[slot].state = READY
    place = clock.ready_first + clock.n_ready
    if place >= s.activities.size:
        place -= s.activities.size
    s.activities[place].slot_ready = slot
    clock.n_ready += 1


@jit
def leave(s, slot, state):
    """Stop whatever an activity is doing and give it another state; its nodes are returned."""
    t = s.activities[slot]
    if t.state == RUNNING:
        if t.rate > 0.0:
            log_rate(s, slot, 0.0, LIMIT_NOTHING)
        remove_end(s.heap, s.activities, s.clock[0], slot)
        disable(s, slot, state)
    t.timer += 1
    t.state = state
    t.rate = 0.0
    if t.doomed == DOOMED:
        t.doomed = LISTED
    if t.n_nodes > 0:
        unlink_nodes(s, slot)


@jit
def end_task(s, slot, state):
    """The activity is over."""
    clock = s.clock[0]
    leave(s, slot, state)
    t = s.activities[slot]
    if not np.isnan(t.started):
        t.finished = clock.now
    s.activities[clock.n_ended].slot_ended = slot
    clock.n_ended += 1
    s.programs[t.program].users -= 1


@jit
def uses_a_dead_host(s, slot):
    t = s.activities[slot]
    for k in range(t.nodes, t.nodes + t.n_nodes):
        r = s.resources[s.nodes[k].resource]
        if not r.on and r.one_core < INFINITY:
            return True
    return False


@jit
def end_stage(s, slot):
    """A stage is done: on to the next one, or to the end of the activity.

    As in SimGrid, a link that is off goes unnoticed by the activity that completes, a host does not.
    """
    t = s.activities[slot]
    if t.doomed == DOOMED and uses_a_dead_host(s, slot):
        end_task(s, slot, FAILED)
        return
    program = s.programs[t.program]
    if t.stage + 1 == program.count and t.rounds + 1 == program.rounds:
        end_task(s, slot, COMPLETED)
        return
    leave(s, slot, READY)
    t.stage += 1
    if t.stage == program.count:
        t.stage = 0
        t.rounds += 1
    queue(s, slot)


@jit
def refresh_bound(s, slot, gamma):
    """Largest rate of a stage: its own bound, the TCP window, one core for each host entry."""
    t = s.activities[slot]
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
def share(s, slot, gamma):
    """The latency is paid: the stage takes part in the sharing, or is done if it has no work."""
    t = s.activities[slot]
    if t.remaining <= 0.0:
        end_stage(s, slot)
    else:
        refresh_bound(s, slot, gamma)
        enable(s, slot)
        t.limit = LIMIT_UNKNOWN


@jit
def begin_stage(s, slot, gamma):
    """Begin the current stage of an activity now; OK or what is missing (nothing is done then)."""
    clock = s.clock[0]
    t = s.activities[slot]
    program = s.programs[t.program]
    stage = s.stages[program.first + t.stage]
    if stage.first < 0:
        clock.argument = slot
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
            push_timer(s, clock.now + t.walltime, KILL, slot, 0)
    if not link_nodes(s, slot, stage.first, stage.count):
        doom(s, slot)
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
        log_rate(s, slot, 0.0, LIMIT_DELAY)
        push_timer(s, clock.now + stage.delay, DELAY_END, slot, t.timer)
    elif stage.latency > 0.0:
        t.state = LATENT
        log_rate(s, slot, 0.0, LIMIT_LATENCY)
        push_timer(s, clock.now + stage.latency, LATENCY_END, slot, t.timer)
    else:
        share(s, slot, gamma)
    return OK


@jit
def begin_ready(s, gamma):
    """Tell the followers of those that ended, begin what is ready, until nothing is left to do."""
    clock = s.clock[0]
    while True:
        if clock.n_released < clock.n_ended:
            ended = s.activities[s.activities[clock.n_released].slot_ended]
            while ended.followers >= 0:
                if clock.n_timers + 3 > s.timers.size:
                    return GROW_TIMERS
                follower = s.followers[ended.followers]
                ended.followers = follower.next
                release(s, follower.slot, ended.state == COMPLETED)
            clock.n_released += 1
        elif clock.n_ready > 0:
            slot = s.activities[clock.ready_first].slot_ready
            if s.activities[slot].state == READY:
                status = begin_stage(s, slot, gamma)
                if status != OK:
                    return status
            clock.n_ready -= 1
            clock.ready_first += 1
            if clock.ready_first == s.activities.size:
                clock.ready_first = 0
        else:
            return OK


@jit
def release(s, slot, completed):
    """An activity that this one waits for is over."""
    t = s.activities[slot]
    if t.state != WAITING:
        return
    if not completed:
        end_task(s, slot, DEPENDENCY_FAILED)
        return
    t.waits_for -= 1
    if t.waits_for == 0:
        if t.start > s.clock[0].now:
            push_timer(s, t.start, START, slot, 0)
        else:
            queue(s, slot)


@jit
def doom(s, slot):
    """The activity uses something that is off: it fails at the next event, unless it completes then."""
    clock = s.clock[0]
    t = s.activities[slot]
    if t.doomed == 0:
        s.activities[clock.n_doomed].slot_doomed = slot
        clock.n_doomed += 1
    t.doomed = DOOMED


@jit
def fail_doomed(s):
    clock = s.clock[0]
    n = clock.n_doomed
    clock.n_doomed = 0
    for i in range(n):
        slot = s.activities[i].slot_doomed
        if s.activities[slot].doomed == DOOMED:
            end_task(s, slot, FAILED)
        s.activities[slot].doomed = 0


@jit
def timer_is_valid(s, timer):
    t = s.activities[timer.slot]
    if timer.kind == START:
        return t.state == WAITING
    if timer.kind == KILL:
        return t.state < ENDED
    return t.timer == timer.stamp and (t.state == LATENT or t.state == DELAYED)
