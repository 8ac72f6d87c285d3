"""The meter: integrate the power of hosts and links exactly over the engine's events.

`power_tables` holds the power of a platform; `PowerTraces` holds what availability traces change:
hosts on and off, bandwidths of links. A host draws Idle without load, otherwise Epsilon plus its
load times (AllCores - Epsilon). `integral` has the arithmetic.
Source: Heinrich, Cornebize, Degomme, Legrand, Carpen-Amarie, Hunold, Orgerie and Quinson,
"Predicting the energy consumption of MPI applications at scale using a single node", IEEE Cluster
2017.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from ptaskmodel.energy.integral import (
    CURVE,
    HOLD,
    HOLDER,
    OWNER,
    PLACE,
    RELEASE,
    RESOURCE,
    SAMPLE,
    SAMPLED,
    STATE,
    TOTAL,
    Books,
    sweep,
    used_so_far,
)
from ptaskmodel.engine.state import CAPACITY, EVENT, LIMIT_NOTHING, PSTATE, RATE, RUNNING, TURNED
from ptaskmodel.errors import PlatformError
from ptaskmodel.kernels.decorators import as_compiled
from ptaskmodel.kernels.records import enlarged, records
from ptaskmodel.platform import Platform
from ptaskmodel.platform.facts import Host, PlatformWarning
from ptaskmodel.platform.power import (
    HostPower,
    Watts,
    host_power,
    link_power,
    old_power_remark,
    sleep_states,
)
from ptaskmodel.recording.intervals import Rows
from ptaskmodel.remarks import warn_of

if TYPE_CHECKING:
    from ptaskmodel.simulation.simulation import Simulation


NOTHING = Watts(0.0, 0.0, 0.0)

# date s, resource, kind, value, what comes after
Coming = tuple[float, int, int, float, Iterator[tuple[float, float]]]

FloatArray = NDArray[np.float64]
# Changes gathered before they are looked at.
GATHERED = 1 << 15
KINDS = (RATE, CAPACITY, PSTATE, TURNED)
NO_ROWS = (
    np.zeros(0, dtype=np.int64),
    np.zeros(0, dtype=np.int64),
    np.zeros(0, dtype=np.int64),
    np.zeros(0),
)
# A host that is held, with which weight, and by which part kept busy without a rate.
Place = tuple[int, int, float]


def power_tables(
    platform: Platform, leave_out: Collection[int] = (), switching: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return (resources, states) of a platform without load, as the kernel takes them.

    leave_out: hosts (indices) that draw no power. switching: the pstates through which hosts fall
    asleep and wake draw the power of one busy core, as in Batsim.

    Raises PlatformError for wrong power properties, or if there are none.
    """
    n = len(platform.hosts)
    rows: list[tuple[float, float, float, float]] = []
    resources = records(n + len(platform.all_links), RESOURCE)
    known = 0
    for host in platform.hosts:
        found = None if host.index in leave_out else host_power(platform, host)
        known += found is not None
        r = resources[host.index]
        r["first_state"] = len(rows)
        r["state"] = len(rows) + host.pstate
        r["off_W"] = 0.0 if found is None else found.off_W
        rows += _states(platform, host, found, switching)
    for link in platform.all_links:
        wattage = link_power(platform, link)
        known += wattage is not None
        r = resources[n + link.index]
        r["first_state"] = r["state"] = len(rows)
        r["capacity"] = link.bandwidth_Bps
        idle, busy = wattage or (0.0, 0.0)
        rows.append((idle, idle, busy, np.nan))
    if not known:
        raise PlatformError(
            f"{platform.path}: no host or link has a power property; give hosts the property "
            "wattage_per_state (Idle:Epsilon:AllCores for each speed)"
        )
    old = old_power_remark(platform)
    if old is not None:
        warn_of([old], PlatformWarning)
    states = records(len(rows), STATE)
    states[:] = np.array(rows, dtype=STATE)
    resources["on"] = True
    resources["host"][:n] = True
    resources["watts"] = resources["idle"] = states["idle"][resources["state"]]
    resources["capacity"][:n] = states["capacity"][resources["state"][:n]]
    return resources, states


