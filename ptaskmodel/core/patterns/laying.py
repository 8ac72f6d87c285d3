"""Kernels that add up what the flows of a task ask of each link.

A ``Tally`` lists the links met, in that order, with what they carry. A link met twice by a route
counts twice; a FATPIPE link is asked the largest flow, not the sum. The all-to-all kernels give the
tally of walking every route, in a time that grows with the hosts and not with their pairs: on a
star because a route is an up-path and a down-path, on a fat tree because the links that a flow
climbs depend on its destination and on the subtree that it leaves, and those it descends on its
destination alone (Zahavi, "Fat-tree routing and node ordering providing contention free traffic for
MPI global collectives", 2012, for the routing).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ptaskmodel.jit import entry, jit
from ptaskmodel.platform.routing.walks import DUPLEX, FIRST, NODES, PARAMS, STAR, walk


class Tally(NamedTuple):
    """Links met (resource numbers) and what they carry; ``size[0]`` of each array is in use.

    place: one per resource, where it stands in the tally, -1 if it does not. worst: the largest
    latency of a route and the largest latency * bytes of a flow.
    """

    size: np.ndarray
    resource: np.ndarray
    usage: np.ndarray
    largest: np.ndarray
    flows: np.ndarray
    pairs: np.ndarray
    place: np.ndarray
    worst: np.ndarray


@entry
def clear(tally):
    """Forget everything."""
    for i in range(tally.size[0]):
        tally.place[tally.resource[i]] = -1
    tally.size[0] = 0
    tally.worst[0] = 0.0
    tally.worst[1] = 0.0


@jit
def add(tally, fatpipe, link, amount, largest, flows, pairs):
    """Let a link carry ``amount`` bytes more, in so many flows between so many pairs of hosts."""
    i = tally.place[link]
    if i < 0:
        i = tally.size[0]
        tally.size[0] += 1
        tally.place[link] = i
        tally.resource[i] = link
        tally.usage[i] = 0.0
        tally.largest[i] = 0.0
        tally.flows[i] = 0.0
        tally.pairs[i] = 0.0
    if fatpipe[link]:
        tally.usage[i] = max(tally.usage[i], largest)
    else:
        tally.usage[i] += amount
    tally.largest[i] = max(tally.largest[i], largest)
    tally.flows[i] += flows
    tally.pairs[i] += pairs


@jit
def note_latency(tally, latency, largest):
    tally.worst[0] = max(tally.worst[0], latency)
    tally.worst[1] = max(tally.worst[1], latency * largest)


@entry
def add_routes(tally, fatpipe, latency_s, start, links, extra_s, amount, largest, flows):
    """Add routes between pairs of hosts: route k is ``links[start[k]:start[k + 1]]``."""
    for k in range(start.size - 1):
        total = extra_s[k]
        for h in range(start[k], start[k + 1]):
            link = links[h]
            total += latency_s[link]
            add(tally, fatpipe, link, amount[k], largest[k], flows[k], 1.0)
        note_latency(tally, total, largest[k])


@jit
def add_walk(
    tally, fatpipe, latency_s, kind, table, offset, route, source, target, amount, largest, flows
):
    """Add the route of a cluster zone between two nodes; False if it is undefined."""
    count = walk(kind, table, source, target, route)
    total = 0.0
    for h in range(count):
        link = offset + route[h]
        total += latency_s[link]
        add(tally, fatpipe, link, amount, largest, flows, 1.0)
    note_latency(tally, total, largest)
    return count >= 0


@entry
def add_walks(
    tally, fatpipe, latency_s, kind, table, offset, route, sources, targets, amount, largest, flows
):
    """Add the routes of a cluster zone between pairs of nodes; False if one is undefined."""
    for k in range(sources.size):
        if not add_walk(
            tally, fatpipe, latency_s, kind, table, offset, route, sources[k], targets[k],
            amount[k], largest[k], flows[k],
        ):  # fmt: skip
            return False
    return True


@jit
def add_all_to_all(tally, fatpipe, latency_s, kind, table, offset, route, nodes, amount):
    """Add a flow of ``amount`` bytes between each two of distinct nodes, by walking every route."""
    for a in nodes:
        for b in nodes:
            if a != b and not add_walk(
                tally, fatpipe, latency_s, kind, table, offset, route, a, b, amount, amount, 1.0
            ):
                return False
    return True


@jit
def add_star_all_to_all(tally, fatpipe, latency_s, table, common, offset, nodes, amount):
    """The same on a plain star: links are ``common`` to all nodes, both ways, or of one node."""
    n = nodes.size
    others = n - 1.0
    rows = 2 + table[NODES]
    links = rows + 3 * table[NODES] + 1
    best_down = -1.0
    second_down = -1.0
    best = -1
    shared_latency = 0.0
    for i in range(n):
        row = rows + 3 * nodes[i] + 1
        total = 0.0
        for position in range(links + table[row], links + table[row + 1]):
            link = offset + table[position]
            if not common[link]:
                total += latency_s[link]
                add(tally, fatpipe, link, others * amount, amount, others, others)
            elif i == 0:
                shared_latency += latency_s[link]
                every = n * others
                add(tally, fatpipe, link, every * amount, amount, every, every)
        if total > best_down:
            second_down = best_down
            best_down = total
            best = i
        elif total > second_down:
            second_down = total
    for i in range(n):
        row = rows + 3 * nodes[i]
        total = shared_latency
        for position in range(links + table[row], links + table[row + 1]):
            link = offset + table[position]
            if not common[link]:
                total += latency_s[link]
                add(tally, fatpipe, link, others * amount, amount, others, others)
        if n > 1:
            total += second_down if i == best else best_down
            note_latency(tally, total, amount)
    return True


@jit
def add_fat_tree_all_to_all(
    tally, fatpipe, latency_s, table, offset, nodes, amount, scratch, counts
):
    """The same on a fat tree without limiters or parallel cables (nodes in increasing order).

    scratch: four values for each node. counts: zeros, two for each way up from a subtree of any
    level. Returns False, with the tally spoilt, if the links met do not all have one latency:
    routes must then be walked.
    """
    n = nodes.size
    levels, shift, halves = table[PARAMS], table[PARAMS + 1], 1 + table[DUPLEX]
    groups = PARAMS + 2
    # The subtree of each node at a level, the place in it that flows to that node reach, and the
    # way up that they take, by number; the ways in use.
    subtree, place, way, used = scratch[0], scratch[1], scratch[2], scratch[3]
    everywhere, inside = counts[0], counts[1]
    latency = -1.0
    deepest = 0
    for i in range(n):
        subtree[i] = nodes[i]
        place[i] = 0
    for level in range(levels):
        g = groups + 6 * level
        c, p, below = table[g], table[g + 1], table[g + 3]
        n_used = 0
        for i in range(n):
            way[i] = place[i] * p + ((nodes[i] + shift) // below) % p
            if everywhere[way[i]] == 0:
                used[n_used] = way[i]
                n_used += 1
            everywhere[way[i]] += 1
        first = 0
        while first < n:
            last = first
            while last < n and subtree[last] == subtree[first]:
                inside[way[last]] += 1
                last += 1
            here = last - first
            lowest = offset + table[FIRST] + (table[g + 5] + subtree[first] * below * p) * halves
            for k in range(n_used if here < n else 0):
                link = lowest + used[k] * halves
                if latency < 0.0:
                    latency = latency_s[link]
                # Up to the nodes elsewhere that are reached this way, down to those here.
                up = float(here * (everywhere[used[k]] - inside[used[k]]))
                down = float(inside[used[k]] * (n - here))
                if (up > 0.0 and latency_s[link] != latency) or (
                    down > 0.0 and latency_s[link + halves - 1] != latency
                ):
                    for i in range(everywhere.size):
                        everywhere[i] = 0
                        inside[i] = 0
                    return False
                if up > 0.0:
                    add(tally, fatpipe, link, up * amount, amount, up, up)
                    deepest = level + 1
                if down > 0.0:
                    add(tally, fatpipe, link + halves - 1, down * amount, amount, down, down)
            for i in range(first, last):
                inside[way[i]] = 0
            first = last
        for i in range(n):
            everywhere[way[i]] = 0
            place[i] += below * (way[i] % p)
            subtree[i] //= c
    total = 0.0
    for _ in range(2 * deepest):
        total += latency
    note_latency(tally, total, amount)
    return True


@entry
def add_crossings(tally, fatpipe, latency_s, start, links, crossings, amount):
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
                total += latency_s[links[h]]
                add(tally, fatpipe, links[h], flows * amount, amount, flows, flows)
            if i < n_up:
                worst_up = max(worst_up, total)
            elif i == n_up:
                across = total
            else:
                worst_down = max(worst_down, total)
            k += 1
        note_latency(tally, across + worst_up + worst_down, amount)


@entry
def add_zone_all_to_all(
    tally, fatpipe, latency_s, kind, plain, table, common, offset, nodes, amount, route, scratch,
    counts,
):  # fmt: skip
    """The same on any cluster, by the shortcut of its kind if ``plain``.

    False if a route is undefined or, with the shortcut, the tally is spoilt.
    """
    if plain and kind == STAR:
        return add_star_all_to_all(tally, fatpipe, latency_s, table, common, offset, nodes, amount)
    if plain:
        return add_fat_tree_all_to_all(
            tally, fatpipe, latency_s, table, offset, nodes, amount, scratch, counts
        )
    return add_all_to_all(tally, fatpipe, latency_s, kind, table, offset, route, nodes, amount)


@entry
def lay_stages(
    stages, stage_numbers, elements, first, tally, fatpipe, latency_s, kind, plain, table, common,
    offset, number, start, hosts, sorted_nodes, flops, all_to_all, flow_start, flow_from, flow_to,
    flow_bytes, competitors, by_flow, by_pair, route, scratch, counts,
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
                tally, fatpipe, latency_s, kind, plain, table, common, offset, nodes,
                all_to_all[k], route, scratch, counts,
            )  # fmt: skip
            if plain and not done:
                clear(tally)
                done = add_all_to_all(
                    tally, fatpipe, latency_s, kind, table, offset, route, nodes, all_to_all[k]
                )
            if not done:
                return -(k + 1)
        for f in range(flow_start[k], flow_start[k + 1]):
            source = number[hosts[begin + flow_from[f]]]
            target = number[hosts[begin + flow_to[f]]]
            if not add_walk(
                tally, fatpipe, latency_s, kind, table, offset, route, source, target,
                flow_bytes[f], flow_bytes[f], 1.0,
            ):  # fmt: skip
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
