"""What the meter keeps: arrays of records, as its kernel takes them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ptaskmodel.core.state import numbers

INT, REAL, FLAG = "i8", "f8", "?"

# Kinds of changes that only the meter knows, beside those of the core's stream: somebody begins and
# ceases to hold hosts, somebody wants to know the total.
HOLD, RELEASE, SAMPLE = numbers(100, 103)

# Power in one state of one resource, W. capacity: at a load of 1, flop/s; nan: of a link, which
# has its own.
STATE = np.dtype(
    [("idle", REAL), ("epsilon", REAL), ("full", REAL), ("capacity", REAL)], align=True
)

RESOURCE = np.dtype(
    [
        ("last", REAL),  # date up to which all is counted, s
        ("joules", REAL),
        ("charged", REAL),  # of them, those that somebody answers for, J
        ("watts", REAL),  # since `last`
        ("idle", REAL),  # of them, those that would be drawn without load
        # What one who was there all along has paid, J:
        ("price", REAL),  # per unit of use; plus
        ("price_rest", REAL),
        ("load_price", REAL),  # for a load of 1
        ("idle_price", REAL),  # per unit of weight held
        ("usage", REAL),  # flop/s or B/s; plus
        ("usage_rest", REAL),  # what its sum was rounded by
        ("load", REAL),  # of those who keep cores busy without a rate, 1: all cores
        ("users", INT),  # of `usage` and `load`
        ("held", INT),  # sum of the weights of those who hold it
        ("capacity", REAL),
        ("state", INT),  # row of its present power
        ("first_state", INT),
        ("off_W", REAL),
        ("on", FLAG),
        ("host", FLAG),
    ],
    align=True,
)

# Who progresses: at which rate on which pattern; what that rate has cost at the prices of its
# beginning (`at`); what its use has cost so far, J.
OWNER = np.dtype(
    [("pattern", INT), ("rate", REAL), ("at", REAL), ("at_rest", REAL), ("used", REAL)], align=True
)

# Who holds hosts: its places; sums at the beginning; whole: energy of its hosts, share: its part of
# what they draw without load (and of its own load), J.
HOLDER = np.dtype(
    [
        ("first", INT),
        ("count", INT),
        ("holds", FLAG),
        ("joules", REAL),
        ("at", REAL),
        ("whole", REAL),
        ("share", REAL),
    ],
    align=True,
)

# A host that is held: with which weight, and by which part kept busy without a rate.
PLACE = np.dtype([("host", INT), ("weight", INT), ("load", REAL)], align=True)

# One record: totals over hosts and over links, each a sum and what it was rounded by.
TOTAL = np.dtype(
    [
        ("date", REAL),
        ("hosts_W", REAL),
        ("hosts_rest", REAL),
        ("links_W", REAL),
        ("links_rest", REAL),
        ("hosts_J", REAL),
        ("links_J", REAL),
        ("epsilon_W", REAL),  # of the hosts in their states at the least load
        ("told_hosts_W", REAL),  # last row of the curve
        ("told_links_W", REAL),
        ("n_curve", INT),
    ],
    align=True,
)

CURVE = np.dtype([("date", REAL), ("hosts_W", REAL), ("links_W", REAL)], align=True)

# hosts_J: since the beginning.
SAMPLED = np.dtype([("date", REAL), ("hosts_J", REAL), ("epsilon_W", REAL)], align=True)


class Books(NamedTuple):
    """Every array that the kernel reads and writes.

    of_first, of_count, of_resource, of_usage: what patterns ask, as `Rows.table` of
    `recording.intervals` gives it.
    """

    total: np.ndarray
    resources: np.ndarray
    states: np.ndarray
    owners: np.ndarray
    holders: np.ndarray
    places: np.ndarray
    curve: np.ndarray
    samples: np.ndarray
    of_first: np.ndarray
    of_count: np.ndarray
    of_resource: np.ndarray
    of_usage: np.ndarray