def _states(
    platform: Platform, host: Host, power: HostPower | None, switching: bool
) -> list[tuple[float, float, float, float]]:
    """Rows of the states of a host."""
    watts = [NOTHING] * len(host.speeds_flops) if power is None else list(power.states)
    if switching:
        for sleep in sleep_states(platform, host).values():
            for pstate in sleep:
                virtual = watts[pstate]
                drawn = virtual.epsilon_W + (virtual.full_W - virtual.epsilon_W) / host.cores
                # All three alike, but what is at the least load stays what the platform says.
                watts[pstate] = Watts(drawn, virtual.epsilon_W, drawn)
    rows = []
    for state, speed in zip(watts, host.speeds_flops, strict=True):
        # A speed of 0 counts as a load of 1.
        idle = state.full_W if speed <= 0.0 else state.idle_W
        epsilon = state.full_W if speed <= 0.0 else state.epsilon_W
        rows.append((idle, epsilon, state.full_W, speed * host.cores))
    return rows


class PowerTraces:
    """The changes of a platform by itself, in order of date: computed again, not recorded."""

    def __init__(self, platform: Platform, since_s: float) -> None:
        n = len(platform.hosts)
        found = [(host.index, int(TURNED), host.state_trace) for host in platform.hosts]
        found += [(n + link.index, int(CAPACITY), link.bandwidth_trace) for link in platform.links]
        self._coming: list[Coming] = []
        for resource, kind, trace in found:
            if trace is not None:
                events = trace.events(since_s)
                if since_s > 0.0:
                    events = itertools.dropwhile(lambda event: event[0] <= since_s, events)
                self._next(resource, kind, events)

    def advance(self, date: float) -> np.ndarray:
        """The changes up to a date, s, as records of the stream."""
        changes = []
        while self._coming and self._coming[0][0] <= date:
            when, resource, kind, value, events = heapq.heappop(self._coming)
            changes.append((when, kind, resource, value, -1, 0.0, LIMIT_NOTHING))
            self._next(resource, kind, events)
        return np.array(changes, dtype=EVENT)

    def _next(self, resource: int, kind: int, events: Iterator[tuple[float, float]]) -> None:
        for date, value in itertools.islice(events, 1):
            heapq.heappush(self._coming, (date, resource, kind, value, events))


class Curve(Protocol):
    """Takes the power curve: records (date s, hosts_W, links_W), each up to the next date."""

    def __call__(self, rows: np.ndarray) -> None: ...


