"""The compiled event loop: the life of a task, one date after the other.

At a date T, in this order (what "simultaneous" means here; see docs/background/events.md):

1. profile events dated <= T change capacities, latencies and states;
2. timers within ``time_precision`` of T: latencies and delays end, starts are queued;
3. tasks whose work is done (up to ``work_precision``) end their stage;
4. tasks that use something that is off fail, unless step 3 ended them;
5. walltimes kill;
6. followers are released, queued stages begin (in the order in which they became ready);
7. what changed is shared anew.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.engine.queues import pop_timer, push_timer, remove_end, set_end
from ptaskmodel.engine.sharing_graph import (
    classify,
    declassify,
    disable,
    enable,
    find_sub_system,
    has_room,
    lay_sub_system,
    link_nodes,
    set_capacity,
    sub_system,
    unlink_nodes,
)
from ptaskmodel.engine.state import (
    BANDWIDTH,
    COMPLETED,
    DELAY_END,
    DELAYED,
    DEPENDENCY_FAILED,
    ENDED,
    FAILED,
    GROW_NODES,
    GROW_TIMERS,
    IDLE,
    KILL,
    LATENCY,
    LATENCY_CHANGED,
    LATENCY_END,
    LATENT,
    LAYOUT,
    LIMIT_DELAY,
    LIMIT_LATENCY,
    LIMIT_NOTHING,
    LIMIT_SUSPENDED,
    LIMIT_UNKNOWN,
    LOG_FULL,
    PAUSED,
    READY,
    RUNNING,
    SETTLE,
    SOME_ENDED,
    SPEED,
    START,
    STEP,
    STEPPED,
    SUSPENDED,
    UNSOLVED,
    UNTIL,
    WAITING,
    WALLTIME,
    numbers,
)
from ptaskmodel.jit import jit
from ptaskmodel.sharing.bmf import solve_bmf
from ptaskmodel.sharing.fairbottleneck import solve_fairbottleneck
from ptaskmodel.sharing.maxmin import solve_maxmin

BMF, FAIRBOTTLENECK, FAIRBOTTLENECK_CORRECTED, MAXMIN, FLOW_MAXMIN = numbers(5)

OK = np.int64(-1)
# Of a task in the list of the doomed: uses something that is off; did, but no longer does.
DOOMED, LISTED = 1, 2
INFINITY = float("inf")
# Profile events in a row, while no task progresses, after which nothing is expected of them.
MAX_IDLE_PROFILES = 100_000


# --- the life of a task -------------------------------------------------------------------------


@jit
def log_rate(s, task, rate, limit):
    """Note that a task changes its rate, if anyone listens (the caller has made sure of room)."""
    if s.log.size > 0:
        clock = s.clock[0]
        entry = s.log[clock.n_log]
        entry.task = task
        entry.stage = s.programs[s.tasks[task].program].first + s.tasks[task].stage
        entry.time = clock.now
        entry.rate = rate
        entry.limit = limit
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
    if t.stage + 1 == program.count and t.repeat + 1 == program.repeat:
        end_task(s, task, COMPLETED)
        return
    leave(s, task, READY)
    t.stage += 1
    if t.stage == program.count:
        t.stage = 0
        t.repeat += 1
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
            if clock.n_timers + 3 > s.timers.size:
                return GROW_TIMERS
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


# --- failures, changes, profiles ----------------------------------------------------------------


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
def set_state(s, resource, on):
    """Turn a host or a link on or off; its users are doomed."""
    r = s.resources[resource]
    r.on = on
    if not on:
        k = r.first
        while k >= 0:
            doom(s, s.nodes[k].task)
            k = s.nodes[k].next


@jit
def set_speed(s, resource, factor, gamma):
    """Availability of a host: capacity and single-core bounds follow."""
    r = s.resources[resource]
    r.one_core = r.peak * factor
    # Bounds first: the tasks are counted in again with them around the change of capacity.
    k = r.first
    while k >= 0:
        if s.tasks[s.nodes[k].task].state == RUNNING:
            refresh_bound(s, s.nodes[k].task, gamma)
        k = s.nodes[k].next
    set_capacity(s, resource, r.cores * r.one_core)


@jit
def apply_profile(s, profile, o):
    """Apply the next event of a profile and move on to the one after."""
    p = s.profiles[profile]
    value = s.profile_events[p.first + p.position].value
    if p.kind == SPEED:
        set_speed(s, p.resource, value, o.gamma)
    elif p.kind == BANDWIDTH:
        set_capacity(s, p.resource, value)
        if o.flows:
            s.clock[0].latency_changed = 1
    elif p.kind == LATENCY:
        s.resources[p.resource].latency = value
        s.clock[0].latency_changed = 1
    else:
        set_state(s, p.resource, value > 0.0)
    p.position += 1
    if p.position == p.count:
        p.position = 0
        p.round += 1
    if p.position == 0 and p.period == INFINITY:
        p.next_date = INFINITY
    else:
        p.next_date = s.profile_events[p.first + p.position].date
        if p.round > 0:
            p.next_date += p.round * p.period


@jit
def next_profile(s):
    """The profile with the earliest next event (the first of equals), -1: none is left."""
    best = -1
    for i in range(s.profiles.size):
        if s.profiles[i].next_date < INFINITY and (
            best < 0 or s.profiles[i].next_date < s.profiles[best].next_date
        ):
            best = i
    return best


@jit
def apply_profiles(s, date, o):
    """Apply the events dated <= ``date``; the first on a resource in use cuts the step there."""
    clock = s.clock[0]
    while True:
        profile = next_profile(s)
        if profile < 0 or s.profiles[profile].next_date > date:
            return date
        if s.resources[s.profiles[profile].resource].users > 0:
            date = s.profiles[profile].next_date
            clock.cut = 1
        elif date == INFINITY:
            clock.idle_profiles += 1
            if clock.idle_profiles > MAX_IDLE_PROFILES:
                return date
        apply_profile(s, profile, o)


# --- the loop -----------------------------------------------------------------------------------


@jit
def timer_is_valid(s, timer):
    t = s.tasks[timer.task]
    if timer.kind == START:
        return t.state == WAITING
    if timer.kind == KILL:
        return t.state < ENDED
    return t.timer == timer.stamp and (t.state == LATENT or t.state == DELAYED)


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
        task = timer.task
        kind = timer.kind
        valid = timer_is_valid(s, timer)
        pop_timer(s)
        if not valid:
            continue
        if kind == LATENCY_END:
            share(s, task, gamma)
        elif kind == DELAY_END:
            end_stage(s, task)
        elif kind == START:
            queue(s, task)
        else:
            s.tasks[n_kills].slot_sub = task
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
        if end.date > date and s.tasks[end.task].rate * (end.date - date) >= snap:
            break
        end_stage(s, end.task)
    fail_doomed(s)
    for i in range(n_kills):
        if s.tasks[s.tasks[i].slot_sub].state < ENDED:
            end_task(s, s.tasks[i].slot_sub, WALLTIME)


@jit
def solve(s, n, m, solver):
    """Rates of the sub-system laid out, by the rule asked for; 0 or the solver's complaint."""
    v = sub_system(s)
    z = v.start[n]
    start = v.start[: n + 1]
    resource = v.resource[:z]
    usage = v.usage[:z]
    capacity = v.capacity[:m]
    fatpipe = s.flags[:m]
    bound = v.bound[:n]
    rate = v.rate[:n]
    limit = v.limit[:n]
    if solver == BMF:
        return solve_bmf(
            start, resource, usage, v.share[:z], capacity, fatpipe, bound, v.weight[:n],
            v.level[:m], m > 0, rate, limit, v.reals, v.integers,
        )  # fmt: skip
    if solver in (MAXMIN, FLOW_MAXMIN):
        return solve_maxmin(
            start, resource, usage, capacity, fatpipe, bound, v.penalty[:n], solver == FLOW_MAXMIN,
            rate, limit, v.reals, v.integers,
        )  # fmt: skip
    return solve_fairbottleneck(
        start, resource, usage, capacity, fatpipe, bound, v.weight[:n],
        solver == FAIRBOTTLENECK_CORRECTED, rate, limit, v.reals, v.integers,
    )  # fmt: skip


