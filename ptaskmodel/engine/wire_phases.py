# mypy: allow-untyped-defs, allow-incomplete-defs
"""What a flow of a wire model does besides sharing: it starts slowly and meets queues.

`usage.network_models` has the equations. A link is full, and holds a queue, at the rates in force.
Arguments are the state ``s``, the slot of an activity, and the options ``o``.
"""

from __future__ import annotations

from ptaskmodel.engine.availability import refresh_bound
from ptaskmodel.engine.queue import push_round_trip
from ptaskmodel.engine.virtual_time import dissolve
from ptaskmodel.kernels.decorators import jit
from ptaskmodel.sharing.components import take_in_unmoved
from ptaskmodel.sharing.graph import classify, declassify
from ptaskmodel.sharing.state import BY_PRICES

INFINITY = float("inf")
# So much of its capacity makes a link full.
FULL = 0.98


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
