# mypy: allow-untyped-defs, allow-incomplete-defs
"""Max-min fairness from event to event: only activities whose rate is affected are re-solved.

Counterpart that computes rates from nothing: `water_filling`.

A max-min fair allocation is the only one in which every activity is at its bound, or on a full
resource where no activity has a higher level (rate times penalty). This can be checked one resource
at a time. At an event:

1. Activities that are new or changed, or limited by a resource that gained or lost a user, are
   affected.
2. The rule's kernel computes their rates, from the capacity that all others leave.
3. On each of these resources the condition of the others must still hold: an activity limited by
   the resource finds it full, with no level above its own. (If an affected activity now has a
   higher level there, those that the resource limits should get more.) Activities that violate the
   condition are affected too, and step 2 follows again.

The rates of all others stay bit-identical. If most are affected, or a FATPIPE has several users,
whole components are solved.
"""

from __future__ import annotations

from ptaskmodel.kernels.decorators import jit, late
from ptaskmodel.kernels.records import NOTHING
from ptaskmodel.sharing.components import (
    SEVERAL,
    assemble_subproblem,
    fill_common,
    forget_changes,
    keeps,
    update_kept,
    used_by_all,
    whole_components,
)
from ptaskmodel.sharing.rates import is_alone, solve, solve_alone
from ptaskmodel.sharing.state import CHANGED, SUB, TODO, TOUCHED, USED, Graph, bare_graph
from ptaskmodel.sharing.subproblem import subproblem_of

INFINITY = float("inf")
# Relative differences up to which a resource is full, and levels are equal.
CLOSE = 1e-12
# A rate that changes less, relatively, stays as it is.
SAME_RATE = 1e-13
# What is left at least of a resource: one of capacity 0 is another thing to a kernel.
SLIVER = 1e-15
# Of so few activities, or this part of them, whole components are solved.
FEW, MANY = 8, 0.5


@jit
def admit(s, slot, mark, n):
    """Let an activity be affected; returns how many are."""
    t = s.variables[slot]
    if t.mark != mark:
        t.mark = mark
        s.worklists[SUB, n] = slot
        n += 1
    return n


@jit
def admit_limited(s, resource, looked, mark, n):
    """Mark the activities that a resource limits as affected; return how many are."""
    r = s.constraints[resource]
    if r.mark == looked:
        return n
    r.mark = looked
    for k in range(r.first, r.first + r.users):
        user = s.users[k]
        t = s.variables[user.slot]
        if t.limit == resource and user.usage > 0.0 and t.enabled == 1:
            n = admit(s, user.slot, mark, n)
    return n


@jit
def keeps_limit(s, slot):
    """Whether what limits an activity is still among what can."""
    t = s.variables[slot]
    return t.limit < 0 or keeps(s, slot, t.limit)


@jit
def begin(s, mark):
    """Take in what changed; how many are affected by it at once."""
    counts = s.counts[0]
    counts.mark += 1
    looked = counts.mark
    n = 0
    update_kept(s, True)
    for i in range(counts.n_todo):
        slot = s.worklists[TODO, i]
        t = s.variables[slot]
        changed = t.todo == CHANGED
        t.todo = 0
        if t.enabled == 1 and (changed or not keeps_limit(s, slot)):
            n = admit(s, slot, mark, n)
    n_changed = n
    for i in range(counts.n_touched):
        resource = s.worklists[TOUCHED, i]
        s.constraints[resource].mark = 0
        n = admit_limited(s, resource, looked, mark, n)
    if n > MANY * counts.n_enabled:  # whole components: those on resources of these are in them
        n_changed = 0
    for i in range(n_changed):
        t = s.variables[s.worklists[SUB, i]]
        for k in range(t.nodes, t.nodes + t.n_kept):
            n = admit_limited(s, s.kept[k].resource, looked, mark, n)
    forget_changes(s)
    return n


