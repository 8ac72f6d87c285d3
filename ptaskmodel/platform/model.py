"""What exists: hosts, links and profiles as frozen facts, in SI units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

SHARED = "SHARED"
FATPIPE = "FATPIPE"
WIFI = "WIFI"

NO_PROPERTIES: Mapping[str, str] = MappingProxyType({})


def _no_properties() -> Mapping[str, str]:
    return NO_PROPERTIES


@dataclass(frozen=True, slots=True)
class Disk:
    """A disk of a host, kept as a fact (no I/O is simulated)."""

    name: str
    read_bandwidth_Bps: float
    write_bandwidth_Bps: float
    properties: Mapping[str, str] = field(default_factory=_no_properties)


@dataclass(frozen=True, slots=True)
class Profile:
    """Values over time: ``values[k]`` holds from ``dates_s[k]`` on.

    With ``period_s`` (a float), the whole pattern is repeated: event k of repetition i is at
    ``dates_s[k] + i * period_s``. Dates do not decrease.
    """

    name: str
    dates_s: tuple[float, ...]
    values: tuple[float, ...]
    period_s: float | None = None


@dataclass(frozen=True, slots=True)
class Host:
    """A computing host: ``cores`` cores of ``speeds_flops[pstate]`` flop/s each."""

    index: int
    name: str
    speeds_flops: tuple[float, ...]
    cores: int = 1
    pstate: int = 0
    zone: str = ""
    coordinates: tuple[float, float, float] | None = None
    properties: Mapping[str, str] = field(default_factory=_no_properties)
    disks: tuple[Disk, ...] = ()
    speed_profile: Profile | None = None
    state_profile: Profile | None = None

    @property
    def speed_flops(self) -> float:
        """Speed of one core in the initial pstate, flop/s."""
        return self.speeds_flops[self.pstate]


@dataclass(frozen=True, slots=True)
class Link:
    """A link: one of SHARED (the sum of uses is limited), FATPIPE (each use is), WIFI.

    A SPLITDUPLEX link of a file is two SHARED links, named ``id_UP`` and ``id_DOWN``. The rates of
    a Wifi zone's link are in ``wifi_bandwidths_Bps``, the first also in ``bandwidth_Bps``.
    """

    index: int
    name: str
    bandwidth_Bps: float
    latency_s: float
    policy: str = SHARED
    zone: str = ""
    properties: Mapping[str, str] = field(default_factory=_no_properties)
    bandwidth_profile: Profile | None = None
    latency_profile: Profile | None = None
    state_profile: Profile | None = None
    wifi_bandwidths_Bps: tuple[float, ...] = ()


class PlatformWarning(UserWarning):
    """A platform file that is read, but holds something old, odd or surely not meant."""


class Route(NamedTuple):
    """Links from a host to another, in the order they are crossed, and their total latency."""

    links: tuple[str, ...]
    latency_s: float


class RouteParts(NamedTuple):
    """A route as link indices, cut where the zones are left and entered.

    Between hosts of two different leaf zones, ``up`` depends on the source and the zone of the
    destination, ``down`` on the destination and the zone of the source, ``across`` on the two
    zones: ``separable`` says that this holds for all hosts of the two zones. Within one zone all
    is ``across`` and nothing is separable. The latency is the sum over the links plus
    ``extra_latency_s`` (Vivaldi distances; a route with one is not separable).
    """

    up: tuple[int, ...]
    across: tuple[int, ...]
    down: tuple[int, ...]
    extra_latency_s: float
    separable: bool

    @property
    def links(self) -> tuple[int, ...]:
        return self.up + self.across + self.down
