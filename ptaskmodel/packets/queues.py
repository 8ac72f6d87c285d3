# mypy: allow-untyped-defs, allow-incomplete-defs
"""Links as first-in first-out queues, which `loop` fills and empties.

A link has one event for the first packet under way on it, whatever follows behind. Where nothing
pauses links, the date at which a packet will have been sent is known when it joins the queue: the
queue is the time until the transmitter is free. Else the transmitter has events of its own.

The event queue is a calendar, whose buckets are short, reused intervals of time. Most events are
one packet time ahead, so each costs a few steps however many there are. A bucket is a list ordered
by (date, order). It may hold events of several rounds of the calendar; those of the current round
come first.
Source: R. Brown, "Calendar queues: a fast O(1) priority queue implementation for the simulation
event set problem", 1988.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.packets.state import DATA, NOTHING

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


@jit
def new_packet(s, flow, size, kind):
    """A packet of ``s`` at the sender of ``flow``, of ``size`` bytes and a ``kind``.

    The caller has made sure that one is free.
    """
    c = s.clock[0]
    k = c.free_packet
    p = s.packets[k]
    c.free_packet = p.next
    c.n_free -= 1
    p.flow = flow
    p.hop = 0
    p.bytes = size
    p.kind = kind
    p.marked = False
    p.next = NOTHING
    return k


@jit
def drop_packet(s, k):
    """Let packet ``k`` of ``s``, which has arrived, be free."""
    c = s.clock[0]
    s.packets[k].next = c.free_packet
    c.free_packet = k
    c.n_free += 1


@jit
def send(s, link, k, begin):
    """Let the transmitter of ``link`` in ``s`` take packet ``k`` at date ``begin``."""
    c = s.clock[0]
    at = s.links[link]
    p = s.packets[k]
    owed_B = max(0.0, at.owed_B - max(0.0, begin - at.free) * at.B_per_s)
    at.owed_B = 0.0
    at.free = begin + (owed_B + p.bytes) * at.s_per_B
    at.carried_B += p.bytes
    c.hops += 1
    p.date = at.free + at.latency
    c.order += 1
    p.order = c.order
    p.next = NOTHING
    if at.first < 0:
        at.first = k
        push_event(s, 2 * link, p.date, p.order)
    else:
        s.packets[at.last].next = k
    at.last = k


@jit
def record(s, link, queue_B, size):
    """Count in ``s`` that ``size`` bytes join ``link``, whose queue then has ``queue_B``.

    The intervals double as time goes on.
    """
    c = s.clock[0]
    n = s.largest_B.shape[1]
    k = int((c.now - c.origin) / c.interval)
    while k >= n:
        for other in range(s.links.size):
            for j in range(n // 2):
                largest = max(s.largest_B[other, 2 * j], s.largest_B[other, 2 * j + 1])
                s.largest_B[other, j] = largest
                s.joined_B[other, j] = s.joined_B[other, 2 * j] + s.joined_B[other, 2 * j + 1]
            for j in range(n // 2, n):
                s.largest_B[other, j] = 0.0
                s.joined_B[other, j] = 0.0
        c.interval *= 2.0
        k = int((c.now - c.origin) / c.interval)
    s.largest_B[link, k] = max(s.largest_B[link, k], queue_B)
    s.joined_B[link, k] += size


@jit
def join(s, link, k):
    """Put packet ``k`` of ``s`` in the queue of ``link``, which nothing pauses; False: no room."""
    c = s.clock[0]
    at = s.links[link]
    p = s.packets[k]
    queue_B = 0.0
    begin = c.now
    if at.free > begin:
        queue_B = (at.free - begin) * at.B_per_s
        begin = at.free
    if p.kind == DATA and queue_B >= at.mark_B and p.hop < s.flows[p.flow].hops:
        p.marked = True
    queue_B += p.bytes
    if c.interval > 0.0:
        record(s, link, queue_B, p.bytes)
    send(s, link, k, begin)
    return queue_B <= at.room_B


@jit
def wait_behind(s, link, k):
    """Put packet ``k`` of ``s`` last in the queue of ``link``; False: no room."""
    c = s.clock[0]
    at = s.links[link]
    p = s.packets[k]
    p.next = NOTHING
    if at.first_waiting < 0:
        at.first_waiting = k
    else:
        s.packets[at.last_waiting].next = k
    at.last_waiting = k
    at.queue_B += p.bytes
    if c.interval > 0.0:
        record(s, link, at.queue_B, p.bytes)
    return at.queue_B <= at.room_B


@jit
def schedule(s, link):
    """Let the transmitter of ``link`` in ``s`` take its next packet when it is free."""
    c = s.clock[0]
    at = s.links[link]
    at.scheduled = True
    c.order += 1
    push_event(s, 2 * link + 1, max(c.now, at.free), c.order)


@jit
def pause(s, link, toward):
    """Stop the transmitter of ``link`` in ``s`` after its packet; one came in for ``toward``."""
    c = s.clock[0]
    at = s.links[link]
    at.paused = True
    at.pause = c.n_pauses
    row = s.pauses[c.n_pauses]
    row.link = link
    row.toward = toward
    row.since = c.now
    row.until = np.nan
    c.n_pauses += 1


@jit
def take_next(s, link):
    """Let the free transmitter of ``link`` in ``s`` take the packet that waits first.

    A sender has one packet at a time in the queue of its first link, so that its flows share it.
    """
    c = s.clock[0]
    at = s.links[link]
    k = at.first_waiting
    p = s.packets[k]
    at.first_waiting = p.next
    at.queue_B -= p.bytes
    send(s, link, k, c.now)
    f = s.flows[p.flow]
    if p.hop == 0:
        left = f.bytes - f.sent
        if left > 0.0:
            size = min(c.packet_B, left)
            f.sent += size
            wait_behind(s, link, new_packet(s, p.flow, size, DATA))
    elif p.hop != f.hops:
        source = s.routes[f.first + p.hop - 1]
        come = s.links[source]
        come.waits_B -= p.bytes
        if come.paused and come.waits_B < c.resume_B:
            come.paused = False
            s.pauses[come.pause].until = c.now
            if come.first_waiting >= 0 and not come.scheduled:
                schedule(s, source)


@jit
def come_in(s, link, k):
    """Put packet ``k`` of ``s`` in the queue of ``link``, which may be paused; False: no room."""
    c = s.clock[0]
    at = s.links[link]
    p = s.packets[k]
    fits = wait_behind(s, link, k)
    f = s.flows[p.flow]
    if p.hop > 0 and p.hop != f.hops:
        source = s.routes[f.first + p.hop - 1]
        come = s.links[source]
        come.waits_B += p.bytes
        if not come.paused and come.waits_B > c.pause_B:
            pause(s, source, link)
    if not at.paused and not at.scheduled:
        if at.free <= c.now:
            take_next(s, link)
        if at.first_waiting >= 0:
            schedule(s, link)
    return fits
