"""The platform of the interference experiments: two groups of nodes joined by a routing node."""

from __future__ import annotations

from dataclasses import dataclass

from ptaskmodel.errors import PlatformError
from ptaskmodel.platform import Platform


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
        """0 or 1: the group of a node. Raises PlatformError for a name that is not one."""
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
        """The platform as a SimGrid file (DTD 4.1)."""
        return self.platform().to_xml(comment)
