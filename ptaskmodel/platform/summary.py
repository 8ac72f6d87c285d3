"""A short account of a platform, as data and as text."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ptaskmodel import units
from ptaskmodel.files import shown_path
from ptaskmodel.platform.checks import tcp_window
from ptaskmodel.platform.platform import Platform
from ptaskmodel.platform.zones import Zone

SHOWN_ZONES = 20


def summarise(platform: Platform) -> dict[str, Any]:
    """Counts and ranges in SI units, ready for JSON.

    flow_Bps: what one flow gets at most, over such a link alone, with the TCP window.
    """
    links = platform.links
    window = tcp_window(platform)

    def held(latency_s: float) -> bool:
        return window > 0.0 and latency_s > 0.0

    hosts = Counter((host.speed_flops, host.cores) for host in platform.hosts)
    kinds = Counter((link.policy, link.bandwidth_Bps, link.latency_s) for link in links)
    return {
        "file": str(platform.path),
        "hosts": len(platform.hosts),
        "cores": sum(host.cores for host in platform.hosts),
        "total_flops": sum(host.cores * host.speed_flops for host in platform.hosts),
        "host_kinds": [
            {"hosts": count, "speed_flops": speed, "cores": cores}
            for (speed, cores), count in hosts.most_common()
        ],
        "links": len(links),
        "link_kinds": [
            {
                "links": count,
                "policy": policy,
                "bandwidth_Bps": bandwidth,
                "latency_s": latency,
                "flow_Bps": min(bandwidth, window / (2.0 * latency))
                if held(latency)
                else bandwidth,
            }
            for (policy, bandwidth, latency), count in kinds.most_common()
        ],
        "profiles": sum(
            trace is not None
            for fact in (*platform.hosts, *links)
            for name in ("speed_trace", "state_trace", "bandwidth_trace", "latency_trace")
            for trace in [getattr(fact, name, None)]
        ),
        "zones": [_zone(platform, zone) for zone in platform.zones],
        "config": platform.config,
        "warnings": len(platform.notes),
    }


def _zone(platform: Platform, zone: Zone) -> dict[str, Any]:
    hosts = sum(point in platform.points.host for point in zone.points)
    return {
        "name": zone.name,
        "depth": zone.depth,
        "routing": zone.topology.replace("_", " ").lower() if zone.topology else zone.kind,
        "hosts": hosts,
        "routers": len(zone.points) - hosts - len(zone.children),
        "zones": len(zone.children),
    }


def summary_text(summary: dict[str, Any]) -> str:
    """For the terminal."""
    lines = [shown_path(summary["file"])]
    total = units.format_speed(summary["total_flops"])
    lines.append(
        f"  {_count(summary['hosts'], 'host')}, {_count(summary['cores'], 'core')}, {total} in all"
    )
    lines += _shown(
        f"    {kind['hosts']:>9,} x {_cores(kind['cores'])}"
        f"{units.format_speed(kind['speed_flops'])}"
        for kind in summary["host_kinds"]
    )
    lines.append(f"  {_count(summary['links'], 'link')}")
    lines += _shown(
        f"    {kind['links']:>9,} x {units.format_bandwidth(kind['bandwidth_Bps'])}, "
        f"{units.format_time(kind['latency_s'])}, {kind['policy']}{_window(kind)}"
        for kind in summary["link_kinds"]
    )
    count = len(summary["zones"])
    lines.append(f"  {count:,} zone{'s' * (count > 1)}")
    lines += _shown(_zone_line(zone) for zone in summary["zones"])
    if summary["profiles"]:
        lines.append(f"  {summary['profiles']} availability traces")
    for key, value in summary["config"].items():
        lines.append(f"  config {key} = {value}")
    if summary["warnings"]:
        lines.append(f"  {summary['warnings']} warnings: see ptaskmodel platform validate")
    return "\n".join(lines)


def _shown(lines: Any) -> list[str]:
    every = list(lines)
    if len(every) <= SHOWN_ZONES:
        return every
    return [*every[:SHOWN_ZONES], f"    ... and {len(every) - SHOWN_ZONES:,} more"]


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _window(kind: dict[str, Any]) -> str:
    if kind["flow_Bps"] == kind["bandwidth_Bps"]:
        return ""
    return f"; the TCP window gives one flow {units.format_bandwidth(kind['flow_Bps'])} at most"


def _cores(cores: int) -> str:
    return f"{cores} cores of " if cores > 1 else ""


def _zone_line(zone: dict[str, Any]) -> str:
    holds = [
        f"{zone[what]:,} {what if zone[what] > 1 else what[:-1]}"
        for what in ("zones", "hosts", "routers")
        if zone[what]
    ]
    return f"    {'  ' * zone['depth']}{zone['name']} ({zone['routing']}): {', '.join(holds)}"