@jit
def solve_alone(s, solver):
    """Rate of a task that shares with nobody: its bound or its tightest resource."""
    t = s.tasks[s.tasks[0].slot_sub]
    rate = t.bound
    limit = -1
    for k in range(t.nodes, t.nodes + t.n_kept):
        element = s.kept[k]
        r = s.resources[element.resource]
        x = r.capacity / element.usage
        if x < rate and (r.capacity > 0.0 or solver != FLOW_MAXMIN):
            rate = x
            limit = r.local
    v = sub_system(s)
    v.rate[0] = rate
    v.limit[0] = limit


@jit
def is_alone(s, n):
    """Whether the sub-system is one task with one element for each of its resources."""
    if n != 1:
        return False
    t = s.tasks[s.tasks[0].slot_sub]
    for k in range(t.nodes, t.nodes + t.n_kept):
        if s.resources[s.kept[k].resource].enabled != 1:
            return False
    return t.n_kept > 0


@jit
def apply_rates(s, n):
    """Give the tasks of the sub-system their rates; those whose rate changed, a new end."""
    clock = s.clock[0]
    v = sub_system(s)
    for i in range(n):
        task = s.tasks[i].slot_sub
        t = s.tasks[task]
        rate = v.rate[i]
        limit = v.limit[i]
        if limit >= 0:
            limit = s.resources[limit].slot_sub
        if rate != t.rate:
            t.remaining -= t.rate * (clock.now - t.updated)
            t.updated = clock.now
            t.rate = rate
            log_rate(s, task, rate, limit)
            if rate > 0.0:
                set_end(s.heap, s.tasks, clock, task, clock.now + max(t.remaining, 0.0) / rate)
            else:
                set_end(s.heap, s.tasks, clock, task, INFINITY)
        elif limit != t.limit:
            log_rate(s, task, rate, limit)
        t.limit = limit


