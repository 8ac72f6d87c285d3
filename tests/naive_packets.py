"""A naive simulator of packets in queues: objects and one heap of events, to compare with ours.

It shares no code with the package. Events of one date come in the order in which
they were foreseen.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class Link:
    bandwidth: float
    latency: float
    mark: float = math.inf
    free: float = 0.0
    owed: float = 0.0
    came_in: float = 0.0  # bytes that wait in the switch at its far end
    carried: float = 0.0
    paused: bool = False
    foreseen: bool = False  # an event for its transmitter
    waiting: deque = field(default_factory=deque)


@dataclass(eq=False)
class Packet:
    flow: Any
    size: float
    opening: bool = False
    hop: int = 0
    marked: bool = False


@dataclass(eq=False)
class Flow:
    start: float
    total: float
    there: list
    back: list
    window: float = 0.0
    sent: float = 0.0
    acknowledged: float = 0.0
    received: float = 0.0
    alpha: float = 1.0
    window_end: float = 0.0
    seen: float = 0.0
    marked: float = 0.0
    slow: bool = True
    cut: bool = False
    end: float | None = None


class Naive:
    """Links and flows; `run` returns the date at which each flow ended."""

    def __init__(self, links, flows, *, packet, ack, windows, opens=False, initial=10, gain=1 / 16,
                 pause=math.inf, resume=math.inf, until_acknowledged=False):  # fmt: skip
        self.links, self.flows = links, flows
        self.packet, self.ack, self.windows, self.opens = packet, ack, windows, opens
        self.initial, self.gain, self.pause, self.resume = initial * packet, gain, pause, resume
        self.until_acknowledged = until_acknowledged
        self.heap: list[tuple[float, int, Any, Any]] = []
        self.order, self.now, self.pauses = 0, 0.0, 0

    def foresee(self, date, action, subject):
        self.order += 1
        heapq.heappush(self.heap, (date, self.order, action, subject))

    def run(self):
        for flow in self.flows:
            self.foresee(flow.start, self.begin, flow)
        while self.heap:
            self.now, _, action, subject = heapq.heappop(self.heap)
            action(subject)
        return [flow.end for flow in self.flows]

    def send(self, link, packet, begin):
        idle = max(0.0, begin - link.free) * link.bandwidth
        owed, link.owed = max(0.0, link.owed - idle), 0.0
        link.free = begin + (owed + packet.size) * (1.0 / link.bandwidth)
        link.carried += packet.size
        self.foresee(link.free + link.latency, self.arrive, packet)

    def route(self, flow):
        return flow.there + flow.back

    def join(self, packet):
        flow = packet.flow
        link = self.route(flow)[packet.hop]
        if self.windows:
            queue = max(0.0, (link.free - self.now) * link.bandwidth)
            if not packet.opening and packet.hop < len(flow.there) and queue >= link.mark:
                packet.marked = True
            self.send(link, packet, max(self.now, link.free))
            return
        link.waiting.append(packet)
        if packet.hop not in (0, len(flow.there)):
            before = self.route(flow)[packet.hop - 1]
            before.came_in += packet.size
            if not before.paused and before.came_in > self.pause:
                before.paused = True
                self.pauses += 1
        if not link.paused and not link.foreseen:
            if link.free <= self.now:
                self.take(link)
            self.foresee_transmitter(link)

    def foresee_transmitter(self, link):
        if link.waiting:
            link.foreseen = True
            self.foresee(max(self.now, link.free), self.transmit, link)

    def transmit(self, link):
        link.foreseen = False
        if not link.paused and link.waiting:
            self.take(link)
            self.foresee_transmitter(link)

    def take(self, link):
        packet = link.waiting.popleft()
        flow = packet.flow
        self.send(link, packet, self.now)
        if packet.hop == 0:
            size = min(self.packet, flow.total - flow.sent)
            if size > 0.0:
                flow.sent += size
                link.waiting.append(Packet(flow, size))
        elif packet.hop != len(flow.there):
            before = self.route(flow)[packet.hop - 1]
            before.came_in -= packet.size
            if before.paused and before.came_in < self.resume:
                before.paused = False
                if not before.foreseen:
                    self.foresee_transmitter(before)

    def begin(self, flow):
        if not self.windows:
            flow.sent = min(self.packet, flow.total)
            self.join(Packet(flow, flow.sent))
            return
        flow.window = self.initial
        if self.opens:
            self.join(Packet(flow, self.ack, opening=True))
        else:
            self.fill(flow)

    def fill(self, flow):
        while flow.sent < flow.total:
            size = min(self.packet, flow.total - flow.sent)
            if flow.sent - flow.acknowledged + size > flow.window + 0.5:
                return
            flow.sent += size
            self.join(Packet(flow, size))

    def arrive(self, packet):
        flow = packet.flow
        packet.hop += 1
        if packet.hop == len(flow.there):
            flow.received += 0.0 if packet.opening else packet.size
            last = not packet.opening and flow.received >= flow.total - 0.5
            if last and not self.until_acknowledged:
                flow.end = self.now
            if not self.windows and not (last and self.until_acknowledged):
                for link in flow.back:
                    link.owed += self.ack
                return
            packet.size = self.ack
        if packet.hop < len(flow.there + flow.back):
            self.join(packet)
            return
        if packet.opening:
            self.fill(flow)
            return
        if self.windows:
            self.acknowledge(flow, packet.marked)
        if self.until_acknowledged and (not self.windows or flow.acknowledged >= flow.total - 0.5):
            flow.end = self.now

    def acknowledge(self, flow, marked):
        size = min(self.packet, flow.total - flow.acknowledged)
        flow.acknowledged += size
        flow.seen += size
        if marked:
            flow.marked += size
            if not flow.cut:
                flow.cut, flow.slow = True, False
                flow.window = max(2 * self.packet, flow.window * (1 - 0.5 * flow.alpha))
        flow.window += size if flow.slow else self.packet * size / flow.window
        if flow.acknowledged >= flow.window_end:
            flow.alpha += self.gain * (flow.marked / flow.seen - flow.alpha)
            flow.seen = flow.marked = 0.0
            flow.window_end, flow.cut = flow.sent, False
        self.fill(flow)
