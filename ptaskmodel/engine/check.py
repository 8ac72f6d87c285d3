"""Check the invariants of an engine's state between events, for tests and debugging."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ptaskmodel.engine.incremental.graph import STRICTLY_LESS
from ptaskmodel.engine.incremental.slack_loads import CREEP, WATCHED
from ptaskmodel.engine.state import (
    AFTER,
    BEFORE,
    BEHIND,
    BY_LEVELS,
    BY_ROUNDS,
    FREE,
    IN_ENDS,
    IN_QUEUE,
    LIMIT_BOUND,
    ROUND_TRIP,
    RUNNING,
    SIDES,
    TODO,
    TRACE,
    UNLAID,
    WAIT,
    WAITING,
    WAKE,
    WATCH,
    State,
)
from ptaskmodel.engine.virtual_time import CROWD

# Relative differences that rounding and the tolerances of solvers explain.
CLOSE = 1e-9


def check_state(state: State) -> list[str]:
    """A sentence for each thing that does not hold; empty if all is well."""
    return [
        *check_lists(state),
        *_resources(state),
        *_kept(state),
        *_levels(state),
        *_heavy(state),
        *_rates(state),
    ]


def check_lists(state: State) -> list[str]:
    """The same, of its heaps and lists alone."""
    return [*_queue(state), *_ends(state), *_places(state), *_enabled(state)]


def _is_heap(keys: list[tuple[float, int]]) -> bool:
    return all(keys[(k - 1) >> 2] < keys[k] for k in range(1, len(keys)))


def _runs(s: State, row: int, heads: np.ndarray, dates: np.ndarray) -> Iterator[int]:
    """The activities of a heap; those of a run that is not one come as -1."""
    for head, date in zip(heads.tolist(), dates.tolist(), strict=True):
        run = list(_chain(s.lists[AFTER], head))
        a = s.activities[run]
        linked = (s.lists[BEFORE][run[1:]] == run[:-1]).all()
        behind = (s.lists[row][run[1:]] == BEHIND).all()
        right = (a["due"] == date).all() and (np.diff(a["order"]) > 0).all()
        yield from run if linked and behind and right else [-1]


def _queue(s: State) -> Iterator[str]:
    entries = s.queue[: s.clock[0]["n_queue"]]
    if not _is_heap(list(zip(entries["date"].tolist(), entries["order"].tolist(), strict=True))):
        yield "the queue of dates is no heap"
    of_slots = s.lists[IN_QUEUE]
    queued = of_slots, of_slots, s.wakes["queued"], s.traces["queued"]
    for kind, known in zip((WAIT, ROUND_TRIP, WAKE, TRACE), queued, strict=True):
        places = np.flatnonzero(entries["kind"] == kind)
        if (known[entries["number"][places]] != places).any():
            yield f"who stands in the queue (kind {kind}) does not know where"
    if s.clock[0]["n_traces"] != (entries["kind"] == TRACE).sum():
        yield "the traces in the queue are miscounted"
    heads = entries[entries["kind"] == WAIT]
    waiting = list(_runs(s, IN_QUEUE, heads["number"], heads["date"]))
    if sorted(waiting) != np.flatnonzero(s.activities["state"] == WAITING).tolist():
        yield "an activity waits without a date, or has one without waiting"
    if (entries["date"] < s.clock[0]["now"]).any():
        yield "a date of the queue is past"
    free = list(_chain(s.wakes["token"], int(s.clock[0]["free_wakes"])))
    if len(free) + (entries["kind"] == WAKE).sum() != s.clock[0]["n_wakes"]:
        yield "wake-ups are lost"


def _ends(s: State) -> Iterator[str]:
    ends = s.heap[: s.clock[0]["n_heap"]]
    if not _is_heap(list(zip(ends["date"].tolist(), ends["order"].tolist(), strict=True))):
        yield "the ends are no heap"
    if (s.lists[IN_ENDS][ends["slot"]] != np.arange(len(ends))).any():
        yield "an activity does not know its place among the ends"
    progress = list(_runs(s, IN_ENDS, ends["slot"], ends["date"]))
    alone = s.lists[IN_ENDS, : len(s.activities)] > CROWD
    if sorted(progress) != np.flatnonzero((s.activities["rate"] > 0.0) & alone).tolist():
        yield "an activity progresses without an end"
    a = s.activities[progress]
    if ((a["state"] != RUNNING) | (a["rate"] <= 0.0)).any():
        yield "an activity that does not progress has an end"


def _places(s: State) -> Iterator[str]:
    n = int(s.clock[0]["n_slots"])
    free = list(_chain(s.activities["next"], int(s.clock[0]["free_slots"])))
    if (s.activities["state"][free] != FREE).any():
        yield "a place in use is listed as free"
    active = int((s.activities["state"][:n] != FREE).sum())
    if active != s.clock[0]["n_active"] or active + len(free) != n:
        yield "the activities are miscounted"
    nodes = s.activities["n_nodes"][:n]
    if (nodes[s.activities["state"][:n] == FREE] != 0).any():
        yield "a free place has nodes"


def _enabled(s: State) -> Iterator[str]:
    listed = list(_chain(s.activities["next"], int(s.clock[0]["oldest"])))
    running = np.flatnonzero(s.activities["state"] == RUNNING).tolist()
    if sorted(listed) != running or len(listed) != s.clock[0]["n_enabled"]:
        yield "the list of enabled activities is not that of those that share"
    if (np.diff(s.activities["order"][listed]) <= 0).any():
        yield "the enabled activities are not in the order in which they were enabled"
    if listed and s.clock[0]["newest"] != listed[-1]:
        yield "the newest enabled activity is another"


def _resources(s: State) -> Iterator[str]:
    if s.resources["users"].sum() != s.clock[0]["n_links"]:
        yield "the users of resources are miscounted"
    todo = s.activities["todo"][s.lists[TODO][: s.clock[0]["n_todo"]]]
    if (todo == SIDES).sum() != s.clock[0]["n_beside"]:
        yield "the activities beside resources that changed side are miscounted"
    for resource in np.flatnonzero(s.resources["users"]).tolist():
        r = s.resources[resource]
        users = s.users[r["first"] : r["first"] + r["users"]]
        nodes, slots = users["node"], users["slot"]
        own = s.nodes[nodes]
        places = r["gone"] + np.arange(len(nodes))
        if (own["resource"] != resource).any() or (own["place"] != places).any():
            yield f"the users of resource {resource} are miscounted"
        if (own["usage"] != users["usage"]).any():
            yield f"what resource {resource} is asked is not what it knows"
        enabled = (s.activities["state"][slots] == RUNNING) & (s.nodes["usage"][nodes] > 0.0)
        if enabled.sum() != r["enabled"]:
            yield f"the enabled users of resource {resource} are miscounted"
        if s.nodes["violates"][nodes][enabled].sum() != r["violations"]:
            yield f"the violations of resource {resource} are miscounted"
        asked = float((s.nodes["usage"][nodes] * s.activities["top"][slots])[enabled].sum())
        if np.isfinite(asked) and abs(asked - r["demand"]) > 1e-6 * max(asked, r["capacity"], 1.0):
            yield f"the demand on resource {resource} is wrong"


def _kept(s: State) -> Iterator[str]:
    """What may limit its users is kept by all of them or by none: solvers count on it."""
    settled = (s.activities["state"] == RUNNING) & (s.activities["todo"] == 0)
    slots = np.flatnonzero(settled)
    runs = [s.activities[name][slots].tolist() for name in ("nodes", "n_kept")]
    for first, n in zip(*runs, strict=True):
        places = np.arange(first, first + n)
        if (s.nodes["kept"][s.kept["node"][places]] != places).any():
            yield "a node does not know its kept element"
    kept = [s.kept["resource"][first : first + n] for first, n in zip(*runs, strict=True)]
    resources, counts = np.unique(np.concatenate([[], *kept]).astype(np.int64), return_counts=True)
    waiting = set()
    for slot in np.flatnonzero((s.activities["state"] == RUNNING) & ~settled).tolist():
        first, n = s.activities[slot]["nodes"], s.activities[slot]["n_nodes"]
        waiting |= set(s.nodes["resource"][first : first + n].tolist())
    for resource, count in zip(resources.tolist(), counts.tolist(), strict=True):
        r = s.resources[resource]
        slack = s.clock[0]["drops_slack"] == 1 and r["demand"] <= r["capacity"] * STRICTLY_LESS
        if resource not in waiting and count != r["enabled"] and (r["fatpipe"] or not slack):
            yield f"resource {resource} is kept by some of its users only"


def _levels(s: State) -> Iterator[str]:
    """What bmf keeps from event to event, and that the rates in force are those of the levels."""
    clock = s.clock[0]
    if clock["way"] != BY_LEVELS or clock["crowd"] >= 0 or clock["anew"] or clock["unsolved"]:
        return
    if clock["n_todo"] or clock["n_touched"]:
        return
    r = s.resources
    if ((r["active"] == 1) & (r["enabled"] < 2)).any():
        yield "a resource without several users is active"
    watched = s.lists[WATCH, : clock["n_watched"]]
    if sorted(watched.tolist()) != np.flatnonzero(r["active"] == WATCHED).tolist():
        yield "the list of watched resources is wrong"
    if (np.isfinite(r["level"]) != (r["active"] == 1)).any():
        yield "a resource has a level without being active, or the other way round"
    load, charged, on = np.zeros(len(r)), np.zeros(len(r)), np.zeros(len(r), dtype=bool)
    for slot in np.flatnonzero(s.activities["state"] == RUNNING).tolist():
        a = s.activities[slot]
        kept = s.kept[a["nodes"] : a["nodes"] + a["n_kept"]]
        used = kept["resource"]
        if ((r["active"][used] == 1) != (np.arange(len(used)) < a["n_active"])).any():
            yield f"active resources do not come first in activity {slot}"
        share = np.where(kept["share"] > 0.0, kept["share"], kept["usage"]) * a["penalty"]
        fair = min([a["ceiling"], *(r["level"][used] / share)])
        if abs(a["rate"] - fair) > CLOSE * fair:
            yield f"the rate of activity {slot} is not that of the levels"
        if abs(a["rate"] - a["charged"]) > (CREEP + CLOSE) * a["charged"]:
            yield f"activity {slot} was not charged for its rate"
        np.add.at(load, used, kept["usage"] * a["rate"])
        np.add.at(charged, used, kept["usage"] * a["charged"])
        on[used] = ~r["fatpipe"][used]
    full = load - r["capacity"]
    if (full[on] > CLOSE * r["capacity"][on]).any():
        yield "a capacity is exceeded"
    active = r["active"] == 1
    if (np.abs(full[active]) > CLOSE * r["capacity"][active]).any():
        yield "an active resource is not full"
    idle = on & ~active
    if (np.abs(charged - r["load"])[idle] > CLOSE * np.maximum(load, r["capacity"])[idle]).any():
        yield "a load is wrong"
    full = charged * (1.0 + CREEP) > r["capacity"] * (1.0 + CLOSE)
    if (full & idle & (r["enabled"] > 1) & (r["active"] != WATCHED)).any():
        yield "nobody watches a resource that may overflow"


def _heavy(s: State) -> Iterator[str]:
    """What fair bottleneck keeps from event to event, of activities of which it keeps anything."""
    clock = s.clock[0]
    if clock["way"] != BY_ROUNDS or clock["n_todo"] or clock["n_touched"]:
        return
    r = s.resources
    begun, load, level, second, later = np.zeros((5, len(r)))
    unknown = np.zeros(len(r), dtype=bool)
    for slot in np.flatnonzero(s.activities["state"] == RUNNING).tolist():
        a = s.activities[slot]
        kept = s.kept[a["nodes"] : a["nodes"] + a["n_kept"]]
        used, usage = kept["resource"], kept["usage"]
        if a["charged"] == 0.0:
            unknown[used] = True
            continue
        heavy = np.arange(len(used)) < a["n_active"]
        if ((r["active"][used] == 1) != heavy).any() or (np.diff(kept["node"][heavy]) <= 0).any():
            yield f"heavy resources do not come first in activity {slot}, or out of order"
        row = s.rows[a["nodes"] : a["nodes"] + a["n_active"]]
        if len(row) and row[0] != UNLAID and (s.places["resource"][row >> 1] != used[heavy]).any():
            yield f"the row of activity {slot} is not that of its heavy resources"
        if a["rate"] > a["charged"]:
            yield f"activity {slot} takes more than what is kept of it"
        np.add.at(load, used, usage * a["charged"])
        np.add.at(begun, used, usage * a["ceiling"])
        np.maximum.at(level, used, usage * a["ceiling"])
        np.maximum.at(second, used, usage * a["next_rate"])
        np.maximum.at(later, used, usage * a["even"])
    light = (load > 0.0) & ~unknown & (r["active"] == 0)
    for resource in np.flatnonzero(light).tolist():
        x = r[resource]
        gaps = abs(x["load"] - load[resource]), abs(x["begun"] - begun[resource])
        if max(gaps) > CLOSE * x["capacity"]:
            yield f"the load of light resource {resource} is wrong"
        most = x["level"], x["second"], x["later"]
        found = level[resource], second[resource], later[resource]
        if any(use < least for use, least in zip(most, found, strict=True)):
            yield f"a user of light resource {resource} takes more than is kept of it"
        rest = x["capacity"], x["capacity"] - x["begun"], x["capacity"] - x["load"]
        if any(use * x["enabled"] >= left for use, left in zip(most, rest, strict=True)):
            yield f"light resource {resource} may limit somebody"


def _rates(s: State) -> Iterator[str]:
    """Of max-min fairness: capacities are kept, and what limits everybody is a reason to be."""
    clock = s.clock[0]
    if (
        not clock["compares_rates"]
        or clock["anew"]
        or clock["n_todo"]
        or clock["n_touched"]
        or clock["unsolved"]
    ):
        return
    r = s.resources
    load, highest = np.zeros(len(r)), np.zeros(len(r))
    running = np.flatnonzero(s.activities["state"] == RUNNING).tolist()
    uses = {}
    for slot in running:
        a = s.activities[slot]
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
        a = s.activities[slot]
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
            yield f"what limits activity {slot} is not full"
        if not r["fatpipe"][limit] and rate * a["penalty"] < highest[limit] * (1.0 - CLOSE):
            yield f"somebody is above activity {slot} on what limits it"


def _chain(following: np.ndarray, first: int) -> Iterator[int]:
    """The numbers of a linked list, which ends with -1 (and has no circle)."""
    for _ in range(len(following) + 1):
        if first < 0:
            return
        yield first
        first = int(following[first])
    raise AssertionError("a list runs in a circle")
