"""Bottleneck max fairness from event to event: what limits nobody has no level and costs nothing.

Few resources limit anybody. These are *active*; what stays between two events is the level of each,
the load of every other kept resource, and each activity's kept elements with those on active
resources in front. At an event:

1. the loads of touched resources are summed anew; activities that are new, or whose kept elements
   changed, take the rate that the levels in force give them;
2. whatever overflows becomes active, without a level yet;
3. the levels of the connected component, over active resources only, are found (`bmf_levels`);
4. activities whose rate changed charge their other resources; if some overflow, again from 2;
5. resources on which nobody sits are active no more.

Rates that did not change stay equal to the bit. Where levels do not settle, the caller solves
everything anew and `adopt` starts from that answer; `certified` checks all now and then.
"""

from __future__ import annotations

from ptaskmodel.core.state import CHANGED, RUNNING, State, bare_state
from ptaskmodel.core.sub_system import rebuild_kept, sub_system
from ptaskmodel.jit import jit, late
from ptaskmodel.sharing.arrays import Settings
from ptaskmodel.sharing.bmf_levels import FILL_LATER, carve_seats, climb
from ptaskmodel.sharing.bmf_presolve import carve_core, list_users
from ptaskmodel.sharing.limits import LIMIT_BOUND, LIMIT_NOTHING

INFINITY = float("inf")
TOLERANCES = Settings()
AIM, ACCEPT = TOLERANCES.aim, TOLERANCES.accept
MAX_ROUNDS = 50
# Rounds in which only those are solved whose resources another rate was found on.
NEAR_ROUNDS = 6
GAVE_UP = -1
# A rate that changes less, relatively, stays as it is.
SAME_RATE = 1e-12
# Instead of 0 or 1 in `active`: overflows, as far as the load kept tells.
SUSPECT = 2


@jit
def coefficient(element):
    """What fairness compares."""
    return element.share if element.share > 0.0 else element.usage


@jit
def swap_kept(s, a, b):
    """Let two kept elements change places."""
    x = s.kept[a]
    y = s.kept[b]
    resource, usage, share = x.resource, x.usage, x.share
    x.resource, x.usage, x.share = y.resource, y.usage, y.share
    y.resource, y.usage, y.share = resource, usage, share


@jit
def put_active_first(s, slot):
    """Order the kept elements of an activity."""
    t = s.activities[slot]
    t.n_active = 0
    for k in range(t.nodes, t.nodes + t.n_kept):
        if s.resources[s.kept[k].resource].active == 1:
            swap_kept(s, k, t.nodes + t.n_active)
            t.n_active += 1


@jit
def take_in(s, slot):
    """List anew what can limit an activity, and what bounds it whatever the others do."""
    rebuild_kept(s, slot, True)
    t = s.activities[slot]
    t.ceiling = t.bound
    t.ceiling_by = LIMIT_BOUND
    for k in range(t.nodes, t.nodes + t.n_nodes):  # what is not kept limits nobody
        node = s.nodes[k]
        r = s.resources[node.resource]
        if r.active == 1 and node.usage > 0.0:  # noqa: SIM102
            if r.enabled == 1 or not is_kept(s, slot, node.resource):
                r.active = 0
                r.level = INFINITY
    for k in range(t.nodes, t.nodes + t.n_kept):
        element = s.kept[k]
        r = s.resources[element.resource]
        if r.capacity < t.ceiling * element.usage:
            t.ceiling = r.capacity / element.usage
            t.ceiling_by = element.resource
    if t.ceiling == INFINITY:
        t.ceiling = 1.0
        t.ceiling_by = LIMIT_NOTHING
    put_active_first(s, slot)


@jit
def is_kept(s, slot, resource):
    """Whether an activity keeps a resource."""
    t = s.activities[slot]
    for k in range(t.nodes, t.nodes + t.n_kept):  # noqa: SIM110
        if s.kept[k].resource == resource:
            return True
    return False


