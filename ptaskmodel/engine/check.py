"""Check an engine's state between events: its invariants, and that its integers are valid indices.

Tests and debugging check invariants. The reader of checkpoints checks the integers by the declared
layout of the arrays, because kernels trust a state. Fields that are never cleared are checked only
where they are in use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ptaskmodel.engine.state import (
    AFTER,
    BEFORE,
    BEHIND,
    FAILURES,
    FREE,
    IN_ENDS,
    IN_QUEUE,
    ROUND_TRIP,
    RUNNING,
    TRACE,
    WAIT,
    WAITING,
    WAKE,
    State,
    arrays_of,
)
from ptaskmodel.engine.virtual_time import GROUP
from ptaskmodel.errors import SimulationError
from ptaskmodel.sharing.check import check_graph
from ptaskmodel.sharing.state import (
    BY_ROUNDS,
    PLACED,
    SIDE,
    SUB,
    TODO,
    TOUCHED,
    UNLAID,
    USED,
    WATCH,
    Graph,
)


def check_state(state: State) -> list[str]:
    """A sentence for each thing that does not hold; empty if all is well."""
    in_force = not (state.clock[0]["anew"] or state.clock[0]["unsolved"])
    return [
        *check_lists(state),
        *check_graph(state.graph, in_force, in_force and state.clock[0]["group"] < 0),
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
        yield "the event queue is not a heap"
    of_slots = s.lists[IN_QUEUE]
    queued = of_slots, of_slots, s.wakes["queued"], s.traces["queued"]
    for kind, known in zip((WAIT, ROUND_TRIP, WAKE, TRACE), queued, strict=True):
        places = np.flatnonzero(entries["kind"] == kind)
        if (known[entries["number"][places]] != places).any():
            yield f"an event in the queue (kind {kind}) has a wrong position"
    if s.clock[0]["n_traces"] != (entries["kind"] == TRACE).sum():
        yield "the number of traces in the queue is wrong"
    heads = entries[entries["kind"] == WAIT]
    waiting = list(_runs(s, IN_QUEUE, heads["number"], heads["date"]))
    if sorted(waiting) != np.flatnonzero(s.activities["state"] == WAITING).tolist():
        yield "an activity waits without an event, or has an event without waiting"
    if (entries["date"] < s.clock[0]["now"]).any():
        yield "an event in the queue is in the past"
    free = list(_chain(s.wakes["token"], int(s.clock[0]["free_wakes"])))
    if len(free) + (entries["kind"] == WAKE).sum() != s.clock[0]["n_wakes"]:
        yield "some wake-ups are not in the queue"


def _ends(s: State) -> Iterator[str]:
    ends = s.heap[: s.clock[0]["n_heap"]]
    if not _is_heap(list(zip(ends["date"].tolist(), ends["order"].tolist(), strict=True))):
        yield "the predicted ends are not a heap"
    if (s.lists[IN_ENDS][ends["slot"]] != np.arange(len(ends))).any():
        yield "an activity has a wrong position in the heap of ends"
    progress = list(_runs(s, IN_ENDS, ends["slot"], ends["date"]))
    alone = s.lists[IN_ENDS, : len(s.activities)] > GROUP
    rates = s.graph.variables["rate"]
    if sorted(progress) != np.flatnonzero((rates[: len(alone)] > 0.0) & alone).tolist():
        yield "an activity progresses without a predicted end"
    running = s.activities["state"][progress] == RUNNING
    if (~running | (rates[progress] <= 0.0)).any():
        yield "an activity that does not progress has a predicted end"


def _places(s: State) -> Iterator[str]:
    n = int(s.clock[0]["n_slots"])
    free = list(_chain(s.activities["next"], int(s.clock[0]["free_slots"])))
    if (s.activities["state"][free] != FREE).any():
        yield "a slot in use is listed as free"
    active = int((s.activities["state"][:n] != FREE).sum())
    if active != s.clock[0]["n_active"] or active + len(free) != n:
        yield "the number of activities is wrong"
    nodes = s.graph.variables["n_nodes"][:n]
    if (nodes[s.activities["state"][:n] == FREE] != 0).any():
        yield "a free slot has nodes"


def _enabled(s: State) -> Iterator[str]:
    counts = s.graph.counts[0]
    listed = list(_chain(s.graph.variables["next"], int(counts["oldest"])))
    running = np.flatnonzero(s.activities["state"] == RUNNING).tolist()
    enabled = s.graph.variables["enabled"][: len(s.activities)]
    if (enabled != (s.activities["state"] == RUNNING)).any():
        yield "the graph has other enabled variables than there are activities that share"
    if sorted(listed) != running or len(listed) != counts["n_enabled"]:
        yield "the list of enabled activities differs from the activities that share"
    if (np.diff(s.graph.variables["order"][listed]) <= 0).any():
        yield "the enabled activities are not in the order in which they were enabled"
    if listed and counts["newest"] != listed[-1]:
        yield "the newest enabled activity is wrong"


def _chain(following: np.ndarray, first: int) -> Iterator[int]:
    """The numbers of a linked list, which ends with -1 (and has no circle)."""
    for _ in range(len(following) + 1):
        if first < 0:
            return
        yield first
        first = int(following[first])
    raise AssertionError("a linked list is circular")


# Not cleared where nothing stands.
_BLANK = {"nodes", "kept", "rows", "users", "elements"}


def check_bounds(
    arrays: Mapping[str, np.ndarray],
    layouts: Mapping[str, np.dtype],
    sizes: Mapping[str, int],
    chosen: Mapping[str, Any] | None = None,
) -> None:
    """Raise SimulationError for a field that is beyond what its layout declares.

    layouts: of each array of records; sizes: how many places each array has that may be numbered;
    chosen: the records of an array to look at, if not all.
    """
    for name, layout in layouts.items():
        if name in _BLANK or layout.names is None:
            continue
        records = arrays[name] if chosen is None or name not in chosen else chosen[name]
        for field in layout.names:
            about = layout[field].metadata
            if about is not None:
                last = about["last"] + (sizes[about["of"]] if "of" in about else 0)
                check_range(f"{name}.{field}", records[field], about["least"], last)


def check_range(what: str, numbers: Any, least: int, last: int) -> None:
    """Raise SimulationError, naming `what`, if one of the `numbers` is not in [least, last]."""
    numbers = np.asarray(numbers)
    if numbers.size and not (numbers.min() >= least and numbers.max() <= last):
        raise SimulationError(f"{what} is out of range")


def check_extent(what: str, first: Any, count: Any, size: int) -> None:
    """Raise SimulationError, naming `what`, where `count` entries from `first` on exceed `size`."""
    check_range(f"the end of {what}", np.asarray(first) + np.asarray(count), 0, size)


def check_chain(what: str, following: np.ndarray, first: int) -> list[int]:
    """Return the numbers of the linked list that begins with `first`.

    `following`: the next of each.

    Raises SimulationError, naming `what`, if the list is circular or leaves the array.
    """
    found: list[int] = []
    while first >= 0:
        if first >= len(following) or len(found) >= len(following):
            raise SimulationError(f"{what} is not a linked list")
        found.append(first)
        first = int(following[first])
    return found


def check_state_bounds(s: State, layouts: Mapping[str, np.dtype]) -> None:
    """Raise SimulationError for a number of an engine's state that no kernel may be given.

    layouts: of the arrays of a state, and of its graph, by name.
    """
    arrays, g = arrays_of(s), s.graph
    sizes = {name: len(array) for name, array in arrays.items()}
    a, v = s.activities, g.variables
    used = np.flatnonzero(a["state"] != FREE)
    clock, counts = s.clock[0], g.counts[0]
    if s.lists.shape[1] < len(a) or len(s.heap) < len(a) or len(v) < len(a):
        raise SimulationError("its lists are too short")
    if g.worklists.shape[1] < max(len(v), len(g.constraints)):
        raise SimulationError("the lists of its graph are too short")
    if sizes["constraints"] != sizes["resources"]:
        raise SimulationError("its graph has other resources")
    for name in ("kept", "rows", "row_usage"):
        if sizes[name] < sizes["nodes"]:
            raise SimulationError(f"{name} is too short")
    if min(sizes["places"], sizes["flags"]) < sizes["constraints"]:
        raise SimulationError("its resources have too few entries")
    check_bounds(arrays, layouts, sizes, {"activities": a[used], "variables": v[used]})
    check_range("activities.next", a["next"], -1, len(a) - 1)
    check_range("variables.next", v["next"], -1, len(v) - 1)
    idle = np.ones(len(v), np.bool_)
    idle[used] = False
    check_range("nodes of what is free", v["n_nodes"][idle], 0, 0)
    check_range("activities beyond all", a["state"][clock["n_slots"] :], FREE, FREE)
    if ((v["enabled"] == 1) != np.pad(a["state"] == RUNNING, (0, len(v) - len(a)))).any():
        raise SimulationError("its graph has other enabled variables than activities")
    _check_lists(s)
    _check_users(g)
    _check_nodes(g, v[used])
    _check_enabled(g)
    _check_queue(s)
    _check_blocks(g)
    if int((~s.resources["on"]).sum()) != clock["n_off"]:
        raise SimulationError("the number of resources that are off is wrong")
    check_chain("the free activities", a["next"], int(clock["free_slots"]))
    check_chain("the enabled activities", v["next"], int(counts["oldest"]))
    check_chain("the enabled activities", v["previous"], int(counts["newest"]))
    check_chain("the free wake-ups", s.wakes["token"], int(clock["free_wakes"]))
    routed = s.patterns[s.patterns["first"] >= 0]
    check_extent("patterns", routed["first"], routed["count"], sizes["elements"])
    check_range("counts of patterns", routed["count"], 0, sizes["elements"])
    check_range("elements", s.elements["resource"], 0, sizes["resources"] - 1)
    check_extent("traces", s.traces["first"], s.traces["count"], sizes["trace_events"])
    if (s.traces["position"] >= s.traces["count"]).any():
        raise SimulationError("a trace is after its last event")
    heads: Iterable[int] = np.unique(s.resources["traces"]).tolist()
    for head in heads:
        check_chain("the traces of a resource", s.traces["next"], head)
    check_chain("the traces aside", s.traces["aside"], int(clock["aside"]))


def _check_lists(s: State) -> None:
    lists, listed, n, m = s.lists, s.graph.worklists, len(s.activities), len(s.resources)
    check_range("a list of activities", lists[FAILURES], 0, n - 1)
    for row in (SUB, TODO):
        check_range("a list of activities", listed[row], 0, len(s.graph.variables) - 1)
    for row in (AFTER, BEFORE):
        check_range("a list of activities", lists[row], -1, n - 1)
    for row in (USED, TOUCHED, WATCH, SIDE):
        check_range("a list of resources", listed[row], 0, m - 1)
    check_range("a position in the heap of ends", lists[IN_ENDS], -3 - len(s.heap), len(s.heap) - 1)
    check_range("a position in the event queue", lists[IN_QUEUE], -2, len(s.queue) - 1)
    check_range("a position of a resource", listed[PLACED], -1, len(s.graph.places) - 1)


def _check_nodes(s: Graph, used: np.ndarray) -> None:
    """The nodes of activities are theirs, on resources that count them among their users."""
    used = used[used["n_nodes"] > 0]
    n_nodes = int(s.counts[0]["n_nodes"])
    check_range("nodes", used["nodes"], 0, n_nodes)
    check_extent("nodes", used["nodes"], used["n_nodes"], n_nodes)
    # Where kept nodes are still to be laid anew, n_active is the old one.
    if (np.maximum(used["n_kept"], used["n_active"]) > used["n_nodes"]).any():
        raise SimulationError("an activity keeps more nodes than it has")
    last = len(s.constraints) - 1
    nodes = _consecutive(used["nodes"], used["n_nodes"])
    kept = _consecutive(used["nodes"], used["n_kept"])
    check_range("nodes", s.nodes["resource"][nodes], 0, last)
    if len(np.unique(nodes)) < len(nodes):
        raise SimulationError("two activities share nodes")
    r = s.constraints[s.nodes["resource"][nodes]]
    places = s.nodes["place"][nodes]
    if ((places < r["gone"]) | (places >= r["gone"] + r["users"])).any():
        raise SimulationError("a resource does not list one of its users")
    if (s.users["node"][r["first"] - r["gone"] + places] != nodes).any():
        raise SimulationError("a resource lists a wrong user")
    check_range("kept nodes", s.kept["resource"][kept], 0, last)
    check_range("kept nodes", s.kept["node"][kept], 0, len(s.nodes) - 1)
    if (s.nodes["kept"][s.kept["node"][kept]] != kept).any():
        raise SimulationError("a node has lost its kept element")
    if s.counts[0]["way"] == BY_ROUNDS:
        heavy = used[used["n_active"] > 0]
        heavy = heavy[s.rows[heavy["nodes"]] != UNLAID]
        rows = s.rows[_consecutive(heavy["nodes"], heavy["n_active"])]
        check_range("rows", rows >> 1, 0, len(s.places) - 1)


def _check_enabled(s: Graph) -> None:
    """Resources know how many enabled activities use them, and the sum of their numbers."""
    slots = np.flatnonzero((s.variables["enabled"] == 1) & (s.variables["n_nodes"] > 0))
    counts = s.variables["n_nodes"][slots]
    nodes = s.nodes[_consecutive(s.variables["nodes"][slots], counts)]
    uses = nodes["usage"] > 0.0
    n, numbers = np.zeros((2, len(s.constraints)), np.int64)
    np.add.at(n, nodes["resource"][uses], 1)
    np.add.at(numbers, nodes["resource"][uses], np.repeat(slots, counts)[uses])
    r = s.constraints
    if (r["enabled"] != n).any() or (r["slots"] != numbers).any():
        raise SimulationError("a resource counts activities that do not use it")


def _check_users(s: Graph) -> None:
    r = s.constraints
    room = int(s.counts[0]["n_users"])
    before = r["first"] - r["gone"]
    check_range("users", before, 0, room)
    check_extent("users", before, r["room"], room)
    if (r["gone"] + r["users"] > r["room"]).any():
        raise SimulationError("a resource has more users than its capacity for them")
    users = s.users[_consecutive(r["first"], r["users"])]
    check_range("users", users["slot"], 0, len(s.variables) - 1)
    check_range("users", users["node"], 0, len(s.nodes) - 1)
    if int(r["users"].sum()) != s.counts[0]["n_links"]:
        raise SimulationError("the counts of users of resources are wrong")


def _check_queue(s: State) -> None:
    entries = s.queue[: s.clock[0]["n_queue"]]
    sizes = {WAIT: s.activities, ROUND_TRIP: s.activities, WAKE: s.wakes, TRACE: s.traces}
    for kind, array in sizes.items():
        size = len(array)
        check_range("the queue", entries["number"][entries["kind"] == kind], 0, size - 1)


def _check_blocks(s: Graph) -> None:
    """Free blocks lie within their arrays, and no list of them runs in a circle."""
    for k in range(len(s.counts)):
        lists = (("free_nodes", s.nodes["resource"], int(s.counts[0]["n_nodes"])),
                 ("free_users", s.users["slot"], int(s.counts[0]["n_users"])))  # fmt: skip
        for name, following, size in lists:
            blocks = check_chain(name, following, int(s.counts[k][name]))
            check_extent(name, blocks, 1 << min(k, 40), size)


def _consecutive(first: Any, count: Any) -> np.ndarray:
    """Places of so many from each first one on, one after the other."""
    first, count = np.asarray(first, np.int64), np.asarray(count, np.int64)
    before = np.cumsum(count) - count
    return np.arange(int(count.sum())) + np.repeat(first - before, count)
