# mypy: allow-untyped-defs, allow-incomplete-defs
"""Kernels of the compiled batch loop for jobs whose ends the engine computes.

`parallel_tasks` calls them step by step: task k of the engine is the k-th job that started. Between
two calls, the profiles of started jobs become usage vectors 0, 1, ... of the engine.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.batch.compiled.ends import pop_end
from ptaskmodel.batch.compiled.loop import begin_date, finish, submit_and_decide
from ptaskmodel.batch.compiled.state import CIRCLES, FULL, NOBODY, NOTHING, PAUSED
from ptaskmodel.engine.state import ENDED as TOLD_ENDED
from ptaskmodel.kernels.decorators import entry, jit
from ptaskmodel.simulation.life import ENDED, FAILED, WAITING

INFINITY = float("inf")


@entry
def one_date(s, core, t, works, machine, placement, demands):
    """Take the ends that the simulation tells of its date, submit, decide, list what starts.

    works, machine: see `compiled_ptasks`. placement, demands: what starts, as `assemble_stages`
    takes it, in the order of the starts.

    PAUSED: the policy has decided; NOTHING: nothing happened. CIRCLES: the open loop will say what
    is wrong. FULL: as in `loop`, nothing has been done.
    """
    clock, now = s.clock[0], core.clock[0].now
    if clock.n_pieces + len(s.jobs) - clock.started + len(s.runs) > len(s.pieces):
        return FULL
    n_events = core.clock[0].n_events
    core.clock[0].n_events = 0
    t.counts[0].n_told = t.counts[0].n_ended
    happened = clock.position < len(s.jobs) and s.jobs[clock.position].submit <= now
    for i in range(n_events):
        if core.events[i].kind == TOLD_ENDED:
            happened = True
            if core.events[i].value == FAILED:
                return CIRCLES
    if not happened:
        return NOTHING
    clock.at_date = 0 if now > clock.now else clock.at_date + 1
    if clock.at_date > clock.most:
        return CIRCLES
    clock.now = now
    ended, late, reach = False, False, now
    begin_date(s)
    for i in range(n_events):
        if core.events[i].kind == TOLD_ENDED:
            j = s.order[core.events[i].subject]
            ended = True
            late = late or s.jobs[j].expected < now
            reach = max(reach, finish(s, j))
    first = clock.started
    submit_and_decide(s, ended, late, reach)
    _list(s, first, works, machine, placement, demands)
    return PAUSED


@jit
def _list(s, first, works, machine, placement, demands):
    """What starts at this date: hosts and demands, one job after the other."""
    n, f = 0, 0
    for number in range(first, s.clock[0].started):
        k, work = number - first, works.of_job[s.order[number]]
        begin = n
        for p in range(s.first_piece[number], s.first_piece[number + 1]):
            piece = s.pieces[p]
            for host in range(piece.first, piece.first + piece.length):
                placement.hosts[n] = machine.hosts[host]
                placement.nodes[n] = machine.nodes[host]
                n += 1
        placement.start[k + 1] = n
        a, b = works.first_rank[work], works.first_rank[work + 1]
        for i in range(n - begin):  # one amount for all, or one for each rank
            demands.flops[begin + i] = works.flops[a + i if b - a > 1 else a]
        demands.pair_bytes[k] = works.pair_bytes[work]
        demands.competitors[k] = works.competitors[work]
        for i in range(works.first_flow[work], works.first_flow[work + 1]):
            demands.flow_from[f] = works.flow_from[i]
            demands.flow_to[f] = works.flow_to[i]
            demands.flow_bytes[f] = works.flow_bytes[i]
            f += 1
        demands.flow_start[k + 1] = f


@entry
def enter_ptask(s, core, t, first, gamma, alone_s):
    """Add the tasks of the jobs that started, from number ``first`` on, whose works are assembled.

    core: the state of the engine. alone_s: takes the time alone of each, as
    `isolated.times_alone` finds it.
    """
    clock, counts = s.clock[0], t.counts[0]
    for number in range(first, clock.started):
        pattern = core.patterns[number - first]
        program, stage, task = t.programs[number], t.stages[number], t.tasks[number]
        program.first, program.count, program.rounds, program.users = number, 1, 1, 1
        stage.pattern, stage.amount = number - first, pattern.amount
        stage.delay, stage.ranks = np.nan, 0
        task.state, task.program = WAITING, number
        task.stage, task.rounds, task.waits_for = 0, 0, 0
        task.slot, task.wake, task.followers, task.released = NOBODY, NOBODY, NOBODY, 0
        task.next_ready, task.next_killed, task.next_ended = NOBODY, NOBODY, NOBODY
        task.start, task.walltime, task.weight, task.rate_bound = 0.0, INFINITY, 1.0, INFINITY
        task.started, task.finished = np.nan, np.nan
        alone_s[s.order[number]] = _time_alone(core, pattern, gamma)
    counts.n_tasks = clock.started
    while clock.n_ends > 0 and s.jobs[s.ends[0].job].over >= 0:
        pop_end(s)
    clock.due = INFINITY if clock.n_ends == 0 else s.ends[0].date
    if clock.position < len(s.jobs):
        clock.due = min(clock.due, s.jobs[clock.position].submit)


@jit
def _time_alone(core, pattern, gamma):
    rate = INFINITY
    for k in range(pattern.first, pattern.first + pattern.count):
        element = core.elements[k]
        resource = core.resources[element.resource]
        if not resource.on:
            return np.nan
        if element.usage > 0.0:
            rate = min(rate, core.graph.constraints[element.resource].capacity / element.usage)
            rate = min(rate, resource.one_core / element.usage)
    if rate == INFINITY:
        return np.nan
    if gamma > 0.0:
        rate = min(rate, gamma / (2.0 * pattern.latency_bytes))
    time = pattern.latency + pattern.amount / rate
    return time if time < INFINITY else np.nan


@entry
def next_killed(s, t, now):
    """The task of a job whose walltime has come and that still runs; -1: there is none any more."""
    clock = s.clock[0]
    while clock.n_ends > 0 and s.ends[0].date <= now:
        number = s.jobs[pop_end(s)].number
        if t.tasks[number].state < ENDED:
            return number
    return NOBODY