class Meter:
    """Energy of the hosts and links of a platform, and of tasks or jobs that use and hold them.

    leave_out: hosts (indices) that draw no power. switching: see `power_tables`. curve: receives
    the power curve, in parts.

    The meter receives changes in order of date: those of a simulation by `follow`, others by
    `hold`, `release`, `set_pstate`, `turn`. Energies are those up to the last `count`, J.

    Raises PlatformError for wrong power properties.
    """

    def __init__(
        self,
        platform: Platform,
        *,
        leave_out: Collection[int] = (),
        switching: bool = False,
        curve: Curve | None = None,
    ) -> None:
        self._n_hosts = len(platform.hosts)
        resources, states = power_tables(platform, leave_out, switching)
        total = records(1, TOTAL)
        total["hosts_W"] = resources["watts"][: self._n_hosts].sum()
        total["links_W"] = resources["watts"][self._n_hosts :].sum()
        total["epsilon_W"] = states["epsilon"][resources["state"][: self._n_hosts]].sum()
        total["told_hosts_W"] = np.nan
        self._platform = platform
        self._curve = curve
        self._traces = PowerTraces(platform, 0.0)
        self._simulation: Simulation | None = None
        self._rows: Rows | None = None
        self._gathered: list[np.ndarray] = []
        self._n_gathered = 0
        self._own: list[tuple[float, int, int, float, int, float, int]] = []
        self._new_places: list[Place] = []
        self._most_places = 1024
        self._n_samples = 0
        self._books = Books(
            total, resources, states, records(16, OWNER), records(16, HOLDER), records(0, PLACE),
            records(0, CURVE), records(0, SAMPLED), *NO_ROWS,
        )  # fmt: skip

    # --- what it is told --------------------------------------------------------------------

    def follow(self, simulation: Simulation) -> None:
        """Count what a simulation on this platform does from now on; what runs already too."""
        core, books = simulation.core, self._books
        simulation.tell()
        now = simulation.now
        capacities = core.capacities()
        n, hosts = self._n_hosts, core.state.resources[: self._n_hosts]
        books.resources["capacity"][n:] = capacities[n:]
        books.resources["last"] = books.total["date"] = now
        self._simulation = simulation
        self._rows = Rows(simulation)
        if core.has_begun:
            self._traces = PowerTraces(self._platform, now)
        for host in np.flatnonzero(
            hosts["pstate"] != books.resources["state"][:n] - books.resources["first_state"][:n]
        ).tolist():
            self.set_pstate(now, host, int(hosts["pstate"][host]))
        for host in np.flatnonzero(~hosts["on"]).tolist():
            self.turn(now, host, False)
        simulation.listen(self)
        rates = core.state.graph.variables["rate"]
        for slot in np.flatnonzero(core.state.activities["state"] == RUNNING).tolist():
            if rates[slot] > 0.0:
                a = core.state.activities[slot]
                self._tell(now, RATE, int(a["owner"]), float(rates[slot]), int(a["pattern"]))

    def take(self, events: np.ndarray) -> None:
        """Consume `events`, one chunk of the event stream (see `engine.stream.Listener`)."""
        self._in_order()
        mine = events[np.isin(events["kind"], KINDS)]
        self._gathered.append(mine)
        self._n_gathered += len(mine)
        if self._n_gathered >= GATHERED and self._simulation is not None:
            self._sweep(self._simulation.now)

    def forget(self, patterns: list[int]) -> None:
        """These numbers will be given to other patterns."""
        if self._simulation is not None and self._rows is not None:
            self._sweep(self._simulation.now)
            self._rows.forget(patterns)

    def hold(self, date_s: float, holder: int, places: Iterable[Place]) -> None:
        """Let `holder` (any number) occupy the hosts of `places` from time `date_s` (s) on.

        Holders share the idle power of hosts, by weight.
        """
        books = self._books
        self._books = books._replace(holders=enlarged(books.holders, holder + 1))
        first = len(books.places) + len(self._new_places)
        self._new_places += places
        count = len(books.places) + len(self._new_places) - first
        self._tell(date_s, HOLD, holder, count, first)

    def release(self, date_s: float, holder: int) -> None:
        """Let `holder` leave its hosts at time `date_s` (s); without effect if it occupies none."""
        self._tell(date_s, RELEASE, holder)

    def set_pstate(self, date_s: float, host: int, pstate: int) -> None:
        """Put a `host` (index) into a `pstate` at time `date_s` (s).

        Pstates set by a simulation are known.
        """
        self._tell(date_s, PSTATE, host, pstate)

    def turn(self, date_s: float, host: int, on: bool) -> None:
        """Turn a `host` (index) `on` or off at time `date_s` (s).

        What a simulation turns is known.
        """
        self._tell(date_s, TURNED, host, on)

    def sample(self, date_s: float) -> int:
        """Record the energy of all hosts at time `date_s` (s); return the row in `samples`."""
        self._tell(date_s, SAMPLE, self._n_samples)
        self._n_samples += 1
        return self._n_samples - 1

    def count(self, date_s: float) -> None:
        """Integrate the power of everything up to time `date_s` (s)."""
        if self._simulation is not None:
            self._simulation.tell()
        self._sweep(date_s)

    # --- what it says -----------------------------------------------------------------------

    @property
    def hosts_J(self) -> FloatArray:
        """Energy of each host, J, shape (hosts,)."""
        return np.array(self._books.resources["joules"][: self._n_hosts], dtype=np.float64)

    @property
    def links_J(self) -> FloatArray:
        """Energy of each link, J, shape (links,)."""
        return np.array(self._books.resources["joules"][self._n_hosts :], dtype=np.float64)

    @property
    def watts(self) -> FloatArray:
        """What each resource draws now, hosts first, W, shape (hosts + links,)."""
        return np.array(self._books.resources["watts"], dtype=np.float64)

    @property
    def charged_J(self) -> FloatArray:
        """The part of the energy of each resource that is in shares of holders, J."""
        return np.array(self._books.resources["charged"], dtype=np.float64)

    def used_J(self, owners: int) -> FloatArray:
        """What the use of hosts and links cost, of the first so many owners of activities, J."""
        found = np.zeros(owners)
        with as_compiled():
            used_so_far(self._books, found)
        return found

    def held_J(self, holders: int) -> tuple[FloatArray, FloatArray]:
        """(energy of their hosts, part of what these draw without load) of so many holders, J.

        Only while they held them.
        """
        books = self._books
        whole, share = np.zeros(holders), np.zeros(holders)
        known = min(holders, len(books.holders))
        whole[:known] = books.holders["whole"][:known]
        share[:known] = books.holders["share"][:known]
        for k in np.flatnonzero(books.holders["holds"][:known]).tolist():
            record = books.holders[k]
            first = int(record["first"])
            places = books.places[first : first + int(record["count"])]
            there = books.resources[places["host"]]
            whole[k] += there["joules"].sum() - record["joules"]
            cost = places["weight"] * there["idle_price"] + places["load"] * there["load_price"]
            share[k] += cost.sum() - record["at"]
        return whole, share

    @property
    def samples(self) -> np.ndarray:
        """The rows of `sample`: date s, hosts_J, and epsilon_W: their power at the least load."""
        return np.array(self._books.samples[: self._n_samples])

    # --- counting ---------------------------------------------------------------------------

    def _tell(
        self, date: float, kind: int, subject: int, value: float = 0.0, pattern: int = -1
    ) -> None:
        self._own.append((date, kind, subject, value, pattern, 0.0, int(LIMIT_NOTHING)))
        if len(self._own) >= GATHERED and self._simulation is None:
            self._sweep(date)

    def _in_order(self) -> None:
        """What was told by hand comes before what the stream tells next."""
        if self._own:
            self._gathered.append(np.array(self._own, dtype=EVENT))
            self._n_gathered += len(self._own)
            self._own = []

    def _sweep(self, until: float) -> None:
        """Count what was gathered, up to a date."""
        self._in_order()
        everything = np.concatenate([self._traces.advance(until), *self._gathered])
        self._gathered, self._n_gathered = [], 0
        everything = everything[np.argsort(everything["date"], kind="stable")]
        last = int(np.searchsorted(everything["date"], until, side="right"))
        self._gathered.append(everything[last:])  # nobody has come so far yet
        everything = everything[:last]
        told = records(len(everything), EVENT)
        told[:] = everything
        rates = told[told["kind"] == RATE]
        books = self._books
        if len(rates) and self._rows is not None:
            self._rows.find(np.unique(rates["pattern"][rates["value"] > 0.0]))
            first, count, resource, usage = self._rows.table()
            books = books._replace(
                of_first=first, of_count=count, of_resource=resource, of_usage=usage
            )
            books = books._replace(owners=enlarged(books.owners, int(rates["subject"].max()) + 1))
        places = records(len(books.places) + len(self._new_places), PLACE)
        places[: len(books.places)] = books.places
        places[len(books.places) :] = np.array(self._new_places, dtype=PLACE)
        self._new_places = []
        self._books = books = books._replace(
            places=places,
            curve=enlarged(books.curve, len(told) + 1),
            samples=enlarged(books.samples, self._n_samples),
        )
        with as_compiled():
            sweep(books, told, until)
        self._free_places()
        n = int(books.total[0]["n_curve"])
        books.total[0]["n_curve"] = 0
        if n and self._curve is not None:
            self._curve(np.array(books.curve[:n]))

    def _free_places(self) -> None:
        """Close the gaps that those leave who hold nothing any more."""
        books = self._books
        if len(books.places) < self._most_places:
            return
        holders, kept, n = books.holders, [np.zeros(0, dtype=PLACE)], 0
        for k in np.flatnonzero(holders["holds"]).tolist():
            first, count = int(holders["first"][k]), int(holders["count"][k])
            kept.append(books.places[first : first + count])
            holders["first"][k] = n
            n += count
        places = records(n, PLACE)
        places[:] = np.concatenate(kept)
        self._books = books._replace(places=places)
        self._most_places = 2 * n + 1024


def prepare_kernels() -> None:
    """Use the kernels of energy as they are used (see `kernels.building`)."""
    build = Platform.build("world")
    watts = {"wattage_per_state": "1:2:3"}
    build.cluster("c", 2, prefix="c", speed=1e9, bandwidth=1e9, latency=1e-6, properties=watts)
    meter = Meter(build.finish())
    meter.count(1.0)
    meter.used_J(1)
