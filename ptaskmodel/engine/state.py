"""The state of the engine: a few record arrays, which a snapshot copies whole."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from ptaskmodel.sharing.arrays import LIMIT_BOUND as LIMIT_BOUND
from ptaskmodel.sharing.arrays import LIMIT_NOTHING as LIMIT_NOTHING
from ptaskmodel.sharing.rules import WAYS

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

# States of an activity: its slot is free; it waits for the end of its latency or delay; it shares
# resources; it is frozen; it has nothing left to do, or began on something off: then the front end
# that started it ends it.
FREE, WAITING, RUNNING, SUSPENDED, DONE, LOST = numbers(6)

# Kinds of events in the queue: the wait of an activity ends, a front end is woken, an availability
# trace changes a resource, a round trip of a flow that starts slowly is over.
WAIT, WAKE, TRACE, ROUND_TRIP = numbers(4)
NOTHING = np.int64(-1)

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

# How rates are found from event to event (see `sharing.rules`).
ANEW, BY_LEVELS, BY_PARTS, BY_ROUNDS = numbers(len(WAYS))

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

# Why the kept elements of an activity must be rebuilt: a resource changed status; it changed.
SIDES, CHANGED = numbers(1, 3)

# Rows of lists: activities of the subproblem, to rebuild, failing; resources that these activities
# use, that are affected, that are watched, whose status changed. For each activity: its position in
# the heap of ends, that of the end of its wait in the event queue (NOTHING: not there, BEHIND: in a
# run behind another), and its neighbours in its run (see `queue`). For a heavy resource: its place.
SUB, TODO, DOOM, USED, TOUCHED, WATCH, SIDE, IN_ENDS, IN_QUEUE, AFTER, BEFORE, PLACED = numbers(12)
LISTS = 12
BEHIND = np.int64(-2)

# As the first entry of its row: the row of an activity must be assembled again.
UNLAID = np.uint32(2**32 - 1)

# An activity in the list of failing ones: uses something that is off; did, but no longer does.
DOOMED, LISTED = numbers(1, 3)

# Values below 0 that give a reason instead of an index are above this.
NO_BOUND = -(2**62)

ACTIVITY = in_lines(
    [
        # Fields that resharing uses come first, in two cache lines.
        ("state", below(6)),
        ("mark", INT),
        ("nodes", INT),  # first of its nodes
        ("n_kept", count_in("nodes", SMALL_INT)),
        ("n_active", count_in("nodes", SMALL_INT)),  # of them, on active resources: they come first
        ("rate", REAL),  # since time `updated`, 1/s
        ("next_rate", REAL),  # the rate being computed
        # For bmf; fair bottleneck uses three of them, and `next_rate`, in its own way (see there).
        ("charged", REAL),  # its rate in the loads of slack resources
        (
            "ceiling",
            REAL,
        ),  # its uncontended rate; `ceiling_by` is the reason
        ("penalty", REAL),  # penalty of its flow, over its weight
        ("even", REAL),  # its share coefficient if that is the same on all resources, else 0
        ("local", INT),  # its number in the component
        ("ceiling_by", number_in("resources", INT, NO_BOUND)),
        # Resource that limits the rate, or one of LIMIT_...
        ("limit", number_in("resources", INT, NO_BOUND)),
        ("remaining", REAL),  # at time `updated`
        ("updated", REAL),
        ("bound", REAL),  # largest rate, 1/s
        ("order", INT),  # sequence number of the last time it was enabled, or waits since
        # The next enabled one, oldest first; in a free slot, the next free one.
        ("next", number_in("activities")),
        ("n_nodes", count_in("nodes", SMALL_INT)),
        # Resource on which its use is the largest part of the capacity.
        ("tightest", number_in("resources", SMALL_INT)),
        ("top", REAL),  # its rate if no resource is contended, 1/s
        ("due", REAL),  # time in a heap; while suspended, the rest of its wait, s
        ("todo", below(3, SMALL_INT)),  # 0, SIDES or CHANGED
        ("doomed", below(3, SMALL_INT)),  # 0, DOOMED or LISTED
        ("previous", number_in("activities")),
        ("owner", INT),  # its number in the front end
        ("pattern", number_in("patterns", INT, 0)),
        ("amount", REAL),  # initial value of `remaining`
        ("weight", REAL),
        ("latency_bytes", REAL),  # largest latency * bytes of its flows, per unit
        ("asked", REAL),  # rate bound of the user, 1/s
        ("routed", REAL),  # bound of its usage vector when it began; 0: a link had no bandwidth
        ("waits_as", SMALL_INT),  # LIMIT_LATENCY or LIMIT_DELAY, while it waits
        ("suspended_in", below(6, SMALL_INT)),  # the state to resume
        ("window", REAL),  # largest rate while a flow starts slowly, 1/s; inf: it does not
    ]
)

# Enabled activities by (time at which they end at this rate, order).
END = np.dtype(
    [("date", REAL), ("order", INT), ("slot", number_in("activities", INT, 0))], align=True
)

RESOURCE = in_lines(
    [
        # First cache line: fields that sharing uses.
        ("capacity", REAL),
        # For bmf (see `incremental.levels`): the load, if it is kept and not active; the last fair
        # level, inf: none; `active` 1: it limits an activity, 2: watched, it may soon. Fair
        # bottleneck (see there) and virtual time use some of these fields in their own way.
        ("load", REAL),
        ("level", REAL),
        ("mark", INT),
        ("first", count_in("users")),  # the first of its users
        ("users", count_in("users", SMALL_INT)),  # how many, whether enabled or not
        ("room", count_in("users", SMALL_INT)),  # places for users
        # Of these, those before `first`, whose users have left.
        ("gone", count_in("users", SMALL_INT)),
        ("local", SMALL_INT),
        ("pstate", SMALL_INT),  # of a host
        ("active", TINY_INT),
        ("fatpipe", FLAG),
        ("on", FLAG),
        ("changed_side", FLAG),  # and listed as such
        # Second cache line: also updated when an activity is enabled or disabled.
        ("demand", REAL),  # load if its enabled users had their `top` rates
        ("slots", INT),  # sum of their slots: the slot of the user, if there is only one
        ("enabled", count_in("users", SMALL_INT)),  # nodes of enabled activities with a use > 0
        ("violations", SMALL_INT),
        # Resource that dominates this one for all users but `violations`.
        ("partner", number_in("resources", SMALL_INT)),
        # The only host that uses this link (of a host: itself), -1: none.
        ("group", number_in("resources", SMALL_INT)),
        # For the activity being counted in or out, if `stamp` is that of the count:
        ("stamp", INT),
        ("ratio", REAL),  # its use as a part of the capacity; -1: it cannot dominate
        ("leader_stamp", INT),
        # The tightest resource of a group, in the record of its host.
        ("leader", number_in("resources", SMALL_INT)),
        ("node", SMALL_INT),  # its node
        ("latency", REAL),
        ("one_core", REAL),  # speed of one core; inf for a link
        ("cores", REAL),
        ("peak", REAL),  # speed of one core at availability 1
        ("later", REAL),  # with the next two: for fair bottleneck
        ("second", REAL),
        ("begun", REAL),
        ("traces", number_in("traces")),  # head of the list of its availability traces, -1: none
        # Of wire models: how long its queue takes, s, as found at a date.
        ("queue", REAL),
        ("queue_date", REAL),
    ]
)

# The use of a resource by an activity; resource: in a free block, the next free block.
NODE = np.dtype(
    [
        ("resource", INT),
        ("usage", REAL),
        ("share", REAL),
        ("largest", REAL),
        ("place", SMALL_INT),  # among the resource's places for users
        ("kept", SMALL_INT),  # among the kept elements, -1: it is not kept
        ("violates", TINY_INT),
    ],
    align=True,
)

# A user of a resource; these are contiguous. node: the use; slot: in a free block, the next free
# block.
USER = np.dtype([("slot", INT), ("usage", REAL), ("node", INT)], align=True)

# The place of a heavy resource (see `incremental.fair_bottleneck_rounds`); mark, local: in its
# subproblem.
PLACE = np.dtype([("mark", INT), ("local", INT), ("resource", INT)], align=True)

# A node that can limit its activity.
KEPT = np.dtype([("resource", INT), ("usage", REAL), ("share", REAL), ("node", INT)], align=True)

# An element of a usage vector; largest: of the parts of the usage, the one on a single core.
ELEMENT = np.dtype(
    [("resource", INT), ("usage", REAL), ("share", REAL), ("largest", REAL)], align=True
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
        # Of flows of a wire model (see `usage.wires`): round trip, s; what follows the last byte,
        # s, and s a byte of the last packet; least capacity on the way, B/s.
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
        ("solves", INT),
        ("n_slots", count_in("activities")),  # slots ever in use at one time
        ("free_slots", number_in("activities")),
        ("n_active", count_in("activities")),
        ("n_queue", count_in("queue")),
        ("n_traces", count_in("traces")),  # of them, in the queue
        ("free_wakes", number_in("wakes")),
        ("n_wakes", count_in("wakes")),
        ("n_heap", count_in("heap")),
        ("n_nodes", count_in("nodes")),  # nodes ever in use
        ("oldest", number_in("activities")),  # ends of the list of enabled activities
        ("newest", number_in("activities")),
        ("n_enabled", count_in("activities")),
        ("order", INT),  # last sequence number given
        ("mark", INT),
        ("n_todo", count_in("activities")),  # activities whose kept elements must be rebuilt
        ("n_beside", count_in("activities")),  # of them, those only affected by a resource's status
        ("n_touched", count_in("resources")),  # resources affected since the last solve
        ("n_sides", count_in("resources")),  # resources whose status changed since then
        ("n_watched", count_in("resources")),  # resources that may be overloaded soon
        ("skip_search", INT),
        ("drops_slack", INT),  # 1: slack resources are left out (not under fair bottleneck)
        ("n_doomed", count_in("activities")),
        ("n_failed", count_in("activities")),  # of them, those already looked at, at this date
        ("stepping", INT),
        ("argument", INT),  # of the status returned
        ("n_events", INT),  # in the stream, not forwarded yet
        ("tells_rates", INT),  # whose RATE events are emitted: 0 or one of RATES_OF_...
        ("n_sub", INT),
        ("m_sub", INT),
        ("idle_traces", INT),  # changes by traces in a row while no activity progresses
        ("aside", number_in("traces")),  # the first trace that is temporarily out of the queue
        # Link whose new latency or bandwidth needs works to be routed again, NO_CHANGE or
        # SEVERAL_CHANGES.
        ("changed", number_in("resources", INT, -2)),
        ("unsolved", INT),  # SOLVED or FOLLOWED: the subproblem waits for its rates, else 0
        ("way", below(4)),  # how rates are found from event to event: ANEW or one of BY_...
        ("compares_rates", below(2)),  # 1: every share coefficient counts as 1
        ("anew", INT),  # 1: the present rates are not accurate enough
        # Of the last rates (see `incremental.max_min`): the resource that limits all activities,
        # -1: no single one, and the lowest level at which anything else limits an activity.
        ("common", number_in("resources")),
        ("lowest", REAL),
        # The one-bottleneck group (see `virtual_time`). gathers: 1 if one may form, since the front
        # end supports it; crowd: the resource that limits it, -1: there is no group; n_crowd:
        # members in the heap of goals; crowd_head: the one that is not, -1: none.
        ("gathers", below(2)),
        ("crowd", number_in("resources")),
        ("n_crowd", count_in("activities")),
        ("crowd_head", number_in("activities")),
        ("crowd_goal", REAL),  # virtual finish time of the head
        ("crowd_level", REAL),
        ("crowd_lowest", REAL),  # the lowest level at which anything else limits a member
        ("crowd_reached", REAL),  # virtual time: integral of the level up to `crowd_since`
        ("crowd_since", REAL),
        ("crowd_changes", INT),  # since goals were counted from 0
        ("n_users", count_in("users")),  # places for users ever in use
        ("n_links", INT),  # users of all resources
        # In the first records: runs that can be joined (see `queue`), and the next to be forgotten.
        ("run_last", number_in("activities")),
        ("run_date", REAL),
        ("run_turn", below(4)),
        # In record k: the first free block of 2**k nodes, -1: none; the same for places for users.
        ("free_nodes", number_in("nodes")),
        ("free_users", number_in("users")),
        ("n_places", count_in("places")),  # places of heavy resources ever in use
    ],
    align=True,
)


class State(NamedTuple):
    """Every array that the engine reads and writes (see the record types of this module).

    Few arrays, because each makes every kernel longer to compile: ``lists`` has rows for lists of
    activities and resources, and the subproblem to solve lies in ``reals``, ``integers`` and
    ``flags`` (see `incremental.components`).
    """

    clock: np.ndarray  # record 0 is the clock
    activities: np.ndarray
    heap: np.ndarray
    resources: np.ndarray
    lists: np.ndarray
    nodes: np.ndarray
    kept: np.ndarray  # the nodes of an activity that can limit it, same places
    rows: np.ndarray  # same places: heavy nodes and runs, for `fair_bottleneck_rounds`
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
    """Options of a loop, fixed for one call."""

    solver: int
    flows: bool  # a flow-level network model: bandwidths set bounds and weights
    gamma: float  # TCP window, bytes; 0: no window
    packet: float  # of a wire model (see `usage.wires`), bytes; 0: it is none
    first_window: float  # bytes; inf: flows do not start slowly
    queue_bytes: float  # a full link's queue: the larger of this and so many seconds of its link
    queue_s: float
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
        work_precision=0.0,
        time_precision=0.0,
        incremental=True,
        fails_late=True,
        mode=RUN,
        stop_on_end=False,
        until=0.0,
        pause_at=0,
    )
