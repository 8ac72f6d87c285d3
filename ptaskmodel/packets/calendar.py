# mypy: allow-untyped-defs, allow-incomplete-defs
"""The event queue: a calendar whose buckets are short, reused intervals of time.

Most events are one packet time ahead, so each costs a few steps however many there are. A bucket is
a list ordered by (date, order). It may hold events of several rounds of the calendar; those of the
current round come first.
Source: R. Brown, "Calendar queues: a fast O(1) priority queue implementation for the simulation
event set problem", 1988.
"""

from __future__ import annotations

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.packets.state import NOTHING

# The width of buckets is looked at after so many events; they are to be so many widths apart.
LOOK = 4096
APART = 0.5


@jit
def push_event(s, slot, date, order):
    """Add to ``s`` an event of ``slot``, which has none, at ``date``; ``order``: among equals."""
    c = s.clock[0]
    e = s.events[slot]
    e.date = date
    e.order = order
    c.n_events += 1
    insert(s, slot)


@jit
def insert(s, slot):
    """Put the event of ``slot`` in its bucket of ``s``."""
    c = s.clock[0]
    e = s.events[slot]
    number = int(e.date * c.buckets_per_s)
    if number < c.bucket:
        c.bucket = number
    b = s.buckets[number & (s.buckets.size - 1)]
    if b.first < 0:
        b.first = slot
        b.last = slot
        e.next = NOTHING
        return
    last = s.events[b.last]
    if not (e.date < last.date or (e.date == last.date and e.order < last.order)):
        last.next = slot
        b.last = slot
        e.next = NOTHING
        return
    first = s.events[b.first]
    if e.date < first.date or (e.date == first.date and e.order < first.order):
        e.next = b.first
        b.first = slot
        return
    before = first
    while True:
        after = s.events[before.next]
        if e.date < after.date or (e.date == after.date and e.order < after.order):
            break
        before = after
    e.next = before.next
    before.next = slot


@jit
def first_event(s):
    """The slot of the first event of ``s``, which has one."""
    c = s.clock[0]
    n = s.buckets.size
    for number in range(c.bucket, c.bucket + n):
        first = s.buckets[number & (n - 1)].first
        if first >= 0 and int(s.events[first].date * c.buckets_per_s) <= number:
            c.bucket = number
            return first
    found = NOTHING
    for k in range(n):
        first = s.buckets[k].first
        if first >= 0:
            if found >= 0:
                e, best = s.events[first], s.events[found]
                if not (e.date < best.date or (e.date == best.date and e.order < best.order)):
                    continue
            found = first
    c.bucket = int(s.events[found].date * c.buckets_per_s)
    return found


@jit
def remove_first(s, slot):
    """Take the first event out of ``s``, which is that of ``slot``."""
    c = s.clock[0]
    c.n_events -= 1
    b = s.buckets[c.bucket & (s.buckets.size - 1)]
    b.first = s.events[slot].next
    c.n_seen += 1
    if c.n_seen == LOOK:
        fit(s)


@jit
def fit(s):
    """Let the buckets of ``s`` be as wide as events are apart, if they are not, about."""
    c = s.clock[0]
    passed = c.now - c.looked
    c.n_seen = 0
    c.looked = c.now
    if passed <= 0.0:
        return
    per_s = APART * LOOK / passed
    if 0.5 * c.buckets_per_s < per_s < 2.0 * c.buckets_per_s:
        return
    slots = NOTHING  # of all events, as a list
    for k in range(s.buckets.size):
        slot = s.buckets[k].first
        while slot >= 0:
            after = s.events[slot].next
            s.events[slot].next = slots
            slots = slot
            slot = after
        s.buckets[k].first = NOTHING
    c.buckets_per_s = per_s
    c.bucket = int(c.now * per_s)
    while slots >= 0:
        slot = slots
        slots = s.events[slot].next
        insert(s, slot)
