"""The machine of a batch: which hosts of a platform compute, store, or share a leaf switch."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ptaskmodel import units
from ptaskmodel.batch.machine.capacity import HostCapacity
from ptaskmodel.batch.machine.host_sets import Mask, of_hosts
from ptaskmodel.batch.names import HOST_ORDERS
from ptaskmodel.errors import PlatformError, SimulationError
from ptaskmodel.platform.facts import AvailabilityTrace, Host, HostFacts, Link
from ptaskmodel.platform.platform import Platform
from ptaskmodel.platform.power import OLD, HostPower, Sleep, host_power, sleep_states

NO_SLEEP: Mapping[int, Sleep] = {}
MASTER_NAME = "master_host"
POWER_PROPERTIES = ("wattage_per_state", "wattage_off", OLD, "watt_off", "sleep_pstates")


class HostPstates(NamedTuple):
    """What a host can be switched to. sleep: its sleep pstates; power: what it draws, if known."""

    speeds_flops: tuple[float, ...]
    pstate: int = 0
    sleep: Mapping[int, Sleep] = NO_SLEEP
    power: HostPower | None = None
    cores: int = 1

    @property
    def computing(self) -> list[int]:
        """The pstates that compute."""
        others = {*self.sleep, *(k for via in self.sleep.values() for k in via)}
        return [k for k in range(len(self.speeds_flops)) if k not in others]


@dataclass(frozen=True, slots=True, eq=False)
class Machine:
    """The hosts that run jobs, in the order of the platform file: host k of a schedule is names[k].

    A host with the property role=master or role=storage runs no job, nor does one called
    "master_host" (Batsim's rules). ``facts`` are for binding works to hosts. ``capacities`` say
    what each has: its cores, the memory of its property ``memory`` (such as "64GiB") and the named
    resources of its property ``resources`` (such as "gpu:4,nvme:1").
    """

    platform: Platform
    names: tuple[str, ...]
    facts: HostFacts = field(repr=False)
    capacities: tuple[HostCapacity, ...] = field(repr=False)

    @property
    def num_hosts(self) -> int:
        return len(self.names)

    @property
    def has_traces(self) -> bool:
        """Whether anything of the platform changes by itself (has an availability trace)."""
        platform = self.platform
        return any(host.speed_trace or host.state_trace for host in platform.hosts) or any(
            link.bandwidth_trace or link.latency_trace or link.state_trace
            for link in platform.links
        )

    def state_traces(self) -> dict[int | str, AvailabilityTrace]:
        """When what is down by the platform: traces by number of the host, then by name of others.

        Others are links, and hosts that run no jobs.
        """
        found: dict[int | str, AvailabilityTrace] = {}
        kept = frozenset(self.names)
        running = (host.state_trace for host in self.platform.hosts if host.name in kept)
        found |= {k: trace for k, trace in enumerate(running) if trace is not None}
        others: list[Host | Link] = [host for host in self.platform.hosts if host.name not in kept]
        for each in [*others, *self.platform.links]:
            if each.state_trace is not None:
                found[each.name] = each.state_trace
        return found

    def pstates(self) -> list[HostPstates]:
        """What each host can be switched to, by host of a schedule; PlatformError for a mistake.

        A mistake in what hosts draw shows when energy is counted; here they draw nothing known.
        """
        hosts = [self.platform.host(name) for name in self.names]
        known: dict[Hashable, HostPstates] = {}
        found = []
        for host in hosts:
            said = (*map(host.properties.get, POWER_PROPERTIES),) if host.properties else ()
            alike = (said, host.speeds_flops, host.pstate, host.cores)
            if alike not in known:
                known[alike] = self._pstates_of(host)
            found.append(known[alike])
        return found

    def _pstates_of(self, host: Host) -> HostPstates:
        sleep, power = sleep_states(self.platform, host), None
        with contextlib.suppress(PlatformError):
            power = host_power(self.platform, host)
        return HostPstates(host.speeds_flops, host.pstate, sleep, power, host.cores)

    def uncounted(self) -> set[int]:
        """Indices of the hosts of the platform whose energy does not count: masters."""
        return {
            host.index
            for host in self.platform.hosts
            if "master" in _roles(host.properties.get("role", "")) or host.name == MASTER_NAME
        }

    def card_Bps(self) -> float:
        """Bandwidth of the first link on the way from the first host to the second.

        Raises SimulationError where there is none.
        """
        if self.num_hosts == 1:
            return 1.0
        first, second = self.names[:2]
        links = self.platform.route(first, second).links
        if not links:
            raise SimulationError(
                f"the route from {first} to {second} has no link: convert the workload with "
                "'ptaskmodel workload convert --bandwidth' instead"
            )
        return self.platform.link(links[0]).bandwidth_Bps

    def switches(self) -> list[Mask]:
        """The hosts below each leaf switch: those that share their first neighbour in the graph."""
        graph = self.platform.graph
        below: dict[str, list[int]] = {}
        for k, name in enumerate(self.names):
            neighbours = sorted(str(node) for node in graph.neighbors(name))
            if not neighbours:
                raise SimulationError(
                    f"host '{name}' is not below a switch; use an allocation other than topology"
                )
            below.setdefault(neighbours[0], []).append(k)
        return [of_hosts(hosts) for hosts in below.values()]


def machine_of(
    platform: Platform,
    storages: Mapping[str, str] | None = None,
    *,
    roles: Mapping[str, str] | None = None,
    order: str = "platform",
    most: int | None = None,
) -> Machine:
    """The machine that a platform is.

    storages: host of each named storage. A storage that is not named there is the host of that
    name, or, if the platform has one host with role=storage, that host under the name "pfs".
    roles: of hosts, by name, instead of what the platform says. order: of the hosts, one of
    ``names.HOST_ORDERS``; of them, only the first ``most`` run jobs.

    Raises SimulationError if no host is left for jobs, PlatformError for an unknown host.
    """
    # The hosts of a cluster have their properties in common, which are read once.
    properties = {id(host.properties): host.properties for host in platform.hosts}
    shared = {key: _roles(each.get("role", "")) for key, each in properties.items()}
    own = {platform.host(name).name: _roles(role) for name, role in (roles or {}).items()}
    idle = {key for key, role in shared.items() if role & {"master", "storage"}}
    kept = [
        host.name
        for host in platform.hosts
        if id(host.properties) not in idle and host.name != MASTER_NAME
    ]
    known = {
        host.name: host.name for host in platform.hosts if "storage" in shared[id(host.properties)]
    }
    if own:
        kept = [name for name in kept if not own.get(name, set()) & {"master", "storage"}]
        known |= {name: name for name, role in own.items() if "storage" in role}
    if len(known) == 1:
        known["pfs"] = next(iter(known))
    for label, name in (storages or {}).items():
        known[label] = platform.host(name).name
        if name in kept:
            kept.remove(name)
    kept = _ordered(kept, order)[:most]
    if not kept:
        raise SimulationError(f"{platform.path}: no host is left to run jobs: check their roles")
    cores = {host.name: host.cores for host in platform.hosts}
    found: dict[tuple[int, int], HostCapacity] = {}
    capacities = []
    for name in kept:
        host = platform.host(name)
        key = id(host.properties), host.cores
        if key not in found:
            found[key] = _capacity(host)
        capacities.append(found[key])
    return Machine(platform, tuple(kept), HostFacts(cores, known), tuple(capacities))


def _capacity(host: Host) -> HostCapacity:
    """What a host has; PlatformError for a property that makes no sense."""
    memory = host.properties.get("memory")
    try:
        memory_B = None if memory is None else units.parse_size(memory)
        resources = _named(host.properties.get("resources", ""))
    except ValueError as error:
        raise PlatformError(f"host '{host.name}': {error}") from None
    return HostCapacity(host.cores, memory_B, resources)


def _named(text: str) -> dict[str, int]:
    """Named counts such as "gpu:4,nvme:1"; a name alone counts 1. ValueError if malformed."""
    found: dict[str, int] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, count = part.partition(":")
        if not name or not (count or "1").isdecimal():
            raise ValueError(f"property resources: '{part[:60]}' is not NAME:COUNT")
        found[name] = int(count or 1)
    return found


def _ordered(names: list[str], order: str) -> list[str]:
    """Names of hosts in one of the orders, which Batsim's versions have."""
    if order not in HOST_ORDERS:
        raise SimulationError(f"host order '{order}'; use one of {', '.join(HOST_ORDERS)}")
    if order == "platform":
        return names
    return sorted(names, key=None if order == "alphabetical" else _with_numbers)


def _with_numbers(name: str) -> list[tuple[int, str]]:
    """A key by which "n2" comes before "n10"."""
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if k % 2 else (0, part) for k, part in enumerate(parts)]


def _roles(text: str) -> set[str]:
    return {role.strip() for role in text.split(",") if role.strip()}
