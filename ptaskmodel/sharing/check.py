"""Check the invariants of a sharing graph between events: for tests and for finding faults.

`engine.check` checks those of the engine.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ptaskmodel.sharing.arrays import LIMIT_BOUND
from ptaskmodel.sharing.graph import STRICTLY_LESS
from ptaskmodel.sharing.levels.component_levels import LOAD_TOLERANCE, WATCHED
from ptaskmodel.sharing.state import BY_LEVELS, BY_ROUNDS, SIDES, TODO, UNLAID, WATCH, Graph

# Relative differences that rounding and the tolerances of solvers explain.
CLOSE = 1e-9


def check_graph(graph: Graph, in_force: bool, levels_in_force: bool) -> Iterator[str]:
    """A sentence for each thing of a graph that does not hold.

    in_force: its rates are those of the last solve; levels_in_force: and so are its levels.
    """
    yield from _resources(graph)
    yield from _kept(graph)
    yield from _levels(graph, levels_in_force)
    yield from _heavy(graph)
    yield from _rates(graph, in_force)


def _resources(s: Graph) -> Iterator[str]:
    if s.constraints["users"].sum() != s.counts[0]["n_links"]:
        yield "the counts of users of resources are wrong"
    todo = s.variables["todo"][s.worklists[TODO][: s.counts[0]["n_todo"]]]
    if (todo == SIDES).sum() != s.counts[0]["n_beside"]:
        yield "the counts of activities beside resources whose redundancy status changed are wrong"
    for resource in np.flatnonzero(s.constraints["users"]).tolist():
        r = s.constraints[resource]
        users = s.users[r["first"] : r["first"] + r["users"]]
        nodes, slots = users["node"], users["slot"]
        own = s.nodes[nodes]
        places = r["gone"] + np.arange(len(nodes))
        if (own["resource"] != resource).any() or (own["place"] != places).any():
            yield f"the number of users of resource {resource} is wrong"
        if (own["usage"] != users["usage"]).any():
            yield f"the total demand on resource {resource} is wrong"
        enabled = (s.variables["enabled"][slots] == 1) & (s.nodes["usage"][nodes] > 0.0)
        if enabled.sum() != r["enabled"]:
            yield f"the number of enabled users of resource {resource} is wrong"
        if s.nodes["violates"][nodes][enabled].sum() != r["violations"]:
            yield f"the number of violations of resource {resource} is wrong"
        asked = float((s.nodes["usage"][nodes] * s.variables["top"][slots])[enabled].sum())
        if np.isfinite(asked) and abs(asked - r["demand"]) > 1e-6 * max(asked, r["capacity"], 1.0):
            yield f"the demand on resource {resource} is wrong"


def _kept(s: Graph) -> Iterator[str]:
    """What may limit its users is kept by all of them or by none: solvers count on it."""
    settled = (s.variables["enabled"] == 1) & (s.variables["todo"] == 0)
    slots = np.flatnonzero(settled)
    runs = [s.variables[name][slots].tolist() for name in ("nodes", "n_kept")]
    for first, n in zip(*runs, strict=True):
        places = np.arange(first, first + n)
        if (s.nodes["kept"][s.kept["node"][places]] != places).any():
            yield "a node has lost its kept element"
    kept = [s.kept["resource"][first : first + n] for first, n in zip(*runs, strict=True)]
    resources, counts = np.unique(np.concatenate([[], *kept]).astype(np.int64), return_counts=True)
    waiting = set()
    for slot in np.flatnonzero((s.variables["enabled"] == 1) & ~settled).tolist():
        first, n = s.variables[slot]["nodes"], s.variables[slot]["n_nodes"]
        waiting |= set(s.nodes["resource"][first : first + n].tolist())
    for resource, count in zip(resources.tolist(), counts.tolist(), strict=True):
        r = s.constraints[resource]
        slack = s.counts[0]["drops_slack"] == 1 and r["demand"] <= r["capacity"] * STRICTLY_LESS
        if resource not in waiting and count != r["enabled"] and (r["fatpipe"] or not slack):
            yield f"only some users of resource {resource} keep it"


def _levels(s: Graph, in_force: bool) -> Iterator[str]:
    """What bmf keeps from event to event, and that the rates in force are those of the levels."""
    counts = s.counts[0]
    if counts["way"] != BY_LEVELS or not in_force:
        return
    if counts["n_todo"] or counts["n_touched"]:
        return
    r = s.constraints
    if ((r["active"] == 1) & (r["enabled"] < 2)).any():
        yield "a resource without several users is active"
    watched = s.worklists[WATCH, : counts["n_watched"]]
    if sorted(watched.tolist()) != np.flatnonzero(r["active"] == WATCHED).tolist():
        yield "the list of watched resources is wrong"
    if (np.isfinite(r["level"]) != (r["active"] == 1)).any():
        yield "a resource has a level but is not active, or is active without one"
    load, counted, on = np.zeros(len(r)), np.zeros(len(r)), np.zeros(len(r), dtype=bool)
    for slot in np.flatnonzero(s.variables["enabled"] == 1).tolist():
        a = s.variables[slot]
        kept = s.kept[a["nodes"] : a["nodes"] + a["n_kept"]]
        used = kept["resource"]
        if ((r["active"][used] == 1) != (np.arange(len(used)) < a["n_active"])).any():
            yield f"active resources do not come first in activity {slot}"
        share = np.where(kept["share"] > 0.0, kept["share"], kept["usage"]) * a["penalty"]
        fair = min([a["uncontended_rate"], *(r["level"][used] / share)])
        if abs(a["rate"] - fair) > CLOSE * fair:
            yield f"the rate of activity {slot} is not that of the levels"
        if abs(a["rate"] - a["counted_rate"]) > (LOAD_TOLERANCE + CLOSE) * a["counted_rate"]:
            yield f"activity {slot} has a counted rate too far from its rate"
        np.add.at(load, used, kept["usage"] * a["rate"])
        np.add.at(counted, used, kept["usage"] * a["counted_rate"])
        on[used] = ~r["fatpipe"][used]
    full = load - r["capacity"]
    if (full[on] > CLOSE * r["capacity"][on]).any():
        yield "a capacity is exceeded"
    active = r["active"] == 1
    if (np.abs(full[active]) > CLOSE * r["capacity"][active]).any():
        yield "an active resource is not saturated"
    idle = on & ~active
    if (np.abs(counted - r["load"])[idle] > CLOSE * np.maximum(load, r["capacity"])[idle]).any():
        yield "a load is wrong"
    full = counted * (1.0 + LOAD_TOLERANCE) > r["capacity"] * (1.0 + CLOSE)
    if (full & idle & (r["enabled"] > 1) & (r["active"] != WATCHED)).any():
        yield "no activity watches a resource that may overflow"


def _heavy(s: Graph) -> Iterator[str]:
    """What fair bottleneck keeps from event to event, of activities of which it keeps anything."""
    counts = s.counts[0]
    if counts["way"] != BY_ROUNDS or counts["n_todo"] or counts["n_touched"]:
        return
    r = s.constraints
    begun, load, level, second, later = np.zeros((5, len(r)))
    unknown = np.zeros(len(r), dtype=bool)
    for slot in np.flatnonzero(s.variables["enabled"] == 1).tolist():
        a = s.variables[slot]
        kept = s.kept[a["nodes"] : a["nodes"] + a["n_kept"]]
        used, usage = kept["resource"], kept["usage"]
        if a["took"] == 0.0:
            unknown[used] = True
            continue
        heavy = np.arange(len(used)) < a["n_heavy"]
        if ((r["heavy"][used] == 1) != heavy).any() or (np.diff(kept["node"][heavy]) <= 0).any():
            yield f"candidate bottlenecks do not come first in activity {slot}, or are out of order"
        row = s.rows[a["nodes"] : a["nodes"] + a["n_heavy"]]
        if len(row) and row[0] != UNLAID and (s.places["resource"][row >> 1] != used[heavy]).any():
            yield f"the row of activity {slot} is not that of its candidate bottlenecks"
        if a["rate"] > a["took"]:
            yield f"activity {slot} uses more than its recorded load"
        np.add.at(load, used, usage * a["took"])
        np.add.at(begun, used, usage * a["took_first"])
        np.maximum.at(level, used, usage * a["took_first"])
        np.maximum.at(second, used, usage * a["took_second"])
        np.maximum.at(later, used, usage * a["took_later"])
    light = (load > 0.0) & ~unknown & (r["heavy"] == 0)
    for resource in np.flatnonzero(light).tolist():
        x = r[resource]
        gaps = abs(x["taken"] - load[resource]), abs(x["taken_first"] - begun[resource])
        if max(gaps) > CLOSE * x["capacity"]:
            yield f"the load of slack resource {resource} is wrong"
        most = x["largest_first"], x["largest_second"], x["largest_later"]
        found = level[resource], second[resource], later[resource]
        if any(use < least for use, least in zip(most, found, strict=True)):
            yield f"a user of slack resource {resource} uses more than its recorded load"
        rest = x["capacity"], x["capacity"] - x["taken_first"], x["capacity"] - x["taken"]
        if any(use * x["enabled"] >= left for use, left in zip(most, rest, strict=True)):
            yield f"slack resource {resource} may limit an activity"


def _rates(s: Graph, in_force: bool) -> Iterator[str]:
    """Of max-min fairness: capacities are kept, and what limits everybody is a reason to be."""
    counts = s.counts[0]
    touched = counts["n_todo"] or counts["n_touched"]
    if touched or not (counts["compares_rates"] and in_force):
        return
    r = s.constraints
    load, highest = np.zeros(len(r)), np.zeros(len(r))
    running = np.flatnonzero(s.variables["enabled"] == 1).tolist()
    uses = {}
    for slot in running:
        a = s.variables[slot]
        nodes = s.nodes[a["nodes"] : a["nodes"] + a["n_nodes"]]
        uses[slot] = nodes[(nodes["usage"] > 0.0) & (r["capacity"][nodes["resource"]] > 0.0)]
        for resource, usage in uses[slot][["resource", "usage"]].tolist():
            use = usage * a["rate"]
            load[resource] = (
                max(load[resource], use) if r["fatpipe"][resource] else load[resource] + use
            )
            highest[resource] = max(highest[resource], a["rate"] * a["penalty"])
    used = load > 0.0
    if (load[used] > r["capacity"][used] * (1.0 + CLOSE)).any():
        yield "a capacity is exceeded"
    for slot in running:
        a = s.variables[slot]
        limit, rate = int(a["limit"]), float(a["rate"])
        if rate > a["bound"] * (1.0 + CLOSE):
            yield f"activity {slot} exceeds its bound"
        if limit == LIMIT_BOUND and rate < a["bound"] * (1.0 - CLOSE):
            yield f"activity {slot} is not at its bound"
        if limit < 0 or r["capacity"][limit] == 0.0:
            continue
        if limit not in uses[slot]["resource"]:
            yield f"activity {slot} does not use what limits it"
        if load[limit] < r["capacity"][limit] * (1.0 - CLOSE):
            yield f"what limits activity {slot} is not saturated"
        if not r["fatpipe"][limit] and rate * a["penalty"] < highest[limit] * (1.0 - CLOSE):
            yield f"an activity has a larger share than activity {slot} on what limits it"
