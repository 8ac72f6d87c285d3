"""Power of hosts and links, and how hosts sleep: properties that only energy accounting reads.

wattage_per_state and wattage_off of hosts (formerly watt_per_state, with other numbers, and
watt_off) and wattage_range of links (formerly watt_range) are SimGrid's; sleep_pstates of hosts is
Batsim's. They are read when energy is requested, and a mistake in them is then an error. Without
energy, `inspection.check_platform` reports it.
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
from ptaskmodel.remarks import TAKEN, WARNING, Remark, finding, placed

# As in SimGrid, blanks may stand before a number and not after.
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
# The name of wattage_per_state in older platforms.
OLD = "watt_per_state"
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
    """Return the power properties of a `host` of a `platform`; None: it has none.

    Raises PlatformError with the line of a wrong property.
    """
    try:
        return _power_of(host)
    except ValueError as error:
        raise _error(platform, platform.host_line(host.index), _name(host), error) from None


def link_power(platform: Platform, link: Link) -> LinkPower | None:
    """Return the power properties of a `link` of a `platform`; None: it has none.

    Raises PlatformError with the line of a wrong property.
    """
    try:
        return _link_power(link.properties.get("wattage_range", link.properties.get("watt_range")))
    except ValueError as error:
        raise _error(platform, platform.link_line(link.index), _name(link), error) from None


def sleep_states(platform: Platform, host: Host) -> Mapping[int, Sleep]:
    """Return the sleep pstates of a `host` of a `platform`, by number.

    All other pstates compute, except those that lead into or out of sleep. Raises PlatformError
    with the line.
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
        power = _power_of(host)
    except ValueError as error:
        yield finding(line, "power", f"{where}: {error} (only energy needs it)")
        power = None
    if power is not None and any(state.full_W < state.idle_W for state in power.states):
        what = "wattage_per_state: less power with all cores busy than idle"
        yield finding(line, "less power", f"{where}: {what}; is the order Idle:Epsilon:AllCores?")
    if power is not None and is_old_power(host):
        yield finding(line, "old power", f"{where}: {_old_text(found(OLD), power)}")
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


def is_old_power(host: Host) -> bool:
    """Whether a host says what it draws by the name that SimGrid had before 3.26."""
    return OLD in host.properties and "wattage_per_state" not in host.properties


def old_power_remark(platform: Platform) -> Remark | None:
    """What to say of hosts of a `platform` with power by the old name; None if it has none."""
    hosts = [host for host in platform.hosts if is_old_power(host)]
    power = host_power(platform, hosts[0]) if hosts else None
    if power is None:
        return None
    text = f"{_name(hosts[0])}: {_old_text(hosts[0].properties[OLD], power)}"
    line, more = platform.host_line(hosts[0].index), len(hosts) - 1
    text += f" (and {more:,} more hosts)" if more else ""
    return placed(Remark(text, WARNING, None, TAKEN, str(platform.path), line or None, OLD))


def _old_text(text: str | None, power: HostPower) -> str:
    new = ",".join(":".join(f"{watts:.9g}" for watts in state) for state in power.states)
    return f"{OLD}={short(str(text))} is taken for wattage_per_state={short(new)}; write that"


def _name(fact: Host | Link) -> str:
    return f"{'host' if isinstance(fact, Host) else 'link'} {short(fact.name)}"


def _error(platform: Platform, line: int, where: str, error: ValueError) -> PlatformError:
    place = f"{platform.path}:{line}" if line else f"{platform.path}"
    return PlatformError(f"{place}: {where}: {error}")


def _power_of(host: Host) -> HostPower | None:
    """What a host draws. Raises ValueError."""
    found, pstates = host.properties.get, len(host.speeds_flops)
    if is_old_power(host):
        return _old_power(
            found(OLD, ""), found("wattage_off", found("watt_off")), pstates, host.cores
        )
    return _host_power(found("wattage_per_state"), found("wattage_off"), pstates)


def _old_power(text: str, off: str | None, pstates: int, cores: int) -> HostPower | None:
    """Power by the old name: Idle:AllCores or Idle:OneCore:AllCores, a line from one core to all.

    The power at the least load is where this line begins; of one core, it is that of no load.
    """
    try:
        made = _host_power(text, off, pstates)
    except ValueError as error:
        raise ValueError(str(error).replace("wattage_per_state", OLD)) from None
    if made is None:
        return None
    states = []
    for state, profile in zip(made.states, text.split(","), strict=True):
        one_W = state.epsilon_W  # of three numbers the second
        if profile.count(":") == 1 or cores == 1:
            states.append(state._replace(epsilon_W=state.idle_W))
        else:
            states.append(state._replace(epsilon_W=one_W - (state.full_W - one_W) / (cores - 1)))
    return made._replace(states=tuple(states))


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
