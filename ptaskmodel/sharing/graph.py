# mypy: allow-untyped-defs, allow-incomplete-defs
"""The graph of enabled activities and the resources that they use, and what a change affects in it.

Three facts keep the graph small:

* a resource r *dominated* by a resource s (every activity on r also uses s, for at least as large a
  part of its capacity) never limits an activity and is left out. Each resource has one candidate s,
  its partner, among the resources of its group (a host and the links that only it uses). It counts
  the users that violate the condition;
* a resource with a single user matters only if it is the tightest such resource of that user;
* a slack resource never limits an activity: its users cannot fill it even at their uncontended
  rates (under fair bottleneck it does limit them: there ``drops_slack`` is off).

The remaining elements are *kept*: each activity has them in one run of ``State.kept``. A resource
whose status changes is added to these runs or removed. A change re-solves the connected components,
over kept elements, of the activities and resources that it affects.

The kernels that enable and disable an activity look at every use, and convert indices to unsigned
integers: then numba does not test whether an index counts from the end.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.kernels.records import NOTHING
from ptaskmodel.sharing.arrays import LIMIT_NOTHING
from ptaskmodel.sharing.state import CHANGED, SIDE, SIDES, TODO, TOUCHED

# A part of the capacity counts as smaller only beyond rounding: equal allocations, bit for bit.
STRICTLY_LESS = 1.0 - 1e-9
LISTED = -2  # mark of a resource in the list of those touched


@jit
def mark_todo(s, slot, why):
    """The kept elements of this activity must be rebuilt before the next solve."""
    counts = s.counts[0]
    t = s.variables[slot]
    before = np.int64(t.todo)
    if why <= before:
        return
    t.todo = why
    if before == 0:
        s.worklists[TODO, counts.n_todo] = slot
        counts.n_todo += 1
    if why == SIDES:
        counts.n_beside += 1
    elif before == SIDES:
        counts.n_beside -= 1


@jit
def list_side(s, resource):
    """A resource changed side."""
    counts = s.counts[0]
    r = s.constraints[resource]
    if not r.changed_side:
        r.changed_side = True
        s.worklists[SIDE, counts.n_sides] = resource
        counts.n_sides += 1


@jit
def mark_users(s, resource):
    """A resource changed side: all its enabled users must look again."""
    list_side(s, resource)
    r = s.constraints[resource]
    for k in range(r.first, r.first + r.users):
        user = s.users[k]
        if user.usage > 0.0 and s.variables[user.slot].enabled == 1:
            mark_todo(s, user.slot, SIDES)


@jit
def touch(s, resource):
    """Mark this resource, which is not marked yet: its users must be re-solved."""
    counts = s.counts[0]
    s.constraints[resource].mark = LISTED
    s.worklists[TOUCHED, counts.n_touched] = resource
    counts.n_touched += 1


@jit
def size_class(count):
    """The smallest k with 2**k >= count: nodes and users lie in blocks of 2**k."""
    k = 0
    while (1 << k) < count:
        k += 1
    return k


@jit
def has_room(s, count):
    """Whether a block of nodes can be had for ``count`` elements."""
    k = size_class(count)
    return s.counts[k].free_nodes >= 0 or s.counts[0].n_nodes + (1 << k) <= s.nodes.size


@jit
def missing_users(s, count):
    """How many more places for users there must be before so many elements are used; 0: none.

    A resource with n elements of these takes less than 4 (users + n) places as it grows. Not to
    look at each costs more room, of which most is never touched.
    """
    counts = s.counts[0]
    wanted = 4 * (counts.n_links + count)
    return wanted if counts.n_users + wanted > s.users.size else 0


@jit
def move_users(s, resource, first):
    """Let the users of a resource lie elsewhere, or farther ahead."""
    r = s.constraints[resource]
    for i in range(r.users):
        old = s.users[r.first + i]
        new = s.users[first + i]
        new.slot = old.slot
        new.usage = old.usage
        new.node = old.node
        s.nodes[old.node].place = i
    r.first = first
    r.gone = 0


@jit
def make_room(s, resource):
    """Make room for users of a resource behind the last one.

    Where few have left at the front, it gets twice as many places; there are so many.
    """
    counts = s.counts[0]
    r = s.constraints[resource]
    before = r.first - r.gone
    if 2 * r.gone > r.room:
        move_users(s, resource, before)
        return
    k = size_class(max(2, 2 * r.room))
    first = s.counts[k].free_users
    if first >= 0:
        s.counts[k].free_users = s.users[first].slot
    else:
        first = counts.n_users
        counts.n_users += 1 << k
    move_users(s, resource, first)
    if r.room > 0:
        k -= 1
        s.users[before].slot = s.counts[k].free_users
        s.counts[k].free_users = before
        r.room *= 2
    else:
        r.room = 2


@jit
def link_nodes(s, elements, slot, first, count):
    """Give a variable nodes, a copy of ``count`` elements, and enter it with its constraints."""
    counts = s.counts[0]
    t = s.variables[slot]
    t.n_nodes = count
    t.n_kept = 0
    if count == 0:
        return
    k = size_class(count)
    base = s.counts[k].free_nodes
    if base >= 0:
        s.counts[k].free_nodes = s.nodes[base].resource
    else:
        base = counts.n_nodes
        counts.n_nodes += 1 << k
    t.nodes = base
    counts.n_links += count
    for k in range(count):
        element = elements[np.uint64(first + k)]
        node = s.nodes[np.uint64(base + k)]
        r = s.constraints[np.uint64(element.resource)]
        node.resource = element.resource
        node.usage = element.usage
        node.share = element.share
        node.largest = element.largest
        if r.gone + r.users == r.room:
            make_room(s, element.resource)
        node.place = r.gone + r.users
        node.kept = NOTHING
        node.violates = 0
        user = s.users[np.uint64(r.first + r.users)]
        user.slot = slot
        user.usage = element.usage
        user.node = base + k
        r.users += 1


@jit
def unlink_nodes(s, slot):
    """Take the nodes of an activity off their resources.

    Mostly it is the first user that leaves, or the last: no other has to move.
    """
    t = s.variables[slot]
    for k in range(t.nodes, t.nodes + t.n_nodes):
        node = s.nodes[np.uint64(k)]
        r = s.constraints[np.uint64(node.resource)]
        r.users -= 1
        if r.users == 0:
            r.first -= r.gone
            r.gone = 0
        elif node.place == r.gone:
            r.first += 1
            r.gone += 1
        elif node.place < r.gone + r.users:  # the last takes its place
            user = s.users[np.uint64(r.first - r.gone + node.place)]
            last = s.users[np.uint64(r.first + r.users)]
            user.slot = last.slot
            user.usage = last.usage
            user.node = last.node
            s.nodes[np.uint64(last.node)].place = node.place
    if t.n_nodes > 0:
        s.counts[0].n_links -= t.n_nodes
        k = size_class(t.n_nodes)
        s.nodes[t.nodes].resource = s.counts[k].free_nodes
        s.counts[k].free_nodes = t.nodes
    t.n_nodes = 0
    t.n_kept = 0


@jit
def give_nodes_anew(s):
    """No variable of the graph ``s`` has nodes: hand them out from the first on again."""
    s.counts[0].n_nodes = 0
    for k in range(s.counts.size):
        s.counts[k].free_nodes = NOTHING


@jit
def load_ratios(s, slot):
    """Put each use of an activity, as a part of the capacity, in ``ratio`` of its resource.

    Returns the resource of the largest part (the lowest number among equals), -1 if there is none;
    ``leader`` is the same within a group. A repeated resource, a FATPIPE and a capacity of 0 have
    ratio -1: they never dominate.
    """
    counts = s.counts[0]
    counts.mark += 1
    stamp = counts.mark
    t = s.variables[slot]
    tightest = -1
    most = 0.0
    for k in range(t.nodes, t.nodes + t.n_nodes):
        node = s.nodes[np.uint64(k)]
        if node.usage <= 0.0:
            continue
        r = s.constraints[np.uint64(node.resource)]
        if r.stamp == stamp or r.fatpipe or r.capacity <= 0.0:
            r.stamp = stamp
            r.ratio = -1.0
            continue
        r.stamp = stamp
        x = node.usage / r.capacity
        r.ratio = x
        r.node = k
        if x > most or (x == most and node.resource < tightest):
            tightest = node.resource
            most = x
        if r.group >= 0:
            head = s.constraints[np.uint64(r.group)]
            if head.leader_stamp != stamp:
                head.leader_stamp = stamp
                head.leader = node.resource
            else:
                y = s.constraints[np.uint64(head.leader)].ratio
                if x > y or (x == y and node.resource < head.leader):
                    head.leader = node.resource
    return tightest


@jit
def same_use(resources, nodes, resource, other, stamp):
    """Whether the activity being counted asks two resources of equal capacity exactly the same."""
    a = resources[np.uint64(resource)]
    b = resources[np.uint64(other)]
    if b.stamp != stamp or b.ratio <= 0.0 or b.ratio != a.ratio or b.capacity != a.capacity:
        return False
    return nodes[np.uint64(b.node)].usage == nodes[np.uint64(a.node)].usage and (
        nodes[np.uint64(b.node)].share == nodes[np.uint64(a.node)].share
    )


@jit
def choose_partner(resources, nodes, resource, stamp):
    """The resource of the group likely to dominate this one, -1: none.

    The one before it if the activity asks the same of both (the two halves of a link), else the
    tightest of the group.
    """
    r = resources[np.uint64(resource)]
    if r.group < 0:
        return -1
    if resource > 0 and resources[np.uint64(resource - 1)].group == r.group:  # noqa: SIM102
        if same_use(resources, nodes, resource, resource - 1, stamp):
            return resource - 1
    head = resources[np.uint64(r.group)]
    if head.leader_stamp != stamp or head.leader == resource:
        return -1
    return np.int64(head.leader)


@jit
def violates(resources, nodes, resource, stamp):
    """Whether the activity being counted breaks the domination of a resource by its partner."""
    r = resources[np.uint64(resource)]
    if r.ratio <= 0.0 or r.partner < 0:
        return 1
    partner = resources[np.uint64(r.partner)]
    if partner.stamp != stamp or partner.ratio <= 0.0:
        return 1
    if r.ratio < partner.ratio * STRICTLY_LESS:
        return 0
    if r.partner < resource and same_use(resources, nodes, resource, np.int64(r.partner), stamp):
        return 0
    return 1


@jit
def can_limit(s, r, demand):
    """Whether a resource of which several ask ``demand`` in all may hold one of them back."""
    return s.counts[0].drops_slack == 0 or r.fatpipe or demand > r.capacity * STRICTLY_LESS


@jit
def classify(s, slot):
    """Count an enabled activity in on all its resources."""
    t = s.variables[slot]
    t.tightest = load_ratios(s, slot)
    t.top = t.bound
    if t.tightest >= 0:
        t.top = min(t.top, 1.0 / s.constraints[t.tightest].ratio)
    stamp = s.counts[0].mark
    for k in range(t.nodes, t.nodes + t.n_nodes):
        node = s.nodes[np.uint64(k)]
        if node.usage > 0.0:
            r = s.constraints[np.uint64(node.resource)]
            if r.enabled == 0:
                r.partner = choose_partner(s.constraints, s.nodes, node.resource, stamp)
                r.demand = 0.0
            node.violates = violates(s.constraints, s.nodes, node.resource, stamp)
            was_slack = r.demand <= r.capacity * STRICTLY_LESS
            only = r.slots
            r.enabled += 1
            r.slots += slot
            r.violations += node.violates
            r.demand += node.usage * t.top
            fills = was_slack and r.demand > r.capacity * STRICTLY_LESS
            if can_limit(s, r, r.demand):
                if r.enabled == 2:
                    list_side(s, node.resource)
                    mark_todo(s, only, SIDES)
                elif r.enabled > 2 and (fills or (node.violates == 1 and r.violations == 1)):
                    mark_users(s, node.resource)
    mark_todo(s, slot, CHANGED)


@jit
def declassify(s, slot):
    """Count an activity out on all its resources, as it was counted in.

    Those that may have limited others are touched.
    """
    t = s.variables[slot]
    for k in range(t.nodes, t.nodes + t.n_nodes):
        node = s.nodes[np.uint64(k)]
        if node.usage > 0.0:
            r = s.constraints[np.uint64(node.resource)]
            before = r.demand
            was_full = before > r.capacity * STRICTLY_LESS
            r.enabled -= 1
            r.slots -= slot
            r.violations -= node.violates
            # A demand without limit stays so until no user is left.
            if r.demand < np.inf:
                r.demand -= node.usage * t.top
            if r.enabled > 0 and can_limit(s, r, before):
                if r.mark != LISTED:
                    touch(s, node.resource)
                empties = was_full and r.demand <= r.capacity * STRICTLY_LESS
                if r.enabled == 1:
                    list_side(s, node.resource)
                    mark_todo(s, r.slots, SIDES)
                elif empties or (node.violates == 1 and r.violations == 0):
                    mark_users(s, node.resource)
            if r.enabled == 0 and r.active == 1:
                r.active = 0
                r.level = np.inf
            node.violates = 0


@jit
def enable(s, slot, order):
    """Let a variable take part in the sharing, as the newest; order: its sequence number."""
    counts = s.counts[0]
    t = s.variables[slot]
    t.enabled = 1
    t.order = order
    t.previous = counts.newest
    t.next = -1
    if counts.newest >= 0:
        s.variables[counts.newest].next = slot
    else:
        counts.oldest = slot
    counts.newest = slot
    counts.n_enabled += 1
    t.rate = 0.0
    t.counted_rate = 0.0
    t.limit = LIMIT_NOTHING
    classify(s, slot)


@jit
def disable(s, slot):
    """Take the variable ``slot`` of the graph ``s`` out of the sharing; its nodes stay."""
    counts = s.counts[0]
    t = s.variables[slot]
    t.enabled = 0
    declassify(s, slot)
    if t.previous >= 0:
        s.variables[t.previous].next = t.next
    else:
        counts.oldest = t.next
    if t.next >= 0:
        s.variables[t.next].previous = t.previous
    else:
        counts.newest = t.previous
    counts.n_enabled -= 1


@jit
def set_capacity(s, resource, capacity):
    """Change a capacity: its users are counted out and in again around the change."""
    r = s.constraints[resource]
    for k in range(r.first, r.first + r.users):
        user = s.users[k]
        if user.usage > 0.0 and s.variables[user.slot].enabled == 1:
            t = s.variables[user.slot]
            if t.mark != -2:
                t.mark = -2
                declassify(s, user.slot)
    r.capacity = capacity
    for k in range(r.first, r.first + r.users):
        user = s.users[k]
        t = s.variables[user.slot]
        if user.usage > 0.0 and t.enabled == 1 and t.mark == -2:
            t.mark = 0
            classify(s, user.slot)
