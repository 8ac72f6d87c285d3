# mypy: allow-untyped-defs, allow-incomplete-defs
"""Shares by input port: at a full link each input link of its switch gets an equal share.

A switch that pauses its inputs serves them in turn. So a flow weighs 1 / (flows that cross its
first full link and come over the same input link). At the sender's own link each flow is an input
of its own. Weights decide which links are full, and full links the weights: at each change all
flows begin with their own weights, and some rounds follow.

`loop.renew_rates` calls it if the wire model says so. Source: IEEE 802.1Qbb, pauses by priority.
"""

from __future__ import annotations

from ptaskmodel.engine.resharing import reshare
from ptaskmodel.engine.state import OK
from ptaskmodel.engine.virtual_time import dissolve
from ptaskmodel.kernels.decorators import jit
from ptaskmodel.sharing.graph import classify, declassify
from ptaskmodel.sharing.state import USED

ROUNDS = 3
# So much of its capacity makes a link full: proportional shares are precise to 1e-5.
FULL = 1.0 - 1e-4


@jit
def share_by_ports(s, o):
    """Share anew what changed (state s, options o), weighing flows by input port; as `reshare`."""
    clock = s.clock[0]
    counts = s.graph.counts[0]
    if clock.port_rounds == 0:
        if counts.n_todo == 0 and counts.n_touched == 0 and clock.anew == 0:
            return OK
        dissolve(s)
        slot = counts.oldest
        while slot >= 0:
            _weigh(s, slot, 1.0)
            slot = s.graph.variables[slot].next
        clock.port_rounds = 1
    while True:
        status = reshare(s, o)
        if status != OK:
            return status
        if clock.port_rounds > ROUNDS or not _weigh_by_ports(s):
            clock.port_rounds = 0
            return OK
        clock.port_rounds += 1


@jit
def _weigh(s, slot, others):
    """Divide the own weight of a flow by ``others``; whether that changes it."""
    a = s.activities[slot]
    t = s.graph.variables[slot]
    penalty = s.patterns[a.pattern].penalty / a.weight * others
    if penalty == t.penalty:
        return False
    declassify(s.graph, slot)
    t.penalty = penalty
    classify(s.graph, slot)
    return True


@jit
def _weigh_by_ports(s):
    """Weigh all flows by the rates in force; whether a weight changes."""
    dissolve(s)
    g = s.graph
    load = g.reals
    from_port = g.worklists[USED]
    for resource in range(g.constraints.size):
        load[resource] = 0.0
        from_port[resource] = 0
    slot = g.counts[0].oldest
    while slot >= 0:
        t = g.variables[slot]
        for k in range(t.nodes, t.nodes + t.n_nodes):
            if not g.constraints[g.nodes[k].resource].fatpipe:
                load[g.nodes[k].resource] += g.nodes[k].usage * t.rate
        slot = t.next
    changed = False
    slot = g.counts[0].oldest
    while slot >= 0:
        if _first_full(g, slot) <= g.variables[slot].nodes:  # none, or the sender's own link
            changed = _weigh(s, slot, 1.0) or changed
        slot = g.variables[slot].next
    for resource in range(g.constraints.size):
        if _is_full(g, resource):
            changed = _weigh_at(s, resource) or changed
    return changed


@jit
def _is_full(g, resource):
    """Whether a link is full, by the loads in ``g.reals``."""
    r = g.constraints[resource]
    return r.enabled > 1 and g.reals[resource] >= FULL * r.capacity


@jit
def _first_full(g, slot):
    """The first node of a flow whose link is full, -1: none."""
    t = g.variables[slot]
    for k in range(t.nodes, t.nodes + t.n_nodes):
        if g.nodes[k].usage >= 1.0 and _is_full(g, g.nodes[k].resource):
            return k
    return -1


@jit
def _weigh_at(s, resource):
    """Weigh the flows whose first full link is this one; whether a weight changes."""
    g = s.graph
    r = g.constraints[resource]
    from_port = g.worklists[USED]
    for i in range(r.first, r.first + r.users):
        user = g.users[i]
        if _crosses(g, user):
            from_port[g.nodes[user.node - 1].resource] += 1
    changed = False
    for i in range(r.first, r.first + r.users):
        user = g.users[i]
        if _crosses(g, user) and _first_full(g, user.slot) == user.node:
            flows = from_port[g.nodes[user.node - 1].resource]
            changed = _weigh(s, user.slot, float(flows)) or changed
    for i in range(r.first, r.first + r.users):
        user = g.users[i]
        if _crosses(g, user):
            from_port[g.nodes[user.node - 1].resource] = 0
    return changed


@jit
def _crosses(g, user):
    """Whether a user of a link is a flow under way that comes over another link."""
    t = g.variables[user.slot]
    return t.enabled == 1 and user.usage >= 1.0 and user.node > t.nodes
