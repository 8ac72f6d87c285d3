"""Inspect a platform: suspicious declarations, its routes as a table, and a summary.

The command `platform` calls these functions. `check_platform` finds what is legal but surely wrong,
with the line to look at. `write_routes` writes one line for each pair of hosts. `summarise` returns
a summary as data, `summary_text` as text.
"""

from __future__ import annotations

import csv
import math
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ptaskmodel import units
from ptaskmodel.errors import RouteError
from ptaskmodel.files import join_names, shown_path, whole_file
from ptaskmodel.platform.builder import NONE, Zone
from ptaskmodel.platform.facts import RouteParts, short
from ptaskmodel.platform.platform import Platform
from ptaskmodel.platform.power import power_findings
from ptaskmodel.remarks import Remark, finding
from ptaskmodel.style.text import count as counted
from ptaskmodel.style.text import duration
from ptaskmodel.style.text import number as quantity

if TYPE_CHECKING:
    from ptaskmodel.platform.platform import Platform


SLOW_LINK_BPS = 1e3
SLOW_HOST_FLOPS = 1e6
LONG_LATENCY_S = 10.0
MAX_PAIRS = 4000
SHOWN_PAIRS = 3
# A TCP window that holds flows below this part of the bandwidth is seldom meant.
WINDOW_PART = 0.5
DEFAULT_WINDOW = 4194304.0
# What separates names in lists of hosts, in tables and on command lines.
_SEPARATOR = re.compile(r"[\s,;\"'|]")
NAME = "a name with a blank, a comma or another separator is taken for several; rename it"

COLUMNS = ("src", "dst", "latency_s", "links")

SHOWN_ZONES = 20


def check_platform(platform: Platform) -> list[Remark]:
    """Return the findings on a `platform` by line: first the reader's, then those of these checks.

    Up to 4,000 pairs of hosts are tried; of more, a sample that is always the same.
    """
    findings = [*platform.notes, *platform.hints]
    findings += _merged(platform)
    findings += _check_routes(platform)
    return sorted(findings, key=lambda note: note.line or 0)


def _merged(platform: Platform) -> list[Remark]:
    """One finding per line and kind: a cluster has as many equal links as hosts."""
    counts: dict[tuple[int | None, str | None], int] = {}
    first: dict[tuple[int | None, str | None], Remark] = {}
    for note in (*_check_hosts(platform), *_check_links(platform), *power_findings(platform)):
        key = note.line, note.kind
        counts[key] = counts.get(key, 0) + 1
        first.setdefault(key, note)
    return [
        note._replace(text=f"{note.text} (and {counts[key] - 1} more)") if counts[key] > 1 else note
        for key, note in first.items()
    ]


def _check_hosts(platform: Platform) -> Iterator[Remark]:
    for host in platform.hosts:
        line = platform.host_line(host.index)
        where = f"host {short(host.name)}: "
        if _SEPARATOR.search(host.name):
            yield finding(line, "name", where + NAME)
        if host.speed_flops == 0:
            yield finding(line, "speed 0", f"{where}speed 0: a task with flops there never ends")
        elif host.speed_flops < SLOW_HOST_FLOPS:
            speed = units.format_speed(host.speed_flops)
            yield finding(line, "slow host", f"{where}only {speed}, a millionth of a real core")


def _check_links(platform: Platform) -> Iterator[Remark]:
    for link in platform.links:
        line = platform.link_line(link.index)
        where = f"link {short(link.name)}: "
        if _SEPARATOR.search(link.name):
            yield finding(line, "name", where + NAME)
        rate = units.format_bandwidth(link.bandwidth_Bps)
        if link.bandwidth_Bps == 0:
            yield finding(line, "bandwidth 0", f"{where}its bandwidth is 0: no transfer ends")
        elif link.bandwidth_Bps < SLOW_LINK_BPS:
            yield finding(
                line, "slow link", f"{where}{rate} is less than 1 kB/s; is the unit right?"
            )
        if link.latency_s > LONG_LATENCY_S:
            latency = units.format_time(link.latency_s)
            yield finding(
                line, "long latency", f"{where}a latency of {latency}; is the unit right?"
            )


def _check_routes(platform: Platform) -> Iterator[Remark]:
    """Pairs without route, with an empty one, with a latency that holds them, by fault."""
    missing: list[str] = []
    held: dict[int, tuple[int, float, list[str]]] = {}  # by line: a link, the least rate, pairs
    free: dict[int, list[str]] = {}
    window = tcp_window(platform)
    for source, destination in sample_pairs(platform, MAX_PAIRS, 1):
        if source == destination:
            continue
        names = platform.hosts[source].name, platform.hosts[destination].name
        pair = f"{short(names[0])} -> {short(names[1])}"
        try:
            parts = platform.route_parts(source, destination)
        except RouteError:
            missing.append(pair)
            continue
        link, rate = _held(platform, parts, window)
        if link is not None:
            line = platform.link_line(link)
            first, least, pairs = held.get(line, (link, rate, []))
            pairs.append(pair)
            held[line] = first, min(least, rate), pairs
        if not (parts.links or parts.instant or parts.extra_latency_s):
            free.setdefault(platform.leaf_zone(source), []).append(pair)
    if missing and not all(zone.kind == NONE for zone in platform.zones):
        line = platform.zones[0].line
        yield finding(line, "no route", f"{_some(missing)} without a route; declare one")
    for number, pairs in free.items():
        zone = platform.zones[number]
        where = f"zone {short(zone.name)}: "
        text = f"{where}{_some(pairs)} with an empty route: nothing can be sent; declare one"
        yield finding(zone.line, "empty route", text)

    for line, (link, rate, pairs) in held.items():
        what = f"link {short(platform.all_links[link].name)}"
        latency = units.format_time(platform.all_links[link].latency_s)
        text = (
            f"{what}: with its latency of {latency}, the TCP window holds {_some(pairs)[:-1]} "
            f"below half of the bandwidth, a flow at {units.format_bandwidth(rate, 4)} or more; "
            "set network/TCP-gamma"
        )
        yield finding(line, "window", text)


