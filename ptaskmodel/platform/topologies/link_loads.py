# mypy: allow-untyped-defs, allow-incomplete-defs
"""Kernels that sum the loads which the flows of a task put on each link."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ptaskmodel.kernels.decorators import jit


class Tally(NamedTuple):
    """Links met (resource numbers) and what they carry; ``size[0]`` of each array is in use.

    place: one per resource, where it stands in the tally, -1 if it does not. worst: the largest
    latency of a route and the largest latency * bytes of a flow.

    A link met twice by a route counts twice; a FATPIPE link is asked the largest flow, not the sum.
    """

    size: np.ndarray
    resource: np.ndarray
    usage: np.ndarray
    largest: np.ndarray
    pairs: np.ndarray
    place: np.ndarray
    worst: np.ndarray


class Ways(NamedTuple):
    """What kernels that fill a tally read: per resource, and where links begin among resources.

    common: links that every node of its star crosses both ways.
    """

    fatpipe: np.ndarray
    latency_s: np.ndarray
    common: np.ndarray
    offset: int


@jit
def add(tally, fatpipe, link, amount, largest, pairs):
    """Add `amount` bytes between `pairs` pairs of hosts to the load of a `link`.

    tally: the sums. fatpipe: whether links are FATPIPE. largest: bytes of the largest flow.
    """
    i = tally.place[link]
    if i < 0:
        i = tally.size[0]
        tally.size[0] += 1
        tally.place[link] = i
        tally.resource[i] = link
        tally.usage[i] = 0.0
        tally.largest[i] = 0.0
        tally.pairs[i] = 0.0
    if fatpipe[link]:
        tally.usage[i] = max(tally.usage[i], largest)
    else:
        tally.usage[i] += amount
    tally.largest[i] = max(tally.largest[i], largest)
    tally.pairs[i] += pairs


@jit
def carry(tally, ways, link, amount, largest):
    """Add a flow of `amount` bytes to the load of a `link` of the platform; return its latency, s.

    tally: the sums. ways: facts of links. largest: bytes of the largest flow.
    """
    link += ways.offset
    add(tally, ways.fatpipe, link, amount, largest, 1.0)
    return ways.latency_s[link]


@jit
def note_latency(tally, latency, largest):
    """Record in `tally` the `latency` (s) of a route that carries a flow of `largest` bytes."""
    tally.worst[0] = max(tally.worst[0], latency)
    tally.worst[1] = max(tally.worst[1], latency * largest)
