"""The state of the engine: a few record arrays, which a snapshot copies whole."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ptaskmodel.kernels.records import (
    FLAG,
    INT,
    REAL,
    SMALL_INT,
    below,
    count_in,
    in_lines,
    number_in,
    numbers,
)
from ptaskmodel.sharing.arrays import LIMIT_BOUND as LIMIT_BOUND
from ptaskmodel.sharing.arrays import LIMIT_NOTHING as LIMIT_NOTHING
from ptaskmodel.sharing.state import ELEMENT, Graph, bare_graph

# The names below are numpy integers: for each plain one passed to a kernel, numba would compile the
# kernel anew.

# States of an activity: its slot is free; it waits for the end of its latency or delay; it shares
# resources; it is frozen; it has nothing left to do, or began on something off: then the front end
# that started it ends it.
FREE, WAITING, RUNNING, SUSPENDED, DONE, LOST = numbers(6)

# Kinds of events in the queue: the wait of an activity ends, a front end is woken, an availability
# trace changes a resource, a round trip of a flow that starts slowly is over.
WAIT, WAKE, TRACE, ROUND_TRIP = numbers(4)

# Kinds of availability traces.
SPEED, BANDWIDTH, LATENCY, STATE = numbers(4)

# Why the loop of a front end returned to Python. The driver serves the first ones itself.
(
    GROW_ACTIVITIES,
    GROW_NODES,
    GROW_USERS,
    GROW_WAKES,
    UNSOLVED,
    ROUTES_CHANGED,
    EVENTS_FULL,
    IDLE,
    UNTIL,
    STEPPED,
    PAUSED,
    SOME_ENDED,
    UNROUTED,
) = numbers(13)
# The loop goes on: nothing is missing.
OK = np.int64(-1)

# What happens at a date, in this order (`loop.next_happening` says what each means). NEW_DATE:
# nothing so far. WOKEN and WAITED alternate, as their times come.
NEW_DATE, WORKED_FIRST, WOKEN, WAITED, WORKED, FAILING, NOTHING_MORE = numbers(7)

# How the rates of a subproblem are found: by the kernel of a rule, from the present levels.
SOLVED, FOLLOWED = numbers(1, 3)

# In place of the link that changed: none did, several may have.
NO_CHANGE, SEVERAL_CHANGES = numbers(-2, 0)

# What limits an activity when no resource does: nothing or its bound (both set by solvers), its
# latency, its delay, its suspension; UNKNOWN: its rate is not computed yet. Events replace the
# bound by its cause: the TCP window, the user's rate bound, or one core of host h, which is
# LIMIT_CORE - h.
(
    LIMIT_LATENCY,
    LIMIT_DELAY,
    LIMIT_SUSPENDED,
    LIMIT_UNKNOWN,
    LIMIT_WINDOW,
    LIMIT_RATE_BOUND,
    LIMIT_CORE,
) = LIMIT_NOTHING - np.arange(1, 8)

# Kinds of events in the stream. STARTED, ENDED, FAILED: an activity; RATE: its new rate; CAPACITY,
# PSTATE, TURNED on or off: changes by hand (those by traces follow from the platform); WOKE: a
# wake-up of a front end.
STARTED, ENDED, FAILED, RATE, CAPACITY, WOKE, PSTATE, TURNED = numbers(8)

# Whose changes of rate listeners need: those of tasks, or also of ranks, whose owners are below 0.
RATES_OF_TASKS, RATES_OF_ALL = numbers(1, 3)

# What one call of a loop does: go on, process one time, only begin what is due and reshare.
RUN, STEP, SETTLE = numbers(3)

# Rows of lists, for each activity: failing ones; its position in the heap of ends, that of the end
# of its wait in the event queue (NOTHING: not there, BEHIND: in a run behind another), and its
# neighbours in its run (see `queue`).
FAILURES, IN_ENDS, IN_QUEUE, AFTER, BEFORE = numbers(5)
LISTS = 5
BEHIND = np.int64(-2)

# An activity in the list of failing ones: uses something that is off; did, but no longer does.
TO_FAIL, LISTED = numbers(1, 3)

# What the engine knows of an activity; the variable of the same number in the graph has its rate,
# its bound and its uses.
ACTIVITY = in_lines(
    [
        ("state", below(6)),
        ("remaining", REAL),  # at time `updated`
        ("updated", REAL),
        ("due", REAL),  # time in a heap; while suspended, the rest of its wait, s
        ("order", INT),  # sequence number of the last time it was enabled, or waits since
        ("owner", INT),  # its number in the front end
        ("pattern", number_in("patterns", INT, 0)),
        ("amount", REAL),  # initial value of `remaining`
        ("weight", REAL),
        ("latency_bytes", REAL),  # largest latency * bytes of its flows, per unit
        ("asked", REAL),  # rate bound of the user, 1/s
        ("routed", REAL),  # bound of its usage vector when it began; 0: a link had no bandwidth
        ("next", number_in("activities")),  # of a free slot: the next free one
        ("failing", below(3, SMALL_INT)),  # 0, TO_FAIL or LISTED
        ("waits_as", SMALL_INT),  # LIMIT_LATENCY or LIMIT_DELAY, while it waits
        ("suspended_in", below(6, SMALL_INT)),  # the state to resume
        ("window", REAL),  # largest rate while a flow starts slowly, 1/s; inf: it does not
    ]
)

# Enabled activities by (time at which they end at this rate, order).
END = np.dtype(
    [("date", REAL), ("order", INT), ("slot", number_in("activities", INT, 0))], align=True
)

# What the engine knows of a host or a link; the constraint of the same number in the graph has its
# capacity and its users.
RESOURCE = np.dtype(
    [
        ("latency", REAL),
        ("one_core", REAL),  # speed of one core; inf for a link
        ("cores", REAL),
        ("peak", REAL),  # speed of one core at availability 1
        ("traces", number_in("traces")),  # head of the list of its availability traces, -1: none
        # Of wire models: how long its queue takes, s, as found at a date.
        ("queue", REAL),
        ("queue_date", REAL),
        ("pstate", SMALL_INT),  # of a host
        ("on", FLAG),
    ],
    align=True,
)

# The usage vector of a work on hosts: the use of each resource per unit of progress. `users` counts
# its holders besides activities; a vector without holders and uses is freed when space is needed.
PATTERN = np.dtype(
    [
        ("first", INT),  # of its elements, -1: not routed
        ("count", INT),
        ("users", INT),
        ("amount", REAL),  # units of one work: 1, 0 if nothing is asked; flows have their own
        ("latency", REAL),
        ("latency_bytes", REAL),
        ("penalty", REAL),
        ("bound", REAL),  # inf: none
        # Of flows of a wire model (see `usage.network_models`): round trip, s; what follows the
        # last byte, s, and s a byte of the last packet; least capacity on the way, B/s.
        ("round_trip", REAL),
        ("tail", REAL),
        ("tail_per_byte", REAL),
        ("narrowest", REAL),
    ],
    align=True,
)

# An event in the queue, by (time, order): traces first, by number, then by time of insertion.
DATE = np.dtype([("date", REAL), ("order", INT), ("kind", below(4)), ("number", INT)], align=True)

WAKE_UP = np.dtype([("token", INT), ("queued", number_in("queue"))], align=True)

TRACE_RECORD = np.dtype(
    [
        ("resource", number_in("resources", INT, 0)),
        ("kind", below(4)),
        ("next", number_in("traces")),  # of the same resource
        ("first", number_in("trace_events", INT, 0)),
        ("count", count_in("trace_events")),
        ("period", REAL),  # inf: once
        ("position", number_in("trace_events", INT, 0)),
        ("rounds", INT),
        ("next_date", REAL),
        ("queued", number_in("queue")),  # position in the event queue, -1: not there
        ("live", below(2)),  # 1: followed even while the resource is unused
        ("aside", number_in("traces")),  # the next trace that is temporarily out of the queue
    ],
    align=True,
)

TRACE_EVENT = np.dtype([("date", REAL), ("value", REAL)], align=True)

# An event of the stream, the only output of a run. subject: the owner of the activity; for
# CAPACITY, PSTATE and TURNED the resource, for WOKE the token. value: the rate from this time on;
# the capacity (and amount: the peak speed of the host's cores); the number of the pstate; 1 or 0.
# RATE also has the usage vector, its amount and the limit, a resource or one of LIMIT_... (with a
# rate of 0, LIMIT_NOTHING means that the activity stopped).
EVENT = np.dtype(
    [
        ("date", REAL),
        ("kind", INT),
        ("subject", INT),
        ("value", REAL),
        ("pattern", INT),
        ("amount", REAL),
        ("limit", INT),
    ],
    align=True,
)

CLOCK = np.dtype(
    [
        ("now", REAL),
        ("begun", INT),  # 1: live traces have been applied at time 0
        ("events", INT),
        ("n_slots", count_in("activities")),  # slots ever in use at one time
        ("free_slots", number_in("activities")),
        ("n_active", count_in("activities")),
        ("n_queue", count_in("queue")),
        ("n_traces", count_in("traces")),  # of them, in the queue
        ("free_wakes", number_in("wakes")),
        ("n_wakes", count_in("wakes")),
        ("n_heap", count_in("heap")),
        ("order", INT),  # last sequence number given
        ("n_off", count_in("resources")),  # resources that are off
        ("n_failing", count_in("activities")),
        ("n_failed", count_in("activities")),  # of them, those already looked at, at this date
        ("stepping", INT),
        ("argument", INT),  # of the status returned
        ("n_events", INT),  # in the stream, not forwarded yet
        ("tells_rates", INT),  # whose RATE events are emitted: 0 or one of RATES_OF_...
        ("idle_traces", INT),  # changes by traces in a row while no activity progresses
        ("aside", number_in("traces")),  # the first trace that is temporarily out of the queue
        # Link whose new latency or bandwidth needs works to be routed again, NO_CHANGE or
        # SEVERAL_CHANGES.
        ("changed", number_in("resources", INT, -2)),
        ("unsolved", INT),  # SOLVED or FOLLOWED: the subproblem waits for its rates, else 0
        ("anew", INT),  # 1: the present rates are not accurate enough
        ("port_rounds", INT),  # rounds under way of weights by input port (see `wires`)
        # The one-bottleneck group (see `virtual_time`). group: the resource that limits it, -1:
        # there is no group; group_size: members in the heap of virtual ends; group_next: the one
        # that ends next and is not in that heap, -1: none.
        ("group", number_in("resources")),
        ("group_size", count_in("activities")),
        ("group_next", number_in("activities")),
        ("next_virtual_end", REAL),  # virtual finish time of `group_next`
        ("group_level", REAL),
        ("group_lowest", REAL),  # the lowest level at which anything else limits a member
        ("virtual_time", REAL),  # integral of the level up to `group_since`
        ("group_since", REAL),
        ("group_changes", INT),  # since virtual ends were counted from 0
        # In the first records: runs that can be joined (see `queue`), and the next to be forgotten.
        ("run_last", number_in("activities")),
        ("run_date", REAL),
        ("run_turn", below(4)),
    ],
    align=True,
)


class State(NamedTuple):
    """Every array that the engine reads and writes (see the record types of this module).

    Few arrays, because each makes every kernel longer to compile: ``lists`` has rows for several
    lists of activities. What is shared and who shares it is in ``graph``, whose variables are the
    activities and whose constraints are the resources.
    """

    clock: np.ndarray  # record 0 is the clock
    activities: np.ndarray
    heap: np.ndarray
    resources: np.ndarray
    lists: np.ndarray
    graph: Graph
    patterns: np.ndarray
    elements: np.ndarray
    queue: np.ndarray
    wakes: np.ndarray
    traces: np.ndarray
    trace_events: np.ndarray
    events: np.ndarray


def bare_state() -> State:
    """A state of the right types, with nothing in it."""
    records = {
        "clock": CLOCK, "activities": ACTIVITY, "heap": END, "resources": RESOURCE,
        "patterns": PATTERN, "elements": ELEMENT, "queue": DATE, "wakes": WAKE_UP,
        "traces": TRACE_RECORD, "trace_events": TRACE_EVENT, "events": EVENT,
    }  # fmt: skip
    arrays = {name: np.zeros(0, kind) for name, kind in records.items()}
    return State(lists=np.zeros((LISTS, 0), np.int64), graph=bare_graph(), **arrays)


def arrays_of(state: State) -> dict[str, np.ndarray]:
    """Every array of a state and of its graph, by name."""
    arrays = state._asdict()
    return {**arrays.pop("graph")._asdict(), **arrays}


class Options(NamedTuple):
    """Options of a loop, fixed for one call."""

    solver: int
    flows: bool  # a flow-level network model: bandwidths set bounds and weights
    gamma: float  # TCP window, bytes; 0: no window
    packet: float  # of a wire model (see `usage.network_models`), bytes; 0: it is none
    first_window: float  # bytes; inf: flows do not start slowly
    queue_bytes: float  # a full link's queue: the larger of this and so many seconds of its link
    queue_s: float
    by_ports: bool  # each input link of a switch gets an equal share (see `wires`)
    work_precision: float
    time_precision: float
    incremental: bool  # off: every solve is of the whole problem, nothing pruned
    fails_late: bool  # an activity that begins on something off fails at the next event (SimGrid)
    mode: int
    stop_on_end: bool
    until: float
    pause_at: int  # number of events after which to return


def bare_options() -> Options:
    """Options of the right types."""
    return Options(
        solver=0,
        flows=False,
        gamma=0.0,
        **dict.fromkeys(("packet", "first_window", "queue_bytes", "queue_s"), 0.0),
        by_ports=False,
        work_precision=0.0,
        time_precision=0.0,
        incremental=True,
        fails_late=True,
        mode=RUN,
        stop_on_end=False,
        until=0.0,
        pause_at=0,
    )
