# mypy: allow-untyped-defs, allow-incomplete-defs
"""Recompute rates after a change: choose a solver and apply its rates."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ptaskmodel.engine.queue import set_end
from ptaskmodel.engine.state import EVENTS_FULL, FOLLOWED, OK, SOLVED, UNSOLVED
from ptaskmodel.engine.stream import emit_rate, has_room_for_events
from ptaskmodel.engine.virtual_time import can_form_group, dissolve, follow_group, form_group
from ptaskmodel.errors import SimulationError
from ptaskmodel.kernels.decorators import jit
from ptaskmodel.sharing.components import (
    assemble_subproblem,
    find_subproblem,
    list_enabled,
)
from ptaskmodel.sharing.fair_bottleneck.heavy import DONE, solve_heavy
from ptaskmodel.sharing.levels.affected import follow_rates
from ptaskmodel.sharing.levels.levels import (
    GAVE_UP,
    adopt,
    certified,
    follow_levels,
    take_in_changes,
)
from ptaskmodel.sharing.rates import BMF, SOLVERS, is_alone, solve, solve_alone
from ptaskmodel.sharing.rules import RULES, WAYS
from ptaskmodel.sharing.rules import SOLVERS as SOLVER_NAMES
from ptaskmodel.sharing.state import BY_LEVELS, BY_PARTS, BY_PRICES, BY_ROUNDS, SUB, USED
from ptaskmodel.sharing.subproblem import subproblem_of

INFINITY = float("inf")
# Times that rates are found from the levels in force before all are checked.
CERTIFIED_EVERY = 64
# What can be switched off by name: the ways of rules from event to event, and virtual time for what
# one link limits.
OPTIMISATIONS: tuple[str, ...] = (*WAYS[1:], "virtual-time")


def rule_of(solver: str, parallel: bool) -> str:
    """The rule of a ``solver``; parallel: of parallel tasks. Raises SimulationError: unknown."""
    if solver not in SOLVER_NAMES:
        names = ", ".join(SOLVER_NAMES)
        raise SimulationError(f"solver {solver!r} is unknown; choose one of {names}")
    if not parallel and solver == "maxmin":
        return "flow-maxmin"
    return solver


def named_optimisations(optimise: bool | Collection[str]) -> tuple[str, ...]:
    """The names of the optimisations that are on: all, none, or those of ``optimise``.

    Raises SimulationError for an unknown one.
    """
    if isinstance(optimise, bool):
        return OPTIMISATIONS if optimise else ()
    unknown = sorted(set(optimise) - set(OPTIMISATIONS))
    if unknown:
        raise SimulationError(
            f"optimisation {unknown[0]!r} is unknown; choose from {', '.join(OPTIMISATIONS)}"
        )
    return tuple(optimise)


def solver_of(rule: str) -> Any:
    """The kernel that solves whole systems by a rule."""
    return SOLVERS[RULES[rule].kernel]


def late_kernels(rule: str, way: int) -> list[Any]:
    """The late kernels that an engine needs for a ``rule`` and its ``way`` from event to event.

    Where levels are kept, whole systems are hardly ever solved: what does that is wanted then.
    """
    if way == BY_LEVELS:
        return [follow_levels]
    wanted = [solver_of(rule)]
    if way == BY_PARTS:
        wanted.append(follow_rates)
    if way == BY_ROUNDS:
        wanted.append(solve_heavy)
    return wanted


@jit
def name_limits(g, n):
    """Let the limits of a subproblem of the graph that was solved be the numbers of resources."""
    for i in range(n):
        if g.integers[i] >= 0:
            g.integers[i] = g.worklists[USED, g.integers[i]]


@jit
def apply_rates(s, n):
    """Give the activities of the subproblem their rates; those whose rate changed, a new end."""
    clock = s.clock[0]
    g = s.graph
    for i in range(n):
        slot = g.worklists[SUB, i]
        t = g.variables[slot]
        rate = g.reals[i]
        limit = g.integers[i]
        if rate != t.rate:
            a = s.activities[slot]
            a.remaining -= t.rate * (clock.now - a.updated)
            a.updated = clock.now
            t.rate = rate
            emit_rate(s, slot, rate, limit)
            if rate > 0.0:
                set_end(s, slot, clock.now + max(a.remaining, 0.0) / rate)
            else:
                set_end(s, slot, INFINITY)
        elif limit != t.limit:
            emit_rate(s, slot, rate, limit)
        t.limit = limit


@jit
def solve_anew(s, o):
    """Choose what to solve and solve it by the kernel of the rule; how many, -1 - them: unsolved.

    Where levels are kept, that is all.
    """
    g = s.graph
    counts = g.counts[0]
    dissolve(s)
    s.clock[0].anew = 0
    touched = counts.n_touched
    if counts.way == BY_LEVELS:
        take_in_changes(g)
        n = list_enabled(g, -1)
    else:
        n = find_subproblem(g, o.incremental)
    counts.n_sub = n
    if counts.way == BY_ROUNDS and solve_heavy(g, n, touched, o.solver) == DONE:
        name_limits(g, n)
        return n
    alone = o.incremental and is_alone(g, n)
    counts.m_sub = 0
    if not alone or counts.way == BY_LEVELS:
        counts.m_sub = assemble_subproblem(g, subproblem_of(g), n, False)
    if alone:
        solve_alone(g, 0, o.solver)
    elif n > 0:
        if solve(g, n, counts.m_sub, o.solver) != 0:
            return -1 - n
        name_limits(g, n)
    return n


@jit
def follow(s, solver):
    """Rates of what changed, or may have, but for a group, which forms here; of how many.

    GAVE_UP: all are to be found anew.

    s: the state. solver: the number of the rule's kernel.
    """
    clock = s.clock[0]
    if clock.group >= 0:
        others = follow_group(s, solver)
        if others >= 0:
            return others
        if clock.anew == 1:
            return GAVE_UP
    counts = s.graph.counts[0]
    if counts.way == BY_LEVELS:
        n = follow_levels(s.graph)
    elif counts.way == BY_PARTS:
        n = follow_rates(s.graph, solver)
    else:
        return GAVE_UP
    if counts.common >= 0 and can_form_group(s, n, counts.common):
        form_group(s, n, counts.common, counts.lowest)
        return 0
    return n


@jit
def reshare(s, o):
    """Share anew what changed since the last time and apply the rates; OK or what is missing."""
    clock = s.clock[0]
    g = s.graph
    counts = g.counts[0]
    while True:
        if clock.unsolved == 0:
            if counts.n_todo == 0 and counts.n_touched == 0 and clock.anew == 0:
                return OK
            n = GAVE_UP
            if clock.anew == 0 or counts.way == BY_PARTS:
                n = max(follow(s, o.solver), GAVE_UP)
            counts.n_sub = n
            clock.unsolved = FOLLOWED
            if n == GAVE_UP:
                n = solve_anew(s, o)
                clock.unsolved = SOLVED
            if n == 0:
                clock.unsolved = 0
                return OK
            counts.solves += 1
            if n < 0:
                return UNSOLVED
        if clock.tells_rates > 0 and not has_room_for_events(s, counts.n_sub + 2 * clock.n_active):
            return EVENTS_FULL
        followed = clock.unsolved == FOLLOWED
        clock.unsolved = 0
        apply_rates(s, counts.n_sub)
        if followed:
            if counts.way != BY_LEVELS or clock.group >= 0:
                return OK
            if counts.solves % CERTIFIED_EVERY != 0 or certified(g):
                return OK
            clock.anew = 1
        else:
            if counts.way == BY_LEVELS:
                adopt(g, counts.n_sub, counts.m_sub)
            elif o.solver == BMF or counts.way == BY_PRICES:
                levels = subproblem_of(g).level
                for j in range(counts.m_sub):
                    g.constraints[g.worklists[USED, j]].level = levels[j]
            return OK
