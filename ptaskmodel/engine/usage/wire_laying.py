# mypy: allow-untyped-defs, allow-incomplete-defs
"""Kernel that writes the usage vectors of flows of a wire model; `wires` has the equations."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ptaskmodel.engine.usage.assembly import add_use, lay_flows
from ptaskmodel.engine.usage.network_models import CROSS_TRAFFIC, NetworkModel
from ptaskmodel.engine.usage.wires import ACKNOWLEDGEMENT, CONNECT, Wire
from ptaskmodel.kernels.decorators import entry, jit


class WireFacts(NamedTuple):
    """What the kernel reads of a `wires.Wire`.

    packet, header, ack: bytes. returned: what acknowledgements use of the way back, for a byte
    there. fixed_s: after the last byte.
    """

    packet: float
    header: float
    ack: float
    returned: float
    fixed_s: float
    latency: bool
    hops: bool
    handshake: bool
    to_acknowledgement: bool
    rtt_weights: bool

    @classmethod
    def of(cls, wire: Wire) -> WireFacts:
        """Those of a wire model."""
        packet = float(wire.packet_B)
        return cls(
            packet,
            float(wire.header_B),
            float(wire.ack_B),
            float(wire.ack_B) / packet if wire.acknowledgements else 0.0,
            float(wire.read_overhead_s),
            wire.latency,
            wire.hops,
            wire.measured_from == CONNECT,
            wire.measured_to == ACKNOWLEDGEMENT,
            wire.rtt_weights,
        )


def layer_of(model: NetworkModel) -> tuple[Any, Any]:
    """The kernel that lays out flows of a model, and what it reads of the model."""
    if model.wire is not None:
        return lay_wire_flows, WireFacts.of(model.wire)
    cross = CROSS_TRAFFIC if model.crosstraffic else 0.0
    return lay_flows, np.array((model.latency_factor, model.weight_s, cross))


@jit
def _crossed(legs, k, latency_s, bandwidth_Bps):
    """(D, X, C) of a route: its latency, s; the time of a byte on each link, s; least capacity."""
    latency = legs.extra_s[k]
    per_byte = 0.0
    narrowest = np.inf
    for h in range(legs.start[k], legs.start[k + 1]):
        bandwidth = bandwidth_Bps[legs.links[h]]
        latency += latency_s[legs.links[h]]
        narrowest = min(narrowest, bandwidth)
        if bandwidth > 0.0:  # else nothing moves, and no time matters
            per_byte += 1.0 / bandwidth
    return latency, per_byte, narrowest


@entry
def lay_wire_flows(
    numbers, sources, targets, there, back, fatpipe, may_fail, latency_s, bandwidth_Bps, wire,
    patterns, elements, first,
):  # fmt: skip
    """Write the patterns of flows of a wire model, as `assembly.lay_flows` does of others.

    wire: `WireFacts`. Amounts are bytes on the wire. numbers, sources, targets, there, back,
    fatpipe, may_fail, latency_s, bandwidth_Bps, patterns, elements, first: as there.
    """
    for k in range(numbers.size):
        if not there.known[k] or not back.known[k]:
            continue
        latency, per_byte, narrowest = _crossed(there, k, latency_s, bandwidth_Bps)
        latency_back, per_byte_back, _ = _crossed(back, k, latency_s, bandwidth_Bps)
        begin, end = there.start[k], there.start[k + 1]
        if begin == end and latency == 0.0:
            continue
        last = first
        for h in range(begin, end):
            link = there.links[h]
            last = add_use(elements, first, last, link, 1.0, fatpipe[link])
        if wire.returned > 0.0:
            for h in range(back.start[k], back.start[k + 1]):
                link = back.links[h]
                last = add_use(elements, first, last, link, wire.returned, fatpipe[link])
        for host in (sources[k], targets[k]):
            if may_fail[host]:
                last = add_use(elements, first, last, host, 0.0, False)
        for i in range(first, last):
            elements[i].share = elements[i].usage
            elements[i].largest = elements[i].usage
        p = patterns[numbers[k]]
        p.first = first
        p.count = last - first
        p.amount = 1.0
        p.latency_bytes = 0.0
        p.round_trip = latency + latency_back + per_byte * wire.packet + per_byte_back * wire.ack
        p.latency = 0.0
        if wire.handshake:
            p.latency = latency + latency_back + (per_byte + per_byte_back) * wire.header
        p.penalty = p.round_trip if wire.rtt_weights and p.round_trip > 0.0 else 1.0
        p.tail = wire.fixed_s
        if wire.latency:
            p.tail += latency
        if wire.to_acknowledgement:
            p.tail += latency_back + per_byte_back * wire.ack
        p.tail_per_byte = 0.0
        if wire.hops and narrowest > 0.0:
            p.tail_per_byte = per_byte - 1.0 / narrowest
        p.narrowest = narrowest
        p.bound = np.inf if narrowest > 0.0 else 0.0
        first = last
    return first