@jit
def leave_to_affected(s, v, m, mark):
    """Lay what all others leave of each resource; False if a FATPIPE has several users."""
    for j in range(m):
        resource = s.worklists[USED, j]
        r = s.constraints[resource]
        if r.fatpipe and r.enabled > 1:
            return False
        load = 0.0
        highest = 0.0
        lowest = INFINITY
        for k in range(r.first, r.first + r.users):
            user = s.users[k]
            t = s.variables[user.slot]
            if t.mark != mark and user.usage > 0.0 and t.enabled == 1:
                level = t.rate * t.penalty
                load += user.usage * t.rate
                highest = max(highest, level)
                if t.limit == resource:
                    lowest = min(lowest, level)
        v.load[j] = load
        v.highest[j] = highest
        v.lowest[j] = lowest
        v.reached[j] = 0.0
        v.level[j] = INFINITY
        v.capacity[j] = max(r.capacity - load, r.capacity * SLIVER)
    return True


@jit
def charge(s, v, n):
    """Add the affected to the loads; find the largest level on each resource, and each limit."""
    for i in range(n):
        level = v.rate[i] * v.penalty[i]
        for q in range(v.start[i], v.start[i + 1]):
            j = v.resource[q]
            v.load[j] += v.usage[q] * v.rate[i]
            v.reached[j] = max(v.reached[j], level)
        if v.limit[i] >= 0:
            v.level[v.limit[i]] = min(v.level[v.limit[i]], level)


@jit
def admit_dissatisfied(s, v, m, mark, n):
    """Mark others that violate the condition as affected; return how many are then."""
    for j in range(m):
        resource = s.worklists[USED, j]
        r = s.constraints[resource]
        lost = v.lowest[j] < INFINITY and (
            v.load[j] < r.capacity * (1.0 - CLOSE) or v.reached[j] > v.lowest[j] * (1.0 + CLOSE)
        )
        above = v.level[j] * (1.0 + CLOSE)
        if r.capacity > 0.0 and (lost or v.highest[j] > above):
            for k in range(r.first, r.first + r.users):
                user = s.users[k]
                t = s.variables[user.slot]
                if user.usage > 0.0 and t.enabled == 1 and t.mark != mark:  # noqa: SIM102
                    if t.limit == resource or t.rate * t.penalty > above:
                        n = admit(s, user.slot, mark, n)
    return n


@jit
def keep_close(s, n):
    """Let rates that hardly change stay as they are."""
    for i in range(n):
        t = s.variables[s.worklists[SUB, i]]
        if abs(s.reals[i] - t.rate) <= SAME_RATE * t.rate:
            s.reals[i] = t.rate


def example() -> tuple[Graph, int]:
    """Arguments like those of `follow_rates`."""
    return bare_graph(), 0


@late("ptaskmodel.sharing.levels.affected:example")
def follow_rates(s, solver):
    """Rates of what changed, or may have: of how many activities.

    They are written to the subproblem, limits by the numbers of resources. Where one resource
    limits all of them, and nothing else is near to it, ``common`` of the clock says which.
    """
    counts = s.counts[0]
    counts.common = NOTHING
    counts.mark += 1
    mark = counts.mark
    n = begin(s, mark)
    if is_alone(s, n):
        solve_alone(s, 0, solver)
        keep_close(s, n)
        return n
    if n == 0:
        return n
    v = subproblem_of(s)
    todo = counts.n_enabled
    whole = n > MANY * todo or todo <= FEW
    while not whole:
        m = assemble_subproblem(s, v, n, False)
        if not leave_to_affected(s, v, m, mark):
            whole = True
            break
        solve(s, n, m, solver)
        charge(s, v, n)
        before = n
        n = admit_dissatisfied(s, v, m, mark, n)
        if n == before:
            break
        todo -= before
        whole = n > todo
    if whole:
        n = whole_components(s, mark, n)
        common = used_by_all(s, n) if n >= SEVERAL else NOTHING
        lowest = fill_common(s, n, common) if common >= 0 else 0.0
        if lowest > 0.0:
            counts.common = common
            counts.lowest = lowest
            keep_close(s, n)
            return n
        m = assemble_subproblem(s, v, n, False)
        solve(s, n, m, solver)
    for i in range(n):
        if v.limit[i] >= 0:
            v.limit[i] = s.worklists[USED, v.limit[i]]
    keep_close(s, n)
    return n
