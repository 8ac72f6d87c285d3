# mypy: allow-untyped-defs, allow-incomplete-defs
"""Recompute rates after a change: choose a solver and apply its rates."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ptaskmodel.engine.incremental.components import (
    find_sub_system,
    lay_sub_system,
    list_enabled,
    sub_system,
)
from ptaskmodel.engine.incremental.fair_bottleneck import DONE, solve_heavy
from ptaskmodel.engine.incremental.levels import (
    GAVE_UP,
    adopt,
    certified,
    follow_levels,
    take_in_changes,
)
from ptaskmodel.engine.incremental.max_min import follow_rates
from ptaskmodel.engine.incremental.rates import (
    BMF,
    PROPORTIONAL,
    SOLVERS,
    is_alone,
    solve,
    solve_alone,
)
from ptaskmodel.engine.queue import set_end
from ptaskmodel.engine.state import (
    BY_LEVELS,
    BY_PARTS,
    BY_ROUNDS,
    EVENTS_FULL,
    FOLLOWED,
    OK,
    SOLVED,
    SUB,
    UNSOLVED,
    USED,
)
from ptaskmodel.engine.stream import has_room_for_events, tell_rate
from ptaskmodel.engine.virtual_time import can_gather, dissolve, follow_crowd, gather
from ptaskmodel.errors import SimulationError
from ptaskmodel.kernels.decorators import jit
from ptaskmodel.sharing.rules import RULES, WAYS
from ptaskmodel.sharing.rules import SOLVERS as SOLVER_NAMES

INFINITY = float("inf")
# Times that rates are found from the levels in force before all are checked.
CERTIFIED_EVERY = 64
# What can be switched off by name: the ways of rules from event to event, and virtual time for what
# one link limits.
OPTIMISATIONS = (*WAYS[1:], "virtual-time")


def rule_of(solver: str, parallel: bool) -> str:
    """The rule of a ``solver``; parallel: of parallel tasks. Raises SimulationError: unknown."""
    if solver not in SOLVER_NAMES:
        names = ", ".join(SOLVER_NAMES)
        raise SimulationError(f"solver {solver!r} is not known; choose one of {names}")
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
            f"optimisation {unknown[0]!r} is not known; choose from {', '.join(OPTIMISATIONS)}"
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
def name_limits(s, n):
    """Let the limits of a sub-system that was solved be the numbers of resources."""
    for i in range(n):
        if s.integers[i] >= 0:
            s.integers[i] = s.lists[USED, s.integers[i]]


@jit
def apply_rates(s, n):
    """Give the activities of the sub-system their rates; those whose rate changed, a new end."""
    clock = s.clock[0]
    for i in range(n):
        slot = s.lists[SUB, i]
        t = s.activities[slot]
        rate = s.reals[i]
        limit = s.integers[i]
        if rate != t.rate:
            t.remaining -= t.rate * (clock.now - t.updated)
            t.updated = clock.now
            t.rate = rate
            tell_rate(s, slot, rate, limit)
            if rate > 0.0:
                set_end(s, slot, clock.now + max(t.remaining, 0.0) / rate)
            else:
                set_end(s, slot, INFINITY)
        elif limit != t.limit:
            tell_rate(s, slot, rate, limit)
        t.limit = limit


@jit
def solve_anew(s, o):
    """Choose what to solve and solve it by the kernel of the rule; how many, -1 - them: unsolved.

    Where levels are kept, that is all.
    """
    clock = s.clock[0]
    dissolve(s)
    clock.anew = 0
    touched = clock.n_touched
    if clock.way == BY_LEVELS:
        take_in_changes(s)
        n = list_enabled(s, -1)
    else:
        n = find_sub_system(s, o.incremental)
    clock.n_sub = n
    if clock.way == BY_ROUNDS and solve_heavy(s, n, touched, o.solver) == DONE:
        name_limits(s, n)
        return n
    alone = o.incremental and is_alone(s, n)
    clock.m_sub = 0
    if not alone or clock.way == BY_LEVELS:
        clock.m_sub = lay_sub_system(s, sub_system(s), n, False)
    if alone:
        solve_alone(s, 0, o.solver)
    elif n > 0:
        if solve(s, n, clock.m_sub, o.solver) != 0:
            return -1 - n
        name_limits(s, n)
    return n


@jit
def follow(s, solver):
    """Rates of what changed, or may have, but for a crowd, which gathers here; of how many.

    GAVE_UP: all are to be found anew.

    s: the state. solver: the number of the rule's kernel.
    """
    clock = s.clock[0]
    if clock.crowd >= 0:
        others = follow_crowd(s, solver)
        if others >= 0:
            return others
        if clock.anew == 1:
            return GAVE_UP
    if clock.way == BY_LEVELS:
        n = follow_levels(s)
    elif clock.way == BY_PARTS:
        n = follow_rates(s, solver)
    else:
        return GAVE_UP
    if clock.common >= 0 and can_gather(s, n, clock.common):
        gather(s, n, clock.common, clock.lowest)
        return 0
    return n


@jit
def reshare(s, o):
    """Share anew what changed since the last time and apply the rates; OK or what is missing."""
    clock = s.clock[0]
    while True:
        if clock.unsolved == 0:
            if clock.n_todo == 0 and clock.n_touched == 0 and clock.anew == 0:
                return OK
            n = GAVE_UP
            if clock.anew == 0 or clock.way == BY_PARTS:
                n = max(follow(s, o.solver), GAVE_UP)
            clock.n_sub = n
            clock.unsolved = FOLLOWED
            if n == GAVE_UP:
                n = solve_anew(s, o)
                clock.unsolved = SOLVED
            if n == 0:
                clock.unsolved = 0
                return OK
            clock.solves += 1
            if n < 0:
                return UNSOLVED
        if clock.tells_rates > 0 and not has_room_for_events(s, clock.n_sub + 2 * clock.n_active):
            return EVENTS_FULL
        followed = clock.unsolved == FOLLOWED
        clock.unsolved = 0
        apply_rates(s, clock.n_sub)
        if followed:
            if clock.way != BY_LEVELS or clock.crowd >= 0:
                return OK
            if clock.solves % CERTIFIED_EVERY != 0 or certified(s):
                return OK
            clock.anew = 1
        else:
            if clock.way == BY_LEVELS:
                adopt(s, clock.n_sub, clock.m_sub)
            elif o.solver in (BMF, PROPORTIONAL):
                levels = sub_system(s).level
                for j in range(clock.m_sub):
                    s.resources[s.lists[USED, j]].level = levels[j]
            return OK