@jit
def reshare(s, o):
    """Solve what changed since the last time and apply the rates; OK or what is missing."""
    clock = s.clock[0]
    if clock.unsolved == 0:
        if clock.n_todo == 0 and clock.n_touched == 0:
            return OK
        n = find_sub_system(s, o.incremental)
        if n == 0:
            return OK
        m = lay_sub_system(s, n)
        clock.n_sub = n
        clock.m_sub = m
        clock.solves += 1
        status = 0
        if o.incremental and is_alone(s, n):
            solve_alone(s, o.solver)
        else:
            status = solve(s, n, m, o.solver)
        clock.unsolved = 1
        if status != 0:
            return UNSOLVED
    if s.log.size > 0 and clock.n_log + clock.n_sub + clock.n_enabled + 16 > s.log.size:
        return LOG_FULL
    clock.unsolved = 0
    if o.solver == BMF:
        levels = sub_system(s).level
        for j in range(clock.m_sub):
            s.resources[s.resources[j].slot_sub].level = levels[j]
    apply_rates(s, clock.n_sub)
    return OK


@jit
def run(s, o):
    """Advance until something needs Python or ``until`` is reached; returns why.

    Everything that it leaves undone is in the state: calling it again goes on where it was.
    """
    clock = s.clock[0]
    if clock.begun == 0:
        clock.begun = 1
        apply_profiles(s, 0.0, o)
    while True:
        if clock.latency_changed == 1:
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


@jit
def admit(s, first, last):
    """Let new tasks wait for their date or begin; the caller has made room for their timers."""
    for task in range(first, last):
        t = s.tasks[task]
        if t.state == WAITING and t.waits_for == 0:
            if t.start > s.clock[0].now:
                push_timer(s, t.start, START, task, 0)
            else:
                queue(s, task)


@jit
def upcoming(s):
    """Date of the next event, timers, ends and profiles on resources in use; inf: none."""
    date = next_date(s)
    for i in range(s.profiles.size):
        if s.resources[s.profiles[i].resource].users > 0:
            date = min(date, s.profiles[i].next_date)
    return date


@jit
def refresh_stage(s, task, latency_bytes, penalty, gamma):
    """Latencies changed: the bound and the weight of a stage under way follow."""
    t = s.tasks[task]
    t.latency_bytes = latency_bytes
    t.penalty = penalty / t.weight
    if t.state == RUNNING:
        declassify(s, task)
        refresh_bound(s, task, gamma)
        classify(s, task)


@jit
def suspend(s, task):
    """Freeze a task that is delayed, in its latency or running."""
    clock = s.clock[0]
    t = s.tasks[task]
    t.suspended_in = t.state
    log_rate(s, task, 0.0, LIMIT_SUSPENDED)
    if t.state == RUNNING:
        t.remaining = max(t.remaining - t.rate * (clock.now - t.updated), 0.0)
        remove_end(s.heap, s.tasks, s.clock[0], task)
        disable(s, task, SUSPENDED)
        t.rate = 0.0
        t.updated = clock.now
        return
    for i in range(clock.n_timers):
        timer = s.timers[i]
        if timer.task == task and timer.stamp == t.timer and timer.kind in (LATENCY_END, DELAY_END):
            t.pending = timer.time - clock.now
    t.state = SUSPENDED
    t.timer += 1


@jit
def resume(s, task, gamma):
    """Let a suspended task go on where it was (the caller has made room for a timer)."""
    t = s.tasks[task]
    t.state = t.suspended_in
    if t.state == RUNNING:
        share(s, task, gamma)
        return
    kind = LATENCY_END if t.state == LATENT else DELAY_END
    log_rate(s, task, 0.0, LIMIT_LATENCY if t.state == LATENT else LIMIT_DELAY)
    push_timer(s, s.clock[0].now + t.pending, kind, task, t.timer)
