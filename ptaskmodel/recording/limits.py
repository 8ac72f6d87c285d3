"""Name what limits a task, including the TCP windows of routes.

`narrowest_window` finds the flow of a work that its TCP window limits: the flow with the largest
latency * bytes. `Windows` numbers the routes of such flows as limits.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.engine.state import (
    LIMIT_CORE,
    LIMIT_DELAY,
    LIMIT_LATENCY,
    LIMIT_NOTHING,
    LIMIT_RATE_BOUND,
    LIMIT_SUSPENDED,
    LIMIT_WINDOW,
)
from ptaskmodel.engine.usage.placement import Shape
from ptaskmodel.engine.usage.router import Router
from ptaskmodel.recording import (
    CORE,
    DELAY,
    LATENCY,
    RATE_BOUND,
    STOPPED,
    SUSPENDED,
    WINDOW,
)

if TYPE_CHECKING:
    from ptaskmodel.engine.driver import Core
    from ptaskmodel.recording.recorded import Recorded


IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

PAIRS_AT_ONCE = 1 << 16
# Part of the largest product at which the flow is found: sums of latencies are rounded.
FOUND = 1.0 - 1e-9

# In recordings LIMIT_WINDOW gives way to the number of a route, below those of cores.
FIRST_ROUTE = -(1 << 40)

_WORDS = {
    int(LIMIT_RATE_BOUND): RATE_BOUND,
    int(LIMIT_NOTHING): STOPPED,
    int(LIMIT_LATENCY): LATENCY,
    int(LIMIT_DELAY): DELAY,
    int(LIMIT_SUSPENDED): SUSPENDED,
}


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


class Windows:
    """The routes whose TCP window limited something, numbered as limits from FIRST_ROUTE down."""

    def __init__(self) -> None:
        self.routes: list[Window] = []
        self._numbers: dict[Window, int] = {}
        self._of: dict[tuple[int, float], int] = {}

    def name(self, records: np.ndarray, core: Core) -> None:
        """Say in RATE events that a window limits which route's it is; patterns are as they run."""
        held = np.flatnonzero(records["limit"] == LIMIT_WINDOW)
        patterns = records["pattern"][held]
        products = core.state.patterns["latency_bytes"][patterns]
        records["limit"][held] = [
            self._number(core, *pair)
            for pair in zip(patterns.tolist(), products.tolist(), strict=True)
        ]

    def _number(self, core: Core, pattern: int, latency_bytes: float) -> int:
        number = self._of.get((pattern, latency_bytes))
        if number is None:
            window = narrowest_window(core.router, core.patterns.shape(pattern), latency_bytes)
            number = self._numbers.setdefault(window, FIRST_ROUTE - len(self.routes))
            if number == FIRST_ROUTE - len(self.routes):
                self.routes.append(window)
            self._of[pattern, latency_bytes] = number
        return number

    def forget(self, patterns: list[int]) -> None:
        """These numbers will be given to other patterns."""
        gone = set(patterns)
        self._of = {key: number for key, number in self._of.items() if key[0] not in gone}

    def route(self, limit: int) -> Window | None:
        """The route of a limit, None if it is another one."""
        return self.routes[FIRST_ROUTE - limit] if limit <= FIRST_ROUTE else None


class Names:
    """Names of the resources, routes and tasks of a simulation, by number."""

    def __init__(self, simulation: Recorded) -> None:
        platform = simulation.platform
        self._simulation = simulation
        self.n_hosts = len(platform.hosts)
        self.resources = [host.name for host in platform.hosts]
        self.resources += [link.name for link in platform.all_links]
        self.windows = Windows()
        self._tasks: list[str] = []

    def kind(self, resource: int) -> str:
        return "host" if resource < self.n_hosts else "link"

    def tasks(self) -> list[str]:
        """Ids of all tasks added so far."""
        new = islice(self._simulation.tasks(), len(self._tasks), None)
        self._tasks += [ref.id for ref in new]
        return self._tasks


def limit_name(limit: int, names: Names) -> tuple[str, str]:
    """Return the kind (of KINDS) and the name of a `limit` (number in a recording), by `names`.

    The name is that of a host, a link, the host of a core, ``source->target`` of a window, or "".
    """
    if limit >= 0:
        return names.kind(limit), names.resources[limit]
    window = names.windows.route(limit)
    if window is not None:
        return WINDOW, f"{window.source}->{window.target}"
    if limit <= LIMIT_CORE:
        return CORE, names.resources[LIMIT_CORE - limit]
    return _WORDS[limit], ""
