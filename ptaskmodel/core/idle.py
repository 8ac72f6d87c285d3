"""How long activities take with the platform to themselves, by the formula of one user."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.core.driver import Core

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


def times_alone(core: Core, patterns: IntArray) -> FloatArray:
    """Seconds that the amount of each pattern, routed and of parallel tasks, takes alone from now.

    Its latency, then its amount at the largest rate that one core of each host, the TCP window and
    every resource allow: to the bit what a simulation of it alone finds from date 0 on, if no
    availability trace steps in. nan where the formula does not say: nothing is asked, something is
    off or has no capacity, or a host has several entries.
    """
    counts, resource, usage = core.uses(patterns)
    resources = core.state.resources
    records = core.state.patterns[patterns]
    row = np.repeat(np.arange(len(counts)), counts)
    rate = np.full(len(counts), np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        np.fmin.at(rate, row, resources["capacity"][resource] / usage)
        np.fmin.at(rate, row, resources["one_core"][resource] / usage)
        asks_nothing = np.isinf(rate)
        if core.options.gamma > 0.0:
            rate = np.minimum(rate, core.options.gamma / (2.0 * records["latency_bytes"]))
        times = records["latency"] + records["amount"] / rate
    unclear = asks_nothing | ~np.isfinite(times)
    unclear[row[resources["on"][resource] == 0]] = True
    unclear[_repeating(row, resource)] = True
    return np.where(unclear, np.nan, times)


def _repeating(row: IntArray, resource: IntArray) -> IntArray:
    """The rows that have a resource twice."""
    order = np.lexsort((resource, row))
    row, resource = row[order], resource[order]
    return row[1:][(np.diff(row) == 0) & (np.diff(resource) == 0)]
