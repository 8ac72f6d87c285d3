"""Check the invariants of an engine's state between events, for tests and debugging."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ptaskmodel.engine.state import (
    AFTER,
    BEFORE,
    BEHIND,
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
)
from ptaskmodel.engine.virtual_time import GROUP
from ptaskmodel.sharing.check import check_graph


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
