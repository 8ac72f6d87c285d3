"""What is legal in a platform but surely not meant: findings with the line to look at."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator

from ptaskmodel import units
from ptaskmodel.errors import RouteError
from ptaskmodel.platform.model import RouteParts
from ptaskmodel.platform.notes import Note, short
from ptaskmodel.platform.platform import Platform
from ptaskmodel.platform.power import power_findings
from ptaskmodel.platform.zones import NONE

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


def check_platform(platform: Platform) -> list[Note]:
    """Findings, in order of the lines of the file: those of the reader, then ours.

    Pairs of hosts are all tried up to 4,000, else as many are drawn (always the same).
    """
    findings = [*platform.notes, *platform.hints]
    findings += _merged(platform)
    findings += _check_routes(platform)
    return sorted(findings, key=lambda note: note.line)


def _merged(platform: Platform) -> list[Note]:
    """One finding per line and kind: a cluster has as many equal links as hosts."""
    counts: dict[tuple[int, str], int] = {}
    first: dict[tuple[int, str], Note] = {}
    for note in (*_check_hosts(platform), *_check_links(platform), *power_findings(platform)):
        key = note.line, note.kind
        counts[key] = counts.get(key, 0) + 1
        first.setdefault(key, note)
    return [
        note._replace(text=f"{note.text} (and {counts[key] - 1} more)") if counts[key] > 1 else note
        for key, note in first.items()
    ]


def _check_hosts(platform: Platform) -> Iterator[Note]:
    for host in platform.hosts:
        line = platform.host_line(host.index)
        where = f"host {short(host.name)}: "
        if _SEPARATOR.search(host.name):
            yield Note(line, "name", where + NAME)
        if host.speed_flops == 0:
            yield Note(line, "speed 0", f"{where}speed 0: a task with flops there never ends")
        elif host.speed_flops < SLOW_HOST_FLOPS:
            speed = units.format_speed(host.speed_flops)
            yield Note(line, "slow host", f"{where}only {speed}, a millionth of a real core")


def _check_links(platform: Platform) -> Iterator[Note]:
    for link in platform.links:
        line = platform.link_line(link.index)
        where = f"link {short(link.name)}: "
        if _SEPARATOR.search(link.name):
            yield Note(line, "name", where + NAME)
        rate = units.format_bandwidth(link.bandwidth_Bps)
        if link.bandwidth_Bps == 0:
            yield Note(line, "bandwidth 0", f"{where}its bandwidth is 0: no transfer ends")
        elif link.bandwidth_Bps < SLOW_LINK_BPS:
            yield Note(line, "slow link", f"{where}{rate} is less than 1 kB/s; is the unit right?")
        if link.latency_s > LONG_LATENCY_S:
            latency = units.format_time(link.latency_s)
            yield Note(line, "long latency", f"{where}a latency of {latency}; is the unit right?")


def _check_routes(platform: Platform) -> Iterator[Note]:
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
        yield Note(line, "no route", f"{_some(missing)} without a route; declare one")
    for number, pairs in free.items():
        zone = platform.zones[number]
        where = f"zone {short(zone.name)}: "
        text = f"{where}{_some(pairs)} with an empty route: nothing can be sent; declare one"
        yield Note(zone.line, "empty route", text)

    for line, (link, rate, pairs) in held.items():
        what = f"link {short(platform.all_links[link].name)}"
        latency = units.format_time(platform.all_links[link].latency_s)
        text = (
            f"{what}: with its latency of {latency}, the TCP window holds {_some(pairs)[:-1]} "
            f"below half of the bandwidth, a flow at {units.format_bandwidth(rate, 4)} or more; "
            "set network/TCP-gamma"
        )
        yield Note(line, "window", text)


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
    """All ordered pairs of hosts (indices) if at most ``limit``, else ``limit`` distinct ones."""
    n = len(platform.hosts)
    if n * n <= limit:
        yield from ((a, b) for a in range(n) for b in range(n))
        return
    generator = random.Random(seed)
    for number in sorted(generator.sample(range(n * n), limit)):
        yield divmod(number, n)
