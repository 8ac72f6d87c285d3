# mypy: allow-untyped-defs, allow-incomplete-defs
"""Virtual time for activities that share one bottleneck link, where a start or an end is cheap.

If one link limits many activities, each start and each end changes all their rates. But these rates
are ``level / cost``, with one level for all; the cost is the penalty times the share coefficient on
the link. The remaining work of each, times its cost, decreases by the integral of the level over
time, the ``virtual_time``. So each activity of the group has a constant virtual finish time, its
``virtual_end``, and the smallest ends first, as in fair queueing (A. Demers, S. Keshav, S. Shenker,
SIGCOMM 1989). Only this first one, ``group_next``, is in the heap of ends and has a rate. The
others are in a heap by virtual ends, at the far end of ``State.heap``.

The members are all activities that use the link. The link alone limits them while the level is
below ``group_lowest``: the smallest of their bounds and of what their other resources allow, which
no other activity uses. Activities that share no resource with a member may change meanwhile. After
any other change the group is dissolved: rates and ends of all are emitted as if it had not existed.

The group survives a return of the loop to Python, so that no time depends on where a run was cut or
observed. `write_members` writes the remaining work of members for readers. A change of a member by
hand dissolves the group first.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.engine.queue import remove_end, set_end
from ptaskmodel.engine.state import IN_ENDS
from ptaskmodel.engine.stream import emit_rate
from ptaskmodel.kernels.decorators import jit
from ptaskmodel.kernels.records import NOTHING
from ptaskmodel.sharing.components import cost_on, forget_changes, keeps, update_kept
from ptaskmodel.sharing.rates import shares_with_nobody, solve_alone
from ptaskmodel.sharing.state import BY_LEVELS, CHANGED, SUB, TODO, TOUCHED

INFINITY = float("inf")
# Instead of a place among the ends: GROUP - k, at place k of the heap of virtual ends.
GROUP = np.int64(-3)
# A group forms where at most one in so many is new.
STEADY = 4
# Changes after which the load is summed anew, and virtual ends are counted from 0.
RENEWED_EVERY = 64
# The level stays below any other limit of a member by more than rounding.
CLOSE = 1e-12


@jit
def put_member(s, k, virtual_end, order, slot):
    """Write place ``k`` of the heap of virtual ends: ``virtual_end``, ``order`` and ``slot``."""
    member = s.heap[s.heap.size - 1 - k]
    member.date = virtual_end
    member.order = order
    member.slot = slot
    s.lists[IN_ENDS, slot] = GROUP - k


@jit
def is_before(virtual_end, order, other):
    """Whether ``virtual_end``, with this ``order``, comes before that of the member ``other``."""
    return virtual_end < other.date or (virtual_end == other.date and order < other.order)


@jit
def raise_member(s, k, virtual_end, order, slot):
    """Put a ``virtual_end`` in place ``k``, which is free, or nearer to the top; of ``slot``."""
    first = s.heap.size - 1
    while k > 0:
        above = s.heap[first - ((k - 1) >> 1)]
        if not is_before(virtual_end, order, above):
            break
        put_member(s, k, above.date, above.order, above.slot)
        k = (k - 1) >> 1
    put_member(s, k, virtual_end, order, slot)


@jit
def lower_member(s, k, virtual_end, order, slot):
    """Put a ``virtual_end`` in place ``k``, which is free, or farther from the top; of ``slot``."""
    first = s.heap.size - 1
    n = s.clock[0].group_size
    while 2 * k + 1 < n:
        child = 2 * k + 1
        c = s.heap[first - child]
        if child + 1 < n:
            other = s.heap[first - child - 1]
            if is_before(other.date, other.order, c):
                child += 1
                c = other
        if is_before(virtual_end, order, c):
            break
        put_member(s, k, c.date, c.order, c.slot)
        k = child
    put_member(s, k, virtual_end, order, slot)


@jit
def push_member(s, slot, virtual_end):
    """Let activity ``slot``, which stands nowhere, be one of the others, with a ``virtual_end``."""
    clock = s.clock[0]
    t = s.activities[slot]
    t.due = INFINITY
    clock.group_size += 1
    raise_member(s, clock.group_size - 1, virtual_end, t.order, slot)


@jit
def pull_member(s, k):
    """Take a place out of the heap of virtual ends."""
    clock = s.clock[0]
    first = s.heap.size - 1
    s.lists[IN_ENDS, s.heap[first - k].slot] = NOTHING
    clock.group_size -= 1
    if k == clock.group_size:
        return
    last = s.heap[first - clock.group_size]
    if k > 0 and is_before(last.date, last.order, s.heap[first - ((k - 1) >> 1)]):
        raise_member(s, k, last.date, last.order, last.slot)
    else:
        lower_member(s, k, last.date, last.order, last.slot)


@jit
def pass_time(s):
    """Let the members have progressed up to now."""
    clock = s.clock[0]
    clock.virtual_time += clock.group_level * (clock.now - clock.group_since)
    clock.group_since = clock.now


@jit
def set_rate_and_end(s, slot, virtual_end):
    """Write how far a member is, its rate and when it ends, from its ``virtual_end``."""
    clock = s.clock[0]
    a = s.activities[slot]
    t = s.graph.variables[slot]
    left = max(virtual_end - clock.virtual_time, 0.0)
    a.remaining = left / t.cost
    a.updated = clock.now
    t.rate = clock.group_level / t.cost
    set_end(s, slot, clock.now + left / clock.group_level)


@jit
def lead(s):
    """Let `group_next` be the member that ends first, with its rate and end."""
    clock = s.clock[0]
    top = s.heap[s.heap.size - 1]
    slot = clock.group_next
    virtual_end = clock.next_virtual_end
    if clock.group_size > 0 and (
        slot < 0 or not is_before(virtual_end, s.activities[slot].order, top)
    ):
        next_slot = np.int64(top.slot)
        next_virtual_end = top.date
        pull_member(s, 0)
        if slot >= 0:
            remove_end(s, slot)
            push_member(s, slot, virtual_end)
        clock.group_next = slot = next_slot
        clock.next_virtual_end = virtual_end = next_virtual_end
    if slot >= 0:
        set_rate_and_end(s, slot, virtual_end)


@jit
def emit_rates(s):
    """Say at which rate each member progresses now, if anyone listens."""
    clock = s.clock[0]
    if clock.tells_rates == 0:
        return
    if clock.group_next >= 0:
        emit_rate(s, clock.group_next, s.graph.variables[clock.group_next].rate, clock.group)
    for k in range(s.heap.size - clock.group_size, s.heap.size):
        slot = np.int64(s.heap[k].slot)
        t = s.graph.variables[slot]
        t.rate = clock.group_level / t.cost
        emit_rate(s, slot, t.rate, clock.group)


@jit
def count_in(s, slot, sign):
    """Count a member in on all that it uses (``sign`` 1), or out (-1).

    ``n_members`` of a constraint is how many of its uses are by members, and ``members_take`` what
    they take for each unit of level.
    """
    g = s.graph
    t = g.variables[slot]
    for k in range(t.nodes, t.nodes + t.n_nodes):
        node = g.nodes[k]
        if node.usage > 0.0:
            r = g.constraints[node.resource]
            r.n_members += sign
            if r.n_members == 0.0:
                r.members_take = 0.0
            else:
                r.members_take += sign * node.usage / t.cost


@jit
def forget_end(s, slot):
    """Take an activity out of the ends, if it is there, and of the group."""
    clock = s.clock[0]
    place = s.lists[IN_ENDS, slot]
    if place <= GROUP:
        pull_member(s, GROUP - place)
        count_in(s, slot, -1)
        return
    remove_end(s, slot)
    if slot == clock.group_next:
        count_in(s, slot, -1)
        clock.group_next = NOTHING
        pass_time(s)
        lead(s)


@jit
def lowest_of_others(s, slot):
    """The lowest level at which anything else limits a member; 0: an outsider may matter."""
    g = s.graph
    t = g.variables[slot]
    lowest = t.bound * t.cost
    for k in range(t.nodes, t.nodes + t.n_kept):
        resource = g.kept[k].resource
        if resource != s.clock[0].group:
            r = g.constraints[resource]
            if r.fatpipe or r.capacity == 0.0 or r.n_members != r.enabled:
                return 0.0
            lowest = min(lowest, r.capacity / r.members_take)
    return lowest


@jit
def limits_outsider(g, resource):
    """Whether a ``resource``, not that of the group, limits a variable of the graph ``g``."""
    r = g.constraints[resource]
    if r.n_members == r.enabled:
        return False
    for h in range(r.first, r.first + r.users):
        t = g.variables[g.users[h].slot]
        if t.limit == resource and t.enabled == 1 and g.users[h].usage > 0.0:
            return True
    return False


@jit
def is_member(s, slot):
    """Whether an activity belongs to the group."""
    return s.lists[IN_ENDS, slot] <= GROUP or slot == s.clock[0].group_next


@jit
def join(s, slot):
    """An activity that stands nowhere joins, with what is left of it."""
    clock = s.clock[0]
    t = s.graph.variables[slot]
    t.limit = clock.group
    t.cost = cost_on(s.graph, slot, clock.group)
    count_in(s, slot, 1)
    push_member(s, slot, clock.virtual_time + s.activities[slot].remaining * t.cost)


@jit
def renew(s):
    """Count virtual ends from 0 again, and sum the load anew."""
    clock = s.clock[0]
    g = s.graph
    r = g.constraints[clock.group]
    r.members_take = 0.0
    for h in range(r.first, r.first + r.users):
        user = g.users[h]
        t = g.variables[user.slot]
        if user.usage > 0.0 and t.enabled == 1 and is_member(s, user.slot):
            r.members_take += user.usage / t.cost
    for k in range(s.heap.size - clock.group_size, s.heap.size):
        s.heap[k].date -= clock.virtual_time
    clock.next_virtual_end -= clock.virtual_time
    clock.virtual_time = 0.0
    clock.group_changes = 0


@jit
def take_in(s, solver):
    """Add activities that began to use the link; solve others that began; return how many of these.

    They are the first of those chosen. NOTHING: the group is not alone with what changed.
    """
    clock = s.clock[0]
    g = s.graph
    counts = g.counts[0]
    for i in range(counts.n_todo):
        slot = g.worklists[TODO, i]
        t = g.variables[slot]
        if t.enabled == 1 and keeps(g, slot, clock.group):
            if not is_member(s, slot):
                join(s, slot)
            elif t.todo == CHANGED:
                return NOTHING
    for i in range(counts.n_touched):
        resource = g.worklists[TOUCHED, i]
        if resource != clock.group and limits_outsider(g, resource):
            return NOTHING
    n = 0
    for i in range(counts.n_todo):
        slot = g.worklists[TODO, i]
        t = g.variables[slot]
        if t.enabled == 0:
            continue
        if keeps(g, slot, clock.group):
            clock.group_lowest = min(clock.group_lowest, lowest_of_others(s, slot))
        elif t.todo == CHANGED and not is_member(s, slot) and shares_with_nobody(g, slot):
            g.worklists[SUB, n] = slot
            solve_alone(g, n, solver)
            n += 1
        else:
            return NOTHING
    return n


@jit
def follow_group(s, solver):
    """Take in what changed; how many others changed (see `resharing.follow`).

    NOTHING: the group is dissolved, and the changes have yet to be taken in.
    """
    clock = s.clock[0]
    g = s.graph
    counts = g.counts[0]
    pass_time(s)
    update_kept(g, True)
    clock.group_changes += 1
    if clock.group_changes > RENEWED_EVERY:
        renew(s)
    n = take_in(s, solver)
    r = g.constraints[clock.group]
    if n == NOTHING or not r.members_take * clock.group_lowest > r.capacity * (1.0 + CLOSE):
        dissolve(s)
        return NOTHING
    for i in range(counts.n_todo):
        g.variables[g.worklists[TODO, i]].todo = 0
    for i in range(counts.n_touched):
        g.constraints[g.worklists[TOUCHED, i]].mark = 0
    forget_changes(g)
    clock.group_level = r.capacity / r.members_take
    lead(s)
    emit_rates(s)
    return n


@jit
def can_form_group(s, n, common):
    """Return whether the first n activities chosen, which a resource limits, form a group."""
    g = s.graph
    if g.counts[0].asks_common == 0 or s.resources[common].one_core < INFINITY:
        return False
    new = 0
    for i in range(n):
        new += 1 if g.variables[g.worklists[SUB, i]].rate == 0.0 else 0
    return STEADY * new <= n


@jit
def form_group(s, n, common, lowest):
    """The first n activities chosen, all users of a resource, become a group.

    lowest: the lowest level at which anything else limits one of them.
    """
    clock = s.clock[0]
    clock.group = common
    clock.group_lowest = lowest
    clock.virtual_time = 0.0
    clock.group_since = clock.now
    clock.group_changes = 0
    for i in range(n):
        slot = s.graph.worklists[SUB, i]
        a = s.activities[slot]
        rate = s.graph.variables[slot].rate
        a.remaining = max(a.remaining - rate * (clock.now - a.updated), 0.0)
        remove_end(s, slot)
        join(s, slot)
    r = s.graph.constraints[common]
    r.active = 0
    r.level = INFINITY
    clock.group_level = r.capacity / r.members_take
    lead(s)
    emit_rates(s)


@jit
def dissolve(s):
    """All members stand among the ends again, and know their rates; levels are found anew."""
    clock = s.clock[0]
    if clock.group < 0:
        return
    if s.graph.counts[0].way == BY_LEVELS:
        clock.anew = 1
    pass_time(s)
    while clock.group_size > 0:
        clock.group_size -= 1
        member = s.heap[s.heap.size - 1 - clock.group_size]
        slot = np.int64(member.slot)
        s.lists[IN_ENDS, slot] = NOTHING
        count_in(s, slot, -1)
        set_rate_and_end(s, slot, member.date)
    if clock.group_next >= 0:
        count_in(s, clock.group_next, -1)
        set_rate_and_end(s, clock.group_next, clock.next_virtual_end)
    clock.group = NOTHING
    clock.group_next = NOTHING


@jit
def write_members(s):
    """Write how far the members are, for whoever reads it; their virtual ends stay."""
    clock = s.clock[0]
    if clock.group < 0:
        return
    reached = clock.virtual_time + clock.group_level * (clock.now - clock.group_since)
    for k in range(s.heap.size - clock.group_size, s.heap.size):
        a = s.activities[s.heap[k].slot]
        t = s.graph.variables[s.heap[k].slot]
        a.remaining = max(s.heap[k].date - reached, 0.0) / t.cost
        a.updated = clock.now
        t.rate = clock.group_level / t.cost
