"""The state of the core: a handful of record arrays, copied whole by a snapshot."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from ptaskmodel.sharing.arrays import LIMIT_BOUND as LIMIT_BOUND
from ptaskmodel.sharing.arrays import LIMIT_NOTHING as LIMIT_NOTHING

INT, REAL, FLAG = "i8", "f8", "?"
SMALL_INT = "i4"  # of what no kernel is given as an argument
TINY_INT = "i1"
CACHE_LINE = 64  # bytes


def number_in(array: str, kind: str = INT, least: int = -1) -> np.dtype:
    """The type of a field that is a number in an array; from ``least``, where below 0 is none."""
    return np.dtype(kind, metadata={"of": array, "least": least, "last": -1})


def count_in(array: str, kind: str = INT) -> np.dtype:
    """The type of a field that counts places of an array."""
    return np.dtype(kind, metadata={"of": array, "least": 0, "last": 0})


def below(bound: int, kind: str = INT) -> np.dtype:
    """The type of a field that is one of the numbers from 0 on, below a bound."""
    return np.dtype(kind, metadata={"least": 0, "last": bound - 1})


def numbers(*bounds: int) -> list[int]:
    """The integers of ``range(*bounds)``, as numpy integers."""
    return cast("list[int]", list(np.arange(*bounds)))


def in_lines(fields: Any) -> np.dtype:
    """Records of these fields, as numpy takes them, each from the start of a cache line on."""
    plain: Any = np.dtype(fields, align=True)
    lines = -(-plain.itemsize // CACHE_LINE)
    padded: Any = {
        "names": plain.names,
        "formats": [plain[name] for name in plain.names],
        "offsets": [plain.fields[name][1] for name in plain.names],
        "itemsize": lines * CACHE_LINE,
    }
    return np.dtype(padded, align=True)


# The names below are numpy integers: for each plain one passed to a kernel, numba would compile the
# kernel anew.

# States of an activity: its place is free; it waits for the end of its latency or delay; it shares
# resources; it is frozen; it has nothing left to do, or began on something off, and is to be ended
# by who started it.
FREE, WAITING, RUNNING, SUSPENDED, DONE, LOST = numbers(6)

# What stands in the queue of dates: the end of a wait of an activity, a date that a front end asked
# for, the next change of an availability trace.
WAIT, WAKE, TRACE = numbers(3)
NOTHING = np.int64(-1)

# Kinds of availability traces.
SPEED, BANDWIDTH, LATENCY, STATE = numbers(4)

# Why the loop of a front end came back to Python. The core serves the first ones itself.
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
# It did not: nothing is missing.
OK = np.int64(-1)

# How the rates of a sub-system are found: by the kernel of a rule, from the levels in force.
SOLVED, FOLLOWED = numbers(1, 3)

# Instead of the link that changed: none did, several may have.
NO_CHANGE, SEVERAL_CHANGES = numbers(-2, 0)

# What limits an activity when no resource does: nothing or its own bound (both as solvers say),
# its latency, its delay, that it is suspended; UNKNOWN: its rate has yet to be found. In events,
# instead of the bound, what sets it: the TCP window, the largest rate that its front end allows, or
# one core of host h, which is LIMIT_CORE - h.
(
    LIMIT_LATENCY,
    LIMIT_DELAY,
    LIMIT_SUSPENDED,
    LIMIT_UNKNOWN,
    LIMIT_WINDOW,
    LIMIT_RATE_BOUND,
    LIMIT_CORE,
) = LIMIT_NOTHING - np.arange(1, 8)

# Kinds of events. STARTED, ENDED, FAILED: of what the front end runs; RATE: an activity progresses
# at another rate; CAPACITY, PSTATE, TURNED on or off: by hand (what traces do follows from the
# platform); WOKE.
STARTED, ENDED, FAILED, RATE, CAPACITY, WOKE, PSTATE, TURNED = numbers(8)

# Whose changes of rate somebody listens to: tasks, or also ranks, whose owners are below 0.
RATES_OF_TASKS, RATES_OF_ALL = numbers(1, 3)

# What one call of a loop is to do: go on, process one date, only begin what is due and share anew.
RUN, STEP, SETTLE = numbers(3)

# Of an activity whose kept elements must be rebuilt: a resource of it changed side; it changed.
SIDES, CHANGED = numbers(1, 3)

# Rows of lists: activities to share anew, to look at again, doomed; resources that these activities
# use, that were touched, that are watched, that changed side. Of each activity, where it stands in
# the heap of ends, and the end of its wait in the queue of dates (NOTHING: not there, BEHIND: in a
# run behind another), and its neighbours in its run (see `queues`). Of a heavy resource its place.
SUB, TODO, DOOM, USED, TOUCHED, WATCH, SIDE, IN_ENDS, IN_QUEUE, AFTER, BEFORE, PLACED = numbers(12)
LISTS = 12
BEHIND = np.int64(-2)

# As the first of its row: the row of an activity is to be written anew.
UNLAID = np.uint32(2**32 - 1)

# Of an activity in the list of the doomed: uses something that is off; did, but no longer does.
DOOMED, LISTED = numbers(1, 3)

# What is no number in an array, but says why, is above this.
NO_BOUND = -(2**62)

ACTIVITY = in_lines(
    [
        # What a new share of the resources touches comes first, to lie in two cache lines.
        ("state", below(6)),
        ("mark", INT),
        ("nodes", INT),  # first of its nodes
        ("n_kept", count_in("nodes", SMALL_INT)),
        ("n_active", count_in("nodes", SMALL_INT)),  # of them, on active resources: they come first
        ("rate", REAL),  # since `updated`, 1/s
        ("next_rate", REAL),  # the rate that is being found
        # Of bmf; `core.heavy` tells what fair bottleneck keeps in three of them, and above.
        ("charged", REAL),  # the rate that the loads of what limits nobody count
        ("ceiling", REAL),  # its largest rate alone, and what sets it (a resource or LIMIT_...)
        ("penalty", REAL),  # what its flow costs, over its weight
        ("even", REAL),  # what fairness compares of its rate, 0: not the same everywhere
        ("local", INT),  # its number in the component
        ("ceiling_by", number_in("resources", INT, NO_BOUND)),
        (
            "limit",
            number_in("resources", INT, NO_BOUND),
        ),  # resource that sets the rate, or one of LIMIT_...
        ("remaining", REAL),  # at date `updated`
        ("updated", REAL),
        ("bound", REAL),  # largest rate, 1/s
        ("order", INT),  # sequence number of the last time it was enabled, or waits since
        (
            "next",
            number_in("activities"),
        ),  # neighbours among the enabled, oldest first; in a free place, the next one
        ("n_nodes", count_in("nodes", SMALL_INT)),
        (
            "tightest",
            number_in("resources", SMALL_INT),
        ),  # resource on which its use is the largest part of the capacity
        ("top", REAL),  # a rate that it cannot exceed, whatever the others do
        ("due", REAL),  # date in a heap; while it is suspended, what was left of its wait
        ("todo", below(3, SMALL_INT)),  # 0, SIDES or CHANGED
        ("doomed", below(3, SMALL_INT)),  # 0, DOOMED or LISTED
        ("previous", number_in("activities")),
        ("owner", INT),  # what the front end knows it by
        ("pattern", number_in("patterns", INT, 0)),
        ("amount", REAL),  # what `remaining` starts from
        ("weight", REAL),
        ("latency_bytes", REAL),  # largest latency * bytes of its flows, per unit
        ("asked", REAL),  # largest rate that its front end allows, 1/s
        ("routed", REAL),  # the bound of its pattern when it began; 0: a link had no bandwidth then
        ("waits_as", SMALL_INT),  # LIMIT_LATENCY or LIMIT_DELAY, while it waits
        ("suspended_in", below(6, SMALL_INT)),  # the state to resume
    ]
)

# Enabled activities by (date at which they end at this rate, order).
END = np.dtype(
    [("date", REAL), ("order", INT), ("slot", number_in("activities", INT, 0))], align=True
)

RESOURCE = in_lines(
    [
        # A cache line for what sharing touches.
        ("capacity", REAL),
        # Of bmf (see `core.levels`): what its users take, if it is kept and not active; the last
        # fair level, inf: none; 1: active, it limits somebody, 2: watched, it may soon. Of fair
        # bottleneck, with those below: see `core.heavy`; of a crowd two of them (`core.crowd`).
        ("load", REAL),
        ("level", REAL),
        ("mark", INT),
        ("first", count_in("users")),  # of its users
        ("users", count_in("users", SMALL_INT)),  # how many, whether enabled or not
        ("room", count_in("users", SMALL_INT)),  # places for users
        (
            "gone",
            count_in("users", SMALL_INT),
        ),  # of these, those before `first`, of users that came first and left
        ("local", SMALL_INT),
        ("pstate", SMALL_INT),  # of a host
        ("active", TINY_INT),
        ("fatpipe", FLAG),
        ("on", FLAG),
        ("changed_side", FLAG),  # and listed as such
        # Another for what counting an activity in or out touches besides.
        ("demand", REAL),  # what its enabled users would take at their `top`
        ("slots", INT),  # the sum of their numbers: that of the only one, if there is one
        ("enabled", count_in("users", SMALL_INT)),  # nodes of enabled activities with a use > 0
        ("violations", SMALL_INT),
        (
            "partner",
            number_in("resources", SMALL_INT),
        ),  # resource that dominates this one for all users but `violations`
        (
            "group",
            number_in("resources", SMALL_INT),
        ),  # host that alone uses this link (and the host itself), -1: none
        # Of the activity that is being counted, if `stamp` is that of the count:
        ("stamp", INT),
        ("ratio", REAL),  # its use as a part of the capacity; -1: it cannot dominate
        ("leader_stamp", INT),
        (
            "leader",
            number_in("resources", SMALL_INT),
        ),  # of a group, in the record of its host: its tightest resource
        ("node", SMALL_INT),  # its node
        ("latency", REAL),
        ("one_core", REAL),  # speed of one core; inf for a link
        ("cores", REAL),
        ("peak", REAL),  # speed of one core at availability 1
        ("later", REAL),  # of fair bottleneck (see `core.heavy`)
        ("second", REAL),
        ("begun", REAL),
        ("traces", number_in("traces")),  # head of the list of its availability traces, -1: none
    ]
)

# resource: in a free block, the next such.
NODE = np.dtype(
    [
        ("resource", INT),
        ("usage", REAL),
        ("share", REAL),
        ("largest", REAL),
        ("place", SMALL_INT),  # of those of the resource for users
        ("violates", SMALL_INT),
    ],
    align=True,
)

# The users of a resource lie side by side; node: by which it is used. slot: in a free block, the
# next such.
USER = np.dtype([("slot", INT), ("usage", REAL), ("node", INT)], align=True)

# A node that can limit its activity.
# A place of a heavy resource (see `core.heavy_rounds`); mark, local: of the system that it is in.
PLACE = np.dtype([("mark", INT), ("local", INT), ("resource", INT)], align=True)

KEPT = np.dtype([("resource", INT), ("usage", REAL), ("share", REAL), ("node", INT)], align=True)

# largest: of the parts that make the usage, what one core has to do
ELEMENT = np.dtype(
    [("resource", INT), ("usage", REAL), ("share", REAL), ("largest", REAL)], align=True
)

# A work on hosts, laid on its routes: what a unit of it asks of each resource. `users` counts who
# holds it besides activities; one that nobody holds or uses is freed when room is needed.
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
    ],
    align=True,
)

# By (date, order): traces first, by number, then what was pushed earlier.
DATE = np.dtype([("date", REAL), ("order", INT), ("kind", below(3)), ("number", INT)], align=True)

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
        ("queued", number_in("queue")),  # position in the queue of dates, -1: not there
        ("live", below(2)),  # 1: followed even while nobody uses the resource
        ("aside", number_in("traces")),  # the next of those taken out of the queue for a moment
    ],
    align=True,
)

TRACE_EVENT = np.dtype([("date", REAL), ("value", REAL)], align=True)

# What anybody learns of a run. subject: the owner of the activity; for CAPACITY, PSTATE and TURNED
# the resource, for WOKE the token. value: the rate from this date on; the capacity (and amount: the
# peak speed of the host's cores); the number of the pstate; 1 or 0. For RATE: its pattern and
# amount, and what limits it, a resource or one of LIMIT_... (with a rate of 0, LIMIT_NOTHING says
# that it stopped).
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
        ("begun", INT),  # 1: the traces followed all along have been applied at date 0
        ("events", INT),
        ("solves", INT),
        ("n_slots", count_in("activities")),  # activities ever given out at one time
        ("free_slots", number_in("activities")),
        ("n_active", count_in("activities")),
        ("n_queue", count_in("queue")),
        ("n_traces", count_in("traces")),  # of them, in the queue
        ("free_wakes", number_in("wakes")),
        ("n_wakes", count_in("wakes")),
        ("n_heap", count_in("heap")),
        ("n_nodes", count_in("nodes")),  # nodes ever given out
        ("oldest", number_in("activities")),  # ends of the list of enabled activities
        ("newest", number_in("activities")),
        ("n_enabled", count_in("activities")),
        ("order", INT),  # last sequence number given
        ("mark", INT),
        ("n_todo", count_in("activities")),  # activities whose kept elements must be rebuilt
        ("n_beside", count_in("activities")),  # of them, those of which only resources changed side
        ("n_touched", count_in("resources")),  # resources touched since the last solve
        ("n_sides", count_in("resources")),  # resources that changed side since then
        ("n_watched", count_in("resources")),  # resources that may overflow soon
        ("skip_search", INT),
        ("drops_slack", INT),  # 1: what cannot be saturated is left out (not fair bottleneck)
        ("n_doomed", count_in("activities")),
        ("stepping", INT),
        ("argument", INT),  # of the status returned
        ("n_events", INT),  # in the stream, not handed over yet
        ("tells_rates", INT),  # whose RATEs are listened to: 0 or one of RATES_OF_...
        ("n_sub", INT),
        ("m_sub", INT),
        ("idle_traces", INT),  # changes by traces in a row while no activity progresses
        ("aside", number_in("traces")),  # traces taken out of the queue for a moment
        (
            "changed",
            number_in("resources", INT, -2),
        ),  # link whose latency or bandwidth needs works routed again, or:
        ("unsolved", INT),  # SOLVED or FOLLOWED: the sub-system waits for its rates, else 0
        ("keeps_levels", INT),  # 1: bmf from event to event
        ("keeps_rates", INT),  # 1: max-min, of which only what is affected is solved anew
        ("by_rounds", INT),  # 1: fair bottleneck, among heavy resources from event to event
        ("anew", INT),  # 1: the rates in force are not good enough
        # Of the rates found last (see `affected`): the resource that limits all, -1: no single one,
        # and the lowest level at which anything else limits somebody.
        ("common", number_in("resources")),
        ("lowest", REAL),
        # Of a crowd (see `crowd`): 1: one may gather, as the front end knows how to go on with it;
        # the resource that limits it, -1: there is none; members that stand in the heap of goals,
        # and the one that does not, -1: nobody.
        ("gathers", INT),
        ("crowd", number_in("resources")),
        ("n_crowd", count_in("activities")),
        ("crowd_head", number_in("activities")),
        ("crowd_goal", REAL),  # of the head
        ("crowd_level", REAL),
        ("crowd_lowest", REAL),  # the lowest level at which anything else limits somebody
        ("crowd_reached", REAL),  # the integral of the level, up to `crowd_since`
        ("crowd_since", REAL),
        ("crowd_changes", INT),  # since goals were counted from 0
        ("n_users", count_in("users")),  # places for users ever given out
        ("n_links", INT),  # users of all resources
        # Of the first records: runs that can be joined (see `queues`), the next to be forgotten.
        ("run_last", number_in("activities")),
        ("run_date", REAL),
        ("run_turn", below(4)),
        (
            "free_nodes",
            number_in("nodes"),
        ),  # of record k: the first free block of 2**k nodes, -1: none
        ("free_users", number_in("users")),  # the same of places for users
        ("n_places", count_in("places")),  # places of heavy resources ever given out
    ],
    align=True,
)


class State(NamedTuple):
    """Every array that the core reads and writes (see the record types of this module).

    Few arrays, because each makes every kernel longer to compile: ``lists`` has rows for what is
    listed of activities and resources, and the sub-system to solve lies in ``reals``, ``integers``
    and ``flags`` (see `sub_system.sub_system`).
    """

    clock: np.ndarray  # record 0 is the clock
    activities: np.ndarray
    heap: np.ndarray
    resources: np.ndarray
    lists: np.ndarray
    nodes: np.ndarray
    kept: np.ndarray  # those of an activity's nodes that can limit it, same places
    rows: np.ndarray  # of the same places: what `heavy_rounds` keeps of heavy ones, and of runs
    row_usage: np.ndarray
    places: np.ndarray
    users: np.ndarray
    patterns: np.ndarray
    elements: np.ndarray
    queue: np.ndarray
    wakes: np.ndarray
    traces: np.ndarray
    trace_events: np.ndarray
    reals: np.ndarray
    integers: np.ndarray
    flags: np.ndarray
    events: np.ndarray


def bare_state() -> State:
    """A state of the right types, with nothing in it."""
    records = {
        "clock": CLOCK, "activities": ACTIVITY, "heap": END, "resources": RESOURCE, "nodes": NODE,
        "kept": KEPT, "rows": np.uint32, "row_usage": np.float64, "places": PLACE, "users": USER,
        "patterns": PATTERN, "elements": ELEMENT, "queue": DATE, "wakes": WAKE_UP,
        "traces": TRACE_RECORD, "trace_events": TRACE_EVENT, "events": EVENT, "reals": np.float64,
        "integers": np.int64, "flags": np.bool_,
    }  # fmt: skip
    arrays = {name: np.zeros(0, kind) for name, kind in records.items()}
    return State(lists=np.zeros((LISTS, 0), np.int64), **arrays)


class Options(NamedTuple):
    """What a loop is asked for, fixed for one call."""

    solver: int
    flows: bool  # a flow-level network model: bandwidths set bounds and weights
    gamma: float  # TCP window, bytes; 0: no window
    work_precision: float
    time_precision: float
    incremental: bool  # off: every solve is on the whole system, nothing pruned
    fails_late: bool  # what begins on something off fails at the next event, as in SimGrid
    mode: int
    stop_on_end: bool
    until: float
    pause_at: int  # number of events after which to come back


def bare_options() -> Options:
    """Options of the right types."""
    return Options(
        solver=0,
        flows=False,
        gamma=0.0,
        work_precision=0.0,
        time_precision=0.0,
        incremental=True,
        fails_late=True,
        mode=RUN,
        stop_on_end=False,
        until=0.0,
        pause_at=0,
    )
