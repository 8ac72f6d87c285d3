# mypy: allow-untyped-defs, allow-incomplete-defs
"""The loop over packets: each arrives at the far end of a link, and goes on.

By windows (DCTCP): an acknowledgement is a packet of its own on the way back. In slow start it adds
to the window what it acknowledges, afterwards a packet a window. Of a window in which packets were
marked, the first mark cuts the window by half of the moving average of the marked part.
Source: M. Alizadeh et al., "Data center TCP (DCTCP)", 2010; RFC 8257.

By pauses (RoCE with priority flow control): senders send as fast as they can; a switch pauses the
link whose packets wait in it, until few do. Source: IEEE 802.1Qbb.
"""

from __future__ import annotations

import numpy as np

from ptaskmodel.kernels.decorators import entry, jit
from ptaskmodel.packets.queues import (
    come_in,
    drop_packet,
    first_event,
    join,
    new_packet,
    push_event,
    remove_first,
    schedule,
    take_next,
)
from ptaskmodel.packets.state import (
    DATA,
    DONE,
    ENDED,
    GROW_PACKETS,
    GROW_PAUSES,
    NOTHING,
    OPENING,
    OVERFULL,
    PAUSED,
    REACHED,
)


@jit
def fill_window(s, flow):
    """Send what the window of ``flow`` in ``s`` lets; False where a queue has no room."""
    c = s.clock[0]
    f = s.flows[flow]
    fits = True
    while f.sent < f.bytes:
        size = min(c.packet_B, f.bytes - f.sent)
        if f.sent - f.acknowledged + size > f.window + 0.5:
            break
        f.sent += size
        if not join(s, s.routes[f.first], new_packet(s, flow, size, DATA)):
            fits = False
            c.subject = s.routes[f.first]
    return fits


@jit
def begin_flow(s, flow):
    """Let ``flow`` of ``s`` begin; False where a queue has no room."""
    c = s.clock[0]
    f = s.flows[flow]
    first = s.routes[f.first]
    if not c.by_windows:
        size = min(c.packet_B, f.bytes)
        f.sent = size
        c.subject = first
        return come_in(s, first, new_packet(s, flow, size, DATA))
    f.window = c.initial_B
    f.alpha = 1.0
    f.slow_start = True
    if c.opens:
        c.subject = first
        return join(s, first, new_packet(s, flow, c.ack_B, OPENING))
    return fill_window(s, flow)


@jit
def acknowledge(s, flow, marked):
    """Let ``flow`` of ``s`` hear that a packet arrived, perhaps ``marked``; False: no room."""
    c = s.clock[0]
    f = s.flows[flow]
    size = min(c.packet_B, f.bytes - f.acknowledged)
    f.acknowledged += size
    f.window_seen += size
    if marked:
        f.window_marked += size
        if not f.cut:
            f.cut = True
            f.slow_start = False
            f.window = max(2.0 * c.packet_B, f.window * (1.0 - 0.5 * f.alpha))
    if f.slow_start:
        f.window += size
    else:
        f.window += c.packet_B * size / f.window
    if f.acknowledged >= f.window_end:
        f.alpha += c.gain * (f.window_marked / f.window_seen - f.alpha)
        f.window_seen = 0.0
        f.window_marked = 0.0
        f.window_end = f.sent
        f.cut = False
    return fill_window(s, flow)


@jit
def end_flow(s, flow):
    """Let ``flow`` of ``s`` end now; ENDED if it is watched."""
    c = s.clock[0]
    f = s.flows[flow]
    f.end = c.now
    c.n_ended += 1
    if not f.watched:
        return DONE
    c.subject = flow
    return ENDED


@jit
def owe_acknowledgement(s, flow):
    """Let the links back of ``flow`` in ``s`` send an acknowledgement with what they send next."""
    c = s.clock[0]
    f = s.flows[flow]
    for k in range(f.first + f.hops, f.first + f.hops + f.hops_back):
        s.links[s.routes[k]].owed_B += c.ack_B


@jit
def arrive(s, link):
    """Let the first packet under way on ``link`` in ``s`` arrive; DONE, ENDED or OVERFULL.

    By pauses only the last acknowledgement, which ends the flow, is a packet.
    """
    c = s.clock[0]
    at = s.links[link]
    k = at.first
    p = s.packets[k]
    at.first = p.next
    if at.first >= 0:
        behind = s.packets[at.first]
        push_event(s, 2 * link, behind.date, behind.order)
    flow = p.flow
    f = s.flows[flow]
    p.hop += 1
    status = DONE
    if p.hop == f.hops:
        if p.kind == DATA:
            f.received += p.bytes
        is_last = p.kind == DATA and f.received >= f.bytes - 0.5
        if is_last and not c.until_acknowledged:
            status = end_flow(s, flow)
        if not c.by_windows and not (is_last and c.until_acknowledged):
            owe_acknowledgement(s, flow)
            drop_packet(s, k)
            return status
        p.bytes = c.ack_B
    if p.hop < f.hops + f.hops_back:
        onward = s.routes[f.first + p.hop]
        fits = join(s, onward, k) if c.by_windows else come_in(s, onward, k)
        if not fits:
            c.subject = onward
            return OVERFULL
        return status
    kind = p.kind
    marked = p.marked
    drop_packet(s, k)
    fits = True
    if c.by_windows:
        fits = fill_window(s, flow) if kind == OPENING else acknowledge(s, flow, marked)
    if not fits:
        return OVERFULL
    if c.until_acknowledged and kind == DATA:  # noqa: SIM102
        if not c.by_windows or f.acknowledged >= f.bytes - 0.5:
            return end_flow(s, flow)
    return status


@jit
def transmit(s, link):
    """Let the transmitter of ``link`` in ``s``, which is free, go on unless it is paused."""
    at = s.links[link]
    at.scheduled = False
    if not at.paused and at.first_waiting >= 0:
        take_next(s, link)
        if at.first_waiting >= 0:
            schedule(s, link)


@entry
def run(s, until, most):
    """Go on with ``s`` to date ``until``, for ``most`` hops of packets; says why it returns.

    DONE: nothing is under way. REACHED: the date is. PAUSED: as many hops are done. ENDED: a
    watched flow has ended. GROW_PACKETS, GROW_PAUSES: room is needed. OVERFULL: packets would be
    lost at a link.
    """
    c = s.clock[0]
    stop = c.hops + most
    burst = int(c.initial_B / c.packet_B) + 4
    while True:
        if c.n_free < burst:
            return GROW_PACKETS
        if c.n_pauses >= s.pauses.size - 1:
            return GROW_PAUSES
        if c.hops >= stop:
            return PAUSED
        slot = NOTHING
        date = np.inf
        if c.n_events > 0:
            slot = first_event(s)
            date = s.events[slot].date
        if c.started < s.starts.size and s.starts[c.started].date <= date:
            begins = s.starts[c.started]
            if begins.date > until:
                return REACHED
            c.now = begins.date
            c.started += 1
            if not begin_flow(s, begins.flow):
                return OVERFULL
            continue
        if slot < 0:
            return DONE
        if date > until:
            return REACHED
        c.now = date
        remove_first(s, slot)
        if slot & 1:
            transmit(s, slot >> 1)
            continue
        status = arrive(s, slot >> 1)
        if status != DONE:
            return status
