# mypy: allow-untyped-defs, allow-incomplete-defs
"""Kernels that sum the load which the flows of a task put on each link.

Flows and all-to-alls are added by walking every route, or by the shortcuts of their family
(`platform.topologies`), which give the same sums. Flows of a wire model have usage vectors of their
own; `network_models` has the equations.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ptaskmodel.engine.usage.network_models import (
    ACKNOWLEDGEMENT,
    CONNECT,
    CROSS_TRAFFIC,
    NetworkModel,
    Wire,
)
from ptaskmodel.kernels.decorators import entry, jit
from ptaskmodel.platform.topologies.link_loads import add, carry, note_latency
from ptaskmodel.platform.zone_routes import all_to_all_shortcut, flows_by_tables, walk


@entry
def clear(tally):
    """Forget everything."""
    for i in range(tally.size[0]):
        tally.place[tally.resource[i]] = -1
    tally.size[0] = 0
    tally.worst[0] = 0.0
    tally.worst[1] = 0.0


@entry
def add_routes(tally, ways, start, links, extra_s, amount, largest):
    """Add routes between pairs of hosts: route k is ``links[start[k]:start[k + 1]]``."""
    for k in range(start.size - 1):
        total = extra_s[k]
        for h in range(start[k], start[k + 1]):
            link = links[h]
            total += ways.latency_s[link]
            add(tally, ways.fatpipe, link, amount[k], largest[k], 1.0)
        note_latency(tally, total, largest[k])


@entry
def join_segments(start, links, segments, out):
    """Write routes one after the other, each made of segments: rows of ``segments``, in order.

    Segment i is ``links[start[i]:start[i + 1]]``.
    """
    place = 0
    for k in range(segments.shape[0]):
        for part in range(segments.shape[1]):
            i = segments[k, part]
            for h in range(start[i], start[i + 1]):
                out[place] = links[h]
                place += 1


@jit
def add_use(elements, first, last, link, usage, fatpipe):
    """Let a flow use a link of which elements ``first`` to ``last`` may know; the new last."""
    k = first
    while k < last and elements[k].resource != link:
        k += 1
    if k == last:
        elements[k].resource = link
        elements[k].usage = usage
        return last + 1
    before = elements[k].usage
    elements[k].usage = max(before, usage) if fatpipe else before + usage
    return last


@entry
def assemble_flows(
    numbers, sources, targets, there, back, fatpipe, may_fail, latency_s, bandwidth_Bps, flow,
    patterns, elements, first,
):  # fmt: skip
    """Write the patterns of flows that take routes ``there`` and are acknowledged on ``back``.

    flow: latency factor, weight_s, what acknowledgements use. Hosts that may fail are entered last,
    asked nothing. Patterns without a way to go stay unrouted. Elements are written from ``first``
    on, for which there is room; returns the place after the last.
    """
    for k in range(numbers.size):
        if not there.known[k] or (flow[2] > 0.0 and not back.known[k]):
            continue
        latency = there.extra_s[k]
        last = first
        narrowest = np.inf
        begin, end = there.start[k], there.start[k + 1]
        for h in range(begin, end):
            link = there.links[h]
            latency += latency_s[link]
            narrowest = min(narrowest, bandwidth_Bps[link])
            last = add_use(elements, first, last, link, 1.0, fatpipe[link])
        if begin == end and latency == 0.0:
            continue
        if flow[2] > 0.0:
            for h in range(back.start[k], back.start[k + 1]):
                link = back.links[h]
                last = add_use(elements, first, last, link, flow[2], fatpipe[link])
        for host in (sources[k], targets[k]):
            if may_fail[host]:
                last = add_use(elements, first, last, host, 0.0, False)
        penalty = 1.0
        if latency * flow[0] > 0.0:
            penalty = latency
            if flow[1] > 0.0:
                # In the order of the route, as SimGrid adds: ties on a FATPIPE are decided by it.
                # Where a bandwidth is 0 the bound is, too, and the weight does not matter.
                for h in range(begin, end):
                    bandwidth = bandwidth_Bps[there.links[h]]
                    penalty += flow[1] / bandwidth if bandwidth > 0.0 else 0.0
        for i in range(first, last):
            elements[i].share = elements[i].usage
            elements[i].largest = elements[i].usage
        p = patterns[numbers[k]]
        p.first = first
        p.count = last - first
        p.amount = 1.0
        p.latency = latency * flow[0]
        p.latency_bytes = latency
        p.penalty = penalty
        p.bound = narrowest
        first = last
    return first


@entry
def assemble_parallel_flows(
    numbers, sources, targets, there, fatpipe, latency_s, by_flow, by_pair, patterns, elements,
    first,
):  # fmt: skip
    """Write the patterns of parallel works of one flow of a byte each, as `assemble_flows` does.

    Their hosts, which differ, come first and are asked nothing.
    """
    for k in range(numbers.size):
        if not there.known[k] or there.start[k] == there.start[k + 1]:
            continue
        for i, host in ((0, sources[k]), (1, targets[k])):
            element = elements[first + i]
            element.resource = host
            element.usage = 0.0
            element.share = 0.0
            element.largest = 0.0
        latency = 0.0
        last = first + 2
        for h in range(there.start[k], there.start[k + 1]):
            link = there.links[h]
            latency += latency_s[link]
            before = last
            last = add_use(elements, first + 2, last, link, 1.0, fatpipe[link])
            if last > before:
                elements[before].largest = 0.0  # how often it is met
            i = first + 2
            while elements[i].resource != link:
                i += 1
            elements[i].largest += 1.0
        latency += there.extra_s[k]
        for i in range(first + 2, last):
            element = elements[i]
            element.share = element.usage
            if by_flow:
                element.share = 1.0
            elif by_pair:
                element.share = element.usage / element.largest
            element.largest = 1.0
        p = patterns[numbers[k]]
        p.first = first
        p.count = last - first
        p.amount = 1.0
        p.latency = latency
        p.latency_bytes = latency
        first = last
    return first


@jit
def add_walk(tally, ways, cluster, route, source, target, amount, largest):
    """Add the route of a cluster zone between two nodes; False if it is undefined."""
    count = walk(cluster.kind, cluster.table, source, target, route)
    total = 0.0
    for h in range(count):
        total += carry(tally, ways, route[h], amount, largest)
    note_latency(tally, total, largest)
    return count >= 0


@entry
def add_flows(tally, ways, cluster, route, nodes, sources, targets, amount, largest):
    """Add flows inside a cluster zone, from ``nodes[sources[k]]`` to ``nodes[targets[k]]``.

    False if a route is undefined.
    """
    if cluster.ends.size > 0:
        return flows_by_tables(
            cluster.kind, tally, ways, cluster.table, cluster.ends, nodes, sources, targets,
            amount, largest,
        )  # fmt: skip
    for k in range(sources.size):
        source, target = nodes[sources[k]], nodes[targets[k]]
        if not add_walk(tally, ways, cluster, route, source, target, amount[k], largest[k]):
            return False
    return True


@jit
def walk_all_to_all(tally, ways, cluster, route, nodes, amount):
    """Add a flow of ``amount`` bytes between each two of distinct nodes, by walking every route."""
    for a in nodes:
        for b in nodes:
            if a != b and not add_walk(tally, ways, cluster, route, a, b, amount, amount):
                return False
    return True


@entry
def add_crossings(tally, ways, start, links, crossings, amount):
    """Add flows of ``amount`` bytes between all hosts of a zone and all of another.

    Row c of ``crossings`` counts the hosts on either side; segments of ``links``, cut by ``start``,
    are their up-paths, what lies across, then their down-paths; one crossing after the other.
    """
    k = 0
    for c in range(crossings.shape[0]):
        n_up = crossings[c, 0]
        n_down = crossings[c, 1]
        worst_up = 0.0
        worst_down = 0.0
        across = 0.0
        for i in range(n_up + 1 + n_down):
            flows = float(n_up)
            if i < n_up:
                flows = float(n_down)
            elif i == n_up:
                flows = float(n_up * n_down)
            total = 0.0
            for h in range(start[k], start[k + 1]):
                total += ways.latency_s[links[h]]
                add(tally, ways.fatpipe, links[h], flows * amount, amount, flows)
            if i < n_up:
                worst_up = max(worst_up, total)
            elif i == n_up:
                across = total
            else:
                worst_down = max(worst_down, total)
            k += 1
        note_latency(tally, across + worst_up + worst_down, amount)


@entry
def add_all_to_all(tally, ways, cluster, shortcut, nodes, amount, route, scratch, counts):
    """The same on any cluster, by the shortcut of its kind if it serves and is wanted.

    False if a route is undefined or, with the shortcut, the tally is spoilt.
    """
    if shortcut and cluster.plain:
        return all_to_all_shortcut(
            cluster.kind, tally, ways, cluster.table, nodes, amount, scratch, counts
        )
    return walk_all_to_all(tally, ways, cluster, route, nodes, amount)


@entry
def assemble_stages(
    stages, stage_numbers, elements, first, tally, ways, cluster, number, placement, demands,
    by_flow, by_pair, route, scratch, counts,
):  # fmt: skip
    """Lay out stages on hosts of one cluster, each host once in a stage.

    number: of each host inside its zone. Elements are written from place ``first`` on; ``demands``
    and ``placement`` (see there) have an entry k for stage ``stage_numbers[k]``. Returns the place
    after the last element, or -(k + 1) at the first k that has no room or no route.
    """
    hosts, flops = placement.hosts, demands.flops
    for k in range(stage_numbers.size):
        begin = placement.start[k]
        n = placement.start[k + 1] - begin
        clear(tally)
        works = False
        amount = demands.pair_bytes[k]
        if amount > 0.0 and n > 1:
            nodes = placement.nodes[begin : begin + n]
            done = add_all_to_all(tally, ways, cluster, True, nodes, amount, route, scratch, counts)
            if cluster.plain and not done:
                clear(tally)
                done = walk_all_to_all(tally, ways, cluster, route, nodes, amount)
            if not done:
                return -(k + 1)
        f, g = demands.flow_start[k], demands.flow_start[k + 1]
        if f < g:
            nodes = scratch[0, :n]
            for i in range(n):
                nodes[i] = number[hosts[begin + i]]
            sent = demands.flow_bytes[f:g]
            sources, targets = demands.flow_from[f:g], demands.flow_to[f:g]
            if not add_flows(tally, ways, cluster, route, nodes, sources, targets, sent, sent):
                return -(k + 1)
        count = n + tally.size[0]
        if first + count > elements.size:
            return -(k + 1)
        for i in range(n):
            element = elements[first + i]
            element.resource = hosts[begin + i]
            element.usage = flops[begin + i]
            element.share = flops[begin + i]
            element.largest = flops[begin + i]
            works = works or flops[begin + i] > 0.0
        for i in range(count - n):
            element = elements[first + n + i]
            element.resource = tally.resource[i]
            element.usage = tally.usage[i]
            element.largest = tally.largest[i]
            element.share = tally.usage[i]
            if by_flow:
                element.share = tally.largest[i]
            elif by_pair:
                element.share = tally.usage[i] / tally.pairs[i]
        competitors = demands.competitors[k]
        if competitors > 0.0:
            for i in range(count):
                elements[first + i].share = elements[first + i].usage / competitors
        stage = stages[stage_numbers[k]]
        stage.first = first
        stage.count = count
        stage.amount = 1.0 if works or tally.size[0] > 0 else 0.0
        stage.latency = tally.worst[0]
        stage.latency_bytes = tally.worst[1]
        first += count
    clear(tally)
    return first


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


def assembler_of(model: NetworkModel) -> tuple[Any, Any]:
    """The kernel that lays out flows of a model, and what it reads of the model."""
    if model.wire is not None:
        return assemble_wire_flows, WireFacts.of(model.wire)
    cross = CROSS_TRAFFIC if model.crosstraffic else 0.0
    return assemble_flows, np.array((model.latency_factor, model.weight_s, cross))


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
def assemble_wire_flows(
    numbers, sources, targets, there, back, fatpipe, may_fail, latency_s, bandwidth_Bps, wire,
    patterns, elements, first,
):  # fmt: skip
    """Write the patterns of flows of a wire model, as `assembly.assemble_flows` does of others.

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
