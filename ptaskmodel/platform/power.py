"""Power of hosts and links, and how hosts sleep: properties that only energy accounting reads.

wattage_per_state and wattage_off of hosts and wattage_range of links (formerly watt_range) are
SimGrid's; sleep_pstates of hosts is Batsim's. They are read when energy is requested, and a mistake
in them is then an error. Without energy, `inspection.check_platform` reports it.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ptaskmodel.errors import PlatformError
from ptaskmodel.platform.facts import Host, Link, short
from ptaskmodel.platform.platform import Platform
from ptaskmodel.remarks import Remark, finding

# As in SimGrid, blanks may stand before a number and not after.
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_PSTATE = re.compile(r"\d{1,9}")


class Watts(NamedTuple):
    """Power of a host in a pstate, W: without load, at the least load, with all cores busy."""

    idle_W: float
    epsilon_W: float
    full_W: float


class HostPower(NamedTuple):
    """Power of a host: in each pstate, and switched off, W."""

    states: tuple[Watts, ...]
    off_W: float


class LinkPower(NamedTuple):
    """Power of a link without traffic and saturated, W."""

    idle_W: float
    busy_W: float


class Sleep(NamedTuple):
    """The pstates by which a host goes into a sleep pstate and out of it (Batsim's virtual ones).

    Each lasts as long as one flop takes at its speed.
    """

    off: int
    on: int


def host_power(platform: Platform, host: Host) -> HostPower | None:
    """What a host draws; None if it says nothing of it. Raises PlatformError, with the line."""
    try:
        return _host_power(
            host.properties.get("wattage_per_state"),
            host.properties.get("wattage_off"),
            len(host.speeds_flops),
        )
    except ValueError as error:
        raise _error(platform, platform.host_line(host.index), _name(host), error) from None


def link_power(platform: Platform, link: Link) -> LinkPower | None:
    """What a link draws; None if it says nothing of it. Raises PlatformError, with the line."""
    try:
        return _link_power(link.properties.get("wattage_range", link.properties.get("watt_range")))
    except ValueError as error:
        raise _error(platform, platform.link_line(link.index), _name(link), error) from None


def sleep_states(platform: Platform, host: Host) -> Mapping[int, Sleep]:
    """The sleep pstates of a host; all others but those that lead there compute.

    Raises PlatformError, with the line.
    """
    text = host.properties.get("sleep_pstates")
    if text is None:
        return {}
    try:
        return _sleep_states(text, host.speeds_flops)
    except ValueError as error:
        raise _error(platform, platform.host_line(host.index), _name(host), error) from None


def power_findings(platform: Platform) -> Iterator[Remark]:
    """What is wrong or odd in the properties that only energy reads."""
    for host in platform.hosts:
        if host.properties:
            line, where = platform.host_line(host.index), _name(host)
            yield from _host_findings(host, line, where)
    for link in platform.links:
        if link.properties:
            line, where = platform.link_line(link.index), _name(link)
            yield from _link_findings(link, line, where)


def _host_findings(host: Host, line: int, where: str) -> Iterator[Remark]:
    found = host.properties.get
    try:
        power = _host_power(found("wattage_per_state"), found("wattage_off"), _count(host))
    except ValueError as error:
        yield finding(line, "power", f"{where}: {error} (only energy needs it)")
        power = None
    if power is not None and any(state.full_W < state.idle_W for state in power.states):
        what = "wattage_per_state: less power with all cores busy than idle"
        yield finding(line, "less power", f"{where}: {what}; is the order Idle:Epsilon:AllCores?")
    if "watt_per_state" in host.properties and "wattage_per_state" not in host.properties:
        what = "watt_per_state is an old name that nobody reads"
        yield finding(line, "old power", f"{where}: {what}; write wattage_per_state")
    if "sleep_pstates" in host.properties:
        try:
            _sleep_states(host.properties["sleep_pstates"], host.speeds_flops)
        except ValueError as error:
            yield finding(line, "sleep", f"{where}: {error}")


def _link_findings(link: Link, line: int, where: str) -> Iterator[Remark]:
    old, new = link.properties.get("watt_range"), link.properties.get("wattage_range")
    try:
        _link_power(old if new is None else new)
    except ValueError as error:
        yield finding(line, "power", f"{where}: {error} (only energy needs it)")
    if old is not None:
        yield finding(line, "old power", f"{where}: watt_range is an old name of wattage_range")


def _count(host: Host) -> int:
    return len(host.speeds_flops)


def _name(fact: Host | Link) -> str:
    return f"{'host' if isinstance(fact, Host) else 'link'} {short(fact.name)}"


def _error(platform: Platform, line: int, where: str, error: ValueError) -> PlatformError:
    place = f"{platform.path}:{line}" if line else f"{platform.path}"
    return PlatformError(f"{place}: {where}: {error}")


@functools.lru_cache(maxsize=1024)
def _host_power(per_state: str | None, off: str | None, pstates: int) -> HostPower | None:
    off_W = 0.0 if off is None else _number("wattage_off", off.removesuffix("W"), off)
    if per_state is None:
        return None
    profiles = per_state.split(",")
    if len(profiles) != pstates:
        raise ValueError(
            f"wattage_per_state={short(per_state)} has {len(profiles)} profiles for {pstates} "
            "speeds; give one for each speed"
        )
    return HostPower(tuple(map(_watts, profiles)), off_W)


def _watts(profile: str) -> Watts:
    parts = profile.split(":")
    if len(parts) not in (2, 3):
        raise ValueError(
            f"wattage_per_state: {short(profile)} is neither Idle:AllCores nor "
            "Idle:Epsilon:AllCores; give two or three numbers of W"
        )
    numbers = [_number("wattage_per_state", part, profile) for part in parts]
    return Watts(numbers[0], numbers[-2], numbers[-1])


@functools.lru_cache(maxsize=1024)
def _link_power(text: str | None) -> LinkPower | None:
    if text is None:
        return None
    found = None
    for pair in text.split(","):
        parts = pair.split(":")
        if len(parts) != 2:
            raise ValueError(
                f"wattage_range: {short(pair)} is not Idle:Busy; give two numbers of W"
            )
        found = LinkPower(*(_number("wattage_range", part, pair) for part in parts))
    return found


def _number(name: str, text: str, whole: str) -> float:
    number = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not math.isfinite(number):
        raise ValueError(f"{name}: {short(text)} in {short(whole)} is not a number; give W")
    return number


@functools.lru_cache(maxsize=1024)
def _sleep_states(text: str, speeds_flops: tuple[float, ...]) -> Mapping[int, Sleep]:
    found: dict[int, Sleep] = {}
    roles: dict[int, str] = {}
    for triple in text.split(","):
        parts = [part.strip() for part in triple.split(":")]
        if len(parts) != 3 or not all(_PSTATE.fullmatch(part) for part in parts):
            raise ValueError(
                f"sleep_pstates: {short(triple)} is not SLEEP:OFF:ON; give three numbers of pstates"
            )
        for part, role in zip(parts, ("sleep", "switch-off", "switch-on"), strict=True):
            pstate = int(part)
            if pstate >= len(speeds_flops):
                raise ValueError(
                    f"sleep_pstates: there is no pstate {pstate}, speed lists "
                    f"{len(speeds_flops)}; give more speeds or another pstate"
                )
            if roles.setdefault(pstate, role) != role:
                raise ValueError(
                    f"sleep_pstates: pstate {pstate} is a {roles[pstate]} and a {role} pstate; "
                    "give each its own"
                )
            if role != "sleep" and not 0.0 < speeds_flops[pstate] < math.inf:
                raise ValueError(
                    f"sleep_pstates: {role} pstate {pstate} has speed 0; its speed is one flop "
                    "over the seconds that the switch takes"
                )
        sleep, off, on = map(int, parts)
        found[sleep] = Sleep(off, on)
    computing = [k for k in range(len(speeds_flops)) if k not in roles]
    if not computing:
        raise ValueError("sleep_pstates: no pstate is left to compute; add a speed")
    for pstate in computing:
        if speeds_flops[pstate] <= 0.0:
            raise ValueError(
                f"sleep_pstates: pstate {pstate}, which computes, has speed 0; give it one"
            )
    return found
