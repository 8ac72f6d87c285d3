# mypy: allow-untyped-defs
"""What flows of wire models do besides sharing: slow starts, queues, shares by input port.

`usage.network_models` has the equations of slow starts and queues. A link is full, and holds a
queue, at the rates in force. Arguments are the state ``s``, the slot of an activity, and the
options ``o``.

Shares by input port: at a full link each input link of its switch gets an equal share. A switch
that pauses its inputs serves them in turn. So a flow weighs 1 / (flows that cross its first full
link and come over the same input link). At the sender's own link each flow is an input of its own.
Weights decide which links are full, and full links the weights: at each change all flows begin with
their own weights, and some rounds follow. `loop.renew_rates` calls this if the wire model says so.
Source: IEEE 802.1Qbb, pauses by priority.
"""

from __future__ import annotations

from ptaskmodel.engine.availability import refresh_bound
from ptaskmodel.engine.queue import push_round_trip
from ptaskmodel.engine.resharing import reshare
from ptaskmodel.engine.state import OK
from ptaskmodel.engine.virtual_time import dissolve
from ptaskmodel.kernels.decorators import jit
from ptaskmodel.sharing.components import take_in_unmoved
from ptaskmodel.sharing.graph import classify, declassify
from ptaskmodel.sharing.state import BY_PRICES, USED

INFINITY = float("inf")
# So much of its capacity makes a link full, and hold a queue.
FULL = 0.98
# So much makes it full where shares are weighed by port: proportional ones are precise to 1e-5.
FULL_PORT = 1.0 - 1e-4
ROUNDS = 3


@jit
def _queue_at(s, resource, o):
    """How long what arrives at a link waits there, s: the same for all that ask at a date."""
    r = s.resources[resource]
    if r.queue_date != s.clock[0].now:
        r.queue_date = s.clock[0].now
        r.queue = _new_queue(s.graph, s.graph.constraints[resource], o)
    return r.queue


@jit
def _new_queue(g, r, o):
    """The same, found from the rates of the graph ``g`` on the link ``r``."""
    load = 0.0
    flows = 0
    for k in range(r.first, r.first + r.users):
        user = g.users[k]
        t = g.variables[user.slot]
        if t.enabled == 1 and user.usage > 0.0:
            load += user.usage * t.rate
            if user.usage >= 1.0:
                flows += 1
    if flows < 2 or load <= FULL * r.capacity:
        return 0.0
    return max(o.queue_bytes / r.capacity, o.queue_s)


@jit
def queues_there(s, slot, o):
    """How long a packet of a flow (state s, slot, options o) waits in the queues on its way, s."""
    return _queues(s, slot, o, True)


@jit
def queues_back(s, slot, o):
    """The same of an acknowledgement of it (s, slot, o), where that uses its way."""
    return _queues(s, slot, o, False)


@jit
def _queues(s, slot, o, there):
    """How long a packet waits on the way there or back."""
    a = s.activities[slot]
    is_flow = s.patterns[a.pattern].narrowest > 0.0
    if not is_flow or (o.queue_bytes == 0.0 and o.queue_s == 0.0):
        return 0.0
    total = 0.0
    t = s.graph.variables[slot]
    for k in range(t.nodes, t.nodes + t.n_nodes):
        node = s.graph.nodes[k]
        if node.usage > 0.0 and (node.usage >= 1.0) == there:
            total += _queue_at(s, node.resource, o)
    return total


@jit
def open_window(s, slot, o):
    """A flow (s, slot, o) begins or resumes: the first window, or that it had, bounds its rate."""
    a = s.activities[slot]
    if a.remaining == a.amount:
        p = s.patterns[a.pattern]
        trip = p.round_trip + queues_there(s, slot, o) + queues_back(s, slot, o)
        a.window = o.first_window / trip if trip > 0.0 else INFINITY
    _await_round_trip(s, slot, o)


@jit
def _await_round_trip(s, slot, o):
    """Drop the bound of the window once it is the least capacity, else see in a round trip."""
    a = s.activities[slot]
    p = s.patterns[a.pattern]
    if a.window >= p.narrowest:
        a.window = INFINITY
    else:
        trip = p.round_trip + queues_there(s, slot, o) + queues_back(s, slot, o)
        push_round_trip(s, s.clock[0].now + trip, slot)


@jit
def widen(s, slot, o):
    """A round trip of a flow (s, slot, o) is over: its window doubles.

    If the window did not bound the rate, no rate moves, and with prices nothing is solved.
    """
    dissolve(s)
    a = s.activities[slot]
    t = s.graph.variables[slot]
    counts = s.graph.counts[0]
    a.window *= 2.0
    _await_round_trip(s, slot, o)
    is_first = counts.n_todo == 0 and counts.n_touched == 0 and s.clock[0].anew == 0
    moves = not (is_first and counts.way == BY_PRICES and t.limit >= 0 and t.rate < t.bound)
    declassify(s.graph, slot)
    refresh_bound(s, slot, o.gamma)
    classify(s.graph, slot)
    if not moves:
        take_in_unmoved(s.graph, o.incremental)


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
    return r.enabled > 1 and g.reals[resource] >= FULL_PORT * r.capacity


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
