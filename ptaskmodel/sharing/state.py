"""The state of the sharing graph: variables on constraints, and what rules keep between events.

A *variable* is a task with a rate to be found. A *constraint* is a resource with a capacity. An
*element* of the graph, here a *node*, is the use of a constraint by a variable. `Graph` has a
record of each, which the kernels of this room read and write in place. The engine holds a graph in
its own state. It enters variables and takes them out (`graph`), and reads their rates and limits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ptaskmodel.kernels.records import (
    FLAG,
    INT,
    NOTHING,
    REAL,
    SMALL_INT,
    TINY_INT,
    below,
    count_in,
    enlarged,
    in_lines,
    number_in,
    numbers,
    records,
)
from ptaskmodel.sharing.arrays import scratch_sizes
from ptaskmodel.sharing.rules import WAYS
from ptaskmodel.sharing.subproblem import subproblem_sizes

INFINITY = float("inf")
SIZE_CLASSES = 48
# Room for so many nodes at first: each time that it grows the loop of the engine returns.
NODES = 1 << 13

# How rates are found from event to event (see `rules`).
ANEW, BY_LEVELS, BY_PARTS, BY_ROUNDS, BY_PRICES = numbers(len(WAYS))

# Why the kept nodes of a variable must be rebuilt: a constraint changed status; it changed.
SIDES, CHANGED = numbers(1, 3)

# Rows of worklists: variables of the subproblem, to rebuild; constraints that these variables use,
# that are affected, that are watched, whose status changed. For a heavy constraint: its place.
SUB, TODO, USED, TOUCHED, WATCH, SIDE, PLACED = numbers(7)
WORKLISTS = 7

# As the first entry of its row: the row of a variable must be assembled again.
UNLAID = np.uint32(2**32 - 1)

# Values below 0 that give a reason instead of an index are above this.
NO_BOUND = -(2**62)

# What a rule keeps of a variable or of a constraint between events stands in columns of its own
# names. No two ways are in force at once, so columns of one way lie where another has its own.
VARIABLE = in_lines(
    [
        # Two cache lines that finding rates uses.
        ("enabled", below(2, SMALL_INT)),  # 1: it takes part in the sharing
        ("todo", below(3, SMALL_INT)),  # 0, SIDES or CHANGED
        ("mark", INT),
        ("nodes", INT),  # first of its nodes
        ("n_kept", count_in("nodes", SMALL_INT)),  # of them, those that can limit it
        # By levels: of them, on active constraints; they come first.
        ("n_active", count_in("nodes", SMALL_INT)),
        ("rate", REAL),  # 1/s
        ("next_rate", REAL),  # by levels: the rate being computed
        ("counted_rate", REAL),  # by levels: its rate in the loads of slack constraints
        ("uncontended_rate", REAL),  # by levels; `uncontended_limit` limits it then
        ("penalty", REAL),  # penalty of its flow, over its weight
        # By levels: its share coefficient, times the penalty, if that is the same on all it uses.
        ("even", REAL),  # else 0
        ("local", INT),  # its number in the component
        ("uncontended_limit", number_in("constraints", INT, NO_BOUND)),
        # Constraint that limits the rate, or one of LIMIT_...
        ("limit", number_in("constraints", INT, NO_BOUND)),
        ("bound", REAL),  # largest rate, 1/s
        ("n_nodes", count_in("nodes", SMALL_INT)),
        # Constraint on which its use is the largest part of the capacity.
        ("tightest", number_in("constraints", SMALL_INT)),
        ("top", REAL),  # its rate if no constraint is contended, 1/s
        ("order", INT),  # sequence number of the last time it was enabled
        ("next", number_in("variables")),  # enabled ones, oldest first
        ("previous", number_in("variables")),
    ],
    {
        # By rounds: the nodes on heavy constraints come first; the most that it took in the first
        # round, the second, any later one, and in all; 0: nothing is kept of it.
        "n_heavy": "n_active",
        "took_first": "uncontended_rate",
        "took_second": "next_rate",
        "took_later": "even",
        "took": "counted_rate",
        # In virtual time (of the engine): level of the common constraint over its rate.
        "cost": "next_rate",
    },
)

CONSTRAINT = in_lines(
    [
        # First cache line: fields that finding rates uses.
        ("capacity", REAL),
        ("load", REAL),  # by levels: the load, if it is kept and not active
        ("level", REAL),  # by levels: the last fair level, inf: none
        ("mark", INT),
        ("first", count_in("users")),  # the first of its users
        ("users", count_in("users", SMALL_INT)),  # how many, whether enabled or not
        ("room", count_in("users", SMALL_INT)),  # places for users
        # Of these, those before `first`, whose users have left.
        ("gone", count_in("users", SMALL_INT)),
        ("local", SMALL_INT),
        ("active", TINY_INT),  # by levels: 1: it limits a variable, 2: watched, it may soon
        ("fatpipe", FLAG),
        ("changed_side", FLAG),  # and listed as such
        # Second cache line: also updated when a variable is enabled or disabled.
        ("demand", REAL),  # load if its enabled users had their `top` rates
        ("slots", INT),  # sum of their numbers: the number of the user, if there is only one
        ("enabled", count_in("users", SMALL_INT)),  # nodes of enabled variables with a use > 0
        ("violations", SMALL_INT),
        # Constraint that dominates this one for all users but `violations`.
        ("partner", number_in("constraints", SMALL_INT)),
        # The only host that uses this link (of a host: itself), -1: none.
        ("group", number_in("constraints", SMALL_INT)),
        # For the variable being counted in or out, if `stamp` is that of the count:
        ("stamp", INT),
        ("ratio", REAL),  # its use as a part of the capacity; -1: it cannot dominate
        ("leader_stamp", INT),
        # The tightest constraint of a group, in the record of its host.
        ("leader", number_in("constraints", SMALL_INT)),
        ("node", SMALL_INT),  # its node
        # By rounds: the largest use in the second round and in any later one, and what users take
        # in the first.
        ("largest_later", REAL),
        ("largest_second", REAL),
        ("taken_first", REAL),
    ],
    {
        # By rounds: what users take in all rounds, the largest use in the first; 1: it takes part.
        "taken": "load",
        "largest_first": "level",
        "heavy": "active",
        # In virtual time (of the engine): how many of its uses are by members of the group, and
        # what these take for each unit of level.
        "n_members": "largest_later",
        "members_take": "taken_first",
    },
)

# The use of a constraint by a variable; resource: that constraint; in a free block, the next free
# block.
NODE = np.dtype(
    [
        ("resource", INT),
        ("usage", REAL),
        ("share", REAL),
        ("largest", REAL),
        ("place", SMALL_INT),  # among the constraint's places for users
        ("kept", SMALL_INT),  # among the kept nodes, -1: it is not kept
        ("violates", TINY_INT),
    ],
    align=True,
)

# A user of a constraint; these are contiguous. node: the use; slot: the variable; in a free block,
# the next free block.
USER = np.dtype([("slot", INT), ("usage", REAL), ("node", INT)], align=True)

# The place of a heavy constraint (see `sharing.fair_bottleneck.heavy`); mark, local: in its
# subproblem.
PLACE = np.dtype([("mark", INT), ("local", INT), ("resource", INT)], align=True)

# A node that can limit its variable.
KEPT = np.dtype([("resource", INT), ("usage", REAL), ("share", REAL), ("node", INT)], align=True)

# An element of a usage vector: what a new variable takes its nodes from; largest: of the parts of
# the usage, the one on a single core.
ELEMENT = np.dtype(
    [("resource", INT), ("usage", REAL), ("share", REAL), ("largest", REAL)], align=True
)

COUNTS = np.dtype(
    [
        ("n_nodes", count_in("nodes")),  # nodes ever in use
        ("oldest", number_in("variables")),  # ends of the list of enabled variables
        ("newest", number_in("variables")),
        ("n_enabled", count_in("variables")),
        ("mark", INT),
        ("n_todo", count_in("variables")),  # variables whose kept nodes must be rebuilt
        ("n_beside", count_in("variables")),  # of them, those only affected by a status
        ("n_touched", count_in("constraints")),  # constraints affected since the last solve
        ("n_sides", count_in("constraints")),  # constraints whose status changed since then
        ("n_watched", count_in("constraints")),  # constraints that may be overloaded soon
        ("skip_search", INT),
        ("solves", INT),
        ("drops_slack", below(2)),  # 1: slack constraints are left out (not under fair bottleneck)
        ("way", below(len(WAYS))),  # how rates are found from event to event: ANEW, one of BY_...
        ("compares_rates", below(2)),  # 1: every share coefficient counts as 1
        ("n_sub", INT),  # variables and constraints of the subproblem
        ("m_sub", INT),
        # Of the last rates: the constraint that limits all variables found, -1: no single one, and
        # the lowest level at which anything else limits one of them. asks_common: 1 if it is worth
        # to look for it.
        ("common", number_in("constraints")),
        ("lowest", REAL),
        ("asks_common", below(2)),
        ("n_users", count_in("users")),  # places for users ever in use
        ("n_links", INT),  # users of all constraints
        # In record k: the first free block of 2**k nodes, -1: none; the same for places for users.
        ("free_nodes", number_in("nodes")),
        ("free_users", number_in("users")),
        ("n_places", count_in("places")),  # places of heavy constraints ever in use
    ],
    align=True,
)


class Graph(NamedTuple):
    """Every array of the sharing graph (see the record types of this module).

    Few arrays, because each makes every kernel longer to compile: ``worklists`` has rows for lists
    of variables and constraints, and the subproblem to solve lies in ``reals``, ``integers`` and
    ``flags`` (see `sharing.components`).
    """

    counts: np.ndarray  # record 0 has the scalars
    variables: np.ndarray
    constraints: np.ndarray
    worklists: np.ndarray
    nodes: np.ndarray
    kept: np.ndarray  # the nodes of a variable that can limit it, same places
    rows: np.ndarray  # same places: heavy nodes and runs, for rounds
    row_usage: np.ndarray
    places: np.ndarray
    users: np.ndarray
    reals: np.ndarray
    integers: np.ndarray
    flags: np.ndarray


def bare_graph() -> Graph:
    """A graph of the right types, with nothing in it."""
    types = {
        "counts": COUNTS, "variables": VARIABLE, "constraints": CONSTRAINT, "nodes": NODE,
        "kept": KEPT, "rows": np.uint32, "row_usage": np.float64, "places": PLACE, "users": USER,
        "reals": np.float64, "integers": np.int64, "flags": np.bool_,
    }  # fmt: skip
    arrays = {name: np.zeros(0, kind) for name, kind in types.items()}
    return Graph(worklists=np.zeros((WORKLISTS, 0), np.int64), **arrays)


def new_graph(n_constraints: int) -> Graph:
    """A graph of ``n_constraints``, whose capacities and kinds are yet to be written."""
    counts = records(SIZE_CLASSES, COUNTS)
    for name in ("oldest", "newest", "common", "free_nodes", "free_users"):
        counts[name] = NOTHING
    constraints = records(n_constraints, CONSTRAINT)
    constraints["partner"] = constraints["group"] = NOTHING
    constraints["level"] = INFINITY
    return bare_graph()._replace(
        counts=counts,
        variables=records(0, VARIABLE),
        constraints=constraints,
        worklists=np.zeros((WORKLISTS, n_constraints), dtype=np.int64),
        nodes=records(0, NODE),
        kept=records(0, KEPT),
        places=records(n_constraints, PLACE),
        users=records(0, USER),
        flags=np.zeros(n_constraints, dtype=np.bool_),
    )


def room_for_variables(graph: Graph, count: int) -> Graph:
    """The ``graph`` with room for ``count`` variables."""
    variables = enlarged(graph.variables, count)
    worklists = graph.worklists
    if worklists.shape[1] < len(variables):
        worklists = np.zeros((WORKLISTS, len(variables)), dtype=np.int64)
        worklists[:, : graph.worklists.shape[1]] = graph.worklists
    return with_scratch(graph._replace(variables=variables, worklists=worklists))


def room_for_nodes(graph: Graph, count: int) -> Graph:
    """The ``graph`` with room for a block of ``count`` more nodes."""
    size = max(int(graph.counts[0]["n_nodes"]) + 2 * count, 2 * len(graph.nodes), NODES)
    nodes = enlarged(graph.nodes, size, blank=True)
    kept = enlarged(graph.kept, len(nodes), blank=True)
    rows = enlarged(graph.rows, len(nodes), blank=True)
    row_usage = enlarged(graph.row_usage, len(nodes), blank=True)
    return with_scratch(graph._replace(nodes=nodes, kept=kept, rows=rows, row_usage=row_usage))


def room_for_users(graph: Graph, count: int) -> Graph:
    """The ``graph`` with room for ``count`` more users of constraints."""
    size = max(int(graph.counts[0]["n_users"]) + 2 * count, 2 * len(graph.users), 2 * NODES)
    return graph._replace(users=enlarged(graph.users, size, blank=True))


def with_scratch(graph: Graph) -> Graph:
    """The ``graph`` with room for a subproblem of everything at once (see `subproblem_sizes`)."""
    n, m, z = len(graph.variables), len(graph.constraints), len(graph.nodes)
    sizes = zip(scratch_sizes(n, m, z), subproblem_sizes(n, m, z), strict=True)
    reals, integers = (sum(parts) for parts in sizes)
    return graph._replace(reals=np.empty(reals), integers=np.empty(integers, dtype=np.int64))
