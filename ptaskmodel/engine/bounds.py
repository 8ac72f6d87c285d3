"""Check that the integers of a state are valid indices, by the declared layout of its arrays.

The reader of checkpoints calls it, because kernels trust a state. Fields that are never cleared are
checked only where they are in use.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ptaskmodel.engine.state import (
    AFTER,
    BEFORE,
    BY_ROUNDS,
    DOOM,
    FREE,
    IN_ENDS,
    IN_QUEUE,
    PLACED,
    ROUND_TRIP,
    RUNNING,
    SIDE,
    SUB,
    TODO,
    TOUCHED,
    TRACE,
    UNLAID,
    USED,
    WAIT,
    WAKE,
    WATCH,
    State,
)
from ptaskmodel.errors import SimulationError

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
    """Raise SimulationError for a number that is not within bounds, both included."""
    numbers = np.asarray(numbers)
    if numbers.size and not (numbers.min() >= least and numbers.max() <= last):
        raise SimulationError(f"{what} is beyond its bounds")


def check_extent(what: str, first: Any, count: Any, size: int) -> None:
    """Raise SimulationError where so many places from a first one on are not there."""
    check_range(f"the end of {what}", np.asarray(first) + np.asarray(count), 0, size)


def check_chain(what: str, following: np.ndarray, first: int) -> list[int]:
    """The numbers of a linked list. Raises SimulationError where it runs in a circle."""
    found: list[int] = []
    while first >= 0:
        if first >= len(following) or len(found) >= len(following):
            raise SimulationError(f"{what} is no list")
        found.append(first)
        first = int(following[first])
    return found


def check_state_bounds(s: State, layouts: Mapping[str, np.dtype]) -> None:
    """Raise SimulationError for a number of an engine's state that no kernel may be given."""
    sizes = {name: len(array) for name, array in s._asdict().items()}
    a = s.activities
    used = a[a["state"] != FREE]
    clock = s.clock[0]
    if s.lists.shape[1] < max(len(a), len(s.resources)) or len(s.heap) < len(a):
        raise SimulationError("its lists are too short")
    for name in ("kept", "rows", "row_usage"):
        if sizes[name] < sizes["nodes"]:
            raise SimulationError(f"{name} is too short")
    if min(sizes["places"], sizes["flags"]) < sizes["resources"]:
        raise SimulationError("its resources lack places")
    check_bounds(s._asdict(), layouts, sizes, {"activities": used})
    check_range("activities.next", a["next"], -1, len(a) - 1)
    check_range("nodes of what is free", a["n_nodes"][a["state"] == FREE], 0, 0)
    check_range("activities beyond all", a["state"][clock["n_slots"] :], FREE, FREE)
    _check_lists(s)
    _check_users(s)
    _check_nodes(s, used)
    _check_enabled(s)
    _check_queue(s)
    _check_blocks(s)
    check_chain("the free activities", a["next"], int(clock["free_slots"]))
    check_chain("the enabled activities", a["next"], int(clock["oldest"]))
    check_chain("the enabled activities", a["previous"], int(clock["newest"]))
    check_chain("the free wake-ups", s.wakes["token"], int(clock["free_wakes"]))
    routed = s.patterns[s.patterns["first"] >= 0]
    check_extent("patterns", routed["first"], routed["count"], sizes["elements"])
    check_range("counts of patterns", routed["count"], 0, sizes["elements"])
    check_range("elements", s.elements["resource"], 0, sizes["resources"] - 1)
    check_extent("traces", s.traces["first"], s.traces["count"], sizes["trace_events"])
    if (s.traces["position"] >= s.traces["count"]).any():
        raise SimulationError("a trace is past its end")
    heads: Iterable[int] = np.unique(s.resources["traces"]).tolist()
    for head in heads:
        check_chain("the traces of a resource", s.traces["next"], head)
    check_chain("the traces aside", s.traces["aside"], int(clock["aside"]))


def _check_lists(s: State) -> None:
    lists, n, m = s.lists, len(s.activities), len(s.resources)
    for row in (SUB, TODO, DOOM):
        check_range("a list of activities", lists[row], 0, n - 1)
    for row in (AFTER, BEFORE):
        check_range("a list of activities", lists[row], -1, n - 1)
    for row in (USED, TOUCHED, WATCH, SIDE):
        check_range("a list of resources", lists[row], 0, m - 1)
    check_range("a place among the ends", lists[IN_ENDS], -3 - len(s.heap), len(s.heap) - 1)
    check_range("a place in the queue", lists[IN_QUEUE], -2, len(s.queue) - 1)
    check_range("a place of a resource", lists[PLACED], -1, len(s.places) - 1)


