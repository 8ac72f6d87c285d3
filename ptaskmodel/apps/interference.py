"""Interference: connections that saturate a route at times, as tasks with start times.

`TwoGroups` is the platform of these experiments: two groups of nodes joined by a routing node.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ptaskmodel.errors import PlatformError, WorkloadError
from ptaskmodel.platform import Platform
from ptaskmodel.workload.tasks import Task
from ptaskmodel.workload.works import ParallelWork

ENDLESS_BYTES = 1e18
# Shorter times have no meaning: dates nearer than this are one (`precision/timing`).
LEAST_PERIOD_S = 1e-9
MOST_PERIODS = 20_000


@dataclass(frozen=True, slots=True)
class OnOff:
    """A pattern in time: on for ``on_s`` seconds, off for ``off_s``, again and again, on first.

    (inf, 0) is constant interference and (0, 0) none.

    Raises WorkloadError for a negative or undefined duration, and for a period below
    LEAST_PERIOD_S.
    """

    on_s: float
    off_s: float

    def __post_init__(self) -> None:
        if not (self.on_s >= 0.0 and 0.0 <= self.off_s < math.inf):
            raise WorkloadError(
                f"pattern on {self.on_s} s, off {self.off_s} s: durations must be >= 0, off finite"
            )
        if self.period_s < LEAST_PERIOD_S:
            raise WorkloadError(
                f"pattern on {self.on_s} s, off {self.off_s} s: it changes within less than "
                f"{LEAST_PERIOD_S:g} s, which dates cannot tell; give longer times"
            )

    @property
    def none(self) -> bool:
        """Never on."""
        return self.on_s == 0.0

    @property
    def constant(self) -> bool:
        """Always on."""
        return not self.none and (self.off_s == 0.0 or math.isinf(self.on_s))

    @property
    def period_s(self) -> float:
        """on + off; inf for a pattern that never changes."""
        return math.inf if self.none or self.constant else self.on_s + self.off_s

    @property
    def share(self) -> float:
        """The part of the time that is on, 0 to 1."""
        if self.none or self.constant:
            return 0.0 if self.none else 1.0
        return self.on_s / self.period_s

    def is_on(self, date_s: float) -> bool:
        """Return whether the pattern is on at time `date_s` (s).

        At a change, the state that begins.
        """
        if self.none or self.constant:
            return self.constant
        return date_s - math.floor(date_s / self.period_s) * self.period_s < self.on_s

    def on_periods(self, until_s: float) -> list[tuple[float, float]]:
        """(start, length) in s of every time that it is on, for the starts before ``until_s``.

        Raises WorkloadError if they are more than MOST_PERIODS.
        """
        if self.none:
            return []
        if self.constant:
            return [(0.0, math.inf)]
        periods = until_s / self.period_s
        if periods > MOST_PERIODS:
            raise WorkloadError(
                f"pattern on {self.on_s:g} s, off {self.off_s:g} s: each of about {periods:.3g} "
                f"periods would be simulated, more than {MOST_PERIODS}; give longer times, or "
                "calibrate by --model rates, which simulates nothing"
            )
        count = math.ceil(periods)
        return [(k * self.period_s, self.on_s) for k in range(count)]

    def __str__(self) -> str:
        if self.none or self.constant:
            return "none" if self.none else "constant"
        return f"{self.on_s:g}/{self.off_s:g}"


def connection_work(directions: int = 2, bytes: float = ENDLESS_BYTES) -> ParallelWork:
    """The work of a connection between two ranks: ``bytes`` from 0 to 1, and back if 2 directions.

    By default it never ends by itself: it takes what it is given until its wall time.
    """
    one_way = directions == 1
    return ParallelWork(
        np.zeros(2),
        np.array([0] if one_way else [0, 1]),
        np.array([1] if one_way else [1, 0]),
        np.full(1 if one_way else 2, bytes),
    )


def interference_tasks(
    pattern: OnOff,
    source: str,
    destination: str,
    until_s: float,
    *,
    connections: int = 1,
    joint: bool = False,
    competitors: float | None = None,
    name: str = "interference",
) -> list[Task]:
    """Return tasks that saturate the route between two hosts, both ways, by a pattern.

    The hosts are `source` and `destination`. connections: how many run at a time. name: begins the
    ids of tasks. Each time on is a task with a start and a walltime, since how much it sends
    depends on what else runs. By default a connection is two tasks, one for each direction: two
    competitors for whatever shares both directions. With ``joint`` a connection is one task that
    sends both ways. competitors: how many competitors each task counts as (None: as the simulation
    counts). until_s: times on that begin at or after it (s) are left out.
    """
    if joint:
        ways = [(source, destination, connection_work(2), "")]
    else:
        one_way = connection_work(1)
        ways = [
            (source, destination, one_way, "-forth"),
            (destination, source, one_way, "-back"),
        ]
    tasks = []
    for number, (start_s, length_s) in enumerate(pattern.on_periods(until_s)):
        for connection in range(connections):
            for origin, end, work, way in ways:
                tasks.append(
                    Task(
                        (origin, end),
                        work,
                        id=f"{name}-{number}-{connection}{way}",
                        start_s=start_s,
                        walltime_s=None if math.isinf(length_s) else length_s,
                        competitors=competitors,
                    )
                )
    return tasks


@dataclass(frozen=True, slots=True)
class TwoGroups:
    """2 x ``nodes_per_group`` equal nodes, each group under its own non-blocking switch.

    ``bandwidth_Bps`` is one direction of a node's network interface. All traffic between the
    groups crosses the routing node, which forwards ``bandwidth_Bps`` each way: one link that both
    directions share, of twice that bandwidth.
    """

    name: str
    nodes_per_group: int = 8
    cores: int = 16
    core_speed_flops: float = 38.4e9
    bandwidth_Bps: float = 1.25e9
    latency_s: float = 1e-5

    @property
    def router_bandwidth_Bps(self) -> float:
        """What the routing node forwards, both directions counted together."""
        return 2.0 * self.bandwidth_Bps

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names of the nodes, group after group."""
        return tuple(f"{self.name}-{k}" for k in range(2 * self.nodes_per_group))

    def group(self, host: str) -> int:
        """Return the group, 0 or 1, of the node named `host`. Raises PlatformError if none is."""
        if host not in self.hosts:
            raise PlatformError(
                f"platform {self.name}: no host {host!r}; they are {self.name}-0 .."
            )
        return int(host.rsplit("-", 1)[1]) // self.nodes_per_group

    def platform(self) -> Platform:
        """The platform: two clusters joined by the link of the routing node."""
        bandwidth, latency = f"{self.bandwidth_Bps / 1e9:g}GBps", f"{self.latency_s * 1e6:g}us"
        build = Platform.build(self.name)
        for group in (0, 1):
            build.cluster(
                f"{self.name}_group{group}",
                self.nodes_per_group,
                prefix=f"{self.name}-",
                first=group * self.nodes_per_group,
                speed=f"{self.core_speed_flops / 1e9:g}Gf",
                cores=self.cores,
                bandwidth=bandwidth,
                latency=latency,
                router=self._switch(group),
            )
        build.link("routing_node", f"{self.router_bandwidth_Bps / 1e9:g}GBps", latency)
        ends = (f"{self.name}_group0", f"{self.name}_group1")
        build.zone_route(*ends, (self._switch(0), self._switch(1)), ["routing_node"])
        return build.finish()

    def _switch(self, group: int) -> str:
        return f"{self.name}_switch{group}"

    def xml(self, comment: str = "") -> str:
        """Return the platform as a SimGrid file (DTD 4.1); `comment` stands at its head."""
        return self.platform().to_xml(comment)