@jit
def load_of(s, resource, mark):
    """What the enabled users of a resource take; those marked, at the rate being found."""
    load = 0.0
    k = s.resources[resource].first
    while k >= 0:
        node = s.nodes[k]
        if node.usage > 0.0:
            t = s.activities[node.slot]
            if t.state == RUNNING:
                load += node.usage * (t.next_rate if t.mark == mark else t.rate)
        k = node.next
    return load


@jit
def overflows(r):
    """Whether the load kept of a resource exceeds its capacity."""
    return r.load > r.capacity * (1.0 + AIM) and not r.fatpipe


@jit
def suspect(s, resource, n_suspect):
    """List a resource that is not active and may overflow; returns how many there are."""
    s.resources[resource].active = SUSPECT
    s.resources[n_suspect].slot_touched = resource
    return n_suspect + 1


@jit
def join(s, resource, mark, m):
    """Add an active resource to the component; returns how many there are."""
    r = s.resources[resource]
    r.mark = mark
    r.local = m
    s.resources[m].slot_sub = resource
    return m + 1


@jit
def admit(s, slot, mark, n):
    """Add an activity to the component; returns how many there are."""
    t = s.activities[slot]
    t.mark = mark
    t.next_rate = t.rate
    s.activities[n].slot_sub = slot
    return n + 1


@jit
def keeps_limit(s, slot):
    """Whether an activity, just taken in, has the rate that is right if no level changes."""
    t = s.activities[slot]
    if t.limit == t.ceiling_by:
        return t.rate == t.ceiling
    for k in range(t.nodes, t.nodes + t.n_active):  # noqa: SIM110
        if s.kept[k].resource == t.limit:
            return True
    return False


@jit
def begin(s, mark):
    """Take in what changed: (activities, resources of the component, suspects so far)."""
    clock = s.clock[0]
    n = 0
    m = 0
    for i in range(clock.n_todo):
        slot = s.activities[i].slot_todo
        changed = s.activities[slot].todo == CHANGED
        s.activities[slot].todo = 0
        if s.activities[slot].state == RUNNING:
            take_in(s, slot)
            if changed or not keeps_limit(s, slot):
                n = admit(s, slot, mark, n)
    n_suspect = 0
    clock.mark += 1
    summed = clock.mark
    n_touched = clock.n_touched
    for i in range(n_touched):  # suspects are listed in places that have been read
        resource = s.resources[i].slot_touched
        r = s.resources[resource]
        r.mark = 0
        if r.active == 1:
            m = join(s, resource, mark, m)
        elif r.enabled > 0:
            r.stamp = summed
            r.load = load_of(s, resource, mark)
            if overflows(r):
                n_suspect = suspect(s, resource, n_suspect)
    for i in range(n):
        t = s.activities[s.activities[i].slot_sub]
        for k in range(t.nodes + t.n_active, t.nodes + t.n_kept):
            resource = s.kept[k].resource
            r = s.resources[resource]
            if r.stamp != summed:
                r.stamp = summed
                r.load = load_of(s, resource, mark)
                if overflows(r) and r.active == 0:
                    n_suspect = suspect(s, resource, n_suspect)
    clock.n_todo = 0
    clock.n_touched = 0
    return n, m, n_suspect


@jit
def take_in_changes(s):
    """Take in what changed since the last solve, for all to be solved anew."""
    s.clock[0].mark += 1
    _, _, n_suspect = begin(s, s.clock[0].mark)
    for i in range(n_suspect):
        s.resources[s.resources[i].slot_touched].active = 0


@jit
def charge(s, slot, rate, n_suspect):
    """Give an activity another rate, at the cost of what limits nobody; how many are suspect."""
    t = s.activities[slot]
    change = rate - t.next_rate
    t.next_rate = rate
    for k in range(t.nodes + t.n_active, t.nodes + t.n_kept):
        element = s.kept[k]
        r = s.resources[element.resource]
        r.load += element.usage * change
        if overflows(r) and r.active == 0:
            n_suspect = suspect(s, element.resource, n_suspect)
    return n_suspect


@jit
def join_all(s, slot, mark, m):
    """Add the active resources of an activity to those to solve; returns how many there are."""
    t = s.activities[slot]
    for k in range(t.nodes, t.nodes + t.n_active):
        if s.resources[s.kept[k].resource].mark != mark:
            m = join(s, s.kept[k].resource, mark, m)
    return m