def tcp_window(platform: Platform) -> float:
    """The largest TCP window, bytes; 0: none."""
    return float(platform.config.get("network/TCP-gamma", DEFAULT_WINDOW))


def _held(platform: Platform, parts: RouteParts, window: float) -> tuple[int | None, float]:
    """The link of the largest latency, if the window holds a flow far below the bandwidth (else
    None), and the rate at which it does, B/s.
    """
    links = [platform.all_links[k] for k in parts.links]
    latency = sum(link.latency_s for link in links) + parts.extra_latency_s
    if not links or latency == 0 or window == 0:
        return None, math.inf
    rate = window / (2 * latency)
    if rate >= WINDOW_PART * min(link.bandwidth_Bps for link in links):
        return None, math.inf
    return max(links, key=lambda link: link.latency_s).index, rate


def _some(pairs: list[str]) -> str:
    shown = ", ".join(pairs[:SHOWN_PAIRS])
    more = f", ... ({len(pairs)} found)" if len(pairs) > SHOWN_PAIRS else ""
    return f"{shown}{more}:" if len(pairs) > 1 else f"{shown}:"


def sample_pairs(platform: Platform, limit: int, seed: int) -> Iterator[tuple[int, int]]:
    """Yield ordered pairs of hosts (indices) of a `platform`: all, or ``limit`` drawn by `seed`."""
    n = len(platform.hosts)
    if n * n <= limit:
        yield from ((a, b) for a in range(n) for b in range(n))
        return
    generator = random.Random(seed)
    for number in sorted(generator.sample(range(n * n), limit)):
        yield divmod(number, n)


def write_routes(
    platform: Platform, pairs: Iterable[tuple[int, int]], output: str | Path | IO[str]
) -> int:
    """Write the routes of a `platform` between `pairs` of hosts (indices) to a CSV file or stream.

    output: its path or stream; its columns are COLUMNS, with blanks between links. A pair without a
    route has an empty latency. Returns the number of such pairs. Raises PTaskModelError if the file
    cannot be written.
    """
    if isinstance(output, str | Path):
        with whole_file(output) as stream:
            return write_routes(platform, pairs, stream)
    writer = csv.writer(output, lineterminator="\n")
    writer.writerow(COLUMNS)
    missing = 0
    for source, destination in pairs:
        names = platform.hosts[source].name, platform.hosts[destination].name
        try:
            route = platform.route(*names)
        except RouteError:
            missing += 1
            writer.writerow((*names, "", ""))
        else:
            writer.writerow((*names, repr(route.latency_s), join_names(route.links)))
    return missing


def summarise(platform: Platform) -> dict[str, Any]:
    """Return counts and ranges of a `platform` in SI units, ready for JSON.

    flow_Bps: largest rate of one flow, alone on such a link, with the TCP window.
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
    """Return a `summary` of `summarise` as text for the terminal."""
    lines = [shown_path(summary["file"])]
    total = quantity(summary["total_flops"], "work")
    hosts, cores = (counted(summary[f"{what}s"], what) for what in ("host", "core"))
    lines.append(f"  {hosts}, {cores}, {total} in all")
    lines += _shown(
        f"    {kind['hosts']:>9,} x {_cores(kind['cores'])}{quantity(kind['speed_flops'], 'work')}"
        for kind in summary["host_kinds"]
    )
    lines.append(f"  {counted(summary['links'], 'link')}")
    lines += _shown(
        f"    {kind['links']:>9,} x {quantity(kind['bandwidth_Bps'], 'rate')}, "
        f"{duration(kind['latency_s'])}, {kind['policy']}{_window(kind)}"
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


def _window(kind: dict[str, Any]) -> str:
    if kind["flow_Bps"] == kind["bandwidth_Bps"]:
        return ""
    return f"; the TCP window gives one flow {quantity(kind['flow_Bps'], 'rate')} at most"


def _cores(cores: int) -> str:
    return f"{cores} cores of " if cores > 1 else ""


def _zone_line(zone: dict[str, Any]) -> str:
    holds = [
        f"{zone[what]:,} {what if zone[what] > 1 else what[:-1]}"
        for what in ("zones", "hosts", "routers")
        if zone[what]
    ]
    return f"    {'  ' * zone['depth']}{zone['name']} ({zone['routing']}): {', '.join(holds)}"
