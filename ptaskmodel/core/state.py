"""The state of a running simulation: a handful of record arrays, copied whole by a snapshot."""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np

from ptaskmodel.sharing.limits import LIMIT_BOUND as LIMIT_BOUND
from ptaskmodel.sharing.limits import LIMIT_NOTHING as LIMIT_NOTHING

INT, REAL, FLAG = "i8", "f8", "?"


def numbers(*bounds: int) -> list[int]:
    """The integers of ``range(*bounds)``, as numpy integers."""
    return cast("list[int]", list(np.arange(*bounds)))


# The names below are numpy integers: for each plain one passed to a kernel, numba would compile the
# kernel anew.

# States of an activity. Those from ENDED on are final.
WAITING, READY, DELAYED, LATENT, RUNNING, SUSPENDED = numbers(6)
COMPLETED, FAILED, WALLTIME, CANCELLED, DEPENDENCY_FAILED = numbers(6, 11)
ENDED = COMPLETED

# Kinds of timers.
START, LATENCY_END, DELAY_END, KILL = numbers(4)

# Kinds of profiles.
SPEED, BANDWIDTH, LATENCY, STATE = numbers(4)

# Why the event loop came back to Python.
(
    IDLE,
    UNTIL,
    LAYOUT,
    GROW_NODES,
    GROW_TIMERS,
    UNSOLVED,
    SOME_ENDED,
    LATENCY_CHANGED,
    STEPPED,
    PAUSED,
    LOG_FULL,
) = numbers(11)
# It did not: nothing is missing.
OK = np.int64(-1)

# Instead of the link that changed: none did, several may have.
NO_CHANGE, SEVERAL_CHANGES = numbers(-2, 0)

# What limits an activity when no resource does: its own bound, nothing, its latency, its delay, that it
# is suspended; the last one says that its rate has yet to be found.
# The first two are the solvers'.
LIMIT_LATENCY, LIMIT_DELAY, LIMIT_SUSPENDED, LIMIT_UNKNOWN = LIMIT_NOTHING - np.arange(1, 5)

# What one call of the event loop is to do: go on, process one date, or only share anew.
RUN, STEP, SETTLE = numbers(3)

ACTIVITY = np.dtype(
    [
        # What a new share of the resources touches comes first, to lie in a few cache lines.
        ("state", INT),
        ("mark", INT),
        ("nodes", INT),  # first of its nodes
        ("n_kept", INT),
        ("next", INT),  # neighbours among the enabled activities, oldest first
        ("rate", REAL),  # of the stage since `updated`, 1/s
        ("remaining", REAL),  # of the stage, at date `updated`
        ("updated", REAL),
        ("bound", REAL),  # largest rate of the stage, 1/s
        ("penalty", REAL),  # of the stage: what its flow costs, over the activity's weight
        ("limit", INT),  # resource that sets the rate, -1: own bound, -2: nothing
        ("heap", INT),  # position in the heap of ends, -1: not there
        ("order", INT),  # sequence number of the last time it was enabled
        ("n_nodes", INT),
        ("top", REAL),  # a rate that the stage cannot exceed, whatever the others do
        ("tightest", INT),  # resource on which its use is the largest part of the capacity
        ("todo", INT),
        ("previous", INT),
        ("start", REAL),  # earliest date, s
        ("walltime", REAL),  # inf: none
        ("weight", REAL),
        ("rate_bound", REAL),  # 1/s, inf: none
        ("waits_for", INT),  # activities that must complete first
        ("followers", INT),  # head of the list of those that wait for this one, -1: none
        ("program", INT),
        ("stage", INT),  # position in the program
        ("rounds", INT),  # rounds of the program already begun
        ("started", REAL),
        ("finished", REAL),
        ("latency_bytes", REAL),  # largest latency * bytes of the stage's flows
        ("stage_bound", REAL),  # rate_bound in units of the stage's amount
        ("timer", INT),  # stamp of the only valid timer of the stage
        ("pending", REAL),  # what was left of the latency or the delay when suspended
        ("suspended_in", INT),  # the state to resume
        ("doomed", INT),  # see life.doom
        # Lists of activity numbers, one place in each record: place k is in record k.
        ("slot_sub", INT),  # of the sub-system to solve
        ("slot_ready", INT),  # ring: stages to begin now
        ("slot_ended", INT),  # in the order they ended
        ("slot_todo", INT),
        ("slot_doomed", INT),
    ],
    align=True,
)

# Enabled activities by (date at which the stage ends at this rate, order).
END = np.dtype([("date", REAL), ("order", INT), ("slot", INT)], align=True)

RESOURCE = np.dtype(
    [
        # What counting an activity in or out and searching touch comes first, in two cache lines.
        ("capacity", REAL),
        ("demand", REAL),  # what its enabled users would take at their `top`
        ("enabled", INT),  # nodes of enabled activities with a use > 0
        ("violations", INT),
        ("partner", INT),  # resource that dominates this one for all users but `violations`
        # Of the activity that is being counted, if `stamp` is that of the count:
        ("stamp", INT),
        ("ratio", REAL),  # its use as a part of the capacity; -1: it cannot dominate
        ("fatpipe", FLAG),
        ("on", FLAG),
        ("node", INT),  # its node
        ("group", INT),  # host that alone uses this link (and the host itself), -1: none
        ("first", INT),  # head of the list of its nodes
        ("users", INT),  # nodes, whether enabled or not
        ("mark", INT),
        ("local", INT),
        ("level", REAL),  # last fair level found by bmf; inf: none
        ("latency", REAL),
        ("leader_stamp", INT),
        ("leader", INT),  # of a group, in the record of its host: its tightest resource
        ("one_core", REAL),  # speed of one core; inf for a link
        ("cores", REAL),
        ("peak", REAL),  # speed of one core at availability 1
        # Lists of resource numbers, one place in each record.
        ("slot_touched", INT),
        ("slot_sub", INT),
        ("spare", INT),  # to make three cache lines
    ],
    align=True,
)