@jit
def activate(s, n_suspect, mark, m):
    """Make active those suspects that do overflow; returns the resources of the component."""
    for i in range(n_suspect):
        resource = s.resources[i].slot_touched
        r = s.resources[resource]
        r.active = 0
        r.load = load_of(s, resource, mark)
        if overflows(r):
            r.active = 1
            r.level = INFINITY
            m = join(s, resource, mark, m)
            k = r.first
            while k >= 0:
                t = s.activities[s.nodes[k].slot]
                if s.nodes[k].usage > 0.0 and t.state == RUNNING:
                    for q in range(t.nodes + t.n_active, t.nodes + t.n_kept):
                        if s.kept[q].resource == resource:
                            swap_kept(s, q, t.nodes + t.n_active)
                            t.n_active += 1
                            break
                k = s.nodes[k].next
    return m


@jit
def deactivate(s, resource, load):
    """Nobody sits on a resource: it is active no more."""
    r = s.resources[resource]
    r.active = 0
    r.level = INFINITY
    r.load = load
    k = r.first
    while k >= 0:
        t = s.activities[s.nodes[k].slot]
        if s.nodes[k].usage > 0.0 and t.state == RUNNING:
            for q in range(t.nodes, t.nodes + t.n_active):
                if s.kept[q].resource == resource:
                    t.n_active -= 1
                    swap_kept(s, q, t.nodes + t.n_active)
                    break
        k = s.nodes[k].next


@jit
def spread(s, mark, n, m, from_n, from_m, wholly):
    """Add the users of resources; wholly: and complete the component over active resources.

    Returns the numbers of activities and resources.
    """
    i = from_n
    j = from_m
    while j < m or (wholly and i < n):
        if wholly and i < n:
            m = join_all(s, s.activities[i].slot_sub, mark, m)
            i += 1
            continue
        k = s.resources[s.resources[j].slot_sub].first
        j += 1
        while k >= 0:
            node = s.nodes[k]
            t = s.activities[node.slot]
            if t.mark != mark and t.state == RUNNING and node.usage > 0.0:
                n = admit(s, node.slot, mark, n)
            k = node.next
    return n, m


@jit
def write_core(s, n, m, c, mark, limit):
    """Write what is to be solved as a core scaled to C = 1, bound = 1; returns its elements.

    The level of an active resource that is not solved bounds its users; ``limit`` is what does.
    """
    for j in range(m):
        c.levels[j] = s.resources[s.resources[j].slot_sub].level
    q = 0
    for i in range(n):
        t = s.activities[s.activities[i].slot_sub]
        c.row[i] = q
        bound = t.ceiling
        limit[i] = t.ceiling_by
        cost = 1.0 / t.penalty
        for k in range(t.nodes, t.nodes + t.n_active):
            element = s.kept[k]
            r = s.resources[element.resource]
            if r.mark != mark:
                rate = r.level * cost / coefficient(element)
                if rate < bound:
                    bound = rate
                    limit[i] = element.resource
        c.ub[i] = bound
        if bound > 0.0:
            inverse = cost / bound
            for k in range(t.nodes, t.nodes + t.n_active):
                element = s.kept[k]
                r = s.resources[element.resource]
                if r.mark == mark:
                    c.used[q] = r.local
                    c.a[q] = element.usage * bound / r.capacity
                    c.t[q] = inverse / coefficient(element)
                    q += 1
    c.row[n] = q
    list_users(n, m, c)


@jit
def count_active(s, n):
    """The active elements of activities."""
    z = 0
    for i in range(n):
        z += s.activities[s.activities[i].slot_sub].n_active
    return z


def example() -> tuple[State]:
    """Arguments like those of `follow_levels`."""
    return (bare_state(),)


