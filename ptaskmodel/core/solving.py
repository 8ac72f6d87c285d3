"""Sharing anew what changed: the choice of a solver, and the rates that it finds applied."""

from __future__ import annotations

from ptaskmodel.core.life import log_rate
from ptaskmodel.core.queues import set_end
from ptaskmodel.core.state import LOG_FULL, OK, UNSOLVED, numbers
from ptaskmodel.core.sub_system import find_sub_system, lay_sub_system, sub_system
from ptaskmodel.jit import jit
from ptaskmodel.sharing.bmf import solve_bmf
from ptaskmodel.sharing.fairbottleneck import solve_fairbottleneck
from ptaskmodel.sharing.maxmin import solve_maxmin

BMF, FAIRBOTTLENECK, FAIRBOTTLENECK_CORRECTED, MAXMIN, FLOW_MAXMIN = numbers(5)
INFINITY = float("inf")


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
    """Rate of an activity that shares with nobody: its bound or its tightest resource."""
    t = s.activities[s.activities[0].slot_sub]
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
    """Whether the sub-system is one activity with one element for each of its resources."""
    if n != 1:
        return False
    t = s.activities[s.activities[0].slot_sub]
    for k in range(t.nodes, t.nodes + t.n_kept):
        if s.resources[s.kept[k].resource].enabled != 1:
            return False
    return t.n_kept > 0


@jit
def apply_rates(s, n):
    """Give the activities of the sub-system their rates; those whose rate changed, a new end."""
    clock = s.clock[0]
    v = sub_system(s)
    for i in range(n):
        slot = s.activities[i].slot_sub
        t = s.activities[slot]
        rate = v.rate[i]
        limit = v.limit[i]
        if limit >= 0:
            limit = s.resources[limit].slot_sub
        if rate != t.rate:
            t.remaining -= t.rate * (clock.now - t.updated)
            t.updated = clock.now
            t.rate = rate
            log_rate(s, slot, rate, limit)
            if rate > 0.0:
                set_end(s.heap, s.activities, clock, slot, clock.now + max(t.remaining, 0.0) / rate)
            else:
                set_end(s.heap, s.activities, clock, slot, INFINITY)
        elif limit != t.limit:
            log_rate(s, slot, rate, limit)
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
