"""What patterns are of, and what they ask: the shapes and the rows that a router makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.core.patterns.placement import hosts_of
from ptaskmodel.workload.works import Work

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """What a work asks: resource[k] serves usage[k] per unit of progress, share[k] is compared.

    largest[k]: the largest of the parts of usage[k], which on a host is what one core has to do.
    amount: units of progress to make (of a flow model: 1); latency_s is waited first;
    latency_bytes: the largest latency * bytes of its flows (for the TCP window); penalty: 1 / its
    weight in the sharing; bound: its largest rate.
    """

    resource: IntArray
    usage: FloatArray
    share: FloatArray
    largest: FloatArray
    amount: float
    latency_s: float
    latency_bytes: float
    penalty: float = 1.0
    bound: float = np.inf


class Shape(NamedTuple):
    """What a pattern is of: a work on hosts (indices). Equal keys ask the same.

    The key of what only holds its hosts (a delay, or ranks besides) is None, as it has no work, and
    these hosts, each once. In a flow model that of others is their host, or where they go from
    and to.
    """

    key: tuple
    work: Work  # keeps the id in the key its own
    places: bytes  # its hosts, by `places_of`
    competitors: float | None

    @property
    def hosts(self) -> tuple[int, ...]:
        return hosts_of(self.places)
