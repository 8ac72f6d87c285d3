"""Kernels that add up what the flows of a task ask of each link.

All-to-alls are added by walking every route, or by the shortcut of their family (`topologies`),
which gives the same tally.
"""

from __future__ import annotations

from ptaskmodel.jit import entry, jit
from ptaskmodel.platform.routing.tally import add, note_latency
from ptaskmodel.platform.routing.walks import all_to_all_shortcut, walk


@entry
def clear(tally):
    """Forget everything."""
    for i in range(tally.size[0]):
        tally.place[tally.resource[i]] = -1
    tally.size[0] = 0
    tally.worst[0] = 0.0
    tally.worst[1] = 0.0


@entry
def add_routes(tally, ways, start, links, extra_s, amount, largest, flows):
    """Add routes between pairs of hosts: route k is ``links[start[k]:start[k + 1]]``."""
    for k in range(start.size - 1):
        total = extra_s[k]
        for h in range(start[k], start[k + 1]):
            link = links[h]
            total += ways.latency_s[link]
            add(tally, ways.fatpipe, link, amount[k], largest[k], flows[k], 1.0)
        note_latency(tally, total, largest[k])


@jit
def add_walk(tally, ways, kind, table, route, source, target, amount, largest, flows):
    """Add the route of a cluster zone between two nodes; False if it is undefined."""
    count = walk(kind, table, source, target, route)
    total = 0.0
    for h in range(count):
        link = ways.offset + route[h]
        total += ways.latency_s[link]
        add(tally, ways.fatpipe, link, amount, largest, flows, 1.0)
    note_latency(tally, total, largest)
    return count >= 0


@entry
def add_walks(tally, ways, kind, table, route, sources, targets, amount, largest, flows):
    """Add the routes of a cluster zone between pairs of nodes; False if one is undefined."""
    for k in range(sources.size):
        if not add_walk(
            tally, ways, kind, table, route, sources[k], targets[k], amount[k], largest[k], flows[k]
        ):
            return False
    return True


@jit
def add_all_to_all(tally, ways, kind, table, route, nodes, amount):
    """Add a flow of ``amount`` bytes between each two of distinct nodes, by walking every route."""
    for a in nodes:
        for b in nodes:
            if a != b and not add_walk(tally, ways, kind, table, route, a, b, amount, amount, 1.0):
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
                add(tally, ways.fatpipe, links[h], flows * amount, amount, flows, flows)
            if i < n_up:
                worst_up = max(worst_up, total)
            elif i == n_up:
                across = total
            else:
                worst_down = max(worst_down, total)
            k += 1
        note_latency(tally, across + worst_up + worst_down, amount)


@entry
def add_zone_all_to_all(tally, ways, kind, plain, table, nodes, amount, route, scratch, counts):
    """The same on any cluster, by the shortcut of its kind if ``plain``.

    False if a route is undefined or, with the shortcut, the tally is spoilt.
    """
    if plain:
        return all_to_all_shortcut(kind, tally, ways, table, nodes, amount, scratch, counts)
    return add_all_to_all(tally, ways, kind, table, route, nodes, amount)


@entry
def lay_stages(
    stages, stage_numbers, elements, first, tally, ways, kind, plain, table, number, start, hosts,
    sorted_nodes, flops, all_to_all, flow_start, flow_from, flow_to, flow_bytes, competitors,
    by_flow, by_pair, route, scratch, counts,
):  # fmt: skip
    """Lay out stages on hosts of one cluster.

    Entry i of stage k, for i in ``start[k]:start[k + 1]``, is host ``hosts[i]`` (each host
    once) with ``flops[i]``; ``sorted_nodes`` has its nodes in increasing order there; each
    sends ``all_to_all[k]`` bytes to each other, and flows ``flow_start[k]:flow_start[k + 1]``
    are as in a `ParallelWork`. ``competitors[k]`` (0: none) overrides the count. Elements are
    written from place ``first`` on. Returns the place after the last element, or -(k + 1) at
    the first stage k that has no room or no route.
    """
    for k in range(stage_numbers.size):
        begin = start[k]
        n = start[k + 1] - begin
        clear(tally)
        works = False
        if all_to_all[k] > 0.0 and n > 1:
            nodes = sorted_nodes[begin : start[k + 1]]
            done = add_zone_all_to_all(
                tally, ways, kind, plain, table, nodes, all_to_all[k], route, scratch, counts
            )
            if plain and not done:
                clear(tally)
                done = add_all_to_all(tally, ways, kind, table, route, nodes, all_to_all[k])
            if not done:
                return -(k + 1)
        for f in range(flow_start[k], flow_start[k + 1]):
            source = number[hosts[begin + flow_from[f]]]
            target = number[hosts[begin + flow_to[f]]]
            if not add_walk(
                tally, ways, kind, table, route, source, target, flow_bytes[f], flow_bytes[f], 1.0
            ):
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
        if competitors[k] > 0.0:
            for i in range(count):
                elements[first + i].share = elements[first + i].usage / competitors[k]
        stage = stages[stage_numbers[k]]
        stage.first = first
        stage.count = count
        stage.amount = 1.0 if works or tally.size[0] > 0 else 0.0
        stage.latency = tally.worst[0]
        stage.latency_bytes = tally.worst[1]
        first += count
    clear(tally)
    return first
