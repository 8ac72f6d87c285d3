"""Which hosts of a platform run jobs, which are storages, and which share a leaf switch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ptaskmodel.batch.hostset import HostSet, of_hosts
from ptaskmodel.errors import SimulationError
from ptaskmodel.platform.platform import Platform
from ptaskmodel.workload.host_facts import HostFacts

MASTER_NAME = "master_host"


@dataclass(frozen=True, slots=True, eq=False)
class Machine:
    """The hosts that run jobs, in the order of the platform file: host k of a schedule is names[k].

    A host with the property role=master or role=storage runs no job, nor does one called
    "master_host" (Batsim's rules). ``facts`` are for binding works to hosts.
    """

    platform: Platform
    names: tuple[str, ...]
    facts: HostFacts = field(repr=False)

    @property
    def num_hosts(self) -> int:
        return len(self.names)

    def switches(self) -> list[HostSet]:
        """The hosts below each leaf switch: those that share their first neighbour in the graph."""
        graph = self.platform.graph
        below: dict[str, list[int]] = {}
        for k, name in enumerate(self.names):
            neighbours = sorted(str(node) for node in graph.neighbors(name))
            if not neighbours:
                raise SimulationError(
                    f"host '{name}' hangs on no switch: use another allocation than topology"
                )
            below.setdefault(neighbours[0], []).append(k)
        return [of_hosts(hosts) for hosts in below.values()]


def machine_of(platform: Platform, storages: Mapping[str, str] | None = None) -> Machine:
    """The machine that a platform is.

    storages: host of each named storage. A storage that is not named there is the host of that
    name, or, if the platform has one host with role=storage, that host under the name "pfs".
    Raises SimulationError if no host is left for jobs, PlatformError for an unknown host.
    """
    roles = {host.name: _roles(host.properties.get("role", "")) for host in platform.hosts}
    kept = [
        host.name
        for host in platform.hosts
        if not roles[host.name] & {"master", "storage"} and host.name != MASTER_NAME
    ]
    known = {name: name for name, role in roles.items() if "storage" in role}
    if len(known) == 1:
        known["pfs"] = next(iter(known))
    for label, name in (storages or {}).items():
        known[label] = platform.host(name).name
        if name in kept:
            kept.remove(name)
    if not kept:
        raise SimulationError(f"{platform.path}: no host is left to run jobs: check their roles")
    cores = {host.name: host.cores for host in platform.hosts}
    return Machine(platform, tuple(kept), HostFacts(cores, known))


def _roles(text: str) -> set[str]:
    return {role.strip() for role in text.split(",") if role.strip()}
