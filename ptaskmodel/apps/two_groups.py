"""The platform of the interference experiments: two groups of nodes joined by a routing node."""

from __future__ import annotations

from dataclasses import dataclass

from ptaskmodel.errors import PlatformError


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

    def xml(self, comment: str = "") -> str:
        """The platform as a SimGrid file (DTD 4.1)."""
        speed = f"{self.core_speed_flops / 1e9:g}Gf"
        bandwidth = f"{self.bandwidth_Bps / 1e9:g}GBps"
        router = f"{self.router_bandwidth_Bps / 1e9:g}GBps"
        latency = f"{self.latency_s * 1e6:g}us"
        lines = [
            "<?xml version='1.0'?>",
            '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">',
            *([f"<!--\n{comment.strip()}\n-->"] if comment else []),
            '<platform version="4.1">',
            f'  <zone id="{self.name}" routing="Full">',
        ]
        for group in (0, 1):
            first = group * self.nodes_per_group
            radical = f"{first}-{first + self.nodes_per_group - 1}"
            lines += [
                f'    <cluster id="{self.name}_group{group}" prefix="{self.name}-" suffix=""',
                f'             radical="{radical}" speed="{speed}" core="{self.cores}"',
                f'             bw="{bandwidth}" lat="{latency}" sharing_policy="SPLITDUPLEX"',
                f'             router_id="{self.name}_switch{group}"/>',
            ]
        lines += [
            f'    <link id="routing_node" bandwidth="{router}" latency="{latency}"',
            '          sharing_policy="SHARED"/>',
            f'    <zoneRoute src="{self.name}_group0" dst="{self.name}_group1"',
            f'               gw_src="{self.name}_switch0" gw_dst="{self.name}_switch1">',
            '      <link_ctn id="routing_node"/>',
            "    </zoneRoute>",
            "  </zone>",
            "</platform>",
            "",
        ]
        return "\n".join(lines)