def _check_nodes(s: State, used: np.ndarray) -> None:
    """The nodes of activities are theirs, on resources that count them among their users."""
    used = used[used["n_nodes"] > 0]
    n_nodes = int(s.clock[0]["n_nodes"])
    check_range("nodes", used["nodes"], 0, n_nodes)
    check_extent("nodes", used["nodes"], used["n_nodes"], n_nodes)
    # Where kept nodes are still to be laid anew, n_active is the old one.
    if (np.maximum(used["n_kept"], used["n_active"]) > used["n_nodes"]).any():
        raise SimulationError("an activity keeps more nodes than it has")
    last = len(s.resources) - 1
    nodes = _places(used["nodes"], used["n_nodes"])
    kept = _places(used["nodes"], used["n_kept"])
    check_range("nodes", s.nodes["resource"][nodes], 0, last)
    if len(np.unique(nodes)) < len(nodes):
        raise SimulationError("activities share nodes")
    r = s.resources[s.nodes["resource"][nodes]]
    places = s.nodes["place"][nodes]
    if ((places < r["gone"]) | (places >= r["gone"] + r["users"])).any():
        raise SimulationError("a resource does not know a user")
    if (s.users["node"][r["first"] - r["gone"] + places] != nodes).any():
        raise SimulationError("a resource knows another user")
    check_range("kept nodes", s.kept["resource"][kept], 0, last)
    check_range("kept nodes", s.kept["node"][kept], 0, len(s.nodes) - 1)
    if (s.nodes["kept"][s.kept["node"][kept]] != kept).any():
        raise SimulationError("a node does not know its kept element")
    if s.clock[0]["way"] == BY_ROUNDS:
        heavy = used[used["n_active"] > 0]
        heavy = heavy[s.rows[heavy["nodes"]] != UNLAID]
        rows = s.rows[_places(heavy["nodes"], heavy["n_active"])]
        check_range("rows", rows >> 1, 0, len(s.places) - 1)


def _check_enabled(s: State) -> None:
    """Resources know how many enabled activities use them, and the sum of their numbers."""
    slots = np.flatnonzero((s.activities["state"] == RUNNING) & (s.activities["n_nodes"] > 0))
    counts = s.activities["n_nodes"][slots]
    nodes = s.nodes[_places(s.activities["nodes"][slots], counts)]
    uses = nodes["usage"] > 0.0
    n, numbers = np.zeros((2, len(s.resources)), np.int64)
    np.add.at(n, nodes["resource"][uses], 1)
    np.add.at(numbers, nodes["resource"][uses], np.repeat(slots, counts)[uses])
    r = s.resources
    if (r["enabled"] != n).any() or (r["slots"] != numbers).any():
        raise SimulationError("a resource counts other activities than use it")


def _check_users(s: State) -> None:
    r = s.resources
    room = int(s.clock[0]["n_users"])
    before = r["first"] - r["gone"]
    check_range("users", before, 0, room)
    check_extent("users", before, r["room"], room)
    if (r["gone"] + r["users"] > r["room"]).any():
        raise SimulationError("a resource has more users than room")
    users = s.users[_places(r["first"], r["users"])]
    check_range("users", users["slot"], 0, len(s.activities) - 1)
    check_range("users", users["node"], 0, len(s.nodes) - 1)
    if int(r["users"].sum()) != s.clock[0]["n_links"]:
        raise SimulationError("the users of resources are miscounted")


def _check_queue(s: State) -> None:
    entries = s.queue[: s.clock[0]["n_queue"]]
    sizes = {WAIT: s.activities, ROUND_TRIP: s.activities, WAKE: s.wakes, TRACE: s.traces}
    for kind, array in sizes.items():
        size = len(array)
        check_range("the queue", entries["number"][entries["kind"] == kind], 0, size - 1)


def _check_blocks(s: State) -> None:
    """Free blocks lie within their arrays, and no list of them runs in a circle."""
    for k in range(len(s.clock)):
        lists = (("free_nodes", s.nodes["resource"], int(s.clock[0]["n_nodes"])),
                 ("free_users", s.users["slot"], int(s.clock[0]["n_users"])))  # fmt: skip
        for name, following, size in lists:
            blocks = check_chain(name, following, int(s.clock[k][name]))
            check_extent(name, blocks, 1 << min(k, 40), size)


def _places(first: Any, count: Any) -> np.ndarray:
    """Places of so many from each first one on, one after the other."""
    first, count = np.asarray(first, np.int64), np.asarray(count, np.int64)
    before = np.cumsum(count) - count
    return np.arange(int(count.sum())) + np.repeat(first - before, count)
