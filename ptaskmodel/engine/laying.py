"""Kernels that add up what the flows of a task ask of each link."""

from __future__ import annotations

from ptaskmodel.jit import jit


@jit
def accumulate(
    start, links, amount, largest, flows, pairs, fatpipe, place, out_resource, out_usage,
    out_largest, out_flows, out_pairs,
):  # fmt: skip
    """Add up segments of routes, link by link; returns the number of links met.

    Segment k is ``links[start[k]:start[k + 1]]`` (resource numbers) and carries ``amount[k]`` bytes
    in ``flows[k]`` flows between ``pairs[k]`` host pairs, the largest of ``largest[k]`` bytes. A
    link met twice counts twice; a FATPIPE link is asked the largest flow, not the sum. ``place`` is
    scratch, one per resource, -1 before and after. The outputs are in the order first met.
    """
    m = 0
    for k in range(start.size - 1):
        for h in range(start[k], start[k + 1]):
            link = links[h]
            i = place[link]
            if i < 0:
                i = m
                m += 1
                place[link] = i
                out_resource[i] = link
                out_usage[i] = 0.0
                out_largest[i] = 0.0
                out_flows[i] = 0.0
                out_pairs[i] = 0.0
            if fatpipe[link]:
                out_usage[i] = max(out_usage[i], largest[k])
            else:
                out_usage[i] += amount[k]
            out_largest[i] = max(out_largest[i], largest[k])
            out_flows[i] += flows[k]
            out_pairs[i] += pairs[k]
    for i in range(m):
        place[out_resource[i]] = -1
    return m


@jit
def route_latencies(start, links, latency, extra, largest):
    """(Largest latency of the routes, largest latency * largest flow) of segments that are routes."""
    worst = 0.0
    worst_bytes = 0.0
    for k in range(start.size - 1):
        total = extra[k]
        for h in range(start[k], start[k + 1]):
            total += latency[links[h]]
        worst = max(worst, total)
        worst_bytes = max(worst_bytes, total * largest[k])
    return worst, worst_bytes
