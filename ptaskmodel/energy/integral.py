# mypy: allow-untyped-defs, allow-incomplete-defs
"""Integrate power over time; between two changes it is constant.

`meter` calls these kernels, and keeps the record arrays that are defined here. Energy is charged by
prices. While a resource draws more power than without load, each unit of its use costs an equal
part of the difference. The integral of this part over time is the price of the resource. A use at a
constant rate costs that rate times the rise of the price, so a change costs the same however many
uses there are.

While a task is alone with one flop a second, prices rise fast. Prices are therefore sums of two
numbers, so that rounding errors do not reach later tasks with 1e9 flop a second.
Source: T. J. Dekker, "A floating-point technique for extending the available precision", 1971.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ptaskmodel.engine.state import CAPACITY, PSTATE, RATE, TURNED
from ptaskmodel.kernels.decorators import entry, jit
from ptaskmodel.kernels.records import numbers

INT, REAL, FLAG = "i8", "f8", "?"

# Kinds of changes that only the meter knows, besides those of the event stream: somebody begins and
# ceases to hold hosts, somebody wants to know the total.
HOLD, RELEASE, SAMPLE = numbers(100, 103)

# Power in one state of one resource, W. capacity: at a load of 1, flop/s; nan: of a link, which
# has its own.
STATE = np.dtype(
    [("idle", REAL), ("epsilon", REAL), ("full", REAL), ("capacity", REAL)], align=True
)

RESOURCE = np.dtype(
    [
        ("last", REAL),  # date up to which all is counted, s
        ("joules", REAL),
        ("charged", REAL),  # of them, those that somebody answers for, J
        ("watts", REAL),  # since `last`
        ("idle", REAL),  # of them, those that would be drawn without load
        # What one who was there all along has paid, J:
        ("price", REAL),  # per unit of use; plus
        ("price_rest", REAL),
        ("load_price", REAL),  # for a load of 1
        ("idle_price", REAL),  # per unit of weight held
        ("usage", REAL),  # flop/s or B/s; plus
        ("usage_rest", REAL),  # what its sum was rounded by
        ("load", REAL),  # of those who keep cores busy without a rate, 1: all cores
        ("users", INT),  # of `usage` and `load`
        ("held", INT),  # sum of the weights of those who hold it
        ("capacity", REAL),
        ("state", INT),  # row of its present power
        ("first_state", INT),
        ("off_W", REAL),
        ("on", FLAG),
        ("host", FLAG),
    ],
    align=True,
)

# Who progresses: at which rate on which pattern; what that rate has cost at the prices of its
# beginning (`at`); what its use has cost so far, J.
OWNER = np.dtype(
    [("pattern", INT), ("rate", REAL), ("at", REAL), ("at_rest", REAL), ("used", REAL)], align=True
)

# Who holds hosts: its places; sums at the beginning; whole: energy of its hosts, share: its part of
# what they draw without load (and of its own load), J.
HOLDER = np.dtype(
    [
        ("first", INT),
        ("count", INT),
        ("holds", FLAG),
        ("joules", REAL),
        ("at", REAL),
        ("whole", REAL),
        ("share", REAL),
    ],
    align=True,
)

# A host that is held: with which weight, and by which part kept busy without a rate.
PLACE = np.dtype([("host", INT), ("weight", INT), ("load", REAL)], align=True)

# One record: totals over hosts and over links, each a sum and what it was rounded by.
TOTAL = np.dtype(
    [
        ("date", REAL),
        ("hosts_W", REAL),
        ("hosts_rest", REAL),
        ("links_W", REAL),
        ("links_rest", REAL),
        ("hosts_J", REAL),
        ("links_J", REAL),
        ("epsilon_W", REAL),  # of the hosts in their states at the least load
        ("told_hosts_W", REAL),  # last row of the curve
        ("told_links_W", REAL),
        ("n_curve", INT),
    ],
    align=True,
)

CURVE = np.dtype([("date", REAL), ("hosts_W", REAL), ("links_W", REAL)], align=True)

# hosts_J: since the beginning.
SAMPLED = np.dtype([("date", REAL), ("hosts_J", REAL), ("epsilon_W", REAL)], align=True)


class Books(NamedTuple):
    """Every array that the kernel reads and writes.

    of_first, of_count, of_resource, of_usage: what patterns ask, as `Rows.table` of
    `recording.intervals` gives it.
    """

    total: np.ndarray
    resources: np.ndarray
    states: np.ndarray
    owners: np.ndarray
    holders: np.ndarray
    places: np.ndarray
    curve: np.ndarray
    samples: np.ndarray
    of_first: np.ndarray
    of_count: np.ndarray
    of_resource: np.ndarray
    of_usage: np.ndarray


@jit
def plus(total, rest, value):
    """A sum and what it was rounded by, with one more value (Knuth's exact addition of two)."""
    found = total + value
    back = found - total
    return found, rest + ((total - (found - back)) + (value - back))


@jit
def times(a, b):
    """A product and what it was rounded by."""
    found = a * b
    part = 134217729.0 * a  # 2**27 + 1
    a_high = part - (part - a)
    part = 134217729.0 * b
    b_high = part - (part - b)
    a_low = a - a_high
    b_low = b - b_high
    rest = a_low * b_low - (((found - a_high * b_high) - a_low * b_high) - a_high * b_low)
    return found, rest


@jit
def pass_to(b, date):
    """Count the totals up to a date; what the curve was until then is told."""
    t = b.total[0]
    if date <= t.date:
        return
    hosts_W = t.hosts_W + t.hosts_rest
    links_W = t.links_W + t.links_rest
    if hosts_W != t.told_hosts_W or links_W != t.told_links_W:
        row = b.curve[t.n_curve]
        row.date = t.date
        row.hosts_W = hosts_W
        row.links_W = links_W
        t.n_curve += 1
        t.told_hosts_W = hosts_W
        t.told_links_W = links_W
    t.hosts_J += hosts_W * (date - t.date)
    t.links_J += links_W * (date - t.date)
    t.date = date


@jit
def settle(b, resource, date):
    """Count a resource up to a date."""
    x = b.resources[resource]
    passed = date - x.last
    if passed <= 0.0:
        return
    x.last = date
    x.joules += x.watts * passed
    if x.users > 0:
        by_load = (x.watts - x.idle) * passed
        x.charged += by_load
        used = x.usage + x.usage_rest + x.load * x.capacity
        if used > 0.0:
            x.price, x.price_rest = plus(x.price, x.price_rest, by_load / used)
            if x.load > 0.0:
                x.load_price += by_load * x.capacity / used
    if x.held > 0:
        x.charged += x.idle * passed
        x.idle_price += x.idle * passed / x.held


@jit
def power(b, resource):
    """Power follows from the state and the load of a resource, and the totals from it."""
    x = b.resources[resource]
    t = b.total[0]
    if x.users == 0:
        x.usage = 0.0
        x.usage_rest = 0.0
        x.load = 0.0
    state = b.states[x.state]
    idle = state.idle
    watts = state.idle
    if not x.on:
        idle = x.off_W
        watts = x.off_W
    elif x.users > 0:
        load = 1.0
        if x.capacity > 0.0:
            load = min(1.0, (x.usage + x.usage_rest) / x.capacity + x.load)
        watts = state.epsilon + load * (state.full - state.epsilon)
    change = watts - x.watts
    x.watts = watts
    x.idle = idle
    if x.host:
        t.hosts_W, t.hosts_rest = plus(t.hosts_W, t.hosts_rest, change)
    else:
        t.links_W, t.links_rest = plus(t.links_W, t.links_rest, change)


@jit
def cost(b, owner):
    """What the rate of an owner costs at present prices, and what that was rounded by."""
    o = b.owners[owner]
    total = 0.0
    rest = 0.0
    for k in range(b.of_first[o.pattern], b.of_first[o.pattern] + b.of_count[o.pattern]):
        x = b.resources[b.of_resource[k]]
        usage = o.rate * b.of_usage[k]
        product, rounded = times(usage, x.price)
        total, rest = plus(total, rest, product)
        rest += rounded + usage * x.price_rest
    return total, rest


@jit
def use(b, owner, date, sign):
    """An owner begins (sign 1) or ceases (-1) to progress at its rate."""
    o = b.owners[owner]
    for k in range(b.of_first[o.pattern], b.of_first[o.pattern] + b.of_count[o.pattern]):
        resource = b.of_resource[k]
        settle(b, resource, date)
        x = b.resources[resource]
        x.usage, x.usage_rest = plus(x.usage, x.usage_rest, sign * (o.rate * b.of_usage[k]))
        x.users += sign
        power(b, resource)
    total, rest = cost(b, owner)
    if sign > 0:
        o.at = total
        o.at_rest = rest
    else:
        o.used += (total - o.at) + (rest - o.at_rest)


@jit
def hold(b, holder, date, sign):
    """Let a holder begin (sign 1) or cease (-1) to hold its places."""
    h = b.holders[holder]
    joules = 0.0
    cost = 0.0
    for k in range(h.first, h.first + h.count):
        place = b.places[k]
        settle(b, place.host, date)
        x = b.resources[place.host]
        joules += x.joules
        cost += place.weight * x.idle_price + place.load * x.load_price
        x.held += sign * place.weight
        if place.load > 0.0:
            x.load += sign * place.load
            x.users += sign
            power(b, place.host)
    h.holds = sign > 0
    if sign > 0:
        h.joules = joules
        h.at = cost
    else:
        h.whole += joules - h.joules
        h.share += cost - h.at


@jit
def change_state(b, resource, date, pstate):
    """A host goes into a pstate."""
    settle(b, resource, date)
    x = b.resources[resource]
    before = b.states[x.state].epsilon
    x.state = x.first_state + pstate
    x.capacity = b.states[x.state].capacity
    b.total[0].epsilon_W += b.states[x.state].epsilon - before
    power(b, resource)


@entry
def sweep(b, changes, until):
    """Integrate over changes, in order of date, and on to ``until``.

    changes: records of the event stream, of kinds RATE, CAPACITY, PSTATE, TURNED or the meter's
    own (HOLD: ``value`` places from ``pattern`` on). There is room for a row of the curve for each
    of them, and one more.
    """
    for k in range(changes.size):
        e = changes[k]
        date = e.date
        pass_to(b, date)
        if e.kind == RATE:
            o = b.owners[e.subject]
            if o.rate > 0.0:
                use(b, e.subject, date, -1)
            o.pattern = e.pattern
            o.rate = e.value
            if e.value > 0.0:
                use(b, e.subject, date, 1)
        elif e.kind == HOLD:
            b.holders[e.subject].first = e.pattern
            b.holders[e.subject].count = int(e.value)
            hold(b, e.subject, date, 1)
        elif e.kind == RELEASE:
            if b.holders[e.subject].holds:
                hold(b, e.subject, date, -1)
        elif e.kind == SAMPLE:
            row = b.samples[e.subject]
            row.date = date
            row.hosts_J = b.total[0].hosts_J
            row.epsilon_W = b.total[0].epsilon_W
        elif e.kind == CAPACITY:
            if not b.resources[e.subject].host:
                settle(b, e.subject, date)
                b.resources[e.subject].capacity = e.value
                power(b, e.subject)
        elif e.kind == PSTATE:
            change_state(b, e.subject, date, int(e.value))
        elif e.kind == TURNED:
            settle(b, e.subject, date)
            if b.resources[e.subject].host:
                b.resources[e.subject].on = e.value > 0.0
            power(b, e.subject)
    pass_to(b, until)
    for resource in range(b.resources.size):
        settle(b, resource, until)


@entry
def used_so_far(b, found):
    """What the use of the first owners has cost, those that progress now included."""
    for owner in range(min(found.size, b.owners.size)):
        o = b.owners[owner]
        found[owner] = o.used
        if o.rate > 0.0:
            total, rest = cost(b, owner)
            found[owner] += (total - o.at) + (rest - o.at_rest)