@late("ptaskmodel.core.levels:example")
def follow_levels(s):
    """Rates of what changed, found from the levels in force: how many activities, or GAVE_UP.

    They are written to the sub-system, limits by the numbers of resources.
    """
    clock = s.clock[0]
    clock.mark += 1
    mark = clock.mark
    n, m, n_suspect = begin(s, mark)
    v = sub_system(s)
    for i in range(n):
        slot = s.activities[i].slot_sub
        t = s.activities[slot]
        rate = t.ceiling
        for k in range(t.nodes, t.nodes + t.n_active):
            element = s.kept[k]
            level = s.resources[element.resource].level
            rate = min(rate, level * (1.0 / t.penalty) / coefficient(element))
        n_suspect = charge(s, slot, rate, n_suspect)
        v.limit[i] = t.ceiling_by
        m = join_all(s, slot, mark, m)
    m = activate(s, n_suspect, mark, m)
    from_n = 0
    from_m = 0
    for step in range(MAX_ROUNDS):
        n, m = spread(s, mark, n, m, from_n, from_m, step >= NEAR_ROUNDS)
        if m == from_m:
            for i in range(n):
                v.rate[i] = s.activities[s.activities[i].slot_sub].next_rate
            return n
        from_n = n if step >= NEAR_ROUNDS else 0
        z = count_active(s, n)
        c, reals, integers = carve_core(n, m, z, v.reals, v.integers)
        write_core(s, n, m, c, mark, v.limit)
        if not climb(n, m, FILL_LATER, AIM, c, carve_seats(m, z, reals, integers)) <= ACCEPT:
            return GAVE_UP
        from_m = m
        for j in range(m):
            s.resources[s.resources[j].slot_sub].level = c.levels[j]
        n_suspect = 0
        for i in range(n):
            slot = s.activities[i].slot_sub
            rate = c.y[i] * c.ub[i]
            where = c.seat[i]
            if where >= 0:
                v.limit[i] = s.resources[c.used[where]].slot_sub
            if abs(rate - s.activities[slot].next_rate) > SAME_RATE * rate:
                n_suspect = charge(s, slot, rate, n_suspect)
                m = join_all(s, slot, mark, m)
        m = activate(s, n_suspect, mark, m)
        if m == from_m:
            for j in range(m):
                resource = s.resources[j].slot_sub
                if c.seats[j] == 0:
                    deactivate(s, resource, c.load[j] * s.resources[resource].capacity)
    return GAVE_UP


@jit
def adopt(s, n, m):
    """Start anew from the rates, just applied, of all ``n`` enabled activities and their limits."""
    for j in range(m):
        r = s.resources[s.resources[j].slot_sub]
        r.active = 0
        r.level = INFINITY
        r.load = 0.0
    for i in range(n):
        t = s.activities[s.activities[i].slot_sub]
        for k in range(t.nodes, t.nodes + t.n_kept):
            element = s.kept[k]
            r = s.resources[element.resource]
            r.load += element.usage * t.rate
            if t.limit == element.resource and r.enabled > 1 and not r.fatpipe:
                level = t.rate * t.penalty * coefficient(element)
                r.level = level if r.active == 0 else max(r.level, level)
                r.active = 1
    for i in range(n):
        put_active_first(s, s.activities[i].slot_sub)


@jit
def certified(s):
    """Whether all rates in force are bottleneck max fair; sums all loads anew."""
    clock = s.clock[0]
    clock.mark += 1
    mark = clock.mark
    slot = clock.oldest
    while slot >= 0:
        t = s.activities[slot]
        for k in range(t.nodes, t.nodes + t.n_kept):
            element = s.kept[k]
            r = s.resources[element.resource]
            if r.stamp != mark:
                r.stamp = mark
                r.load = 0.0
            r.load += element.usage * t.rate
        slot = t.next
    slot = clock.oldest
    while slot >= 0:
        t = s.activities[slot]
        best = t.ceiling
        for k in range(t.nodes, t.nodes + t.n_kept):
            element = s.kept[k]
            r = s.resources[element.resource]
            if r.load > r.capacity * (1.0 + ACCEPT) and not r.fatpipe:
                return False
            if r.active == 1:
                if r.load < r.capacity * (1.0 - ACCEPT):
                    return False
                best = min(best, r.level / (t.penalty * coefficient(element)))
        if abs(t.rate - best) > ACCEPT * best:
            return False
        slot = t.next
    return True
