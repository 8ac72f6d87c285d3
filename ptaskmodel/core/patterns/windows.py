"""Which flow of a work its TCP window holds back: that with the largest latency * bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.core.patterns.router import Router
from ptaskmodel.core.patterns.shapes import Shape

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

PAIRS_AT_ONCE = 1 << 16
# Part of the largest product at which the flow is found: sums of latencies are rounded.
FOUND = 1.0 - 1e-9


class Window(NamedTuple):
    """A route on which the TCP window holds a flow back; latency_s: one way."""

    source: str
    target: str
    latency_s: float


def narrowest_window(router: Router, shape: Shape, latency_bytes: float) -> Window:
    """The flow of a shape that a window holds back most; latency_bytes: its product, about."""
    source, target, latency_s, most = -1, -1, 0.0, -1.0
    for sources, targets, sizes in _flows(router, shape):
        latencies = _latencies_s(router, sources, targets)
        products = latencies * sizes
        k = int(np.argmax(products))
        if products[k] > most:
            most = float(products[k])
            source, target, latency_s = int(sources[k]), int(targets[k]), float(latencies[k])
        if most >= latency_bytes * FOUND:
            break
    hosts = router.platform.hosts
    return Window(hosts[source].name, hosts[target].name, latency_s)


def _flows(router: Router, shape: Shape) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    """Sources, targets (hosts) and bytes of flows, some at a time."""
    hosts = np.array(shape.hosts, dtype=np.int64)
    if not router.model.parallel:
        yield hosts[:1], hosts[1:], np.ones(1)
        return
    asked = shape.work.demand(len(hosts))
    if asked.pair_bytes > 0.0 and len(hosts) > 1:
        hosts = np.unique(hosts)
        rows = max(PAIRS_AT_ONCE // len(hosts), 1)
        for first in range(0, len(hosts), rows):
            part = hosts[first : first + rows]
            sources, targets = np.repeat(part, len(hosts)), np.tile(hosts, len(part))
            apart = sources != targets
            sizes = np.full(int(apart.sum()), asked.pair_bytes)
            yield sources[apart], targets[apart], sizes
        return
    for first in range(0, len(asked.flow_bytes), PAIRS_AT_ONCE):
        some = slice(first, first + PAIRS_AT_ONCE)
        yield hosts[asked.flow_from[some]], hosts[asked.flow_to[some]], asked.flow_bytes[some]


def _latencies_s(router: Router, sources: IntArray, targets: IntArray) -> FloatArray:
    """The latencies of routes as they are now."""
    found = np.zeros(len(sources))
    for group in router.paths.groups(sources, targets):
        legs = router.paths.many(sources[group], targets[group])
        route = np.repeat(np.arange(len(group)), np.diff(legs.start))
        sums = np.bincount(route, router.latency_s[legs.links], minlength=len(group))
        found[group] = sums + legs.extra_s
    return found
