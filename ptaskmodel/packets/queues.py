# mypy: allow-untyped-defs, allow-incomplete-defs
"""Links as first-in first-out queues, which `loop` fills and empties.

A link has one event for the first packet under way on it, whatever follows behind. Where nothing
pauses links, the date at which a packet will have been sent is known when it joins the queue: the
queue is the time until the transmitter is free. Else the transmitter has events of its own.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import jit
from ptaskmodel.packets.calendar import push_event
from ptaskmodel.packets.state import DATA, NOTHING


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