NODE = np.dtype(
    [
        ("resource", INT),
        ("usage", REAL),
        ("share", REAL),
        ("largest", REAL),
        ("slot", INT),
        ("next", INT),
        ("previous", INT),
        ("violates", INT),
    ],
    align=True,
)

# largest: of the parts that make the usage, what one core has to do
ELEMENT = np.dtype(
    [("resource", INT), ("usage", REAL), ("share", REAL), ("largest", REAL)], align=True
)

STAGE = np.dtype(
    [
        ("delay", REAL),  # s; nan: a parallel activity
        ("first", INT),  # of its elements, -1: not laid out
        ("count", INT),
        ("amount", REAL),  # what `remaining` starts from; 0: no work
        ("latency", REAL),
        ("latency_bytes", REAL),
        ("penalty", REAL),
        ("bound", REAL),  # inf: none
    ],
    align=True,
)

PROGRAM = np.dtype([("first", INT), ("count", INT), ("rounds", INT), ("users", INT)], align=True)

FOLLOWER = np.dtype([("slot", INT), ("next", INT)], align=True)

TIMER = np.dtype(
    [("time", REAL), ("order", INT), ("kind", INT), ("slot", INT), ("stamp", INT)], align=True
)

PROFILE = np.dtype(
    [
        ("resource", INT),
        ("kind", INT),
        ("first", INT),
        ("count", INT),
        ("period", REAL),  # inf: once
        ("position", INT),
        ("rounds", INT),
        ("next_date", REAL),
    ],
    align=True,
)

PROFILE_EVENT = np.dtype([("date", REAL), ("value", REAL)], align=True)

# From `time` on, this stage of this activity progresses at `rate`, limited by resource `limit` or by
# one of LIMIT_... (with a rate of 0, LIMIT_NOTHING says that it stopped). With activity -1: someone set
# the capacity of resource `stage` to `rate` by hand (what profiles do is not logged).
LOG = np.dtype(
    [("task", INT), ("stage", INT), ("time", REAL), ("rate", REAL), ("limit", INT)], align=True
)

CLOCK = np.dtype(
    [
        ("now", REAL),
        ("begun", INT),  # 1: the profile events of date 0 have been applied
        ("events", INT),
        ("solves", INT),
        ("n_tasks", INT),
        ("n_admitted", INT),  # activities that the event loop has seen
        ("n_ended", INT),
        ("n_told", INT),  # ended activities already reported to the caller
        ("n_released", INT),  # ended activities whose followers have been told
        ("ready_first", INT),  # the ring of stages to begin now
        ("n_ready", INT),
        ("n_timers", INT),
        ("n_heap", INT),
        ("n_nodes", INT),  # nodes ever given out
        ("oldest", INT),  # ends of the list of enabled activities
        ("newest", INT),
        ("n_enabled", INT),
        ("order", INT),  # last sequence number given
        ("mark", INT),
        ("n_todo", INT),  # activities whose kept elements must be rebuilt
        ("n_touched", INT),  # resources touched since the last solve
        ("skip_search", INT),
        ("drops_slack", INT),  # 1: what cannot be saturated is left out (not fair bottleneck)
        ("n_doomed", INT),
        ("stepping", INT),
        ("argument", INT),  # of the status returned
        ("n_log", INT),
        ("n_sub", INT),
        ("m_sub", INT),
        ("idle_profiles", INT),  # profile events in a row while no activity progresses
        ("changed", INT),  # link whose latency or bandwidth needs stages laid out again, or:
        ("cut", INT),  # 1: a profile event cut the step
        ("unsolved", INT),  # 1: the sub-system waits for its rates
        ("free_nodes", INT),  # of record k: the first free block of 2**k nodes, -1: none
    ],
    align=True,
)


class State(NamedTuple):
    """Every array that the event loop reads and writes (see the record types of this module).

    Few arrays, because each makes every kernel longer to compile: lists of activities and resources are
    columns (``slot_...``) of their records, and the sub-system to solve lies in ``reals``,
    ``integers`` and ``flags`` (see `sub_system.sub_system`).
    """

    clock: np.ndarray  # record 0 is the clock
    activities: np.ndarray
    heap: np.ndarray
    resources: np.ndarray
    nodes: np.ndarray
    kept: np.ndarray  # ELEMENT: those of an activity's nodes that can limit it, same places
    programs: np.ndarray
    stages: np.ndarray
    elements: np.ndarray
    followers: np.ndarray
    timers: np.ndarray
    profiles: np.ndarray
    profile_events: np.ndarray
    reals: np.ndarray
    integers: np.ndarray
    flags: np.ndarray
    log: np.ndarray


class Options(NamedTuple):
    """What the event loop is asked for, fixed for one call."""

    solver: int
    flows: bool  # a flow-level network model: bandwidths set bounds and weights
    gamma: float  # TCP window, bytes; 0: no window
    work_precision: float
    time_precision: float
    incremental: bool  # off: every solve is on the whole system, nothing pruned
    mode: int
    stop_on_end: bool
    until: float
    pause_at: int  # number of events after which to come back
